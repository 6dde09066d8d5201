"""Follows the redirects of one origin's robots.txt, with their cookies, to the last answer (RFC 9309 2.3.1.2).

`protocol.redirect_target` decides which redirects are followed. Each chain of redirects has its own cookies, in a jar
for each origin. They never mix with the cookies of the crawl.

Two origins may redirect to the same URL. Each of them requests that URL itself, because the answer may depend on
cookies, on the User-Agent, or on a token in the URL that works only once.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from scrapy import Request
from scrapy.http.cookies import CookieJar

from scrapy_rep.fetching.answers import Answers
from scrapy_rep.fetching.robots_request import Question
from scrapy_rep.protocol.access_result import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import LEAST_LIFETIME, MAX_LIFETIME, fresh_until, validates
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.redirect_target import is_private
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.text import printable


@dataclass(eq=False)
class Redirects:
    """One chain of redirects."""

    answers: Answers
    origin: Origin
    known: Entry | None
    """The latest entry of the origin; None if there is none. A server may confirm its stored answer (304)."""
    trigger: Request
    """The request that needs the robots.txt."""
    is_repeated: bool
    """Whether an earlier request for this robots.txt is known, of this crawl or of another one (REP_STORAGE)."""
    retries: int
    """How often the request for each URL may be repeated."""
    # A jar for each origin: a cookie of another origin must not become part of a request.
    _jars: defaultdict[Origin | None, CookieJar] = field(default_factory=lambda: defaultdict(CookieJar))
    _hops: list[Answer] = field(default_factory=list)

    async def follow(self) -> StoredResponse | Answer:
        """Follow the redirects. Return the response to store, or an answer that is UNREACHABLE. Never raises, whatever
        a server does."""
        url = self.origin.robots_url
        while True:
            answer, stored = await self._ask(url)
            self._hops.append(answer)
            if answer.access is AccessResult.UNREACHABLE:
                return answer
            location = answer.location
            if answer.access is not AccessResult.REDIRECT or location is None:
                return self._response(answer, stored)
            if len(self._hops) > self.answers.settings.max_redirects:
                # 2.3.1.2: "crawlers MAY assume that the robots.txt file is unavailable".
                words = f"more than {self.answers.settings.max_redirects} redirects in a row"
                return StoredResponse(AccessResult.UNAVAILABLE, words, None, url=url, **self._terms())
            self.answers.count("rep/redirects")
            if url.startswith("https:") and location.startswith("http:"):
                self.answers.log.debug(
                    "robots.txt leads from https to http: %s -> %s", printable(url), printable(location)
                )
            url = location

    async def _ask(self, url: str) -> tuple[Answer, StoredResponse | None]:
        """Request the URL. Return its answer, and the stored response if the answer confirms it (else None)."""
        stored = self._validatable(url)
        question = Question(
            url,
            self.trigger,
            self._jars[Origin.of(url)],
            stored.caching if stored is not None else None,
            self.is_repeated,
            self._is_from_public(url),
        )
        answer = await self.answers.get(question, self.retries)
        if stored is not None and answer.status in {304, 412}:
            if answer.status == 304 and validates(stored.caching, answer.caching):
                return answer, stored
            # The server confuses its own validators, so the next request has none.
            answer = await self.answers.get(replace(question, validators=None), self.retries)
        return answer, None

    def _validatable(self, url: str) -> StoredResponse | None:
        """The stored response, if it has rules from this URL and its server can confirm them; else None."""
        stored = self.known.stored if self.known is not None else None
        if stored is None or stored.robots is None or stored.url != url:
            return None
        return stored if stored.caching.etag or stored.caching.last_modified else None

    def _is_from_public(self, url: str) -> bool:
        """Whether a public host has redirected to this URL of another origin, and REP_REDIRECT_PRIVATE is off."""
        if not self._hops or self.answers.settings.redirect_private or Origin.of(url) == self.origin:
            return False
        source, address = Origin.of(self._hops[-1].url), self._hops[-1].address
        return not any(is_private(host) for host in (source and source.host, address) if host)

    # The result.

    def _response(self, answer: Answer, validated: StoredResponse | None) -> StoredResponse:
        """Return the response to store. `answer`: the last one. `validated`: the stored response that it confirms."""
        if validated is not None:
            self.answers.count("rep/revalidated")
            return replace(validated, caching=answer.caching, **self._terms())
        robots, digest = None, ""
        if answer.access is AccessResult.SUCCESS:  # nothing else is ever read as rules
            robots = RobotsTxt.parse(answer.body, self.answers.settings.body_limit)
            digest = hashlib.sha256(answer.body).hexdigest()
        return StoredResponse(
            answer.access,
            answer.reason,
            robots,
            status=answer.status,
            sign=answer.sign,
            url=answer.url,
            caching=answer.caching,
            sha256=digest,
            **self._terms(),
        )

    @property
    def is_replayed(self) -> bool:
        """Whether HttpCacheMiddleware has replayed an answer of the chain, and the crawl is not offline."""
        return any(hop.replayed and not hop.offline for hop in self._hops)

    def _terms(self) -> dict[str, Any]:
        """Return how a StoredResponse may be used and stored: for each field, the strictest value in the chain."""
        least = self.answers.settings.lifetime_min
        received_at = min(hop.received_at for hop in self._hops)
        until = min(fresh_until(hop.caching, hop.received_at, least, hop.response_delay) for hop in self._hops)
        if not self.is_replayed:  # redirects and retries may have taken longer than LEAST_LIFETIME
            until = min(max(until, self.answers.clock.now() + LEAST_LIFETIME), received_at + MAX_LIFETIME)
        return {
            "received_at": received_at,
            "fresh_until": until,
            "forbids_stale": any(hop.caching.forbids_stale for hop in self._hops),
            # An offline answer may be old, so other crawlers must not get it.
            "forbids_store": any(hop.caching.no_store or hop.offline for hop in self._hops),
        }
