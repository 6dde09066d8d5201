"""Faults that are put into the package on purpose: `simulate.py --seeds 0-499 --fault NAME`.

A promise that never fails proves nothing. Each function here patches the package in the simulation's process; the
docstring describes the fault. `simulate.py faults` prints the seed and the promises by which each fault is found.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from heapq import heappop
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from network import Exchange, Network
from store import SimStorage
from virtual_time import seconds

import scrapy_rep.protocol.outage as outage_rules
from scrapy_rep.cache.resolver import Resolver
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.outage import Outage
from scrapy_rep.scrapy_internals import engine_state
from scrapy_rep.waiting.scheduler_door import SchedulerDoor

FAULTS: dict[str, Callable[[], None]] = {}


def fault(put_back: Callable[[], None]) -> Callable[[], None]:
    FAULTS[put_back.__name__] = put_back
    return put_back


@fault
def turns_as_a_stack() -> None:
    """The newest of the fetches that wait for a turn goes first."""
    right = FetchTurns.__init__

    def build(self: Any, *args: Any, **kwargs: Any) -> None:
        right(self, *args, **kwargs)
        self._arrivals = count(0, -1)

    FetchTurns.__init__ = build  # type: ignore[method-assign]


@fault
def shared_answers() -> None:
    """A URL that several origins redirect to is asked once for all of them, and its answer is kept."""
    right = Fetcher.fetch

    async def fetch(self: Any, question: Any) -> Any:
        kept = vars(self).setdefault("kept", {})
        if urlsplit(question.url).netloc == urlsplit(question.trigger.url).netloc:
            return await right(self, question)
        if question.url not in kept:
            kept[question.url] = asyncio.ensure_future(right(self, question))
        return await kept[question.url]

    Fetcher.fetch = fetch  # type: ignore[method-assign]


@fault
def time_in_a_queue_counts() -> None:
    """The download handler has a pool of connections, and the time in its queue counts against the time-out."""
    right, begin = Network._answered, {}

    async def _answered(self: Network, request: Any, exchange: Exchange) -> Any:
        pool = vars(self).setdefault("pool", asyncio.Semaphore(16))
        begin[exchange] = seconds()
        async with pool:
            exchange.timeout -= seconds() - begin[exchange]
            return await right(self, request, exchange)

    Network._answered = _answered  # type: ignore[method-assign]


@fault
def lost_wake_up() -> None:
    """Every other time, the engine is not told that it should look for requests."""
    right, draw = engine_state.look_for_requests, random.Random(1)

    def look_for_requests(crawler: Any) -> None:
        if draw.random() < 0.5:
            right(crawler)

    for name, module in list(sys.modules.items()):
        if name.startswith("scrapy_rep") and hasattr(module, "look_for_requests"):
            vars(module)["look_for_requests"] = look_for_requests


@fault
def lease_not_given_back() -> None:
    """The store forgets to release leases."""

    async def release_lease(self: SimStorage, origin: str, token: str) -> None:
        await asyncio.sleep(0.001)

    SimStorage.release_lease = release_lease  # type: ignore[method-assign]


@fault
def backoff_off_by_one() -> None:
    """The pause after n failures is that after n - 1."""
    rules: Any = outage_rules
    right = rules.backoff

    def backoff(failures: int, *args: float) -> float:
        pause: float = right(failures - 1, *args)
        return pause

    rules.backoff = backoff


@fault
def allowed_after_29_days() -> None:
    """An outage counts as "there is no robots.txt" a day too early."""
    right = Outage.is_too_long_at

    def is_too_long_at(self: Outage, now: float, unreachable_for: float) -> bool:
        return right(self, now, unreachable_for * 29 / 30)

    Outage.is_too_long_at = is_too_long_at  # type: ignore[method-assign]


@fault
def request_handed_out_twice() -> None:
    """One request in a hundred is handed out again when the next one is asked for."""
    right = SchedulerDoor.next_request
    draw = random.Random(1)

    def next_request(self: Any) -> Any:
        again = vars(self).pop("again", None)
        request = again or right(self)
        if request is not None and again is None and draw.random() < 0.01:
            self.again = request.copy()
        return request

    SchedulerDoor.next_request = next_request  # type: ignore[method-assign]


@fault
def fetch_that_never_ends() -> None:
    """One request for a robots.txt in fifty never ends."""
    right, draw = Fetcher.fetch, random.Random(1)

    async def fetch(self: Any, question: Any) -> Any:
        if draw.random() < 0.02:
            await asyncio.Future()
        return await right(self, question)

    Fetcher.fetch = fetch  # type: ignore[method-assign]


@fault
def one_origin_at_a_time() -> None:
    """The door takes no request from the queue while a robots.txt is fetched."""

    def has_room(self: Any) -> bool:
        return not self.without_turn + self._firsts + len(self._first)

    FetchTurns.has_room = has_room  # type: ignore[method-assign]


@fault
def fetches_are_not_shared() -> None:
    """One origin in ten is fetched twice at the same time."""
    right, draw = Resolver._begin, random.Random(1)

    def _begin(self: Any, origin: Any, trigger: Any, fetch: Any) -> None:
        right(self, origin, trigger, fetch)
        if draw.random() < 0.1:
            self.more = asyncio.ensure_future(self._rounds.policy(origin, trigger, lambda: False))

    Resolver._begin = _begin  # type: ignore[method-assign]


@fault
def store_that_loses_entries() -> None:
    """The store keeps leases, and no entry."""

    async def put(self: SimStorage, origin: str, entry: bytes, lifetime: float) -> None:
        await asyncio.sleep(0.001)

    SimStorage.put = put  # type: ignore[method-assign]


@fault
def backoff_that_does_not_grow() -> None:
    """Each pause after a failure is five seconds."""
    rules: Any = outage_rules
    rules.backoff = lambda _failures, *_args: 5.0


@fault
def one_round_only() -> None:
    """No fetch has a second round, although requests wait."""
    RobotsPolicy.pause_at = lambda *_args, **_more: None  # type: ignore[method-assign]


@fault
def known_origins_wait_behind_new_ones() -> None:
    """A repeated request for a robots.txt has its turn only when no first request waits."""

    def _next(self: Any) -> Any:
        while heap := self._first or self._repeated:
            turn = heappop(heap)[-1]
            if not turn.given.called:
                return turn
        return None

    FetchTurns._next = _next  # type: ignore[method-assign]
