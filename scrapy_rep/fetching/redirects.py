"""Fetching one origin's robots.txt along its redirects to the last answer (RFC 9309 section 2.3.1.2)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from typing import Any

from scrapy import Request
from scrapy.http.cookies import CookieJar

from scrapy_rep.fetching.answers import Answers, Hop
from scrapy_rep.fetching.robots_request import Question
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import LEAST_LIFETIME, MAX_LIFETIME, validates
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import BACKOFF_MAX, Failure
from scrapy_rep.protocol.redirect_target import is_private
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.status_policy import REDIRECT_STATUSES
from scrapy_rep.text import printable


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
        self._hops: list[Hop] = []

    async def follow(self) -> StoredResponse | Failure:
        """What the origin's robots.txt comes to now. Waits for each answer; never raises for what a server does."""
        url = self._origin.robots_url
        while True:
            hop, stored = await self._ask(url)
            self._hops.append(hop)
            location = hop.answer.location
            if hop.judgement.access is not AccessResult.REDIRECT or location is None:
                return self._result(hop, stored)
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

    async def _ask(self, url: str) -> tuple[Hop, StoredResponse | None]:
        """The URL's answer, to a request of now or to another fetch's; and the stored response that it confirms."""
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
        hop, is_shared = await self._answers.get(
            question,
            newer_than=outage.asked_at if outage is not None else 0.0,
            alone=any(hop.url == url for hop in self._hops),
        )
        status, caching = hop.answer.status, hop.answer.caching
        if stored is not None and (status == 412 or (status == 304 and not validates(stored.caching, caching))):
            # The server confuses its own validators: ask without them.
            stored, question = None, replace(question, validators=None)
            hop, is_shared = await self._answers.get(question, alone=True)
        if is_shared and self._hops:
            self._answers.count("rep/redirects/shared")
        return hop, stored if hop.answer.status == 304 else None

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

    def _result(self, hop: Hop, validated: StoredResponse | None) -> StoredResponse | Failure:
        """Of the last answer."""
        answer, (access, words, sign) = hop.answer, hop.judgement
        if access is AccessResult.UNREACHABLE:
            # Of a redirect that cannot be followed, the Location is the reason, not the status.
            status = None if answer.status in REDIRECT_STATUSES and not sign else answer.status
            began_at = next(at for each in self._hops if (at := each.failed_at) is not None)
            retry_after = BACKOFF_MAX if answer.dropped else answer.retry_after
            return Failure(words, status, sign, retry_after, began_at, hop.at)
        if validated is not None:
            self._answers.count("rep/revalidated")
            return replace(validated, caching=hop.caching, **self._terms())
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
            url=hop.url,
            caching=hop.caching,
            sha256=digest,
            **self._terms(),
        )

    @property
    def is_replayed(self) -> bool:
        """An answer on the way came from a cache of the crawl's, which may have something newer to ask for."""
        return any(hop.is_replayed for hop in self._hops)

    def _terms(self) -> dict[str, Any]:
        """For how long the answer may be used and kept: the strictest terms on the way, as StoredResponse has them."""
        received_at = min(hop.dated for hop in self._hops)
        until = min(hop.fresh_until for hop in self._hops)
        if not self.is_replayed:  # counted from now: redirects and retries may have taken longer than LEAST_LIFETIME
            until = min(max(until, self._answers.clock.now() + LEAST_LIFETIME), received_at + MAX_LIFETIME)
        return {
            "received_at": received_at,
            "fresh_until": until,
            "forbids_stale": any(hop.caching.forbids_stale for hop in self._hops),
            # An answer that is used although it may be old is not for others.
            "forbids_store": any(hop.caching.no_store or hop.answer.offline for hop in self._hops),
        }


def _is_of_private(hop: Hop) -> bool:
    """Whether its server is private, by its name or by its address."""
    origin, address = Origin.of(hop.url), hop.answer.address
    return any(is_private(host) for host in (origin and origin.host, address) if host)
