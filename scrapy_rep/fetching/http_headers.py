"""Header fields of a robots.txt's answer -> the values that the protocol core takes (RFC 9110, RFC 9111)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime, unquote
from urllib.request import parse_http_list

from scrapy.http import Headers

from scrapy_rep.protocol.freshness import Caching

MAX_OCTETS = 8_192  # of a field that is read, and MAX_VALIDATOR of one that is kept: a stranger wrote them
MAX_VALIDATOR = 1_024
MAX_SECONDS = 2**31  # RFC 9111 1.2.2: what a larger number of seconds stands for


def caching_of(headers: Headers) -> Caching:
    """What the answer says of its use by caches. Never raises."""
    directives = cache_control(_text(headers, "Cache-Control"))
    return Caching(
        max_age=_max_age(directives),
        expires=_expires(_text(headers, "Expires", first=True)),
        date=http_date(_text(headers, "Date", first=True)),
        age=delta_seconds(_text(headers, "Age", first=True) or "") or 0.0,
        # With field names, it speaks of those fields alone (RFC 9111 5.2.2.4), and none of them is used again.
        no_cache="no-cache" in directives and directives["no-cache"] is None,
        no_store="no-store" in directives,
        must_revalidate="must-revalidate" in directives,
        etag=_validator(headers, "ETag"),
        last_modified=_validator(headers, "Last-Modified"),
    )


def cache_control(value: str | None) -> Mapping[str, str | None]:
    """Directives by their name in lower case -> argument, unquoted, of the first of a name (RFC 9111 4.2.1 and 5.2)."""
    directives: dict[str, str | None] = {}
    for directive in parse_http_list(value or ""):
        name, equals, argument = directive.partition("=")
        directives.setdefault(name.strip().lower(), unquote(argument.strip()) if equals else None)
    return directives


def delta_seconds(text: str) -> float | None:
    """Seconds (RFC 9111 1.2.2); None where it is no number of them."""
    text = text.strip(" \t")
    if not text.isascii() or not text.isdigit():
        return None
    return float(MAX_SECONDS if len(text) > 10 else min(int(text), MAX_SECONDS))


def http_date(text: str | None) -> float | None:
    """Seconds since the epoch of a date in any of HTTP's three formats (RFC 9110 5.6.7); None where it is none."""
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
    # RFC 9111 4.2.1: without a number it is invalid, and the answer had better be taken for stale.
    return delta_seconds(directives["max-age"] or "") or 0.0


def _expires(text: str | None) -> float | None:
    """RFC 9111 5.3: "A cache recipient MUST interpret invalid date formats ... as representing a time in the past"."""
    return None if text is None else max(0.0, http_date(text) or 0.0)


def _text(headers: Headers, name: str, *, first: bool = False) -> str | None:
    """A field's value, of several lines as one list (RFC 9110 5.3) or the first alone; None where it is missing."""
    lines = headers.getlist(name)
    if not lines:
        return None
    return (lines[0] if first else b",".join(lines))[:MAX_OCTETS].decode("latin-1")


def _validator(headers: Headers, name: str) -> str | None:
    text = _text(headers, name, first=True)
    return text.strip(" \t") if text and len(text) <= MAX_VALIDATOR else None
