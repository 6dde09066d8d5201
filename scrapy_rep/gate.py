"""What is decided about a request: which robots.txt applies to it, what that says, and what a refusal causes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urldefrag

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_rep.cache.resolver import Resolver
from scrapy_rep.exceptions import refusal
from scrapy_rep.exemptions import Exemptions
from scrapy_rep.fetching.robots_request import ROBOTS_TXT_REQUEST
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, is_robots_txt
from scrapy_rep.protocol.robotstxt.preferences import Purposes
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.refusals import Refusals
from scrapy_rep.scrapy_internals.engine_state import CrawlClosingError
from scrapy_rep.settings import RepSettings
from scrapy_rep.user_agent import ProductTokens, UserAgent

# For the hot path: Python 3.11 takes 70 ns to look a member up in its enum.
NO_REFETCH = Refetch.NOT


class Landing(NamedTuple):
    """Where a page comes from, if a browser or a service followed redirects by itself."""

    request: Request
    """As the one that was made, with the URL of the page."""
    policy: RobotsPolicy | None
    """The policy that applies to it; None if none does."""


class Gate:
    """Decides for the middleware, and answers what extensions and spiders ask. Only its coroutines wait."""

    def __init__(self, crawler: Crawler, settings: RepSettings, resolver: Resolver, now: Callable[[], float]) -> None:
        """`now`: seconds since the epoch. Raises ValueError for a wrong product token."""
        self.user_agent = UserAgent(crawler.settings, crawler.spider)
        """The crawl's product tokens, and where they come from. Read it here: the opened spider replaces it."""
        self.purposes = Purposes(settings.purposes, settings.purposes_refuse) if settings.purposes else None
        """What the crawl gathers pages for; None if REP_PURPOSES is empty."""
        self.before_fetch: list[Callable[[Request, Verdict], None]] = []
        """Called in order with each request that goes on, except those for a robots.txt. The verdict refuses the
        request only in a dry run. While the list is empty, no verdict is made for an allowed request. A function in it
        may raise ForbiddenByRobots, which drops the request."""
        self.after_fetch: list[Callable[[Request, Response, Landing | None], None]] = []
        """Called in order with each of these requests and its response, on the response's way to the spider. A
        function in it may raise ForbiddenByRobots, which drops the response."""
        self.robots_known = resolver.robots_known
        """Called in order whenever what is known of an origin's robots.txt changes, with the request that needed it."""
        refuses_use = self.purposes is not None and self.purposes.refuse
        self.refuses_pages = not settings.shadow and (settings.bypassed == "drop" or refuses_use)
        """Whether a function of `after_fetch` may refuse a page."""
        self.refusals = Refusals(crawler, is_dry_run=settings.shadow)
        self.decided_at_once = 0
        """Requests whose robots.txt was known."""
        self.now = now
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._stats = crawler.stats
        self._is_dry_run = settings.shadow
        self._resolver = resolver
        self._exemptions = Exemptions(settings.exempt)

    def open(self, spider: Spider) -> None:
        """The spider is opened: its attributes count, and the log says who is named and what is exempt."""
        self.user_agent = UserAgent(self._crawler.settings, spider)
        self.user_agent.announce(self._log)
        self._exemptions.announce(self._log)
        self.refusals.announce()

    # The request goes on, or is refused.

    def decide_if_known(self, request: Request) -> Origin | None:
        """None if the request goes on; else the origin, for whose robots.txt the caller has to wait.

        Raises ForbiddenByRobots if the request is refused, ValueError for a wrong product token in its meta.
        """
        # The steps of `applicable_origin` without its calls: nearly all requests of a crawl are decided here.
        url = request.url
        if request.meta.get("dont_obey_robotstxt") or (ROBOTS_PATH in url and is_robots_txt(url)):
            self._pass_unjudged(request)
            return None
        origin = Origin.of(url)
        if origin is None:
            self._pass_unjudged(request)
            return None
        policy = self._resolver.peek(origin)
        if policy is not None:
            self.decided_at_once += 1
            if policy.refetch is not NO_REFETCH:  # in the background: this request is decided by what is known
                self._resolver.refresh(origin, request)
            self.decide(request, policy)
            return None
        # Last, because nothing is ever known of an exempt origin.
        if self._exemptions.holds(origin):
            self._stats.inc_value("rep/exempt")
            self._pass_unjudged(request)
            return None
        return origin

    def decide(self, request: Request, policy: RobotsPolicy) -> None:
        """By the policy of its origin. Raises what `decide_if_known` does."""
        if policy.is_stale:
            self._stats.inc_value("rep/cache/stale")
        tokens = self.user_agent.tokens(request)
        # `allows` is faster, but knows no purposes, and has no verdict for those who look at allowed requests.
        if self.purposes is not None or self.before_fetch or not policy.allows(request.url, tokens):
            self._act_on(policy.verdict(request.url, tokens, self.purposes), request)

    def _pass_unjudged(self, request: Request) -> None:
        if self.before_fetch and ROBOTS_TXT_REQUEST not in request.meta:
            self._act_on(self.judge(request, None), request)

    def _act_on(self, verdict: Verdict, request: Request) -> None:
        if not verdict.allowed:
            self.refusals.report(request, verdict)
            if not self._is_dry_run:
                raise refusal(verdict)
        for look in self.before_fetch:
            look(request, verdict)

    # What applies to a request.

    def applicable_origin(self, request: Request) -> Origin | None:
        """The origin whose robots.txt applies to the request; None where none does."""
        url = request.url
        if request.meta.get("dont_obey_robotstxt") or (ROBOTS_PATH in url and is_robots_txt(url)):
            return None
        origin = Origin.of(url)
        return None if origin is None or self._exemptions.holds(origin) else origin

    def origin_to_await(self, request: Request) -> Origin | None:
        """The origin whose robots.txt the request has to wait for; None if it need not wait."""
        origin = self.applicable_origin(request)
        return None if origin is None or self._resolver.peek(origin) is not None else origin

    def peek(self, request: Request) -> RobotsPolicy | None:
        """The policy that applies to the request, if it is known at this moment; else None."""
        origin = self.applicable_origin(request)
        return None if origin is None else self._resolver.peek(origin)

    async def wait_for_policy(self, request: Request) -> RobotsPolicy | None:
        """The policy that applies to the request, once it is known; None where none does. Raises IgnoreRequest if the
        crawl closes first."""
        origin = self.applicable_origin(request)
        if origin is None:
            return None
        policy = self._resolver.peek(origin)
        if policy is not None:
            return policy
        try:
            return await maybe_deferred_to_future(self._resolver.resolve(origin, request))
        except CrawlClosingError:
            raise IgnoreRequest("The crawl closed before robots.txt had answered") from None

    def judge(self, request: Request, policy: RobotsPolicy | None) -> Verdict:
        """The verdict on the request by the policy that applies to it, or by none. Raises ValueError for a wrong
        product token in its meta."""
        if policy is not None:
            return policy.verdict(request.url, self.user_agent.tokens(request), self.purposes)
        origin = Origin.of(request.url)
        is_exempt = request.meta.get("dont_obey_robotstxt") or (origin is not None and self._exemptions.holds(origin))
        reason = VerdictReason.EXEMPT if is_exempt else VerdictReason.NOT_SUBJECT
        return Verdict(True, reason, access=AccessResult.UNAVAILABLE)

    def product_tokens(self, request: Request) -> ProductTokens:
        """The tokens that decide about the request; the crawl's, if those in its meta are wrong."""
        try:
            return self.user_agent.tokens(request, decides=False)
        except ValueError:  # `decide` raises it
            return self.user_agent.product_tokens


def where_it_ended(request: Request, response: Response) -> Request | None:
    """A request for the URL of the response; None if the request has the same URL, or if the URL is not HTTP's."""
    url = response.url
    if url == request.url or not url.startswith(("http://", "https://")):
        return None
    if urldefrag(url)[0] == urldefrag(request.url)[0]:
        return None
    try:
        return request.replace(url=url)
    except ValueError:  # the handler's URL is malformed
        return None
