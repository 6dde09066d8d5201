"""A storage that a user could have written: it keeps entries in a dict until the crawl ends."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from scrapy import Spider
from scrapy.settings import Settings
from scrapy.statscollectors import StatsCollector
from scrapy.utils.test import get_crawler

from scrapy_rep.crawl import Clock, Crawl
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import Storage
from scrapy_rep.storage.shared_store import SharedStore


class DictStorage(Storage):
    def __init__(self, address: str) -> None:
        self.address = address
        self.entries: dict[str, bytes] = {}

    async def get(self, origin: str) -> bytes | None:
        return self.entries.get(origin)

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        self.entries[origin] = entry


REAL_TIME = Clock(time.time, time.monotonic, asyncio.sleep)


def shared_store(storage: Storage, counted: list[str], clock: Clock = REAL_TIME) -> SharedStore:
    """The storage with what a crawl puts around it. `counted` gets the names of the stats."""

    class Counts(StatsCollector):
        def inc_value(self, key: str, *_: Any, **__: Any) -> None:
            counted.append(key)

    crawler = get_crawler(Spider)
    crawler.stats = Counts(crawler)
    return SharedStore(Crawl.of(crawler, RepSettings.read(Settings()), clock), storage)
