"""The downloader middleware: a request passes, waits for its origin's robots.txt, or is dropped with the reason."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from scrapy_rep.cache.resolver import resolver_of
from scrapy_rep.clock import Clock
from scrapy_rep.exceptions import refusal
from scrapy_rep.exemptions import Exemptions
from scrapy_rep.extensions.bypassed import Bypassed
from scrapy_rep.extensions.crawl_delay import CrawlDelay
from scrapy_rep.extensions.crawl_log import CrawlLog
from scrapy_rep.extensions.drop_early import DropEarly
from scrapy_rep.extensions.evidence.archive import ArchiveWriter
from scrapy_rep.extensions.evidence.evidence import Evidence
from scrapy_rep.extensions.evidence.refusals_file import RefusalsFile
from scrapy_rep.extensions.outage_log import OutageLog
from scrapy_rep.extensions.report.collector import Report
from scrapy_rep.extensions.robotstxt_denied import RobotsTxtDenied
from scrapy_rep.extensions.sent_user_agent import SentUserAgent
from scrapy_rep.extensions.usage_preferences import PageUsage
from scrapy_rep.fetching.robots_request import ROBOTS_TXT_REQUEST
from scrapy_rep.misconfiguration import warn_of_misconfiguration
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, is_robots_txt
from scrapy_rep.protocol.robotstxt.preferences import Purposes
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.refusals import Refusals
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.scrapy_internals.engine_state import CrawlClosingError, call_when_closing
from scrapy_rep.settings import RepSettings, warn_of_unknown_names
from scrapy_rep.signals import request_waited
from scrapy_rep.user_agent import ProductTokens, UserAgent
from scrapy_rep.waiting.door import SchedulerDoor

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("scrapy_rep")

T = TypeVar("T")
Look: TypeAlias = Callable[[Request, Response], Awaitable[None] | None]


class RepMiddleware:
    """Drops the requests that robots.txt forbids (RFC 9309). Its order is 100, the built-in's."""

    clock = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(sleep)

    def __init__(self, crawler: Crawler) -> None:
        """Raises NotConfigured where ROBOTSTXT_OBEY is False, and ValueError for a wrong setting."""
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured("ROBOTSTXT_OBEY is False, so robots.txt is not obeyed")
        settings = RepSettings.read(crawler.settings)
        warn_of_unknown_names(crawler.settings)
        self._crawler = crawler
        self._stats = crawler.stats
        self._shadow = settings.shadow
        self.purposes = Purposes(settings.purposes, settings.purposes_refuse) if settings.purposes else None
        self._refusals = Refusals(crawler, settings.shadow)
        self._exemptions = Exemptions(crawler, settings.exempt)
        self._downloads = UncountedDownloads(crawler)
        self._resolver = resolver_of(crawler, settings, self._downloads, Clock(self.clock, self.monotonic, self.sleep))
        self._door = SchedulerDoor(
            crawler,
            settings.waiting_max,
            origin_to_await=self._origin_to_await,
            fetch=self._resolver.resolve,
            on_released=self._on_released,
        )
        # Counted here and made a stat at the end, because a stat for each request costs as much as all the rest.
        self._decided_at_once = 0
        self._released_number = 0
        # The spider may still change before it is opened; but a wrong value has to stop the start now.
        self.user_agent = UserAgent(crawler.settings, crawler.spider)
        self.before_fetch: list[Callable[[Request, Verdict], None]] = []
        self.after_fetch: list[Look] = []
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)
        self._start_extensions(settings)

    def _start_extensions(self, settings: RepSettings) -> None:
        # Held here, because signals do not keep their receivers alive.
        self._extensions: list[object] = [
            OutageLog(self._crawler, settings, self),
            CrawlLog(self._crawler, settings),  # its last line comes after that of the outages
            CrawlDelay(self._crawler, settings.crawl_delay_max, self),
            SentUserAgent(self._crawler, self),
            Bypassed(self._crawler, settings.bypassed, settings.shadow, self),
        ]
        if not settings.shadow:
            self._extensions.append(RobotsTxtDenied(self._crawler))
            if settings.drop_early:
                self._extensions.append(DropEarly(self._crawler, self))
        if self.purposes is not None:
            self._extensions.append(PageUsage(self._crawler, self.purposes, settings.shadow, self))
        if settings.evidence:
            self._extensions.append(Evidence(self._crawler, self))
        if settings.refusals is not None:
            self._extensions.append(RefusalsFile(self._crawler, settings, self))
        if settings.archive is not None:
            self._extensions.append(ArchiveWriter(self._crawler, settings, self))
        if settings.report is not None:
            self._extensions.append(Report(self._crawler, settings, self))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RepMiddleware:
        try:
            return cls(crawler)
        except NotConfigured as exc:
            if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
                raise
            # Scrapy would leave this middleware out and crawl what is forbidden.
            raise ValueError(
                f"{cls.__name__} cannot be built ({exc}); mend that, or set ROBOTSTXT_OBEY to False"
            ) from exc

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """None where the request may go on, an awaitable where it has to wait for robots.txt here.

        Raises ForbiddenByRobots, at once or when awaited; IgnoreRequest where the crawl closes before.
        """
        # Copied from `applicable_origin` to save its calls: nearly every request returns here.
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
            self._decided_at_once += 1
            if not policy.is_settled:
                self._resolver.refresh(origin, request)
            self._decide(policy, request)
            return None
        # Only now: nothing is ever known of an exempt origin.
        if self._exemptions.passes(origin):
            self._pass_unjudged(request)
            return None
        return self._wait_here(origin, request)

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        """The response, or an awaitable of it where a look takes time. Either may raise ForbiddenByRobots."""
        looks = iter(self.after_fetch if ROBOTS_TXT_REQUEST not in request.meta else ())
        for look in looks:
            under_way = look(request, response)
            if under_way is not None:
                return self._looked_at(request, response, first=under_way, looks=looks)
        return response

    async def _looked_at(
        self, request: Request, response: Response, first: Awaitable[None], looks: Iterator[Look]
    ) -> Response:
        await first
        for look in looks:
            under_way = look(request, response)
            if under_way is not None:
                await under_way
        return response

    def _pass_unjudged(self, request: Request) -> None:
        if self.before_fetch and ROBOTS_TXT_REQUEST not in request.meta:
            self._act_on(self.judged(request, None), request)

    def _decide(self, policy: RobotsPolicy, request: Request) -> None:
        if policy.is_stale:
            self._stats.inc_value("rep/cache/stale")
        tokens = self.user_agent.tokens(request)
        if self.before_fetch or not policy.allows(request.url, tokens):
            self._act_on(policy.verdict(request.url, tokens, self.purposes), request)

    def _act_on(self, verdict: Verdict, request: Request) -> None:
        if not verdict.allowed:
            self.report_forbidden(request, verdict)
            if not self._shadow:
                raise refusal(verdict)
        for look in self.before_fetch:
            look(request, verdict)

    # Waiting: at the scheduler's door, or here, if the request never came through that.

    def _origin_to_await(self, request: Request) -> Origin | None:
        """The origin whose robots.txt a request has to wait for; None where it may go on."""
        origin = self.applicable_origin(request)
        return None if origin is None or self._resolver.peek(origin) is not None else origin

    def _on_released(self, request: Request, seconds: float) -> None:
        self._released_number += 1
        self._crawler.signals.send_catch_log(request_waited, request=request, seconds=seconds)

    async def _wait_here(self, origin: Origin, request: Request) -> None:
        self._stats.inc_value("rep/waited")
        began = self.monotonic()
        try:
            with self._downloads.uncounted(request) if self._door.never_saw(request) else nullcontext():
                policy = await maybe_deferred_to_future(self._resolver.resolve(origin, request))
        except CrawlClosingError:
            # Its origin was known when it passed the door, and has been forgotten since.
            again = ", and it is back in the queue" if self._door.take_back(request) else ""
            raise IgnoreRequest(f"The crawl closed while the request waited for robots.txt{again}") from None
        seconds = self.monotonic() - began
        self._crawler.signals.send_catch_log(request_waited, request=request, seconds=seconds)
        self._decide(policy, request)

    # For spiders.

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """The crawl's middleware. Raises ValueError, which names the setting to change, if the crawl has none."""
        middleware = crawler.get_downloader_middleware(cls)
        if middleware is not None:
            return middleware
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise ValueError("scrapy-rep is off, because ROBOTSTXT_OBEY is False; set it to True")
        raise ValueError(
            "scrapy-rep is off, because DOWNLOADER_MIDDLEWARES has no 'scrapy_rep.RepMiddleware';"
            " set ADDONS to {'scrapy_rep.Addon': 500}"
        )

    async def verdict(self, request: str | Request, timeout: float | None = None) -> Verdict:
        """Whether the URL or request may be fetched, and why. Waits for robots.txt as a request would.

        The verdict's `robots_url` is None if no robots.txt applies: `data:` and the like, `dont_obey_robotstxt`,
        REP_EXEMPT. REP_SHADOW has no effect on it.

        Raises TimeoutError after `timeout` seconds; robots.txt is fetched all the same, for later requests. Raises
        IgnoreRequest if the crawl closes first.
        """
        request = Request(request) if isinstance(request, str) else request
        return self.judged(request, await _within(timeout, self.policy(request)))

    def judged(self, request: Request, policy: RobotsPolicy | None) -> Verdict:
        """The verdict on the request by the policy that applies to it; None if none does."""
        if policy is not None:
            return policy.verdict(request.url, self.user_agent.tokens(request), self.purposes)
        origin = Origin.of(request.url)
        is_exempt = request.meta.get("dont_obey_robotstxt") or (origin is not None and self._exemptions.holds(origin))
        reason = VerdictReason.EXEMPT if is_exempt else VerdictReason.NOT_SUBJECT
        return Verdict(True, reason, access=AccessResult.UNAVAILABLE)

    async def policy(self, request: Request) -> RobotsPolicy | None:
        """The policy that applies to the request, once it is known; None where none does. Raises IgnoreRequest where
        the crawl closes before."""
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

    def applicable_origin(self, request: Request) -> Origin | None:
        """The origin whose robots.txt applies to the request; None where none does."""
        url = request.url
        if request.meta.get("dont_obey_robotstxt") or (ROBOTS_PATH in url and is_robots_txt(url)):
            return None
        origin = Origin.of(url)
        return None if origin is None or self._exemptions.holds(origin) else origin

    # For extensions: `MiddlewareAccess`.

    def now(self) -> float:
        return self.clock()

    def product_tokens(self, request: Request) -> ProductTokens:
        try:
            return self.user_agent.tokens(request, decides=False)
        except ValueError:  # `process_request` raises it
            return self.user_agent.product_tokens

    def peek(self, request: Request) -> RobotsPolicy | None:
        origin = self.applicable_origin(request)
        return None if origin is None else self._resolver.peek(origin)

    def report_forbidden(self, request: Request, verdict: Verdict) -> None:
        self._refusals.report(request, verdict)

    # Beginning and end.

    def _spider_opened(self, spider: Spider) -> None:
        self.user_agent = UserAgent(self._crawler.settings, spider)
        self.user_agent.announce()
        self._exemptions.announce()
        self._refusals.announce()
        self._door.open()
        call_when_closing(self._crawler, self._resolver.stop)
        warn_of_misconfiguration(self._crawler)

    async def _spider_closed(self) -> None:
        # Another middleware may have dropped some of those that were released.
        hits = self._decided_at_once - self._released_number
        if hits > 0:
            self._stats.inc_value("rep/cache/hit", hits)
        await self._resolver.close()


async def _within(seconds: float | None, call: Coroutine[Any, Any, T]) -> T:
    """The call's result. After so many seconds the call is cancelled, and TimeoutError raised; None sets no limit."""
    if seconds is None:
        return await call
    under_way = deferred_from_coro(call)
    is_late = False

    def give_up() -> None:
        nonlocal is_late
        is_late = True
        under_way.cancel()

    timer = call_later(seconds, give_up)
    try:
        return await maybe_deferred_to_future(under_way)
    except (asyncio.CancelledError, CancelledError):
        if is_late:
            raise TimeoutError(f"robots.txt has not answered within {seconds:g} seconds") from None
        raise
    finally:
        timer.cancel()
