"""REP_STORAGE as the cache sees it: the entries that crawlers share, and which of the crawlers fetches."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList

from scrapy_rep.cache.lease import LEASE_SECONDS, Lease
from scrapy_rep.clock import Clock
from scrapy_rep.fetching.answers import RETRY_DELAY
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.protocol.entry import (
    Entry,
    asked_at,
    entry_from_bytes,
    entry_to_bytes,
    is_judged_by,
    of_use_until,
    storable,
)
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.circuit_breaker import CircuitBreaker

POLL_FIRST, POLL_MAX = 0.05, 1.0  # seconds

# In an entry's place: the origin's answer may not be stored, so that no crawler waits for another crawler's fetch.
NOT_SHARED = b"\x00"


class SharedStore:
    """The entries of a store. While it fails, nothing is known and every crawler fetches (`CircuitBreaker`)."""

    def __init__(self, store: CircuitBreaker, settings: RepSettings, turns: FetchTurns, clock: Clock) -> None:
        self._turns = turns
        self._store = store
        self._settings = settings
        self._clock = clock
        # Seconds that another crawler may take to fetch a robots.txt.
        self._longest_wait = (settings.fetch_timeout + RETRY_DELAY) * (1 + settings.fetch_retries) + 2 * LEASE_SECONDS
        self._under_way: set[Deferred[None]] = set()

    async def find_or_lease(
        self,
        origin: Origin,
        known: Entry | None,
        is_fetch_due: Callable[[Entry], bool],
    ) -> tuple[Entry | None, Lease | None]:
        """The latest that any crawler knows of the origin; and, if a fetch is due, a `Lease`. Its `is_acquired` is
        False if this crawler fetches without it: another one held it for too long, or the answer may not be shared.

        Waits while another crawler has the lease, for as long as a fetch may take. `known`: what this crawler knows.
        """
        lease = Lease(self._store, str(origin))
        entry, waited, pause = known, 0.0, POLL_FIRST
        try:
            with self._turns.taking_room():
                octets = await lease.acquire_unless_stored()
            may_fetch = lease.is_acquired
            while True:
                known_and_stored = filter(None, (entry, self._read(origin, octets)))
                entry = max(known_and_stored, key=asked_at, default=None)
                if entry is not None and not is_fetch_due(entry):
                    self.give_back(lease)  # the store may have given both the lease and another crawler's answer
                    return entry, None
                if may_fetch or octets == NOT_SHARED:
                    return entry, lease
                if await lease.try_acquire() or waited >= self._longest_wait:
                    may_fetch = True  # but look once more: the last holder may have answered meanwhile
                else:
                    await self._clock.sleep(pause)
                    waited, pause = waited + pause, min(1.5 * pause, POLL_MAX)
                octets = await self._store.get(str(origin))
        except BaseException:  # it was cancelled
            self.give_back(lease)
            raise

    def _read(self, origin: Origin, octets: bytes | None) -> Entry | None:
        if octets is None or octets == NOT_SHARED:
            return None
        entry = entry_from_bytes(octets, origin.robots_url, self._settings.body_limit)
        return entry if entry is not None and is_judged_by(entry, self._settings.status_policy) else None

    # In the background; `close` waits for that.

    def store_and_give_back(self, origin: Origin, entry: Entry, lease: Lease) -> None:
        """First the entry, so that the crawler that has the lease next finds it."""
        self._do_later(self._store_and_release(origin, entry, lease, self._clock.now()))

    def give_back(self, lease: Lease) -> None:
        """The lease, without an answer."""
        if lease.is_acquired:
            self._do_later(lease.release())

    def _do_later(self, call: Coroutine[Any, Any, None]) -> None:
        doing = deferred_from_coro(call)
        self._under_way.add(doing)
        doing.addBoth(lambda _: self._under_way.discard(doing))

    async def _store_and_release(self, origin: Origin, entry: Entry, lease: Lease, now: float) -> None:
        token, kept = await lease.end(), storable(entry)
        if kept is not None:
            octets, until = entry_to_bytes(kept), of_use_until(kept, self._settings.unreachable_for)
        else:
            octets, until = NOT_SHARED, entry.stored.fresh_until if entry.stored is not None else now
        if token is not None:
            await self._store.put_and_release(str(origin), octets, until - now, token)
        else:
            await self._store.put(str(origin), octets, until - now)

    async def close(self) -> None:
        """The crawl is over: wait until everything is stored, for a few seconds at most."""
        self._store.start_closing()
        await maybe_deferred_to_future(DeferredList(list(self._under_way)))
        await self._store.close()
