"""Where requests wait for a robots.txt: at the scheduler's door, where the engine asks for the next request.

A request that waits here has passed no downloader middleware and takes no place in the downloader. When its origin's
robots.txt is known, the first request that waits for it goes on. The others go back to the queue, which hands them out
like all other requests, in the order that the crawl's queue has.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.engine_state import CrawlClosingError, look_for_requests, scheduler_of
from scrapy_rep.scrapy_internals.scheduler_queues import is_next_from_memory
from scrapy_rep.waiting.kept_in_redis import WaitingInRedis, waiting_in_redis

logger = logging.getLogger("scrapy_rep")

# Requests that are taken from the queue in one turn of the event loop, while all of them have to wait.
MAX_AT_ONCE = 100
MAX_ORIGINS = 10_000  # that requests wait for; about 10 KiB each
MAX_LOOKED_AT_AGAIN = 30  # requests without a place here
LOOK_AGAIN_AFTER = 0.05  # seconds
# Meta key of a request that went back to the queue: how often that was for want of a place, its priority, its
# dont_filter.
PUT_BACK = "rep_put_back"
BEHIND_ALL = 2**31  # a priority lower by this much comes after all that users set
# Seconds that a queue may take to fail. After that it is not asked to take back the others: each may take as long.
MAX_FAILING = 5.0


class _Waiting(NamedTuple):
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
        fetch: Callable[[Origin, Request], Deferred[Any]],
        on_released: Callable[[Request, float], None],
    ) -> None:
        """`max_waiting`: how many may wait beyond each origin's first; no limit for those from a queue in memory.
        `origin_to_await`: the origin whose robots.txt a request has to wait for. `fetch` fetches that, and fails only
        if the crawl closes first. `on_released` gets each request that has waited, and for how many seconds.
        """
        self._crawler = crawler
        self._max_waiting = max_waiting
        self._origin_to_await = origin_to_await
        self._fetch = fetch
        self._on_released = on_released
        self._waiting: dict[Origin, list[_Waiting]] = {}
        self._waiting_number = 0
        # Requests that have waited and go before the queue: each origin's first, and what the queue did not take back.
        self._ahead: deque[Request] = deque()
        self._handed_out: WeakSet[Request] = WeakSet()
        self._is_open = False
        self._is_queue_working = False
        self._will_look_again = False
        self._kept_in_redis: WaitingInRedis | None = None

    def open(self) -> None:
        """From now on requests wait here, unless none may or the scheduler cannot be wrapped."""
        if not self._max_waiting:
            return
        scheduler: Any = scheduler_of(self._crawler)
        try:
            self._next_of_queue = scheduler.next_request
            self._queue_has_pending = scheduler.has_pending_requests
            self._enqueue = scheduler.enqueue_request
            self._close_queue = scheduler.close
            scheduler.next_request = self._next_request
            scheduler.has_pending_requests = self._has_pending_requests
            scheduler.close = self._close
            self._scheduler, self._is_open = scheduler, True
        except AttributeError as exc:
            logger.warning(
                "Requests that wait for a robots.txt count against CONCURRENT_REQUESTS in this crawl: the scheduler's"
                " methods cannot be replaced (%s)",
                exc,
            )
        else:
            self._kept_in_redis = waiting_in_redis(self._crawler, scheduler)

    def never_saw(self, request: Request) -> bool:
        """Whether the request came to the downloader by another way, so that no limit of the engine's is about it."""
        return self._is_open and request not in self._handed_out

    def take_back(self, request: Request) -> bool:
        """The crawl closes: whether a request that was handed out is in the queue again."""
        if not self._is_open or request not in self._handed_out:
            return False
        is_queued = self._put_back(request, 0)
        _restore(request)
        return is_queued

    # The scheduler's methods.

    def _next_request(self) -> Request | None:
        """The next request that need not wait. Those before it begin to wait."""
        looked_at_again = 0
        for _ in range(MAX_AT_ONCE):
            is_ahead = bool(self._ahead)
            is_from_memory = is_ahead or is_next_from_memory(self._scheduler)
            request = self._taken_from_those_ahead() if is_ahead else self._taken_from_queue()
            if request is None:
                return None
            times_without_place = _restore(request)
            origin = self._origin_to_await(request)
            if origin is None:
                self._handed_out.add(request)
                return request
            if is_from_memory or self._has_place(origin) or not self._put_back(request, times_without_place + 1):
                self._wait(origin, request)
            elif times_without_place:
                # They come last of all, so the queue has nothing else now. They are tried a few at a time.
                looked_at_again += 1
                if self._will_look_again or looked_at_again == MAX_LOOKED_AT_AGAIN:
                    self._look_again_later()
                    return None
        look_for_requests(self._crawler)
        return None

    def _has_pending_requests(self) -> bool:
        # A scheduler that asks itself, as scrapy-frontera's does, means its own queue.
        waits_here = not self._is_queue_working and bool(self._waiting or self._ahead)
        return waits_here or bool(self._queue_has_pending())

    def _close(self, reason: str) -> Any:
        """What waits goes back first: what the scheduler keeps beyond the crawl, it keeps of these, too."""
        waiting, self._waiting = chain.from_iterable(self._waiting.values()), {}
        requests = [*self._ahead, *_in_order(waiting)]
        left_over = set(self._put_all_back(requests))
        put_back = [request for request in requests if request not in left_over]
        if self._kept_in_redis is not None:
            self._kept_in_redis.forget(put_back)
            self._kept_in_redis.close()
        return self._close_queue(reason)

    # Between the queue and the engine.

    def _taken_from_queue(self) -> Request | None:
        self._is_queue_working = True
        try:
            request: Request | None = self._next_of_queue()
        finally:
            self._is_queue_working = False
        return request

    def _taken_from_those_ahead(self) -> Request:
        request = self._ahead.popleft()
        if self._kept_in_redis is not None:
            self._kept_in_redis.forget([request])
        return request

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
        if self._kept_in_redis is not None:
            self._kept_in_redis.keep(request)
        waiting = _Waiting(request, monotonic())
        others = self._waiting.get(origin)
        if others is not None:
            others.append(waiting)
            return
        self._waiting[origin] = [waiting]
        self._fetch(origin, request).addCallbacks(self._release, self._failed, (origin,), errbackArgs=(origin,))

    def _release(self, _result: object, origin: Origin) -> None:
        released = self._waiting.pop(origin, [])
        self._waiting_number -= len(released)
        now = monotonic()
        if released:
            # It was at the front of the queue already, and to take it from a long queue again would take time.
            first = max(released, key=lambda waiting: waiting.request.priority)
            others = _in_order(waiting for waiting in released if waiting is not first)
            left_over = self._put_all_back(others)
            self._ahead += [first.request, *left_over]
            if self._kept_in_redis is not None:
                self._kept_in_redis.forget(set(others).difference(left_over))
        look_for_requests(self._crawler)
        for waiting in released:
            self._on_released(waiting.request, now - waiting.since)

    def _failed(self, failure: Failure, origin: Origin) -> None:
        # The crawl closes, and `_close` puts the requests back.
        if not isinstance(failure.value, CrawlClosingError):
            logger.error("Internal error while waiting for %s", origin.robots_url, exc_info=failure.value)

    def _put_all_back(self, requests: list[Request]) -> list[Request]:
        """Those that the queue did not take back."""
        left_over, seconds_failing = [], 0.0
        for request in requests:
            began = monotonic()
            if seconds_failing > MAX_FAILING:
                left_over.append(request)
            elif not self._put_back(request, 0):
                left_over.append(request)
                seconds_failing += monotonic() - began
        return left_over

    def _put_back(self, request: Request, times_without_place: int) -> bool:
        """Whether the queue took it back; behind all others if there was no place for it, with a priority that is
        lower each time."""
        request.meta[PUT_BACK] = [times_without_place, request.priority, request.dont_filter]
        request.priority -= times_without_place * BEHIND_ALL
        request.dont_filter = True  # the duplicate filter has seen it
        try:
            is_queued = bool(self._enqueue(request))
        except Exception:
            logger.exception("The scheduler failed to take back %s, which waits for robots.txt", request)
            is_queued = False
        if not is_queued:
            _restore(request)
        return is_queued

    def _look_again_later(self) -> None:
        def look() -> None:
            self._will_look_again = False
            look_for_requests(self._crawler)

        if not self._will_look_again:
            self._will_look_again = True
            call_later(LOOK_AGAIN_AFTER, look)


def _in_order(waiting: Iterable[_Waiting]) -> list[Request]:
    """The order in which to put them back, so that they come out as they did before: Scrapy's queue for start requests
    is first in, first out, its queue for all others last in, first out."""
    requests = [each.request for each in waiting]
    starts = [request for request in requests if request.meta.get("is_start_request")]
    return starts + [request for request in reversed(requests) if not request.meta.get("is_start_request")]


def _restore(request: Request) -> int:
    """How often there was no place for it; it is as it was before."""
    if PUT_BACK not in request.meta:
        return 0
    times_without_place, request.priority, request.dont_filter = request.meta.pop(PUT_BACK)
    return int(times_without_place)
