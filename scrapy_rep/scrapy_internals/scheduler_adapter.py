"""Which requests came from the scheduler's queue, and how those that wait go back to it when the crawl closes.

Where the scheduler looks different from Scrapy's, nothing is known to have come from it, and nothing goes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.exceptions import IgnoreRequest


class Queued:
    """The requests that the engine has taken from the queue."""

    def __init__(self, crawler: Crawler, taken: Callable[[], None]) -> None:
        """`taken` is called whenever the engine takes on more."""
        self._crawler = crawler
        self._taken = taken
        self._requests: WeakSet[Request] = WeakSet()

    def __contains__(self, request: Request) -> bool:
        return request in self._requests

    def remember(self) -> None:
        """From here on know which they are."""
        scheduler = self._scheduler
        if scheduler is None:
            return
        next_request = scheduler.next_request

        def remembered() -> Request | None:
            request: Request | None = next_request()
            if request is not None:
                self._requests.add(request)
            self._taken()
            return request

        scheduler.next_request = remembered

    def put_back(self, request: Request) -> IgnoreRequest:
        """What a request that waited is to end with when the crawl closes. If it came from a queue that outlives the
        crawl it is there again, as it was, and its errback is not called: it did not fail."""
        if request in self and self._requeue(request):
            request.errback = None
            return IgnoreRequest("Put back into the queue: the crawl closed while it waited for robots.txt")
        return IgnoreRequest("The crawl closed while the request waited for robots.txt")

    def _requeue(self, request: Request) -> bool:
        scheduler = self._scheduler
        if scheduler is None or not _is_durable(scheduler):
            return False
        seen, on_disk = scheduler.df, getattr(scheduler, "dqs", None)
        before = len(on_disk) if on_disk is not None else -1
        # It was seen, and `dont_filter` would also lead it past the offsite middleware later.
        scheduler.df = BaseDupeFilter()
        try:
            queued = bool(scheduler.enqueue_request(request))
        finally:
            scheduler.df = seen
        # One that can't be written to disk is only in memory, which ends with the crawl.
        return queued and (on_disk is None or len(on_disk) > before)

    @property
    def _scheduler(self) -> Any:
        slot = getattr(self._crawler.engine, "_slot", None)
        scheduler = getattr(slot, "scheduler", None)
        return scheduler if hasattr(scheduler, "df") else None


def _is_durable(scheduler: Any) -> bool:
    """Whether its queue outlives the crawl: Scrapy's with a JOBDIR, and those of other packages (scrapy-redis)."""
    return not isinstance(scheduler, Scheduler) or scheduler.dqs is not None
