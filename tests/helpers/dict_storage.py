"""A storage that a user could have written: it keeps entries in a dict until the crawl ends."""

from __future__ import annotations

import asyncio
import time
from logging import LoggerAdapter, getLogger

from scrapy.settings import Settings

from scrapy_rep.clock import Clock
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import Storage
from scrapy_rep.storage.shared_store import CircuitBreaker, SharedStore


class DictStorage(Storage):
    def __init__(self, address: str) -> None:
        self.address = address
        self.entries: dict[str, bytes] = {}

    async def get(self, origin: str) -> bytes | None:
        return self.entries.get(origin)

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        self.entries[origin] = entry

    async def forget(self, origin: str) -> bool:
        return self.entries.pop(origin, None) is not None

    async def origins(self) -> list[str]:
        return sorted(self.entries)


def shared_store(storage: Storage, counted: list[str]) -> SharedStore:
    """The storage with what a crawl puts around it. `counted` gets the names of the stats."""
    breaker = CircuitBreaker(counted.append, time.monotonic, LoggerAdapter(getLogger("scrapy_rep"), {}))
    clock = Clock(time.time, time.monotonic, asyncio.sleep)
    return SharedStore(storage, breaker, RepSettings.read(Settings()), clock)
