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
        self._unreachable_for = settings.unreachable_for
        self._putting: set[Deferred[None]] = set()

    async def get(self, origin: Origin) -> Found:
        return self._read(origin, await self._store.get(str(origin)))

    async def get_or_lease(self, origin: Origin, lease: Lease) -> Found:
        """Takes the lease if nothing is stored, and nobody else has it."""
        return self._read(origin, await lease.acquire_unless_stored())

    def _read(self, origin: Origin, octets: bytes | None) -> Found:
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
        token = await lease.given_up() if lease is not None else None
        octets, until = self._storable(entry) if entry is not None else (None, 0.0)
        if octets is not None and token is not None:
            await self._store.put_and_release(str(origin), octets, until - now, token)
        elif octets is not None:
            await self._store.put(str(origin), octets, until - now)
        elif token is not None:
            await self._store.release_lease(str(origin), token)

    def _storable(self, entry: Entry) -> tuple[bytes | None, float]:
        """What of the entry may be stored, and until when, in seconds since the epoch."""
        kept = storable(entry)
        if kept is not None:
            return encoded(kept), of_use_until(kept, self._unreachable_for)
        return (NOT_SHARED, entry.stored.fresh_until) if entry.stored is not None else (None, 0.0)

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

    async def find_or_acquire(self, longest: float, sleep: Callable[[float], Awaitable[None]]) -> bool:
        """Whether what any crawler knows is enough. If not, this crawler fetches: with the lease, or after so many
        seconds in which others had it."""
        if self._is_met_by(await self._store.get_or_lease(self._origin, self.lease)):
            return True
        if self.lease.is_acquired:
            return False
        waited, pause = 0.0, POLL_FIRST
        while not self._not_shared and not await self.lease.try_acquire() and waited < longest:
            await sleep(pause)
            waited, pause = waited + pause, min(1.5 * pause, POLL_MAX)
            if await self._look():
                return True
        # The last holder may have answered between the last look and the lease.
        return not self._not_shared and await self._look()

    async def _look(self) -> bool:
        return self._is_met_by(await self._store.get(self._origin))

    def _is_met_by(self, found: Found) -> bool:
        self._not_shared = found.not_shared
        if found.entry is not None and (self.entry is None or asked_at(found.entry) > asked_at(self.entry)):
            self.entry = found.entry
        return self.entry is not None and self._is_enough(self.entry)


class Lease:
    """The right of one crawler of a fleet to fetch an origin's robots.txt; renewed until it is given back."""

    def __init__(self, store: CircuitBreaker, origin: str) -> None:
        self._store = store
        self._origin = origin
        self._token = uuid4().hex
        self.is_acquired = False
        self._renewals = 0
        self._next: CallLaterResult | None = None
        self._renewing: Deferred[bool | None] | None = None

    async def try_acquire(self) -> bool:
        """Whether this crawler has it now."""
        if await self._store.acquire_lease(self._origin, self._token, LEASE_SECONDS):
            self._acquired()
        return self.is_acquired

    async def acquire_unless_stored(self) -> bytes | None:
        """What is stored of the origin; if that is nothing, this crawler has the lease now, or another one has it."""
        octets, is_acquired = await self._store.get_or_lease(self._origin, self._token, LEASE_SECONDS)
        if is_acquired:
            self._acquired()
        return octets

    def _acquired(self) -> None:
        self.is_acquired = True
        self._next = call_later(RENEW_EVERY, self._renew)

    def let_go(self) -> None:
        """Renew it no longer: unless it is given back, it ends by itself."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    async def given_up(self) -> str | None:
        """The token to release it with, unless it was never acquired."""
        self.let_go()
        if self._renewing is not None:  # else it would take the lease again
            await maybe_deferred_to_future(self._renewing)
        return self._token if self.is_acquired else None

    def _renew(self) -> None:
        self._renewals += 1
        if self._next is None or self._renewals > MAX_RENEWALS:
            return
        self._next = call_later(RENEW_EVERY, self._renew)
        self._renewing = deferred_from_coro(self._store.acquire_lease(self._origin, self._token, LEASE_SECONDS))
        self._renewing.addErrback(lambda _failure: None)  # only a cancellation comes here
