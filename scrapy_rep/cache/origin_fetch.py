"""One origin's robots.txt being fetched, and the requests that wait for it.

There is one `OriginFetch` for an origin at a time (`cache.resolver` sees to that), as a task of its own: a request that
waits may be cancelled, and the others still get their answer. It goes on in rounds:

    1. Find. What the crawl's memory has may be enough by now. Where there is a shared store, another crawler may have
       put enough there; if not, this crawler takes the origin's lease, or waits while another crawler fetches.
    2. Fetch, along redirects. What may pass soon, such as a 503, is asked for once more after a second, within the
       same fetch (REP_FETCH_RETRIES). The answer and the entry from before make the new entry (`protocol.lifecycle`).
       The signal `robots_fetched` tells of it, and it goes into the shared store in the background, which gives the
       lease back. An answer that HttpCacheMiddleware has replayed may be too old; then the fetch is repeated past that
       cache.
    3. Pause. While nothing is allowed because robots.txt is unreachable, requests wait for REP_UNREACHABLE_WAIT
       seconds. A fetch that is due within them is waited for, and is the next round; the last fetch is made when they
       are over. Two clocks count them: the wall clock from the outage's first failure (`protocol.outage`), and a
       monotonic one from the first answer here, because the wall clock may be set back.

At the end the signal `robots_available` tells that the origin is known, memory gets the policy, and the requests go on:
in this order, so that a handler of the signal (a crawl delay, for example) is ready before a request goes on.

However it ends, the lease is given back and no request is left waiting. An error of ours, or a cancellation, is a
failure like one of the network: it makes the outage begin or go on. If the crawl closes, the requests get
CrawlClosingError instead, and memory gets nothing.

What is not good about it yet: the first request that needs the origin decides for all others through which proxy and
under which User-Agent robots.txt is fetched; and requests that come while the fetch pauses wait as long as the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.signalmanager import SignalManager
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.cache.lease import Lease
from scrapy_rep.cache.memory import Memory
from scrapy_rep.clock import Clock
from scrapy_rep.fetching.answers import Answers
from scrapy_rep.fetching.redirects import Redirects
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.log import Logger
from scrapy_rep.origin_info import OriginInfo, origin_info
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy, State, after_fetch
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import Failure
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.scrapy_internals.engine_state import CrawlClosingError
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_available, robots_fetched, robots_parsed

if TYPE_CHECKING:
    from scrapy_rep.cache.shared_store import SharedStore

FAULT = "Internal error while fetching %s"


@dataclass(frozen=True, slots=True)
class FetchTools:
    """What every fetch of a crawl needs."""

    settings: RepSettings
    turns: FetchTurns
    answers: Answers
    memory: Memory
    shared_store: SharedStore | None
    """None where nothing is kept beyond the crawl."""
    clock: Clock
    log: Logger
    count: Callable[[str], None]
    """Adds one to a stat."""
    robots_known: list[Callable[[Origin, OriginInfo, Request], None]]
    """Called with what becomes known of an origin, and the request that needs it: the log's and the report's way, at a
    third of a signal's cost."""
    signals: SignalManager
    parsed: LocalCache[Origin, None]
    """The origins that Scrapy's `robots_parsed` was sent for."""

    def policy(self, entry: Entry) -> RobotsPolicy:
        return self.memory.policy_of(entry, self.clock.now())


class OriginFetch:
    """Fetches one origin's robots.txt and wakes all who wait for it, whatever happens.

    The answer is in memory by then, unless the crawl closes.
    """

    def __init__(self, origin: Origin, trigger: Request, tools: FetchTools, ended: Callable[[], object]) -> None:
        """`trigger`: the request that needs the origin's robots.txt. `ended` is called before those who wait are
        woken."""
        self.origin = origin
        self.task: Deferred[None] | None = None
        self._trigger = trigger
        self._tools = tools
        self._ended = ended
        self._waiters: list[Deferred[RobotsPolicy]] = []
        self._entry: Entry | None = None  # from before this round
        self._lease: Lease | None = None
        self._told: Entry | None = None  # which the log knows
        self._has_started = False
        self._is_closing = False

    def wait(self) -> Deferred[RobotsPolicy]:
        """The policy, once it is known. Fails with CrawlClosingError where the crawl closes before."""
        waiter: Deferred[RobotsPolicy] = Deferred()
        self._waiters.append(waiter)
        self.start()  # only now, because it may end at once
        return waiter

    def start(self) -> None:
        """Begin, unless it has begun."""
        if not self._has_started:
            self._has_started = True
            self._tools.turns.without_turn += 1
            self.task = deferred_from_coro(self._run())
            self.task.addErrback(lambda _failure: None)  # a cancellation while it ends

    def stop(self) -> None:
        """The crawl is closing."""
        self._is_closing = True
        self._wake(CrawlClosingError())
        if self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        self._tools.turns.without_turn -= 1  # `start` counted it; from here its turn does, or the store's call
        result: RobotsPolicy | CrawlClosingError = CrawlClosingError()  # unless there is a better one
        try:
            result = await self._fetch_or_fail()
            if not self._is_closing:
                self._tools.memory.put(self.origin, result)
        except Exception:
            self._tools.log.exception(FAULT, self.origin.robots_url)
        finally:
            self._give_lease_back()
            self._ended()
            self._wake(CrawlClosingError() if self._is_closing else result)

    async def _fetch_or_fail(self) -> RobotsPolicy:
        """What is known of the origin at the end. A fault of ours, or a cancellation, is a failure of the fetch."""
        try:
            policy = await self._find_or_fetch()
            await self._announce(policy)
        except (asyncio.CancelledError, CancelledError):
            return self._fail("cancelled")
        except Exception as exc:
            if not self._is_closing:
                self._tools.log.exception(FAULT, self.origin.robots_url)
            return self._fail(f"internal error, {type(exc).__name__}: {exc}")
        return policy

    def _wake(self, result: RobotsPolicy | CrawlClosingError) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.called:  # it was cancelled
                continue
            if isinstance(result, CrawlClosingError):
                waiter.errback(result)
            else:
                waiter.callback(result)

    # The rounds.

    async def _find_or_fetch(self) -> RobotsPolicy:
        """What is known of the origin at the end of the rounds. Waits for other crawlers, the network, and outages."""
        tools = self._tools
        known = tools.memory.policy(self.origin, tools.clock.now())
        self._entry = known.entry if known is not None else None
        if known is None or known.refetch is Refetch.FIRST:
            tools.count("rep/cache/miss")
        is_refresh = known is not None and known.state is State.AGEING
        wait_until: float | None = None
        while True:
            policy = await self._find() or await self._fetch(is_refresh=is_refresh)
            now = tools.clock.monotonic()
            wait_until = now + tools.settings.unreachable_wait if wait_until is None else wait_until
            if policy.pause is None or now >= wait_until:
                return policy
            self._entry = policy.entry
            await tools.clock.sleep(min(policy.pause, wait_until - now))

    async def _find(self) -> RobotsPolicy | None:
        """What is known, unless robots.txt has to be fetched; then this crawler has the lease, and `_entry` is the
        latest that any crawler knows. Waits while another crawler fetches."""
        tools = self._tools
        if self._entry is None or self._is_fetch_due(self._entry):
            if tools.shared_store is None:
                return None
            found = await tools.shared_store.find_or_lease(self.origin, self._entry, self._is_fetch_due)
            self._entry, self._lease = found
            tools.count("rep/storage/miss" if self._lease is not None else "rep/storage/hit")
        return tools.policy(self._entry) if self._entry is not None and self._lease is None else None

    def _is_fetch_due(self, entry: Entry) -> bool:
        return self._tools.policy(entry).is_fetch_due

    async def _fetch(self, *, is_refresh: bool) -> RobotsPolicy:
        """Ask the network, along redirects; store and tell what came. Waits for the answers."""
        tools, before = self._tools, self._entry
        redirects = Redirects(tools.answers, self.origin, before, self._trigger, past_cache=before is not None)
        policy = self._policy_after(before, await redirects.follow())
        if redirects.is_replayed and (policy.refetch is Refetch.FIRST or policy.entry.outage is not None):
            # Too old to be used; but it can be validated, or obeyed while there is nothing newer.
            before = policy.entry if policy.entry.stored is not None else before
            redirects = Redirects(tools.answers, self.origin, before, self._trigger, past_cache=True)
            policy = self._policy_after(before, await redirects.follow())
        tools.count(f"rep/access/{policy.entry.access.value}")
        self._send(robots_fetched, policy)
        if is_refresh and policy.entry.outage is None:
            tools.count("rep/refreshed")
        self._store(policy.entry)
        return policy

    # What a round brings. Nothing here waits.

    def _policy_after(self, entry: Entry | None, result: StoredResponse | Failure) -> RobotsPolicy:
        tools = self._tools
        now, budget = tools.clock.now(), tools.settings.unreachable_wait
        return tools.memory.policy_of(after_fetch(entry, self.origin.robots_url, result, now, budget), now)

    def _fail(self, reason: str) -> RobotsPolicy:
        """The fetch has failed by itself: part of the outage, if the rounds before have found one."""
        return self._policy_after(self._entry, Failure(reason))

    def _store(self, entry: Entry) -> None:
        """Let the other crawlers have it, and the lease."""
        if self._tools.shared_store is not None and self._lease is not None:
            self._tools.shared_store.store_and_give_back(self.origin, entry, self._lease)
            self._lease = None

    def _give_lease_back(self) -> None:
        if self._tools.shared_store is not None and self._lease is not None:
            self._tools.shared_store.give_back(self._lease)
            self._lease = None

    async def _announce(self, policy: RobotsPolicy) -> None:
        """Tell that the origin is known. Waits for those who listen to `robots_parsed`."""
        tools = self._tools
        self._send(robots_available, policy)
        if policy.robots is not None and self.origin not in tools.parsed:
            tools.parsed[self.origin] = None
            await tools.signals.send_catch_log_async(
                robots_parsed, robotparser=RepRobotParser(policy.robots), request=self._trigger
            )

    def _send(self, signal: object, policy: RobotsPolicy) -> None:
        info = origin_info(policy)
        if policy.entry is not self._told:
            self._told = policy.entry
            for tell in self._tools.robots_known:
                self._tell(tell, info)
        self._tools.signals.send_catch_log(
            signal, origin=self.origin, info=info, entry=policy.entry, request=self._trigger
        )

    def _tell(self, tell: Callable[[Origin, OriginInfo, Request], None], info: OriginInfo) -> None:
        """Like a signal's handler, it decides nothing if it fails."""
        try:
            tell(self.origin, info, self._trigger)
        except Exception:
            self._tools.log.exception("Internal error while telling of %s", self.origin.robots_url)
