"""The crawl's scheduler, of whatever class, behind the door: its methods, and those that replace them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.log import logger_of
from scrapy_rep.scrapy_internals.scheduler_queues import SchedulerQueues

# Meta key of a request that goes back to a scheduler that is not Scrapy's own: `dont_filter` was False.
PUT_BACK = "rep_put_back"
# Seconds that a queue may take to fail. After that it is not asked to take back other requests: each may take as long.
MAX_FAILING = 5.0


class InItsPlace(Protocol):
    """What the engine calls instead of the scheduler's methods."""

    def next_request(self) -> Request | None: ...

    def has_pending_requests(self) -> bool: ...

    def close(self, reason: str) -> Any: ...


class WrappedScheduler:
    def __init__(self, crawler: Crawler, scheduler: Any, door: InItsPlace) -> None:
        """Raises AttributeError if the scheduler's methods cannot be replaced."""
        self._log = logger_of(crawler)
        self._next_request: Callable[[], Request | None] = scheduler.next_request
        self._has_pending_requests: Callable[[], bool] = scheduler.has_pending_requests
        self._enqueue_request: Callable[[Request], Any] = scheduler.enqueue_request
        self.close: Callable[[str], Any] = scheduler.close
        self._is_working = False
        scheduler.next_request = door.next_request
        scheduler.has_pending_requests = lambda: self._is_any_pending(door)
        scheduler.close = door.close
        self.queues = SchedulerQueues(crawler, scheduler)

    def next_request(self) -> Request | None:
        """The next request of the scheduler's own queue."""
        self._is_working = True
        try:
            request = self._next_request()
        finally:
            self._is_working = False
        if request is not None and request.meta.pop(PUT_BACK, False):
            request.dont_filter = False
        return request

    def _is_any_pending(self, door: InItsPlace) -> bool:
        # A scheduler that asks itself, as scrapy-frontera's does, means its own queue.
        return (not self._is_working and door.has_pending_requests()) or bool(self._has_pending_requests())

    def put_back(self, requests: list[Request]) -> list[Request]:
        """Put requests that have left the queue into it again. Returns the requests that the queue has taken."""
        seconds_failing, error = 0.0, None
        taken: list[Request] = []
        for request in _in_order(requests):
            began = monotonic()
            try:
                if seconds_failing <= MAX_FAILING and self._takes(request):
                    taken.append(request)
                    continue
            except Exception as exc:  # noqa: BLE001 - of any scheduler
                error = error or exc
            seconds_failing += monotonic() - began
        if len(taken) < len(requests):
            self._log.error(
                "The scheduler has not taken back %d of %d requests that waited for a robots.txt; its first error: %r",
                len(requests) - len(taken),
                len(requests),
                error,
            )
        return taken

    def _takes(self, request: Request) -> bool:
        if self.queues.in_memory is not None:
            self.queues.put_back(request)
            return True
        if not request.dont_filter:
            request.dont_filter = request.meta[PUT_BACK] = True  # the duplicate filter has seen it
        # Some schedulers return None.
        return self._enqueue_request(request) is not False


def _in_order(requests: list[Request]) -> list[Request]:
    """The order in which to put them back, so that they come out as they did before: Scrapy's queue for start requests
    is first in, first out, its queue for all others last in, first out."""
    starts = [request for request in requests if request.meta.get("is_start_request")]
    return starts + [request for request in reversed(requests) if not request.meta.get("is_start_request")]


def is_of(scheduler: Any, module: str, name: str) -> bool:
    """Whether the scheduler is of this class. The module is not imported: a crawl that uses it has done so."""
    # Not `isinstance`, by which Scrapy takes any class with a scheduler's methods for one of its own.
    return getattr(sys.modules.get(module), name, None) in type(scheduler).__mro__
