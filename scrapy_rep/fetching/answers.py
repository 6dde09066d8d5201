"""Requests one URL, with retries: a robots.txt, or a URL that it redirects to. Each request first waits for a turn."""

from __future__ import annotations

from dataclasses import replace

from scrapy.crawler import Crawler

from scrapy_rep.clock import Clock
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.fetching.robots_request import Question
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.access_result import AccessResult, Answer
from scrapy_rep.protocol.freshness import freshened
from scrapy_rep.protocol.redirect_target import is_private, why_not_followed
from scrapy_rep.protocol.status_policy import judge
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_response
from scrapy_rep.text import printable

RETRY_DELAY = 1.0  # seconds before the same URL is requested again


class Answers:
    """Requests URLs, judges their answers, and sends the signal `robots_response`."""

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

    async def get(self, question: Question, retries: int) -> Answer:
        """Return the URL's answer with its meaning. Repeat a request that may soon succeed, up to `retries` times."""
        while True:
            answer = await self._request(question)
            if not retries or not answer.is_worth_a_retry:
                return answer
            retries -= 1
            question = replace(question, is_repeated=True)
            self.log.debug("Requesting robots.txt once more: %s: %s", printable(question.url), printable(answer.reason))
            self.count("rep/retries")
            await self.clock.sleep(RETRY_DELAY)

    async def _request(self, question: Question) -> Answer:
        """Wait for a turn, and make one request."""
        async with self._turns.turn(question.trigger.priority, is_repeated=question.is_repeated):
            answer, response = await self._fetcher.fetch(question)
        if question.is_from_public and answer.address is not None and is_private(answer.address):
            # A public host redirected to a name that leads to a private address. `protocol.redirect_target` judges only
            # the name. The response is dropped: no archive or signal may show what a private server answered.
            reason = f"a public host redirected to {answer.address}, which is private (REP_REDIRECT_PRIVATE)"
            answer, response = Answer(question.url, reason=reason, dropped=True), None
        answer = self._judged(answer, question)
        self._signals.send_catch_log(robots_response, answer=answer, request=question.trigger, response=response)
        return answer

    def _judged(self, answer: Answer, question: Question) -> Answer:
        """Return the answer with its meaning. Only a success keeps its body."""
        judged = judge(answer, self.settings.status_policy)
        if answer.status == 304 and question.validators is not None:
            return replace(judged, access=AccessResult.SUCCESS, caching=freshened(question.validators, answer.caching))
        if judged.access is AccessResult.REDIRECT:
            wrong = why_not_followed(question.url, answer.location, private=self.settings.redirect_private)
            if wrong is not None:
                judged = replace(judged, access=AccessResult.UNREACHABLE, reason=f"{judged.reason} {wrong}")
        return judged if judged.access is AccessResult.SUCCESS else replace(judged, body=b"")
