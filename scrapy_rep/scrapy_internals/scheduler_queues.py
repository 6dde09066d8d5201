"""The queues of Scrapy's scheduler: which request leaves them next, and how a request goes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from sys import maxsize
from typing import Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_rep.scrapy_internals import warn_missing
from scrapy_rep.scrapy_internals.slots import slots_of

LAST = 10**6  # a number of downloads that no slot reaches; it sorts a slot behind all others


class SchedulerQueues:
    """The queue in memory and, with a JOBDIR, the queue on disk, for the door (`waiting.at_scheduler`).

    Scrapy's `DownloaderAwarePriorityQueue` first hands out requests of the slots with the fewest downloads. Dead
    origins have no downloads, so their requests would come first. This class reports a slot as busier than all others
    if a request to it is at the door, waiting or ready, or if its requests are held (`_held_sites`).
    """

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler` has been opened, and may be of any class."""
        in_memory, on_disk = getattr(scheduler, "mqs", None), getattr(scheduler, "dqs", None)
        self._count = crawler.stats.inc_value
        self._downloader: Any = crawler.engine.downloader
        self._slots = slots_of(crawler)
        self._key_of: Callable[[Request], str] = getattr(self._downloader, "get_slot_key", lambda _request: "")
        self.sites_at_door: Container[str] = ()
        """Sites that have requests at the door, so requests to them are sorted last. They may change."""
        self.delayed_sites: Collection[str] = ()
        """Requests to these sites stay in the queue until the downloader has room for them. Otherwise, they would take
        the places of other sites for a long time. The sites may change."""
        self._handed_out: dict[Request, str] = {}
        """The requests that the engine got from the door, and their sites. `look_at_downloads` removes those that have
        left the downloader."""
        self._in_downloader: Counter[str] = Counter()
        """The number of these requests for each site."""
        self._kind_of_queue = type(getattr(scheduler, "queue", None))  # scrapy-redis has it
        self._aware: list[Any] = []
        self._are_slotless_last = False
        # A subclass of Scrapy's scheduler may get its requests from other places than these queues.
        is_scrapys = getattr(type(scheduler), "next_request", None) is Scheduler.next_request
        self.in_memory: Any = in_memory if is_scrapys else None
        """The queue in memory; None if the scheduler is not Scrapy's own."""
        self.on_disk: Any = on_disk if self.in_memory is not None else None
        for queue in (in_memory, on_disk):
            if isinstance(queue, DownloaderAwarePriorityQueue) and self._slots is not None:
                interface: Any = getattr(queue, "_downloader_interface", None)
                if hasattr(interface, "stats"):
                    interface.stats = self._busy
                    self._aware.append(queue)
                else:
                    warn_missing(crawler, "DownloaderAwarePriorityQueue._downloader_interface")

    # Which request is next.

    def site_of(self, request: Request) -> str:
        """Return the key of a request's slot, which code outside this folder calls a site; empty if it is not known."""
        try:
            return self._key_of(request)
        except Exception:  # noqa: BLE001 - a project's own downloader; when it gets the request, the request fails
            return ""

    def hand_out(self, request: Request) -> None:
        """Count a request that the engine gets from the door."""
        if request not in self._handed_out:
            self._handed_out[request] = site = self.site_of(request)
            self._in_downloader[site] += 1

    def is_in_downloader(self, request: Request) -> bool:
        """Whether the engine got the request from the door, and the request has not left the downloader."""
        return request in self._handed_out

    def look_at_downloads(self) -> None:
        """Find out which requests have left the downloader, and which ones a middleware has moved to another slot.
        Called before the next request is chosen."""
        active = getattr(self._downloader, "active", ())
        for request, site in list(self._handed_out.items()):
            if request not in active:
                del self._handed_out[request]
            elif (slot := request.meta.get("download_slot", site)) != site:
                self._handed_out[request] = slot
                self._in_downloader[slot] += 1
            else:
                continue
            self._in_downloader[site] -= 1
            if not self._in_downloader[site]:
                del self._in_downloader[site]

    def prepare_next(self, *, can_fetch: bool, is_full: bool) -> bool:
        """Prepare the order of the queue for its next request. Return whether that request could be sent, or could wait
        at the door.

        `can_fetch` is whether one more robots.txt may be fetched. With `is_full`, a request may wait only if no other
        request to its site is at the door. A `DownloaderAwarePriorityQueue` first hands out requests to sites that
        have none at the door, and whose requests are not held (`_held_sites`). If no more may be fetched, it also puts
        sites that have a slot before sites that have none. A site with a slot was used in the last minute or so, so its
        robots.txt is probably known. For any other queue, the answer at a limit is False, because its next request
        cannot be foreseen.
        """
        self._are_slotless_last = not can_fetch
        queues = self._queues_of_sites
        if not queues:
            return can_fetch and not is_full
        sites = queues if can_fetch else (site for site in self._slots or () if site in queues)
        at_door, held = self.sites_at_door if is_full or not can_fetch else (), self._held_sites()
        return any(site not in at_door and site not in held for site in sites)

    @property
    def number_held(self) -> int:
        """The number of requests in the queue, if all of them are held (`_held_sites`); else 0."""
        held = self._held_sites()
        queues = self._queues_of_sites if held else {}
        return sum(map(len, queues.values())) if held.issuperset(queues) else 0

    @property
    def _queues_of_sites(self) -> Mapping[str, Any]:
        """The queues of the `DownloaderAwarePriorityQueue` whose request is next, by site; empty for other queues."""
        # The scheduler empties the queue in memory first.
        return next((queue.pqueues for queue in self._aware if queue.pqueues), {})

    def _held_sites(self) -> set[str]:
        """Return the sites whose requests stay in the queue, because the downloader has no room for them."""
        if not self.delayed_sites:
            return set()
        return {site for site in self._in_downloader if site in self.delayed_sites and not self.has_room(site)}

    def is_next_from_memory(self) -> bool:
        """Whether the next request comes from the queue in memory. The queue on disk is used when that one is empty."""
        return self.in_memory is not None and (self.on_disk is None or len(self.in_memory) > 0)

    def has_room(self, site: str) -> bool:
        """Whether the downloader has room for one more request of the door to this site.

        It has room for one more than the site's slot sends at a time, so that the next request is ready when the slot
        is. True if there is no slot.
        """
        slot = (self._slots or {}).get(site)
        return self._in_downloader[site] <= getattr(slot, "concurrency", maxsize)

    def _busy(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """Return each slot's number of downloads, plus LAST if the slot has to come after the others."""
        slots, at_door, held = self._slots or {}, self.sites_at_door, self._held_sites()
        of_slotless = LAST if self._are_slotless_last else 0
        handed_out = {
            site: (max(len(slots[site].active), number) if site in slots else of_slotless + number)
            + (LAST if site in held else 0)
            for site, number in self._in_downloader.items()
        }
        # The queue asks for all its slots for each request. In a crawl of many sites, this may take half of the time.
        return [
            (
                (handed_out[key] if key in handed_out else len(slots[key].active) if key in slots else of_slotless)
                + (LAST if key in at_door else 0),
                key,
            )
            for key in possible_slots
        ]

    # How a request goes back.

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
        self._count(f"scheduler/enqueued/{where}")
        self._count("scheduler/enqueued")
