"""What is remembered of one origin, and its versioned bytes."""

from __future__ import annotations

import codecs
import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.freshness import SILENT, Caching
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, RobotsTxt
from scrapy_rep.protocol.status_policy import StatusRow, result_of

VERSION = b"\x01"  # of the bytes; whatever begins otherwise is a miss
MAX_HEADER = 65_536  # octets; what is said beside the rules is bounded where it is read


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The last answer that was one: rules (2.3.1.1), or that there are none (2.3.1.3)."""

    access: AccessResult
    """SUCCESS, UNAVAILABLE or RESTRICTED."""
    reason: str
    """The answer in words: `HTTP 404`."""
    robots: RobotsTxt | None
    """The rules, of a success; else None."""
    received_at: float
    """Seconds since the epoch; when it was confirmed, if it was since."""
    fresh_until: float
    """Seconds since the epoch; of a chain of redirects the earliest."""
    status: int | None = None
    """None where something else decided: the number of redirects."""
    url: str = ""
    """Where the redirects led, and what its validators hold for."""
    redirects: int = 0
    caching: Caching = SILENT
    """Of the answer itself, not of the redirects to it."""
    forbids_stale: bool = False
    """RFC 9111 4.2.4, of any answer on the way."""
    forbids_store: bool = False
    """RFC 9111 5.2.2.5, of any answer on the way: it is not to outlive the process."""


@dataclass(frozen=True, slots=True)
class Outage:
    """robots.txt is unreachable (2.3.1.4)."""

    since: float
    """Seconds since the epoch, of the first failure in the row."""
    failures: int
    """In a row."""
    reason: str
    """The last one: `HTTP 503`, or why there was no answer."""
    asked_at: float
    """Seconds since the epoch, of the last failure."""
    ask_again_at: float
    """Seconds since the epoch."""
    status: int | None = None
    """The answer's, where its status is what made it unreachable."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The last words on an origin's robots.txt: the last answer, and the failures since."""

    robots_url: str
    """The initial authority's, wherever redirects led (2.3.1.2)."""
    stored: StoredResponse | None = None
    outage: Outage | None = None

    @property
    def access(self) -> AccessResult:
        """What asking for robots.txt came to, last time."""
        return self.stored.access if self.stored is not None and self.outage is None else AccessResult.UNREACHABLE

    @property
    def reason(self) -> str:
        """The last answer in words: `HTTP 404`, or why there was none."""
        if self.outage is not None:
            return self.outage.reason
        return self.stored.reason if self.stored is not None else "never asked for"


def encoded(entry: Entry) -> bytes:
    """The entry's bytes, compressed; which origin they are of is not said in them."""
    stored, outage = entry.stored, entry.outage
    header: dict[str, Any] = {}
    if outage is not None:
        header["outage"] = asdict(outage)
    octets = b""
    if stored is not None:
        header["copy"] = {
            field.name: getattr(stored, field.name) for field in fields(StoredResponse) if field.name != "robots"
        }
        header["copy"].update(access=stored.access.value, caching=_said(stored.caching))
        if stored.robots is not None:
            octets = stored.robots.octets
            header["truncated"] = stored.robots.truncated
    return VERSION + zlib.compress(json.dumps(header, separators=(",", ":")).encode() + b"\n" + octets)


def decoded(octets: bytes, robots_url: str, limit: int = PARSING_LIMIT) -> Entry | None:
    """The entry of that robots.txt; None for bytes of another version, torn ones, and any that are not ours.

    `limit`: octets of a body that are read, as of `RobotsTxt.parse`.
    """
    try:
        return _decoded(octets, robots_url, limit)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error):
        return None


def _decoded(octets: bytes, robots_url: str, limit: int) -> Entry | None:
    if not octets.startswith(VERSION):
        return None
    header_octets, _newline, body = _inflated(octets[len(VERSION) :], limit).partition(b"\n")
    header = json.loads(header_octets)
    stored = _copy(header["copy"], body, header.get("truncated")) if "copy" in header else None
    outage = Outage(**_checked(Outage, header["outage"])) if "outage" in header else None
    return Entry(robots_url, stored, outage) if stored or outage else None


def _inflated(octets: bytes, limit: int) -> bytes:
    """Raises where the octets are torn (zlib's checksum), or more than ever is put in."""
    decompressor = zlib.decompressobj()
    # UTF-16 grows by half where it is made UTF-8.
    inflated = decompressor.decompress(octets, 2 * limit + MAX_HEADER)
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("torn")
    return inflated


def _copy(said: dict[str, Any], body: bytes, truncated: bool | None) -> StoredResponse:
    robots = None
    if truncated is not None:
        # The mark that is skipped (2.2.2) is put before it, lest one in the octets themselves be.
        marked = codecs.BOM_UTF8 + body
        robots = replace(RobotsTxt.parse(marked, len(marked)), truncated=bool(truncated))
    access, caching = AccessResult(said.pop("access")), Caching(**_checked(Caching, said.pop("caching")))
    if (robots is not None) is not (access is AccessResult.SUCCESS):
        raise ValueError("rules without a success, or the reverse")
    return StoredResponse(access=access, robots=robots, caching=caching, **_checked(StoredResponse, said))


def _said(caching: Caching) -> dict[str, Any]:
    return {field.name: value for field in fields(Caching) if (value := getattr(caching, field.name)) != field.default}


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def _checked(kind: type[StoredResponse | Outage | Caching], said: dict[str, Any]) -> dict[str, Any]:
    """What was said, each value of its field's type: others may write to the store that the bytes came from."""
    annotations = {field.name: str(field.type) for field in fields(kind)}
    for name, value in said.items():
        needed, _, optional = annotations[name].partition(" | ")
        right = type(value) in _TYPES[needed] or (bool(optional) and value is None)
        if not right or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(name)
    return said


# What of an entry may outlive the process, for how long, and for which crawls that share a store.


def asked_at(entry: Entry) -> float:
    """Seconds since the epoch; of two entries of an origin, the one that was asked for later says more."""
    if entry.outage is not None:
        return entry.outage.asked_at
    return entry.stored.received_at if entry.stored is not None else 0.0


def storable(entry: Entry) -> Entry | None:
    """What of it may outlive the process (RFC 9111 5.2.2.5); None where nothing may."""
    if entry.stored is None or not entry.stored.forbids_store:
        return entry
    return replace(entry, stored=None) if entry.outage is not None else None


def of_use_until(entry: Entry, unreachable_for: float) -> float:
    """Seconds since the epoch after which the entry says nothing any more that a crawl could use."""
    stored, outage = entry.stored, entry.outage
    # Twice: an outage may begin when nobody looks, and is counted on by a crawl that comes by only at its end.
    moments = [0.0]
    if stored is not None:
        moments.append(stored.fresh_until + (2 * unreachable_for if stored.robots is not None else 0.0))
    if outage is not None:
        moments.append(outage.ask_again_at + 2 * unreachable_for)
    return max(moments)


def is_judged_by(entry: Entry, rows: Iterable[StatusRow]) -> bool:
    """Whether a policy makes of the entry's answers what was made of them: other crawls may share a store."""
    rows = tuple(rows)
    stored, outage = entry.stored, entry.outage
    judged = [(stored.status, stored.access)] if stored is not None else []
    judged += [(outage.status, AccessResult.UNREACHABLE)] if outage is not None else []
    return all(status is None or result_of(status, rows) is result for status, result in judged)
