"""The simulated store of a fleet (REP_STORAGE `sim:`): coroutines with delays, failures, and leases in true time.

All its methods run in the event loop, because a thread would see the real time. Its faults are `[from, until, what]`:
"error" raises, "hang" never answers. `[from, until, what, crawler]` is a fault that only this crawler meets, such as a
network partition.
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
        self.leases: dict[str, tuple[str, float]] = {}
        self.holders: dict[str, str] = {}
        """The crawler that a lease's token is of."""

    def leases_of(self, member: str) -> list[str]:
        """The origins whose lease the crawler has."""
        leases = self.leases.items()
        return [origin for origin, (token, until) in leases if self.holders[token] == member and seconds() < until]


class SimStorage(Storage):
    def __init__(self, shelf: Shelf, member: str) -> None:
        self.shelf = shelf
        self.member = member

    @classmethod
    def from_crawler(cls, crawler: Crawler, address: str) -> SimStorage:
        spider: Any = crawler.spider
        return cls(spider.simulation.shelf, spider.simulation.name)

    async def _work(self) -> None:
        await asyncio.sleep(self.shelf.random.uniform(*self.shelf.plan["delay"]))
        for begin, until, what, *whose in self.shelf.plan["faults"]:
            if begin <= seconds() < until and (not whose or whose == [self.member]):
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

    async def forget(self, origin: str) -> bool:
        await self._work()
        return self.shelf.entries.pop(origin, None) is not None

    async def origins(self) -> list[str]:
        await self._work()
        return sorted(self.shelf.entries)

    async def acquire_lease(self, origin: str, token: str, seconds_: float) -> bool:
        await self._work()
        holder, until = self.shelf.leases.get(origin, (token, 0.0))
        if holder != token and seconds() < until:
            return False
        self.shelf.leases[origin] = token, seconds() + seconds_
        self.shelf.holders[token] = self.member
        return True

    async def release_lease(self, origin: str, token: str) -> None:
        await self._work()
        if self.shelf.leases.get(origin, ("", 0.0))[0] == token:
            del self.shelf.leases[origin]
