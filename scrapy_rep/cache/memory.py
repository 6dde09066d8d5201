"""The crawl's memory of origins: entries in use are parsed, all others compressed; both are bounded."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from scrapy.crawler import Crawler

from scrapy_rep.protocol.entry import Entry, entry_from_bytes, entry_to_bytes
from scrapy_rep.protocol.lifecycle import RobotsPolicy, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import Storage, storage_of
from scrapy_rep.storage.memory import MemoryStorage

IN_USE_SHARE = 0.25  # of REP_MEMORY_OCTETS

EACH_PARSED = 1_500  # bytes of an entry in use, beside its robots.txt (measured: tests/benchmarks/storage.py)
WEIGH_EVERY = 128  # entries, at least: a robots.txt takes more memory the more crawlers ask it


@dataclass(slots=True)
class _InUse:
    policy: RobotsPolicy
    octets: bytes | None
    """The entry compressed, if it came so; then it need not be compressed again."""
    weight: int
    """Bytes of memory, as far as they are reckoned."""


class Memory:
    """An origin's entry is parsed while it is in use, and compressed if it was not used for longer."""

    def __init__(
        self,
        compressed: MemoryStorage,
        in_use_octets: float,
        unreachable_for: float,
        body_limit: int,
        budget: float = 0.0,
    ) -> None:
        """`compressed` bounds the number of all origins, and the bytes of those that are compressed; `in_use_octets`
        the bytes of those in use. The last three: REP_UNREACHABLE_DAYS in seconds, REP_BODY_LIMIT and
        REP_UNREACHABLE_WAIT."""
        self._compressed = compressed
        self._in_use: OrderedDict[Origin, _InUse] = OrderedDict()
        self._in_use_octets = 0
        self._used_since_weighing = 0
        self._most_octets = in_use_octets
        self._unreachable_for = unreachable_for
        self._body_limit = body_limit
        self._budget = budget

    def __len__(self) -> int:
        """Origins that are remembered."""
        return len(self._in_use) + len(self._compressed)

    def policy(self, origin: Origin, now: float) -> RobotsPolicy | None:
        """What the origin's entry comes to at `now`; None where nothing is remembered."""
        used = self._in_use.get(origin)
        if used is not None:
            self._in_use.move_to_end(origin)
            policy, octets = used.policy, used.octets
            if policy.at <= now < policy.until:
                return policy
            entry: Entry | None = policy.entry
        else:
            octets = self._compressed.peek(str(origin))
            entry = None if octets is None else entry_from_bytes(octets, origin.robots_url, self._body_limit)
        if entry is None:
            return None
        policy = self.policy_of(entry, now)
        self.put(origin, policy, octets)
        return policy

    def policy_of(self, entry: Entry, now: float) -> RobotsPolicy:
        """What an entry comes to at `now`, remembered or not."""
        return policy_at(entry, now, self._unreachable_for, self._budget)

    def put(self, origin: Origin, policy: RobotsPolicy, octets: bytes | None = None) -> None:
        """Remember it. `octets`: its entry compressed, if it came so."""
        self._compressed.drop(str(origin))
        before = self._in_use.pop(origin, None)
        self._in_use[origin] = used = _InUse(policy, octets, before.weight if before is not None else 0)
        self._weigh(used)
        self._used_since_weighing += 1
        if self._used_since_weighing >= max(WEIGH_EVERY, len(self._in_use)):
            self._used_since_weighing = 0
            for each in self._in_use.values():
                self._weigh(each)
        # The entry just used stays, whatever memory it takes.
        while self._in_use_octets > self._most_octets and len(self._in_use) > 1:
            origin, used = self._forget_oldest()
            self._compressed.keep(str(origin), used.octets or entry_to_bytes(used.policy.entry))
        while len(self) > self._compressed.max_origins:  # which is at least 1
            if not self._compressed.drop_oldest():
                self._forget_oldest()

    def _forget_oldest(self) -> tuple[Origin, _InUse]:
        origin, used = self._in_use.popitem(last=False)
        self._in_use_octets -= used.weight
        return origin, used

    def _weigh(self, used: _InUse) -> None:
        stored = used.policy.entry.stored
        weight = EACH_PARSED + len(used.octets or b"")
        if stored is not None and stored.robots is not None:
            weight += stored.robots.memory
        self._in_use_octets += weight - used.weight
        used.weight = weight


def memory_and_store(crawler: Crawler, settings: RepSettings) -> tuple[Memory, Storage | None]:
    """The crawl's memory, and the store behind it; None where REP_STORAGE is the memory itself.

    Raises ValueError for a wrong REP_STORAGE.
    """
    storage = storage_of(crawler)
    is_memory = type(storage) is MemoryStorage  # one derived from it is a user's
    in_use = IN_USE_SHARE * settings.memory_octets
    memory = Memory(
        MemoryStorage(settings.memory_origins, int(settings.memory_octets - in_use)),
        in_use,
        settings.unreachable_for,
        settings.body_limit,
        settings.unreachable_wait,
    )
    return memory, None if is_memory else storage
