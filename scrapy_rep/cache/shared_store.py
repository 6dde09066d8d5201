"""REP_STORAGE as the cache sees it: entries that crawlers share, and the lease that lets one of them fetch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList

from scrapy_rep.protocol.entry import Entry, asked_at, decoded, encoded, is_judged_by, of_use_until, storable
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.circuit_breaker import CircuitBreaker

DAY = 24 * 3600.0  # seconds
LEASE_SECONDS = 10.0  # seconds after which others take a dead holder's lease over
RENEW_EVERY = 3.0  # seconds
MAX_RENEWALS = 400  # so that no lease outlives a fetch that never ends
POLL_FIRST, POLL_MAX = 0.05, 1.0  # seconds

# In an entry's place: the origin's answer may not be stored, so no crawler need wait for another's.
NOT_SHARED = b"\x00"


@dataclass(frozen=True, slots=True)
class Found:
    """What a store has of an origin."""

    entry: Entry | None = None
    not_shared: bool = False


class SharedStore:
    """The entries of a store, which may be down."""

    def __init__(self, store: CircuitBreaker, settings: RepSettings) -> None:
        self._store = store
        self._settings = settings
        self._unreachable_for = settings.unreachable_days * DAY
        self._putting: set[Deferred[None]] = set()

    async def get(self, origin: Origin) -> Found:
        octets = await self._store.get(str(origin))
        if octets is None or octets == NOT_SHARED:
            return Found(not_shared=octets is not None)
        entry = decoded(octets, origin.robots_url, self._settings.body_limit)
        if entry is None or not is_judged_by(entry, self._settings.status_policy):
            return Found()
        return Found(entry)

    def put_later(self, origin: Origin, entry: Entry | None, lease: Lease | None, now: float) -> None:
        """Put the entry, then give back the lease, in the background; `close` waits for that."""
        if lease is not None:
            lease.let_go()
        putting = deferred_from_coro(self._put_and_release(origin, entry, lease, now))
        self._putting.add(putting)
        putting.addBoth(lambda _: self._putting.discard(putting))

    async def _put_and_release(self, origin: Origin, entry: Entry | None, lease: Lease | None, now: float) -> None:
        if entry is not None:
            await self._put(origin, entry, now)
        if lease is not None:  # only now another crawler may fetch
            await lease.release()

    async def _put(self, origin: Origin, entry: Entry, now: float) -> None:
        """Keep what of the entry may be stored."""
        kept = storable(entry)
        if kept is not None:
            await self._store.put(str(origin), encoded(kept), of_use_until(kept, self._unreachable_for) - now)
        elif entry.stored is not None:
            await self._store.put(str(origin), NOT_SHARED, entry.stored.fresh_until - now)

    def lookup(self, origin: Origin, entry: Entry | None, is_enough: Callable[[Entry], bool]) -> SharedLookup:
        return SharedLookup(self, origin, entry, is_enough, Lease(self._store, str(origin)))

    async def close(self) -> None:
        """The crawl is over: wait until everything is stored, for a few seconds at most."""
        self._store.start_closing()
        await maybe_deferred_to_future(DeferredList(list(self._putting)))
        await self._store.close()


class SharedLookup:
    """Looks for what other crawlers know of an origin, until that is enough or this crawler may fetch."""

    def __init__(
        self, store: SharedStore, origin: Origin, entry: Entry | None, is_enough: Callable[[Entry], bool], lease: Lease
    ) -> None:
        """`entry`: what this crawler knows. `is_enough`: whether an entry may be used without a fetch."""
        self._store = store
        self._origin = origin
        self._is_enough = is_enough
        self._not_shared = False
        self.entry = entry
        """The latest that any crawler knows."""
        self.lease = lease

    async def look(self) -> bool:
        """Look what is stored; whether that is enough."""
        found = await self._store.get(self._origin)
        self._not_shared = found.not_shared
        if found.entry is not None and (self.entry is None or asked_at(found.entry) > asked_at(self.entry)):
            self.entry = found.entry
        return self.entry is not None and self._is_enough(self.entry)

    async def acquire_or_wait(self, longest: float, sleep: Callable[[float], Awaitable[None]]) -> bool:
        """Whether this crawler fetches, with the lease or after so many seconds; False once another has answered."""
        waited, pause = 0.0, POLL_FIRST
        while not self._not_shared and not await self.lease.try_acquire() and waited < longest:
            await sleep(pause)
            waited, pause = waited + pause, min(1.5 * pause, POLL_MAX)
            if await self.look():
                return False
        # The last holder may have answered between the last look and the lease.
        return self._not_shared or not await self.look()


class Lease:
    """The right of one crawler of a fleet to fetch an origin's robots.txt; renewed until it is given back."""

    def __init__(self, store: CircuitBreaker, origin: str) -> None:
        self._store = store
        self._origin = origin
        self._token = uuid4().hex
        self._is_acquired = False
        self._renewals = 0
        self._next: CallLaterResult | None = None
        self._renewing: Deferred[bool | None] | None = None

    async def try_acquire(self) -> bool:
        """Whether this crawler has it now."""
        if not await self._store.acquire_lease(self._origin, self._token, LEASE_SECONDS):
            return False
        self._is_acquired = True
        self._next = call_later(RENEW_EVERY, self._renew)
        return True

    def let_go(self) -> None:
        """Renew it no longer: unless it is given back, it ends by itself."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    async def release(self) -> None:
        self.let_go()
        if self._renewing is not None:  # else it would take the lease again
            await maybe_deferred_to_future(self._renewing)
        if self._is_acquired:
            await self._store.release_lease(self._origin, self._token)

    def _renew(self) -> None:
        self._renewals += 1
        if self._next is None or self._renewals > MAX_RENEWALS:
            return
        self._next = call_later(RENEW_EVERY, self._renew)
        self._renewing = deferred_from_coro(self._store.acquire_lease(self._origin, self._token, LEASE_SECONDS))
        self._renewing.addErrback(lambda _failure: None)  # only a cancellation comes here
