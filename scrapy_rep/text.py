"""Text for people: makes strangers' text printable, and writes numbers with their noun, and times."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from scrapy_rep.protocol.foreign_text import MAX_TEXT, shortened


def printable(text: str, limit: int | None = MAX_TEXT) -> str:
    """The text, with all characters escaped that could forge a log line (control characters, line ends and the like).

    A text of more than `limit` characters is cut, and then ends in an ellipsis. With None, it is not cut.
    """
    shown = text if limit is None else text[: limit + 1]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown)
    return shown if limit is None else shortened(shown, limit)


def counted(number: int, noun: str) -> str:
    """`1 origin`, `2 origins`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def were_refused(number: int, *, is_dry_run: bool) -> str:
    """The words that follow a number of requests: `were refused`, `would have been refused (REP_DRY_RUN)`."""
    if is_dry_run:
        return "would have been refused (REP_DRY_RUN)"
    return "was refused" if number == 1 else "were refused"


LAST_SECOND = 253_402_300_799.0  # the last second of the year 9999


def iso_time(seconds: float) -> str:
    """Seconds since the epoch, written as `2026-05-17T09:30:00.000000Z` (RFC 3339; UTC). Years 1970 to 9999."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), LAST_SECOND), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of_time(text: str) -> float:
    """Return seconds since the epoch, from the result of `iso_time`, another ISO 8601 text, or a number as text.

    A time without a zone is in UTC. Raises ValueError.
    """
    try:
        seconds = float(text)
    except ValueError:
        time = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
        seconds = (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()
    if not 0 <= seconds <= LAST_SECOND:
        raise ValueError(text)
    return seconds
