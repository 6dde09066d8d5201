"""What an extension may ask of the middleware; what happens it learns from the signals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from scrapy import Request
from scrapy.http import Response

from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.robotstxt.preferences import Purposes
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.user_agent import ProductTokens, UserAgent


class MiddlewareAccess(Protocol):
    """`RepMiddleware`, as extensions see it."""

    @property
    def user_agent(self) -> UserAgent:
        """The crawl's product tokens, and where they come from."""

    @property
    def purposes(self) -> Purposes | None:
        """What the crawl gathers pages for; None if REP_PURPOSES is empty."""

    before_fetch: list[Callable[[Request, Verdict], None]]
    """Called with each request that goes on, in order, but for requests for a robots.txt. The verdict refuses only
    where REP_SHADOW is on. While the list is empty, no verdict is made for what is allowed. May raise
    ForbiddenByRobots, which drops the request."""

    after_fetch: list[Callable[[Request, Response], Awaitable[None] | None]]
    """Called with the response to each of these, on its way to the spider. May raise ForbiddenByRobots, at once or when
    awaited, which drops the response."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def product_tokens(self, request: Request) -> ProductTokens:
        """Those that decide about the request; the crawl's where those in its meta are wrong."""

    def peek(self, request: Request) -> RobotsPolicy | None:
        """What is known at this moment of the robots.txt that applies to the request; None where nothing is."""

    def judged(self, request: Request, policy: RobotsPolicy | None) -> Verdict:
        """The verdict on the request by the policy that applies to it; None if none does."""

    async def policy(self, request: Request) -> RobotsPolicy | None:
        """What applies to the request, once it is known; None where nothing does. Raises IgnoreRequest if the crawl
        closes first."""

    def report_forbidden(self, request: Request, verdict: Verdict) -> None:
        """A request is refused: count it, log it, send `request_forbidden`."""
