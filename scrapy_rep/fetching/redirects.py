"""Fetching one origin's robots.txt along its redirects to the last answer (RFC 9309 section 2.3.1.2)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

from scrapy import Request
from scrapy.http.cookies import CookieJar

from scrapy_rep.fetching.answers import Answers, Received, caching_after
from scrapy_rep.fetching.robots_request import Question
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import LEAST_LIFETIME, MAX_LIFETIME, Caching, fresh_until, validates
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import Failure
from scrapy_rep.protocol.redirect_target import is_private
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.status_policy import REDIRECT_STATUSES
from scrapy_rep.text import printable


class Step(NamedTuple):
    """One answer on the way. Of several in a row, the strictest freshness counts."""

    url: str
    received: Received
    caching: Caching
    received_at: float
    """Seconds since the epoch; of a replay, when its original came."""
    fresh_until: float
    """Seconds since the epoch."""
    validated: StoredResponse | None
    """The stored response that a 304 has confirmed."""

    @property
    def is_replayed(self) -> bool:
        """It came from a cache of the crawl's, which may have something newer to ask for."""
        return self.received.answer.replayed and not self.received.answer.offline

    @property
    def is_private(self) -> bool:
        """Whether its server is, by its name or by its address."""
        origin, address = Origin.of(self.url), self.received.answer.address
        return any(is_private(host) for host in (origin and origin.host, address) if host)


class Redirects:
    """One origin's redirects, followed once."""

    def __init__(
        self, answers: Answers, origin: Origin, known: Entry | None, trigger: Request, *, past_cache: bool
    ) -> None:
        """`known`: of the origin; its answer is confirmed if its server can. `trigger`: the request that needs
        robots.txt. `past_cache`: HttpCacheMiddleware is to neither replay nor store the answers."""
        self._answers = answers
        self._settings = answers.settings
        self._origin = origin
        self._known = known
        self._trigger = trigger
        self._past_cache = past_cache
        # Cookies live within one chain and one origin: a cookie of another origin would become part of the request.
        self._jars: defaultdict[Origin | None, CookieJar] = defaultdict(CookieJar)
        self._steps: list[Step] = []

    async def follow(self) -> StoredResponse | Failure:
        """What the origin's robots.txt comes to now. Waits for each answer; never raises for what a server does."""
        url = self._origin.robots_url
        while True:
            step = await self._ask(url)
            self._steps.append(step)
            location = step.received.answer.location
            if step.received.judgement.access is not AccessResult.REDIRECT or location is None:
                return self._result()
            if len(self._steps) > self._settings.max_redirects:
                return self._gave_up()
            self._answers.count("rep/redirects")
            if url.startswith("https:") and location.startswith("http:"):
                self._answers.log.debug(
                    "robots.txt leads from https to http: %s -> %s", printable(url), printable(location)
                )
            url = location

    async def _ask(self, url: str) -> Step:
        """The URL's answer: to a request of now, or to another fetch's."""
        stored = self._validatable(url)
        outage = self._known.outage if self._known is not None else None
        question = Question(
            url,
            self._trigger,
            self._jars[Origin.of(url)],
            stored.caching if stored is not None else None,
            self._past_cache,
            self._is_from_public(url),
        )
        received, is_shared = await self._answers.get(
            question,
            newer_than=outage.asked_at if outage is not None else 0.0,
            alone=any(step.url == url for step in self._steps),
        )
        if stored is not None and (received.answer.status == 412 or not _is_about(stored, received)):
            # The server confuses its own validators: ask without them.
            stored, question = None, replace(question, validators=None)
            received, is_shared = await self._answers.get(question, alone=True)
        if is_shared and self._steps:
            self._answers.count("rep/redirects/shared")
        return self._step(url, received, stored)

    def _validatable(self, url: str) -> StoredResponse | None:
        """Rules from this very address that its server can confirm."""
        stored = self._known.stored if self._known is not None else None
        if stored is None or stored.robots is None or stored.url != url:
            return None
        return stored if stored.caching.etag or stored.caching.last_modified else None

    def _is_from_public(self, url: str) -> bool:
        """Whether a public host redirects to the URL, which then must not be a private host's."""
        if not self._steps or self._settings.redirect_private:
            return False
        return Origin.of(url) != self._origin and not self._steps[-1].is_private

    def _step(self, url: str, received: Received, stored: StoredResponse | None) -> Step:
        answer, received_at = received.answer, received.at
        caching = caching_after(answer, stored.caching if stored is not None else None)
        if answer.replayed and not answer.offline:
            # As old as its date says; without one, of unknown age.
            received_at = min(received_at, caching.date or 0.0)
        until = fresh_until(caching, received_at, self._settings.lifetime_min, answer.response_delay)
        return Step(url, received, caching, received_at, until, stored if answer.status == 304 else None)

    # What it comes to.

    def _result(self) -> StoredResponse | Failure:
        """Of the last answer."""
        step = self._steps[-1]
        answer, (access, words, sign), received_at, _ = step.received
        if access is AccessResult.UNREACHABLE:
            # Of a redirect that cannot be followed, the Location is the reason, not the status.
            status = None if answer.status in REDIRECT_STATUSES and not sign else answer.status
            began_at = next(at for each in self._steps if (at := each.received.failed_at) is not None)
            return Failure(words, status, sign, answer.retry_after, began_at, received_at, answer.dropped)
        if step.validated is not None:
            self._answers.count("rep/revalidated")
            return replace(step.validated, caching=step.caching, **self._terms())
        robots, digest = None, ""
        if access is AccessResult.SUCCESS:  # nothing else is ever read as rules
            robots = RobotsTxt.parse(answer.body, self._settings.body_limit)
            digest = hashlib.sha256(answer.body).hexdigest()
        return StoredResponse(
            access,
            words,
            robots,
            status=answer.status,
            sign=sign,
            url=step.url,
            caching=step.caching,
            sha256=digest,
            **self._terms(),
        )

    def _gave_up(self) -> StoredResponse:
        """2.3.1.2: "crawlers MAY assume that the robots.txt file is unavailable"."""
        words = f"more than {self._settings.max_redirects} redirects in a row"
        return StoredResponse(AccessResult.UNAVAILABLE, words, None, url=self._steps[-1].url, **self._terms())

    @property
    def is_replayed(self) -> bool:
        """An answer on the way came from a cache of the crawl's, which may have something newer to ask for."""
        return any(step.is_replayed for step in self._steps)

    def _terms(self) -> dict[str, Any]:
        """For how long the answer may be used and kept: the strictest terms on the way, as StoredResponse has them."""
        steps = self._steps
        received_at = min(step.received_at for step in steps)
        until = min(step.fresh_until for step in steps)
        if not self.is_replayed:  # counted from now: redirects and retries may have taken longer than LEAST_LIFETIME
            until = min(max(until, self._answers.clock.now() + LEAST_LIFETIME), received_at + MAX_LIFETIME)
        return {
            "received_at": received_at,
            "fresh_until": until,
            "forbids_stale": any(step.caching.forbids_stale for step in steps),
            # An answer that is used although it may be old is not for others.
            "forbids_store": any(step.caching.no_store or step.received.answer.offline for step in steps),
        }


def _is_about(stored: StoredResponse, received: Received) -> bool:
    answer = received.answer
    return answer.status != 304 or validates(stored.caching, answer.caching)
