"""The queues of Scrapy's scheduler: which request leaves them next, and how a request goes back."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator
from sys import maxsize
from typing import Any, TypeVar

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from scrapy_rep.scrapy_internals import warn_missing
from scrapy_rep.scrapy_internals.slots import slots_of

LAST = 10**6  # a number of downloads that no site reaches: it sorts a site behind all others
HELD = 2 * LAST  # sorts a site behind those, too; its requests stay in the queue
# How many sites are looked at for one request: sites that have a slot (it stays for a minute, so there may be
# thousands), or sites of the queue, which may all be at the door.
LOOKS = 100
# A site with a longer queue lets other sites take turns. It may cost one more request for robots.txt in as many pages.
PAGES = 100

H = TypeVar("H", bound=Hashable)


class QueuedSites(OrderedDict[str, Any]):
    """The sites of a queue, in the order of their turns, and their requests.

    If there are more than `most` sites, this many take turns (`window`), so that the memory for robots.txt files has
    room for all of them. A site leaves the window, and goes to the end of all sites, after PAGES requests, or if at its
    turn it has no requests in the queue, or they would only wait (`is_away`).
    """

    def __init__(self, sites: dict[str, Any]) -> None:
        super().__init__(sites)
        self.window: OrderedDict[str, int] = OrderedDict()
        """The sites that take turns, in their order, and how many requests each has sent since it came. A site without
        requests stays until its turn comes, because the page under way may have links."""

    def in_turns(self, most: int, is_away: Callable[[str], bool]) -> Iterator[str]:
        """The next sites: those of the window, if it is full; else up to LOOKS of all sites, and then the window's."""
        window = self.window
        for look in range(len(self) if len(self) <= LOOKS else LOOKS + len(window)):
            while len(window) >= most and next(iter(window)) not in self:
                window.popitem(last=False)
            site = next(iter(window if window and (look >= LOOKS or len(window) >= most) else self))
            number = window.pop(site, 0)
            if site in self:
                self.move_to_end(site)
                if number < PAGES and not is_away(site):
                    window[site] = number
                yield site

    def takes_turns(self, site: str, most: int) -> bool:
        """Whether the site has requests, and is one of the sites that take turns."""
        return site in self and (site in self.window or len(self) <= most)


NO_SITES = QueuedSites({})


class SchedulerQueues:
    """The queue in memory and, with a JOBDIR, the queue on disk, for the door (`waiting.at_scheduler`).

    Scrapy's `DownloaderAwarePriorityQueue` first hands out requests to the sites with the fewest downloads. Dead
    origins have no downloads, so their requests would come first. Besides, the queue asks for the downloads of all its
    sites for each request, which takes most of the CPU time if there are thousands. So this class chooses the site
    (`_least_busy`) and reports no other site to the queue.
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
        self._all: set[Request] = set()
        """The same requests. Of two sets, Python finds the difference in a third of the time."""
        self._in_no_slot: set[Request] = set()
        """Those of them that have not been seen in their slot. Until then, a middleware may move them to another."""
        self._in_downloader: Counter[str] = Counter()
        """The number of these requests for each site."""
        self._kind_of_queue = type(getattr(scheduler, "queue", None))  # scrapy-redis has it
        self._aware: list[Any] = []
        """The queues in memory and on disk that are a `DownloaderAwarePriorityQueue`."""
        self.max_sites = maxsize
        """How many sites of a queue take turns at a time."""
        self._chosen: str | None = None
        """The site of the next request, from `prepare_next` until the queue asks for it."""
        self._known: deque[str] = deque()
        """The sites that have a slot, and whose turn has not come yet (`_known_in_turns`)."""
        # A subclass of Scrapy's scheduler may get its requests from other places than these queues.
        is_scrapys = getattr(type(scheduler), "next_request", None) is Scheduler.next_request
        self.in_memory: Any = in_memory if is_scrapys else None
        """The queue in memory; None if the scheduler is not Scrapy's own."""
        self.on_disk: Any = on_disk if self.in_memory is not None else None
        for queue in (in_memory, on_disk):
            if isinstance(queue, DownloaderAwarePriorityQueue) and self._slots is not None:
                interface: Any = getattr(queue, "_downloader_interface", None)
                if hasattr(interface, "stats"):
                    interface.stats = self._stats
                    queue.pqueues = QueuedSites(queue.pqueues)
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
            self._all.add(request)
            self._in_no_slot.add(request)

    def is_in_downloader(self, request: Request) -> bool:
        """Whether the engine got the request from the door, and the request has not left the downloader."""
        return request in self._handed_out

    def look_at_downloads(self) -> None:
        """Find out which requests have left the downloader, and which ones a middleware has moved to another slot.
        Called before the next request is chosen."""
        active, slots = getattr(self._downloader, "active", ()), self._slots or {}
        for request in self._all.difference(active):
            self._all.remove(request)
            self._in_no_slot.discard(request)
            count_down(self._in_downloader, self._handed_out.pop(request))
        for request in [*self._in_no_slot]:
            site = self._handed_out[request]
            slot = request.meta.get("download_slot", site)
            if slot in slots and request in slots[slot].active:
                self._in_no_slot.remove(request)
            if slot != site:
                self._handed_out[request] = slot
                self._in_downloader[slot] += 1
                count_down(self._in_downloader, site)

    def prepare_next(self, *, can_fetch: bool, is_full: bool) -> bool:
        """Choose the next request of the queue. Return whether that request could be sent, or could wait at the door.

        `can_fetch` is whether one more robots.txt may be fetched. If not, only sites that have a slot may be chosen. A
        site with a slot was used in the last minute or so, so its robots.txt is probably known. With `is_full`, a
        request may wait only if no other request to its site is at the door. For any queue but a
        `DownloaderAwarePriorityQueue`, the answer at a limit is False, because its next request cannot be foreseen.
        """
        queued = self._queued_sites
        if not queued:
            return can_fetch and not is_full
        load, self._chosen = self._least_busy(self._in_turns(queued) if can_fetch else self._known_in_turns(queued))
        return load < (HELD if can_fetch and not is_full else LAST)

    @property
    def number_held(self) -> int:
        """The number of requests in the queue, if all of them are held (`_held_sites`); else 0."""
        queued = self._queued_sites if self.delayed_sites else {}
        return sum(map(len, queued.values())) if queued and all(map(self._is_held, queued)) else 0

    @property
    def _queued_sites(self) -> QueuedSites:
        """The sites of the `DownloaderAwarePriorityQueue` whose request is next; empty for other queues."""
        for queue in self._aware:  # the scheduler empties the queue in memory first
            queued: QueuedSites = queue.pqueues
            if queued:
                return queued
        return NO_SITES

    def _is_held(self, site: str) -> bool:
        """Whether the site's requests stay in the queue, because the downloader has no room for them."""
        return site in self.delayed_sites and not self.has_room(site)

    def _in_turns(self, queued: QueuedSites) -> Iterator[str]:
        return queued.in_turns(self.max_sites, lambda site: site in self.sites_at_door or self._is_held(site))

    def is_next_from_memory(self) -> bool:
        """Whether the next request comes from the queue in memory. The queue on disk is used when that one is empty."""
        if self.in_memory is None or self.on_disk is None:
            return self.in_memory is not None
        # To find its length, a `DownloaderAwarePriorityQueue` walks through all its sites (`pqueues`).
        return len(getattr(self.in_memory, "pqueues", self.in_memory)) > 0

    def has_room(self, site: str) -> bool:
        """Whether the downloader has room for one more request of the door to this site.

        It has room for one more than the site's slot sends at a time, so that the next request is ready when the slot
        is. True if there is no slot.
        """
        slot = (self._slots or {}).get(site)
        return self._in_downloader[site] <= getattr(slot, "concurrency", maxsize)

    def _stats(self, queued: QueuedSites) -> list[tuple[int, str]]:
        """Return the chosen site alone: the queue takes the site with the fewest downloads of those that it is told."""
        if not queued:
            return []
        site, self._chosen = self._chosen, None
        if site is None or site not in queued:
            _, site = self._least_busy(self._in_turns(queued))
        if site in queued.window:
            queued.window[site] += 1
        queued.move_to_end(site)  # its next turn comes after one round through all other sites
        return [(0, site)]

    def _least_busy(self, sites: Iterable[str]) -> tuple[int, str]:
        """Return the load of the least busy site, and the site. The first idle site (load 0) ends the search.

        The load of a site is the larger of two numbers: the downloads in its slot, and the requests that the engine got
        from the door. (The downloader takes requests later than the engine, so the slot may not have them yet.) Added
        to the load are

        1. HELD if the site's requests are held (`_is_held`);
        2. LAST if a request to the site is at the door, waiting or ready.

        The search is short, however many sites are in the queue: few sites are busy, and those at the door or held
        leave the window.
        """
        slots, handed_out = self._slots or {}, self._in_downloader
        at_door = self.sites_at_door
        least, least_busy = maxsize, ""
        for site in sites:
            load = handed_out.get(site, 0)
            load = max(load, len(slots[site].active)) if site in slots else load
            load += (HELD if self._is_held(site) else 0) + (LAST if site in at_door else 0)
            if load < least:
                least, least_busy = load, site
            if not load:
                break
        return least, least_busy

    def _known_in_turns(self, queued: QueuedSites) -> Iterator[str]:
        """The sites of the queue among the next LOOKS sites that have a slot."""
        slots, line = self._slots or {}, self._known
        for _ in range(min(LOOKS, len(line) + len(slots))):
            if not line:
                line.extend(slots)
            site = line.popleft()
            if queued.takes_turns(site, self.max_sites):
                yield site

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


def count_down(counter: Counter[H], key: H) -> None:
    """Take 1 off. A key without a count leaves."""
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def in_turns(items: OrderedDict[H, Any]) -> Iterator[H]:
    """Each key once. A key moves to the end when it is yielded, so that the keys after it come first next time."""
    for _ in range(len(items)):
        key = next(iter(items))
        items.move_to_end(key)
        yield key
