"""What the header fields of a robots.txt response say about caching, and Retry-After (RFC 9110, RFC 9111)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime, unquote
from urllib.request import parse_http_list

from scrapy.http import Headers

from scrapy_rep.protocol.freshness import Caching

MAX_OCTETS = 8_192  # of a field that is read
MAX_VALIDATOR = 1_024  # octets of a field that is kept
MAX_SECONDS = 2**31  # RFC 9111 1.2.2: a larger number of seconds counts as this


def caching_of(headers: Headers) -> Caching:
    """What the response says about its use by caches. Never raises."""
    directives = cache_control(field_text(headers, "Cache-Control"))
    return Caching(
        max_age=_max_age(directives),
        expires=_expires(field_text(headers, "Expires", first=True)),
        date=http_date(field_text(headers, "Date", first=True)),
        age=delta_seconds(field_text(headers, "Age", first=True) or "") or 0.0,
        # With field names it is about those fields only (RFC 9111 5.2.2.4), and we reuse none.
        no_cache="no-cache" in directives and directives["no-cache"] is None,
        no_store="no-store" in directives,
        must_revalidate="must-revalidate" in directives,
        etag=_validator(headers, "ETag"),
        last_modified=_validator(headers, "Last-Modified"),
    )


def cache_control(value: str | None) -> Mapping[str, str | None]:
    """Directive in lower case -> its unquoted argument; the first of a name counts (RFC 9111 4.2.1 and 5.2)."""
    directives: dict[str, str | None] = {}
    for directive in parse_http_list(value or ""):
        name, equals, argument = directive.partition("=")
        directives.setdefault(name.strip().lower(), unquote(argument.strip()) if equals else None)
    return directives


def delta_seconds(text: str) -> float | None:
    """Seconds (RFC 9111 1.2.2); None for anything but digits."""
    text = text.strip(" \t")
    if not text.isascii() or not text.isdigit():
        return None
    return float(MAX_SECONDS if len(text) > 10 else min(int(text), MAX_SECONDS))


def http_date(text: str | None) -> float | None:
    """Seconds since the epoch, from any of HTTP's three date formats (RFC 9110 5.6.7); None for anything else."""
    if not text:
        return None
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _max_age(directives: Mapping[str, str | None]) -> float | None:
    if "max-age" not in directives:
        return None
    # RFC 9111 4.2.1: without a number the response counts as stale.
    return delta_seconds(directives["max-age"] or "") or 0.0


def _expires(text: str | None) -> float | None:
    """RFC 9111 5.3: "A cache recipient MUST interpret invalid date formats ... as representing a time in the past"."""
    return None if text is None else max(0.0, http_date(text) or 0.0)


def field_text(headers: Headers, name: str, *, first: bool = False) -> str | None:
    """A field's value: several lines joined (RFC 9110 5.3), or the first line only; None where it is missing."""
    lines = headers.getlist(name)
    if not lines:
        return None
    return (lines[0] if first else b",".join(lines))[:MAX_OCTETS].decode("latin-1")


def _validator(headers: Headers, name: str) -> str | None:
    text = field_text(headers, name, first=True)
    return text.strip(" \t") if text and len(text) <= MAX_VALIDATOR else None


def retry_after(headers: Headers, now: float) -> float:
    """Seconds to wait from `now` (seconds since the epoch), by the Retry-After field (RFC 9110 10.2.3).

    0 where there is no such field or it cannot be read; at most MAX_SECONDS.
    """
    value = field_text(headers, "Retry-After", first=True) or ""
    seconds, date = delta_seconds(value), http_date(value)
    if seconds is None:
        seconds = 0.0 if date is None else date - now
    return min(max(seconds, 0.0), MAX_SECONDS)
