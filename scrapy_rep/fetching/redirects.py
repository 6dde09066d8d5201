"""Fetching one origin's robots.txt along its redirects to the last answer (RFC 9309 section 2.3.1.2).

Each origin follows its own redirects, and requests each URL on the way itself. The answer to another origin's request
may depend on its cookies, on its User-Agent, or on a token in the URL that works only once.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
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


class Redirects:
    """One origin's redirects, followed once."""

    def __init__(
        self,
        answers: Answers,
        origin: Origin,
        known: Entry | None,
        trigger: Request,
        *,
        is_repeated: bool,
        retries: int,
    ) -> None:
        """`known`: of the origin; its answer is confirmed if its server can. `trigger`: the request that needs
        robots.txt. `is_repeated`: robots.txt was requested before. `retries`: for each URL, as of `Answers.get`."""
        self._answers = answers
        self._settings = answers.settings
        self._origin = origin
        self._known = known
        self._trigger = trigger
        self._is_repeated = is_repeated
        self._retries = retries
        # Cookies live within one chain and one origin: a cookie of another origin would become part of the request.
        self._jars: defaultdict[Origin | None, CookieJar] = defaultdict(CookieJar)
        self._hops: list[Answer] = []

    async def follow(self) -> StoredResponse | Answer:
        """The response to be stored, or an answer that is UNREACHABLE. Waits for each answer; never raises for what a
        server does."""
        url = self._origin.robots_url
        while True:
            answer, stored = await self._ask(url)
            self._hops.append(answer)
            if answer.access is AccessResult.UNREACHABLE:
                return answer
            location = answer.location
            if answer.access is not AccessResult.REDIRECT or location is None:
                return self._response(answer, stored)
            if len(self._hops) > self._settings.max_redirects:
                # 2.3.1.2: "crawlers MAY assume that the robots.txt file is unavailable".
                words = f"more than {self._settings.max_redirects} redirects in a row"
                return StoredResponse(AccessResult.UNAVAILABLE, words, None, url=url, **self._terms())
            self._answers.count("rep/redirects")
            if url.startswith("https:") and location.startswith("http:"):
                self._answers.log.debug(
                    "robots.txt leads from https to http: %s -> %s", printable(url), printable(location)
                )
            url = location

    async def _ask(self, url: str) -> tuple[Answer, StoredResponse | None]:
        """The URL's answer, and the stored response that it confirms."""
        stored = self._validatable(url)
        question = Question(
            url,
            self._trigger,
            self._jars[Origin.of(url)],
            stored.caching if stored is not None else None,
            self._is_repeated,
            self._is_from_public(url),
        )
        answer = await self._answers.get(question, self._retries)
        if stored is not None and (answer.status == 412 or _is_of_another(answer, stored)):
            # The server confuses its own validators: ask without them.
            stored, question = None, replace(question, validators=None)
            answer = await self._answers.get(question, self._retries)
        return answer, stored if answer.status == 304 else None

    def _validatable(self, url: str) -> StoredResponse | None:
        """Rules from this very address that its server can confirm."""
        stored = self._known.stored if self._known is not None else None
        if stored is None or stored.robots is None or stored.url != url:
            return None
        return stored if stored.caching.etag or stored.caching.last_modified else None

    def _is_from_public(self, url: str) -> bool:
        """Whether a public host redirects to the URL, which then must not be a private host's."""
        if not self._hops or self._settings.redirect_private:
            return False
        return Origin.of(url) != self._origin and not _is_of_private(self._hops[-1])

    # What it comes to.

    def _response(self, answer: Answer, validated: StoredResponse | None) -> StoredResponse:
        """What the last answer has brought, to be stored."""
        if validated is not None:
            self._answers.count("rep/revalidated")
            return replace(validated, caching=answer.caching, **self._terms())
        robots, digest = None, ""
        if answer.access is AccessResult.SUCCESS:  # nothing else is ever read as rules
            robots = RobotsTxt.parse(answer.body, self._settings.body_limit)
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
        """An answer on the way came from a cache of the crawl's, which may have something newer to ask for."""
        return any(hop.replayed and not hop.offline for hop in self._hops)

    def _terms(self) -> dict[str, Any]:
        """For how long the answer may be used and kept: the strictest terms on the way, as StoredResponse has them."""
        least = self._settings.lifetime_min
        received_at = min(hop.dated for hop in self._hops)
        until = min(fresh_until(hop.caching, hop.dated, least, hop.response_delay) for hop in self._hops)
        if not self.is_replayed:  # counted from now: redirects and retries may have taken longer than LEAST_LIFETIME
            until = min(max(until, self._answers.clock.now() + LEAST_LIFETIME), received_at + MAX_LIFETIME)
        return {
            "received_at": received_at,
            "fresh_until": until,
            "forbids_stale": any(hop.caching.forbids_stale for hop in self._hops),
            # An answer that is used although it may be old is not for others.
            "forbids_store": any(hop.caching.no_store or hop.offline for hop in self._hops),
        }


def _is_of_another(answer: Answer, stored: StoredResponse) -> bool:
    """Whether it is a 304 about another response than the stored one."""
    return answer.status == 304 and not validates(stored.caching, answer.caching)


def _is_of_private(hop: Answer) -> bool:
    """Whether its server is private, by its name or by its address."""
    origin, address = Origin.of(hop.url), hop.address
    return any(is_private(host) for host in (origin and origin.host, address) if host)
