"""What an extension may ask of the middleware; what happens it learns from the signals."""

from __future__ import annotations

from typing import Protocol

from scrapy import Request

from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.user_agent import ProductTokens, UserAgent


class MiddlewareAccess(Protocol):
    """`RepMiddleware`, as extensions see it."""

    @property
    def user_agent(self) -> UserAgent:
        """The crawl's product tokens, and where they come from."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def product_tokens(self, request: Request) -> ProductTokens:
        """Those that decide about the request; the crawl's where those in its meta are wrong."""

    def peek(self, request: Request) -> RobotsPolicy | None:
        """What is known at this moment of the robots.txt that applies to the request; None where nothing is."""

    def report_forbidden(self, request: Request, verdict: Verdict) -> None:
        """A request is refused: count it, log it, send `request_forbidden`."""
