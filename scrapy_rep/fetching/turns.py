"""Limits how many robots.txt files of all origins are fetched at a time (REP_FETCH_CONCURRENCY).

It also decides which fetch is next.

Slow requests (SLOW_AFTER) do not count: a host that never answers must not delay the others.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.protocol.origin import Origin

SLOW_AFTER = 0.5  # seconds after which a request that has begun is slow
REPEATED_EVERY = 8  # every eighth turn goes to a robots.txt that was requested before, if one waits
# While MAX_STARTING * REP_FETCH_CONCURRENCY fetches need a turn soon, no other fetch should begin: it would wait long.
MAX_STARTING = 2
MAX_SLOW = 1_000  # slow requests under way; each takes a socket
SELECT_MAX = 512 if sys.platform == "win32" else 1024  # FD_SETSIZE; CPython sets it on Windows, elsewhere the C library
SHARE_OF_FILES = 0.5  # the share of `max_open_files()` that fetches may use; downloads of pages need the rest


@dataclass(eq=False, slots=True)
class _Turn:
    """The right to make one request for a robots.txt."""

    origin: Origin
    """The origin whose robots.txt is fetched."""
    was_requested_before: bool
    """Whether this robots.txt was requested before, in the same fetch or earlier."""
    given: Deferred[None] = field(default_factory=Deferred)
    """Fires when the request may begin."""
    timer: CallLaterResult | None = None
    """Fires when the request becomes slow; None before the turn is given."""


class FetchTurns:
    """Gives turns to requests for a robots.txt, at most `limit` at a time.

    Each robots.txt is fetched because of another request. The priority of that request decides which turn is next: the
    highest first, and the oldest first if priorities are equal. But every eighth turn (REPEATED_EVERY) goes to a
    robots.txt that was requested before: to the request that has waited longest. So known origins are fetched again,
    whatever the priorities.
    """

    def __init__(self, limit: int, on_change: Callable[[], None]) -> None:
        """`on_change` is called when the result of `can_start_another` may have changed."""
        self._limit = limit
        self._max_under_way = limit + min(MAX_SLOW, max(int(SHARE_OF_FILES * max_open_files()) - limit, 0))
        self.on_change = on_change
        self._starting: set[Origin] = set()
        """The origins with a first request for robots.txt that waits for its turn, or has it and is not slow yet. An
        origin is removed when its robots.txt is requested again."""
        self._line: list[tuple[int, int, _Turn]] = []
        """The turns that requests wait for, as sorted tuples: negative priority, number of the arrival, turn."""
        self._arrivals = count()
        self._given = 1
        self._under_way: set[_Turn] = set()
        self._not_slow: set[_Turn] = set()

    def can_start_another(self) -> bool:
        """Whether one more fetch would soon get its turn."""
        return len(self._starting) < MAX_STARTING * self._limit

    def announce(self, origin: Origin) -> None:
        """The fetch of this origin's robots.txt begins, and needs a turn soon."""
        self._starting.add(origin)

    def withdraw(self, origin: Origin) -> None:
        """The fetch needs no turn soon: it has ended, pauses, or waits for another crawler."""
        if origin in self._starting:
            self._starting.remove(origin)
            self.on_change()

    @asynccontextmanager
    async def turn(self, origin: Origin, priority: int, *, was_requested_before: bool) -> AsyncIterator[None]:
        """Wait for a turn. It ends with the `async with` block."""
        turn = _Turn(origin, was_requested_before)
        place = -priority, next(self._arrivals), turn
        insort(self._line, place)
        if was_requested_before:
            self.withdraw(origin)
        else:
            self._starting.add(origin)
        try:
            self._give_turns()
            if not turn.given.called:
                await maybe_deferred_to_future(turn.given)
            yield
        finally:
            if turn.timer is None:  # cancelled before its turn
                self._line.remove(place)
            else:
                turn.timer.cancel()
            self._under_way.discard(turn)
            self._stop_counting(turn)

    def _give_turns(self) -> None:
        while len(self._not_slow) < self._limit and len(self._under_way) < self._max_under_way:
            turn = self._next()
            if turn is None:
                break
            self._under_way.add(turn)
            self._not_slow.add(turn)
            self._given += 1
            turn.timer = call_later(SLOW_AFTER, self._stop_counting, turn)
            turn.given.callback(None)

    def _next(self) -> _Turn | None:
        """Take the turn to give next out of the line; None if no request waits."""
        if not self._line:
            return None
        place = self._line[0]
        if self._given % REPEATED_EVERY == 0:
            place = min(
                (place for place in self._line if place[-1].was_requested_before), key=itemgetter(1), default=place
            )
        self._line.remove(place)
        return place[-1]

    def _stop_counting(self, turn: _Turn) -> None:
        """The request is slow or has ended, so another one may begin."""
        self._not_slow.discard(turn)
        self._starting.discard(turn.origin)
        self._give_turns()
        self.on_change()


def max_open_files() -> int:
    """Return how many files and sockets this process may have open. With a `select` reactor, its limit counts, too."""
    if sys.platform == "win32":
        return SELECT_MAX
    import resource  # Windows has none  # noqa: PLC0415

    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    # Only a crawl that uses this reactor has imported it.
    return min(limit, SELECT_MAX) if "twisted.internet.selectreactor" in sys.modules else limit
