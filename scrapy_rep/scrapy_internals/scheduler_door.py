"""Where requests wait for a robots.txt: at the scheduler's door, where the engine asks for the next request.

A request that waits here is still on its way out of the queue. It has passed no downloader middleware and takes no
place in the downloader. When its origin's robots.txt is known, it leaves by the same door, in the order of the queue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain, count
from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later
from twisted.internet.defer import Deferred

from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.engine_state import engine_slot, look_for_requests

logger = logging.getLogger("scrapy_rep")

MAX_AT_ONCE = (
    100  # requests that are taken from the queue in one turn of the event loop, while all of them have to wait
)
MAX_ORIGINS = 10_000  # that requests wait for; about 10 KiB each
MAX_IN_MEMORY = 10**9  # requests that wait, where Scrapy's own queue is in memory
MAX_LOOKED_AT_AGAIN = 10  # requests that were put back
LOOK_AGAIN_AFTER = 0.05  # seconds
# Meta key of a request that went back to the queue: how often that was, its priority, its dont_filter.
PUT_BACK = "rep_put_back"
BEHIND_ALL = 2**31  # a priority lower by this much comes after all that users set


class _Waiting(NamedTuple):
    """Sorted as the queue would hand them out: by priority, then in the order in which they left it."""

    rank: int
    place: int
    request: Request
    since: float
    """Seconds of a monotonic clock."""


class SchedulerDoor:
    """Wraps the `next_request`, `has_pending_requests` and `close` of the crawl's scheduler, whatever its class."""

    def __init__(
        self,
        crawler: Crawler,
        max_waiting: int,
        *,
        origin_to_await: Callable[[Request], Origin | None],
        fetch: Callable[[Origin, Request], Deferred[RobotsPolicy]],
        on_released: Callable[[Request, RobotsPolicy, float], None],
    ) -> None:
        """`max_waiting`: how many may wait beyond each origin's first; no limit if Scrapy's queue is in memory.
        `origin_to_await`: the origin whose robots.txt a request has to wait for. `fetch` fetches it, and fails only if
        the crawl closes first. `on_released` gets each request that has waited, what for, and for how many seconds.
        """
        self._crawler = crawler
        self._max_waiting = max_waiting
        self._origin_to_await = origin_to_await
        self._fetch = fetch
        self._on_released = on_released
        self._places = count()
        self._waiting: dict[Origin, list[_Waiting]] = {}
        self._waiting_number = 0
        self._ready: list[_Waiting] = []
        self._is_open = False
        self._will_look_again = False
        self._handed_out: WeakSet[Request] = WeakSet()
        # The next one of the queue, while those that have waited come before it.
        self._ahead: Request | None = None

    def open(self) -> None:
        """From now on requests wait here, unless none may or the scheduler cannot be wrapped."""
        if not self._max_waiting:
            return
        scheduler: Any = getattr(engine_slot(self._crawler), "scheduler", None)
        try:
            self._next_of_queue = scheduler.next_request
            self._queue_has_pending = scheduler.has_pending_requests
            self._enqueue = scheduler.enqueue_request
            self._close_queue = scheduler.close
            scheduler.next_request = self._next_request
            scheduler.has_pending_requests = self._has_pending_requests
            scheduler.close = self._close
            self._is_open = True
            if getattr(scheduler, "dqs", self) is None:  # a queue in memory: there they would take as much of it
                self._max_waiting = MAX_IN_MEMORY
        except AttributeError as exc:
            logger.warning(
                "Requests that wait for a robots.txt count against CONCURRENT_REQUESTS in this crawl: the scheduler's"
                " methods cannot be replaced (%s)",
                exc,
            )

    def never_saw(self, request: Request) -> bool:
        """Whether the request came to the downloader by another way, so that no limit of the engine's is about it."""
        return self._is_open and request not in self._handed_out

    # The scheduler's methods.

    def _next_request(self) -> Request | None:
        if self._ahead is None:
            self._ahead = self._next_not_waiting()
        if self._ready and (self._ahead is None or self._ready[0].rank <= -self._ahead.priority):
            request: Request | None = heappop(self._ready).request
        else:
            request, self._ahead = self._ahead, None
        if request is not None:
            self._handed_out.add(request)
        return request

    def _has_pending_requests(self) -> bool:
        return bool(self._waiting or self._ready or self._ahead is not None or self._queue_has_pending())

    def _close(self, reason: str) -> Any:
        """What waits goes back first: what the scheduler keeps beyond the crawl, it keeps of these, too."""
        everything = sorted(chain(self._ready, *self._waiting.values()), key=lambda waiting: waiting.place)
        self._waiting, self._ready = {}, []
        # Scrapy's default queues are last in, first out.
        for request in self._and_ahead(waiting.request for waiting in reversed(everything)):
            self._put_back(request, 0)
        return self._close_queue(reason)

    def _and_ahead(self, requests: Iterator[Request]) -> Iterator[Request]:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            yield ahead
        yield from requests

    # Between the queue and the engine.

    def _next_not_waiting(self) -> Request | None:
        """The queue's next request that need not wait; those before it begin to."""
        looked_at_again = 0
        for _ in range(MAX_AT_ONCE):
            request: Request | None = self._next_of_queue()
            if request is None:
                return None
            times_before = _restore(request)
            origin = self._origin_to_await(request)
            if origin is None:
                return request
            if self._has_place(origin) or not self._put_back(request, times_before + 1):
                self._wait(origin, request)
            elif times_before:
                # Those put back come last of all, so the queue has nothing else now. They are tried a few at a time.
                looked_at_again += 1
                if self._will_look_again or looked_at_again == MAX_LOOKED_AT_AGAIN:
                    self._look_again_later()
                    return None
        look_for_requests(self._crawler)
        return None

    def _look_again_later(self) -> None:
        def look() -> None:
            self._will_look_again = False
            look_for_requests(self._crawler)

        if not self._will_look_again:
            self._will_look_again = True
            call_later(LOOK_AGAIN_AFTER, look)

    def _has_place(self, origin: Origin) -> bool:
        """Every origin's first request has one. Beyond that an origin may hold no more places than are still free, so
        that alone it fills at most half of them."""
        others = self._waiting.get(origin)
        if others is None:
            return len(self._waiting) < MAX_ORIGINS
        return len(others) <= self._max_waiting - (self._waiting_number - len(self._waiting))

    def _wait(self, origin: Origin, request: Request) -> None:
        self._waiting_number += 1
        self._crawler.stats.inc_value("rep/waited")
        waiting = _Waiting(-request.priority, next(self._places), request, monotonic())
        others = self._waiting.get(origin)
        if others is not None:
            others.append(waiting)
            return
        self._waiting[origin] = [waiting]
        # Where it fails the crawl closes, and `_close` puts the requests back.
        self._fetch(origin, request).addCallbacks(self._release, lambda _failure: None, callbackArgs=(origin,))

    def _release(self, policy: RobotsPolicy, origin: Origin) -> None:
        released = self._waiting.pop(origin, [])
        self._waiting_number -= len(released)
        for waiting in released:
            heappush(self._ready, waiting)
        look_for_requests(self._crawler)
        now = monotonic()
        for waiting in released:
            self._on_released(waiting.request, policy, now - waiting.since)

    def _put_back(self, request: Request, times: int) -> bool:
        """Whether the queue took it back, behind all others: with a priority that is lower each time."""
        request.meta[PUT_BACK] = [times, request.priority, request.dont_filter]
        request.priority -= times * BEHIND_ALL
        request.dont_filter = True  # the duplicate filter has seen it
        if self._enqueue(request):
            return True
        _restore(request)
        return False


def _restore(request: Request) -> int:
    """How often it has been put back; it is as it was before."""
    if PUT_BACK not in request.meta:
        return 0
    times, request.priority, request.dont_filter = request.meta.pop(PUT_BACK)
    return int(times)
