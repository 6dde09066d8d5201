"""The clocks of a crawl, in one value that tests can replace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple


class Clock(NamedTuple):
    now: Callable[[], float]
    """Seconds since the epoch. This clock may be set back or forward during the crawl."""
    monotonic: Callable[[], float]
    """Seconds since some moment. This clock never goes back, so it measures how long something takes."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits for a number of seconds."""
