"""`memory:`: entries in the crawl's own process, bounded in number and size. The least recently used go first."""

from __future__ import annotations

from collections import OrderedDict

from scrapy.crawler import Crawler

from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.base import Storage

# Bytes that an entry costs besides its own: the origin, and places in two dicts (measured on CPython 3.11).
OVERHEAD = 400


class MemoryStorage(Storage):
    """`peek`, `keep` and `drop` do without an await what Storage's methods do."""

    def __init__(self, max_origins: int, max_octets: int) -> None:
        self.max_origins = max_origins
        self._max_octets = max_octets
        self._octets = 0
        self._entries: OrderedDict[str, bytes] = OrderedDict()

    @classmethod
    def from_crawler(cls, crawler: Crawler, address: str) -> MemoryStorage:
        if address != "memory:":
            raise ValueError("nothing may follow the colon; set it to 'memory:'")
        settings = RepSettings.read(crawler.settings)
        return cls(settings.memory_origins, settings.memory_octets)

    def peek(self, origin: str) -> bytes | None:
        """The entry, which counts as used again."""
        if origin not in self._entries:
            return None
        self._entries.move_to_end(origin)
        return self._entries[origin]

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, origin: str, entry: bytes) -> None:
        self.drop(origin)
        self._entries[origin] = entry
        self._octets += OVERHEAD + len(entry)
        # The new entry stays, whatever its size: it is in use.
        while len(self._entries) > 1 and (len(self._entries) > self.max_origins or self._octets > self._max_octets):
            self.drop_oldest()

    def drop_oldest(self) -> bool:
        """Drop the least recently used entry. Returns whether there was one."""
        return bool(self._entries) and self.drop(next(iter(self._entries)))

    def drop(self, origin: str) -> bool:
        entry = self._entries.pop(origin, None)
        if entry is not None:
            self._octets -= OVERHEAD + len(entry)
        return entry is not None

    async def get(self, origin: str) -> bytes | None:
        return self.peek(origin)

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:  # noqa: ARG002 - the bounds are enough
        self.keep(origin, entry)

    async def forget(self, origin: str) -> bool:
        return self.drop(origin)

    async def origins(self) -> list[str]:
        return sorted(self._entries)
