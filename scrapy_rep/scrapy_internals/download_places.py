"""The download slots that requests at the scheduler's door will need.

Scrapy's `DownloaderAwarePriorityQueue` hands out requests of the slots with the fewest downloads first. A slot with
requests that wait for a robots.txt has none, so without this module the queue would hand out requests to dead origins
before all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_rep.scrapy_internals.fallbacks import tell_without

NEW = 10**6  # more downloads than a slot can have


class DownloadPlaces:
    """Slots with requests that wait count as full."""

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler`: open."""
        self._downloader: Any = crawler.engine.downloader
        self._key = getattr(self._downloader, "get_slot_key", lambda _request: "")
        self._full = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self._waiting: Counter[str] = Counter()
        self._queues: list[Any] = []
        self.are_new_last = False
        """Whether the queue hands out requests to new sites after those to all others."""
        if not hasattr(self._downloader, "slots"):
            return
        queues = (getattr(scheduler, "mqs", None), getattr(scheduler, "dqs", None))
        for queue in (queue for queue in queues if isinstance(queue, DownloaderAwarePriorityQueue)):
            interface: Any = getattr(queue, "_downloader_interface", None)
            if hasattr(interface, "stats"):
                interface.stats = self._busy
                self._queues.append(queue)
            else:
                tell_without(crawler, "DownloaderAwarePriorityQueue._downloader_interface")

    def begin_to_wait(self, request: Request) -> None:
        self._waiting[self._key(request)] += 1

    def end_to_wait(self, request: Request) -> None:
        key = self._key(request)
        self._waiting[key] -= 1
        if not self._waiting[key]:
            del self._waiting[key]

    def has_known(self) -> bool:
        """Whether the queue has requests to sites that have been asked before and that none waits for."""
        slots, waiting = self._downloader.slots if self._queues else (), self._waiting
        return any(key in queue.pqueues and key not in waiting for queue in self._queues for key in slots)

    def has_place(self, request: Request, pages: Container[Request]) -> bool:
        """Whether the request's slot has fewer pages than it downloads at a time. True if nobody can tell."""
        slot = getattr(self._downloader, "slots", {}).get(self._key(request))
        active, concurrency = getattr(slot, "active", ()), getattr(slot, "concurrency", 1)
        return len(active) < concurrency or sum(other in pages for other in active) < concurrency

    def _busy(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """The number of downloads of each slot; and if requests to it wait, more than it can have."""
        slots, waiting, full = self._downloader.slots, self._waiting, self._full
        of_new = NEW if self.are_new_last else 0
        # The queue asks for all its slots each time, so this costs as much as all the rest of a crawl of many sites.
        return [
            ((len(slots[key].active) if key in slots else of_new) + (full + waiting[key] if key in waiting else 0), key)
            for key in possible_slots
        ]
