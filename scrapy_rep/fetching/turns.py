"""How many robots.txt files are fetched at a time (REP_FETCH_CONCURRENCY), whatever hosts never answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

SLOW_AFTER = 1.0  # seconds
MAX_SLOW = 1_000  # a bound on sockets


class FetchTurns:
    """At most so many fetches at a time, not counting those that have had no answer for a while.

    The newest goes first: older ones have been overtaken by others all along, and may be of hosts that never answer.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._slow = 0
        self._waiting: list[Deferred[None]] = []

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and take it for the time of a fetch."""
        if self._free:
            self._free -= 1
        else:
            waiter: Deferred[None] = Deferred(self._waiting.remove)
            self._waiting.append(waiter)
            await maybe_deferred_to_future(waiter)
        turn = _Turn()
        timer = call_later(SLOW_AFTER, self._give_early, turn)
        try:
            yield
        finally:
            timer.cancel()
            if turn.is_given:
                self._slow -= 1
            else:
                self._give()

    def _give_early(self, turn: _Turn) -> None:
        if self._slow < MAX_SLOW:
            self._slow += 1
            turn.is_given = True
            self._give()

    def _give(self) -> None:
        """The turn to another fetch."""
        if self._waiting:
            self._waiting.pop().callback(None)
        else:
            self._free += 1


class _Turn:
    is_given = False
    """To another fetch, although this one goes on."""
