"""One origin's robots.txt being fetched, and those who wait for it: single flight, lease, outage, storing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from scrapy import Request
from scrapy.signalmanager import SignalManager
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.cache.memory import Memory
from scrapy_rep.cache.shared_store import LEASE_SECONDS, Lease, SharedStore
from scrapy_rep.clock import Clock
from scrapy_rep.fetching.redirects import RETRY_DELAY, Elsewhere, Fetch, RedirectChain
from scrapy_rep.origin_info import origin_info
from scrapy_rep.protocol.access_result import AccessResult, FetchEvent
from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.lifecycle import (
    FetchResult,
    OutageLimits,
    Refetch,
    RobotsPolicy,
    after_fetch,
    pause_before_refetch,
    policy_at,
)
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.scrapy_internals.engine_state import CrawlClosingError
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_available, robots_fetched, robots_parsed

logger = logging.getLogger("scrapy_rep")

# Seconds that a fetch for the sake of a redirect waits for another crawler's lease: two crawlers whose origins redirect
# to each other would wait for each other.
REDIRECT_LEASE_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class FetchTools:
    """What every fetch of a crawl needs."""

    settings: RepSettings
    fetch: Fetch
    slow_fetches: Callable[[], int]
    """How many are slow on the wire."""
    on_room: Callable[[], None]
    """There may be room for one more fetch."""
    memory: Memory
    shared_store: SharedStore | None
    """None where nothing is kept beyond the crawl."""
    clock: Clock
    count: Callable[[str], None]
    """Adds one to a stat."""
    signals: SignalManager
    parsed: LocalCache[Origin, None]
    """The origins that Scrapy's `robots_parsed` was sent for."""

    @property
    def unreachable_for(self) -> float:
        """Seconds of an outage after which it has been too long (RFC 9309 2.3.1.4)."""
        return self.settings.unreachable_for

    @property
    def limits(self) -> OutageLimits:
        return OutageLimits(self.unreachable_for, self.settings.unreachable_wait)

    @property
    def lease_wait(self) -> float:
        """Seconds that another crawler may take to fetch a robots.txt."""
        settings = self.settings
        return (settings.fetch_timeout + RETRY_DELAY) * (1 + settings.fetch_retries) + 2 * LEASE_SECONDS

    def policy(self, entry: Entry) -> RobotsPolicy:
        return policy_at(entry, self.clock.now(), self.unreachable_for)


class OriginFetch:
    """Fetches one origin's robots.txt and wakes all who wait for it, whatever happens.

    The answer is in memory by then, unless the crawl closes.
    """

    def __init__(
        self,
        origin: Origin,
        trigger: Request,
        tools: FetchTools,
        resolve_redirect: Callable[[OriginFetch, Origin], Awaitable[RobotsPolicy | Elsewhere]],
        ended: Callable[[OriginFetch], None],
        *,
        pausing: Callable[[int], None],
        redirected_from: OriginFetch | None = None,
    ) -> None:
        """`trigger`: the request that needs the origin's robots.txt; or one of another origin, whose fetch was
        redirected here. `pausing` gets 1 when it begins to pause in an outage, and -1 when the pause ends."""
        self.origin = origin
        self.trigger = trigger
        self.depth: int = redirected_from.depth + 1 if redirected_from is not None else 0
        """Origins that redirected here, one after another."""
        self.waits_for: OriginFetch | None = None
        self.closing = False
        self._tools = tools
        self._resolve_redirect = resolve_redirect
        self._ended = ended
        self._pausing = pausing
        self._has_started = False
        self._waiters: list[Deferred[RobotsPolicy | None]] = []
        self.task: Deferred[None] | None = None
        self._lease: Lease | None = None
        self._was_dropped = False

    @property
    def is_for_redirect(self) -> bool:
        """Whether it was begun for another origin's redirect; it tells nobody of what it finds then."""
        return self.depth > 0

    # For those who wait.

    def wait(self) -> Deferred[RobotsPolicy | None]:
        """The policy; None if a chain of redirects got too long before it ended. Fails with CrawlClosingError."""
        waiter: Deferred[RobotsPolicy | None] = Deferred()
        self._waiters.append(waiter)
        self.start()  # only now, because it may end at once
        return waiter

    def is_waiting_for(self, other: OriginFetch) -> bool:
        """Whether it goes on only after the other, or is it."""
        fetch: OriginFetch | None = self
        while fetch is not None and fetch is not other:
            fetch = fetch.waits_for
        return fetch is other

    # Its life.

    def start(self) -> None:
        """Run as a task of its own, once: a waiter may be cancelled, and the others still get their answer."""
        if not self._has_started and not self.closing:
            self._has_started = True
            self.task = deferred_from_coro(self._run())
            self.task.addErrback(lambda _failure: None)  # a cancellation while it ends

    def stop(self) -> None:
        """The crawl is closing."""
        self.closing = True
        self._wake(CrawlClosingError())
        if self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        tools, before = self._tools, None
        policy: RobotsPolicy | CrawlClosingError | None = CrawlClosingError()  # if the process ends before
        try:
            known = tools.memory.policy(self.origin, tools.clock.now())
            before = known.entry if known is not None else tools.memory.unannounced(self.origin)
            policy = await self._policy(before, is_refresh=known is not None and known.is_current)
            if policy is not None:
                if not self.is_for_redirect:
                    await self._announce(policy)
                self._remember(policy.entry)
        except CrawlClosingError:
            self.closing = True
        except (asyncio.CancelledError, CancelledError):
            policy = self._failed(before, "cancelled")
            self._remember(policy.entry)
        except Exception as exc:
            # An error of ours, not an answer: treated as unreachable, so that the waiting requests are refused.
            if not self.closing:
                logger.exception("Internal error while fetching %s", self.origin.robots_url)
            policy = self._failed(before, f"internal error, {type(exc).__name__}: {exc}")
            self._remember(policy.entry)
        finally:
            self._put(None)
            self._ended(self)
            self._wake(CrawlClosingError() if self.closing else policy)

    def _remember(self, entry: Entry) -> None:
        if self._was_dropped:
            return  # the guard that dropped it judged the redirect, not this origin
        if self.is_for_redirect:
            self._tools.memory.put_unannounced(self.origin, entry)
        elif not self.closing:
            self._tools.memory.put(self.origin, entry, self._tools.clock.now())

    def _wake(self, result: RobotsPolicy | CrawlClosingError | None) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.called:  # it was cancelled
                continue
            if isinstance(result, CrawlClosingError):
                waiter.errback(result)
            else:
                waiter.callback(result)

    # The answer.

    async def _policy(self, entry: Entry | None, *, is_refresh: bool) -> RobotsPolicy | None:
        """The answer; fetched again while it is unreachable and requests wait. None where redirects are too many."""
        tools = self._tools
        if not is_refresh and not self.is_for_redirect and (entry is None or not tools.policy(entry).is_current):
            tools.count("rep/cache/miss")
        waiting_since: float | None = None
        while True:
            entry, is_enough = await self._looked_up(entry, is_refresh=is_refresh)
            if entry is not None and is_enough:
                policy = tools.policy(entry)
            else:
                entry = await self._fetched(entry)
                if entry is None:
                    return None
                policy = tools.policy(entry)
                if not self.is_for_redirect:
                    tools.count(f"rep/access/{entry.access.value}")
                    self._send(robots_fetched, policy)
                if is_refresh and entry.outage is None:
                    tools.count("rep/refreshed")
                self._put(None if self._was_dropped else entry)
            pause = pause_before_refetch(policy, tools.clock.now(), tools.limits.budget)
            if pause is None or self.is_for_redirect:
                return policy
            # By a clock that is never set back: no request waits longer than the setting says.
            now = tools.clock.monotonic()
            waiting_since = now if waiting_since is None else waiting_since
            left = tools.limits.budget - (now - waiting_since)
            if left <= 0:
                return policy
            self._pausing(1)
            try:
                await tools.clock.sleep(min(pause, left))
            finally:
                self._pausing(-1)

    async def _looked_up(self, entry: Entry | None, *, is_refresh: bool) -> tuple[Entry | None, bool]:
        """What is known before anybody is asked, and whether it is enough; waits where another crawler is asking."""
        tools = self._tools

        def is_enough(entry: Entry) -> bool:
            policy = tools.policy(entry)
            return policy.refetch is Refetch.NOT if is_refresh else policy.is_current

        if entry is not None and is_enough(entry):
            return entry, True
        if tools.shared_store is None:
            return entry, False
        lookup = tools.shared_store.lookup(self.origin, entry, is_enough)
        self._lease = lookup.lease
        longest = REDIRECT_LEASE_WAIT if self.is_for_redirect else tools.lease_wait
        found = await lookup.find_or_acquire(longest, tools.clock.sleep)
        tools.count("rep/storage/hit" if found else "rep/storage/miss")
        if found:
            self._put(None)  # the lease may have come with another crawler's answer
        return lookup.entry, found

    async def _fetched(self, entry: Entry | None) -> Entry | None:
        # A cache of the crawl's would only replay what is known.
        chain, result = await self._follow(entry, past_cache=entry is not None)
        if result is not None and chain.is_replayed:
            replayed = self._after(entry, result)
            if self._tools.policy(replayed).refetch is Refetch.FIRST or replayed.outage is not None:
                # Too old to be used; but it can be validated, or obeyed while there is nothing newer.
                entry = replayed if replayed.stored is not None else entry
                chain, result = await self._follow(entry, past_cache=True)
        self._was_dropped = self.is_for_redirect and result is not None and result.outcome is FetchEvent.DROPPED
        return None if result is None else self._after(entry, result)

    async def _follow(self, entry: Entry | None, *, past_cache: bool) -> tuple[RedirectChain, FetchResult | None]:
        tools = self._tools
        chain = RedirectChain(
            self.origin,
            entry.stored if entry is not None else None,
            self.trigger,
            fetch=tools.fetch,
            resolve=self._resolve,
            settings=tools.settings,
            clock=tools.clock,
            count=tools.count,
            past_cache=past_cache,
        )
        result = await chain.result(tools.settings.max_redirects - self.depth)
        return chain, chain.gave_up() if result is None and not self.is_for_redirect else result

    async def _resolve(self, other: Origin) -> RobotsPolicy | Elsewhere:
        return await self._resolve_redirect(self, other)

    def _after(self, entry: Entry | None, result: FetchResult) -> Entry:
        tools = self._tools
        return after_fetch(entry, self.origin.robots_url, result, tools.clock.now(), tools.limits)

    def _failed(self, entry: Entry | None, reason: str) -> RobotsPolicy:
        return self._tools.policy(self._after(entry, FetchResult(AccessResult.UNREACHABLE, reason=reason)))

    # What others are told.

    async def _announce(self, policy: RobotsPolicy) -> None:
        """Before the requests that wait go on."""
        tools = self._tools
        self._send(robots_available, policy)
        if policy.robots is not None and self.origin not in tools.parsed:
            tools.parsed[self.origin] = None
            await tools.signals.send_catch_log_async(
                robots_parsed, robotparser=RepRobotParser(policy.robots), request=self.trigger
            )

    def _send(self, signal: object, policy: RobotsPolicy) -> None:
        info = origin_info(policy)
        self._tools.signals.send_catch_log(
            signal, origin=self.origin, info=info, entry=policy.entry, request=self.trigger
        )

    def _put(self, entry: Entry | None) -> None:
        """The entry into the shared store, then the lease back, in the background: those who wait here need not."""
        lease, self._lease = self._lease, None
        if self._tools.shared_store is not None and (entry is not None or lease is not None):
            self._tools.shared_store.put_later(self.origin, entry, lease, self._tools.clock.now())
