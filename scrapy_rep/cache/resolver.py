"""One origin -> what its robots.txt says: memory, storage, single flight, redirects (RFC 9309 sections 2.3 and 2.4)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from scrapy import Request
from scrapy.http.cookies import CookieJar
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList

from scrapy_rep.cache.memory import Memory
from scrapy_rep.cache.origin_fetch import OriginFetch
from scrapy_rep.cache.shared_store import LEASE, Lease, SharedStore
from scrapy_rep.fetching.redirects import RETRY_DELAY, Asking, Fetch, Met, Walk
from scrapy_rep.protocol.access_result import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.freshness import Caching
from scrapy_rep.protocol.lifecycle import (
    DAY,
    FetchResult,
    OutageLimits,
    Refetch,
    RobotsPolicy,
    after_fetch,
    pause_before_refetch,
    policy_after_fetch,
    policy_at,
)
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.parking import StoppingError
from scrapy_rep.settings import RepSettings

logger = logging.getLogger("scrapy_rep")

# Seconds that a walk along redirects waits where another crawler is asking for another origin's robots.txt: those
# whose origins redirect to each other would wait for each other.
MEETING = 5.0


class Resolver:
    """What is known of origins, and the one fetch of each that is not known."""

    def __init__(
        self,
        settings: RepSettings,
        fetch: Fetch,
        memory: Memory,
        shelf: SharedStore | None,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        count: Callable[[str], None],
        asked: Callable[[Origin, RobotsPolicy, Request], None],
        introduced: Callable[[Origin, RobotsPolicy, Request], Awaitable[None]],
    ) -> None:
        """`shelf`: None where nothing outlives the crawl. `clock` gives seconds since the epoch; `count` adds one to a
        stat; `asked` is told of each fetch; `introduced` is awaited before those who wait for an origin go on."""
        self._memory = memory
        self._shelf = shelf
        self._clock = clock
        self._sleep = sleep
        self._count = count
        self._asked = asked
        self._introduced = introduced
        self._asking = Asking(settings, self._fetch, clock, sleep, count)
        self._fetch_hop = fetch
        self._limits = OutageLimits(settings.unreachable_days * DAY, settings.unreachable_wait)
        # For as long as another crawler may take to ask.
        self._longest_turn = (settings.fetch_timeout + RETRY_DELAY) * (1 + settings.fetch_retries) + 2 * LEASE
        self._flights: dict[Origin, OriginFetch] = {}
        self._putting_away: set[Deferred[None]] = set()
        self._stopped = False

    def known(self, origin: Origin, cause: Request) -> RobotsPolicy | None:
        """What may be used at once; None where the request has to wait for robots.txt.

        Where it is time to ask again, but nobody is to wait for that, `cause` makes it be asked for in the background.
        """
        policy = self._memory.policy(origin, self._clock())
        if policy is None or policy.is_settled:
            return policy
        if policy.refetch is Refetch.FIRST:
            return None
        self._begin(origin, cause)
        return policy

    async def resolve(self, origin: Origin, cause: Request) -> RobotsPolicy:
        """Wait for the origin's robots.txt, which is asked for once, however many wait.

        Always comes to an answer, but for the closing of the crawl: then it raises StoppingError.
        """
        while True:
            if self._stopped:
                raise StoppingError
            policy = await self._begin(origin, cause).landed(origin)
            if policy is not None:
                return policy
            # Another origin's redirects led here; what they came to, if anything, is unclaimed.

    def stop(self) -> None:
        """The crawl is closing: whoever waits is told so, and nothing is asked for any longer."""
        self._stopped = True
        for flight in list(self._flights.values()):
            flight.stop()

    async def close(self) -> None:
        """The crawl is over, and stopped: what is to be stored, is, and leases are given back."""
        if self._shelf is not None:
            self._shelf.start_closing()
        tasks = [flight.task for flight in self._flights.values() if flight.task is not None]
        await maybe_deferred_to_future(DeferredList(tasks))
        await maybe_deferred_to_future(DeferredList(list(self._putting_away)))
        if self._shelf is not None:
            await self._shelf.close()

    def _begin(self, origin: Origin, cause: Request) -> OriginFetch:
        flight = self._flights.get(origin)
        if flight is None:
            flight = self._flights[origin] = OriginFetch(origin)
            if not self._stopped:
                # The flight is nobody's: whoever began it may be cancelled, the others still get their answer.
                call_later(0, self._take_off, flight, cause)
        return flight

    def _take_off(self, flight: OriginFetch, cause: Request) -> None:
        flight.task = deferred_from_coro(self._fly(flight, cause))
        flight.task.addErrback(lambda _failure: None)  # told of already; only a cancellation comes here

    async def _fly(self, flight: OriginFetch, cause: Request) -> None:
        origin = flight.origin
        before = self._memory.policy(origin, self._clock())
        known = self._memory.take_up(origin) if before is None else before.entry
        entry = self._failed(origin, known, "cancelled")
        try:
            entry = await self._last_word(flight, known, cause, is_refresh=before is not None and before.is_current)
            await self._introduced(origin, self._answered(entry), cause)
        except StoppingError:
            self._stopped = True
        except Exception as exc:
            if not self._stopped:
                # No server's doing: those are answers. Whoever waits is refused, and the defect shows.
                logger.exception("Unforeseen while asking for %s", origin.robots_url)
            entry = self._failed(origin, known, repr(exc))
        finally:
            self._end_leg(flight, {})
            del self._flights[origin]
            if self._stopped:
                flight.land(origin, StoppingError())
            else:
                self._memory.put(origin, entry, self._clock())
                flight.land(origin, self._answered(entry))

    async def _last_word(self, flight: OriginFetch, known: Entry | None, cause: Request, *, is_refresh: bool) -> Entry:
        """What the origin's robots.txt says; asked for again while it is unreachable and requests wait for it."""
        if not is_refresh and (known is None or not self._policy(known).is_current):
            self._count("rep/cache/miss")
        while True:
            known, is_enough = await self._looked_up(
                flight, flight.origin, known, is_refresh=is_refresh, longest=self._longest_turn
            )
            if known is None or not is_enough:
                asked = await self._ask(flight, known, cause)
                known = asked[flight.origin]
                self._asked(flight.origin, self._policy(known), cause)
                if is_refresh and known.outage is None:
                    self._count("rep/refreshed")
                self._end_leg(flight, asked)
            pause = pause_before_refetch(self._policy(known), self._clock(), self._limits.budget)
            if pause is None:
                return known
            await self._sleep(pause)

    def _end_leg(self, flight: OriginFetch, asked: dict[Origin, Entry]) -> None:
        """What was asked for is stored, and only then others may ask; nobody need wait for that here."""
        for other in list(flight.passed):
            self._land_passed(flight, other, asked.get(other))
        leases, flight.leases = flight.leases, []
        for lease in leases:
            lease.let_go()
        if self._shelf is not None and (asked or leases):
            putting_away = deferred_from_coro(self._put_away(self._shelf, asked, leases))
            self._putting_away.add(putting_away)
            putting_away.addBoth(lambda _: self._putting_away.discard(putting_away))

    async def _looked_up(
        self, flight: OriginFetch, origin: Origin, known: Entry | None, *, is_refresh: bool, longest: float
    ) -> tuple[Entry | None, bool]:
        """What is known before anybody is asked, and whether it is enough; waits where another crawler is asking."""

        def is_enough(entry: Entry) -> bool:
            policy = self._policy(entry)
            return policy.refetch is Refetch.NOT if is_refresh else policy.is_current

        if known is not None and is_enough(known):
            return known, True
        if self._shelf is None:
            return known, False
        search = self._shelf.search(origin, known, is_enough)
        flight.leases.append(search.lease)
        found = await search.found() or not await search.is_our_turn(longest, self._sleep)
        self._count("rep/storage/hit" if found else "rep/storage/miss")
        return search.known, found

    async def _fetch(
        self, url: str, trigger: Request, jar: CookieJar, *, past_cache: bool = False, validators: Caching | None = None
    ) -> Answer:
        answer = await self._fetch_hop(url, trigger, jar, past_cache=past_cache, validators=validators)
        if self._stopped:
            raise StoppingError
        return answer

    async def _ask(self, flight: OriginFetch, known: Entry | None, cause: Request) -> dict[Origin, Entry]:
        """Ask the origin; an entry for it, and for each of the others that were answered for on the way."""

        async def meet(other: Origin) -> Met:
            return await self._meet(flight, other)

        # A cache of the crawl's would only replay what is known.
        walk = await self._asking.walk(flight.origin, known, cause, meet, past_cache=known is not None)
        if walk.is_replayed:
            replayed = self._after(flight.origin, known, walk)
            if self._policy(replayed).refetch is Refetch.FIRST or replayed.outage is not None:
                # Too old to be used, but not to be asked about, or to be obeyed while there is nothing newer.
                known = replayed if replayed.stored is not None else known
                walk = await self._asking.walk(flight.origin, known, cause, meet, past_cache=True)
        knowns = {**flight.passed, flight.origin: known}
        return {origin: self._after(origin, knowns.get(origin), walk) for origin in walk.results}

    def _after(self, origin: Origin, known: Entry | None, walk: Walk) -> Entry:
        return after_fetch(known, origin.robots_url, walk.results[origin], self._clock(), self._limits)

    async def _meet(self, flight: OriginFetch, other: Origin) -> Met:
        """A redirect leads to another origin's robots.txt: what is known of it, or that this flight answers for it."""
        while True:
            policy = self._at_hand(other)
            if policy is not None:
                return self._met(policy)
            if other in flight.passed:
                return Met(answers_for=True, known=flight.passed[other])
            others = self._flights.get(other)
            if others is None:
                return await self._pass(flight, other)
            if others.is_waiting_for(flight):
                return Met()
            flight.waits_for = others
            try:
                policy = await others.landed(other)
            finally:
                flight.waits_for = None
            if policy is not None:
                return self._met(policy)

    async def _pass(self, flight: OriginFetch, other: Origin) -> Met:
        """This flight is the other origin's as well, unless that is known to those who share the store."""
        self._flights[other] = flight
        memory = self._memory.policy(other, self._clock())
        known = flight.passed[other] = memory.entry if memory is not None else self._memory.take_up(other)
        known, is_enough = await self._looked_up(flight, other, known, is_refresh=False, longest=MEETING)
        flight.passed[other] = known
        if known is None or not is_enough:
            return Met(answers_for=True, known=known)
        self._land_passed(flight, other, known)
        return self._met(self._policy(known))

    def _met(self, policy: RobotsPolicy) -> Met:
        self._count("rep/redirects/shared")
        return Met(policy)

    def _at_hand(self, origin: Origin) -> RobotsPolicy | None:
        """What may be used of it without asking."""
        now = self._clock()
        policy = self._memory.policy(origin, now)
        if policy is None and (unclaimed := self._memory.laid_aside(origin)) is not None:
            policy = self._policy(unclaimed)
        return None if policy is None or policy.refetch is Refetch.FIRST else policy

    def _land_passed(self, flight: OriginFetch, other: Origin, entry: Entry | None) -> None:
        """Those who wait for it ask anew, and find this unclaimed: it was not introduced to them so far."""
        del flight.passed[other], self._flights[other]
        if entry is not None and not self._stopped:
            self._memory.lay_aside(other, entry)
        flight.land(other, None)

    async def _put_away(self, shelf: SharedStore, asked: dict[Origin, Entry], leases: list[Lease]) -> None:
        for origin, entry in asked.items():
            await shelf.put(origin, entry, self._clock())
        for lease in leases:
            await lease.release()

    def _policy(self, entry: Entry) -> RobotsPolicy:
        return policy_at(entry, self._clock(), self._limits.unreachable_for)

    def _answered(self, entry: Entry) -> RobotsPolicy:
        return policy_after_fetch(entry, self._clock(), self._limits.unreachable_for)

    def _failed(self, origin: Origin, known: Entry | None, cause: str) -> Entry:
        fetched = FetchResult(AccessResult.UNREACHABLE, reason=cause)
        return after_fetch(known, origin.robots_url, fetched, self._clock(), self._limits)
