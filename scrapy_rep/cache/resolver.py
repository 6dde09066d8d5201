"""The robots policies of a crawl by origin, and the one fetch of each that is not known (RFC 9309 2.3 and 2.4)."""

from __future__ import annotations

from functools import partial

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList, fail

from scrapy_rep.cache.memory import Memory
from scrapy_rep.cache.origin_fetch import FetchTools, OriginFetch
from scrapy_rep.clock import Clock
from scrapy_rep.fetching.answers import Answers
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.scrapy_internals.engine_state import CrawlClosingError, look_for_requests
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import storage_of

# For the hot path, as in the gate.
FETCH_FIRST = Refetch.FIRST


class Resolver:
    """`peek` gives a policy that is known, `resolve` waits for one that is not, `refresh` fetches it in advance."""

    def __init__(self, tools: FetchTools) -> None:
        self.has_room = tools.turns.has_room
        self.robots_known = tools.robots_known
        self._tools = tools
        self._memory = tools.memory
        self._now = tools.clock.now
        self._fetches: dict[Origin, OriginFetch] = {}
        self._closing = False

    def peek(self, origin: Origin) -> RobotsPolicy | None:
        """What may be used at once; None where robots.txt has to be fetched first. Never starts a fetch."""
        policy = self._memory.policy(origin, self._now())
        return None if policy is None or policy.refetch is FETCH_FIRST else policy

    def refresh(self, origin: Origin, trigger: Request) -> None:
        """Fetch the origin's robots.txt in the background, for the sake of later requests."""
        if not self._closing:
            self._single_fetch(origin, trigger).start()

    def resolve(self, origin: Origin, trigger: Request) -> Deferred[RobotsPolicy]:
        """The origin's policy, once it is known. Fails with CrawlClosingError where the crawl closes before; with
        nothing else."""
        if self._closing:
            return fail(CrawlClosingError())
        return self._single_fetch(origin, trigger).wait()

    def stop(self) -> None:
        """The crawl is closing: tell the requests that wait, and fetch nothing any longer."""
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

    def _single_fetch(self, origin: Origin, trigger: Request) -> OriginFetch:
        """The origin's fetch that is under way, or else a new one, which has not started yet: never two at a time."""
        fetch = self._fetches.get(origin)
        if fetch is None:
            fetch = OriginFetch(origin, trigger, self._tools, ended=lambda: self._fetches.pop(origin))
            self._fetches[origin] = fetch
        return fetch


def resolver_of(crawler: Crawler, settings: RepSettings, downloads: UncountedDownloads, clock: Clock) -> Resolver:
    """By the crawl's settings. Raises ValueError for a wrong REP_STORAGE."""
    count, log = crawler.stats.inc_value, logger_of(crawler)
    memory, store = Memory(settings), storage_of(crawler)
    fetcher = Fetcher(crawler, settings, downloads, clock.now)
    turns = FetchTurns(settings.fetch_concurrency, on_room=partial(look_for_requests, crawler))
    answers = Answers(crawler, settings, clock, fetcher, turns)
    shared_store = None
    if store is not None:
        # Most crawls have none.
        from scrapy_rep.cache.shared_store import SharedStore  # noqa: PLC0415
        from scrapy_rep.storage.circuit_breaker import CircuitBreaker  # noqa: PLC0415

        shared_store = SharedStore(CircuitBreaker(store, count, clock.monotonic, log), settings, turns, clock)
    parsed: LocalCache[Origin, None] = LocalCache(limit=settings.memory_origins)
    tools = FetchTools(settings, turns, answers, memory, shared_store, clock, log, count, [], crawler.signals, parsed)
    return Resolver(tools)
