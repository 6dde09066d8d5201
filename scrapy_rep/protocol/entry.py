"""What the crawler remembers about one origin's robots.txt, as values and as bytes for a storage."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.freshness import SILENT, Caching
from scrapy_rep.protocol.outage import BACKOFF_MAX, MAX_UNSEEN, Outage
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, RobotsTxt
from scrapy_rep.protocol.status_policy import SIGNS, StatusRow, result_of
from scrapy_rep.protocol.words import AccessResult

VERSION = b"\x04"  # the first byte of an entry's bytes; an entry with another version counts as missing
MAX_HEADER = 65_536  # the most bytes of JSON before the rules; each value was cut when the response was read
MAX_NUMBER = 1e12  # the largest number in an entry's bytes; the year 9999 is 2.5e11 seconds after the epoch


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The last usable answer: a robots.txt, or an answer that decides without rules, such as a 404 (2.3.1.3)."""

    access: AccessResult
    """SUCCESS, UNAVAILABLE or RESTRICTED."""
    reason: str
    """The answer in words, such as `HTTP 404`."""
    robots: RobotsTxt | None
    """The rules, if `access` is SUCCESS; else None."""
    received_at: float
    """The time of the answer, or of the last 304 that confirmed it, in seconds since the epoch. In a chain of
    redirects, the earliest such time."""
    fresh_until: float
    """The time when the answer expires, in seconds since the epoch: at most a day after `received_at`. In a chain of
    redirects, the earliest such time. It is at least LEAST_LIFETIME after the end of the fetch, unless
    that time is more than a day after `received_at`, or the crawl's HTTP cache replayed an answer."""
    status: int | None = None
    """The HTTP status; None if the fetch ended because there were too many redirects."""
    url: str = ""
    """The URL at the end of the redirects. The validators (ETag, Last-Modified) are for this URL."""
    caching: Caching = SILENT
    """The caching headers of the last answer, without those of the redirects before it."""
    forbids_stale: bool = False
    """Whether the answer, or a redirect to it, must not be used after it has expired (RFC 9111 4.2.4)."""
    forbids_store: bool = False
    """Whether the answer, or a redirect to it, must not outlive the process (RFC 9111 5.2.2.5)."""
    sha256: str = ""
    """The SHA-256, in hexadecimal, of the body without its Content-Encoding, cut to REP_BODY_LIMIT + 1 bytes. Empty if
    there are no rules."""
    sign: str = ""
    """The vendor of a challenge or `markup`, as in `Answer.sign`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The last usable answer for one origin's robots.txt, the failures after it, or both."""

    robots_url: str
    """The URL of the origin's robots.txt, before any redirect (2.3.1.2)."""
    stored: StoredResponse | None = None
    outage: Outage | None = None

    @property
    def access(self) -> AccessResult:
        """The result of the last fetch."""
        return self.stored.access if self.stored is not None and self.outage is None else AccessResult.UNREACHABLE

    @property
    def last(self) -> Outage | StoredResponse:
        """The last answer. Both types have its `status`, `sign` and `reason`."""
        return self.outage or self.stored  # type: ignore[return-value]  # an entry has at least one of them

    def outage_at(self, now: float) -> Outage | None:
        """Return the outage if it continues at `now`; else None."""
        return self.outage if self.outage is not None and self.outage.goes_on_at(now) else None


def entry_to_bytes(entry: Entry) -> bytes:
    """Return the entry, without `robots_url`, as compressed bytes."""
    robots = entry.stored.robots if entry.stored is not None else None
    header = json.dumps(plain_values(entry), separators=(",", ":")).encode()
    return VERSION + zlib.compress(header + b"\n" + (robots.octets if robots is not None else b""))


def plain_values(entry: Entry) -> dict[str, Any]:
    """Return the entry's values for JSON, without `robots_url` and without the text of the rules."""
    stored, outage = entry.stored, entry.outage
    header: dict[str, Any] = {}
    if outage is not None:
        header["outage"] = _by_name(outage)
        del header["outage"]["error"]
    if stored is not None:
        values = _by_name(stored)
        robots = values.pop("robots")
        said = {name: value for name, value in _by_name(stored.caching).items() if value != getattr(SILENT, name)}
        header["stored"] = {**values, "access": stored.access.value, "caching": said}
        if robots is not None:
            header["truncated"] = robots.truncated
            header["from_browser"] = robots.from_browser
    return header


def _by_name(value: StoredResponse | Outage | Caching) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def entry_from_bytes(octets: bytes, robots_url: str, limit: int = PARSING_LIMIT) -> Entry | None:
    """Return the entry in these bytes; None if they are too long, or no valid entry of this version.

    `robots_url` is the URL that the entry is for. `limit` is REP_BODY_LIMIT. Times in the future are not rejected here,
    because that takes a clock. `lifecycle.state_of` checks them.
    """
    if not octets.startswith(VERSION):
        return None
    decompressor = zlib.decompressobj()
    stored = outage = None
    try:
        # A UTF-16 body is stored as UTF-8, which may be longer by half.
        inflated = decompressor.decompress(octets[len(VERSION) :], 2 * limit + MAX_HEADER)
        header, _newline, body = inflated.partition(b"\n")
        values = json.loads(header)
        if "stored" in values:
            stored = _stored_response(dict(values["stored"]), body, values)
        if "outage" in values:
            outage = Outage(**_checked(Outage, values["outage"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error):
        return None
    is_whole = decompressor.eof and not decompressor.unused_data
    if not is_whole or (outage is not None and outage.fetch_again_at > outage.failed_at + BACKOFF_MAX):
        return None
    return Entry(robots_url, stored, outage) if stored or outage else None


def _stored_response(values: dict[str, Any], body: bytes, header: dict[str, Any]) -> StoredResponse:
    robots = None
    if "truncated" in header:
        # The mark tells `parse` that the octets are UTF-8 and no page, as they are. `parse` removes the mark.
        marked = codecs.BOM_UTF8 + body
        robots = RobotsTxt.parse(marked, len(marked))
        truncated, from_browser = bool(header["truncated"]), bool(header.get("from_browser"))
        robots = replace(robots, truncated=truncated, from_browser=from_browser)
    access, caching = AccessResult(values.pop("access")), Caching(**_checked(Caching, values.pop("caching")))
    if (robots is not None) is not (access is AccessResult.SUCCESS):
        raise ValueError("rules without a success, or a success without rules")
    return StoredResponse(access=access, robots=robots, caching=caching, **_checked(StoredResponse, values))


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def _checked(kind: type[StoredResponse | Outage | Caching], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values. Raises ValueError for a wrong value, because other programs may write to the store, too."""
    annotations = {field.name: str(field.type) for field in fields(kind)}
    for name, value in values.items():
        needed, _, optional = annotations[name].partition(" | ")
        has_type = type(value) in _TYPES[needed] or (bool(optional) and value is None)
        if not has_type or (isinstance(value, int | float) and not 0 <= value <= MAX_NUMBER):
            raise ValueError(name)
    if len(values.get("sha256", "")) not in (0, 64) or values.get("sign", "") not in SIGNS:
        raise ValueError("sha256 or sign")
    return {**values, "reason": shortened(values["reason"])} if "reason" in values else values


# Entries in a store that crawls share.


def last_fetched_at(entry: Entry) -> float:
    """Return the time of the last fetch, in seconds since the epoch."""
    return entry.last.failed_at if isinstance(entry.last, Outage) else entry.last.received_at


def storable(entry: Entry) -> Entry | None:
    """Return the part of the entry that other crawls may use; None if no part may.

    They may use no `no-store` answer (RFC 9111 5.2.2.5), and none that depends on a limit of this crawl: REP_BODY_LIMIT
    has cut the file, or there were more redirects than REP_MAX_REDIRECTS. Their own limits may be higher.
    """
    stored = entry.stored
    if stored is None:
        return entry
    depends_on_limits = stored.robots.truncated if stored.robots is not None else stored.status is None
    if not stored.forbids_store and not depends_on_limits:
        return entry
    return replace(entry, stored=None) if entry.outage is not None else None


def without_backoff(entry: Entry) -> Entry:
    """Return the entry for other crawls if the server has not answered: only the times of its outage are left.

    Perhaps this crawl, and not the site, had no connection. So each crawl finds that out itself.
    """
    outage = entry.outage
    return entry if outage is None else replace(entry, outage=replace(outage, failures=0, fetch_again_at=0.0))


def latest(known: Entry | None, stored: Entry | None) -> Entry | None:
    """Return the later one of this crawl's entry and the stored one. But an own outage, with its backoff, counts more
    than a stored one without."""
    if known is None or stored is None:
        return known or stored
    if known.outage is not None and stored.outage is not None and not stored.outage.failures:
        return known
    return max(known, stored, key=last_fetched_at)


def useful_until(entry: Entry, unreachable_for: float) -> float:
    """Return the time, in seconds since the epoch, until which a store keeps the entry."""
    stored, outage = entry.stored, entry.outage
    moments = [0.0]
    if stored is not None:
        # Expired rules are obeyed during an outage. So they are kept for an outage that begins up to `unreachable_for`
        # seconds after they expired, and lasts as long again.
        moments.append(stored.fresh_until + (2 * unreachable_for if stored.robots is not None else 0.0))
    if outage is not None:
        moments.append(outage.failed_at + MAX_UNSEEN)
    return max(moments)


def is_judged_by(entry: Entry, rows: Sequence[StatusRow]) -> bool:
    """Whether the status policy with these rows gives the stored answers the same results as when they were stored.

    Crawls with different status policies may share a store.
    """
    stored, outage = entry.stored, entry.outage
    judged = [(stored.status, stored.sign, stored.access)] if stored is not None else []
    judged += [(outage.status, outage.sign, AccessResult.UNREACHABLE)] if outage is not None else []
    return all(result_of(status, rows, sign) is result for status, sign, result in judged if status or sign)
