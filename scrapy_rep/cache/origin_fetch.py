"""The robots policy of each origin: from memory, or by one fetch that all requests to the origin share.

`Resolver` has one `OriginFetch` for an origin at a time, as a task of its own: a request that waits may be cancelled,
and the others still get their answer. It goes on in rounds:

    1. Find. The entry that is known (from memory in the first round, from the round before in later rounds) is enough
       if no fetch is due for it. Else the shared store is asked, if there is one. What it has is enough on the same
       condition; if it is not, this crawler takes the origin's lease, or waits while another crawler has it and
       fetches.
    2. Fetch, along redirects. Each HTTP request waits for its turn first (REP_FETCH_CONCURRENCY, `fetching.turns`),
       unless another origin's fetch asks for the same URL or has just done so: then its answer is used
       (`fetching.answers`). If the connection fails, or a 5xx comes without a Retry-After, the HTTP request is repeated
       after a second (REP_FETCH_RETRIES), which is no round of its own. It is not repeated after a time-out or a
       challenge, nor if another component has dropped it. The answer and the entry from before make the new entry
       (`protocol.lifecycle`). The signal `robots_fetched` tells of it, and it goes into the shared store in the
       background, which gives the lease back. An answer that HttpCacheMiddleware has replayed may be too old; then the
       fetch is repeated past that cache.
    3. Pause. If nothing is allowed because robots.txt is unreachable, the requests wait for another round. It begins
       when the backoff is over, but at the latest REP_UNREACHABLE_WAIT seconds after the outage's first failure; no
       round begins after that. If Retry-After asks for more time, or another component has dropped the request, nobody
       waits. Another crawler may have met the first failure, so its time is the wall clock's. In case that clock is set
       back, the seconds are also measured by the monotonic clock, from the end of this fetch's first round.

Whatever the last round has brought decides about all requests that have waited: if nothing is allowed by then, they are
refused. First the signal `robots_available` tells that the origin is known, then memory gets the policy, then the
requests go on; so a handler of the signal is ready before a request goes on. Later requests get the policy from memory,
and the first one that comes when the backoff of an outage is over has robots.txt fetched in the background.

However it ends, the lease is given back and no request is left waiting. An error of ours in a round counts as a failure
of the network, and other rounds may follow. A cancellation counts as one, too, but no other round and no signal
follows. If the crawl closes, the requests get CrawlClosingError, and memory gets nothing.

What is not good about it yet: the first request that needs the origin decides for all others through which proxy and
under which User-Agent robots.txt is fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred, DeferredList, fail

from scrapy_rep.cache.memory import Memory
from scrapy_rep.clock import Clock
from scrapy_rep.deferreds import settle
from scrapy_rep.fetching.answers import Answers
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.fetching.redirects import Redirects
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.log import logger_of
from scrapy_rep.origin_info import OriginInfo, origin_info
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy, State, after_fetch, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import Failure
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.scrapy_internals.engine_state import look_for_requests
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_available, robots_fetched, robots_parsed
from scrapy_rep.storage import storage_of

if TYPE_CHECKING:
    from scrapy_rep.cache.shared_store import Lease, SharedStore

# For the hot path, as in the gate.
FETCH_FIRST = Refetch.FIRST

FAULT = "Internal error while fetching %s"


class CrawlClosingError(IgnoreRequest):
    def __init__(self) -> None:
        super().__init__("The crawl closed before robots.txt had answered")


class Resolver:
    """`peek` gives a policy that is known, `resolve` waits for one that is not, `refresh` fetches it in advance."""

    def __init__(self, crawler: Crawler, settings: RepSettings, downloads: UncountedDownloads, clock: Clock) -> None:
        """Raises ValueError for a wrong REP_STORAGE."""
        self.settings = settings
        self.clock = clock
        self._now = clock.now
        self.log = logger_of(crawler)
        self.count = crawler.stats.inc_value
        self.signals = crawler.signals
        self.robots_known: list[Callable[[Origin, OriginInfo, Request], None]] = []
        """Called after each round with what is known of an origin then, and the request that needs it: the way of this
        package's own extensions, at a third of a signal's cost."""
        self.parsed: LocalCache[Origin, None] = LocalCache(limit=settings.memory_origins)
        """The origins that Scrapy's `robots_parsed` was sent for."""
        self.is_closing = False
        self.memory = Memory(settings)
        self.turns = FetchTurns(settings.fetch_concurrency, on_room=partial(look_for_requests, crawler))
        self.has_room = self.turns.has_room
        self.answers = Answers(crawler, settings, clock, Fetcher(crawler, settings, downloads, clock.now), self.turns)
        self.shared_store: SharedStore | None = None
        """None where nothing is kept beyond the crawl."""
        storage = storage_of(crawler, settings)
        if storage is not None:
            # Most crawls have none.
            from scrapy_rep.cache.shared_store import SharedStore  # noqa: PLC0415
            from scrapy_rep.storage.circuit_breaker import CircuitBreaker  # noqa: PLC0415

            breaker = CircuitBreaker(self.count, clock.monotonic, self.log, has_deadline=not storage.answers_at_once)
            self.shared_store = SharedStore(storage, breaker, settings, self.turns, clock)
        self._fetches: dict[Origin, OriginFetch] = {}

    def peek(self, origin: Origin) -> RobotsPolicy | None:
        """What may be used at once; None where robots.txt has to be fetched first. Never starts a fetch."""
        policy = self.memory.recall(origin, self._now())
        return None if policy is None or policy.refetch is FETCH_FIRST else policy

    def refresh(self, origin: Origin, trigger: Request) -> None:
        """Fetch the origin's robots.txt in the background, for the sake of later requests."""
        if origin not in self._fetches:
            self.resolve(origin, trigger).addErrback(lambda _failure: None)  # the crawl closes

    def resolve(self, origin: Origin, trigger: Request) -> Deferred[RobotsPolicy]:
        """The origin's policy, once it is known. Fails with CrawlClosingError where the crawl closes before; with
        nothing else."""
        if self.is_closing:
            return fail(CrawlClosingError())
        waiter: Deferred[RobotsPolicy] = Deferred()
        if origin in self._fetches:
            self._fetches[origin].waiters.append(waiter)
        else:
            self._fetches[origin] = fetch = OriginFetch(self, origin, trigger, waiter)
            fetch.start()  # only now, because it may end at once
        return waiter

    def forget(self, fetch: OriginFetch) -> None:
        """It has ended."""
        del self._fetches[fetch.origin]

    def stop(self) -> None:
        """The crawl is closing: tell the requests that wait, and fetch nothing any longer."""
        self.is_closing = True
        for fetch in list(self._fetches.values()):
            fetch.stop()

    async def close(self) -> None:
        """The crawl is over: wait until what was fetched is stored and the leases are given back."""
        self.stop()
        tasks = [fetch.task for fetch in self._fetches.values() if fetch.task is not None]
        await maybe_deferred_to_future(DeferredList(tasks))
        if self.shared_store is not None:
            await self.shared_store.close()


class OriginFetch:
    """Fetches one origin's robots.txt and wakes all who wait for it, whatever happens.

    The answer is in memory by then, unless the crawl closes.
    """

    def __init__(self, resolver: Resolver, origin: Origin, trigger: Request, waiter: Deferred[RobotsPolicy]) -> None:
        """`trigger`: the request that needs the origin's robots.txt."""
        self.origin = origin
        self.task: Deferred[None] | None = None
        self.waiters = [waiter]
        self._resolver = resolver
        self._trigger = trigger
        self._entry: Entry | None = None  # from before this round
        self._lease: Lease | None = None

    def start(self) -> None:
        self._resolver.turns.without_turn += 1
        self.task = deferred_from_coro(self._run())
        self.task.addErrback(lambda _failure: None)  # a cancellation while it ends

    def stop(self) -> None:
        """The crawl is closing."""
        self._wake(CrawlClosingError())
        if self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        resolver = self._resolver
        resolver.turns.without_turn -= 1  # `start` took the room; from here its turn does, or the store's call
        result: RobotsPolicy | CrawlClosingError = CrawlClosingError()  # stays only if even `_failed` fails
        try:
            result = await self._await_policy()
            if not resolver.is_closing:
                resolver.memory.put(self.origin, result)
        except Exception:
            resolver.log.exception(FAULT, self.origin.robots_url)
        finally:
            self._give_lease_back()
            resolver.forget(self)
            self._wake(CrawlClosingError() if resolver.is_closing else result)

    async def _await_policy(self) -> RobotsPolicy:
        """What decides about all requests that have waited. Waits for the rounds and for handlers of signals."""
        resolver = self._resolver
        try:
            policy = await self._find_or_fetch()
            await self._announce(policy)
        except (asyncio.CancelledError, Exception) as exc:  # noqa: BLE001 - it is logged
            policy = self._failed(exc)
        if policy.pause is not None:
            # It still says "wait for the next fetch", because the clock was set back or the fetch was cancelled.
            policy = policy_at(policy.entry, resolver.clock.now(), resolver.settings.unreachable_for, budget=0.0)
        return policy

    def _wake(self, result: RobotsPolicy | CrawlClosingError) -> None:
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            settle(waiter, result)

    # The rounds.

    async def _find_or_fetch(self) -> RobotsPolicy:
        """What is known of the origin at the end of the rounds. Waits for other crawlers, the network, and outages."""
        resolver, clock = self._resolver, self._resolver.clock
        known = resolver.memory.recall(self.origin, clock.now())
        self._entry = known.entry if known is not None else None
        if known is None or known.refetch is Refetch.FIRST:
            resolver.count("rep/cache/miss")
        is_refresh = known is not None and known.state is State.AGEING
        wait_until: float | None = None
        while True:
            policy = await self._round(is_refresh=is_refresh)
            self._tell(policy)
            now = clock.monotonic()
            wait_until = now + resolver.settings.unreachable_wait if wait_until is None else wait_until
            if policy.pause is None or now >= wait_until:
                return policy
            self._entry = policy.entry
            await clock.sleep(min(policy.pause, wait_until - now))

    async def _round(self, *, is_refresh: bool) -> RobotsPolicy:
        """What is known of the origin after one round. An error of ours is a failure of the fetch. Waits for other
        crawlers and the network."""
        try:
            return await self._find() or await self._fetch(is_refresh=is_refresh)
        except Exception as exc:
            if self._resolver.is_closing or isinstance(exc, CancelledError):
                raise
            self._give_lease_back()
            return self._failed(exc)

    async def _find(self) -> RobotsPolicy | None:
        """What is known, unless robots.txt has to be fetched; then this crawler has the lease, and `_entry` is the
        latest that any crawler knows. Waits while another crawler fetches."""
        store = self._resolver.shared_store
        if self._entry is None or self._is_fetch_due(self._entry):
            if store is None:
                return None
            self._entry, self._lease = await store.find_or_lease(self.origin, self._entry, self._is_fetch_due)
            self._resolver.count("rep/storage/miss" if self._lease is not None else "rep/storage/hit")
        return self._policy_now(self._entry) if self._entry is not None and self._lease is None else None

    async def _fetch(self, *, is_refresh: bool) -> RobotsPolicy:
        """Ask the network, along redirects; store and tell what came. Waits for the answers."""
        resolver, before = self._resolver, self._entry
        redirects = Redirects(resolver.answers, self.origin, before, self._trigger, past_cache=before is not None)
        policy = self._policy_after(before, await redirects.follow())
        if redirects.is_replayed and (policy.refetch is Refetch.FIRST or policy.entry.outage is not None):
            # Too old to be used; but it can be validated, or obeyed while there is nothing newer.
            before = policy.entry if policy.entry.stored is not None else before
            redirects = Redirects(resolver.answers, self.origin, before, self._trigger, past_cache=True)
            policy = self._policy_after(before, await redirects.follow())
        resolver.count(f"rep/access/{policy.entry.access.value}")
        self._send(robots_fetched, policy)
        if is_refresh and policy.entry.outage is None:
            resolver.count("rep/refreshed")
        self._give_lease_back(policy.entry)
        return policy

    # What a round brings. Nothing here waits.

    def _policy_now(self, entry: Entry) -> RobotsPolicy:
        return self._resolver.memory.policy_of(entry, self._resolver.clock.now())

    def _is_fetch_due(self, entry: Entry) -> bool:
        return self._policy_now(entry).is_fetch_due

    def _policy_after(self, entry: Entry | None, result: StoredResponse | Failure) -> RobotsPolicy:
        now, budget = self._resolver.clock.now(), self._resolver.settings.unreachable_wait
        return self._resolver.memory.policy_of(after_fetch(entry, self.origin.robots_url, result, now, budget), now)

    def _failed(self, exc: BaseException) -> RobotsPolicy:
        """What is known after an error of ours or a cancellation. It counts as a failure of the network: an outage goes
        on, or begins."""
        reason = "cancelled"
        if not isinstance(exc, (asyncio.CancelledError, CancelledError)) and not self._resolver.is_closing:
            self._resolver.log.error(FAULT, self.origin.robots_url, exc_info=exc)
            reason = f"internal error, {type(exc).__name__}: {exc}"
        return self._policy_after(self._entry, Failure(reason))

    def _give_lease_back(self, entry: Entry | None = None) -> None:
        """Let the other crawlers have it, and the entry."""
        lease, self._lease = self._lease, None
        if self._resolver.shared_store is not None and lease is not None:
            self._resolver.shared_store.give_back(lease, entry)

    async def _announce(self, policy: RobotsPolicy) -> None:
        """Tell that the origin is known. Waits for those who listen to `robots_parsed`."""
        resolver = self._resolver
        self._send(robots_available, policy)
        if policy.robots is not None and self.origin not in resolver.parsed:
            resolver.parsed[self.origin] = None
            await resolver.signals.send_catch_log_async(
                robots_parsed, robotparser=RepRobotParser(policy.robots), request=self._trigger
            )

    def _send(self, signal: object, policy: RobotsPolicy) -> None:
        self._resolver.signals.send_catch_log(
            signal, origin=self.origin, info=origin_info(policy), entry=policy.entry, request=self._trigger
        )

    def _tell(self, policy: RobotsPolicy) -> None:
        """What this round brings, to the log, the report and the crawl delay."""
        info = origin_info(policy)
        for tell in self._resolver.robots_known:
            try:
                tell(self.origin, info, self._trigger)
            except Exception:  # noqa: PERF203 - like a signal's handler, it decides nothing if it fails
                self._resolver.log.exception("Internal error while telling of %s", self.origin.robots_url)
