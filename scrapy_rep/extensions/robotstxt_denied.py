"""Close the spider with the reason `robotstxt_denied` if all its start requests were refused."""

from __future__ import annotations

import math
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

from scrapy_rep.exceptions import explanation
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden

REASON = "robotstxt_denied"
# A key in `spider.state`, which Scrapy saves for a job that is resumed. Its value is infinite after the first page.
JOB_STATE = "scrapy_rep: start requests that were not refused"

ADVICE = {
    VerdictReason.RULE: "Is the rule for another crawler? Set ROBOTSTXT_USER_AGENT to the product token of yours",
    VerdictReason.UNREACHABLE: "Is robots.txt unreachable? Try again later",
    VerdictReason.RESTRICTED: (
        "Is access to robots.txt restricted? Then REP_STATUS_POLICY refuses everything. Ask the site for access, or"
        " change this setting"
    ),
}
FOR_ALL = "Is the site yours, or have you permission to crawl it? Set REP_EXEMPT. `scrapy robots URL` explains refusals"


class RobotsTxtDenied:
    """Counts start requests that were not refused, until the first page is downloaded."""

    def __init__(self, crawler: Crawler, _settings: RepSettings, gate: Gate) -> None:
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._own_state: dict[str, Any] = {}
        self._refused = 0
        self._first: dict[VerdictReason, Verdict] = {}
        self._has_failed = False
        connect = crawler.signals.connect
        connect(self._scheduled, signal=signals.request_scheduled)
        connect(self._dropped, signal=signals.request_dropped)
        connect(self._forbidden, signal=request_forbidden)
        connect(self._failed, signal=signals.spider_error)
        connect(self._idle, signal=signals.spider_idle)
        connect(self._closed, signal=signals.spider_closed)
        gate.after_download.append(self._page_came)

    def _scheduled(self, request: Request) -> None:
        self._count(request, 1)

    def _dropped(self, request: Request) -> None:
        """Subtract a request that the duplicate filter dropped, because the earlier request is counted."""
        self._count(request, -1)

    def _forbidden(self, request: Request, verdict: Verdict) -> None:
        self._count(request, -1)
        if request.meta.get("is_start_request"):
            self._refused += 1
            self._first.setdefault(verdict.reason, verdict)

    def _count(self, request: Request, number: int) -> None:
        if request.meta.get("is_start_request"):
            self._job_state[JOB_STATE] = self._job_state.get(JOB_STATE, 0) + number

    def _failed(self, response: Response | None) -> None:
        """Remember that the spider's `start` has failed. In this case, Scrapy sets its own close reason."""
        self._has_failed |= response is None

    def _page_came(self, *_: object) -> None:
        if self._job_state.get(JOB_STATE) != math.inf:
            self._job_state[JOB_STATE] = math.inf
            self._crawler.signals.disconnect(self._scheduled, signal=signals.request_scheduled)

    def _idle(self) -> None:
        if self._refused and not self._has_failed and self._job_state.get(JOB_STATE, 0) <= 0:
            raise CloseSpider(REASON)

    @property
    def _job_state(self) -> dict[str, Any]:
        """The dictionary that Scrapy saves for a job (JOBDIR); without a job, a dictionary of this object."""
        state = getattr(self._crawler.spider, "state", None)
        return state if isinstance(state, dict) else self._own_state

    def _closed(self, reason: str) -> None:
        if reason == REASON:
            self._log.warning(
                "Nothing was crawled: every start request was refused (%(refused)d). The first: %(why)s",
                {"refused": self._refused, "why": explanation(next(iter(self._first.values())))},
            )
            for advice in [*(ADVICE[reason] for reason in self._first if reason in ADVICE), FOR_ALL]:
                self._log.warning(advice)
