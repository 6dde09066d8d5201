"""Text for people: makes text from servers printable, and writes times, and numbers with a noun."""

from __future__ import annotations

from datetime import datetime, timezone

from scrapy_rep.protocol.foreign_text import MAX_TEXT, shortened, without_user_info


def printable(text: str, limit: int | None = MAX_TEXT) -> str:
    """Return the text, with control characters, line ends and the like escaped, because they could forge a log line.

    The URLs in it lose their user names and passwords, because an exception may name a proxy with its password. A text
    with more than `limit` characters is cut and ends in an ellipsis. With None, it is not cut.
    """
    shown = without_user_info(text)
    shown = shown if limit is None else shown[: limit + 1]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown)
    return shown if limit is None else shortened(shown, limit)


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, such as `1 origin` or `2 origins`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def were_refused(number: int, *, is_dry_run: bool) -> str:
    """Return the words that follow a number of requests: `were refused`, `would have been refused (REP_DRY_RUN)`."""
    if is_dry_run:
        return "would have been refused (REP_DRY_RUN)"
    return "was refused" if number == 1 else "were refused"


LAST_SECOND = 253_402_300_799.0  # the last second of the year 9999


def iso_time(seconds: float) -> str:
    """Write seconds since the epoch as `2026-05-17T09:30:00.000000Z` (RFC 3339; UTC). Years 1970 to 9999."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), LAST_SECOND), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
