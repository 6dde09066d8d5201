"""The order in which requests at the scheduler go on when their robots.txt is known: sites take turns.

Each of these requests waits for a robots.txt, or is ready, usually because its fetch has ended.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from scrapy import Request

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.slots import H, count_down


@dataclass(eq=False, slots=True)
class Wait:
    """A request that waits for a robots.txt, at the scheduler's door or in the downloader."""

    request: Request
    origin: Origin
    """The origin whose robots.txt the request waits for."""
    since: float
    """Seconds of the monotonic clock."""
    seconds: float = 0.0
    """How many seconds the wait took, once it has ended."""
    site: str = ""
    """The site that the request goes to: usually a host, which may have many origins."""


class WaitingRequests:
    def __init__(self) -> None:
        self._all: dict[Wait, None] = {}
        self.waiting: dict[Origin, list[Wait]] = {}
        """The requests that wait, by the origin whose robots.txt they wait for."""
        self.ready: OrderedDict[str, OrderedDict[Origin, deque[Wait]]] = OrderedDict()
        """The ready requests, by their site and their origin."""
        self._origins: Counter[Origin] = Counter()
        self.sites: Counter[str] = Counter()
        """The number of requests to each site."""

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Request]:
        """All requests, in the order of their arrival."""
        return (wait.request for wait in self._all)

    @property
    def beyond_the_first(self) -> int:
        """The number of requests, without the first one to each origin."""
        return len(self._all) - len(self._origins)

    def add_waiting(self, wait: Wait) -> bool:
        """Add a request that waits. Returns whether no other request waits for its origin."""
        self._count(wait)
        of_origin = self.waiting.setdefault(wait.origin, [])
        of_origin.append(wait)
        return len(of_origin) == 1

    def add_ready(self, wait: Wait) -> None:
        self._count(wait)
        self.ready.setdefault(wait.site, OrderedDict()).setdefault(wait.origin, deque()).append(wait)

    def release(self, origin: Origin) -> list[Wait]:
        """Make the requests that wait for the origin ready, and return them, the highest priority first."""
        released = sorted(self.waiting.pop(origin), key=lambda wait: -wait.request.priority)
        for wait in released:
            self.add_ready(wait)
        return released

    def take_ready(self, has_room: Callable[[str], bool]) -> Wait | None:
        """Remove and return a ready request to a site with room, or None. Sites take turns; so do a site's origins."""
        for site in in_turns(self.ready):
            if has_room(site):
                of_site = self.ready[site]
                origin = next(in_turns(of_site))
                of_origin = of_site[origin]
                wait = of_origin.popleft()
                if not of_origin:
                    del of_site[origin]
                if not of_site:
                    del self.ready[site]
                del self._all[wait]
                count_down(self._origins, origin)
                count_down(self.sites, site)
                return wait
        return None

    def _count(self, wait: Wait) -> None:
        if wait not in self._all:
            self._all[wait] = None
            self._origins[wait.origin] += 1
            self.sites[wait.site] += 1


def in_turns(items: OrderedDict[H, Any]) -> Iterator[H]:
    """Each key once. A key moves to the end when it is yielded, so that the keys after it come first next time."""
    for _ in range(len(items)):
        key = next(iter(items))
        items.move_to_end(key)
        yield key
