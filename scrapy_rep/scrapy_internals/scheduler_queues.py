"""The queues inside Scrapy's own scheduler: one in memory, and with a JOBDIR one on disk."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler


def is_scrapys(scheduler: Any) -> bool:
    """Whether it hands out the requests of these queues. A class derived from Scrapy's may get them from anywhere."""
    return getattr(type(scheduler), "next_request", None) is Scheduler.next_request and hasattr(scheduler, "mqs")


def has_queue_on_disk(scheduler: Any) -> bool:
    return is_scrapys(scheduler) and getattr(scheduler, "dqs", None) is not None


def is_next_from_memory(scheduler: Any) -> bool:
    """Whether the next request comes from the queue in memory, which is emptied before that on disk."""
    return is_scrapys(scheduler) and (not has_queue_on_disk(scheduler) or len(scheduler.mqs) > 0)


def leave_on_disk(crawler: Crawler, scheduler: Any, request: Request) -> None:
    """Put back a request that was taken out of the queue on disk only to look at it.

    `peek` would not do: after that of queuelib 1.10, the next `push` spoils the file of a LIFO queue.
    """
    scheduler.dqs.push(request)
    crawler.stats.inc_value("scheduler/dequeued/disk", -1)
    crawler.stats.inc_value("scheduler/dequeued", -1)


def put_back(crawler: Crawler, scheduler: Any, request: Request) -> None:
    """Put a request that came from the scheduler into its queue again, as `enqueue_request` does for a new one.

    The duplicate filter, which has seen the request, is not asked.
    """
    where = "disk" if has_queue_on_disk(scheduler) else "memory"
    try:
        (scheduler.dqs if where == "disk" else scheduler.mqs).push(request)
    except ValueError:  # it cannot be written
        where = "memory"
        scheduler.mqs.push(request)
    crawler.stats.inc_value(f"scheduler/enqueued/{where}")
    crawler.stats.inc_value("scheduler/enqueued")
