"""What is remembered of one origin, and its versioned bytes."""

from __future__ import annotations

import codecs
import json
import math
import zlib
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from .access import AccessResult
from .freshness import SILENT, Caching
from .parser import PARSING_LIMIT, RobotsTxt

VERSION = b"\x01"  # of the bytes; whatever begins otherwise is a miss
MOST_HEADER = 65_536  # octets; what is said beside the rules is bounded where it is read


@dataclass(frozen=True, slots=True)
class Copy:
    """The last answer that was one: rules (2.3.1.1), or that there are none (2.3.1.3)."""

    access: AccessResult
    """SUCCESS, UNAVAILABLE or RESTRICTED."""
    cause: str
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
    cause: str
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
    copy: Copy | None = None
    outage: Outage | None = None

    @property
    def access(self) -> AccessResult:
        """What asking for robots.txt came to, last time."""
        return self.copy.access if self.copy is not None and self.outage is None else AccessResult.UNREACHABLE

    @property
    def cause(self) -> str:
        """The last answer in words: `HTTP 404`, or why there was none."""
        if self.outage is not None:
            return self.outage.cause
        return self.copy.cause if self.copy is not None else "never asked for"


def encoded(entry: Entry) -> bytes:
    """The entry's bytes, compressed; which origin they are of is not said in them."""
    copy, outage = entry.copy, entry.outage
    header: dict[str, Any] = {}
    if outage is not None:
        header["outage"] = asdict(outage)
    octets = b""
    if copy is not None:
        header["copy"] = {field.name: getattr(copy, field.name) for field in fields(Copy) if field.name != "robots"}
        header["copy"].update(access=copy.access.value, caching=_said(copy.caching))
        if copy.robots is not None:
            octets = copy.robots.octets
            header["truncated"] = copy.robots.truncated
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
    copy = _copy(header["copy"], body, header.get("truncated")) if "copy" in header else None
    outage = Outage(**_checked(Outage, header["outage"])) if "outage" in header else None
    return Entry(robots_url, copy, outage) if copy or outage else None


def _inflated(octets: bytes, limit: int) -> bytes:
    """Raises where the octets are torn (zlib's checksum), or more than ever is put in."""
    decompressor = zlib.decompressobj()
    # UTF-16 grows by half where it is made UTF-8.
    inflated = decompressor.decompress(octets, 2 * limit + MOST_HEADER)
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("torn")
    return inflated


def _copy(said: dict[str, Any], body: bytes, truncated: bool | None) -> Copy:
    robots = None
    if truncated is not None:
        # The mark that is skipped (2.2.2) is put before it, lest one in the octets themselves be.
        marked = codecs.BOM_UTF8 + body
        robots = replace(RobotsTxt.parse(marked, len(marked)), truncated=bool(truncated))
    access, caching = AccessResult(said.pop("access")), Caching(**_checked(Caching, said.pop("caching")))
    if (robots is not None) is not (access is AccessResult.SUCCESS):
        raise ValueError("rules without a success, or the reverse")
    return Copy(access=access, robots=robots, caching=caching, **_checked(Copy, said))


def _said(caching: Caching) -> dict[str, Any]:
    return {field.name: value for field in fields(Caching) if (value := getattr(caching, field.name)) != field.default}


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def _checked(kind: type[Copy | Outage | Caching], said: dict[str, Any]) -> dict[str, Any]:
    """What was said, each value of its field's type: others may write to the store that the bytes came from."""
    annotations = {field.name: str(field.type) for field in fields(kind)}
    for name, value in said.items():
        needed, _, optional = annotations[name].partition(" | ")
        right = type(value) in _TYPES[needed] or (bool(optional) and value is None)
        if not right or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(name)
    return said
