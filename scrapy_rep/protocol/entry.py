"""The entry: what is remembered of one origin's robots.txt, as values and as bytes for a storage."""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.freshness import Caching
from scrapy_rep.protocol.outage import BACKOFF_MAX, MAX_UNSEEN, Outage
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, RobotsTxt
from scrapy_rep.protocol.status_policy import SIGNS, StatusRow, result_of

VERSION = b"\x05"  # the first byte of an entry's bytes; an entry with another version counts as missing
MAX_HEADER = 65_536  # the most bytes of JSON before the rules; each value was cut when the response was read
_LEFT_OUT = {"octets", "robots_url"}  # the fields that are not in the JSON
MAX_NUMBER = 1e12  # the largest number in an entry's bytes; the year 9999 is 2.5e11 seconds after the epoch


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The last usable answer: a robots.txt, or an answer that decides without rules, such as a 404 (2.3.1.3)."""

    answer: Answer
    """The last answer of the fetch (`Answer.remembered`): a SUCCESS, UNAVAILABLE or RESTRICTED. After too many
    redirects, it has no status. Its `url` is the URL at the end of the redirects."""
    received_at: float
    """The time of the answer, or of the last replay that kept it in use, in seconds since the epoch. In a chain of
    redirects, the earliest such time."""
    fresh_until: float
    """The time when the answer expires, in seconds since the epoch: at most a day after `received_at`. In a chain of
    redirects, the earliest such time. It is at least LEAST_LIFETIME after the end of the fetch, unless
    that time is more than a day after `received_at`."""
    robots: RobotsTxt | None = None
    """The rules of a SUCCESS; None for any other answer."""
    forbids_stale: bool = False
    """Whether the answer, or a redirect to it, must not be used after it has expired (RFC 9111 4.2.4)."""
    only_for: str = ""
    """The User-Agent that the answer is for, if it depends on it (`Caching.only_for`); else empty."""
    forbids_store: bool = False
    """Whether the answer, or a redirect to it, must not outlive the process (RFC 9111 5.2.2.5)."""
    sha256: str = ""
    """The SHA-256, in hexadecimal, of the body without its Content-Encoding, cut to REP_BODY_LIMIT + 1 bytes. Empty if
    there are no rules."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The last usable answer for one origin's robots.txt, the failures after it, or both."""

    robots_url: str
    """The URL of the origin's robots.txt, before any redirect (2.3.1.2)."""
    stored: StoredResponse | None = None
    outage: Outage | None = None

    @property
    def last(self) -> Answer:
        """The last answer, which may be a failure."""
        return (self.outage or self.stored).answer  # type: ignore[union-attr]  # an entry has at least one of them

    def outage_at(self, now: float) -> Outage | None:
        """Return the outage if it continues at `now`; else None."""
        return self.outage if self.outage is not None and self.outage.goes_on_at(now) else None

    # For a store that crawls share.

    @property
    def last_fetched_at(self) -> float:
        """The time of the last fetch, in seconds since the epoch."""
        return self.stored.received_at if self.stored is not None and self.outage is None else self.last.ended_at

    @property
    def storable(self) -> "Entry | None":
        """The part of the entry that other crawlers may use; None if no part may.

        They may use no `no-store` answer (RFC 9111 5.2.2.5), and none that depends on a limit of this crawl:
        REP_BODY_LIMIT has cut the file, or there were more redirects than REP_MAX_REDIRECTS. Their own limits may be
        higher.
        """
        stored = self.stored
        if stored is None:
            return self
        depends_on_limits = stored.robots.truncated if stored.robots is not None else stored.answer.status is None
        if not stored.forbids_store and not depends_on_limits:
            return self
        return replace(self, stored=None) if self.outage is not None else None

    def useful_until(self, unreachable_for: float) -> float:
        """Return the time, in seconds since the epoch, until which a store keeps the entry."""
        stored, outage = self.stored, self.outage
        until = outage.answer.ended_at + MAX_UNSEEN if outage is not None else 0.0
        if stored is None:
            return until
        # Expired rules are obeyed during an outage. So they are kept for an outage that begins up to `unreachable_for`
        # seconds after they expired, and lasts as long again.
        return max(until, stored.fresh_until + (2 * unreachable_for if stored.robots is not None else 0.0))

    def is_judged_by(self, rows: Sequence[StatusRow]) -> bool:
        """Whether the status policy with these rows gives the stored answers the same results as when they were stored.

        Crawls with different status policies may share a store.
        """
        answers = [part.answer for part in (self.stored, self.outage) if part is not None]
        judged = [each for each in answers if each.status or each.sign]
        return all(result_of(each.status, rows, each.sign)[0] is each.access for each in judged)


def entry_to_bytes(entry: Entry) -> bytes:
    """Return the entry, without `robots_url`, as compressed bytes."""
    robots = entry.stored.robots if entry.stored is not None else None
    header = json.dumps(plain_values(entry), separators=(",", ":")).encode()
    return VERSION + zlib.compress(header + b"\n" + (robots.octets if robots is not None else b""))


def plain_values(value: Any) -> Any:
    """Return an entry's values for JSON, without `robots_url`, without the text of the rules, and without defaults."""
    if isinstance(value, AccessResult):
        return value.value
    if not is_dataclass(value):
        return value
    return {
        field.name: plain_values(each)
        for field in fields(value)
        if field.compare and field.name not in _LEFT_OUT and (each := getattr(value, field.name)) != field.default
    }


def entry_from_bytes(octets: bytes, robots_url: str, limit: int = PARSING_LIMIT) -> Entry | None:
    """Return the entry in these bytes; None if they are too long, or no valid entry of this version.

    `robots_url` is the URL that the entry is for. `limit` is REP_BODY_LIMIT. Times in the future are not rejected here,
    because that takes a clock. `lifecycle.state_of` checks them.
    """
    if not octets.startswith(VERSION):
        return None
    decompressor = zlib.decompressobj()
    try:
        # A UTF-16 body is stored as UTF-8, which may be longer by half.
        inflated = decompressor.decompress(octets[len(VERSION) :], 2 * limit + MAX_HEADER)
        header, _newline, body = inflated.partition(b"\n")
        values = json.loads(header)
        if "robots" in values.get("stored", {}):
            values["stored"]["robots"]["octets"] = body
        entry: Entry = _read(Entry, {**values, "robots_url": robots_url})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, zlib.error):
        return None
    return entry if decompressor.eof and not decompressor.unused_data else None


# The dataclasses of an entry -> the types of their fields; for `int | None`, it is `int`.
_FIELDS: dict[type, dict[str, Any]] = {
    kind: {name: (get_args(hint) or [hint])[0] for name, hint in get_type_hints(kind).items()}
    for kind in (Answer, Caching, Entry, Outage, RobotsTxt, StoredResponse)
}
# The type of a field -> the types that its value in JSON may have.
_TYPES: dict[type, set[type]] = {bool: {bool}, bytes: {bytes}, float: {float, int}, int: {int}, str: {str}}
# What holds of the values of an entry, besides their types.
_HOLDS: dict[type, Callable[[Any], bool]] = {
    Entry: lambda entry: entry.stored is not None or entry.outage is not None,
    Answer: lambda answer: answer.sign in SIGNS,
    Outage: lambda outage: outage.fetch_again_at <= outage.answer.ended_at + BACKOFF_MAX,
    StoredResponse: lambda stored: (
        (stored.robots is not None) is (stored.answer.access is AccessResult.SUCCESS) and len(stored.sha256) in {0, 64}
    ),
}


def _read(kind: type[Any], values: dict[str, Any]) -> Any:
    """Return a dataclass with these values. Raises ValueError, TypeError, KeyError or AttributeError for a wrong value,
    because other programs may write to the store, too."""
    read = kind(**{name: _checked(_FIELDS[kind][name], value) for name, value in values.items()})
    if kind in _HOLDS and not _HOLDS[kind](read):
        raise ValueError(f"no {kind.__name__}")
    return read


def _checked(kind: type[Any], value: Any) -> Any:
    if kind in _FIELDS:
        return _read(kind, value)
    if kind is AccessResult:
        return AccessResult(value)
    if type(value) not in _TYPES[kind] or (isinstance(value, int | float) and not 0 <= value <= MAX_NUMBER):
        raise ValueError(f"no {kind.__name__}")
    return value


def without_backoff(entry: Entry) -> Entry:
    """Return the entry with an outage that has no backoff: for other crawls if the server has not answered, and for
    later requests if a proxy has failed.

    Perhaps this crawl, and not the site, had no connection. So each crawl finds that out itself.
    """
    outage = entry.outage
    return entry if outage is None else replace(entry, outage=replace(outage, failures=0, fetch_again_at=0.0))


def latest(known: Entry | None, stored: Entry | None) -> Entry | None:
    """Return the later one of this crawl's entry and the stored one. But an own outage counts more than a stored one
    without a backoff, and a stored answer more than one that a cache replayed. An outage keeps the answer from
    before it, whichever crawl has that answer."""
    if known is None or stored is None:
        return known or stored
    if known.stored is not None and known.stored.answer.replayed and stored.stored is not None:
        return stored
    is_own = known.outage is not None and stored.outage is not None and not stored.outage.has_backoff
    last = known if is_own else max(known, stored, key=lambda entry: entry.last_fetched_at)
    return last if last.stored is not None else replace(last, stored=known.stored or stored.stored)
