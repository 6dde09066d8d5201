"""How waiting requests and robots.txt fetches cost the downloader no place, and what becomes of them when it closes.

Of Scrapy's insides it touches the downloader and the engine, `queued.py` the scheduler. Where they look different,
requests wait in place, as in any middleware.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from scrapy import Request, signals
from scrapy.core.downloader import Downloader, Slot
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later, create_looping_call
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from scrapy_rep.scrapy_internals.scheduler_adapter import Queued

_ELSEWHERE = object()
_SLOT_NEEDS = ("active", "concurrency")
LOOK_EVERY = 0.5  # seconds, while anything waits: no signal tells that the crawl begins to close


class StoppingError(Exception):
    """The crawl is closing: nothing waits any longer."""


class Place:
    """Where one request waits: beside the downloader, known by its download slot, or in it (None)."""

    __slots__ = ("request", "slot")

    def __init__(self, request: Request, slot: Slot | None) -> None:
        self.request = request
        self.slot = slot


class _Turn(NamedTuple):
    place: Place
    go: Deferred[None]


class WaitingRoom:
    """Beside the downloader: requests that wait for a robots.txt or then for room, and robots.txt fetches.

    All of them are in `Downloader.active`, which keeps the spider from being taken for idle. The downloader's total
    concurrency is raised by one for each, so that it costs no other request its place.
    """

    def __init__(self, crawler: Crawler, most: int, closing: Callable[[], None]) -> None:
        """`most` requests wait beside the downloader, more of them in it; `closing` is called when the crawl closes."""
        self._crawler = crawler
        self._most = most
        self._closing = closing
        self._waiting = 0
        # Those of them beside the downloader, by download slot.
        self._beside: Counter[int] = Counter()
        self._fetches: set[Request] = set()
        # Those that may go on but have no room yet, by download slot, in their order.
        self._turns: dict[int, deque[_Turn]] = {}
        # Those that were told to go on and are on their way to their slot.
        self._entering: list[Place] = []
        self.queued = Queued(crawler, self._engine_takes_on)
        self._holds_back = False  # somebody, because the engine takes on nothing
        self._watch: Any = None
        # How requests leave, besides by an exception, which no signal tells of.
        self._ways_out = (
            (signals.request_left_downloader, self._left_slot),
            (signals.response_received, self._left),
            (signals.request_scheduled, self._left),  # in the place of one that was redirected, say
        )

    # Who waits.

    @contextmanager
    def wait(self, request: Request) -> Iterator[Place]:
        """A place for a request, for as long as it waits. Raises StoppingError where the crawl is closing."""
        if self._is_closing():
            raise StoppingError
        place = Place(request, self._slot_beside(request))
        self._waiting += 1
        if place.slot is not None:
            # The priority queue that is aware of the downloader would take the origin for idle, and feed it first.
            place.slot.active.add(request)
            self._beside[id(place.slot)] += 1
            self._raise_concurrency(1)
        self._look_on()
        try:
            yield place
        finally:
            self._leave(place)
            self._waiting -= 1
            self._look_off()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """While somebody waits who is no request. Raises StoppingError where the crawl is closing."""
        if self._is_closing():
            raise StoppingError
        self._waiting += 1
        self._look_on()
        try:
            yield
        finally:
            self._waiting -= 1
            self._look_off()

    @contextmanager
    def fetch(self, request: Request) -> Iterator[None]:
        """While a robots.txt request is under way. Raises StoppingError where the crawl is closing."""
        if self._is_closing():
            raise StoppingError
        self._fetches.add(request)
        self._raise_concurrency(1)
        self._look_on()
        try:
            yield
        except (asyncio.CancelledError, CancelledError):
            self._make_way(request)
            raise
        finally:
            self._fetched(request)
            self._look_off()

    def is_on_wire(self, request: Request) -> bool:
        """Whether a download handler is at work on it; it is no longer waiting in its download slot's queue."""
        slots = getattr(self._downloader, "slots", {}).values()
        return any(request in getattr(slot, "transferring", (request,)) for slot in slots)

    async def room(self, place: Place) -> None:
        """Wait for room in the downloader and in the request's slot, after those of the slot who waited longer.

        Raises StoppingError.
        """
        if place.slot is None:
            return
        turns = self._turns.get(id(place.slot))
        if not turns and self._has_room(place.slot) and not self._is_held_back(place.request):
            self._enter(place)
            return
        turn = _Turn(place, Deferred())
        self._turns.setdefault(id(place.slot), deque()).append(turn)
        await maybe_deferred_to_future(turn.go)

    # Who goes on.

    def _admit(self) -> None:
        """Let those go on for whom there is room."""
        for key, turns in list(self._turns.items()):
            while turns:
                turn = self._next_of(turns)
                if turn is None:
                    break
                place, go = turn
                slot = None if go.called else place.slot  # None: it was cancelled
                if slot is not None and not self._has_room(slot):
                    break
                # First: whoever goes on may come to an end at once, and lead here again.
                turns.remove(turn)
                if slot is not None:
                    self._enter(place)
                    go.callback(None)
            if not turns and self._turns.get(key) is turns:
                del self._turns[key]

    def _is_held_back(self, request: Request) -> bool:
        """Whether it came from the scheduler, from which the engine takes nothing now: it is paused, or the spider has
        enough to work on. Whatever else waits may be what the spider waits for."""
        engine = self._crawler.engine
        spiders = getattr(getattr(engine, "scraper", None), "slot", None)
        is_enough = getattr(engine, "paused", False) or (spiders is not None and spiders.needs_backout())
        if is_enough and request in self.queued:
            self._holds_back = True
            return True
        return False

    def _engine_takes_on(self) -> None:
        if self._holds_back:  # no longer
            self._holds_back = False
            call_later(0, self._admit)

    def _next_of(self, turns: Iterable[_Turn]) -> _Turn | None:
        return next((turn for turn in turns if turn.go.called or not self._is_held_back(turn.place.request)), None)

    def leaves(self, request: Request) -> None:
        """It is about to leave the downloader, by an exception."""
        self._fetched(request)
        self._left_slot()

    def _left_slot(self) -> None:
        # It is still counted in the downloader.
        if self._turns:
            call_later(0, self._admit)

    def _left(self, request: Request) -> None:
        self._fetched(request)
        self._admit()

    def _fetched(self, request: Request) -> None:
        # At once: whoever awaits it goes on only later, and meanwhile its place would be filled as if it were another.
        if request in self._fetches:
            self._fetches.remove(request)
            self._raise_concurrency(-1)

    def _has_room(self, slot: Slot) -> bool:
        downloader = self._downloader
        if downloader.needs_backout():
            return False
        self._entering = [
            place
            for place in self._entering
            if place.request in downloader.active and place.slot is not None and place.request not in place.slot.active
        ]
        entering = sum(place.slot is slot for place in self._entering)
        # Neither the queue nor those transferring: who goes from one to the other is in none for a moment.
        return len(slot.active) - self._beside[id(slot)] + entering < slot.concurrency

    def _enter(self, place: Place) -> None:
        self._entering.append(Place(place.request, place.slot))
        self._leave(place)

    def _leave(self, place: Place) -> None:
        if place.slot is not None:
            place.slot.active.discard(place.request)
            self._beside -= Counter([id(place.slot)])
            place.slot = None
            self._raise_concurrency(-1)

    # When the crawl closes.

    def _look_on(self) -> None:
        if self._watch is None:
            self._watch = create_looping_call(self._look)
            self._watch.start(LOOK_EVERY, now=False)
            for signal, receiver in self._ways_out:
                self._crawler.signals.connect(receiver, signal=signal)

    def _look_off(self) -> None:
        if not self._waiting and not self._fetches:
            # Not at once: this may be within one of those signals, and its next receiver would be passed over.
            call_later(0, self._stop_looking)

    def _stop_looking(self) -> None:
        if self._watch is not None and not self._waiting and not self._fetches:
            self._watch.stop()
            self._watch = None
            for signal, receiver in self._ways_out:
                self._crawler.signals.disconnect(receiver, signal=signal)

    def _look(self) -> None:
        if not self._is_closing():
            self._admit()
            return
        waiting, self._turns = self._turns, {}
        for turns in waiting.values():
            for _, go in turns:
                if not go.called:
                    go.errback(StoppingError())
        self._closing()

    # Scrapy's insides.

    @property
    def _downloader(self) -> Downloader:
        return self._crawler.engine.downloader

    def _is_closing(self) -> bool:
        slot = getattr(self._crawler.engine, "_slot", _ELSEWHERE)
        return slot is None or getattr(slot, "closing", None) is not None

    def _slot_beside(self, request: Request) -> Slot | None:
        """The download slot of a request that may wait beside the downloader."""
        downloader = self._downloader
        # A total concurrency of 0 is no limit: there is nothing to be beside of.
        if self._beside.total() >= self._most or not getattr(downloader, "total_concurrency", 0):
            return None
        get_slot = getattr(downloader, "_get_slot", None)
        slot = get_slot(request)[1] if get_slot is not None else None
        return slot if isinstance(slot, Slot) and all(hasattr(slot, name) for name in _SLOT_NEEDS) else None

    def _make_way(self, request: Request) -> None:
        """Of a request that was cancelled: in its slot's queue it would still be sent, on the wire it would hold up
        whoever is queued behind it."""
        slot: Any = getattr(self._downloader, "slots", {}).get(request.meta.get(Downloader.DOWNLOAD_SLOT))
        queue: Any = getattr(slot, "queue", ())
        for queued in [queued for queued in queue if queued[0] is request]:
            queue.remove(queued)
        process_queue = getattr(self._downloader, "_process_queue", None)
        if process_queue is not None and request in getattr(slot, "transferring", ()):
            slot.concurrency += 1
            call_later(0, process_queue, slot)  # once the other fetches are out of the queue

    def _raise_concurrency(self, by: int) -> None:
        downloader = self._downloader
        if getattr(downloader, "total_concurrency", 0):
            downloader.total_concurrency += by
            nextcall = getattr(getattr(self._crawler.engine, "_slot", None), "nextcall", None)
            if by > 0 and nextcall is not None:
                nextcall.schedule()  # else the engine looks again only when a request ends
