"""The robots policies of a crawl by origin, and the one fetch of each that is not known (RFC 9309 2.3 and 2.4)."""

from __future__ import annotations

from functools import partial

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList, fail

from scrapy_rep.cache.memory import memory_and_store
from scrapy_rep.cache.origin_fetch import FetchTools, OriginFetch
from scrapy_rep.cache.shared_store import SharedStore
from scrapy_rep.clock import Clock
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.fetching.redirects import Elsewhere
from scrapy_rep.fetching.robots_request import has_own_proxy
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.scrapy_internals.engine_state import CrawlClosingError, look_for_requests
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.circuit_breaker import CircuitBreaker

# Times REP_FETCH_CONCURRENCY: origins whose fetch is under way, while more may begin soon.
ROOM = 2


class Resolver:
    """`peek` for what is known, `resolve` to wait for what is not, `refresh` for what had better be fetched again."""

    def __init__(self, tools: FetchTools) -> None:
        self._tools = tools
        self._memory = tools.memory
        self._now = tools.clock.now
        self._fetches: dict[Origin, OriginFetch] = {}
        self._pausing = 0  # of the fetches, in an outage
        self._closing = False

    def peek(self, origin: Origin) -> RobotsPolicy | None:
        """What may be used at once; None where robots.txt has to be fetched first. Never starts a fetch."""
        policy = self._memory.policy(origin, self._now())
        return None if policy is None or policy.refetch is Refetch.FIRST else policy

    def has_room(self) -> bool:
        """Whether one more fetch would begin soon. Fetches that are slow on the wire or pause in an outage take no
        room."""
        busy = len(self._fetches) - self._pausing - self._tools.slow_fetches()
        return busy < ROOM * self._tools.settings.fetch_concurrency

    def refresh(self, origin: Origin, trigger: Request) -> None:
        """Fetch the origin's robots.txt in the background, for the sake of later requests."""
        if not self._closing:
            self._fetch(origin, trigger).start()

    def resolve(self, origin: Origin, trigger: Request) -> Deferred[RobotsPolicy]:
        """The origin's policy, once it is known. Fails with CrawlClosingError where the crawl closes before; with
        nothing else."""
        if self._closing:
            return fail(CrawlClosingError())
        fetch = self._fetch(origin, trigger)
        return fetch.wait().addCallback(self._resolved, fetch, trigger)

    def _resolved(
        self, policy: RobotsPolicy | None, fetch: OriginFetch, trigger: Request
    ) -> RobotsPolicy | Deferred[RobotsPolicy]:
        # A fetch for another origin's redirect has not sent `robots_available`: go round again.
        if policy is None or fetch.is_for_redirect:
            return self.resolve(fetch.origin, trigger)
        return policy

    def stop(self) -> None:
        """The crawl is closing: tell those who wait, and fetch nothing any longer."""
        self._closing = True
        for fetch in list(self._fetches.values()):
            fetch.stop()

    async def close(self) -> None:
        """The crawl is over: wait until what was fetched is stored and the leases are given back."""
        self.stop()
        tasks = [fetch.task for fetch in self._fetches.values() if fetch.task is not None]
        await maybe_deferred_to_future(DeferredList(tasks))
        if self._tools.shared_store is not None:
            await self._tools.shared_store.close()

    def _fetch(self, origin: Origin, trigger: Request, redirected_from: OriginFetch | None = None) -> OriginFetch:
        """The origin's fetch that is under way; a new one, not started yet, where there is none."""
        fetch = self._fetches.get(origin)
        if fetch is None:
            fetch = OriginFetch(
                origin,
                trigger,
                self._tools,
                self._resolve_redirect,
                self._forget,
                pausing=self._count_pausing,
                redirected_from=redirected_from,
            )
            self._fetches[origin] = fetch
        return fetch

    def _count_pausing(self, change: int) -> None:
        self._pausing += change
        self._tools.on_room()

    def _forget(self, fetch: OriginFetch) -> None:
        del self._fetches[fetch.origin]
        self._tools.on_room()

    async def _resolve_redirect(self, fetch: OriginFetch, other: Origin) -> RobotsPolicy | Elsewhere:
        """A redirect leads to another origin's robots.txt: that origin's policy, or what to do instead."""
        entry = self._memory.entry(other, self._now())
        policy = None if entry is None else self._tools.policy(entry)
        if policy is not None and policy.refetch is not Refetch.FIRST:
            self._tools.count("rep/redirects/shared")
            return policy
        under_way = self._fetches.get(other)
        if under_way is None:
            if has_own_proxy(fetch.trigger):
                return Elsewhere.FOLLOW
            if fetch.depth >= 2 * self._tools.settings.max_redirects:
                return Elsewhere.GIVE_UP
        elif under_way.is_waiting_for(fetch):
            return Elsewhere.RING
        fetch.waits_for = self._fetch(other, fetch.trigger, redirected_from=fetch)
        try:
            policy = await maybe_deferred_to_future(fetch.waits_for.wait())
        finally:
            fetch.waits_for = None
        if policy is None:
            return Elsewhere.GIVE_UP
        if under_way is not None:
            self._tools.count("rep/redirects/shared")
        return policy


def resolver_of(crawler: Crawler, settings: RepSettings, downloads: UncountedDownloads, clock: Clock) -> Resolver:
    """By the crawl's settings. Raises ValueError for a wrong REP_STORAGE."""
    count = crawler.stats.inc_value
    memory, store = memory_and_store(crawler, settings)
    on_room = partial(look_for_requests, crawler)
    fetcher = Fetcher(
        crawler, settings, under_way=downloads.fetch, is_on_wire=downloads.is_on_wire, on_slow=on_room, now=clock.now
    )
    shared_store = (
        None
        if store is None
        else SharedStore(CircuitBreaker(store, count, clock.monotonic, logger_of(crawler)), settings)
    )
    parsed: LocalCache[Origin, None] = LocalCache(limit=settings.memory_origins)
    tools = FetchTools(
        settings, fetcher.fetch, fetcher.slow, on_room, memory, shared_store, clock, count, crawler.signals, parsed
    )
    return Resolver(tools)
