"""Reads the header fields of a response: Cache-Control, Retry-After, Location and others (RFC 9110, RFC 9111).

`protocol.freshness` says how long the response may be used. `protocol.outage` says how long a Retry-After is obeyed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timezone
from email.utils import parsedate_to_datetime, unquote
from urllib.parse import urljoin, urlsplit
from urllib.request import parse_http_list

from scrapy.http import Headers, Response
from scrapy.utils.python import to_bytes
from w3lib.url import safe_url_string

from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.freshness import Caching
from scrapy_rep.protocol.redirect_target import with_authority

MAX_OCTETS = 8_192  # octets of one header field that are read
MAX_DELTA_SECONDS = 2.0**31  # RFC 9111 1.2.2: a larger number of seconds counts as this
# Programs read `\` as `/`, and skip white space here (URL Standard 4.4).
_ONE_SLASH = re.compile(rb"[^:]*:\s*[/\\]\s*[^/\\\s]")


Lines = Callable[[bytes], Sequence[bytes]]
"""Returns the lines of a header field (`lines_of`)."""


def lines_of(headers: Headers) -> Lines:
    """Return a function that returns the lines of a field. The field's name is as `Headers` writes it: b"Retry-After".

    Most fields are missing, and `Headers.getlist` takes ten calls to find that out."""
    present = {*headers}
    return lambda name: headers.getlist(name) if name in present else ()


def caching_of(lines: Lines, user_agent: bytes | None = None) -> Caching:
    """Return the header fields that say how the response may be cached, to a request with this User-Agent. Never
    raises."""
    # All our requests for a robots.txt have the same Accept-Encoding.
    varies = {name.strip(" \t").lower() for name in (field_text(lines(b"Vary")) or "").split(",")}
    varies -= {"", "accept-encoding"}
    own = shortened((user_agent or b"*").decode("latin-1")) if varies == {"user-agent"} else "*"
    directives = cache_control(field_text(lines(b"Cache-Control")))
    expires = field_text(lines(b"Expires"), first=True)
    return Caching(
        # RFC 9111 4.2.1: without a number, the response counts as stale.
        max_age=delta_seconds(directives["max-age"]) or 0.0 if "max-age" in directives else None,
        # RFC 9111 5.3: "MUST interpret invalid date formats ... as representing a time in the past".
        expires=None if expires is None else http_date(expires) or 0.0,
        date=http_date(field_text(lines(b"Date"), first=True)),
        age=delta_seconds(field_text(lines(b"Age"), first=True)) or 0.0,
        # A no-cache with field names is only about these fields (RFC 9111 5.2.2.4), which are not used again here.
        no_cache="no-cache" in directives and directives["no-cache"] is None,
        no_store="no-store" in directives,
        must_revalidate="must-revalidate" in directives,
        only_for=own if varies else "",
    )


def cache_control(value: str | None) -> Mapping[str, str | None]:
    """Return the argument of each directive, without quotes; None if it has none. The names are in lower case. If a
    name is repeated, the first counts (RFC 9111 4.2.1 and 5.2)."""
    directives: dict[str, str | None] = {}
    for directive in parse_http_list(value or ""):
        name, equals, argument = directive.partition("=")
        directives.setdefault(name.strip().lower(), unquote(argument.strip()) if equals else None)
    return directives


def delta_seconds(text: str | None) -> float | None:
    """Return seconds (RFC 9111 1.2.2); None for anything but digits."""
    text = text and text.strip(" \t")
    if not text or not text.isascii() or not text.isdigit():
        return None
    return min(float(text), MAX_DELTA_SECONDS)


def http_date(text: str | None) -> float | None:
    """Read a date as in HTTP (RFC 9110 5.6.7) or email. Return seconds since the epoch, 0 for an earlier date; None for
    any other text."""
    if not text:
        return None
    try:
        date = parsedate_to_datetime(text)
        return max((date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp(), 0.0)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def field_text(lines: Sequence[bytes], *, first: bool = False) -> str | None:
    """Return the value of a header; None if it is missing. Several lines are joined (RFC 9110 5.3), unless `first`."""
    return (lines[0] if first else b",".join(lines))[:MAX_OCTETS].decode("latin-1") if lines else None


def retry_after(lines: Lines, now: float) -> float:
    """Return the seconds that Retry-After asks to wait from `now` on (RFC 9110 10.2.3), at most MAX_DELTA_SECONDS; 0
    without a readable field. `now`: seconds since the epoch."""
    value = field_text(lines(b"Retry-After"), first=True)
    seconds = delta_seconds(value)
    if seconds is None:
        seconds = (http_date(value) or now) - now
    return min(max(seconds, 0.0), MAX_DELTA_SECONDS)


def location_of(response: Response) -> tuple[str | None, str]:
    """Return the URL that the Location leads to, and the Location as it was received, if it is malformed (else "")."""
    written = b"".join(response.headers.getlist(b"Location")[-1:])
    location = url_of(response.url, written) if written else None
    return location, "" if location or not written else shortened(written.decode("latin-1").strip())


# A link to a license by RSL 1.0 (RFC 8288 3). A search takes linear time, because no link has a `<` within.
_PARAMETER = r"""(?=(?:[^",<]|"[^"]*")*?;\s*%s(?![^\s",;]))"""
_REL = r"""rel\s*=\s*(?:"(?:[^"]*\s)?)?license"""
_LICENSE = re.compile(rf"<([^<>]*)>{2 * _PARAMETER}" % (_REL, r"""type\s*=\s*"?application/rsl\+xml"""), re.IGNORECASE)


def licenses_in_links(response: Response) -> Iterator[str | None]:
    """Yield the URLs of the first 20 licenses (RSL 1.0) that Link headers name; None for a malformed URL."""
    for target in _LICENSE.findall(field_text(response.headers.getlist(b"Link")) or "")[:20]:
        yield url_of(response.url, target)


def url_of(base: str, reference: str | bytes) -> str | None:
    """Return a reference, such as the value of Location, as an absolute URL; None if it is empty or malformed."""
    if not reference.strip() or len(reference) > MAX_OCTETS:
        return None
    try:
        safe = safe_url_string(reference)
        url: str | None = safe
        parts = urlsplit(safe)
        if parts.scheme and not parts.netloc:
            url = with_authority(base, safe, is_one_slash=_ONE_SLASH.match(to_bytes(reference)) is not None)
        # `Request` escapes its URL in the same way, so the host that is judged is the host that gets the request.
        return safe_url_string(urljoin(base, url)) if url is not None else None
    except ValueError:
        return None
