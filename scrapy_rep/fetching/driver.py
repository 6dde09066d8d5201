"""Does what `protocol.conversation` says: asks the store and servers, chooses which request's proxy is used, reports.

Each request waits for a place (`places`). Its cookies come from the same conversation; they never mix with the cookies
of the crawl. After each round, what was fetched goes into the store in the background, and the signal `robots_known`
is sent. If a file is obeyed, the signal `robots_parsed` is sent before the requests go on: once for each origin, for as
many origins as memory has room for.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from scrapy import Request
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.deferreds import CANCELLATIONS
from scrapy_rep.fetching.download import Fetcher
from scrapy_rep.fetching.request import Cookies
from scrapy_rep.origin_info import KnownOrigins, OriginInfo
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.conversation import Ask, Find, Found, Round, conversation, with_meaning
from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.lifecycle import RobotsPolicy, State
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.scrapy_internals.engine_state import look_for_requests
from scrapy_rep.signals import robots_known, robots_parsed, robots_response, send
from scrapy_rep.stats import ACCESS, REDIRECTS, REFRESHED, RETRIES, STORAGE_HIT, STORAGE_MISS
from scrapy_rep.storage import storage_of
from scrapy_rep.storage.shared_store import LeaseClaim, SharedStore

MAX_PROXIES = 10  # proxies that one fetch uses
FAULT = "Internal error while fetching %s"


class Triggers:
    """The requests whose proxies a fetch may use: one request for each proxy."""

    def __init__(self, first: Request, needs_no_place: Callable[[], object] = bool) -> None:
        self.needs_no_place = needs_no_place
        """Call this when the fetch needs no place soon: it is slow, pauses, repeats, or waits for another crawler."""
        self.current = first
        """The request through whose proxy the fetch asks now."""
        self._proxies = [first.meta.get("proxy")]
        """None stands for no proxy."""
        self.untried: deque[Request] = deque()
        """Requests that have a proxy through which the fetch has not asked yet."""
        self._tried: deque[Request] = deque()

    def add(self, request: Request) -> None:
        """Add a request, if its proxy is another one than those of the requests so far."""
        proxy = request.meta.get("proxy")
        if proxy not in self._proxies and len(self._proxies) < MAX_PROXIES:
            self._proxies.append(proxy)
            self.untried.append(request)

    def go_on(self) -> None:
        """Take the next request: one with a new proxy, else the one that was taken longest ago."""
        self._tried.append(self.current)
        self.current = (self.untried or self._tried).popleft()


class Driver(Part):
    def __init__(self, crawl: Crawl, fetcher: Fetcher, origins: KnownOrigins) -> None:
        """Raises ValueError for a wrong REP_STORAGE."""
        super().__init__(crawl)
        self._fetcher = fetcher
        storage = storage_of(crawl.crawler, crawl.settings)
        self._store = SharedStore(crawl, storage) if storage is not None else None
        self._origins = origins
        self._is_closing = False
        self.in_pause: dict[Origin, Deferred[None]] = {}
        """The origins whose conversation pauses between two rounds -> the pause."""
        self._parsed: LocalCache[Origin, None] = LocalCache(limit=crawl.settings.memory_origins)
        """The origins for which Scrapy's signal `robots_parsed` was sent."""

    def end_pauses(self) -> None:
        """Step 1 of a stop (`middleware`). What the last round has brought decides about the requests that wait, and no
        conversation has a pause from now on."""
        self._is_closing = True
        for pause in list(self.in_pause.values()):
            pause.cancel()

    async def close(self) -> None:
        """Wait until what was fetched is stored and the leases are given back. Call this after all conversations."""
        if self._store is not None:
            await self._store.close()

    async def run(
        self, origin: Origin, before: RobotsPolicy | None, triggers: Triggers, is_awaited: Callable[[], bool]
    ) -> Round:
        """Run one conversation to its end. Return its last round, whose policy decides about all requests that have
        waited.

        `before`: the policy that this crawl had. `triggers`: the requests that need robots.txt. `is_awaited`: whether
        requests wait for the policy now. Waits for other crawlers, the network, pauses between rounds, and handlers
        of signals. If the crawl closes, the round that is under way is the last one.
        """
        now = self._clock.now
        steps = conversation(origin, before.entry if before is not None else None, now(), self._settings)
        cookies = Cookies(origin)
        claim: LeaseClaim | None = None
        step = next(steps)
        result: Found | Answer | float
        try:
            while True:
                match step:
                    case Find():
                        result, claim = await self._find(origin, step, triggers)
                    case Ask():
                        result = await self._ask(origin, step, triggers, cookies, is_awaited)
                    case Round():
                        self._give_back(claim, step.shared)
                        claim = None
                        pause = step.pause if is_awaited() and not self._is_closing else None
                        self._report(origin, before, step, triggers.current, pause)
                        triggers.needs_no_place()  # it needs no place in a pause, even if it had none yet
                        if pause is None or not await self._pause(origin, pause):
                            await self._report_rules(origin, step.policy, triggers.current)
                            return step
                        triggers.go_on()
                        result = now()
                step = steps.send(result)
        finally:
            self._give_back(claim)

    async def _pause(self, origin: Origin, seconds: float) -> bool:
        """Sleep. Return False at once if the crawl begins to close, or closes already."""
        if self._is_closing:
            return False
        pause = self.in_pause[origin] = deferred_from_coro(self._clock.sleep(seconds))
        look_for_requests(self._crawler)  # the spider may be idle now
        with suppress(*CANCELLATIONS):
            await maybe_deferred_to_future(pause)
        self.in_pause.pop(origin, None)
        return not self._is_closing

    async def _find(self, origin: Origin, step: Find, triggers: Triggers) -> tuple[Found, LeaseClaim | None]:
        """Look in the store. Return what was found, and a claim to the lease if this crawler has to fetch."""
        if self._store is None:
            return Found(step.known, is_to_fetch=True, at=self._clock.now()), None
        entry, claim = await self._store.find_or_claim(origin, step.known, triggers.needs_no_place)
        self._count(STORAGE_MISS if claim is not None else STORAGE_HIT)
        return Found(entry, is_to_fetch=claim is not None, at=self._clock.now()), claim

    async def _ask(
        self, origin: Origin, ask: Ask, triggers: Triggers, cookies: Cookies, is_awaited: Callable[[], bool]
    ) -> Answer:
        """Return the answer with its meaning. A failure is an answer, too."""
        if ask.was_requested_before:
            triggers.needs_no_place()
        if ask.reason:
            triggers.go_on()
            self._log.debug("Requesting robots.txt once more: %s: %s", printable(ask.url), printable(ask.reason))
            self._count(RETRIES)
        if ask.pause:
            await self._clock.sleep(ask.pause)
        response = None
        try:
            received, response = await self._fetcher.fetch(ask, triggers.current, cookies, triggers.needs_no_place)
        except CANCELLATIONS:
            if self._is_closing and not is_awaited():
                raise
            received = Answer(ask.url, reason="cancelled", dropped=True, ended_at=self._clock.now())
        except Exception as exc:  # noqa: BLE001 - it is logged, and counts as a failure of the network
            self._log.exception(FAULT, origin.robots_url)
            reason = printable(f"internal error, {type(exc).__name__}: {exc}")
            received = Answer(ask.url, reason=reason, ended_at=self._clock.now())
        answer = with_meaning(received, ask, self._settings)
        if answer.dropped and not received.dropped:
            response = None  # no archive or signal may show what a private server answered
        send(self._crawler, robots_response, answer=answer, request=triggers.current, response=response)
        return replace(answer, has_another_proxy=True) if triggers.untried else answer

    def _give_back(self, claim: LeaseClaim | None, entry: Entry | None = None) -> None:
        if claim is not None and self._store is not None:
            self._store.give_back(claim, entry)

    # What became known is reported.

    def _report(
        self, origin: Origin, before: RobotsPolicy | None, ended: Round, trigger: Request, pause: float | None
    ) -> None:
        policy, hops = ended.policy, ended.hops
        if hops:
            self._count(ACCESS.format(policy.entry.last.access.value))
            if before is not None and before.state is State.AGEING and policy.entry.outage is None:
                self._count(REFRESHED)
        for hop, following in pairwise(hops):
            self._count(REDIRECTS)
            if hop.url.startswith("https:") and following.url.startswith("http:"):
                urls = printable(hop.url), printable(following.url)
                self._log.debug("robots.txt leads from https to http: %s -> %s", *urls)
        info = OriginInfo(policy, pause)
        last_result, result = self._origins.note(origin, info)
        known = {"origin": origin, "info": info, "before": last_result, "result": result}
        send(self._crawler, robots_known, **known, request=trigger, fetched=bool(hops))

    async def _report_rules(self, origin: Origin, policy: RobotsPolicy, trigger: Request) -> None:
        """Send `robots_parsed`, unless it was sent for this origin. Waits for its handlers."""
        if policy.robots is None or origin in self._parsed:
            return
        self._parsed[origin] = None
        with suppress(*CANCELLATIONS):  # a handler was cancelled, or the crawl closes
            await self._crawler.signals.send_catch_log_async(
                robots_parsed, robotparser=RepRobotParser(policy.robots), request=trigger
            )
