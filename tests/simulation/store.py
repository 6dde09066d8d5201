"""The simulated store of a fleet (REP_STORAGE `sim:`): coroutines with delays, failures, and leases in true time.

Its methods run in the event loop, because a thread would see the real time. A fault is `[from, until, what]`: "error"
raises, "hang" never answers. With a crawler's name as fourth item, only this crawler meets it: a network partition.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from scrapy.crawler import Crawler
from virtual_time import seconds

from scrapy_rep.storage import Storage

FOREVER = 10**9


class Shelf:
    """What all crawlers of a case share."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.random = random.Random(plan["seed"])
        self.entries: dict[str, tuple[bytes, float]] = {}
        self.leases: dict[str, tuple[str, float, str]] = {}
        """For each origin the token, when the lease ends, and the crawler that has it."""

    def leases_of(self, crawler_name: str) -> list[str]:
        """The leases that a crawler holds, if the store works all the time."""
        held = {} if self.plan["faults"] else self.leases
        ends = {origin: end for origin, (_, end, name) in held.items() if name == crawler_name}
        return [f"the lease of {origin}" for origin, end in ends.items() if seconds() < end]


class SimStorage(Storage):
    def __init__(self, spider: Any) -> None:
        self.shelf: Shelf = spider.simulation.shelf
        self.crawler_name: str = spider.plan["name"]

    @classmethod
    def from_crawler(cls, crawler: Crawler, address: str) -> SimStorage:
        return cls(crawler.spider)

    async def _work(self) -> None:
        await asyncio.sleep(self.shelf.random.uniform(*self.shelf.plan["delay"]))
        for begin, until, what, *whose in self.shelf.plan["faults"]:
            if begin <= seconds() < until and self.crawler_name in (whose or [self.crawler_name]):
                if what == "hang":
                    await asyncio.sleep(FOREVER)
                raise ConnectionError("the store is down")

    async def get(self, origin: str) -> bytes | None:
        await self._work()
        entry, until = self.shelf.entries.get(origin, (None, 0.0))
        return entry if seconds() < until else None

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        await self._work()
        self.shelf.entries[origin] = entry, seconds() + lifetime

    async def acquire_lease(self, origin: str, token: str, lasts: float) -> bool:
        await self._work()
        holder, until, _ = self.shelf.leases.get(origin, (token, 0.0, ""))
        if holder != token and seconds() < until:
            return False
        self.shelf.leases[origin] = token, seconds() + lasts, self.crawler_name
        return True

    async def release_lease(self, origin: str, token: str) -> None:
        await self._work()
        if origin in self.shelf.leases and self.shelf.leases[origin][0] == token:
            del self.shelf.leases[origin]
