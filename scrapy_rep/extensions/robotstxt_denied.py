"""The close reason `robotstxt_denied`, of a crawl whose start requests were all refused."""

from __future__ import annotations

import logging

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.asyncio import call_later

from scrapy_rep.exceptions import explanation
from scrapy_rep.fetching.content_decoding import ROBOTS_TXT_REQUEST
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.signals import request_forbidden

logger = logging.getLogger("scrapy_rep")

REASON = "robotstxt_denied"


class RobotsTxtDenied:
    """Watches until the first request is let by, and costs a crawl nothing from then on."""

    def __init__(self, crawler: Crawler) -> None:
        self._signals = crawler.signals
        self._asked = 0
        self._refused = 0
        self._why = ""
        self._is_over = False
        self._watches = (
            (signals.request_scheduled, self._scheduled),
            (signals.request_dropped, self._dropped),
            (signals.request_reached_downloader, self._let_by),
            (signals.response_received, self._let_by),  # from a cache, which is before the downloader
            (signals.spider_error, self._failed),
            (signals.spider_idle, self._idle),
            (request_forbidden, self._forbidden),
        )
        for signal, receiver in self._watches:
            self._signals.connect(receiver, signal=signal)
        self._signals.connect(self._closed, signal=signals.spider_closed)

    def _forbidden(self, request: Request, verdict: Verdict) -> None:
        if request.meta.get("is_start_request"):
            self._refused += 1
            self._why = self._why or explanation(verdict)

    def _scheduled(self, request: Request) -> None:
        self._asked += bool(request.meta.get("is_start_request"))

    def _dropped(self, request: Request) -> None:
        """It repeats another request, and what becomes of that one decides."""
        self._asked -= bool(request.meta.get("is_start_request"))

    def _let_by(self, request: Request) -> None:
        if ROBOTS_TXT_REQUEST not in request.meta:
            self._watch_no_longer()

    def _failed(self, response: Response | None) -> None:
        """Where the spider's `start` has failed, that is the close reason, and Scrapy gives it."""
        if response is None:
            self._watch_no_longer()

    def _watch_no_longer(self) -> None:
        if not self._is_over:
            self._is_over = True
            # A receiver that disconnects while a signal is sent makes its dispatcher skip another one.
            call_later(0, self._disconnect)

    def _disconnect(self) -> None:
        for signal, receiver in self._watches:
            self._signals.disconnect(receiver, signal=signal)

    def _idle(self) -> None:
        if not self._is_over and 0 < self._refused >= self._asked:
            raise CloseSpider(REASON)

    def _closed(self, reason: str) -> None:
        if reason == REASON:
            logger.warning(
                "Nothing was crawled, for every start request (%(refused)d) was refused; the first: %(why)s."
                " `scrapy robots URL` explains it. If it is meant for another crawler, see ROBOTSTXT_USER_AGENT; if the"
                " site is yours or you have leave to crawl it, see REP_EXEMPT",
                {"refused": self._refused, "why": self._why},
            )
