"""How many robots.txt files are fetched at a time (REP_FETCH_CONCURRENCY), however many hosts never answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

# What is slow is learnt from the answers, because no constant fits. With 2 s, 64 turns and 1,000 dead sites first, the
# other sites would wait for half a minute; with 0.1 s, servers that take 0.2 s would not count against the limit.
SLOW_AFTER_MIN, SLOW_AFTER_MAX = 0.1, 2.0  # seconds
SLOW_FACTOR = 4.0  # times as long as answers usually take
SLOW_FACTOR_OF_MANY = 2.0  # the same while REP_FETCH_CONCURRENCY fetches or more are slow: most others will be, too
SMOOTHING = 1 / 8  # of the usual time by each answer; RFC 6298 2.3
LOOK_EVERY = 0.02  # seconds
REPEATED_SHARE = 1 / 8  # of the turns, which first fetches leave to repeated fetches
ROOM = 2  # times REP_FETCH_CONCURRENCY: first fetches under way, while more may begin soon
MAX_SLOW = 1_000  # a bound on sockets
SELECT_MAX = 512 if sys.platform == "win32" else 1024  # FD_SETSIZE in CPython, and in C libraries elsewhere
SHARE_OF_FILES = 0.5  # that all fetches together may have open; the pages' downloads need the rest


class Line:
    """Fetches of one kind, first or repeated: how many have a turn, not counting slow ones, and which wait for it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Of the turns that this kind may have."""
        self.taken = 0
        self.waiting: list[Deferred[None]] = []


@dataclass(eq=False, slots=True)
class Turn:
    """The right to fetch."""

    line: Line
    began: float


class FetchTurns:
    """At most `limit` fetches at a time, not counting slow fetches: most of these are of hosts that never answer.

    First fetches go before repeated ones, because more requests wait for them; but they leave some turns to these, so
    that an origin that is known is fetched again however many new ones hang. Of either kind the newest goes first: what
    has waited longer may be behind hosts that never answer.
    """

    def __init__(self, limit: int, on_room: Callable[[], None]) -> None:
        """`on_room` is called when there may be room for one more fetch."""
        self._limit = limit
        self.on_room = on_room
        self.without_turn = 0
        """Fetches that take room without a turn: they have just begun, ask a store, or are held up by a handler."""
        self._first, self._repeated = self._lines = Line(limit - int(REPEATED_SHARE * limit)), Line(limit)
        self._max_slow = min(MAX_SLOW, max(int(SHARE_OF_FILES * max_open_files()) - limit, 0))
        self._slow = 0
        self._usual = 0.125  # seconds that an answer takes, before there are any
        self._turns: dict[Turn, None] = {}  # of fetches that are not slow, in the order in which they began
        self._timer: CallLaterResult | None = None

    def has_room(self) -> bool:
        """Whether one more fetch would begin soon. Fetches that are slow, repeated or pausing take no room."""
        return self.without_turn + self._first.taken + len(self._first.waiting) < ROOM * self._limit

    @contextmanager
    def taking_room(self) -> Iterator[None]:
        """For this long a fetch takes room without a turn."""
        self.without_turn += 1
        try:
            yield
        finally:
            self.without_turn -= 1
            self.on_room()

    async def wait_for_turn(self, *, is_repeated: bool) -> Turn:
        """Take a turn, once there is one; `end` gives it back."""
        line = self._repeated if is_repeated else self._first
        if not self._take(line):
            waiter: Deferred[None] = Deferred()
            line.waiting.append(waiter)
            await maybe_deferred_to_future(waiter)
        turn = Turn(line, monotonic())
        self._turns[turn] = None
        if self._timer is None:
            # One timer for all fetches: a crawl would notice the cost of a timer for each.
            self._timer = call_later(LOOK_EVERY, self._look)
        return turn

    def end(self, turn: Turn, *, is_answered: bool) -> None:
        """The fetch has ended."""
        if is_answered:
            # A server that takes minutes counts no more than one that is just slow.
            took = min(monotonic() - turn.began, SLOW_AFTER_MAX / SLOW_FACTOR)
            self._usual += SMOOTHING * (took - self._usual)
        if turn in self._turns:
            self._give_up(turn)
        else:
            self._slow -= 1

    def _take(self, line: Line) -> bool:
        """Whether there is a turn, which is taken now."""
        if line.taken >= line.limit or sum(each.taken for each in self._lines) >= self._limit:
            return False
        line.taken += 1
        return True

    def _give_up(self, turn: Turn) -> None:
        """Its fetch no longer counts; another may begin."""
        del self._turns[turn]
        turn.line.taken -= 1
        for line in self._lines:
            while line.waiting and line.waiting[-1].called:  # it was cancelled
                line.waiting.pop()
            if line.waiting and self._take(line):
                line.waiting.pop().callback(None)
                break
        self.on_room()

    def _look(self) -> None:
        """Let another fetch begin for each one that has become slow."""
        factor = SLOW_FACTOR if self._slow < self._limit else SLOW_FACTOR_OF_MANY
        began_before = monotonic() - min(max(factor * self._usual, SLOW_AFTER_MIN), SLOW_AFTER_MAX)
        for turn in list(self._turns):
            if turn.began > began_before or self._slow >= self._max_slow:
                break
            self._slow += 1
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
