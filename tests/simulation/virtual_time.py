"""An event loop whose clock jumps to the next timer when nothing is ready. Import this module before Scrapy.

Scrapy and scrapy-rep bind `time` and `monotonic` when they are imported, so this module replaces both first. Outside a
simulation they still tell the real time.

Each crawl runs in the context of a `Member`, so each callback knows its member by the context variable MEMBER. A member
has a clock of its own, and it can be killed: its callbacks are taken out of the loop. A kill does not cancel tasks,
because their `finally` blocks would run. They do not run in a killed process.
"""

from __future__ import annotations

import asyncio
import time
from contextvars import Context, ContextVar, copy_context
from typing import Any

START = 1_000.0  # seconds of the monotonic clock at the beginning of a case
EPOCH = 1_800_000_000.0  # seconds since the epoch at the beginning of a case, by a correct clock
TURN = 1e-6  # seconds that one turn of the loop takes, so that the clock moves if a timer is due at once
LOOK = 2e-5  # seconds that each reading of the clock adds; otherwise a loop that only reads the clock never ends
SOON = 1.0  # seconds for which a timer may be left when its crawl is over
NEVER = float("inf")

real_time, real_monotonic = time.time, time.monotonic


class Member:
    """A crawler of the simulation, with its wall clock."""

    def __init__(self, clock: list[list[float]]) -> None:
        """`clock`: pairs in the order of time: [second of the case, seconds that the clock is ahead from then on]."""
        self.clock = clock
        self.context: Context = copy_context()
        self.context.run(MEMBER.set, self)

    def owns(self, handle: Any) -> bool:
        return handle._context.get(MEMBER) is self


MEMBER: ContextVar[Member | None] = ContextVar("MEMBER", default=None)


class NeverEndsError(Exception):
    """The simulation cannot come to an end."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time: it never waits. Sockets and threads do not work in it."""

    _ready: Any
    _scheduled: Any

    def __init__(self, max_seconds: float, stops: list[list[float]]) -> None:
        """`stops`: pairs in the order of time: [second of the case at which the process is stopped, for how long]."""
        super().__init__()
        self.now = START
        self.stops = list(stops)
        self.until = START + max_seconds
        self.killed: list[Any] = []  # kept, because collecting a coroutine would run its `finally` blocks
        vars(self)["_selector"].select = self.jump

    def time(self) -> float:
        return self.now

    def jump(self, timeout: float | None) -> list[Any]:
        """Put the clock forward. In each turn, asyncio calls this to wait for sockets or for the next timer."""
        if timeout is None:
            raise NeverEndsError("nothing is left to run: everybody waits, and no timer is set")
        self.now += timeout + TURN
        while self.stops and self.stops[0][0] < self.now - START:
            self.now += self.stops.pop(0)[1]
        if self.now > self.until:
            raise NeverEndsError(f"still running after {self.now - START:.0f} virtual seconds")
        return []

    def kill(self, member: Member) -> None:
        """Remove all callbacks and timers of the member from the loop. Its tasks are not cancelled."""
        for handle in [*self._ready, *self._scheduled]:
            if member.owns(handle):
                self.killed.append((handle._callback, handle._args))
                handle.cancel()

    def timers_of(self, member: Member) -> list[Any]:
        """The timers that the member has left, and that do not run out soon."""
        timers = (handle for handle in self._scheduled if member.owns(handle) and not handle.cancelled())
        return [timer for timer in timers if timer.when() > self.now + SOON]


def running_loop() -> VirtualLoop | None:
    loop = asyncio._get_running_loop()
    return loop if isinstance(loop, VirtualLoop) else None


def seconds() -> float:
    """True seconds since the beginning of the case. Reading this clock adds no time."""
    loop = running_loop()
    return loop.now - START if loop is not None else 0.0


def virtual_monotonic() -> float:
    loop = running_loop()
    if loop is None:
        return real_monotonic()
    loop.now += LOOK
    return loop.now


def virtual_time() -> float:
    if running_loop() is None:
        return real_time()
    now, member = virtual_monotonic() - START, MEMBER.get()
    clock = reversed(member.clock) if member is not None else ()
    return EPOCH + now + next((ahead for begin, ahead in clock if begin <= now), 0.0)


vars(time).update(time=virtual_time, monotonic=virtual_monotonic)
