"""Looking into REP_STORAGE for the command: what it holds, what that says of a URL, and forgetting it."""

from __future__ import annotations

from scrapy import Request

from scrapy_rep.commands.findings import Finding
from scrapy_rep.commands.spiders import LookupSpider, cure_of, why_it_passes
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.origin_info import origin_info
from scrapy_rep.protocol.entry import Entry, decoded, is_judged_by
from scrapy_rep.protocol.lifecycle import DAY, Refetch, RobotsPolicy, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import Storage, forget, storage_of, stored
from scrapy_rep.storage.base import without_password
from scrapy_rep.storage.memory import MemoryStorage


class StoredSpider(LookupSpider):
    """Judges by what is stored; without URLs, lists that."""

    async def look(self, gate: RepMiddleware) -> list[Finding]:
        self._settings = RepSettings.read(self.crawler.settings)
        self._now = gate.now()
        storage = storage_of(self.crawler)
        if isinstance(storage, MemoryStorage):
            return self._closed_to_us("nothing is kept there from one crawl to the next")
        try:
            return await self.look_into(storage, gate)
        except Exception as exc:  # noqa: BLE001 - each storage's library has errors of its own
            return self._closed_to_us(str(exc))
        finally:
            await storage.close()

    def _closed_to_us(self, why: str) -> list[Finding]:
        where = without_password(self._settings.storage)
        error = f"REP_STORAGE ({where}) can't be looked into: {why}"
        return [Finding(url, error=error) for url in self.urls or [where]]

    async def look_into(self, storage: Storage, gate: RepMiddleware) -> list[Finding]:
        if not self.urls:
            return [self._listed(held.origin, held.entry) async for held in stored(storage)]
        return [await self._judged(storage, gate, url) for url in self.urls]

    def _listed(self, origin: str, entry: Entry | None) -> Finding:
        if entry is None:
            return Finding(origin, unreadable=True)
        return Finding(origin, facts=origin_info(self._policy(entry)), now=self._now)

    async def _judged(self, storage: Storage, gate: RepMiddleware, url: str) -> Finding:
        try:
            request = Request(url)
        except ValueError as exc:
            return Finding(url, error=f"{exc}{cure_of(url)}")
        origin = gate.held_to(request)
        if origin is None:
            return Finding(url, passes=why_it_passes(request.url))
        entry = await self._entry(storage, origin)
        if entry is None:
            return Finding(url, error=f"nothing is stored of {origin} that this crawler could use")
        policy = self._policy(entry)
        if policy.refetch is Refetch.FIRST:
            return Finding(url, error=f"what is stored of {origin} is past its time: a crawl would ask for it anew")
        return self.finding(gate, request, url, policy)

    async def _entry(self, storage: Storage, origin: Origin) -> Entry | None:
        octets = await storage.get(str(origin))
        entry = None if octets is None else decoded(octets, origin.robots_url, self._settings.body_limit)
        return entry if entry is not None and is_judged_by(entry, self._settings.status_policy) else None

    def _policy(self, entry: Entry) -> RobotsPolicy:
        return policy_at(entry, self._now, self._settings.unreachable_days * DAY)


class ForgettingSpider(StoredSpider):
    """Forgets what is stored of the URLs' origins."""

    async def look_into(self, storage: Storage, gate: RepMiddleware) -> list[Finding]:  # noqa: ARG002 - as above
        return [await self._forgotten(storage, url) for url in self.urls]

    @staticmethod
    async def _forgotten(storage: Storage, url: str) -> Finding:
        try:
            return Finding(url, forgotten=await forget(storage, url))
        except ValueError as exc:
            return Finding(url, error=str(exc))
