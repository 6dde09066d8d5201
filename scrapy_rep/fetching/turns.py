"""How many robots.txt files are fetched at a time (REP_FETCH_CONCURRENCY), however many hosts never answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

SLOW_AFTER_MIN, SLOW_AFTER_MAX = 0.1, 2.0  # seconds
SLOW_FACTOR = 4.0  # times as long as answers usually take
SMOOTHING = 1 / 8  # of the usual time by each answer; RFC 6298 2.3
LOOK_EVERY = 0.02  # seconds
REPEATED_SHARE = 1 / 8  # of the turns, which first fetches leave to repeated fetches
MAX_SLOW = 1_000  # a bound on sockets
SELECT_MAX = 512 if sys.platform == "win32" else 1024  # FD_SETSIZE in CPython, and in C libraries elsewhere
SHARE_OF_FILES = 0.5  # that all fetches together may have open; the pages' downloads need the rest


class Turn:
    """The right to fetch."""

    __slots__ = ("became_slow", "began", "is_repeated")

    def __init__(self, is_repeated: bool, became_slow: Callable[[], None]) -> None:
        self.began = monotonic()
        self.is_repeated = is_repeated
        self.became_slow = became_slow


class FetchTurns:
    """At most so many fetches at a time, not counting slow ones: most of these are of hosts that never answer.

    First fetches go before repeated ones, because more requests wait for them; but they leave some turns to these, so
    that an origin that is known is fetched again however many new ones hang. Of either kind the newest goes first: what
    has waited longer may be behind hosts that never answer.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._limit_of_first = limit - int(REPEATED_SHARE * limit)
        self._max_slow = min(MAX_SLOW, max(int(SHARE_OF_FILES * max_open_files()) - limit, 0))
        self._slow = 0
        self._repeated = 0  # turns taken, but those of slow fetches
        self._first = 0
        self._waiting_repeated: list[Deferred[None]] = []
        self._waiting_first: list[Deferred[None]] = []
        self._usual = 0.125  # seconds that an answer takes, before there are any
        self._turns: dict[Turn, None] = {}  # of fetches that are not slow, in the order in which they began
        self._timer: CallLaterResult | None = None

    async def wait_for_turn(self, *, is_repeated: bool, became_slow: Callable[[], None]) -> Turn:
        """Take a turn, once there is one; `end` gives it back. `became_slow` is called if it lasts too long."""
        if not self._take(is_repeated):
            waiter: Deferred[None] = Deferred()
            (self._waiting_repeated if is_repeated else self._waiting_first).append(waiter)
            await maybe_deferred_to_future(waiter)
        turn = Turn(is_repeated, became_slow)
        self._turns[turn] = None
        if self._timer is None:
            # One timer for all fetches: a crawl would notice the cost of a timer for each.
            self._timer = call_later(LOOK_EVERY, self._look)
        return turn

    def end(self, turn: Turn) -> None:
        """The fetch has ended."""
        if turn in self._turns:
            self._usual += SMOOTHING * (monotonic() - turn.began - self._usual)
            self._give_up(turn)
        else:
            self._slow -= 1

    def _take(self, is_repeated: bool) -> bool:
        """Whether there is a turn, which is taken now."""
        if self._first + self._repeated >= self._limit or (not is_repeated and self._first >= self._limit_of_first):
            return False
        if is_repeated:
            self._repeated += 1
        else:
            self._first += 1
        return True

    def _give_up(self, turn: Turn) -> None:
        """Its fetch no longer counts; another may begin."""
        del self._turns[turn]
        if turn.is_repeated:
            self._repeated -= 1
        else:
            self._first -= 1
        for waiting, is_repeated in ((self._waiting_first, False), (self._waiting_repeated, True)):
            while waiting and waiting[-1].called:  # it was cancelled
                waiting.pop()
            if waiting and self._take(is_repeated):
                waiting.pop().callback(None)
                return

    def _look(self) -> None:
        """Let another fetch begin for each one that has become slow."""
        began_before = monotonic() - min(max(SLOW_FACTOR * self._usual, SLOW_AFTER_MIN), SLOW_AFTER_MAX)
        for turn in list(self._turns):
            if turn.began > began_before or self._slow >= self._max_slow:
                break
            self._slow += 1
            turn.became_slow()
            self._give_up(turn)
        self._timer = call_later(LOOK_EVERY, self._look) if self._turns else None


def max_open_files() -> int:
    """How many files and sockets this process may have open: by its limit, and by that of `select` where the reactor
    uses it."""
    if sys.platform == "win32":
        return SELECT_MAX
    import resource  # Windows has none  # noqa: PLC0415

    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    # Scrapy imports it only in crawls that use it.
    return min(limit, SELECT_MAX) if "twisted.internet.selectreactor" in sys.modules else limit
