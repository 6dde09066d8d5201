"""The entries in the memory of one crawl, with a limit (REP_MEMORY_OCTETS).

A quarter of the memory is for entries in use, which are kept parsed. When it is full, the least recently used of them
are compressed. When the rest is full, the least recently used of the compressed entries are dropped. The number of
origins is limited, too (`RepSettings.memory_origins`).
"""

from collections import OrderedDict

from scrapy_rep.protocol.entry import Entry, entry_from_bytes, entry_to_bytes
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings

IN_USE_SHARE = 0.25  # the share of REP_MEMORY_OCTETS for entries in use

# Bytes that an entry takes in addition to its robots.txt (measured: tests/benchmarks/storage.py).
EACH_PARSED = 1_500
EACH_COMPRESSED = 400
# All parsed entries are weighed again after at least this many calls of `put`. A robots.txt takes more memory for each
# product token that it is asked about.
WEIGH_EVERY = 128


class Memory:
    def __init__(self, settings: RepSettings) -> None:
        self._settings = settings
        self._in_use: OrderedDict[Origin, RobotsPolicy] = OrderedDict()
        self._in_use_octets = 0
        self._max_in_use = IN_USE_SHARE * settings.memory_octets
        self._max_origins = settings.memory_origins
        self._used_since_weighing = 0
        self._compressed: OrderedDict[str, bytes] = OrderedDict()
        self._compressed_octets = 0
        self._max_compressed = settings.memory_octets - self._max_in_use

    def __len__(self) -> int:
        """The number of origins that are remembered."""
        return len(self._in_use) + len(self._compressed)

    def recall(self, origin: Origin, now: float) -> RobotsPolicy | None:
        """The policy of the origin at `now`; None if no entry is remembered."""
        policy = self._in_use.get(origin)
        if policy is not None:
            self._in_use.move_to_end(origin)
            if policy.at <= now < policy.until:
                return policy
            return self.put(origin, policy.entry, now)
        octets = self._compressed.get(str(origin), b"")
        entry = entry_from_bytes(octets, origin.robots_url, self._settings.body_limit) if octets else None
        return self.put(origin, entry, now) if entry is not None else None

    def put(self, origin: Origin, entry: Entry, now: float) -> RobotsPolicy:
        """Remember the entry. Return what it means at `now`."""
        if str(origin) in self._compressed:
            self._drop_compressed(str(origin))
        if origin in self._in_use:
            self._in_use_octets -= _weight(self._in_use.pop(origin))
        self._in_use[origin] = policy = self._settings.policy_at(entry, now)
        self._in_use_octets += _weight(policy)
        self._used_since_weighing += 1
        if self._used_since_weighing >= max(WEIGH_EVERY, len(self._in_use)):
            self._used_since_weighing = 0
            self._in_use_octets = sum(map(_weight, self._in_use.values()))
        # The entry just used stays, whatever memory it takes.
        while self._in_use_octets > self._max_in_use and len(self._in_use) > 1:
            self._compress(*self._pop_oldest())
        while len(self) > self._max_origins:  # which is at least 1
            if self._compressed:
                self._drop_compressed(next(iter(self._compressed)))
            else:
                self._pop_oldest()
        return policy

    def _pop_oldest(self) -> tuple[Origin, RobotsPolicy]:
        origin, policy = self._in_use.popitem(last=False)
        self._in_use_octets -= _weight(policy)
        return origin, policy

    def _compress(self, origin: Origin, policy: RobotsPolicy) -> None:
        octets = self._compressed[str(origin)] = entry_to_bytes(policy.entry)
        self._compressed_octets += EACH_COMPRESSED + len(octets)
        while self._compressed_octets > self._max_compressed and len(self._compressed) > 1:
            self._drop_compressed(next(iter(self._compressed)))

    def _drop_compressed(self, name: str) -> None:
        self._compressed_octets -= EACH_COMPRESSED + len(self._compressed.pop(name))


def _weight(policy: RobotsPolicy) -> int:
    """Return the bytes of memory that the policy and its entry take, estimated."""
    stored = policy.entry.stored
    return EACH_PARSED + (stored.robots.memory if stored is not None and stored.robots is not None else 0)
