"""Limits how many robots.txt files are fetched at a time (REP_FETCH_CONCURRENCY). Hosts that hang do not count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

SLOW_AFTER = 0.5  # seconds after which a request that has begun is slow
LOOK_AFTER = 0.02  # seconds between two looks for slow requests, at least
REPEATED_EVERY = 8  # every eighth turn goes to a repeated request, if one waits
ROOM = 2  # a multiple of REP_FETCH_CONCURRENCY; with so many first requests, one more would not begin soon
MAX_SLOW = 1_000  # slow requests under way; each takes a socket
SELECT_MAX = 512 if sys.platform == "win32" else 1024  # FD_SETSIZE in CPython, and in C libraries elsewhere
SHARE_OF_FILES = 0.5  # the share of `max_open_files()` that fetches may use; downloads of pages need the rest


@dataclass(eq=False, slots=True)
class Turn:
    """The right to make one request for a robots.txt."""

    is_repeated: bool
    """Whether the robots.txt was requested before."""
    given: Deferred[None] = field(default_factory=Deferred)
    began: float | None = None
    """When the turn was given, in seconds of the monotonic clock; None before."""


class FetchTurns:
    """Gives turns to requests for a robots.txt, at most `limit` at a time.

    A slow request does not count, because its host will probably never answer.

    The priority of the request that needs the robots.txt decides which turn is next: the highest first, and the oldest
    first if priorities are equal. But every eighth turn (REPEATED_EVERY) goes to a repeated request. So known origins
    are fetched again, whatever the priorities.
    """

    def __init__(self, limit: int, monotonic: Callable[[], float], on_room: Callable[[], None]) -> None:
        """`on_room` is called when one more fetch may begin soon (`has_room`)."""
        self._limit = limit
        self._monotonic = monotonic
        self.on_room = on_room
        self.without_turn = 0
        """The number of fetches that count in `has_room` but have no turn: they have just begun, or ask a store."""
        # Heaps of the turns that requests wait for.
        self._first: list[tuple[int, int, Turn]] = []
        self._repeated: list[tuple[int, int, Turn]] = []
        self._arrivals = count()
        self._given = 1
        self._turns: dict[Turn, None] = {}  # turns of requests that are not slow, the earliest first
        self._firsts = 0  # how many of these turns are of first requests
        self._slow = 0
        self._max_slow = min(MAX_SLOW, max(int(SHARE_OF_FILES * max_open_files()) - limit, 0))
        self._is_looking = False

    def has_room(self) -> bool:
        """Whether one more fetch would begin soon. Slow and repeated requests take no room."""
        return self.without_turn + self._firsts + len(self._first) < ROOM * self._limit

    @contextmanager
    def taking_room(self) -> Iterator[None]:
        """Count a fetch without a turn in `has_room`, while the `with` block runs."""
        self.without_turn += 1
        try:
            yield
        finally:
            self.without_turn -= 1
            self.on_room()

    async def wait_for_turn(self, priority: int, *, is_repeated: bool) -> Turn:
        """Wait for a turn and return it; `end` gives it back."""
        turn = Turn(is_repeated)
        heappush(self._repeated if is_repeated else self._first, (-priority, next(self._arrivals), turn))
        self._give()
        if turn.began is None:
            try:
                await maybe_deferred_to_future(turn.given)
            except BaseException:  # it was cancelled, perhaps after the turn was given
                self.end(turn)
                raise
        return turn

    def end(self, turn: Turn) -> None:
        """Give the turn back: its request has ended."""
        if turn in self._turns:
            self._take_back(turn)
        elif turn.began is not None:
            self._slow -= 1

    def _give(self) -> None:
        while len(self._turns) < self._limit and (turn := self._next()) is not None:
            turn.began = self._monotonic()
            self._turns[turn] = None
            self._firsts += not turn.is_repeated
            turn.given.callback(None)
        if self._turns and not self._is_looking:
            self._is_looking = True
            # One timer serves all requests, because a timer for each would slow the crawl.
            call_later(SLOW_AFTER, self._look)

    def _next(self) -> Turn | None:
        """The turn to give next; None if no request waits."""
        while heaps := [heap for heap in (self._first, self._repeated) if heap]:
            is_for_repeated = self._repeated and self._given % REPEATED_EVERY == 0
            turn = heappop(self._repeated if is_for_repeated else min(heaps))[-1]
            if not turn.given.called:  # else it was cancelled
                self._given += 1
                return turn
        return None

    def _take_back(self, turn: Turn) -> None:
        """Stop counting the turn, so that another request may begin."""
        del self._turns[turn]
        self._firsts -= not turn.is_repeated
        self._give()
        self.on_room()

    def _look(self) -> None:
        """Let another request begin for each one that has become slow."""
        now = self._monotonic()
        for turn in list(self._turns):
            if _slow_at(turn) > now or self._slow >= self._max_slow:
                break
            self._slow += 1
            self._take_back(turn)
        oldest = next(iter(self._turns), None)
        self._is_looking = oldest is not None
        if oldest is not None:
            call_later(max(_slow_at(oldest) - now, LOOK_AFTER), self._look)


def _slow_at(turn: Turn) -> float:
    """When the request of a given turn becomes slow, in seconds of the monotonic clock."""
    return (turn.began or 0.0) + SLOW_AFTER


def max_open_files() -> int:
    """Return how many files and sockets this process may have open. With a `select` reactor, its limit counts, too."""
    if sys.platform == "win32":
        return SELECT_MAX
    import resource  # Windows has none  # noqa: PLC0415

    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    # Only a crawl that uses this reactor has imported it.
    return min(limit, SELECT_MAX) if "twisted.internet.selectreactor" in sys.modules else limit
