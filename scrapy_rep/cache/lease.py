"""The lease of a fleet: of several crawlers that share a store, one fetches an origin's robots.txt, the others wait."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from scrapy_rep.storage.circuit_breaker import CircuitBreaker

LEASE_SECONDS = 10.0  # seconds after which others take a dead holder's lease over
RENEW_EVERY = 3.0  # seconds
MAX_RENEWALS = 400  # so that no lease outlives a fetch that never ends


class Lease:
    """The right of one crawler of a fleet to fetch an origin's robots.txt; renewed until it is given back."""

    def __init__(self, store: CircuitBreaker, origin: str) -> None:
        self._store = store
        self._origin = origin
        self._token = uuid4().hex
        self.is_acquired = False
        """This crawler has the lease; or it has asked for it and may get it, so that a fetch that is cancelled then has
        to give it back."""
        self._renewals = 0
        self._next: CallLaterResult | None = None
        self._renewing: Deferred[bool | None] | None = None

    async def try_acquire(self) -> bool:
        """Whether this crawler has the lease now."""
        self.is_acquired = True
        self._asked(await self._store.acquire_lease(self._origin, self._token, LEASE_SECONDS))
        return self.is_acquired

    async def acquire_unless_stored(self) -> bytes | None:
        """What is stored of the origin; None if nothing is, and then `is_acquired` says whether this crawler has the
        lease."""
        self.is_acquired = True
        octets, is_acquired = await self._store.get_or_lease(self._origin, self._token, LEASE_SECONDS)
        self._asked(is_acquired)
        return octets

    def _asked(self, is_acquired: bool) -> None:
        self.is_acquired = is_acquired
        if is_acquired:
            self._next = call_later(RENEW_EVERY, self._renew)

    async def end(self) -> str | None:
        """Renew it no longer; the token to release it with, unless it was never acquired."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._renewing is not None:  # else it would take the lease again
            await maybe_deferred_to_future(self._renewing)
        return self._token if self.is_acquired else None

    async def release(self) -> None:
        """Let another crawler have it."""
        token = await self.end()
        if token is not None:
            await self._store.release_lease(self._origin, token)

    def _renew(self) -> None:
        self._renewals += 1
        if self._renewals > MAX_RENEWALS:
            return
        self._next = call_later(RENEW_EVERY, self._renew)
        self._renewing = deferred_from_coro(self._store.acquire_lease(self._origin, self._token, LEASE_SECONDS))
        self._renewing.addErrback(lambda _failure: None)  # only a cancellation comes here
