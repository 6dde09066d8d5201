"""A storage as a user may write one: entries in a dict, until the crawl ends."""

from __future__ import annotations

from scrapy_rep.storage import Storage


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
