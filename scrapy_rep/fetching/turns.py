"""How many robots.txt files are fetched at a time (REP_FETCH_CONCURRENCY), however many hosts never answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count
from time import monotonic

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.fetching.open_files import max_open_files

SLOW_AFTER_MIN, SLOW_AFTER_MAX = 0.1, 2.0  # seconds
SLOW_FACTOR = 4.0  # times as long as answers usually take
SMOOTHING = 1 / 8  # of the usual time by each answer; RFC 6298 2.3
MAX_SLOW = 1_000  # a bound on sockets
SHARE_OF_FILES = 0.5  # that all fetches together may have open; the pages' downloads need the rest


class FetchTurns:
    """At most so many fetches at a time, not counting slow ones.

    First fetches go before repeated ones. Of these the newest goes first: what has waited longer may be behind hosts
    that never answer.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._slow = 0
        self._max_slow = min(MAX_SLOW, max(int(SHARE_OF_FILES * max_open_files()) - limit, 0))
        self._usual = 0.125  # seconds that an answer takes, before there are any
        self._numbers = count()
        self._waiting: list[tuple[bool, int, Deferred[None]]] = []

    @asynccontextmanager
    async def turn(self, *, is_repeated: bool) -> AsyncIterator[None]:
        """Wait for a turn, and take it for the time of a fetch."""
        if self._free:
            self._free -= 1
        else:
            waiter: Deferred[None] = Deferred()
            heappush(self._waiting, (is_repeated, -next(self._numbers), waiter))
            await maybe_deferred_to_future(waiter)
        began, turn = monotonic(), _Turn()
        slow_after = min(max(SLOW_FACTOR * self._usual, SLOW_AFTER_MIN), SLOW_AFTER_MAX)
        timer = call_later(slow_after, self._give_early, turn)
        try:
            yield
        finally:
            timer.cancel()
            if turn.is_given:
                self._slow -= 1
            else:
                self._usual += SMOOTHING * (monotonic() - began - self._usual)
                self._give()

    def _give_early(self, turn: _Turn) -> None:
        """It is slow: another fetch may begin."""
        if self._slow < self._max_slow:
            self._slow += 1
            turn.is_given = True
            self._give()

    def _give(self) -> None:
        while self._waiting:
            waiter = heappop(self._waiting)[-1]
            if not waiter.called:  # else it was cancelled
                waiter.callback(None)
                return
        self._free += 1


class _Turn:
    is_given = False
    """To another fetch, although this one goes on."""
