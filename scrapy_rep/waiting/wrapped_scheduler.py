"""Replaces methods of the crawl's scheduler, of any class, and puts requests back into its queue.

The engine then calls the methods of the door (`at_scheduler`) instead of the scheduler's.
"""

import sys
from collections.abc import Callable
from time import monotonic
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.log import logger_of
from scrapy_rep.meta import PUT_BACK
from scrapy_rep.scrapy_internals.scheduler_queues import SchedulerQueues

# Seconds that a queue may spend on failures. After that, no more requests are put back, because each could block the
# close as long.
MAX_FAILING = 5.0


class WrappedScheduler:
    """The scheduler's own methods, and a way to put requests back."""

    def __init__(self, crawler: Crawler, scheduler: Any, door: Any) -> None:
        """The methods `next_request`, `has_pending_requests` and `close` of `door` replace the scheduler's. Raises
        AttributeError if that is impossible."""
        self._log = logger_of(crawler)
        self._next_request: Callable[[], Request | None] = scheduler.next_request
        self._enqueue_request: Callable[[Request], Any] = scheduler.enqueue_request
        self.has_pending_requests: Callable[[], bool] = scheduler.has_pending_requests
        self._close: Callable[[str], Any] = scheduler.close
        self._scheduler = scheduler
        self._is_in_next_request = False
        scheduler.next_request = door.next_request
        # The `next_request` of scrapy-frontera's scheduler calls this method to ask about its own queue only.
        scheduler.has_pending_requests = lambda: (
            self.has_pending_requests() if self._is_in_next_request else door.has_pending_requests()
        )
        scheduler.close = door.close
        self.queues = SchedulerQueues(crawler, scheduler)

    def next_request(self) -> Request | None:
        self._is_in_next_request = True
        try:
            request = self._next_request()
        finally:
            self._is_in_next_request = False
        if request is not None and request.meta.pop(PUT_BACK, False):
            request.dont_filter = False
        return request

    def close(self, reason: str) -> Any:
        """Close the scheduler. It gets its own methods back first, because its `close` may take out what is left."""
        self._scheduler.next_request = self._next_request
        self._scheduler.has_pending_requests = self.has_pending_requests
        return self._close(reason)

    def put_back(self, requests: list[Request]) -> list[Request]:
        """Put requests back into the queue that they have left. Returns the requests that the queue has taken."""
        seconds_failing, error = 0.0, None
        taken: list[Request] = []
        # So they come out as before.
        in_order = [request for request in requests if self.queues.is_fifo(request)]
        for request in in_order + [request for request in reversed(requests) if not self.queues.is_fifo(request)]:
            began = monotonic()
            try:
                if seconds_failing <= MAX_FAILING and self._put_back_one(request):
                    taken.append(request)
                    continue
            except Exception as exc:  # noqa: BLE001 - any scheduler may raise anything
                error = error or exc
            seconds_failing += monotonic() - began
        if len(taken) < len(requests):
            self._log.error(
                "The scheduler has not taken back %d of %d requests that waited for a robots.txt (%s)."
                " They are lost, unless a JOBDIR or scrapy-redis has copies",
                len(requests) - len(taken),
                len(requests),
                "enqueue_request returned False" if error is None else f"first error: {error!r}",
            )
        return taken

    def _put_back_one(self, request: Request) -> bool:
        """Return whether the queue has taken the request."""
        if self.queues.in_memory is not None:
            self.queues.put_back(request)
            return True
        if not request.dont_filter:
            request.dont_filter = request.meta[PUT_BACK] = True  # the duplicate filter has seen it
        # Some schedulers return None for success.
        return self._enqueue_request(request) is not False


def is_of(scheduler: Any, module: str, name: str) -> bool:
    """Whether the scheduler is of this class. The module is not imported here: a crawl that uses it has imported it."""
    # Not `isinstance`: with Scrapy's scheduler classes, it is true of any object with a scheduler's methods.
    return getattr(sys.modules.get(module), name, None) in type(scheduler).__mro__
