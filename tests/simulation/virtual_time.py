"""An event loop whose clock jumps to the next timer when nothing is ready. Import this module before Scrapy.

Scrapy and scrapy-rep bind `time` and `monotonic` when they are imported, so both are replaced here, at import. Outside
a simulation they still tell the real time.

A crawl runs in a `Member`'s context: each callback of the crawl knows its member by the context variable MEMBER. So
each member has a clock of its own, and can be killed: its callbacks are taken out of the loop. A kill must not cancel
tasks: their `finally` blocks would run, which a killed process never does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any

START = 1_000.0  # seconds of the monotonic clock at the beginning of a case
EPOCH = 1_800_000_000.0  # seconds since the epoch at the beginning of a case, by a clock that is right
TURN = 1e-6  # seconds for a turn of the loop: a timer that is due in less than a float's last digit would spin
LOOK = 2e-5  # seconds for a look at the clock: code that works until some milliseconds are over comes to an end
SOON = 1.0  # seconds within which a timer may run out by itself when its crawl is over
MAX_TURNS_AT_ONCE = 200_000  # turns of the loop within one virtual second, after which it counts as spinning

real_time, real_monotonic = time.time, time.monotonic


class Member:
    """A crawler of the simulation: what its wall clock adds to the true time, and whether it was killed."""

    def __init__(self, name: str, clock: list[list[float]]) -> None:
        """`clock`: from which second of the case on the wall clock is wrong by how many seconds."""
        self.name = name
        self.clock = clock
        self.context: Context = copy_context()
        self.context.run(MEMBER.set, self)

    def clock_error(self, now: float) -> float:
        """Seconds that this member's wall clock is ahead, `now` seconds after the beginning of the case."""
        return next((error for begin, error in reversed(self.clock) if begin <= now), 0.0)


MEMBER: ContextVar[Member | None] = ContextVar("MEMBER", default=None)


class NeverEndsError(Exception):
    """The simulation cannot come to an end."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time: it never waits. Sockets and threads do not work in it."""

    def __init__(self, max_seconds: float) -> None:
        super().__init__()
        self.now = START
        self.until = START + max_seconds
        self.killed: list[Any] = []  # kept, because collecting a coroutine would run its `finally` blocks
        self._second, self._turns = 0, 0
        vars(self)["_selector"].select = lambda _timeout: ()  # a system call for each turn would be half of the time

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        if not ready:
            while scheduled and scheduled[0]._cancelled:
                # As asyncio does it, which would wait for real time otherwise.
                self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
                asyncio.base_events.heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
            if not scheduled:
                raise NeverEndsError("nothing is left to run: everybody waits, and no timer is set")
            self.now = max(self.now, scheduled[0]._when)
        self.now += TURN
        if self.now > self.until:
            raise NeverEndsError(f"still running after {self.now - START:.0f} virtual seconds")
        second = int(self.now)
        self._turns = self._turns + 1 if second == self._second else 0
        self._second = second
        if self._turns > MAX_TURNS_AT_ONCE:
            raise NeverEndsError(f"the event loop spins at {self.now - START:.3f}")
        super()._run_once()  # type: ignore[misc]

    def kill(self, member: Member) -> None:
        """Take everything that the member would do out of the loop."""
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        mine = [handle for handle in [*ready, *scheduled] if is_of(handle, member)]
        self.killed += mine
        others = [handle for handle in ready if not is_of(handle, member)]
        nothing = asyncio.Handle(id, (self,), self)
        padding = [nothing] * (len(ready) - len(others))  # asyncio has counted what it runs in this turn
        ready.clear()
        ready.extend(others + padding)
        scheduled[:] = [handle for handle in scheduled if not is_of(handle, member)]
        asyncio.base_events.heapq.heapify(scheduled)  # type: ignore[attr-defined]

    def timers_of(self, member: Member) -> list[Any]:
        """The callbacks that the member has left, and that do not run soon."""
        handles = [*self._ready, *self._scheduled]  # type: ignore[attr-defined]
        mine = [handle for handle in handles if is_of(handle, member) and not handle.cancelled()]
        return [handle for handle in mine if getattr(handle, "_when", self.now) > self.now + SOON]


def is_of(handle: Any, member: Member) -> bool:
    return handle._context is not None and handle._context.get(MEMBER) is member


def running_loop() -> VirtualLoop | None:
    loop = asyncio._get_running_loop()
    return loop if isinstance(loop, VirtualLoop) else None


def virtual_monotonic() -> float:
    loop = running_loop()
    if loop is None:
        return real_monotonic()
    loop.now += LOOK
    return loop.now


def virtual_time() -> float:
    loop = running_loop()
    if loop is None:
        return real_time()
    loop.now += LOOK
    member, now = MEMBER.get(), loop.now - START
    return EPOCH + now + (member.clock_error(now) if member is not None else 0.0)


def seconds() -> float:
    """True seconds since the beginning of the case. To look at this clock takes no time."""
    loop = running_loop()
    return loop.now - START if loop is not None else 0.0


def replace_clocks() -> None:
    clocks: dict[str, Callable[[], float]] = {"time": virtual_time, "monotonic": virtual_monotonic}
    for name, clock in clocks.items():
        setattr(time, name, clock)


replace_clocks()
