"""The stored side of asking for a robots.txt: what others have put there, and whose turn it is to ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.protocol.entry import Entry, asked_at, decoded, encoded, is_judged_by, of_use_until, storable
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.circuit_breaker import CircuitBreaker

DAY = 24 * 3600.0  # seconds
LEASE = 10.0  # seconds after which others take a dead holder's lease over
RENEW_EVERY = 3.0  # seconds
MAX_RENEWALS = 400  # so that no lease outlives a fetch that never ends
POLL_FIRST, POLL_MAX = 0.05, 1.0  # seconds

# In an entry's place: nobody may store this origin's answer, so that nobody need wait for another's.
NOT_SHARED = b"\x00"


@dataclass(frozen=True, slots=True)
class Found:
    """What a store has of an origin."""

    entry: Entry | None = None
    not_shared: bool = False


class SharedStore:
    """A guarded store's entries, as entries."""

    def __init__(self, store: CircuitBreaker, settings: RepSettings) -> None:
        self._store = store
        self._settings = settings
        self._unreachable_for = settings.unreachable_days * DAY

    async def get(self, origin: Origin) -> Found:
        octets = await self._store.get(str(origin))
        if octets is None or octets == NOT_SHARED:
            return Found(not_shared=octets is not None)
        entry = decoded(octets, origin.robots_url, self._settings.body_limit)
        if entry is None or not is_judged_by(entry, self._settings.status_policy):
            return Found()
        return Found(entry)

    async def put(self, origin: Origin, entry: Entry, now: float) -> None:
        """Keep what of the entry may be stored."""
        kept = storable(entry)
        if kept is not None:
            await self._store.put(str(origin), encoded(kept), of_use_until(kept, self._unreachable_for) - now)
        elif entry.stored is not None:
            await self._store.put(str(origin), NOT_SHARED, entry.stored.fresh_until - now)

    def search(self, origin: Origin, known: Entry | None, is_enough: Callable[[Entry], bool]) -> SharedLookup:
        return SharedLookup(self, origin, known, is_enough, Lease(self._store, str(origin)))

    def start_closing(self) -> None:
        """The crawl is over: what is not stored within a few seconds is given up."""
        self._store.start_closing()

    async def close(self) -> None:
        await self._store.close()


class SharedLookup:
    """For what the crawlers that share the store know of an origin, until that is enough, or it is our turn to ask."""

    def __init__(
        self, shelf: SharedStore, origin: Origin, known: Entry | None, is_enough: Callable[[Entry], bool], lease: Lease
    ) -> None:
        """`is_enough`: whether the entry may be used without asking."""
        self._shelf = shelf
        self._origin = origin
        self._is_enough = is_enough
        self._not_shared = False
        self.known = known
        """The last that anybody knows."""
        self.lease = lease

    async def found(self) -> bool:
        """Whether what is stored is enough."""
        found = await self._shelf.get(self._origin)
        self._not_shared = found.not_shared
        if found.entry is not None and (self.known is None or asked_at(found.entry) > asked_at(self.known)):
            self.known = found.entry
        return self.known is not None and self._is_enough(self.known)

    async def is_our_turn(self, most: float, sleep: Callable[[float], Awaitable[None]]) -> bool:
        """Wait for the lease, or for another's answer, at most so many seconds; False where there is an answer."""
        waited, pause = 0.0, POLL_FIRST
        while not self._not_shared and not await self.lease.taken() and waited < most:
            await sleep(pause)
            waited, pause = waited + pause, min(1.5 * pause, POLL_MAX)
            if await self.found():
                return False
        # Whoever had it may have answered between the last look and the lease.
        return self._not_shared or not await self.found()


class Lease:
    """The right to ask for an origin's robots.txt, of one crawler of a fleet; held on to until it is given back."""

    def __init__(self, store: CircuitBreaker, origin: str) -> None:
        self._store = store
        self._origin = origin
        self._token = uuid4().hex
        self._is_taken = False
        self._renewals = 0
        self._next: CallLaterResult | None = None
        self._renewing: Deferred[bool | None] | None = None

    async def taken(self) -> bool:
        """Whether it is ours now."""
        if not await self._store.acquire_lease(self._origin, self._token, LEASE):
            return False
        self._is_taken = True
        self._next = call_later(RENEW_EVERY, self._renew)
        return True

    def let_go(self) -> None:
        """Hold on to it no longer: unless it is given back, it ends by itself."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    async def release(self) -> None:
        self.let_go()
        if self._renewing is not None:  # else it would take the lease again
            await maybe_deferred_to_future(self._renewing)
        if self._is_taken:
            await self._store.release_lease(self._origin, self._token)

    def _renew(self) -> None:
        self._renewals += 1
        if self._next is None or self._renewals > MAX_RENEWALS:
            return
        self._next = call_later(RENEW_EVERY, self._renew)
        self._renewing = deferred_from_coro(self._store.acquire_lease(self._origin, self._token, LEASE))
        self._renewing.addErrback(lambda _failure: None)  # only a cancellation comes here
