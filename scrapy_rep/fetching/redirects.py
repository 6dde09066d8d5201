"""Asking for one origin's robots.txt: hop by hop along its redirects to the last word (RFC 9309 section 2.3.1)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from scrapy import Request
from scrapy.http.cookies import CookieJar

from scrapy_rep.protocol.access_result import AccessResult, Answer, FetchEvent, is_worth_a_retry
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import MAX_LIFETIME, Caching, fresh_until, freshened, validates
from scrapy_rep.protocol.lifecycle import Basis, FetchResult, RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.redirect_target import why_not_followed
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.status_policy import REDIRECT_STATUSES, judge
from scrapy_rep.settings import RepSettings
from scrapy_rep.text import printable

logger = logging.getLogger("scrapy_rep")

RETRY_DELAY = 1.0  # seconds before the same hop is asked again


class Fetch(Protocol):
    """`Fetcher.fetch`: one hop."""

    def __call__(
        self, url: str, trigger: Request, jar: CookieJar, *, past_cache: bool = ..., validators: Caching | None = ...
    ) -> Awaitable[Answer]: ...


@dataclass(frozen=True, slots=True)
class Met:
    """What a walk finds at another origin's robots.txt."""

    policy: RobotsPolicy | None = None
    """What is known of it, to be used unasked; else the walk asks."""
    answers_for: bool = False
    """Whether the walk's answer is to be that origin's as well."""
    known: Entry | None = None


Meet = Callable[[Origin], Awaitable[Met]]


@dataclass(frozen=True, slots=True)
class Passed:
    """An origin whose robots.txt the walk has come by, its own among them."""

    origin: Origin
    known: Entry | None
    redirects: int
    """How many came before."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On which an answer may be used; of several in a row, the strictest."""

    received_at: float
    fresh_until: float
    forbids_stale: bool = False
    forbids_store: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Hop:
    """One answer, and what it means."""

    answer: Answer
    access: AccessResult
    words: str
    caching: Caching
    held: StoredResponse | None
    """The stored that still holds, of a 304 that we asked for."""


class Asking:
    """What each walk needs. `clock` gives seconds since the epoch; `count` adds one to a stat."""

    def __init__(
        self,
        settings: RepSettings,
        fetch: Fetch,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        count: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.fetch = fetch
        self.clock = clock
        self.sleep = sleep
        self.count = count

    async def walk(self, origin: Origin, known: Entry | None, cause: Request, meet: Meet, *, past_cache: bool) -> Walk:
        """Along the redirects to the last word. Never raises for what a server does."""
        walk = Walk(self, origin, known, cause, meet, past_cache=past_cache)
        await walk.to_the_end()
        return walk


class Walk:
    """One walk: afterwards `results` has what asking came to, for each origin that it answers for."""

    def __init__(
        self, asking: Asking, origin: Origin, known: Entry | None, cause: Request, meet: Meet, *, past_cache: bool
    ) -> None:
        self._asking = asking
        self._cause = cause
        self._meet = meet
        self._past_cache = past_cache
        self._jar = CookieJar()  # lives as long as this chain of redirects
        self._passed = [Passed(origin, known, 0)]
        self._terms: list[Terms] = []
        self._redirects = 0
        self._failed_at: float | None = None
        self._url = origin.robots_url
        self.results: dict[Origin, FetchResult] = {}

    @property
    def is_replayed(self) -> bool:
        """Whether any of it came from a cache of the crawl's, which may have something newer to ask for."""
        return any(terms.replayed for terms in self._terms)

    async def to_the_end(self) -> None:
        while True:
            hop = await self._hop()
            self._terms.append(self._terms_of(hop))
            location = hop.answer.location
            if hop.access is not AccessResult.REDIRECT or location is None:
                return self._ended(hop)
            if self._redirects >= self._asking.settings.max_redirects:
                return self._gave_up()
            self._follow(location)
            policy = await self._met()
            if policy is not None:
                return self._shared(policy)

    def _follow(self, location: str) -> None:
        self._redirects += 1
        self._asking.count("rep/redirects")
        if self._url.startswith("https:") and location.startswith("http:"):
            logger.debug("robots.txt leads from https to http: %s -> %s", printable(self._url), printable(location))
        self._url = location

    async def _met(self) -> RobotsPolicy | None:
        """What is known of another origin whose robots.txt the redirect leads to; None where it is to be asked for."""
        origin = Origin.of(self._url)
        if origin is None or origin.robots_url != self._url or any(origin == p.origin for p in self._passed):
            return None
        met = await self._meet(origin)
        if met.answers_for:
            self._passed.append(Passed(origin, met.known, self._redirects))
        return met.policy

    async def _hop(self) -> Hop:
        """One hop's answer, and what it means; asked for again where that is worth it."""
        asking, past_cache = self._asking, self._past_cache
        retries, held = asking.settings.fetch_retries, self._held()
        while True:
            answer = await asking.fetch(
                self._url, self._cause, self._jar, past_cache=past_cache, validators=held.caching if held else None
            )
            if held is not None and (answer.status == 412 or not _speaks_of(held, answer)):
                held, past_cache = None, True  # the server confuses its own validators: ask without
                continue
            hop = self._judged(answer, held)
            if hop.access is AccessResult.UNREACHABLE and self._failed_at is None:
                self._failed_at = asking.clock()
            if not retries or not is_worth_a_retry(answer, hop.access):
                return hop
            retries, past_cache = retries - 1, True
            logger.debug("robots.txt is asked for once more: %s: %s", printable(self._url), printable(hop.words))
            asking.count("rep/retries")
            await asking.sleep(RETRY_DELAY)

    def _held(self) -> StoredResponse | None:
        """Rules from this very address that the server can be asked about."""
        for passed in self._passed:
            stored = passed.known.stored if passed.known is not None else None
            if stored is not None and stored.robots is not None and stored.url == self._url:
                return stored if stored.caching.etag or stored.caching.last_modified else None
        return None

    def _judged(self, answer: Answer, held: StoredResponse | None) -> Hop:
        if held is not None and answer.status == 304:
            return Hop(answer, AccessResult.SUCCESS, held.reason, freshened(held.caching, answer.caching), held)
        # A 304 that nobody asked for is in the table, too.
        settings = self._asking.settings
        access, words = judge(answer, settings.status_policy)
        if access is AccessResult.REDIRECT:
            wrong = why_not_followed(self._url, answer.location, private=settings.redirect_private)
            if wrong is not None:
                access, words = AccessResult.UNREACHABLE, f"{words} {wrong}"
        return Hop(answer, access, words, answer.caching, None)

    def _terms_of(self, hop: Hop) -> Terms:
        answer, caching = hop.answer, hop.caching
        is_old = answer.replayed and not answer.offline
        received_at = self._asking.clock()
        if is_old:
            # As old as its date says; without one, of an age that nobody knows.
            received_at = min(received_at, caching.date or 0.0)
        return Terms(
            received_at,
            fresh_until(caching, received_at, self._asking.settings.lifetime_min, answer.response_delay),
            forbids_stale=caching.forbids_stale,
            # What is used although it may be old is nothing to tell others.
            forbids_store=caching.no_store or answer.offline,
            replayed=is_old,
        )

    def _ended(self, hop: Hop) -> None:
        """The last word was reached."""
        answer, held = hop.answer, hop.held
        if hop.access in {AccessResult.UNREACHABLE, AccessResult.REDIRECT}:
            outcome = FetchEvent.DROPPED if answer.dropped else AccessResult.UNREACHABLE
            # Of a redirect, it is not the status that made it unreachable.
            status = None if answer.status in REDIRECT_STATUSES else answer.status
            self._conclude(FetchResult(outcome, None, hop.words, status, answer.retry_after, self._failed_at))
            return
        robots, status = None, answer.status
        if held is not None:
            self._asking.count("rep/revalidated")
            robots, status = held.robots, held.status
        elif hop.access is AccessResult.SUCCESS:
            # The body of anything but a success is never read as rules.
            robots = RobotsTxt.parse(answer.body, self._asking.settings.body_limit)
        self._answered(
            StoredResponse(hop.access, hop.words, robots, 0.0, 0.0, status, self._url, caching=hop.caching), held
        )

    def _shared(self, policy: RobotsPolicy) -> None:
        """The last word is what is known of another origin's robots.txt."""
        stored = policy.entry.stored
        if stored is None or policy.basis is not Basis.STORED or policy.is_stale:
            self._conclude(FetchResult(AccessResult.UNREACHABLE, reason=policy.entry.reason))
        elif self._redirects + stored.redirects > self._asking.settings.max_redirects:
            self._gave_up()
        else:
            self._redirects += stored.redirects
            self._terms.append(
                Terms(stored.received_at, stored.fresh_until, stored.forbids_stale, stored.forbids_store)
            )
            self._answered(stored, None)

    def _gave_up(self) -> None:
        """2.3.1.2: "crawlers MAY assume that the robots.txt file is unavailable"; for the origin that it began at."""
        words = f"more than {self._asking.settings.max_redirects} redirects in a row"
        now = self._asking.clock()
        self._passed = self._passed[:1]
        self._terms.append(Terms(now, now + MAX_LIFETIME))
        self._answered(StoredResponse(AccessResult.UNAVAILABLE, words, None, now, now), None)

    def _answered(self, stored: StoredResponse, held: StoredResponse | None) -> None:
        """The answer, for each origin on the terms of the redirects that led from it."""
        for passed in self._passed:
            terms = self._terms[passed.redirects :]
            own = replace(
                stored,
                received_at=min(t.received_at for t in terms),
                fresh_until=min(t.fresh_until for t in terms),
                redirects=self._redirects - passed.redirects,
                forbids_stale=any(t.forbids_stale for t in terms),
                forbids_store=any(t.forbids_store for t in terms),
            )
            is_own = held is not None and passed.known is not None and passed.known.stored is held
            outcome = FetchEvent.NOT_MODIFIED if is_own else stored.access
            self.results[passed.origin] = FetchResult(outcome, own)

    def _conclude(self, fetched: FetchResult) -> None:
        """The same outcome for every origin on the way."""
        self.results = {passed.origin: fetched for passed in self._passed}


def _speaks_of(held: StoredResponse, answer: Answer) -> bool:
    return answer.status != 304 or validates(held.caching, answer.caching)
