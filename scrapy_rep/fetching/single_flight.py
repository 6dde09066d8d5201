"""One fetch at a time for an origin, shared by all requests that need its robots.txt.

An origin has one fetch at a time (`driver`). The fetch is a task of its own: if one waiting request is
cancelled, the others still get the policy. The fetch uses the proxy and the User-Agent of the request that triggers it.
If the fetch fails, it goes on with the proxy and the User-Agent of a waiting request that has another proxy
(`Triggers`).

When the fetch ends, the policy goes into memory, and the waiting requests get it. An internal error while robots.txt is
requested counts as a failure of the network. Any other internal error ends the fetch with a policy that allows nothing
and names the error.

When the crawl begins to close, requests that go back to their queue get CrawlClosingError. All others belong to work
that the crawl finishes, such as an item whose files are downloaded. They wait until the round under way has ended. A
fetch for which no such request waits is cancelled.

Later requests get the policy from memory. When the answer expires soon, or the backoff of an outage is over, the next
request triggers a fetch in the background (`refresh`) and does not wait: the policy in memory decides about it.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList, fail

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.deferreds import CANCELLATIONS, settle
from scrapy_rep.fetching.driver import FAULT, Driver, Triggers
from scrapy_rep.fetching.memory import Memory
from scrapy_rep.fetching.places import Connections
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.lifecycle import Basis, Refetch, RobotsPolicy, State
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import outage_after
from scrapy_rep.stats import CACHE_MISS

# For the hot path: Python 3.11 takes 70 ns to look a member up in its enum.
FETCH_FIRST = Refetch.FIRST


class CrawlClosingError(IgnoreRequest):
    def __init__(self) -> None:
        super().__init__("The crawl closed before robots.txt had answered")


@dataclass(eq=False, slots=True)
class _Fetch:
    triggers: Triggers
    waiters: dict[Deferred[RobotsPolicy], bool]
    """A Deferred for each call of `join` that waits for this fetch, also if that call was cancelled. The value is
    whether its request goes back to its queue if the crawl closes."""
    task: Deferred[None] | None = None

    def is_awaited(self) -> bool:
        return any(not waiter.called for waiter in self.waiters)  # a cancelled Deferred counts as called

    def end(self, result: RobotsPolicy | CrawlClosingError, *, only_going_back: bool = False) -> None:
        """Give the result to the requests that wait."""
        for waiter in [waiter for waiter, goes_back in self.waiters.items() if goes_back or not only_going_back]:
            del self.waiters[waiter]
            settle(waiter, result)


class SingleFlight(Part):
    """Three ways to a policy: `peek` returns it if it is known, `join` waits for it, `refresh` fetches it early."""

    def __init__(self, crawl: Crawl, driver: Driver, connections: Connections) -> None:
        super().__init__(crawl)
        self._memory = Memory(crawl.settings)
        self._driver = driver
        self._connections = connections
        self._fetches: dict[Origin, _Fetch] = {}
        self._cancelled: list[Deferred[None]] = []
        self._is_closing = self._is_closed = False

    def peek(self, origin: Origin) -> RobotsPolicy | None:
        """The policy that may be used now; None if robots.txt has to be fetched first. Never starts a fetch."""
        policy = self._memory.recall(origin, self._clock.now())
        return None if policy is None or policy.refetch is FETCH_FIRST else policy

    def refresh(self, origin: Origin, trigger: Request) -> None:
        """Fetch the origin's robots.txt in the background, for later requests. Does nothing if a fetch is under way."""
        if origin not in self._fetches and not self._is_closing:
            self._begin(origin, trigger, {})

    def join(self, origin: Origin, trigger: Request, *, goes_back: bool = False) -> Deferred[RobotsPolicy]:
        """A Deferred of the origin's policy. Fails only with CrawlClosingError: when the crawl begins to close if
        `goes_back`, because the request then goes back to its queue; else when the crawl is over."""
        if self._is_closed or (goes_back and self._is_closing):
            return fail(CrawlClosingError())
        waiter: Deferred[RobotsPolicy] = Deferred()
        if origin in self._fetches:
            self._fetches[origin].waiters[waiter] = goes_back
            self.add_trigger(origin, trigger)
        else:
            self._connections.add_starting(origin)
            self._begin(origin, trigger, {waiter: goes_back})
        return waiter

    def add_trigger(self, origin: Origin, request: Request) -> None:
        """Another request waits for the fetch, if one is under way. The fetch may use the request's proxy."""
        fetch = self._fetches.get(origin)
        if fetch is not None:
            fetch.triggers.add(request)

    def begin_close(self) -> None:
        """Step 1 of a stop (`middleware`): fail the requests that go back to their queue. Cancel the fetches for which
        no other request waits. The other fetches go on, without pauses."""
        self._end_waits(only_going_back=True)
        call_later(0, self._connections.begin_close)  # later: the fetches that were cancelled need no place

    async def close(self) -> None:
        """Step 5 of a stop (`middleware`): end all waits, and wait until what was fetched is stored and the leases are
        given back."""
        self._is_closed = True
        self._end_waits(only_going_back=False)
        await maybe_deferred_to_future(DeferredList(self._cancelled))
        await self._driver.close()

    def _end_waits(self, *, only_going_back: bool) -> None:
        self._is_closing = True
        for fetch in list(self._fetches.values()):
            fetch.end(CrawlClosingError(), only_going_back=only_going_back)
        self._driver.end_pauses()
        for origin, fetch in list(self._fetches.items()):
            if fetch.task is not None and not fetch.is_awaited():
                self._forget(origin)  # a request that comes before the task has ended begins another fetch
                self._cancelled.append(fetch.task)
                fetch.task.cancel()

    def _begin(self, origin: Origin, first: Request, waiters: dict[Deferred[RobotsPolicy], bool]) -> None:
        fetch = _Fetch(Triggers(first, partial(self._connections.remove_starting, origin)), waiters)
        self._fetches[origin] = fetch
        fetch.task = deferred_from_coro(self._run(origin, fetch))
        fetch.task.addErrback(lambda _failure: None)  # only a cancellation comes here

    async def _run(self, origin: Origin, fetch: _Fetch) -> None:
        try:
            before = self._memory.recall(origin, self._clock.now())
            if before is None or before.refetch is FETCH_FIRST:
                self._count(CACHE_MISS)
            last = await self._driver.run(origin, before, fetch.triggers, fetch.is_awaited)
            policy = last.policy
            self._memory.put(origin, last.for_memory, policy.at)
        except (asyncio.CancelledError, Exception) as exc:  # noqa: BLE001 - it is logged, and refuses requests
            if self._fetches.get(origin) is not fetch:  # `_end_waits` has cancelled it
                return
            if isinstance(exc, CANCELLATIONS) and self._is_closing and not fetch.is_awaited():
                # A forced end of the process cancels every task.
                self._forget(origin)
                return
            policy = self._policy_after(exc, origin)
        if self._fetches.get(origin) is fetch:
            self._forget(origin)
        fetch.end(policy)

    def _forget(self, origin: Origin) -> None:
        del self._fetches[origin]
        self._connections.remove_starting(origin)

    def _policy_after(self, error: BaseException, origin: Origin) -> RobotsPolicy:
        """The policy after an internal error that ended the fetch: an outage begins. It goes into memory, unless memory
        has a policy that may be used now."""
        now = self._clock.now()
        reason = printable(f"internal error, {type(error).__name__}: {error}")
        outage = outage_after(None, Answer(origin.robots_url, reason=reason, ended_at=now))
        state, basis = State.UNREACHABLE, Basis.NOTHING_ALLOWED
        entry = Entry(origin.robots_url, outage=outage)
        policy = RobotsPolicy(entry, state, basis, Refetch.NOT, now, outage.fetch_again_at, robots=None)
        self._log.exception(FAULT, origin.robots_url)
        # Memory may be what failed. Then only the requests that wait now get the policy. Those at the door carry it
        # (`SchedulerDoor.take_policy`).
        with suppress(Exception):
            if self.peek(origin) is None:
                self._memory.put(origin, entry, now)
        return policy
