"""The crawl's memory of origins: entries in use are parsed, all others compressed; both are bounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from scrapy.crawler import Crawler

from scrapy_rep.protocol.entry import Entry, decoded, encoded
from scrapy_rep.protocol.lifecycle import DAY, RobotsPolicy, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import Storage, storage_of
from scrapy_rep.storage.memory import MemoryStorage

IN_USE_ORIGINS = 512
IN_USE_SHARE = 0.25  # of REP_MEMORY_OCTETS

EACH_PARSED = 1_500  # bytes of an entry in use, beside its robots.txt (measured: tests/benchmarks/storage.py)
WEIGH_EVERY = 128  # entries: a robots.txt takes more memory the more crawlers ask it


class _InUse(NamedTuple):
    key: str
    policy: RobotsPolicy


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
        self._weights: dict[Origin, int] = {}
        self._in_use_octets = 0
        self._uses = 0
        self._most_origins = in_use_origins
        self._most_octets = in_use_octets
        self._unreachable_for = unreachable_for
        self._body_limit = body_limit

    def policy(self, origin: Origin, now: float) -> RobotsPolicy | None:
        """What the origin's entry comes to at `now`; None where nothing is remembered, or announced."""
        used = self._in_use.get(origin)
        if used is not None and self._compressed.touch(used.key):
            self._in_use.move_to_end(origin)
            if now < used.policy.until:
                return used.policy
            return self._use(origin, used.key, used.policy.entry, now)
        key = str(origin)
        octets = self._compressed.peek(key)
        entry = None if octets is None else decoded(octets, origin.robots_url, self._body_limit)
        return None if entry is None else self._use(origin, key, entry, now)

    def entry(self, origin: Origin, now: float) -> Entry | None:
        """What is remembered of the origin, announced or not, however old."""
        policy = self.policy(origin, now)
        return self.unannounced(origin) if policy is None else policy.entry

    def put(self, origin: Origin, entry: Entry, now: float) -> RobotsPolicy:
        """Remember the entry; what it comes to at `now`."""
        key = str(origin)
        self._compressed.drop(_unannounced_key(origin))
        self._compressed.keep(key, encoded(entry))
        return self._use(origin, key, entry, now)

    # Fetched on behalf of a redirecting origin, and not announced to requests of its own yet: `policy` has none of it.

    def put_unannounced(self, origin: Origin, entry: Entry) -> None:
        self._compressed.keep(_unannounced_key(origin), encoded(entry))

    def unannounced(self, origin: Origin) -> Entry | None:
        octets = self._compressed.peek(_unannounced_key(origin))
        return None if octets is None else decoded(octets, origin.robots_url, self._body_limit)

    def _use(self, origin: Origin, key: str, entry: Entry, now: float) -> RobotsPolicy:
        self._drop_parsed(origin)
        policy = policy_at(entry, now, self._unreachable_for)
        self._in_use[origin] = _InUse(key, policy)
        self._weigh(origin, policy)
        self._uses += 1
        if self._uses % WEIGH_EVERY == 0:
            for other, used in self._in_use.items():
                self._weigh(other, used.policy)
        # The one just used stays, whatever it takes.
        while len(self._in_use) > 1 and (
            len(self._in_use) > self._most_origins or self._in_use_octets > self._most_octets
        ):
            self._drop_parsed(next(iter(self._in_use)))
        return policy

    def _drop_parsed(self, origin: Origin) -> None:
        if self._in_use.pop(origin, None) is not None:
            self._in_use_octets -= self._weights.pop(origin)

    def _weigh(self, origin: Origin, policy: RobotsPolicy) -> None:
        stored = policy.entry.stored
        weight = EACH_PARSED + (stored.robots.memory if stored is not None and stored.robots is not None else 0)
        self._in_use_octets += weight - self._weights.get(origin, 0)
        self._weights[origin] = weight


def _unannounced_key(origin: Origin) -> str:
    return f"unannounced {origin}"  # no origin has a space


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
