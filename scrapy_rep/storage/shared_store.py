"""The lease of a fleet: the one crawler that has it fetches, the others wait for the entry (REP_STORAGE).

For each origin, one crawler at a time has the lease. The holder of the lease fetches robots.txt, stores its entry and
gives the lease back; the others wait for the entry. A crawler fetches without the lease in three cases:

- The crawler has waited for the entry for longer than most fetches take.
- The holder's entry may not be shared (`Entry.storable`), or the server has not answered (`without_backoff`).
- The store fails, or does not answer within five seconds.

`circuit_breaker` cuts off a store that hangs or fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.protocol.entry import Entry, entry_from_bytes, entry_to_bytes, latest
from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import RETRY_DELAY
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.storage import Storage
from scrapy_rep.storage.circuit_breaker import CircuitBreaker
from scrapy_rep.user_agent import user_agent_sent

LEASE_SECONDS = 10.0  # a lease that its crawler has not renewed for so long is free for others
RENEW_EVERY = 3.0  # seconds
POLL_FIRST, POLL_MAX = 0.05, 1.0  # seconds between two looks for another crawler's answer

# Stored in place of an entry that other crawlers may not use (`Entry.storable`), such as a `no-store` answer. It tells
# them that waiting for the entry is useless.
NOT_SHARED = b"\x00"


@dataclass
class LeaseClaim:
    """This crawler's claim to the lease on an origin."""

    origin: Origin
    token: str = field(default_factory=lambda: uuid4().hex)
    renewal: Deferred[None] | None = None
    """Takes or renews the lease every few seconds, until it is cancelled."""


class SharedStore(Part):
    def __init__(self, crawl: Crawl, storage: Storage) -> None:
        super().__init__(crawl)
        self._storage = storage
        self._breaker = CircuitBreaker(crawl)
        sent, _source = user_agent_sent(self._crawler.settings, self._crawler.spider)
        self._user_agent = shortened((sent or b"").decode("latin-1"))
        # Seconds to wait for another crawler's fetch. A fetch along many slow redirects takes longer; then both fetch.
        settings = crawl.settings
        self._longest_wait = (settings.fetch_timeout + RETRY_DELAY) * (1 + settings.fetch_retries) + 2 * LEASE_SECONDS
        self._asks_anew = getattr(self._crawler.spider, "rep_asks_anew", False)  # set by `scrapy robots URL`
        self._under_way: set[Deferred[None]] = set()

    async def find_or_claim(
        self, origin: Origin, known: Entry | None, waits_for_another: Callable[[], object] = bool
    ) -> tuple[Entry | None, LeaseClaim | None]:
        """The latest entry of any crawler and, if this crawler has to fetch, a claim, which the caller always gives
        back.

        Waits while another crawler has the lease, and calls `waits_for_another` then. `known`: the entry that this
        crawler has.
        """
        claim, entry, pause, is_to_fetch = LeaseClaim(origin), known, POLL_FIRST, False
        wait_until = self._clock.monotonic() + self._longest_wait
        try:
            while True:
                octets = await self._breaker.call(self._get, claim, otherwise=None)
                stored = self._read(origin, octets)
                entry = latest(entry, stored)
                if entry is not None and not self._is_fetch_due(entry):
                    if is_to_fetch:  # another crawler has just stored its entry
                        self.give_back(claim)
                    return entry, None
                if is_to_fetch or _has_no_answer(stored) or octets == NOT_SHARED:
                    claim.renewal = deferred_from_coro(self._renew(claim)).addErrback(lambda _cancelled: None)
                    return entry, claim
                # With the lease, look once more: its last holder may have just stored its entry.
                is_to_fetch = await self._acquire(claim) or self._clock.monotonic() >= wait_until
                if not is_to_fetch:
                    waits_for_another()
                    await self._clock.sleep(pause)
                    pause = min(1.5 * pause, POLL_MAX)
        except BaseException:  # the caller was cancelled; the store may have granted the lease
            self.give_back(claim)
            raise

    def _is_fetch_due(self, entry: Entry) -> bool:
        return self._asks_anew or self._settings.policy_at(entry, self._clock.now()).is_fetch_due

    def _read(self, origin: Origin, octets: bytes | None) -> Entry | None:
        entry = entry_from_bytes(octets or NOT_SHARED, origin.robots_url, self._settings.body_limit)
        if entry is None or not entry.is_judged_by(self._settings.status_policy):
            return None
        # RFC 9111 4.1: an answer for another User-Agent must not be used.
        return entry if entry.stored is None or entry.stored.only_for in {"", self._user_agent} else None

    async def _renew(self, claim: LeaseClaim) -> None:
        while True:
            await sleep(RENEW_EVERY)
            await self._acquire(claim)

    def give_back(self, claim: LeaseClaim, entry: Entry | None = None) -> None:
        """Store the entry, and then release the lease, so that the next crawler with the lease finds the entry.

        This happens in the background; `close` waits for its end. `entry` is None without a fetch, after a cancelled
        fetch, and after a fetch that says nothing about the site (`Round.shared`). Then the stored entry stays.
        """
        giving_back = deferred_from_coro(self._give_back(claim, entry, self._clock.now()))
        self._under_way.add(giving_back)
        giving_back.addBoth(lambda _: self._under_way.discard(giving_back))

    async def _give_back(self, claim: LeaseClaim, entry: Entry | None, now: float) -> None:
        if claim.renewal is not None:  # if a renewal ended after the release, it would take the lease again
            claim.renewal.cancel()
            await maybe_deferred_to_future(claim.renewal)
        await self._breaker.call(self._put_and_release, claim, entry, now, otherwise=None)

    async def close(self) -> None:
        """Wait until everything is stored, and close the store, even if it is down. A store that hangs is cut off."""
        self._breaker.reset()
        await self._breaker.call(self._finish, otherwise=None)

    # Calls of the store.

    async def _finish(self) -> None:
        await maybe_deferred_to_future(DeferredList(list(self._under_way)))
        self._breaker.reset()  # keeps `call` from logging that the store can be used again
        await self._storage.close()

    async def _acquire(self, claim: LeaseClaim) -> bool:
        acquire = self._storage.acquire_lease
        return await self._breaker.call(acquire, str(claim.origin), claim.token, LEASE_SECONDS, otherwise=True)

    async def _put_and_release(self, claim: LeaseClaim, entry: Entry | None, now: float) -> None:
        """Release the lease even if the entry cannot be stored. If the store hangs, the lease has to expire."""
        try:
            if entry is not None:
                await self._put(claim, entry, now)
        except Exception:
            await self._storage.release_lease(str(claim.origin), claim.token)
            raise
        await self._storage.release_lease(str(claim.origin), claim.token)

    async def _put(self, claim: LeaseClaim, entry: Entry, now: float) -> None:
        if _has_no_answer(entry):
            # After no answer, other crawlers do not wait for this one. One of them may have stored an answer by now.
            entry = latest(entry, self._read(claim.origin, await self._get(claim))) or entry
        kept = entry.storable
        if kept is not None:
            octets, until = entry_to_bytes(kept), kept.useful_until(self._settings.unreachable_for)
        else:
            octets, until = NOT_SHARED, entry.stored.fresh_until if entry.stored is not None else now
        await self._storage.put(str(claim.origin), octets, until - now)

    async def _get(self, claim: LeaseClaim) -> bytes | None:
        octets = await self._storage.get(str(claim.origin))
        if octets is not None and not isinstance(octets, bytes):  # a user's own store may return any value
            raise TypeError(f"an entry must be bytes, not {type(octets).__name__}")
        return octets


def _has_no_answer(entry: Entry | None) -> bool:
    """Whether the server did not answer the crawler that stored the entry. Then the others do not wait."""
    return entry is not None and entry.outage is not None and not entry.outage.has_backoff
