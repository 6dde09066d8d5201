"""Limits how many connections there are at a time (CONCURRENT_REQUESTS, REP_FETCH_CONCURRENCY).

A connection needs a place from the call of the download handler until its end. Which places count is one table:

| | a page from the scheduler | a robots.txt |
|---|---|---|
| through a proxy | CONCURRENT_REQUESTS | CONCURRENT_REQUESTS, slow or not |
| REP_FETCH_CONCURRENCY is 0 | CONCURRENT_REQUESTS | CONCURRENT_REQUESTS, until it is slow |
| else | Scrapy's downloader limits it | REP_FETCH_CONCURRENCY, until it is slow |

A page that does not come from the scheduler (`engine.download_async`, a media pipeline) needs no place, because Scrapy
does not limit it. A download handler may even wait for such a page while its own has a place.

If the project sets CONCURRENT_REQUESTS, the default of REP_FETCH_CONCURRENCY is 0: pages and robots.txt files share the
places. A slow robots.txt (SLOW_AFTER) does not count: a host that never answers must not delay the others. A proxy
counts its connections itself, so there it counts.
"""

import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from scrapy import Request
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import limit_of_downloader
from scrapy_rep.scrapy_internals.engine_state import look_for_requests

SLOW_AFTER = 0.5  # seconds after which a request for a robots.txt is slow, counted from when it has its place
# While this many times the places for fetches are needed soon, no other fetch should begin: it would wait long.
STARTING_PER_PLACE = 2
MAX_SLOW = 1_000  # slow requests under way; each takes a socket
SELECT_MAX = 512 if sys.platform == "win32" else 1024  # FD_SETSIZE; CPython sets it on Windows, elsewhere the C library
SHARE_OF_FILES = 0.5  # the share of `max_open_files()` that places may use


class Places:
    """Places for connections, first come, first served."""

    def __init__(self, number: Callable[[], int]) -> None:
        self.number = number
        """Returns how many places there are. It is called whenever a place may be given."""
        self._max_files = int(SHARE_OF_FILES * max_open_files())
        self._line: deque[Deferred[None]] = deque()
        self._taken: set[Deferred[None]] = set()
        self._number_slow = 0
        """The number of requests that are under way without their place, because they are slow."""
        self._is_giving = False

    @asynccontextmanager
    async def taken(self, place: Deferred[None], on_slow: Callable[[], None] | None) -> AsyncIterator[None]:
        """Wait for a place, and have it during the `async with` block.

        `place` fires when the block begins, unless it was cancelled before. With `on_slow`, the place is given back
        after SLOW_AFTER already, and then `on_slow` is called.
        """
        self._line.append(place)
        timer = None
        try:
            self._give()
            await maybe_deferred_to_future(place)
            if on_slow is not None:
                timer = call_later(SLOW_AFTER, self._slow, place, on_slow)
            yield
        finally:
            if timer is not None:
                timer.cancel()
            if place in self._taken:
                self._taken.remove(place)
            elif place in self._line:  # cancelled before it had its place
                self._line.remove(place)
            else:
                self._number_slow -= 1
            self._give()

    def _slow(self, place: Deferred[None], on_slow: Callable[[], None]) -> None:
        self._taken.remove(place)
        self._number_slow += 1
        self._give()
        on_slow()

    def open_up(self) -> None:
        """Give everybody a place, as far as there are sockets."""
        number = max(self.number(), self._max_files)
        self.number = lambda: number
        self._give()

    def _give(self) -> None:
        # Without asyncio, a request may end, and come here, within `callback`.
        if self._is_giving or not self._line:
            return
        self._is_giving, number = True, self.number()
        most = max(number, min(number + MAX_SLOW, self._max_files))
        while self._line and len(self._taken) < min(number, most - self._number_slow):
            self._taken.add(place := self._line.popleft())
            place.callback(None)
        self._is_giving = False


class Connections(Part):
    """Which places a request needs, and whether one more fetch would soon get its place."""

    def __init__(self, crawl: Crawl) -> None:
        super().__init__(crawl)
        self._all = Places(lambda: limit_of_downloader(crawl.crawler))
        self._on_top = Places(lambda: crawl.settings.fetch_concurrency) if crawl.settings.fetch_concurrency else None
        self.is_from_scheduler: Callable[[Request], bool | None] = lambda _request: None
        """`SchedulerDoor.is_from_scheduler`"""
        self._starting: set[Origin] = set()
        """The origins for which requests wait, and whose fetch needs a place soon, or has it and is not slow yet."""

    def places_for(self, request: Request, *, is_robots_txt: bool) -> Places | None:
        """Return None if the request needs no place."""
        if self._on_top is not None and not request.meta.get("proxy"):
            return self._on_top if is_robots_txt else None
        return self._all if is_robots_txt or self.is_from_scheduler(request) is not False else None

    @property
    def max_starting(self) -> int:
        """The most fetches that may need a place soon."""
        return STARTING_PER_PLACE * (self._on_top or self._all).number()

    def can_start_another(self) -> bool:
        """Whether one more fetch would soon get its place."""
        return len(self._starting) < self.max_starting

    def begin_close(self) -> None:
        """Step 1 of a stop (`middleware`). A download handler may wait, in its place, for a request that has none. Then
        only a place for everybody lets the crawl end."""
        for places in (self._all, self._on_top or self._all):
            places.open_up()

    def add_starting(self, origin: Origin) -> None:
        """The fetch of this origin's robots.txt needs a place soon. `SingleFlight` calls this and `remove_starting`."""
        self._starting.add(origin)

    def remove_starting(self, origin: Origin) -> None:
        """The fetch needs no place soon (`Triggers.needs_no_place`), or has ended."""
        if origin in self._starting:
            self._starting.remove(origin)
            look_for_requests(self._crawler)


def max_open_files() -> int:
    """Return how many files and sockets this process may have open. With a `select` reactor, its limit counts, too."""
    if sys.platform == "win32":
        return SELECT_MAX
    import resource  # Windows has none  # noqa: PLC0415

    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    # Only a crawl that uses this reactor has imported it.
    return min(limit, SELECT_MAX) if "twisted.internet.selectreactor" in sys.modules else limit
