"""The answers to requests for a robots.txt, by URL: one request at a time for each URL, and its answer for a while.

Redirects of many origins lead to one robots.txt (a site's other names, parked domains). Each origin follows its own
redirects (`fetching.redirects`), asks here for each URL on the way, and never waits for another origin's fetch: only
for an answer that comes, or fails, in bounded time. So nothing can wait in a ring.

An answer is for all fetches that ask the same URL with the same validators, while the request is under way and as long
as the answer is fresh; a failure, until its backoff is over. But an answer is not for other fetches

- if it depends on who asked: an answer to cookies or through a proxy of the request's own, a redirect that sets a
  cookie (without that cookie, a chain of redirects may run in a circle), an answer that another component dropped;
- if HttpCacheMiddleware replayed it, because its age is unknown;
- for a chain of redirects that has used an answer of this URL (it asks `alone`): it would run in a circle, too;
- for a fetch after a failure, if the answer is from before that failure (`newer_than`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TypeAlias

from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.clock import Clock
from scrapy_rep.deferreds import settle
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.fetching.robots_request import Question
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.access_result import AccessResult, Answer, is_worth_a_retry
from scrapy_rep.protocol.freshness import Caching, fresh_until, freshened, refresh_from
from scrapy_rep.protocol.outage import BACKOFF_FIRST, BACKOFF_MAX
from scrapy_rep.protocol.redirect_target import is_private, why_not_followed
from scrapy_rep.protocol.status_policy import Judgement, judge, words_of
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_response
from scrapy_rep.text import printable

RETRY_DELAY = 1.0  # seconds before the same URL is requested again
MAX_KEPT = 1_000  # answers
MAX_OCTETS = 4 * 2**20  # of their bodies

Key: TypeAlias = "tuple[str, Caching | None]"  # URL and validators


@dataclass(frozen=True, slots=True)
class Hop:
    """An answer on the way to an origin's robots.txt, what it means by itself, and for how long."""

    url: str
    answer: Answer
    judgement: Judgement
    """A success also of a 304 to validators."""
    at: float
    """Seconds since the epoch, when it came."""
    failed_at: float | None
    """Seconds since the epoch, when the first request failed, if one did."""
    caching: Caching
    """Of a 304, together with that of the stored answer which it confirms."""
    dated: float
    """Seconds since the epoch, when it came from its server: a replay may have come long ago, or nobody knows when."""
    fresh_until: float
    """Seconds since the epoch."""

    @property
    def is_replayed(self) -> bool:
        """It came from a cache of the crawl's, which may have something newer to ask for."""
        return self.answer.replayed and not self.answer.offline

    @property
    def kept_until(self) -> float:
        """Seconds since the epoch: until it would be fetched again, in advance or after a failure's backoff."""
        if self.judgement.access is AccessResult.UNREACHABLE:
            return self.at + min(max(BACKOFF_FIRST, self.answer.retry_after), BACKOFF_MAX)
        return refresh_from(self.at, self.fresh_until)


class Answers:
    """Asks URLs, and remembers what they answered."""

    def __init__(
        self, crawler: Crawler, settings: RepSettings, clock: Clock, fetcher: Fetcher, turns: FetchTurns
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.log = logger_of(crawler)
        self.count = crawler.stats.inc_value
        self._signals = crawler.signals
        self._fetcher = fetcher
        self._turns = turns
        # The questions under way, each with who waits for the same answer: None if that is for the first alone.
        self._asking: dict[Key, list[Deferred[Hop | None]]] = {}
        self._kept: dict[Key, Hop] = {}
        self._octets = 0

    async def get(self, question: Question, *, newer_than: float = -inf, alone: bool = False) -> tuple[Hop, bool]:
        """The answer, and whether it is another fetch's. Waits for it if it is not known.

        `newer_than`: seconds since the epoch; no answer from before is good enough. `alone`: no other fetch's is.
        """
        if alone or len(question.jar) or "proxy" in question.trigger.meta:
            return await self._ask(question), False
        key = question.url, question.validators
        kept = self._kept.get(key) or self._kept.get((question.url, None))
        if kept is not None and newer_than < kept.at <= self.clock.now() < kept.kept_until:
            return self._shared(kept, question), True
        waiters = self._asking.get(key)
        if waiters is None:
            return await self._ask_for_all(question, key), False
        waiter: Deferred[Hop | None] = Deferred()
        waiters.append(waiter)
        hop = await maybe_deferred_to_future(waiter)
        if hop is None:
            return await self._ask(question), False
        return self._shared(hop, question), True

    async def _ask_for_all(self, question: Question, key: Key) -> Hop:
        """Also for the fetches that come to ask the same meanwhile, or while the answer is kept."""
        waiters = self._asking[key] = []
        for_all = None
        try:
            hop = await self._ask(question)
            if _is_for_others(hop, question):
                for_all = hop
                self._keep(hop, question)
            return hop
        finally:
            del self._asking[key]
            for waiter in waiters:
                settle(waiter, for_all)

    async def _ask(self, question: Question) -> Hop:
        """Request the URL, and once more (REP_FETCH_RETRIES) where that is worth it."""
        retries, failed_at = self.settings.fetch_retries, None
        while True:
            answer = await self._request(question)
            judgement, now = self._judge(answer, question), self.clock.now()
            if failed_at is None and judgement.access is AccessResult.UNREACHABLE:
                failed_at = now
            if not retries or not is_worth_a_retry(answer, judgement.access):
                break
            retries -= 1
            question = replace(question, past_cache=True)
            self.log.debug(
                "Requesting robots.txt once more: %s: %s", printable(question.url), printable(judgement.words)
            )
            self.count("rep/retries")
            await self.clock.sleep(RETRY_DELAY)
        caching, dated = answer.caching, now
        if answer.status == 304 and question.validators is not None:
            caching = freshened(question.validators, caching)
        if answer.replayed and not answer.offline:
            dated = min(now, caching.date or 0.0)  # without a date, of unknown age
        until = fresh_until(caching, dated, self.settings.lifetime_min, answer.response_delay)
        return Hop(question.url, answer, judgement, now, failed_at, caching, dated, until)

    async def _request(self, question: Question) -> Answer:
        """One request, once it is its turn."""
        turn = await self._turns.wait_for_turn(is_repeated=question.past_cache)
        answer = None
        try:
            answer, response = await self._fetcher.fetch(question)
        finally:
            self._turns.end(turn, is_answered=answer is not None and answer.status is not None)
        if _is_refused(answer, question):
            # Nobody is to see, and no archive is to keep, what a private server said to us by a stranger's doing.
            answer, response = _refusal(answer), None
        with self._turns.taking_room():  # a handler may hold up the fetches
            await self._signals.send_catch_log_async(
                robots_response, url=question.url, answer=answer, request=question.trigger, response=response
            )
        return answer

    def _judge(self, answer: Answer, question: Question) -> Judgement:
        if answer.status == 304 and question.validators is not None:
            return Judgement(AccessResult.SUCCESS, words_of(answer))
        judgement = judge(answer, self.settings.status_policy)
        if judgement.access is AccessResult.REDIRECT:
            wrong = why_not_followed(question.url, answer.location, private=self.settings.redirect_private)
            if wrong is not None:
                return Judgement(AccessResult.UNREACHABLE, f"{judgement.words} {wrong}")
        return judgement

    def _shared(self, hop: Hop, question: Question) -> Hop:
        """The answer to another fetch, for a fetch that may have come here by other redirects."""
        if not _is_refused(hop.answer, question):
            return hop
        refusal = _refusal(hop.answer)
        judgement = judge(refusal, self.settings.status_policy)
        return replace(hop, answer=refusal, judgement=judgement, failed_at=hop.at)

    def _keep(self, hop: Hop, question: Question) -> None:
        # Only these two are about the validators.
        key = question.url, question.validators if hop.answer.status in {304, 412} else None
        self._drop(key)
        self._kept[key] = hop
        self._octets += len(hop.answer.body)
        while len(self._kept) > MAX_KEPT or self._octets > MAX_OCTETS:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._octets -= len(kept.answer.body)


def _is_for_others(hop: Hop, question: Question) -> bool:
    answer = hop.answer
    sets_cookie_and_redirects = len(question.jar) > 0 and hop.judgement.access is AccessResult.REDIRECT
    return not (answer.dropped or answer.replayed or sets_cookie_and_redirects)


# Names of public hosts can lead to private addresses (`protocol.redirect_target` judges what a Location says).


def _is_refused(answer: Answer, question: Question) -> bool:
    return question.is_from_public and answer.address is not None and is_private(answer.address)


def _refusal(answer: Answer) -> Answer:
    reason = f"a public host redirected to {answer.address}, which is private (REP_REDIRECT_PRIVATE)"
    return Answer(None, reason=reason, dropped=True)
