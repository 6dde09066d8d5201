"""Decides about each request: whose robots.txt applies to it, and what this robots.txt says.

The gate decides, and the door waits: `waiting.at_scheduler.SchedulerDoor` keeps a request until the gate can decide.

1. `applicable_origin` says whose robots.txt applies. If none applies, the request goes on.
2. If memory has a usable policy of that robots.txt, it decides at once. (An unreachable robots.txt has a policy, too:
   see 3.) If robots.txt expires soon, or the backoff after a failure is over, it is fetched again in the background.
3. Else the request waits for a fetch (`fetching.single_flight`). Most requests wait at the scheduler, before they come
   here (`waiting.at_scheduler`). The others wait in the downloader (`waiting.in_downloader`). The fetch ends with a
   policy, unless the crawl ends first. The policy decides about the requests that waited:
   - The fetch had an answer: its rules decide. Without rules, its status decides (`protocol.status_policy`).
   - The fetch failed: the old rules decide, if they may still be obeyed. Else nothing is allowed; after a long outage,
     everything (`protocol.lifecycle`). Usually a fetch has several rounds before requests are refused
     (`protocol.conversation`).
4. If a page comes from another URL than the request's (a browser followed a redirect), the functions in
   `after_download` judge the page by the policy of that URL (`look_at_page`). A page whose policy is not in memory
   waits for it only if one of these functions may drop or change the page (`waits_for_landings`).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urldefrag

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.fetching.places import Connections
from scrapy_rep.fetching.single_flight import SingleFlight
from scrapy_rep.meta import DONT_OBEY, ROBOTS_TXT_REQUEST
from scrapy_rep.origin_info import KnownOrigins
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy, State
from scrapy_rep.protocol.origin import Origin, needs_host
from scrapy_rep.protocol.readings import other_readings
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.protocol.robotstxt.syntax import EVERYONE
from scrapy_rep.refusals import Refusals
from scrapy_rep.settings import ExemptPath
from scrapy_rep.stats import CACHE_HIT, CACHE_STALE, EXEMPTED
from scrapy_rep.user_agent import ProductTokens, UserAgent

HTTP = ("http://", "https://")
EXEMPT_BY = {DONT_OBEY: EXEMPTED.format(DONT_OBEY), "REP_EXEMPT": EXEMPTED.format("setting")}
"""What exempts requests from robots.txt -> the stat that counts them."""
MAX_LOOK_UPS = 64  # robots.txt files that are looked up in the background at a time (`Gate.look_up`)
# For the hot path: Python 3.11 takes 70 ns to look a member up in its enum.
NO_REFETCH = Refetch.NOT
UNREACHABLE_STALE = State.UNREACHABLE_STALE
EXEMPT, NO_HOST, NOT_SUBJECT = VerdictReason.EXEMPT, VerdictReason.NO_HOST, VerdictReason.NOT_SUBJECT


class Landing(NamedTuple):
    """Where a page comes from, if a browser or a service followed redirects by itself."""

    request: Request
    """The request that was made, with the URL of the page."""
    policy: RobotsPolicy | None
    """The policy that applies to this URL; None without a policy, and while it is unknown (`waits_for_landings`)."""


Judge = Callable[[Verdict, RobotsTxt | None, str, ProductTokens], Verdict]
"""Returns the verdict that counts. Arguments: the verdict so far, the rules that are obeyed (None if there are none),
the URL, and the product tokens."""


class Gate(Part):
    """Decides for the middleware, and answers what extensions and spiders ask. Only its coroutines wait."""

    def __init__(
        self, crawl: Crawl, single_flight: SingleFlight, connections: Connections, origins: KnownOrigins
    ) -> None:
        """Raises ValueError for a wrong product token."""
        super().__init__(crawl)
        self.user_agent = UserAgent(crawl.crawler.settings, crawl.crawler.spider)
        """The crawl's product tokens, and where they come from. `open` replaces this object."""
        self.judges: list[Judge] = []
        """More reasons to refuse a URL. Each way to a verdict asks all judges: a request, a page from another URL,
        `RepMiddleware.verdict`, and `scrapy robots`. No judge is asked if no robots.txt applies."""
        self.before_download: list[Callable[[Request, Verdict], None]] = []
        """Called with a request that goes on, and the verdict on it; not for our own requests for a robots.txt. In a
        dry run, the verdict may be a refusal. A function may raise ForbiddenByRobots to drop the request. Without
        functions and `judges`, allowed requests get no verdict, to save time."""
        self.after_download: list[Callable[[Request, Response, Landing | None], None]] = []
        """Called with a request and its response, before the spider gets the response; not for our own requests for a
        robots.txt. A function may raise ForbiddenByRobots to drop the response."""
        self.waits_for_landings = False
        """Whether pages from other URLs wait until the policy of that URL is known. A function in `after_download` that
        may drop or change a page by it sets this."""
        self.is_delayed: Callable[[str], bool] = lambda _site: False
        """Whether a site's Crawl-delay is obeyed (`extensions.crawl_delay`). The door keeps requests to such a site in
        the queue until the downloader has room."""
        self.refusals = Refusals(crawl)
        self.origins = origins
        self.decided = 0
        """The number of decisions by a policy."""
        self.now = crawl.clock.now
        self._single_flight = single_flight
        self._connections = connections
        self._exempt = exempt = crawl.settings.exempt
        self._exempt_domains = tuple(item[1:] for item in map(str, exempt) if item.startswith("*."))
        self._exempt_paths = _exempt_paths(exempt)

    def open(self, spider: Spider) -> None:
        """Read the spider's attributes, and log the product tokens and what is exempt. Called when the spider opens."""
        self.user_agent = UserAgent(self._crawler.settings, spider)
        self.user_agent.log_tokens(self._log)
        if self._exempt:
            names = ", ".join(sorted(map(str, self._exempt)))
            self._log.info("REP_EXEMPT: robots.txt is neither fetched nor obeyed for %s", names)
        self.refusals.log_dry_run()

    # The request goes on, or is refused.

    def decide_if_known(self, request: Request) -> Origin | None:
        """None if the request goes on. Else the origin whose robots.txt the caller has to wait for.

        Raises ForbiddenByRobots if the request is refused.
        """
        applicable = self.applicable_origin(request)
        if isinstance(applicable, Origin):
            policy = self._peek_and_refresh(applicable, request)
            if policy is None:
                return applicable
            self.decide(request, policy)
        elif applicable is NO_HOST or ROBOTS_TXT_REQUEST not in request.meta:
            if applicable is EXEMPT:
                self._count(EXEMPT_BY[DONT_OBEY if request.meta.get(DONT_OBEY) else "REP_EXEMPT"])
            if applicable is NO_HOST or self.before_download:
                self._act_on(self.verdict_on(request, None), request)
        return None

    def decide(self, request: Request, policy: RobotsPolicy) -> None:
        """Let the request go on, or refuse it. Raises what `decide_if_known` raises."""
        self.decided += 1
        if policy.state is UNREACHABLE_STALE:
            self._count(CACHE_STALE)
        tokens = self.user_agent.tokens(request)
        # `allows` is faster. But `judges` and the functions in `before_download` need a verdict.
        if self.judges or self.before_download or not policy.allows(request.url, tokens):
            self._act_on(self._verdict(policy, request.url, tokens), request)

    def _act_on(self, verdict: Verdict, request: Request) -> None:
        if not verdict.allowed:
            self.refusals.refuse(request, verdict)
        for look in self.before_download:
            look(request, verdict)

    def count_hits(self, waited: int) -> None:
        """Set the stat rep/cache/hit when the crawl ends. Counting at each request would double the cost of a decision.
        `waited`: the number of requests that have waited, at the scheduler or in the downloader, and then resumed."""
        # Another middleware may drop requests after their wait and before `decide`. If the difference is not positive,
        # the number of hits is not known.
        if self.decided > waited:
            self._count(CACHE_HIT, self.decided - waited)

    # What applies to a request.

    def applicable_origin(self, request: Request) -> Origin | VerdictReason:
        """The origin whose robots.txt applies to the request. If none applies, the reason: EXEMPT for
        `dont_obey_robotstxt` and REP_EXEMPT; NO_HOST for http and https URLs without an origin, which are refused;
        NOT_SUBJECT for a robots.txt itself, and for other URLs without an origin, such as `data:`."""
        url = request.url
        if request.meta.get(DONT_OBEY):
            return EXEMPT
        origin = Origin.of(url)
        if origin is None:
            return NO_HOST if needs_host(url) else NOT_SUBJECT
        if self._exempt and self._is_exempt(origin, url):
            return EXEMPT
        return NOT_SUBJECT if ROBOTS_PATH in url and is_robots_txt(url) else origin

    def _is_exempt(self, origin: Origin, url: str) -> bool:
        host = origin.host
        if origin in self._exempt or host in self._exempt or host.endswith(self._exempt_domains):
            return True
        paths = self._exempt_paths.get(origin)
        return paths is not None and all(paths.allows(text, EVERYONE) for text in (url, *other_readings(url)))

    def origin_to_await(self, request: Request) -> Origin | None:
        """The origin whose robots.txt the request has to wait for; None if it need not wait."""
        applicable = self.applicable_origin(request)
        return applicable if isinstance(applicable, Origin) and self._single_flight.peek(applicable) is None else None

    def peek(self, request: Request) -> RobotsPolicy | None:
        """The usable policy that memory has for the request; None without one, and if no robots.txt applies."""
        applicable = self.applicable_origin(request)
        return self._single_flight.peek(applicable) if isinstance(applicable, Origin) else None

    def _peek_and_refresh(self, origin: Origin, request: Request) -> RobotsPolicy | None:
        """The usable policy that memory has. If it is time to fetch robots.txt again, begin that in the background."""
        policy = self._single_flight.peek(origin)
        if policy is not None and policy.refetch is not NO_REFETCH:
            self._single_flight.refresh(origin, request)
        return policy

    async def wait_for_policy(self, request: Request) -> RobotsPolicy | None:
        """Wait for the policy that applies to the request, and return it; None if no robots.txt applies. Fails
        as `SingleFlight.join` does."""
        applicable = self.applicable_origin(request)
        if not isinstance(applicable, Origin):
            return None
        policy = self._peek_and_refresh(applicable, request)
        if policy is None:
            policy = await maybe_deferred_to_future(self._single_flight.join(applicable, request))
        return policy

    def may_look_up(self, request: Request, number: int) -> bool:
        """Whether one more than this number of robots.txt files may be looked up in the background. They take at most a
        quarter of the places for connections."""
        places = self._connections.places_for(request, is_robots_txt=True)
        return number < min(MAX_LOOK_UPS, max(1, (places.number() if places is not None else 0) // 4))

    async def look_up(self, origin: Origin, trigger: Request) -> RobotsPolicy:
        """Wait for the origin's policy in the background. No other request waits longer because of this fetch. Raises
        CrawlClosingError when the crawl begins to close."""
        self._single_flight.refresh(origin, trigger)  # so `join` begins no fetch that counts as starting
        return await maybe_deferred_to_future(self._single_flight.join(origin, trigger, goes_back=True))

    def verdict_on(self, request: Request, policy: RobotsPolicy | None) -> Verdict:
        """The verdict on the request by the policy that applies to it. Without a policy, the request is allowed, unless
        its URL needs a host."""
        if policy is not None:
            return self._verdict(policy, request.url, self.user_agent.tokens(request))
        reason = self.applicable_origin(request)
        reason = reason if isinstance(reason, VerdictReason) else NOT_SUBJECT
        return Verdict(reason is not NO_HOST, reason)

    def _verdict(self, policy: RobotsPolicy, url: str, tokens: ProductTokens) -> Verdict:
        verdict = policy.verdict(url, tokens)
        for judge in self.judges:
            verdict = judge(verdict, policy.robots, url, tokens)
        return verdict

    def product_tokens(self, request: Request) -> ProductTokens:
        """The product tokens that decide about the request."""
        return self.user_agent.tokens(request, decides=False)

    # A page has come.

    def look_at_page(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        """The response; an awaitable of it, if it comes from another URL than the request's, and `waits_for_landings`.
        Both ways may raise ForbiddenByRobots. The awaitable raises IgnoreRequest if the crawl is over first."""
        target = _where_it_ended(request, response)
        if target and self.waits_for_landings:
            return self._look_at_landing(target, request, response)
        return self._look(request, response, Landing(target, self.peek(target)) if target else None)

    async def _look_at_landing(self, target: Request, request: Request, response: Response) -> Response:
        return self._look(request, response, Landing(target, await self.wait_for_policy(target)))

    def _look(self, request: Request, response: Response, landing: Landing | None) -> Response:
        for look in self.after_download:
            look(request, response, landing)
        return response


def _exempt_paths(exempt: Iterable[object]) -> Mapping[Origin, RobotsTxt]:
    """Return the paths of REP_EXEMPT as rules that allow nothing else. So URLs are compared as with a robots.txt."""
    texts: dict[Origin, str] = {}
    for item in exempt:
        if isinstance(item, ExemptPath):
            texts[item.origin] = texts.get(item.origin, "user-agent: *\ndisallow: /\n") + f"allow: {item.path}\n"
    return {origin: RobotsTxt.parse(text.encode()) for origin, text in texts.items()}


def _where_it_ended(request: Request, response: Response) -> Request | None:
    """A request for the URL of the response; None if it is the request's own URL. Both URLs have to be http or https,
    else the result is None, too. (Scrapy's handler for `s3:` responds with an https URL.)"""
    url = response.url
    if url == request.url or not (url.startswith(HTTP) and request.url.startswith(HTTP)):
        return None
    if urldefrag(url).url == urldefrag(request.url).url:
        return None
    try:
        # A subclass of Request may need other arguments.
        return Request(url, headers=request.headers, meta=request.meta, priority=request.priority)
    except ValueError:  # the handler's URL is malformed
        return None
