"""Read from an archive (REP_ARCHIVE) what a crawl knew about robots.txt at a given time. See `docs/evidence.md`."""

from __future__ import annotations

import glob
import json
import logging
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed
from warcio.recordloader import ArcWarcRecord

from scrapy_rep.clock import iso_time, seconds_of_time
from scrapy_rep.fetching.decoding import UndecodableBodyError, decoded
from scrapy_rep.protocol.entry import Entry, entry_from_values
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, RobotsTxt
from scrapy_rep.settings import MAX_BODY
from scrapy_rep.usage.preferences import Purposes

logger = logging.getLogger("scrapy_rep")

MAX_PARSED = 64 * 2**20  # approximate bytes of memory for parsed robots.txt files
EACH_PARSED = 4_000  # estimated bytes of memory for each parsed robots.txt, in addition to its text
MAX_VALUES = 2**20  # bytes of a metadata record; this package writes shorter ones
# The exceptions that reading a damaged file, or a file of another kind, can raise.
DAMAGES = (OSError, EOFError, ValueError, StopIteration, zlib.error, ArchiveLoadFailed)


@dataclass(slots=True)
class _File:
    """One archive file, and the settings of the crawl that wrote it."""

    name: str
    tokens: tuple[str, ...] = ()
    purposes: Purposes = field(default_factory=Purposes)
    unreachable_for: float = 30 * DAY
    body_limit: int = PARSING_LIMIT


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What the crawl knew about one origin from the time `at` on."""

    at: float
    """Seconds since the epoch."""
    file: _File
    entry: Entry
    """The entry with empty rules. The text of the rules is in another record."""
    body: int | None
    """The offset in the file of the record with the rules; None if the file does not have it."""

    @property
    def received(self) -> tuple[str | None, str | None]:
        """When the answer was received, and its SHA-256, both written as in the evidence."""
        stored = self.entry.stored
        return (iso_time(stored.received_at), stored.sha256 or None) if stored is not None else (None, None)


class ArchiveReader:
    """Reads several archive files as one: their metadata at the start, and a robots.txt when it is needed."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """`patterns` are paths, in which `*` stands for any text. Raises ValueError if a file is no archive."""
        names = sorted({name for pattern in patterns for name in glob.glob(pattern)})
        if not names:
            raise ValueError(f"--archive: there is no file {' or '.join(patterns)}")
        self._known: defaultdict[str, list[Known]] = defaultdict(list)
        self._parsed: dict[Known, RobotsTxt] = {}
        self._parsed_size = 0
        for name in names:
            self._read(_File(name))
        for known in self._known.values():
            known.sort(key=lambda one: one.at)

    def known(self, url: str, at: float | None, evidence: Mapping[str, object]) -> Known:
        """Return what the crawl knew about the URL's origin at the time `at`; None means the end of the archive.

        `evidence` is the evidence of an item, or empty. If several crawls wrote the archive, the evidence identifies
        the robots.txt by which the item was judged. Raises ValueError if the archive has nothing about the origin.
        """
        origin = Origin.of(url)
        known = self._known.get(str(origin), [])
        if not known:
            raise ValueError(f"the archive has nothing of {origin}" if origin else "the URL has no origin")
        before = known if at is None else known[: bisect_right(known, at, key=lambda one: one.at)]
        if not before:
            raise ValueError(f"the archive has nothing of {origin} before {iso_time(known[0].at)}")
        wanted = evidence.get("received_at"), evidence.get("sha256")
        named = (one for one in reversed(before) if evidence and one.received == wanted)
        return next(named, before[-1])

    def read_policy(self, known: Known, at: float) -> RobotsPolicy:
        """Return what the known entry meant for requests at the time `at`, computed as in a crawl.

        Raises ValueError if the rules are missing, or if robots.txt had expired: a crawl would have fetched it again.
        """
        entry, stored = known.entry, known.entry.stored
        if stored is not None and stored.robots is not None:
            entry = replace(entry, stored=replace(stored, robots=self._robots(known, stored.robots.truncated)))
        policy = policy_at(entry, at, known.file.unreachable_for)
        if policy.refetch is Refetch.FIRST:
            raise ValueError(f"the archived robots.txt had expired by {iso_time(at)}; a crawl would fetch it again")
        return policy

    def _robots(self, known: Known, truncated: bool) -> RobotsTxt:
        """Return the parsed robots.txt. Parsed files stay in memory, up to MAX_PARSED bytes. Raises ValueError."""
        if known not in self._parsed:
            robots = _read_robots(known, truncated)
            size = EACH_PARSED + 2 * len(robots.octets)
            self._parsed_size += size
            if self._parsed_size > MAX_PARSED:
                self._parsed.clear()
                self._parsed_size = size
            self._parsed[known] = robots
        return self._parsed[known]

    def _read(self, file: _File) -> None:
        offsets: dict[str, int] = {}
        for record, offset in _records_and_offsets(file.name):
            kind, headers = record.rec_type, record.rec_headers
            if kind == "warcinfo":
                _set_up(file, record)
            elif kind in {"response", "resource", "conversion"}:
                offsets[headers["WARC-Record-ID"]] = offset
            elif kind == "metadata":
                self._add(file, record.raw_stream.read(MAX_VALUES), offsets)

    def _add(self, file: _File, octets: bytes, offsets: Mapping[str, int]) -> None:
        try:
            values = json.loads(octets)
            if values["type"] == "robots.txt":
                origin, body = values["origin"], offsets.get(values["body"])
                entry = entry_from_values(values["entry"], b"", f"{origin}/robots.txt")
                if entry is not None:
                    self._known[origin].append(Known(seconds_of_time(values["at"]), file, entry, body))
        except (ValueError, TypeError, KeyError, RecursionError):
            return  # another program wrote the record, or it was cut because the crawl was killed


def _read_robots(known: Known, truncated: bool) -> RobotsTxt:
    """Return the robots.txt. Raises ValueError if the body is missing or is not the one that was received."""
    if known.body is None:
        raise ValueError(f"{known.file.name} does not have the body of this robots.txt")
    name, limit = known.file.name, known.file.body_limit
    try:
        with open(name, "rb") as stream:
            stream.seek(known.body)
            record = next(ArchiveIterator(stream))
            octets = record.raw_stream.read(2 * limit)  # UTF-16 is stored as UTF-8, which may be 1.5 times as long
    except DAMAGES as exc:
        raise ValueError(f"{name} is damaged: {printable(str(exc))}") from None
    if record.rec_type == "conversion":
        return RobotsTxt(octets, truncated)
    headers = record.http_headers.headers if record.http_headers else []
    codings = ",".join(value for name, value in headers if name.lower() == "content-encoding")
    try:
        body = decoded(octets, codings.encode("latin-1", "replace"), limit)
    except UndecodableBodyError as exc:
        raise ValueError(f"{name}: {exc}") from None
    if sha256(body).hexdigest() != known.received[1]:
        raise ValueError(f"{name} is damaged: the body of this robots.txt is not what was received")
    return RobotsTxt.parse(body, limit)


def _set_up(file: _File, record: ArcWarcRecord) -> None:
    octets = record.raw_stream.read(MAX_VALUES)
    if len(octets) < record.length:
        return  # the crawl was killed while it wrote its first record
    fields = dict(line.partition(": ")[::2] for line in octets.decode("utf-8", "replace").splitlines())
    try:
        file.unreachable_for = float(fields["unreachable-days"]) * DAY
        file.body_limit = min(max(int(fields["body-limit"]), PARSING_LIMIT), MAX_BODY)
        # `warcio` leaves out what is empty, such as the tokens of a crawler without a name.
        file.tokens = tuple(fields.get("product-tokens", "").split())
        file.purposes = Purposes(tuple(fields.get("purposes", "").split()), fields.get("purposes-refuse") == "True")
    except (KeyError, ValueError):
        raise ValueError(f"--archive: {file.name} was not written by REP_ARCHIVE") from None


def _records_and_offsets(name: str) -> Iterator[tuple[ArcWarcRecord, int]]:
    """Yield the records of a file and their offsets, up to the first record that cannot be read, which is logged.

    Raises ValueError if not even the first record can be read.
    """
    records = None
    try:
        with open(name, "rb") as stream:
            records = ArchiveIterator(stream, no_record_parse=True)
            for record in records:
                yield record, records.offset
    except DAMAGES as exc:
        if records is None or not records.offset:
            raise ValueError(f"--archive: {name} cannot be read: {printable(str(exc))}") from None
        logger.warning("%s cannot be read beyond byte %d: it was cut or damaged there", name, records.offset)
