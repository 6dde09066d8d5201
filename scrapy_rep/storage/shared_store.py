"""The lease of a fleet: the one crawler that has it fetches, the others wait for the entry (REP_STORAGE).

For each origin, one crawler at a time has the lease. The holder of the lease fetches robots.txt, stores its entry and
gives the lease back; the others wait for the entry. A crawler fetches without the lease in three cases:

- The crawler has waited for the entry for longer than most fetches take.
- The holder's entry may not be shared (`storable`), or the server has not answered (`without_backoff`).
- The store fails, or does not answer within five seconds.

`circuit_breaker` cuts off a store that hangs or fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList

from scrapy_rep.clock import Clock
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.entry import (
    Entry,
    entry_from_bytes,
    entry_to_bytes,
    is_judged_by,
    latest,
    storable,
    useful_until,
)
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import RETRY_DELAY
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import Storage
from scrapy_rep.storage.circuit_breaker import CircuitBreaker

LEASE_SECONDS = 10.0  # a lease that its crawler has not renewed for so long is free for others
RENEW_EVERY = 3.0  # seconds
POLL_FIRST, POLL_MAX = 0.05, 1.0  # seconds between two looks for another crawler's answer

# The answer that counts if the store fails: it has no entry, and this crawler fetches.
NO_ANSWER: tuple[bytes | None, bool] = (None, True)

# Stored in place of an entry that other crawlers may not use (`storable`), such as a `no-store` answer. It tells them
# that waiting for the entry is useless.
NOT_SHARED = b"\x00"


@dataclass
class LeaseClaim:
    """This crawler's claim to the lease on an origin, which the store grants or refuses."""

    origin: Origin
    token: str = field(default_factory=lambda: uuid4().hex)
    is_granted: bool = False
    """Whether the store granted the lease when this crawler last asked."""
    timer: CallLaterResult | None = None
    """The timer of the next renewal."""
    renewing: Deferred[bool | None] | None = None
    """The last renewal that has begun."""


class SharedStore:
    def __init__(self, crawler: Crawler, storage: Storage, settings: RepSettings, clock: Clock) -> None:
        self._storage = storage
        count, has_deadline = crawler.stats.inc_value, not storage.answers_at_once
        self._breaker = CircuitBreaker(count, clock.monotonic, logger_of(crawler), has_deadline=has_deadline)
        self._settings = settings
        self._clock = clock
        # Seconds to wait for another crawler's fetch. A fetch along many slow redirects takes longer; then both fetch.
        self._longest_wait = (settings.fetch_timeout + RETRY_DELAY) * (1 + settings.fetch_retries) + 2 * LEASE_SECONDS
        self._under_way: set[Deferred[None]] = set()

    async def find_or_claim(
        self,
        origin: Origin,
        known: Entry | None,
        waits_for_another: Callable[[], None] = lambda: None,
    ) -> tuple[Entry | None, LeaseClaim | None]:
        """The latest entry of any crawler and, if this crawler has to fetch, a claim, which the caller always gives
        back. `is_granted` says whether the store granted the lease.

        Waits while another crawler has the lease, and calls `waits_for_another` then. `known`: the entry that this
        crawler has.
        """
        claim, entry, pause = LeaseClaim(origin), known, POLL_FIRST
        wait_until = self._clock.monotonic() + self._longest_wait
        try:
            # `is_to_fetch`: whether this crawler fetches if the entry in the store does not suffice.
            octets, is_to_fetch = await self._breaker.call(self._get_or_lease, claim, otherwise=NO_ANSWER)
            while True:
                stored = self._read(origin, octets)
                entry = latest(entry, stored)
                if entry is not None and not self._settings.policy_at(entry, self._clock.now()).is_fetch_due:
                    if is_to_fetch:  # another crawler has just stored its entry
                        self.give_back(claim)
                    return entry, None
                has_no_backoff = stored is not None and stored.outage is not None and not stored.outage.has_backoff
                if is_to_fetch or has_no_backoff or octets == NOT_SHARED:
                    if claim.is_granted:
                        self._renew_later(claim)
                    return entry, claim
                if await self._acquire(claim) or self._clock.monotonic() >= wait_until:
                    is_to_fetch = True  # but look once more: the last holder may have just stored its entry
                else:
                    waits_for_another()
                    await self._clock.sleep(pause)
                    pause = min(1.5 * pause, POLL_MAX)
                octets = await self._breaker.call(self._get, claim, otherwise=None)
        except BaseException:  # the caller was cancelled; the store may have granted the lease
            self.give_back(claim)
            raise

    def _read(self, origin: Origin, octets: bytes | None) -> Entry | None:
        if octets is None or octets == NOT_SHARED:
            return None
        entry = entry_from_bytes(octets, origin.robots_url, self._settings.body_limit)
        return entry if entry is not None and is_judged_by(entry, self._settings.status_policy) else None

    def _renew_later(self, claim: LeaseClaim) -> None:
        claim.timer = call_later(RENEW_EVERY, self._renew, claim)

    def _renew(self, claim: LeaseClaim) -> None:
        if claim.renewing is None or claim.renewing.called:  # if the store hangs, the last renewal has not ended
            claim.renewing = deferred_from_coro(self._acquire(claim))
            claim.renewing.addErrback(lambda _failure: None)  # only a cancellation comes here
        self._renew_later(claim)

    def give_back(self, claim: LeaseClaim, entry: Entry | None = None) -> None:
        """Store the entry, and then release the lease, so that the next crawler with the lease finds the entry.

        This happens in the background; `close` waits for its end. `entry` is None if nothing was fetched, if the fetch
        was cancelled, or if it says nothing about the site (`Round.shared`). Then the stored entry stays.
        """
        giving_back = deferred_from_coro(self._give_back(claim, entry, self._clock.now()))
        self._under_way.add(giving_back)
        giving_back.addBoth(lambda _: self._under_way.discard(giving_back))

    async def _give_back(self, claim: LeaseClaim, entry: Entry | None, now: float) -> None:
        call, storage = self._breaker.call, self._storage
        if claim.timer is not None:
            claim.timer.cancel()
        if claim.renewing is not None:  # if this renewal ended after the release, it would take the lease again
            await maybe_deferred_to_future(claim.renewing)
        if entry is None:
            await call(storage.release_lease, str(claim.origin), claim.token, otherwise=None)
        else:
            await call(self._put_and_release, claim, entry, now, otherwise=None)

    async def close(self) -> None:
        """Wait until everything is stored, and close the store, even if it is down. A store that hangs is cut off."""
        await self._breaker.finish(self._finish())

    async def _finish(self) -> None:
        await maybe_deferred_to_future(DeferredList(list(self._under_way)))
        self._breaker.reset()
        await self._breaker.call(self._storage.close, otherwise=None)

    # Calls of the store.

    async def _acquire(self, claim: LeaseClaim) -> bool:
        return await self._breaker.call(self._take, claim, otherwise=True)

    async def _take(self, claim: LeaseClaim) -> bool:
        claim.is_granted = bool(await self._storage.acquire_lease(str(claim.origin), claim.token, LEASE_SECONDS))
        return claim.is_granted

    async def _put_and_release(self, claim: LeaseClaim, entry: Entry, now: float) -> None:
        if entry.outage is not None and not entry.outage.has_backoff:
            # Others did not wait for this crawler, which got no answer, so one may have stored an answer meanwhile.
            entry = latest(entry, self._read(claim.origin, await self._get(claim))) or entry
        kept = storable(entry)
        if kept is not None:
            octets, until = entry_to_bytes(kept), useful_until(kept, self._settings.unreachable_for)
        else:
            octets, until = NOT_SHARED, entry.stored.fresh_until if entry.stored is not None else now
        await self._storage.put_and_release(str(claim.origin), octets, until - now, claim.token)

    async def _get(self, claim: LeaseClaim) -> bytes | None:
        return _checked(await self._storage.get(str(claim.origin)))

    async def _get_or_lease(self, claim: LeaseClaim) -> tuple[bytes | None, bool]:
        octets, is_granted = await self._storage.get_or_lease(str(claim.origin), claim.token, LEASE_SECONDS)
        claim.is_granted = bool(is_granted)
        return _checked(octets), claim.is_granted


def _checked(value: object) -> bytes | None:
    """The value, if it is bytes or None. Raises TypeError for any other value, which a user's own store may return."""
    if value is None or isinstance(value, bytes):
        return value
    raise TypeError(f"an entry must be bytes, not {type(value).__name__}")
