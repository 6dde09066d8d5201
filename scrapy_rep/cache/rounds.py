"""The rounds of a fetch: how the robots.txt of one origin becomes known, while requests wait.

One round has four steps:

1. Find. The round looks for an entry that makes a fetch unnecessary. An entry that expires soon does not. The round
   looks first at the entry that this crawl has: from memory, or from the round before. Then it looks in the shared
   store, if there is one. If it finds none, this crawler takes the origin's lease. If another crawler has the lease,
   this crawler waits for that crawler's entry (`cache.shared_store`).
2. Fetch, if none was found (`fetching.redirects`).
   - In the first round, a request that may soon succeed (lost connection, 5xx without Retry-After) is repeated up to
     REP_FETCH_RETRIES times. Later rounds do not retry.
   - If HttpCacheMiddleware has replayed a failure, or an answer that is too old, the fetch is repeated past its cache.
   - The answer and the old entry make the new entry (`protocol.lifecycle`). In the background, the new entry goes into
     the shared store. Then the lease is given back, even if nothing was stored.
3. Report. The extensions and the signal `robots_known` get the result of the round.
4. Pause. If nothing is allowed because robots.txt is unreachable, and requests wait, another round begins after the
   backoff. Rounds begin within REP_UNREACHABLE_WAIT seconds after the first one, by the monotonic clock. If the backoff
   ends later, one last round begins at the end of this time. There are exceptions:
   - After a time-out, no round follows.
   - If the server asked for more time than is left (Retry-After), there is no last round. A fetch that another
     component of the crawl dropped counts like a Retry-After of an hour.
   - If the first round only found an outage, and made no request, the second never begins before the backoff ends.

The result of the last round decides about all requests that have waited. If a file is obeyed, the signal
`robots_parsed` is sent before the requests go on, unless the crawl remembers that it was sent for this origin.

A cancellation, or an internal error in step 1 or 2, counts as a failure of the network. After a cancellation, no round
follows. An error of an extension in step 3 is only logged. Any other internal error ends the fetch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache
from twisted.internet.defer import CancelledError

from scrapy_rep.cache.memory import Memory
from scrapy_rep.clock import Clock
from scrapy_rep.fetching.answers import Answers
from scrapy_rep.fetching.redirects import Redirects
from scrapy_rep.log import logger_of
from scrapy_rep.origin_info import OriginInfo, origin_info
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, last_fetched_at
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy, State, after_fetch
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_known, robots_parsed
from scrapy_rep.text import printable

if TYPE_CHECKING:
    from scrapy_rep.cache.shared_store import SharedStore

FAULT = "Internal error while fetching %s"
CANCELLATIONS = (asyncio.CancelledError, CancelledError)  # Twisted's is an Exception


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round begins with."""

    origin: Origin
    trigger: Request
    """The request that needs the origin's robots.txt."""
    known: Entry | None
    """What this crawl knew before the round; None if nothing."""
    retries: int
    """How often each HTTP request may be repeated."""
    is_last: bool = False
    """Whether the round begins at the end of REP_UNREACHABLE_WAIT, even if the backoff is not over."""


class Rounds:
    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        clock: Clock,
        *,
        memory: Memory,
        store: SharedStore | None,
        answers: Answers,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._memory = memory
        self._store = store
        self._answers = answers
        self._log = logger_of(crawler)
        self._count = crawler.stats.inc_value
        self._signals = crawler.signals
        self._parsed: LocalCache[Origin, None] = LocalCache(limit=settings.memory_origins)
        """The origins for which Scrapy's signal `robots_parsed` was sent."""
        self.robots_known: list[Callable[[Origin, OriginInfo, Request], None]] = []
        """Called after each round, before the signal of that name. This package's own extensions use this list, because
        a call costs a hundredth of a signal."""
        self.is_closing = False

    async def policy(self, origin: Origin, trigger: Request, is_awaited: Callable[[], bool]) -> RobotsPolicy:
        """The policy that decides about all requests that have waited. `trigger`: the request that needs robots.txt.
        `is_awaited`: whether requests wait for the policy now. Waits for other crawlers, the network, pauses between
        rounds, and handlers of signals."""
        clock, settings = self._clock, self._settings
        deadline = clock.monotonic() + settings.unreachable_wait
        before = self._memory.recall(origin, clock.now())
        if before is None or before.refetch is Refetch.FIRST:
            self._count("rep/cache/miss")
        round_ = _Round(origin, trigger, before.entry if before is not None else None, settings.fetch_retries)
        has_asked = False
        try:
            while True:
                policy, is_fetched = await self._find_or_fetch(round_)
                has_asked = has_asked or is_fetched
                left = deadline - clock.monotonic()
                has_next = is_awaited() and not round_.is_last
                pause = policy.pause_at(clock.now(), left, may_be_last=has_asked) if has_next else None
                self._report(round_, policy, pause, is_fetched=is_fetched)
                if pause is None:
                    break
                round_ = _Round(origin, trigger, policy.entry, retries=0, is_last=pause >= left)
                has_asked = True
                await clock.sleep(pause)
        except CANCELLATIONS:
            return self._failed(round_, "cancelled")
        if before is not None and before.state is State.AGEING and is_fetched and policy.entry.outage is None:
            self._count("rep/refreshed")
        await self._report_rules(round_, policy)
        return policy

    async def _find_or_fetch(self, round_: _Round) -> tuple[RobotsPolicy, bool]:
        """The policy after the round, and whether robots.txt was fetched. Waits for other crawlers and the network."""
        known, lease, fetched = round_.known, None, None
        try:
            if known is not None and not self._is_due(round_, known):
                return self._policy_of(known), False
            if self._store is not None:
                known, lease = await self._store.find_or_lease(round_.origin, known, partial(self._is_due, round_))
                self._count("rep/storage/miss" if lease is not None else "rep/storage/hit")
                if known is not None and lease is None:
                    return self._policy_of(known), False
            policy = await self._fetch(round_, known)
            fetched = policy.entry
        except CANCELLATIONS:
            raise
        except Exception as exc:
            if self.is_closing:
                raise
            self._log.exception(FAULT, round_.origin.robots_url)
            policy = self._failed(round_, printable(f"internal error, {type(exc).__name__}: {exc}"))
        finally:
            if self._store is not None and lease is not None:
                self._store.give_back(lease, fetched)
        return policy, True

    async def _fetch(self, round_: _Round, known: Entry | None) -> RobotsPolicy:
        """Fetch robots.txt along redirects. `known`: the latest entry that any crawler has. Waits for the answers."""
        policy, is_replayed = await self._follow_redirects(round_, known, is_repeated=known is not None)
        if is_replayed and (policy.refetch is Refetch.FIRST or policy.entry.outage is not None):
            # The replay is a failure, or too old to decide. If it is only too old, it is what is `known` before the
            # second fetch. The server may confirm it. If the second fetch fails, its rules may still be obeyed.
            known = policy.entry if policy.entry.stored is not None else known
            policy, _ = await self._follow_redirects(round_, known, is_repeated=True)
        self._count(f"rep/access/{policy.entry.access.value}")
        return policy

    async def _follow_redirects(
        self, round_: _Round, known: Entry | None, *, is_repeated: bool
    ) -> tuple[RobotsPolicy, bool]:
        """The policy after one chain of redirects, and whether HttpCacheMiddleware has replayed a part of the chain."""
        redirects = Redirects(self._answers, round_.origin, known, round_.trigger, is_repeated, round_.retries)
        return self._policy_after(round_, known, await redirects.follow()), redirects.is_replayed

    # The result of a round. Nothing here waits.

    def _is_due(self, round_: _Round, entry: Entry) -> bool:
        """Whether the round has to fetch, if `entry` is the latest that any crawler has."""
        is_news = round_.known is None or last_fetched_at(entry) > last_fetched_at(round_.known)
        return (round_.is_last and not is_news) or self._policy_of(entry).is_fetch_due

    def _policy_of(self, entry: Entry) -> RobotsPolicy:
        return self._memory.policy_of(entry, self._clock.now())

    def _policy_after(self, round_: _Round, known: Entry | None, result: StoredResponse | Answer) -> RobotsPolicy:
        return self._policy_of(after_fetch(known, round_.origin.robots_url, result, self._clock.now()))

    def _failed(self, round_: _Round, reason: str) -> RobotsPolicy:
        """The policy after an internal error or a cancellation, which count as a failure of the network: an outage
        begins or goes on."""
        return self._policy_after(round_, round_.known, Answer(round_.origin.robots_url, reason=reason))

    # What becomes known is reported.

    def _report(self, round_: _Round, policy: RobotsPolicy, pause: float | None, *, is_fetched: bool) -> None:
        info = origin_info(policy, pause)
        for report in self.robots_known:
            try:
                report(round_.origin, info, round_.trigger)
            except Exception:  # noqa: BLE001, PERF203 - as with a signal's handler, an error changes nothing
                self._log.exception("Internal error while reporting %s", round_.origin.robots_url)
        self._signals.send_catch_log(
            robots_known, origin=round_.origin, info=info, request=round_.trigger, fetched=is_fetched
        )

    async def _report_rules(self, round_: _Round, policy: RobotsPolicy) -> None:
        """Send `robots_parsed`, unless it was sent for this origin. Waits for its handlers."""
        if policy.robots is None or round_.origin in self._parsed:
            return
        self._parsed[round_.origin] = None
        with suppress(*CANCELLATIONS):  # a handler was cancelled, or the crawl closes
            await self._signals.send_catch_log_async(
                robots_parsed, robotparser=RepRobotParser(policy.robots), request=round_.trigger
            )
