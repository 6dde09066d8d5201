"""The queues of Scrapy's scheduler: who chooses the site of their next request, and how a request goes back."""

from collections.abc import Callable
from typing import Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_rep.scrapy_internals import warn_missing
from scrapy_rep.scrapy_internals.slots import slots_of


class SchedulerQueues:
    """The queue in memory and, with a JOBDIR, the queue on disk, for the door (`waiting.at_scheduler`)."""

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler` has been opened, and may be of any class."""
        self._crawler = crawler
        self._both = getattr(scheduler, "mqs", None), getattr(scheduler, "dqs", None)
        self._kind_of_queue = type(getattr(scheduler, "queue", None))  # scrapy-redis has it
        # A subclass of Scrapy's scheduler may get its requests from other places than these queues.
        is_scrapys = getattr(type(scheduler), "next_request", None) is Scheduler.next_request
        self.in_memory: Any = self._both[0] if is_scrapys else None
        """The queue in memory; None if the scheduler is not Scrapy's own."""
        self.on_disk: Any = self._both[1] if self.in_memory is not None else None

    def choose_sites_by(self, ordered: type, choose: Callable[[Any], str]) -> list[Any]:
        """Let `choose` choose the site of the next request in each `DownloaderAwarePriorityQueue`. Return these queues.

        `choose` gets the sites of the queue, in a mapping of the type `ordered`: site -> its requests.
        """
        aware = []
        for queue in self._both:
            if isinstance(queue, DownloaderAwarePriorityQueue) and slots_of(self._crawler) is not None:
                interface: Any = getattr(queue, "_downloader_interface", None)
                if hasattr(interface, "stats"):
                    # The queue takes the site with the fewest downloads of those that it is told: of one.
                    interface.stats = lambda sites: [(0, choose(sites))] if sites else []
                    queue.pqueues = ordered(queue.pqueues)
                    aware.append(queue)
                else:
                    warn_missing(self._crawler, "DownloaderAwarePriorityQueue._downloader_interface")
        return aware

    def is_next_from_memory(self) -> bool:
        """Whether the next request comes from the queue in memory. The queue on disk is used when that one is empty."""
        if self.on_disk is None:
            return self.in_memory is not None
        # To find its length, a `DownloaderAwarePriorityQueue` walks through all its sites (`pqueues`).
        return len(getattr(self.in_memory, "pqueues", self.in_memory)) > 0

    def is_fifo(self, request: Request) -> bool:
        """Whether the queue to which the request goes back is first in, first out.

        By default, Scrapy's queue for start requests is, and its queue for all others is last in, first out.
        """
        is_start = bool(request.meta.get("is_start_request"))
        queue = self.in_memory if self.on_disk is None else self.on_disk
        kind = getattr(queue, "downstream_queue_cls", self._kind_of_queue)
        kind = (is_start and getattr(queue, "_start_queue_cls", None)) or kind
        # queuelib's LifoMemoryQueue is a FifoMemoryQueue, so the first name counts.
        names = (cls.__name__ for cls in kind.__mro__ if "Fifo" in cls.__name__ or "Lifo" in cls.__name__)
        name = next(names, None)
        return is_start if name is None else "Fifo" in name

    def put_back(self, request: Request) -> None:
        """Put a request of Scrapy's own scheduler back into its queue, and count it as `enqueue_request` does.

        This skips the duplicate filter, which would drop the request because it has seen it before.
        """
        queue, where = (self.in_memory, "memory") if self.on_disk is None else (self.on_disk, "disk")
        try:
            queue.push(request)
        except ValueError:  # the request cannot be serialized
            where = "memory"
            self.in_memory.push(request)
        self._crawler.stats.inc_value(f"scheduler/enqueued/{where}")
        self._crawler.stats.inc_value("scheduler/enqueued")
