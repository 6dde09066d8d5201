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


class DownloadPlaces:
    """Slots with requests that wait count as full."""

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler`: open."""
        self._downloader: Any = crawler.engine.downloader
        self._key = getattr(self._downloader, "get_slot_key", lambda _request: "")
        self._full = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self._waiting: Counter[str] = Counter()
        if not hasattr(self._downloader, "slots"):
            return
        queues = (getattr(scheduler, "mqs", None), getattr(scheduler, "dqs", None))
        for queue in (queue for queue in queues if isinstance(queue, DownloaderAwarePriorityQueue)):
            interface: Any = getattr(queue, "_downloader_interface", None)
            if hasattr(interface, "stats"):
                interface.stats = self._busy
            else:
                tell_without(crawler, "DownloaderAwarePriorityQueue._downloader_interface")

    def begin_to_wait(self, request: Request) -> None:
        self._waiting[self._key(request)] += 1

    def end_to_wait(self, request: Request) -> None:
        key = self._key(request)
        self._waiting[key] -= 1
        if not self._waiting[key]:
            del self._waiting[key]

    def has_place(self, request: Request, pages: Container[Request]) -> bool:
        """Whether the request's slot has fewer pages than it downloads at a time. True if nobody can tell."""
        slot = getattr(self._downloader, "slots", {}).get(self._key(request))
        active, concurrency = getattr(slot, "active", ()), getattr(slot, "concurrency", 1)
        return len(active) < concurrency or sum(other in pages for other in active) < concurrency

    def _busy(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """The number of downloads of each slot; and if requests to it wait, more than it can have."""
        slots, waiting, full = self._downloader.slots, self._waiting, self._full
        # The queue asks for all its slots each time, so this costs as much as all the rest of a crawl of many sites.
        return [
            ((len(slots[key].active) if key in slots else 0) + (full + waiting[key] if key in waiting else 0), key)
            for key in possible_slots
        ]
