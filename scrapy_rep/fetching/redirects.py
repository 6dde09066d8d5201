"""Fetching one origin's robots.txt along its redirects to the last answer (RFC 9309 section 2.3.1.2)."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from scrapy import Request
from scrapy.http.cookies import CookieJar

from scrapy_rep.clock import Clock
from scrapy_rep.protocol.access_result import AccessResult, Answer, FetchEvent, is_worth_a_retry
from scrapy_rep.protocol.entry import StoredResponse
from scrapy_rep.protocol.freshness import LEAST_LIFETIME, MAX_LIFETIME, Caching, fresh_until, freshened, validates
from scrapy_rep.protocol.lifecycle import Basis, FetchResult, RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.redirect_target import why_not_followed
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.status_policy import REDIRECT_STATUSES, judge
from scrapy_rep.settings import RepSettings
from scrapy_rep.text import printable

logger = logging.getLogger("scrapy_rep")

RETRY_DELAY = 1.0  # seconds before the same hop is requested again


class Fetch(Protocol):
    """`Fetcher.fetch`: one hop."""

    def __call__(
        self, url: str, trigger: Request, jar: CookieJar, *, past_cache: bool = ..., validators: Caching | None = ...
    ) -> Awaitable[Answer]: ...


class Elsewhere(Enum):
    """What a redirect to another origin's robots.txt can come to besides that origin's policy."""

    FOLLOW = "it has no policy yet, and this answer would not be good for it"
    RING = "it waits for the origin that redirects to it"
    GIVE_UP = "too many redirects follow"


Resolve = Callable[[Origin], Awaitable["RobotsPolicy | Elsewhere"]]


@dataclass(frozen=True, slots=True)
class HopFreshness:
    """For how long one hop's answer may be used. Of several in a row, the strictest counts."""

    received_at: float
    """Seconds since the epoch."""
    fresh_until: float
    """Seconds since the epoch."""
    forbids_stale: bool = False
    forbids_store: bool = False
    replayed: bool = False
    """It came from a cache of the crawl's, which may have something newer to ask for."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One answer, and what it means."""

    answer: Answer
    access: AccessResult
    reason: str
    """The answer in words."""
    caching: Caching
    sign: str = ""
    """What decided instead of the status, as of `Judgement`."""
    validated: StoredResponse | None = None
    """The stored response that a 304 has confirmed."""


class RedirectChain:
    """One fetch of an origin's robots.txt, along its redirects."""

    def __init__(
        self,
        origin: Origin,
        stored: StoredResponse | None,
        trigger: Request,
        *,
        fetch: Fetch,
        resolve: Resolve,
        settings: RepSettings,
        clock: Clock,
        count: Callable[[str], None],
        past_cache: bool,
    ) -> None:
        """`stored`: the origin's last answer, to be confirmed if its server can. `trigger`: the request that needs
        robots.txt. `resolve` gives another origin's policy. `count` adds one to a stat. `past_cache`:
        HttpCacheMiddleware is to neither replay nor store the answers."""
        self._origin = origin
        self._stored = stored
        self._trigger = trigger
        self._fetch = fetch
        self._resolve = resolve
        self._settings = settings
        self._clock = clock
        self._count = count
        self._past_cache = past_cache
        # Cookies stay within their origin: another one's would become part of the question put to it.
        self._jars: defaultdict[Origin | None, CookieJar] = defaultdict(CookieJar)
        self._freshness: list[HopFreshness] = []
        self._redirects = 0
        self._failed_at: float | None = None
        self._url = origin.robots_url

    @property
    def is_replayed(self) -> bool:
        """Whether any answer came from a cache of the crawl's, which may have something newer to ask for."""
        return any(hop.replayed for hop in self._freshness)

    async def result(self, max_in_ring: int) -> FetchResult | None:
        """What the fetch comes to; None where another origin's redirects led here, and too many follow.

        At most `max_in_ring` redirects are followed once another origin is found to wait for this one. Never raises for
        what a server does.
        """
        is_ring = False
        while True:
            hop = await self._hop()
            self._freshness.append(self._freshness_of(hop))
            location = hop.answer.location
            if hop.access is not AccessResult.REDIRECT or location is None:
                return self._result_of(hop)
            if is_ring and self._redirects >= max_in_ring:
                return None
            if self._redirects >= self._settings.max_redirects:
                return self.gave_up()
            self._follow(location)
            elsewhere = await self._elsewhere()
            if isinstance(elsewhere, RobotsPolicy):
                return self._result_shared(elsewhere)
            if elsewhere is Elsewhere.GIVE_UP:
                return None
            is_ring = is_ring or elsewhere is Elsewhere.RING

    def _follow(self, location: str) -> None:
        self._redirects += 1
        self._count("rep/redirects")
        if self._url.startswith("https:") and location.startswith("http:"):
            logger.debug("robots.txt leads from https to http: %s -> %s", printable(self._url), printable(location))
        self._url = location

    async def _elsewhere(self) -> RobotsPolicy | Elsewhere | None:
        """What the redirect's target comes to, if it is another origin's robots.txt; else None."""
        origin = Origin.of(self._url)
        if origin is None or origin == self._origin or origin.robots_url != self._url:
            return None
        return await self._resolve(origin)

    async def _hop(self) -> Hop:
        """One hop's answer, and what it means; requested again where that is worth it."""
        retries, past_cache, stored = self._settings.fetch_retries, self._past_cache, self._validatable()
        while True:
            jar = self._jars[Origin.of(self._url)]
            answer = await self._fetch(
                self._url, self._trigger, jar, past_cache=past_cache, validators=stored.caching if stored else None
            )
            if stored is not None and (answer.status == 412 or not _is_about(stored, answer)):
                stored, past_cache = None, True  # the server confuses its own validators: ask without them
                continue
            hop = self._judged(answer, stored)
            if hop.access is AccessResult.UNREACHABLE and self._failed_at is None:
                self._failed_at = self._clock.now()
            if not retries or not is_worth_a_retry(answer, hop.access):
                return hop
            retries, past_cache = retries - 1, True
            logger.debug("Requesting robots.txt once more: %s: %s", printable(self._url), printable(hop.reason))
            self._count("rep/retries")
            await self._clock.sleep(RETRY_DELAY)

    def _validatable(self) -> StoredResponse | None:
        """Rules from this very address that its server can confirm."""
        stored = self._stored
        if stored is None or stored.robots is None or stored.url != self._url:
            return None
        return stored if stored.caching.etag or stored.caching.last_modified else None

    def _judged(self, answer: Answer, stored: StoredResponse | None) -> Hop:
        if stored is not None and answer.status == 304:
            caching = freshened(stored.caching, answer.caching)
            return Hop(answer, AccessResult.SUCCESS, stored.reason, caching, validated=stored)
        # A 304 that nobody asked for is in the table, too.
        access, reason, sign = judge(answer, self._settings.status_policy)
        if access is AccessResult.REDIRECT:
            wrong = why_not_followed(self._url, answer.location, private=self._settings.redirect_private)
            if wrong is not None:
                access, reason = AccessResult.UNREACHABLE, f"{reason} {wrong}"
        return Hop(answer, access, reason, answer.caching, sign)

    def _freshness_of(self, hop: Hop) -> HopFreshness:
        answer, caching = hop.answer, hop.caching
        is_old = answer.replayed and not answer.offline
        received_at = self._clock.now()
        if is_old:
            # As old as its date says; without one, of unknown age.
            received_at = min(received_at, caching.date or 0.0)
        return HopFreshness(
            received_at,
            fresh_until(caching, received_at, self._settings.lifetime_min, answer.response_delay),
            forbids_stale=caching.forbids_stale,
            # An answer that is used although it may be old is not for others.
            forbids_store=caching.no_store or answer.offline,
            replayed=is_old,
        )

    def _result_of(self, hop: Hop) -> FetchResult:
        """Of the last answer."""
        answer, validated = hop.answer, hop.validated
        if hop.access in {AccessResult.UNREACHABLE, AccessResult.REDIRECT}:
            outcome = FetchEvent.DROPPED if answer.dropped else AccessResult.UNREACHABLE
            # It is not a redirect's status that made it unreachable.
            status = None if answer.status in REDIRECT_STATUSES and not hop.sign else answer.status
            return FetchResult(outcome, None, hop.reason, status, hop.sign, answer.retry_after, self._failed_at)
        if validated is not None:
            self._count("rep/revalidated")
            sign, sha256 = validated.sign, validated.sha256
            stored = self._response(
                hop.access, hop.reason, validated.robots, validated.status, hop.caching, sign=sign, sha256=sha256
            )
            return FetchResult(FetchEvent.NOT_MODIFIED, stored)
        # Only a success is ever read as rules.
        is_success = hop.access is AccessResult.SUCCESS
        robots = RobotsTxt.parse(answer.body, self._settings.body_limit) if is_success else None
        digest = hashlib.sha256(answer.body).hexdigest() if is_success else ""
        stored = self._response(
            hop.access, hop.reason, robots, answer.status, hop.caching, sign=hop.sign, sha256=digest
        )
        return FetchResult(hop.access, stored)

    def _result_shared(self, policy: RobotsPolicy) -> FetchResult:
        """Of another origin's policy."""
        shared = policy.entry.stored
        if shared is None or policy.basis is not Basis.STORED or policy.is_stale:
            reason, sign = policy.entry.reason, policy.entry.sign
            return FetchResult(AccessResult.UNREACHABLE, reason=reason, sign=sign, failed_at=self._failed_at)
        self._redirects += shared.redirects
        if self._redirects > self._settings.max_redirects:
            return self.gave_up()
        self._url = shared.url
        self._freshness.append(
            HopFreshness(shared.received_at, shared.fresh_until, shared.forbids_stale, shared.forbids_store)
        )
        sign, sha256 = shared.sign, shared.sha256
        stored = self._response(
            shared.access, shared.reason, shared.robots, shared.status, shared.caching, sign=sign, sha256=sha256
        )
        return FetchResult(shared.access, stored)

    def gave_up(self) -> FetchResult:
        """2.3.1.2: "crawlers MAY assume that the robots.txt file is unavailable"."""
        now = self._clock.now()
        self._freshness.append(HopFreshness(now, now + MAX_LIFETIME))
        self._redirects = self._settings.max_redirects + 1
        reason = f"more than {self._settings.max_redirects} redirects in a row"
        return FetchResult(AccessResult.UNAVAILABLE, self._response(AccessResult.UNAVAILABLE, reason))

    def _response(
        self,
        access: AccessResult,
        reason: str,
        robots: RobotsTxt | None = None,
        status: int | None = None,
        caching: Caching | None = None,
        *,
        sign: str = "",
        sha256: str = "",
    ) -> StoredResponse:
        """The answer, with the strictest freshness of all hops."""
        hops = self._freshness
        received_at = min(hop.received_at for hop in hops)
        until = min(hop.fresh_until for hop in hops)
        if not self.is_replayed:  # counted from now: the hops, with their retries, may have taken longer than that
            until = min(max(until, self._clock.now() + LEAST_LIFETIME), received_at + MAX_LIFETIME)
        return StoredResponse(
            access,
            reason,
            robots,
            received_at=received_at,
            fresh_until=until,
            status=status,
            sign=sign,
            url=self._url,
            redirects=self._redirects,
            caching=caching if caching is not None else Caching(),
            forbids_stale=any(hop.forbids_stale for hop in hops),
            forbids_store=any(hop.forbids_store for hop in hops),
            sha256=sha256,
        )


def _is_about(stored: StoredResponse, answer: Answer) -> bool:
    return answer.status != 304 or validates(stored.caching, answer.caching)
