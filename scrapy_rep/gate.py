"""What is decided about a request: which robots.txt applies to it, and what that says.

1. `applicable_origin` says whose robots.txt applies to a request; where none does, the request goes on.
2. If that robots.txt is known, it decides at once. If it is about to expire, or if the backoff of an outage is over, it
   is fetched again in the background, and the request does not wait for that.
3. If it is not known, the request waits for a fetch: at the scheduler before it comes here (`waiting.scheduler_door`),
   or else in the downloader (`waiting.not_from_scheduler`). Unless the crawl closes, the fetch ends with a policy
   (`cache.resolver`), which decides about all requests that have waited for it:
   - what the answer says: its rules, or by its status that everything or nothing is allowed (`protocol.status_policy`);
   - after a failure, the rules from before, if they may still be obeyed; else, if the outage has lasted for
     REP_UNREACHABLE_DAYS, that everything is allowed; else, once requests have waited for further attempts
     (REP_UNREACHABLE_WAIT), that nothing is allowed.
4. A page that comes from another URL than its request's is judged by that URL (`look_at_page`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import urldefrag

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_rep.cache.resolver import Resolver
from scrapy_rep.fetching.robots_request import ROBOTS_TXT_REQUEST
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy, State
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.refusals import Refusals
from scrapy_rep.settings import RepSettings
from scrapy_rep.user_agent import ProductTokens, UserAgent

# For the hot path: Python 3.11 takes 70 ns to look a member up in its enum.
NO_REFETCH = Refetch.NOT
UNREACHABLE_STALE = State.UNREACHABLE_STALE
EXEMPT, NOT_SUBJECT = VerdictReason.EXEMPT, VerdictReason.NOT_SUBJECT


class Landing(NamedTuple):
    """Where a page comes from, if a browser or a service followed redirects by itself."""

    request: Request
    """The request that was made, with the URL of the page."""
    policy: RobotsPolicy | None
    """The policy that applies to it; None if none does."""


class Gate:
    """Decides for the middleware, and answers what extensions and spiders ask. Only its coroutines wait."""

    def __init__(self, crawler: Crawler, settings: RepSettings, resolver: Resolver, now: Callable[[], float]) -> None:
        """`now`: seconds since the epoch. Raises ValueError for a wrong product token."""
        self.user_agent = UserAgent(crawler.settings, crawler.spider)
        """The crawl's product tokens, and where they come from. Read it here: the opened spider replaces it."""
        self.also_judge: Callable[[Verdict, RobotsTxt | None, str, ProductTokens], Verdict] | None = None
        """Makes of each verdict on a URL by rules the one that counts (`usage.preferences`); None if nothing else than
        rules may refuse."""
        self.before_download: list[Callable[[Request, Verdict], None]] = []
        """Called in order with each request that goes on, except those for a robots.txt. The verdict refuses the
        request only in a dry run. While the list is empty, no verdict is made for an allowed request. A function in it
        may raise ForbiddenByRobots, which drops the request."""
        self.after_download: list[Callable[[Request, Response, Landing | None], None]] = []
        """Called in order with each of these requests and its response, on the response's way to the spider. A
        function in it may raise ForbiddenByRobots, which drops the response."""
        self.robots_known = resolver.robots_known
        """Called in order after each round of a fetch, with what is known of the origin then, and the request that
        needed its robots.txt."""
        self.refusals = Refusals(crawler, is_dry_run=settings.dry_run)
        self.decided = 0
        """Requests that a known robots.txt, or an error in fetching it, has decided about."""
        self.now = now
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._stats = crawler.stats
        self._resolver = resolver
        self._exempt = settings.exempt
        self._exempt_domains = tuple(item[1:] for item in map(str, settings.exempt) if item.startswith("*."))
        refuses_use = bool(settings.purposes) and settings.purposes_refuse
        self._may_refuse_pages = not settings.dry_run and (settings.bypassed == "drop" or refuses_use)

    def open(self, spider: Spider) -> None:
        """The spider is opened: its attributes count, and the log says who is named and what is exempt."""
        self.user_agent = UserAgent(self._crawler.settings, spider)
        self.user_agent.announce(self._log)
        if self._exempt:
            names = ", ".join(sorted(map(str, self._exempt)))
            self._log.info("REP_EXEMPT: robots.txt is neither fetched nor obeyed for %s", names)
        self.refusals.announce()

    # The request goes on, or is refused.

    def decide_if_known(self, request: Request) -> Origin | None:
        """None if the request goes on; else the origin, for whose robots.txt the caller has to wait.

        Raises ForbiddenByRobots if the request is refused, ValueError for a wrong product token in its meta.
        """
        origin = self.applicable_origin(request)
        if isinstance(origin, VerdictReason):
            if origin is EXEMPT and not request.meta.get("dont_obey_robotstxt"):
                self._stats.inc_value("rep/exempt")
            if self.before_download and ROBOTS_TXT_REQUEST not in request.meta:
                self._act_on(self.judge(request, None), request)
            return None
        policy = self._resolver.peek(origin)
        if policy is None:
            return origin
        if policy.refetch is not NO_REFETCH:
            self._resolver.refresh(origin, request)
        self.decide(request, policy)
        return None

    def decide(self, request: Request, policy: RobotsPolicy) -> None:
        """By the policy of its origin. Raises what `decide_if_known` does."""
        self.decided += 1
        if policy.state is UNREACHABLE_STALE:
            self._stats.inc_value("rep/cache/stale")
        tokens = self.user_agent.tokens(request)
        # `allows` is faster, but knows rules alone, and gives no verdict to look at for an allowed request.
        if self.also_judge is not None or self.before_download or not policy.allows(request.url, tokens):
            self._act_on(self.verdict(policy, request.url, tokens), request)

    def refuse_for(self, fault: BaseException, request: Request, origin: Origin) -> None:
        """An error of ours has ended the fetch, so nobody knows what is allowed. Raises RobotsUnreachable, but not in a
        dry run."""
        self.decided += 1
        answer = f"internal error, {type(fault).__name__}: {fault}"
        reason, access = VerdictReason.UNREACHABLE, AccessResult.UNREACHABLE
        self._act_on(Verdict(False, reason, access=access, robots_url=origin.robots_url, answer=answer), request)

    def _act_on(self, verdict: Verdict, request: Request) -> None:
        if not verdict.allowed:
            self.refusals.refuse(request, verdict)
        for look in self.before_download:
            look(request, verdict)

    def count_hits(self, waited: int) -> None:
        """As one stat at the end, because a stat for each request costs as much as all the rest. `waited`: how many
        requests have waited before they came here."""
        # Another middleware may have dropped requests that had waited.
        if self.decided > waited:
            self._stats.inc_value("rep/cache/hit", self.decided - waited)

    # What applies to a request.

    def applicable_origin(self, request: Request) -> Origin | VerdictReason:
        """The origin whose robots.txt applies to the request. Where none does: EXEMPT for `dont_obey_robotstxt` and
        REP_EXEMPT; NOT_SUBJECT for a robots.txt itself, and for URLs without an origin, such as `data:`."""
        url = request.url
        if request.meta.get("dont_obey_robotstxt"):
            return EXEMPT
        origin = Origin.of(url)
        if origin is None:
            return NOT_SUBJECT
        if self._exempt and self._is_exempt(origin):
            return EXEMPT
        return NOT_SUBJECT if ROBOTS_PATH in url and is_robots_txt(url) else origin

    def _is_exempt(self, origin: Origin) -> bool:
        host = origin.host
        return origin in self._exempt or host in self._exempt or host.endswith(self._exempt_domains)

    def origin_to_await(self, request: Request) -> Origin | None:
        """The origin whose robots.txt the request has to wait for; None if it need not wait."""
        origin = self.applicable_origin(request)
        return origin if isinstance(origin, Origin) and self._resolver.peek(origin) is None else None

    def peek(self, request: Request) -> RobotsPolicy | None:
        """The policy that applies to the request, if it is known at this moment; else None."""
        origin = self.applicable_origin(request)
        return self._resolver.peek(origin) if isinstance(origin, Origin) else None

    async def wait_for_policy(self, request: Request) -> RobotsPolicy | None:
        """The policy that applies to the request, once it is known; None where none does. Raises IgnoreRequest if the
        crawl closes first."""
        origin = self.applicable_origin(request)
        if isinstance(origin, VerdictReason):
            return None
        policy = self._resolver.peek(origin)
        if policy is None:
            policy = await maybe_deferred_to_future(self._resolver.resolve(origin, request))
        return policy

    def judge(self, request: Request, policy: RobotsPolicy | None) -> Verdict:
        """The verdict on the request by the policy that applies to it, or by none. Raises ValueError for a wrong
        product token in its meta."""
        if policy is not None:
            return self.verdict(policy, request.url, self.user_agent.tokens(request))
        reason = self.applicable_origin(request)
        reason = reason if isinstance(reason, VerdictReason) else NOT_SUBJECT
        return Verdict(True, reason, access=AccessResult.UNAVAILABLE)

    def verdict(self, policy: RobotsPolicy, url: str, tokens: ProductTokens) -> Verdict:
        """By the policy, and by what else may refuse (`also_judge`)."""
        verdict = policy.verdict(url, tokens)
        return verdict if self.also_judge is None else self.also_judge(verdict, policy.robots, url, tokens)

    def product_tokens(self, request: Request) -> ProductTokens:
        """The tokens that decide about the request; the crawl's, if those in its meta are wrong."""
        try:
            return self.user_agent.tokens(request, decides=False)
        except ValueError:  # `decide` raises it
            return self.user_agent.product_tokens

    # A page has come.

    def look_at_page(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        """The response; an awaitable of it if it comes from another URL. Either may raise ForbiddenByRobots."""
        target = _where_it_ended(request, response)
        return self._look_at_landing(target, request, response) if target else self._look(request, response, None)

    async def _look_at_landing(self, target: Request, request: Request, response: Response) -> Response:
        try:
            landing = Landing(target, await self.wait_for_policy(target))
        except IgnoreRequest:  # the crawl closes
            if self._may_refuse_pages:
                raise
            return response
        return self._look(request, response, landing)

    def _look(self, request: Request, response: Response, landing: Landing | None) -> Response:
        for look in self.after_download:
            look(request, response, landing)
        return response


def _where_it_ended(request: Request, response: Response) -> Request | None:
    """A request for the URL of the response; None if the request has the same URL, or if the URL is not HTTP's."""
    url = response.url
    if url == request.url or not url.startswith(("http://", "https://")):
        return None
    if urldefrag(url).url == urldefrag(request.url).url:
        return None
    try:
        return request.replace(url=url)
    except ValueError:  # the handler's URL is malformed
        return None
