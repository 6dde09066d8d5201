"""Faults that are put into the package on purpose: `simulate.py --seeds 0-499 --fault NAME`.

A promise that never fails proves nothing. Each function here replaces a method, in the simulation's process only: it
gets the original method, and then the arguments. The docstring describes the fault. `simulate.py faults` prints the
seed and the promises by which each fault is found.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from crawl import wrap
from network import Exchange, Network
from store import SimStorage
from virtual_time import seconds

from scrapy_rep.cache.resolver import Resolver
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.protocol import lifecycle, outage
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.scrapy_internals import engine_state
from scrapy_rep.waiting.scheduler_door import SchedulerDoor

Right = Callable[..., Any]
FAULTS: dict[str, Callable[[], None]] = {}
DRAW = random.Random(1)


def fault(owner: Any, name: str) -> Callable[[Right], Right]:
    """Register a fault. It replaces the owner's method; or a module's function, in each module that has imported it."""

    def register(wrong: Right) -> Right:
        def replace() -> None:
            right = vars(owner)[name]
            for place in [owner, *sys.modules.values()]:
                if vars(place).get(name) is right:
                    wrap(place, name, wrong)

        FAULTS[wrong.__name__] = replace
        return wrong

    return register


@fault(FetchTurns, "__init__")
def turns_as_a_stack(right: Right, turns: Any, *args: Any, **kwargs: Any) -> None:
    """The newest of the fetches that wait for a turn goes first."""
    right(turns, *args, **kwargs)
    turns._arrivals = count(0, -1)


@fault(FetchTurns, "_next")
def known_origins_wait_behind_new_ones(right: Right, turns: Any) -> Any:
    """A repeated request for a robots.txt has its turn only when no first request waits."""
    waiting = [(turn.is_repeated, *place, turn) for *place, turn in turns._line if turn.is_waiting]
    return min(waiting)[-1] if waiting else None


@fault(FetchTurns, "can_start_another")
def one_origin_at_a_time(right: Right, turns: Any) -> bool:
    """The door takes no request from the queue while the first fetch of an origin begins or waits for its turn."""
    return not turns.starting


@fault(Fetcher, "fetch")
async def shared_answers(right: Right, fetcher: Any, question: Any) -> Any:
    """A URL that several origins redirect to is asked once for all of them, and its answer is kept."""
    kept = vars(fetcher).setdefault("kept", {})
    if urlsplit(question.url).netloc == urlsplit(question.trigger.url).netloc:
        return await right(fetcher, question)
    if question.url not in kept:
        kept[question.url] = asyncio.ensure_future(right(fetcher, question))
    return await kept[question.url]


@fault(Fetcher, "fetch")
async def fetch_that_never_ends(right: Right, fetcher: Any, question: Any) -> Any:
    """One request for a robots.txt in fifty never ends."""
    if DRAW.random() < 0.02:
        await asyncio.Future()
    return await right(fetcher, question)


@fault(Network, "send")
async def time_in_a_queue_counts(right: Right, network: Any, request: Any, exchange: Exchange) -> Any:
    """The download handler has a pool of connections, and the time in its queue counts against the time-out."""
    begin = seconds()
    async with vars(network).setdefault("pool", asyncio.Semaphore(16)):
        exchange.timeout -= seconds() - begin
        return await right(network, request, exchange)


@fault(engine_state, "look_for_requests")
def lost_wake_up(right: Right, crawler: Any) -> None:
    """Every other time, the engine is not told that it should look for requests."""
    if DRAW.random() < 0.5:
        right(crawler)


@fault(SimStorage, "release_lease")
def lease_not_given_back(right: Right, *args: Any) -> Awaitable[None]:
    """The store forgets to release leases."""
    return asyncio.sleep(0.001)


@fault(SimStorage, "put")
def store_that_loses_entries(right: Right, *args: Any) -> Awaitable[None]:
    """The store keeps leases, and no entry."""
    return asyncio.sleep(0.001)


@fault(outage, "backoff")
def backoff_off_by_one(right: Right, failures: int, *args: float) -> Any:
    """The pause after n failures is that after n - 1."""
    return right(failures - 1, *args)


@fault(outage, "backoff")
def backoff_that_does_not_grow(right: Right, *args: float) -> float:
    """Each pause after a failure is five seconds."""
    return 5.0


@fault(lifecycle, "state_of")
def allowed_after_29_days(right: Right, entry: Any, now: float, unreachable_for: float) -> Any:
    """An outage counts as "there is no robots.txt" a day too early."""
    return right(entry, now, unreachable_for * 29 / 30)


@fault(RobotsPolicy, "pause_at")
def one_round_only(right: Right, *args: Any, **kwargs: Any) -> None:
    """No fetch has a second round, although requests wait."""


@fault(SchedulerDoor, "next_request")
def request_handed_out_twice(right: Right, door: Any) -> Any:
    """One request in a hundred is handed out again when the next one is asked for."""
    again = vars(door).pop("again", None)
    request = again or right(door)
    if request is not None and again is None and DRAW.random() < 0.01:
        door.again = request.copy()
    return request


@fault(SchedulerDoor, "policy_of")
def refused_request_waits_again(right: Right, *args: Any) -> None:
    """A request that has waited for a robots.txt waits once more if the memory for its result is full."""


@fault(Resolver, "_begin")
def fetches_are_not_shared(right: Right, resolver: Any, origin: Any, trigger: Any, fetch: Any) -> None:
    """One origin in ten is fetched twice at the same time."""
    right(resolver, origin, trigger, fetch)
    if DRAW.random() < 0.1:
        resolver.more = asyncio.ensure_future(resolver._rounds.policy(origin, trigger, lambda: False))
