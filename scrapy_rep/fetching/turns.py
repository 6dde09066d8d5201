"""How many robots.txt files are fetched at a time (REP_FETCH_CONCURRENCY), however many hosts never answer."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from time import monotonic

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

SLOW_AFTER_MIN, SLOW_AFTER_MAX = 0.1, 2.0  # seconds
SLOW_FACTOR = 4.0  # times as long as answers usually take
SMOOTHING = 1 / 8  # of the usual time by each answer; RFC 6298 2.3
MIN_PAUSE = 0.01  # seconds between two looks for slow fetches
MAX_SLOW = 1_000  # a bound on sockets
SELECT_MAX = 512 if sys.platform == "win32" else 1024  # FD_SETSIZE in CPython, and in C libraries elsewhere
SHARE_OF_FILES = 0.5  # that all fetches together may have open; the pages' downloads need the rest


class FetchTurns:
    """At most so many fetches at a time, not counting slow ones.

    First fetches go before repeated ones. Of these the newest goes first: what has waited longer may be behind hosts
    that never answer.
    """

    def __init__(self, limit: int, on_slow: Callable[[], None] = lambda: None) -> None:
        self._free = limit
        self._on_slow = on_slow
        self.slow = 0
        """Fetches under way that are slow."""
        self._max_slow = min(MAX_SLOW, max(int(SHARE_OF_FILES * max_open_files()) - limit, 0))
        self._usual = 0.125  # seconds that an answer takes, before there are any
        self._numbers = count()
        self._waiting: list[tuple[bool, int, Deferred[None]]] = []
        self._counted: set[_Turn] = set()
        """Those of fetches that are not slow yet."""
        self._look_at = inf  # by a monotonic clock
        self._timer: CallLaterResult | None = None

    @asynccontextmanager
    async def turn(self, *, is_repeated: bool) -> AsyncIterator[None]:
        """Wait for a turn, and take it for the time of a fetch."""
        if self._free:
            self._free -= 1
        else:
            waiter: Deferred[None] = Deferred()
            heappush(self._waiting, (is_repeated, -next(self._numbers), waiter))
            await maybe_deferred_to_future(waiter)
        began = monotonic()
        turn = _Turn(began + min(max(SLOW_FACTOR * self._usual, SLOW_AFTER_MIN), SLOW_AFTER_MAX))
        self._counted.add(turn)
        self._look_by(turn.slow_from)
        try:
            yield
        finally:
            if turn in self._counted:
                self._counted.remove(turn)
                self._usual += SMOOTHING * (monotonic() - began - self._usual)
                self._give()
            else:
                self.slow -= 1

    def _look_by(self, moment: float) -> None:
        # One timer for all fetches: a crawl would notice the cost of one for each.
        if moment < self._look_at:
            if self._timer is not None:
                self._timer.cancel()
            self._look_at = moment
            self._timer = call_later(max(moment - monotonic(), MIN_PAUSE), self._look)

    def _look(self) -> None:
        """Let another fetch begin for each one that has become slow."""
        self._look_at, self._timer = inf, None
        now = monotonic()
        for turn in [turn for turn in self._counted if turn.slow_from <= now]:
            if self.slow < self._max_slow:
                self.slow += 1
                self._counted.remove(turn)
                self._give()
                self._on_slow()
        if self._counted:
            self._look_by(min(turn.slow_from for turn in self._counted))

    def _give(self) -> None:
        while self._waiting:
            waiter = heappop(self._waiting)[-1]
            if not waiter.called:  # else it was cancelled
                waiter.callback(None)
                return
        self._free += 1


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    slow_from: float
    """By a monotonic clock, in seconds."""


def max_open_files() -> int:
    """By the limit of the process, and by that of `select` where the reactor uses it."""
    if sys.platform == "win32":
        return SELECT_MAX
    import resource  # Windows has none  # noqa: PLC0415

    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    # Scrapy imports it only in crawls that use it.
    return min(limit, SELECT_MAX) if "twisted.internet.selectreactor" in sys.modules else limit
