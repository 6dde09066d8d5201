"""The queues inside Scrapy's scheduler, one in memory and with a JOBDIR one on disk: which request comes out of them
next, and what goes back into them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_rep.scrapy_internals.fallbacks import tell_without

LAST = 10**6  # more downloads than a slot can have


class SchedulerQueues:
    """What the door has to know of the queues behind it, and of the download slots that their requests will need.

    Scrapy's `DownloaderAwarePriorityQueue` hands out requests of the slots with the fewest downloads first. A slot
    whose requests wait for a robots.txt has none, so it comes last here: else the queue would hand out requests to dead
    origins before all others.
    """

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler`: open, and of any class."""
        in_memory, on_disk = getattr(scheduler, "mqs", None), getattr(scheduler, "dqs", None)
        self._count = crawler.stats.inc_value
        self._downloader: Any = crawler.engine.downloader
        self.site_of = getattr(self._downloader, "get_slot_key", lambda _request: "")
        """The key of a request's slot. Outside this folder it is a site."""
        self._here: Container[str] = ()
        self._aware: list[Any] = []
        self._are_new_last = False
        # A class derived from Scrapy's may get its requests from anywhere else.
        is_scrapys = getattr(type(scheduler), "next_request", None) is Scheduler.next_request
        self.in_memory: Any = in_memory if is_scrapys else None
        """None if the scheduler is not Scrapy's own."""
        self.on_disk: Any = on_disk if self.in_memory is not None else None
        for queue in (in_memory, on_disk):
            if isinstance(queue, DownloaderAwarePriorityQueue) and hasattr(self._downloader, "slots"):
                interface: Any = getattr(queue, "_downloader_interface", None)
                if hasattr(interface, "stats"):
                    interface.stats = self._busy
                    self._aware.append(queue)
                else:
                    tell_without(crawler, "DownloaderAwarePriorityQueue._downloader_interface")

    # Which request is next.

    def put_last(self, sites: Container[str]) -> None:
        """From now on requests to these sites come last: the door has others to them. The sites may change."""
        self._here = sites

    def is_next_of_use(self, *, has_room: bool, is_full: bool) -> bool:
        """Whether the next request could go on, or may wait. `has_room`: for one more fetch; `is_full`: no request may
        wait unless it is the only one to its site.

        An aware queue hands out requests to sites of which the door has none first, and without room those that have
        been asked before; of another queue nobody knows.
        """
        self._are_new_last = not has_room
        if has_room and not is_full:
            return True
        # The queue in memory is emptied first.
        sites = next((queue.pqueues for queue in self._aware if queue.pqueues), ())
        known = sites if has_room else (key for key in self._downloader.slots if key in sites)
        return any(key not in self._here for key in known)

    def is_next_from_memory(self) -> bool:
        """The queue in memory is emptied before that on disk."""
        return self.in_memory is not None and (self.on_disk is None or len(self.in_memory) > 0)

    def has_room(self, site: str, pages: Container[Request]) -> bool:
        """Whether the slot has fewer pages than it downloads at a time. True if nobody can tell."""
        slot = getattr(self._downloader, "slots", {}).get(site)
        active, concurrency = getattr(slot, "active", ()), getattr(slot, "concurrency", 1)
        return len(active) < concurrency or sum(other in pages for other in active) < concurrency

    def _busy(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """The number of downloads of each slot, and LAST for slots that come after all others."""
        slots, here = self._downloader.slots, self._here
        of_new = LAST if self._are_new_last else 0
        # The queue asks for all its slots each time, so this costs as much as all the rest of a crawl of many sites.
        return [
            ((len(slots[key].active) if key in slots else of_new) + (LAST if key in here else 0), key)
            for key in possible_slots
        ]

    # What goes back.

    def put_back(self, request: Request) -> None:
        """Put a request that came from Scrapy's own scheduler into its queue again, as `enqueue_request` does for a new
        one. The duplicate filter, which has seen the request, is not asked."""
        queue, where = (self.in_memory, "memory") if self.on_disk is None else (self.on_disk, "disk")
        try:
            queue.push(request)
        except ValueError:  # it cannot be written
            where = "memory"
            self.in_memory.push(request)
        self._count(f"scheduler/enqueued/{where}")
        self._count("scheduler/enqueued")
