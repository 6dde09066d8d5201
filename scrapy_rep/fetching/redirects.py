"""Follows the redirects of one origin's robots.txt to the last answer (RFC 9309 section 2.3.1.2).

Two origins may redirect to the same URL. Each of them requests that URL itself, because the answer may depend on
cookies, on the User-Agent, or on a token in the URL that works only once.

Cookies live within one chain of redirects, in a jar for each origin on the way. `fetching.robots_request` sends them,
and `fetching.fetcher` puts new ones into the jar. `protocol.redirect_target` says which redirects are followed.
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
    """One chain of redirects."""

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
        """`known`: the origin's entry; a server may confirm its stored answer (304). `trigger`: the request that needs
        robots.txt. `is_repeated`: robots.txt was requested before. `retries`: how often the request for each URL may be
        repeated."""
        self._answers = answers
        self._settings = answers.settings
        self._origin = origin
        self._known = known
        self._trigger = trigger
        self._is_repeated = is_repeated
        self._retries = retries
        # A jar for each origin: a cookie of another origin must not become part of a request.
        self._jars: defaultdict[Origin | None, CookieJar] = defaultdict(CookieJar)
        self._hops: list[Answer] = []

    async def follow(self) -> StoredResponse | Answer:
        """Follow the redirects. Return the response to store, or an answer that is UNREACHABLE.

        Never raises, whatever a server does.
        """
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
        """The URL's answer, and the stored response that the answer confirms; None if it confirms none."""
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
            # The server confuses its own validators, so it is asked without them.
            stored, question = None, replace(question, validators=None)
            answer = await self._answers.get(question, self._retries)
        return answer, stored if answer.status == 304 else None

    def _validatable(self, url: str) -> StoredResponse | None:
        """The stored rules, if they came from this URL and its server can confirm them; else None."""
        stored = self._known.stored if self._known is not None else None
        if stored is None or stored.robots is None or stored.url != url:
            return None
        return stored if stored.caching.etag or stored.caching.last_modified else None

    def _is_from_public(self, url: str) -> bool:
        """Whether a public host has redirected to this URL. Then the URL's server must not be private."""
        if not self._hops or self._settings.redirect_private:
            return False
        return Origin.of(url) != self._origin and not _is_of_private(self._hops[-1])

    # The result.

    def _response(self, answer: Answer, validated: StoredResponse | None) -> StoredResponse:
        """The response to store, made from the last answer. `validated`: the stored response that it confirms."""
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
        """Whether HttpCacheMiddleware has replayed an answer on the way, and the server may have a newer one."""
        return any(hop.replayed and not hop.offline for hop in self._hops)

    def _terms(self) -> dict[str, Any]:
        """Return the fields of StoredResponse about its use and storage, by the strictest answer on the way."""
        least = self._settings.lifetime_min
        received_at = min(hop.dated for hop in self._hops)
        until = min(fresh_until(hop.caching, hop.dated, least, hop.response_delay) for hop in self._hops)
        if not self.is_replayed:  # from now: redirects and retries may have taken longer than LEAST_LIFETIME
            until = min(max(until, self._answers.clock.now() + LEAST_LIFETIME), received_at + MAX_LIFETIME)
        return {
            "received_at": received_at,
            "fresh_until": until,
            "forbids_stale": any(hop.caching.forbids_stale for hop in self._hops),
            # An offline answer may be old, so other crawlers must not get it.
            "forbids_store": any(hop.caching.no_store or hop.offline for hop in self._hops),
        }


def _is_of_another(answer: Answer, stored: StoredResponse) -> bool:
    """Whether the answer is a 304 that confirms another response than the stored one."""
    return answer.status == 304 and not validates(stored.caching, answer.caching)


def _is_of_private(hop: Answer) -> bool:
    """Whether the answer's server is private, by its name or by its address."""
    origin, address = Origin.of(hop.url), hop.address
    return any(is_private(host) for host in (origin and origin.host, address) if host)
