"""`memory:`: entries in the crawl's own process, bounded by number and by octets; the least recently used go first."""

from __future__ import annotations

from collections import OrderedDict

from scrapy.crawler import Crawler

from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.base import Storage

EACH = 400  # octets that an entry costs beside its own: key, origin, places in two dicts (measured on CPython 3.11)


class MemoryStorage(Storage):
    """Its entries are at hand without an await, too: `peek`, `touch` and `keep`."""

    def __init__(self, most_origins: int, most_octets: int) -> None:
        self._most_origins = most_origins
        self._most_octets = most_octets
        self._octets = 0
        self._entries: OrderedDict[str, bytes] = OrderedDict()

    @classmethod
    def from_crawler(cls, crawler: Crawler, address: str) -> MemoryStorage:
        if address != "memory:":
            raise ValueError(f"REP_STORAGE is {address!r}; set it to 'memory:', without anything after it")
        settings = RepSettings.read(crawler.settings)
        return cls(settings.memory_origins, settings.memory_octets)

    def peek(self, origin: str) -> bytes | None:
        return self._entries[origin] if self.touch(origin) else None

    def touch(self, origin: str) -> bool:
        """It is used again; whether it is still here."""
        try:
            self._entries.move_to_end(origin)
        except KeyError:
            return False
        return True

    def keep(self, origin: str, octets: bytes) -> None:
        self.drop(origin)
        self._entries[origin] = octets
        self._octets += EACH + len(octets)
        # The one just put stays, whatever it takes: it is in use.
        while len(self._entries) > 1 and (len(self._entries) > self._most_origins or self._octets > self._most_octets):
            self.drop(next(iter(self._entries)))

    def drop(self, origin: str) -> bool:
        octets = self._entries.pop(origin, None)
        if octets is not None:
            self._octets -= EACH + len(octets)
        return octets is not None

    async def get(self, origin: str) -> bytes | None:
        return self.peek(origin)

    async def put(self, origin: str, octets: bytes, keep_for: float) -> None:  # noqa: ARG002 - the bounds will do
        self.keep(origin, octets)

    async def forget(self, origin: str) -> bool:
        return self.drop(origin)

    async def origins(self) -> list[str]:
        return sorted(self._entries)
