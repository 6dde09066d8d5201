"""What is remembered of one origin's robots.txt; its bytes; and what of it may be stored and shared."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.freshness import SILENT, Caching
from scrapy_rep.protocol.outage import MAX_UNSEEN, Outage
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, RobotsTxt
from scrapy_rep.protocol.status_policy import SIGNS, StatusRow, result_of

VERSION = b"\x03"  # the first byte of an entry's bytes; any other is a miss
MAX_HEADER = 65_536  # bytes before the rules; what goes into them is bounded where it is read
MAX_NUMBER = 1e12  # in an entry's bytes; the year 9999 has 2.5e11 seconds since the epoch


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The last usable answer: rules (2.3.1.1), or that there are none (2.3.1.3)."""

    access: AccessResult
    """SUCCESS, UNAVAILABLE or RESTRICTED."""
    reason: str
    """The answer in words: `HTTP 404`."""
    robots: RobotsTxt | None
    """The rules, of a success; else None."""
    received_at: float
    """Seconds since the epoch when it came, or was last confirmed; of a chain of redirects the earliest."""
    fresh_until: float
    """Seconds since the epoch, at most a day later; of a chain of redirects the earliest."""
    status: int | None = None
    """The HTTP status; None if the number of redirects decided."""
    url: str = ""
    """Where the redirects led: its validators hold for that URL."""
    caching: Caching = SILENT
    """Of the answer itself, not of the redirects to it."""
    forbids_stale: bool = False
    """The answer, or a redirect to it, must not be used past its lifetime (RFC 9111 4.2.4)."""
    forbids_store: bool = False
    """The answer, or a redirect to it, must not outlive the process (RFC 9111 5.2.2.5)."""
    sha256: str = ""
    """In hexadecimal, of the body that the rules were read from, as it was received (decoded, up to one byte more than
    the limit); empty without rules, or if another version of scrapy-rep has stored them."""
    sign: str = ""
    """What decided instead of the status, as of `Answer`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is remembered of one origin's robots.txt: the last usable answer, and the failures since."""

    robots_url: str
    """The origin's own, wherever redirects led (2.3.1.2)."""
    stored: StoredResponse | None = None
    outage: Outage | None = None

    @property
    def access(self) -> AccessResult:
        """How the last fetch ended."""
        return self.stored.access if self.stored is not None and self.outage is None else AccessResult.UNREACHABLE

    @property
    def status(self) -> int | None:
        """The last answer's HTTP status; None if there was none, or redirects decided."""
        return self._last.status if self._last is not None else None

    @property
    def sign(self) -> str:
        """What decided about the last answer instead of its status, as of `Answer`."""
        return self._last.sign if self._last is not None else ""

    @property
    def reason(self) -> str:
        """The last answer in words, `HTTP 404`, or why there was none."""
        return self._last.reason if self._last is not None else "not fetched yet"

    @property
    def _last(self) -> Outage | StoredResponse | None:
        return self.outage or self.stored

    def outage_at(self, now: float) -> Outage | None:
        """The outage that goes on at `now`."""
        return self.outage if self.outage is not None and self.outage.goes_on_at(now) else None


def entry_to_bytes(entry: Entry) -> bytes:
    """The entry's bytes, compressed. They do not say which origin it is of."""
    robots = entry.stored.robots if entry.stored is not None else None
    header = json.dumps(plain_values(entry), separators=(",", ":")).encode()
    return VERSION + zlib.compress(header + b"\n" + (robots.octets if robots is not None else b""))


def plain_values(entry: Entry) -> dict[str, Any]:
    """All of the entry but its address and the text of its rules, for JSON."""
    stored, outage = entry.stored, entry.outage
    header: dict[str, Any] = {}
    if outage is not None:
        header["outage"] = asdict(outage)
    if stored is not None:
        values = {field.name: getattr(stored, field.name) for field in fields(StoredResponse)}
        robots = values.pop("robots")
        said = {name: value for name, value in asdict(stored.caching).items() if value != getattr(SILENT, name)}
        header["stored"] = {**values, "access": stored.access.value, "caching": said}
        if robots is not None:
            header["truncated"] = robots.truncated
    return header


def entry_from_bytes(octets: bytes, robots_url: str, limit: int = PARSING_LIMIT) -> Entry | None:
    """The entry in these bytes, for that robots.txt; None if they are of another version, torn, or not ours.

    `limit`: bytes of a body that are read, as in `RobotsTxt.parse`. Times in the future are not checked here, because
    that takes a clock: `lifecycle.state_of` ignores them.
    """
    if not octets.startswith(VERSION):
        return None
    try:
        header, _newline, body = _inflated(octets[len(VERSION) :], limit).partition(b"\n")
        values = json.loads(header)
    except (ValueError, RecursionError, zlib.error):
        return None
    return entry_from_values(values, body, robots_url)


def entry_from_values(values: Any, octets: bytes, robots_url: str) -> Entry | None:
    """The entry with these plain values and the octets of its rules, for that robots.txt; None if they are not ours."""
    stored = outage = None
    try:
        if "stored" in values:
            stored = _stored_response(dict(values["stored"]), octets, values.get("truncated"))
        if "outage" in values:
            outage = Outage(**_checked(Outage, values["outage"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return Entry(robots_url, stored, outage) if stored or outage else None


def _inflated(octets: bytes, limit: int) -> bytes:
    """Raises if the bytes are torn (zlib's checksum), or more than `entry_to_bytes` ever puts in."""
    decompressor = zlib.decompressobj()
    # UTF-16 that is stored as UTF-8 may have grown by half.
    inflated = decompressor.decompress(octets, 2 * limit + MAX_HEADER)
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("torn")
    return inflated


def _stored_response(values: dict[str, Any], body: bytes, truncated: bool | None) -> StoredResponse:
    robots = None
    if truncated is not None:
        # `parse` skips one byte order mark (2.2.2): this one, not one that begins the stored bytes.
        marked = codecs.BOM_UTF8 + body
        robots = replace(RobotsTxt.parse(marked, len(marked)), truncated=bool(truncated))
    access, caching = AccessResult(values.pop("access")), Caching(**_checked(Caching, values.pop("caching")))
    if (robots is not None) is not (access is AccessResult.SUCCESS):
        raise ValueError("rules without a success, or a success without rules")
    return StoredResponse(access=access, robots=robots, caching=caching, **_checked(StoredResponse, values))


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def _checked(kind: type[StoredResponse | Outage | Caching], values: dict[str, Any]) -> dict[str, Any]:
    """The values, each of its field's type and in bounds: others may write to the store that the bytes came from."""
    annotations = {field.name: str(field.type) for field in fields(kind)}
    for name, value in values.items():
        needed, _, optional = annotations[name].partition(" | ")
        has_type = type(value) in _TYPES[needed] or (bool(optional) and value is None)
        if not has_type or (isinstance(value, int | float) and not 0 <= value <= MAX_NUMBER):
            raise ValueError(name)
    if "reason" in values:
        values["reason"] = shortened(values["reason"])
    if len(values.get("sha256", "")) not in (0, 64):
        raise ValueError("sha256")
    if values.get("sign", "") not in SIGNS:
        raise ValueError("sign")
    return values


# What of an entry may be stored, for how long, and for which crawls that share a store.


def asked_at(entry: Entry) -> float:
    """Seconds since the epoch, of the last fetch; of two entries of an origin the later one is better informed."""
    if entry.outage is not None:
        return entry.outage.asked_at
    return entry.stored.received_at if entry.stored is not None else 0.0


def storable(entry: Entry) -> Entry | None:
    """The part of it that may outlive the process (RFC 9111 5.2.2.5); None if there is none."""
    if entry.stored is None or not entry.stored.forbids_store:
        return entry
    return replace(entry, stored=None) if entry.outage is not None else None


def of_use_until(entry: Entry, unreachable_for: float) -> float:
    """Seconds since the epoch after which no crawl could use the entry."""
    stored, outage = entry.stored, entry.outage
    moments = [0.0]
    if stored is not None:
        # Rules are obeyed in an outage, which may begin long after the last crawl, and last as long.
        moments.append(stored.fresh_until + (2 * unreachable_for if stored.robots is not None else 0.0))
    if outage is not None:
        moments.append(outage.asked_at + MAX_UNSEEN)
    return max(moments)


def is_judged_by(entry: Entry, rows: Iterable[StatusRow]) -> bool:
    """Whether a status policy judges the entry's answers as they were judged: crawls with others may share a store."""
    rows = tuple(rows)
    stored, outage = entry.stored, entry.outage
    judged = [(stored.status, stored.sign, stored.access)] if stored is not None else []
    judged += [(outage.status, outage.sign, AccessResult.UNREACHABLE)] if outage is not None else []
    return all(result_of(status, rows, sign) is result for status, sign, result in judged if status or sign)
