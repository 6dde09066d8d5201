"""The queues inside Scrapy's scheduler."""

from __future__ import annotations

from typing import Any

from scrapy.core.scheduler import Scheduler


def is_next_from_memory(scheduler: Any) -> bool:
    """Whether the next request comes from Scrapy's queue in memory, which its scheduler empties before that on disk.

    A class derived from the scheduler may get its requests from anywhere.
    """
    if getattr(type(scheduler), "next_request", None) is not Scheduler.next_request:
        return False
    memory_queue = getattr(scheduler, "mqs", None)
    return memory_queue is not None and (getattr(scheduler, "dqs", None) is None or len(memory_queue) > 0)
