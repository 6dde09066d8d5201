"""The seam between the gate and what may be built upon it: what an observer is told, and what it may ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.exceptions import ForbiddenByRobots
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.user_agent import ProductTokens


class Observer:
    """Each method is called when what it is named for has happened; none is called for a request that is allowed by
    what is known already: those are most of a crawl, and are to cost nothing."""

    def answered(self, url: str, answer: Answer, cause: Request) -> None:
        """One request for a robots.txt has an answer."""

    def asked(self, origin: Origin, facts: OriginInfo, cause: Request) -> None:
        """An origin's robots.txt was asked for, along its redirects."""

    def introduced(self, origin: Origin, facts: OriginInfo, cause: Request) -> None:
        """An origin's robots.txt is known now, asked for or from storage, and those who wait are about to go on."""

    def waited(self, origin: Origin, seconds: float) -> None:
        """A request has waited for its origin's robots.txt."""

    def refused(self, request: Request, reason: ForbiddenByRobots) -> None:
        """A request is refused, or would be but for REP_SHADOW."""


class Gate(Protocol):
    """The middleware, as observers see it."""

    def tokens(self, request: Request) -> ProductTokens:
        """The product tokens that the request is held to; the crawl's where those in its meta are wrong."""

    def known(self, request: Request) -> RobotsPolicy | None:
        """What is known at this moment of the robots.txt that holds for the request; None where nothing is."""

    def tell(self, reason: ForbiddenByRobots, request: Request) -> None:
        """A request is refused: count it, log it, tell the observers."""

    def now(self) -> float:
        """Seconds since the epoch."""


# Makes an observer of a crawl; None where the settings ask for none.
Feature = Callable[[Crawler, RepSettings, Gate], Observer | None]
