"""Faults that are put into the package on purpose: `simulate.py --seeds 0-499 --fault NAME`.

A promise that never fails proves nothing. Each function here replaces a method or a function, only in the simulation's
process. Its arguments are the original and then the original's own arguments. The docstring describes the fault.
`simulate.py faults` prints the seed and the promises by which each fault is found.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from crawl import wrap
from network import Exchange, Handler
from store import SimStorage
from virtual_time import seconds

from scrapy_rep.fetching.download import Fetcher
from scrapy_rep.fetching.places import Connections, Places
from scrapy_rep.fetching.single_flight import SingleFlight
from scrapy_rep.protocol import entry, lifecycle, outage
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.scrapy_internals import downloads, engine_state
from scrapy_rep.waiting.at_scheduler import SchedulerDoor
from scrapy_rep.waiting.turns import QueuedSites, Turns

Original = Callable[..., Any]
FAULTS: dict[str, Callable[[], None]] = {}


def fault(owner: Any, name: str) -> Callable[[Original], Original]:
    """Register a fault. It replaces a method of a class, or a function in every module that imported it."""

    def register(faulty: Original) -> Original:
        def replace() -> None:
            original = vars(owner)[name]
            for place in [owner, *sys.modules.values()]:
                if vars(place).get(name) is original:
                    wrap(place, name, faulty)

        FAULTS[faulty.__name__] = replace
        return faulty

    return register


class Stack(deque[Any]):
    popleft = deque.pop


@fault(Places, "__init__")
def places_as_a_stack(original: Original, places: Any, *args: Any, **kwargs: Any) -> None:
    """The newest of the requests that wait for a place goes first."""
    original(places, *args, **kwargs)
    places._line = Stack()


@fault(Places, "_slow")
def slow_requests_keep_their_places(original: Original, *args: Any) -> None:
    """A host that never answers holds its place until the time-out."""


@fault(Connections, "places_for")
def proxies_without_a_limit(original: Original, connections: Any, request: Any, *, is_robots_txt: bool) -> Any:
    """A robots.txt through a proxy counts as one without a proxy."""
    has_places = is_robots_txt and connections._on_top is not None
    return connections._on_top if has_places else original(connections, request, is_robots_txt=is_robots_txt)


@fault(Connections, "places_for")
def pages_that_do_not_count(original: Original, connections: Any, request: Any, *, is_robots_txt: bool) -> Any:
    """Robots.txt files have CONCURRENT_REQUESTS places for themselves."""
    return original(connections, request, is_robots_txt=is_robots_txt) if is_robots_txt else None


@fault(Connections, "can_start_another")
def one_origin_at_a_time(original: Original, connections: Any) -> bool:
    """The door takes no request from the queue while the first fetch of an origin begins or waits for its place."""
    return not connections._starting


@fault(Fetcher, "fetch")
async def shared_answers(original: Original, fetcher: Any, ask: Any, trigger: Any, *rest: Any) -> Any:
    """A URL that several origins redirect to is requested once for all of them, and its answer is kept."""
    kept = vars(fetcher).setdefault("kept", {})
    if urlsplit(ask.url).netloc == urlsplit(trigger.url).netloc:
        return await original(fetcher, ask, trigger, *rest)
    if ask.url not in kept:
        kept[ask.url] = asyncio.ensure_future(original(fetcher, ask, trigger, *rest))
    return await kept[ask.url]


@fault(Fetcher, "fetch")
async def fetch_that_never_ends(original: Original, *args: Any) -> Any:
    """One request for a robots.txt in fifty never ends."""
    if random.random() < 0.02:
        await asyncio.Future()
    return await original(*args)


@fault(Fetcher, "_failure")
def late_time_outs_are_believed(original: Original, *args: Any) -> Any:
    """A time-out that is noticed too late counts like any other."""
    return replace(original(*args), timed_out_here=False)


@fault(downloads, "do_look_ups_wait")
def look_ups_are_not_noticed(original: Original) -> bool:
    """A time-out while look-ups of names wait for a thread counts like any other."""
    return False


@fault(SingleFlight, "add_trigger")
def one_proxy_for_all(original: Original, *args: Any) -> None:
    """A fetch knows only the proxy of the request that began it."""


@fault(entry, "without_backoff")
def failures_without_an_answer_are_shared(original: Original, known: Any) -> Any:
    """The store keeps the backoff although no server has answered."""
    return known


@fault(SingleFlight, "join")
def closing_ends_all_waits(original: Original, *args: Any, goes_back: bool = False) -> Any:
    """When the crawl closes, requests that callbacks wait for end like those that go back to the queue."""
    return original(*args, goes_back=True)


@fault(Handler, "send")
async def time_in_a_queue_counts(original: Original, handler: Any, request: Any, exchange: Exchange) -> Any:
    """The download handler has a pool of connections, and the time in its queue counts against the time-out."""
    begin = seconds()
    async with vars(handler).setdefault("pool", asyncio.Semaphore(16)):
        exchange.timeout -= seconds() - begin
        return await original(handler, request, exchange)


@fault(engine_state, "look_for_requests")
def lost_wake_up(original: Original, crawler: Any) -> None:
    """Every other time, the engine is not told that it should look for requests."""
    if random.random() < 0.5:
        original(crawler)


@fault(SimStorage, "release_lease")
def lease_not_given_back(original: Original, *args: Any) -> Awaitable[None]:
    """The store forgets to release leases."""
    return asyncio.sleep(0.001)


@fault(SimStorage, "put")
def store_that_loses_entries(original: Original, *args: Any) -> Awaitable[None]:
    """The store keeps leases, and no entry."""
    return asyncio.sleep(0.001)


@fault(outage, "backoff")
def backoff_off_by_one(original: Original, failures: int) -> Any:
    """The pause after n failures is that after n - 1."""
    return original(failures - 1) if failures > 1 else 0.0


@fault(lifecycle, "state_of")
def allowed_after_29_days(original: Original, known: Any, now: float, unreachable_for: float) -> Any:
    """An outage counts as "there is no robots.txt" a day too early."""
    return original(known, now, unreachable_for * 29 / 30)


@fault(RobotsPolicy, "pause_at")
def one_round_only(original: Original, *args: Any, **kwargs: Any) -> None:
    """No fetch has a second round, although requests wait."""


@fault(SchedulerDoor, "next_request")
def request_handed_out_twice(original: Original, door: Any) -> Any:
    """One request in a hundred is handed out again when the next one is asked for."""
    again = vars(door).pop("again", None)
    request = again or original(door)
    if request is not None and again is None and random.random() < 0.01:
        door.again = request.copy()
    return request


@fault(SchedulerDoor, "has_pending_requests")
def waiting_requests_are_not_pending(original: Original, door: Any) -> Any:
    """The engine is not told of the requests at the door, so the spider may become idle too early."""
    return door._scheduler.has_pending_requests()


@fault(SchedulerDoor, "has_pending_requests")
def a_pause_keeps_the_spider_busy(original: Original, door: Any) -> Any:
    """The spider is not idle while requests wait between two rounds."""
    return bool(door._here) or original(door)


@fault(SchedulerDoor, "has_pending_requests")
def idle_without_bound(original: Original, door: Any) -> Any:
    """The spider is idle however many requests wait between two rounds, so a feeder empties its queue."""
    door._idle_at = -1_000.0
    return original(door)


@fault(SchedulerDoor, "_keep_open")
def the_crawl_closes_during_a_pause(original: Original, *args: Any, **kwargs: Any) -> None:
    """The crawl ends while requests wait between two rounds."""


@fault(SchedulerDoor, "_choose_or_back_out")
def start_is_never_held_back(original: Original, door: Any) -> bool:
    """A lazy `start` is told that there is always room."""
    return False


@fault(Turns, "prepare_next")
def no_limit_at_the_door(original: Original, queues: Any, *, can_fetch: bool, is_full: bool) -> Any:
    """The door takes requests from the queue although REP_WAITING_MAX of them wait."""
    return original(queues, can_fetch=can_fetch, is_full=False)


@fault(QueuedSites, "in_turns")
def all_sites_take_turns(original: Original, sites: Any, most: int, is_away: Any) -> Any:
    """All sites of the queue take turns, although memory has no room for their robots.txt files."""
    return original(sites, sys.maxsize, is_away)


@fault(QueuedSites, "in_turns")
def a_turn_without_end(original: Original, sites: Any, *args: Any) -> Any:
    """A site takes turns for as long as it has requests."""
    sites.window.update(dict.fromkeys(sites.window, 0))
    return original(sites, *args)


@fault(SchedulerDoor, "take_policy")
def refused_request_waits_again(original: Original, *args: Any) -> None:
    """A request that has waited for a robots.txt waits once more if the memory for its result is full."""


@fault(SingleFlight, "_begin")
def fetches_are_not_shared(original: Original, single_flight: Any, origin: Any, fetch: Any) -> None:
    """One origin in ten is fetched twice at the same time."""
    original(single_flight, origin, fetch)
    if random.random() < 0.1:
        single_flight.more = asyncio.ensure_future(
            single_flight._driver.run(origin, None, fetch.triggers, lambda: False)
        )
