"""The clocks of a crawl, in one value that tests can replace; and times and durations as text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from typing import NamedTuple


class Clock(NamedTuple):
    now: Callable[[], float]
    """Seconds since the epoch. This clock may be set back or forward during the crawl."""
    monotonic: Callable[[], float]
    """Seconds since some moment. This clock never goes back, so it measures how long something takes."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits for a number of seconds."""


LAST_SECOND = 253_402_300_799.0  # the last second of the year 9999


def iso_time(seconds: float) -> str:
    """Write seconds since the epoch as `2026-05-17T09:30:00.000000Z` (RFC 3339; UTC). Years 1970 to 9999."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), LAST_SECOND), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def duration(seconds: float) -> str:
    """Write a duration as `0.2 s`, `3 min 5 s` or `27 h 47 min`."""
    if round(seconds) < 60:
        return f"{seconds:.2g} s" if seconds >= 0.01 or not seconds else "< 0.01 s"
    minutes, rest = divmod(round(seconds) if seconds < 3_600 else 60 * round(seconds / 60), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{amount:,} {unit}" for amount, unit in parts if amount)
