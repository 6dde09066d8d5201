"""Which site's request leaves Scrapy's queue next: sites take turns, and the least busy ones come first.

Scrapy's `DownloaderAwarePriorityQueue` first hands out requests to the sites with the fewest downloads. Dead origins
have no downloads, so their requests would come first. Besides, the queue asks for the downloads of all its sites for
each request, which takes most of the CPU time if there are thousands. So this module chooses the site.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator
from sys import maxsize
from typing import Any

from scrapy_rep.scrapy_internals.scheduler_queues import SchedulerQueues
from scrapy_rep.scrapy_internals.slots import Sites

LAST = 10**6  # a number of downloads that no site reaches: it sorts a site behind all others
HELD = 2 * LAST  # sorts a site behind those, too; its requests stay in the queue
# How many sites are looked at for one request: sites of the queue, which may all be at the door; or sites that the
# downloader knows. These may be as many as there are slow fetches (`fetching.places.MAX_SLOW`).
LOOKS, LOOKS_AT_KNOWN = 300, 1_000
# A site with a longer queue lets other sites take turns. It may cost one more request for robots.txt in as many pages.
PAGES = 100


class QueuedSites(OrderedDict[str, Any]):
    """The sites of a queue, in the order of their turns, and their requests.

    If there are more than `most` sites, this many take turns (`window`), so that the memory for robots.txt files has
    room for all of them. A site leaves the window, and goes to the end of all sites, after PAGES requests (if there are
    more than `most` sites), or if at its turn it has no requests in the queue, or they would only wait (`is_away`).
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
                if (number < PAGES or len(self) <= most) and not is_away(site):
                    window[site] = number
                yield site

    def takes_turns(self, site: str, most: int) -> bool:
        """Whether the site has requests, and is one of the sites that take turns."""
        return site in self and (site in self.window or len(self) <= most)


NO_SITES = QueuedSites({})


class Turns:
    """Chooses the site of the queue's next request."""

    def __init__(
        self,
        queues: SchedulerQueues,
        sites: Sites,
        sites_at_door: Container[str],
        is_delayed: Callable[[str], bool],
        max_sites: int,
    ) -> None:
        """`sites_at_door`: sites that have requests at the door, so requests to them are sorted last. They may change.

        `is_delayed`: whether a site's Crawl-delay is obeyed. Requests to such a site stay in the queue until the
        downloader has room for them. Otherwise, they would take the places of other sites for a long time.
        `max_sites`: how many sites of a queue take turns at a time.
        """
        self._sites = sites
        self._sites_at_door = sites_at_door
        self._is_delayed = is_delayed
        self._max_sites = max_sites
        self._chosen: str | None = None
        """The site of the next request, from `prepare_next` until the queue asks for it."""
        self._known: deque[str] = deque()
        """The sites that the downloader knows, and whose turn has not come yet (`_known_in_turns`)."""
        self._aware = queues.choose_sites_by(QueuedSites, self._choose)
        """The queues that are a `DownloaderAwarePriorityQueue`."""

    def prepare_next(self, *, can_fetch: bool, is_full: bool) -> bool:
        """Choose the next request of the queue. Return whether that request could be sent, or could wait at the door.

        `can_fetch` is whether one more robots.txt may be fetched. If not, only sites that the downloader knows may
        be chosen: they were used in the last minute or so, so their robots.txt is probably known. With `is_full`, a
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
        """The number of requests in the queue, if all of them are held (`_is_held`); else 0."""
        queued = self._queued_sites
        return sum(map(len, queued.values())) if all(map(self._is_held, queued)) else 0

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
        return self._is_delayed(site) and not self._sites.has_room(site)

    def _in_turns(self, queued: QueuedSites) -> Iterator[str]:
        return queued.in_turns(self._max_sites, lambda site: site in self._sites_at_door or self._is_held(site))

    def _choose(self, queued: QueuedSites) -> str:
        """Return the site that `prepare_next` has chosen. (A scheduler may ask without `prepare_next`.)"""
        site, self._chosen = self._chosen, None
        if site is None or site not in queued:
            _, site = self._least_busy(self._in_turns(queued))
        if site in queued.window:
            queued.window[site] += 1
        queued.move_to_end(site)  # its next turn comes after one round through all other sites
        return site

    def _least_busy(self, sites: Iterable[str]) -> tuple[int, str]:
        """Return the load of the least busy site, and the site. The first idle site (load 0) ends the search.

        Added to a site's downloads (`Sites.load`) are

        1. HELD if the site's requests are held (`_is_held`);
        2. LAST if a request to the site is at the door, waiting or ready.

        The search is short, however many sites are in the queue: few sites are busy, and those at the door or held
        leave the window.
        """
        least, least_busy = maxsize, ""
        for site in sites:
            load = self._sites.load(site)
            load += (HELD if self._is_held(site) else 0) + (LAST if site in self._sites_at_door else 0)
            if load < least:
                least, least_busy = load, site
            if not load:
                break
        return least, least_busy

    def _known_in_turns(self, queued: QueuedSites) -> Iterator[str]:
        """Of the next LOOKS_AT_KNOWN sites that the downloader knows, those that the queue has requests for."""
        known, line = self._sites.known, self._known
        for _ in range(min(LOOKS_AT_KNOWN, len(line) + len(known))):
            if not line:
                line.extend(known)
            site = line.popleft()
            if queued.takes_turns(site, self._max_sites):
                yield site
