"""The times that a crawl reads, in one value that tests can replace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple


class Clock(NamedTuple):
    now: Callable[[], float]
    """Seconds since the epoch. It may be set back or forward meanwhile."""
    monotonic: Callable[[], float]
    """Seconds since some moment. It only ever goes forward: waiting is measured by it."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits for the seconds that it is given."""
