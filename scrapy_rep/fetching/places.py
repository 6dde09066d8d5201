"""Limits how many connections there are at a time (CONCURRENT_REQUESTS, REP_FETCH_CONCURRENCY).

A connection needs a place from the call of the download handler until its end. Which places count is one table:

| | a page | a robots.txt |
|---|---|---|
| through a proxy | CONCURRENT_REQUESTS | CONCURRENT_REQUESTS, slow or not |
| REP_FETCH_CONCURRENCY is 0 | CONCURRENT_REQUESTS | CONCURRENT_REQUESTS, until it is slow |
| else | Scrapy's downloader limits it | REP_FETCH_CONCURRENCY, until it is slow |

If the project sets CONCURRENT_REQUESTS, the default of REP_FETCH_CONCURRENCY is 0: pages and robots.txt files share the
places. A slow robots.txt (SLOW_AFTER) does not count: a host that never answers must not delay the others. A proxy
counts its connections itself, so there it counts.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from operator import itemgetter

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.engine_state import look_for_requests
from scrapy_rep.settings import RepSettings

SLOW_AFTER = 0.5  # seconds after which a request for a robots.txt is slow, counted from when it has its place
OTHERS_EVERY = 8  # every eighth place goes to a page or a robots.txt that was requested before, if one waits
# While this many times the places for fetches are needed soon, no other fetch should begin: it would wait long.
MAX_STARTING = 2
MAX_SLOW = 1_000  # slow requests under way; each takes a socket
SELECT_MAX = 512 if sys.platform == "win32" else 1024  # FD_SETSIZE; CPython sets it on Windows, elsewhere the C library
SHARE_OF_FILES = 0.5  # the share of `max_open_files()` that places may use


class Places:
    """Places for connections, `number` at a time.

    The request with the highest priority gets the next place; of those, the one that came first. But every eighth place
    (OTHERS_EVERY) goes to a page or to a robots.txt that was requested before: to the one that has waited longest. So
    no page starves, and known origins are fetched again, whatever the priorities.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._left = number + min(MAX_SLOW, max(int(SHARE_OF_FILES * max_open_files()) - number, 0))
        """How many more requests may be under way, slow ones included."""
        self._line: list[tuple[int, int, bool, Deferred[None]]] = []
        """The requests that wait, as sorted tuples: negative priority, number of the arrival, `is_first`, `place`."""
        self._taken: set[Deferred[None]] = set()
        self._arrivals = count()
        self._given = 1

    @asynccontextmanager
    async def taken(
        self, place: Deferred[None], priority: int, *, is_first: bool, on_slow: Callable[[], None] | None
    ) -> AsyncIterator[None]:
        """Wait for a place, and have it during the `async with` block.

        `place` fires when the block begins, unless it was cancelled before. `is_first`: whether the request is for a
        robots.txt that was not requested before. With `on_slow`, the place is given back after SLOW_AFTER already, and
        then `on_slow` is called.
        """
        waiting = -priority, next(self._arrivals), is_first, place
        insort(self._line, waiting)
        timer = None
        try:
            self._give()
            if place not in self._taken:
                await maybe_deferred_to_future(place)
            if on_slow is not None:
                timer = call_later(SLOW_AFTER, self._slow, place, on_slow)
            yield
        finally:
            if timer is not None:
                timer.cancel()
            if waiting in self._line:  # cancelled before it had its place
                self._line.remove(waiting)
            else:
                self._left += 1
                self._give_back(place)

    def _slow(self, place: Deferred[None], on_slow: Callable[[], None]) -> None:
        self._give_back(place)
        on_slow()

    def _give_back(self, place: Deferred[None]) -> None:
        self._taken.discard(place)
        self._give()

    def _give(self) -> None:
        while self._line and len(self._taken) < self._number and self._left:
            place = self._next()
            self._taken.add(place)
            self._left -= 1
            self._given += 1
            place.callback(None)

    def _next(self) -> Deferred[None]:
        """Take the place to give next out of the line."""
        waiting = self._line[0]
        if self._given % OTHERS_EVERY == 0:
            waiting = min((each for each in self._line if not each[2]), key=itemgetter(1), default=waiting)
        self._line.remove(waiting)
        return waiting[-1]


class Connections:
    """Which places a request needs, and whether one more fetch would soon get its place."""

    def __init__(self, crawler: Crawler, settings: RepSettings) -> None:
        self._crawler = crawler
        most = crawler.settings.getint("CONCURRENT_REQUESTS") or sys.maxsize
        self._all = Places(most)
        self._on_top = Places(settings.fetch_concurrency) if settings.fetch_concurrency else None
        self.enough = MAX_STARTING * (settings.fetch_concurrency or most)
        """How many fetches may need a place soon."""
        self._starting: set[Origin] = set()
        """The origins for which requests wait, and whose fetch needs a place soon, or has it and is not slow yet."""

    def places_for(self, *, is_robots_txt: bool, has_proxy: bool) -> Places | None:
        """Return None if the request needs no place."""
        if has_proxy or self._on_top is None:
            return self._all
        return self._on_top if is_robots_txt else None

    def can_start_another(self) -> bool:
        """Whether one more fetch would soon get its place."""
        return len(self._starting) < self.enough

    def starts(self, origin: Origin) -> None:
        """The fetch of this origin's robots.txt begins, and needs a place soon."""
        self._starting.add(origin)

    def has_started(self, origin: Origin | None) -> None:
        """The fetch needs no place soon: it is slow, has ended, pauses, repeats, or waits for another crawler."""
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
