"""What is known of origins, at hand without an await: parsed while in use, else compressed, both bounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from scrapy.crawler import Crawler

from .protocol.access import Origin
from .protocol.entry import Entry, decoded, encoded
from .protocol.lifecycle import DAY, Standing, standing_of
from .settings import RepSettings
from .storage import Storage, storage_of
from .storage.memory import MemoryStorage

IN_USE_ORIGINS = 512
IN_USE_SHARE = 0.25  # of REP_MEMORY_OCTETS

# What a parsed robots.txt costs, octets: beside its rules, and for each of its own octets (measured: see
# tests/benchmarks/storage.py).
EACH_PARSED = 3_000
PER_OCTET = 16


class _InUse(NamedTuple):
    key: str
    standing: Standing


class Memory:
    """`compressed` holds every origin that is remembered here; those in use are parsed as well."""

    def __init__(
        self,
        compressed: MemoryStorage,
        in_use_origins: int,
        in_use_octets: float,
        unreachable_for: float,
        body_limit: int,
    ) -> None:
        self._compressed = compressed
        self._in_use: OrderedDict[Origin, _InUse] = OrderedDict()
        self._in_use_octets = 0
        self._most_origins = in_use_origins
        self._most_octets = in_use_octets
        self._unreachable_for = unreachable_for
        self._body_limit = body_limit

    def standing(self, origin: Origin, now: float) -> Standing | None:
        """What the origin's entry comes to at `now`; None where nothing is remembered."""
        held = self._in_use.get(origin)
        if held is not None and self._compressed.touch(held.key):
            self._in_use.move_to_end(origin)
            if now < held.standing.until:
                return held.standing
            return self._use(origin, held.key, held.standing.entry, now)
        key = str(origin)
        octets = self._compressed.at_hand(key)
        entry = None if octets is None else decoded(octets, origin.robots_url, self._body_limit)
        return None if entry is None else self._use(origin, key, entry, now)

    def put(self, origin: Origin, entry: Entry, now: float) -> Standing:
        """Remember the entry; what it comes to at `now`."""
        key = str(origin)
        self._compressed.keep(key, encoded(entry))
        return self._use(origin, key, entry, now)

    # What nobody has asked about so far: redirects led there.

    def lay_aside(self, origin: Origin, entry: Entry) -> None:
        self._compressed.keep(_aside(origin), encoded(entry))

    def laid_aside(self, origin: Origin) -> Entry | None:
        octets = self._compressed.at_hand(_aside(origin))
        return None if octets is None else decoded(octets, origin.robots_url, self._body_limit)

    def take_up(self, origin: Origin) -> Entry | None:
        """What was laid aside, which it is no longer."""
        entry = self.laid_aside(origin)
        self._compressed.drop(_aside(origin))
        return entry

    def _use(self, origin: Origin, key: str, entry: Entry, now: float) -> Standing:
        self._put_aside(origin)
        standing = standing_of(entry, now, self._unreachable_for)
        self._in_use[origin] = _InUse(key, standing)
        self._in_use_octets += _weight(standing)
        # The one just used stays, whatever it takes.
        while len(self._in_use) > 1 and (
            len(self._in_use) > self._most_origins or self._in_use_octets > self._most_octets
        ):
            self._put_aside(next(iter(self._in_use)))
        return standing

    def _put_aside(self, origin: Origin) -> None:
        held = self._in_use.pop(origin, None)
        if held is not None:
            self._in_use_octets -= _weight(held.standing)


def _aside(origin: Origin) -> str:
    return f"aside {origin}"  # no origin has a space


def _weight(standing: Standing) -> int:
    """About the octets that a standing in use takes."""
    copy = standing.entry.copy
    return EACH_PARSED + (PER_OCTET * len(copy.robots.octets) if copy is not None and copy.robots is not None else 0)


def memory_and_store(crawler: Crawler, settings: RepSettings) -> tuple[Memory, Storage | None]:
    """The crawl's memory, and the store behind it; None where REP_STORAGE is the memory itself.

    Raises ValueError for a wrong REP_STORAGE.
    """
    storage = storage_of(crawler)
    is_memory = type(storage) is MemoryStorage  # one derived from it is a user's
    in_use = IN_USE_SHARE * settings.memory_octets
    memory = Memory(
        MemoryStorage(settings.memory_origins, int(settings.memory_octets - in_use)),
        min(settings.memory_origins, IN_USE_ORIGINS),
        in_use,
        settings.unreachable_days * DAY,
        settings.body_limit,
    )
    return memory, None if is_memory else storage
