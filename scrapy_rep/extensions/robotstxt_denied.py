"""A crawl that robots.txt refused from the start says so: the close reason `robotstxt_denied`."""

from __future__ import annotations

import logging

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.asyncio import call_later

from scrapy_rep.exceptions import ForbiddenByRobots
from scrapy_rep.fetching.content_decoding import ROBOTS_TXT_REQUEST
from scrapy_rep.observers import Gate, Observer
from scrapy_rep.settings import RepSettings

logger = logging.getLogger("scrapy_rep")

REASON = "robotstxt_denied"


class RobotsTxtDenied(Observer):
    """Watches until the first request is let by: from then on, nothing of it costs a crawl anything."""

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
        )
        for signal, receiver in self._watches:
            self._signals.connect(receiver, signal=signal)
        self._signals.connect(self._closed, signal=signals.spider_closed)

    def refused(self, request: Request, reason: ForbiddenByRobots) -> None:
        if request.meta.get("is_start_request"):
            self._refused += 1
            self._why = self._why or str(reason)

    def _scheduled(self, request: Request) -> None:
        self._asked += bool(request.meta.get("is_start_request"))

    def _dropped(self, request: Request) -> None:
        """A duplicate of another: what becomes of that decides."""
        self._asked -= bool(request.meta.get("is_start_request"))

    def _let_by(self, request: Request) -> None:
        if ROBOTS_TXT_REQUEST not in request.meta:
            self._watch_no_longer()

    def _failed(self, response: Response | None) -> None:
        """The spider's `start` has: that is the reason then, and Scrapy gives it."""
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


def robotstxt_denied(crawler: Crawler, settings: RepSettings, gate: Gate) -> Observer | None:  # noqa: ARG001 - as all
    return None if settings.shadow else RobotsTxtDenied(crawler)
