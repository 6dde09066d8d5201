"""Looks up robots.txt in REP_STORAGE (`--cached`), and deletes it there (`--forget`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.commands.findings import CannotTellError, Finding
from scrapy_rep.commands.lookup import Lookup
from scrapy_rep.commands.urls import cure_of
from scrapy_rep.protocol.entry import entry_from_bytes, is_judged_by
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import Storage, storage_of
from scrapy_rep.storage.base import without_password
from scrapy_rep.storage.memory import Memory

T = TypeVar("T")


class StoredLookup(Lookup):
    """Judges URLs by the robots.txt files stored in REP_STORAGE (entries). Without URLs, it lists the entries."""

    _failure = ""
    """Why the store cannot be used; empty while it works."""

    async def run(self, crawler: Crawler) -> None:
        self._settings = settings = RepSettings.read(crawler.settings)
        self._where = without_password(settings.storage)
        self._memory, self._storage = Memory(settings), storage_of(crawler, settings)
        if self._storage is None:
            self._failure = "it keeps nothing after a crawl; set it to 'sqlite:robots.db', for example"
        try:
            await super().run(crawler)
        finally:
            if self._storage is not None:
                await self._storage.close()

    async def write_findings(self) -> None:
        if self._lists:
            return await super().write_findings()
        try:
            await self._stored(self._write_entries)
        except CannotTellError as exc:
            self._output.write(Finding(self._where, self._profile, str(exc)))
        return self._output.finish(if_empty=f"nothing is stored in {self._where}")

    async def _write_entries(self, storage: Storage) -> None:
        """Write a finding for each entry. Its verdict, which only the JSON shows, is that for the front page."""
        for origin in await storage.origins():
            octets = await storage.get(origin)
            if octets is not None:  # else it was deleted in the meantime
                policy, error = self._read(origin, octets)
                verdict = None if policy is None or error else self._profile.verdict(policy, origin)
                now = self._gate.now()
                self._output.write(
                    Finding(origin, self._profile, error, verdict=verdict, policy=policy, now=now, is_listed=True)
                )
                self._output.flush()

    async def _policy_for(self, request: Request) -> RobotsPolicy | None:
        origin = self._gate.applicable_origin(request)
        if not isinstance(origin, Origin):
            return None
        known = self._memory.recall(origin, self._gate.now())
        if known is not None and known.refetch is not Refetch.FIRST:
            return known
        octets = await self._stored(lambda storage: storage.get(str(origin)))
        if octets is None:
            raise CannotTellError(f"REP_STORAGE has no entry of {origin}")
        policy, error = self._read(str(origin), octets)
        if policy is None or error:
            raise CannotTellError(error)
        self._memory.put(origin, policy)
        return policy

    def _read(self, origin: str, octets: bytes) -> tuple[RobotsPolicy | None, str]:
        """Return the policy of a stored entry, and why a crawl would not use it; empty if a crawl would use it."""
        entry = entry_from_bytes(octets, f"{origin}/robots.txt", self._settings.body_limit)
        if entry is None:
            return None, "the entry is damaged, or was stored by another version of scrapy-rep"
        policy, error = (
            policy_at(entry, self._gate.now(), self._settings.unreachable_for, self._settings.unreachable_wait),
            "",
        )
        if not is_judged_by(entry, self._settings.status_policy):
            error = f"the entry of {origin} was stored with another REP_STATUS_POLICY"
        elif policy.refetch is Refetch.FIRST:
            error = f"the entry of {origin} has expired: a crawl would fetch robots.txt again"
        return policy, error

    async def _stored(self, ask: Callable[[Storage], Awaitable[T]]) -> T:
        """Return the store's answer. Raises CannotTellError if the store cannot be used, or has failed before."""
        if self._storage is not None and not self._failure:
            try:
                return await ask(self._storage)
            except Exception as exc:  # noqa: BLE001 - each storage library has its own exceptions
                self._failure = str(exc) or repr(exc)
        raise CannotTellError(f"REP_STORAGE ({self._where}) cannot be used: {self._failure}")


class StoredRemoval(StoredLookup):
    """Deletes the entries of the URLs' origins; without URLs, all entries."""

    async def _find(self, url: str) -> Finding:
        origin = Origin.of(url)
        if origin is None:
            return Finding(url, error=f"{url!r} has no origin{cure_of(url)}")
        try:
            return Finding(url, forgotten=await self._stored(lambda storage: storage.forget(str(origin))))
        except CannotTellError as exc:
            return Finding(url, error=str(exc))

    async def _write_entries(self, storage: Storage) -> None:
        for origin in await storage.origins():
            self._output.write(Finding(origin, forgotten=await storage.forget(origin)))
