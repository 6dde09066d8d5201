"""Where requests wait for a robots.txt: at the scheduler's door, where the engine asks for the next request.

A request that waits here has passed no downloader middleware and takes no place in the downloader. It stays here until
its origin's robots.txt is known and the engine takes it, or until the crawl closes: then it goes back to its queue.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeAlias
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.log import logger_of
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals import scheduler_queues
from scrapy_rep.scrapy_internals.download_places import DownloadPlaces
from scrapy_rep.scrapy_internals.engine_state import CrawlClosingError, look_for_requests, scheduler_of
from scrapy_rep.waiting.keeper import KILLED_LOSES, Keeper
from scrapy_rep.waiting.waiting_log import Wait

MAX_SECONDS = 0.005  # for one call of the engine's, while all requests that the queue hands out have to wait
MAX_READY = 100  # origins with requests that may go on; from this number on, these always go before those of the queue
# Meta key of a request that goes back to a scheduler that is not Scrapy's own: `dont_filter` was False.
PUT_BACK = "rep_put_back"
# Seconds that a queue may take to fail. After that it is not asked to take back the others: each may take as long.
MAX_FAILING = 5.0

Ready: TypeAlias = deque[tuple[Request, float]]
"""Requests to one origin that may go on, and the seconds for which each has waited."""


class SchedulerDoor:
    """Wraps the `next_request`, `has_pending_requests` and `close` of the crawl's scheduler, whatever its class."""

    def __init__(
        self,
        crawler: Crawler,
        max_waiting: int,
        *,
        origin_to_await: Callable[[Request], Origin | None],
        has_room: Callable[[], bool],
        fetch: Callable[[Origin, Request], Deferred[Any]],
        on_released: Callable[[Request, float], None],
        clock: Callable[[], float],
    ) -> None:
        """`max_waiting`: how many may be here beyond each origin's first; no limit for those from a queue in memory.
        `origin_to_await`: the origin whose robots.txt a request has to wait for. `has_room`: whether a fetch for one
        more origin would begin soon. `fetch` fetches a robots.txt, and fails only if the crawl closes first.
        `on_released` gets each request that goes on, and the seconds for which it waited. `clock`: monotonic.
        """
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._max_waiting = max_waiting
        self._origin_to_await = origin_to_await
        self._has_room = has_room
        self._fetch = fetch
        self._on_released = on_released
        self._clock = clock
        # Requests with the time since when they wait.
        self._waiting: dict[Origin, list[tuple[Request, float]]] = {}
        self._ready: deque[Ready] = deque()
        self._number = 0
        # Next, before those of the queue: requests that waited when an earlier run of this job was killed, for example.
        self._taken: deque[Request] = deque()
        self._looked_in_vain = 0  # how many of the ready origins, one after another
        self._is_turn_of_queue = False
        self._handed_out: WeakSet[Request] = WeakSet()
        self._is_open = False
        self._is_queue_working = False
        self._keeper: Keeper | None = None

    def open(self) -> None:
        """From now on requests wait here, unless none may or the scheduler cannot be wrapped."""
        scheduler: Any = scheduler_of(self._crawler)
        if _is_of(scheduler, "apify.scrapy.scheduler", "ApifyScheduler"):
            self._log.warning(
                "REP_WAITING_MAX counts as 0 with Apify's scheduler, which takes requests that are not in the"
                " downloader for done: requests that wait for a robots.txt count against CONCURRENT_REQUESTS"
            )
            self._max_waiting = 0
        if not self._max_waiting:  # they wait in the downloader
            self._origin_to_await = lambda _request: None
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
            self._log.warning(
                "Requests that wait for a robots.txt count against CONCURRENT_REQUESTS in this crawl: the scheduler's"
                " methods cannot be replaced (%s)",
                exc,
            )
            return
        self._places = DownloadPlaces(self._crawler, scheduler)
        self._keeper = _keeper(self._crawler, scheduler)
        if self._keeper is not None:
            self._taken.extend(self._keeper.left_over())
        if self._taken:
            self._log.info("Requests that waited for a robots.txt when this job was killed: %d", len(self._taken))

    def never_saw(self, request: Request) -> bool:
        """Whether the request came to the downloader by another way, so that no limit of the engine's is about it."""
        return self._is_open and request not in self._handed_out

    def take_back(self, request: Request) -> bool:
        """The crawl closes: whether a request that was handed out is in the queue again."""
        return self._is_open and request in self._handed_out and bool(self._put_back([request]))

    def waits(self) -> list[Wait]:
        """Those of the requests that wait here at this moment."""
        return [Wait(origin, since) for origin, waiting in self._waiting.items() for _, since in waiting]

    # The scheduler's methods.

    def _next_request(self) -> Request | None:
        """The next request that need not wait: from the queue and from here by turns, so that neither waits for the
        other to be empty."""
        is_turn_of_queue = self._is_turn_of_queue and len(self._ready) < MAX_READY
        self._is_turn_of_queue = not is_turn_of_queue
        ways = (self._from_queue, self._from_here) if is_turn_of_queue else (self._from_here, self._from_queue)
        request = ways[0]() or ways[1]()
        if request is not None:
            self._forget(request)
            self._handed_out.add(request)
        return request

    def _has_pending_requests(self) -> bool:
        # A scheduler that asks itself, as scrapy-frontera's does, means its own queue.
        waits_here = not self._is_queue_working and self._number + len(self._taken) > 0
        return waits_here or bool(self._queue_has_pending())

    def _close(self, reason: str) -> Any:
        """What waits goes back first: what the scheduler keeps beyond the crawl, it keeps of these, too."""
        waiting = [request for request, _ in chain(*self._ready, *self._waiting.values())]
        for request in self._put_back(_in_order([*self._taken, *waiting])):
            self._forget(request)
        if self._keeper is not None:
            self._keeper.close()
        return self._close_queue(reason)

    # What the engine gets.

    def _from_queue(self) -> Request | None:
        """The queue's next request that need not wait. Those before it begin to."""
        until = self._clock() + MAX_SECONDS
        while self._may_take():
            is_from_memory = not self._taken and scheduler_queues.is_next_from_memory(self._scheduler)
            request = self._taken_from_queue()
            if request is None:
                return None
            origin = self._origin_to_await(request)
            if origin is None:
                return request
            self._number += 1
            self._crawler.stats.inc_value("rep/waited")
            if self._keeper is not None and not is_from_memory:
                self._keeper.keep(request)
            self._wait(origin, request)
            if self._clock() >= until:
                look_for_requests(self._crawler)
                return None
        return None

    def _may_take(self) -> bool:
        """Whether a request of the queue's could be of use: it could go on, or begin a fetch."""
        if not self._max_waiting:
            return True
        has_room = self._has_room()
        self._places.are_new_last = not has_room
        if not has_room and not self._places.has_known():
            return False
        number_of_firsts = len(self._waiting) + len(self._ready)
        if self._number - number_of_firsts < self._max_waiting or scheduler_queues.is_next_from_memory(self._scheduler):
            return True
        return self._takes_past_those_that_wait()

    def _takes_past_those_that_wait(self) -> bool:
        """Whether the next request is to an origin that none waits for here: an origin that does not answer holds up
        no others, as far as Scrapy's queue on disk can tell."""

        def is_wanted(request: Request) -> bool:
            return self._origin_to_await(request) not in self._waiting

        if not self._taken or not is_wanted(self._taken[0]):
            request = scheduler_queues.take_from_disk(self._crawler, self._scheduler, is_wanted)
            if request is None:
                return False
            self._taken.appendleft(request)
        return True

    def _taken_from_queue(self) -> Request | None:
        if self._taken:
            return self._taken.popleft()
        self._is_queue_working = True
        try:
            request: Request | None = self._next_of_queue()
        finally:
            self._is_queue_working = False
        if request is not None and request.meta.pop(PUT_BACK, False):
            request.dont_filter = False
        return request

    def _from_here(self) -> Request | None:
        """The next request that has waited and for which there is a place: one of each origin by turns."""
        until = self._clock() + MAX_SECONDS
        forgotten: list[tuple[Origin, Ready]] = []
        for _ in range(len(self._ready)):
            of_origin = self._ready[0]
            self._ready.rotate(-1)
            request, seconds = of_origin[0]
            if self._places.has_place(request, self._handed_out):
                origin = self._origin_to_await(request)
                if origin is None:
                    of_origin.popleft()
                    if not of_origin:
                        self._ready.pop()
                    self._number -= 1
                    self._looked_in_vain = 0
                    self._on_released(request, seconds)
                    return request
                forgotten.append((origin, of_origin))
            self._looked_in_vain += 1
            if self._looked_in_vain >= len(self._ready):
                # There is a place for none: the engine asks again when a download has ended.
                self._looked_in_vain = 0
                break
            if self._clock() >= until:
                look_for_requests(self._crawler)
                break
        self._wait_again(forgotten)
        return None

    def _wait_again(self, forgotten: list[tuple[Origin, Ready]]) -> None:
        """Only if no other request can go on: else origins would take each other's place in memory, without an end."""
        for origin, of_origin in forgotten:
            self._ready.remove(of_origin)
            for request, _ in of_origin:
                self._wait(origin, request)

    # Waiting.

    def _wait(self, origin: Origin, request: Request) -> None:
        self._places.begin_to_wait(request)
        is_first = origin not in self._waiting
        self._waiting.setdefault(origin, []).append((request, self._clock()))
        if is_first:
            self._fetch(origin, request).addCallbacks(self._release, self._failed, (origin,), errbackArgs=(origin,))

    def _release(self, _result: object, origin: Origin) -> None:
        now = self._clock()
        released = [(request, now - since) for request, since in self._waiting.pop(origin, [])]
        for request, _ in released:
            self._places.end_to_wait(request)
        if released:
            self._ready.append(deque(sorted(released, key=lambda ready: -ready[0].priority)))
        look_for_requests(self._crawler)

    def _failed(self, failure: Failure, origin: Origin) -> None:
        # The crawl closes, and `_close` puts the requests back.
        if not isinstance(failure.value, CrawlClosingError):
            self._log.error("Internal error while waiting for %s", origin.robots_url, exc_info=failure.value)

    def _forget(self, request: Request) -> None:
        if self._keeper is not None:
            self._keeper.forget(request)

    # The crawl closes.

    def _put_back(self, requests: list[Request]) -> list[Request]:
        """Those that the queue took back."""
        put_back, seconds_failing, error = [], 0.0, None
        for request in requests:
            began = self._clock()
            try:
                if seconds_failing <= MAX_FAILING and self._is_taken_back(request):
                    put_back.append(request)
                    continue
            except Exception as exc:  # noqa: BLE001 - of any scheduler
                error = error or exc
            seconds_failing += self._clock() - began
        if len(put_back) < len(requests):
            self._log.error(
                "The scheduler has not taken back %d of %d requests that waited for a robots.txt; its first error: %r",
                len(requests) - len(put_back),
                len(requests),
                error,
            )
        return put_back

    def _is_taken_back(self, request: Request) -> bool:
        if scheduler_queues.is_scrapys(self._scheduler):
            scheduler_queues.put_back(self._crawler, self._scheduler, request)
            return True
        if not request.dont_filter:
            request.dont_filter = request.meta[PUT_BACK] = True  # the duplicate filter has seen it
        # Some schedulers return None.
        return self._enqueue(request) is not False


def _in_order(requests: list[Request]) -> list[Request]:
    """The order in which to put them back, so that they come out as they did before: Scrapy's queue for start requests
    is first in, first out, its queue for all others last in, first out."""
    starts = [request for request in requests if request.meta.get("is_start_request")]
    return starts + [request for request in reversed(requests) if not request.meta.get("is_start_request")]


def _keeper(crawler: Crawler, scheduler: Any) -> Keeper | None:
    """None where requests are lost with the process in any case, or nothing is known of the queue."""
    try:
        if _is_of(scheduler, "scrapy_redis.scheduler", "Scheduler"):
            from scrapy_rep.waiting.kept_in_redis import KeptInRedis  # noqa: PLC0415 - few crawls need it

            return KeptInRedis(crawler, scheduler)
        if scheduler_queues.has_queue_on_disk(scheduler):
            from scrapy_rep.waiting.kept_in_jobdir import KeptInJobdir  # noqa: PLC0415 - it imports sqlite3

            return KeptInJobdir(crawler)
    except Exception as exc:  # noqa: BLE001 - a queue class of the user's own, or a file that cannot be made
        logger_of(crawler).warning(KILLED_LOSES, exc)
    return None


def _is_of(scheduler: Any, module: str, name: str) -> bool:
    """Whether it is of this class. The module is not imported: a crawl that uses it has done so."""
    # Not `isinstance`, by which Scrapy takes any class with a scheduler's methods for one of its own.
    return getattr(sys.modules.get(module), name, None) in type(scheduler).__mro__
