"""The queues of Scrapy's scheduler: which request leaves them next, and how a request goes back into them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from functools import partial
from typing import Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_rep.scrapy_internals import warn_missing
from scrapy_rep.scrapy_internals.compat import throttler_of

LAST = 10**6  # a number of downloads that no slot reaches; it sorts a slot behind all others


class SchedulerQueues:
    """The queue in memory and, with a JOBDIR, the queue on disk, for the door (`door.py`).

    Scrapy's `DownloaderAwarePriorityQueue` first hands out requests of the slots with the fewest downloads. Dead
    origins have no downloads, so their requests would come first. This class reports a slot with a request at the door,
    waiting or ready, as busier than all slots without one.
    """

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler` has been opened, and may be of any class."""
        in_memory, on_disk = getattr(scheduler, "mqs", None), getattr(scheduler, "dqs", None)
        self._count = crawler.stats.inc_value
        self._downloader: Any = crawler.engine.downloader
        self._throttler = throttler_of(crawler)
        has_keys, name = (self._throttler, "get_scopes_key") if self._throttler else (self._downloader, "get_slot_key")
        self.site_of: Callable[[Request], str] = getattr(has_keys, name, lambda _request: "")
        """Return the key of a request's slot, which code outside this folder calls a site."""
        self._sites_at_door: Container[str] = ()
        self._aware: list[Any] = []
        self._are_slotless_last = False
        # A subclass of Scrapy's scheduler may get its requests from other places than these queues.
        is_scrapys = getattr(type(scheduler), "next_request", None) is Scheduler.next_request
        self.in_memory: Any = in_memory if is_scrapys else None
        """The queue in memory; None if the scheduler is not Scrapy's own."""
        self.on_disk: Any = on_disk if self.in_memory is not None else None
        for queue in (in_memory, on_disk):
            if isinstance(queue, DownloaderAwarePriorityQueue) and (
                self._throttler is not None or hasattr(self._downloader, "slots")
            ):
                interface: Any = getattr(queue, "_downloader_interface", None)
                if hasattr(interface, "stats"):
                    interface.stats = self._busy
                    self._aware.append(queue)
                elif hasattr(queue, "_slot_stats"):  # the queue of a Scrapy with a throttler
                    queue._slot_stats = partial(self._loads, queue._slot_stats)  # noqa: SLF001
                    self._aware.append(queue)
                else:
                    warn_missing(crawler, "DownloaderAwarePriorityQueue._downloader_interface")

    # Which request is next.

    def put_last(self, sites_at_door: Container[str]) -> None:
        """Sort requests to these sites last: they have requests at the door. The sites may change."""
        self._sites_at_door = sites_at_door

    def is_next_useful(self, *, can_fetch: bool, is_full: bool) -> bool:
        """Whether the scheduler's next request could be sent, or could wait at the door.

        `can_fetch` is whether one more robots.txt may be fetched. With `is_full`, a request may wait only if no other
        request to its site is at the door. A `DownloaderAwarePriorityQueue` first hands out requests to sites that
        have none at the door. If no more may be fetched, it also puts sites that have a slot before sites that have
        none. A site with a slot was used in the last minute or so, so its robots.txt is probably known. For any other
        queue, the answer at a limit is False, because its next request cannot be foreseen.
        """
        self._are_slotless_last = not can_fetch
        if can_fetch and not is_full:
            return True
        # The scheduler empties the queue in memory first.
        sites = next((queue.pqueues for queue in self._aware if queue.pqueues), ())
        known = sites if can_fetch else (key for key in self._used_sites() if key in sites)
        return any(key not in self._sites_at_door for key in known)

    def is_next_from_memory(self) -> bool:
        """Whether the next request comes from the queue in memory. The queue on disk is used when that one is empty."""
        return self.in_memory is not None and (self.on_disk is None or len(self.in_memory) > 0)

    def has_room(self, site: str, pages: Container[Request]) -> bool:
        """Whether the site's slot has room for one more request. Only requests in `pages` count, not those for a
        robots.txt. True if there is no slot."""
        if self._throttler is not None:
            load: float = self._throttler.get_scope_load(site)
            return load < 1
        slot = getattr(self._downloader, "slots", {}).get(site)
        active, concurrency = getattr(slot, "active", ()), getattr(slot, "concurrency", 1)
        return len(active) < concurrency or sum(other in pages for other in active) < concurrency

    def _busy(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """Return each slot's number of downloads, plus LAST if the slot has to come after the others."""
        slots, at_door = self._downloader.slots, self._sites_at_door
        of_slotless = LAST if self._are_slotless_last else 0
        # The queue asks for all its slots for each request. In a crawl of many sites, this may take half of the time.
        return [
            ((len(slots[key].active) if key in slots else of_slotless) + (LAST if key in at_door else 0), key)
            for key in possible_slots
        ]

    def _loads(self, loads_of_slots: Callable[[], list[tuple[float, str]]]) -> list[tuple[float, str]]:
        """Return the same as `_busy` for the queue of a Scrapy with a throttler: loads in place of numbers."""
        used, at_door = self._used_sites(), self._sites_at_door
        of_slotless = LAST if self._are_slotless_last else 0
        return [
            (load + (0 if key in used else of_slotless) + (LAST if key in at_door else 0), key)
            for load, key in loads_of_slots()
        ]

    def _used_sites(self) -> Collection[str]:
        """Return the sites that were used a short time ago."""
        if self._throttler is None:
            slots: Collection[str] = self._downloader.slots
            return slots
        return getattr(self._throttler, "_scope_managers", ())

    # How a request goes back.

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
        self._count(f"scheduler/enqueued/{where}")
        self._count("scheduler/enqueued")
