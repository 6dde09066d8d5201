"""A WARNING at the end of a crawl whose start requests were all refused, with advice."""

from __future__ import annotations

from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_rep.exceptions import explanation
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.settings import RepSettings

ADVICE = {
    VerdictReason.RULE: "Is the rule for another crawler? Set ROBOTSTXT_USER_AGENT to the product token of yours",
    VerdictReason.UNREACHABLE: "Is robots.txt unreachable? Try again later",
    VerdictReason.RESTRICTED: (
        "Is access to robots.txt restricted? Then REP_STATUS_POLICY refuses everything. Ask the site for access, or"
        " change this setting"
    ),
}
FOR_ALL = "Is the site yours, or have you permission to crawl it? Set REP_EXEMPT. `scrapy robots URL` explains refusals"


class NothingCrawled:
    def __init__(self, crawler: Crawler, _settings: RepSettings, gate: Gate) -> None:
        self._gate = gate
        self._log = logger_of(crawler)
        self._stat = crawler.stats.get_value
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    def _closed(self, reason: str) -> None:
        refusals = self._gate.refusals
        refused = refusals.counts.total() - self._stat("rep/dropped/early", 0)
        pages = self._stat("response_received_count", 0) - self._stat("robotstxt/response_count", 0)
        if reason != "finished" or pages > 0 or not 0 < refused >= self._gate.decided:
            return
        first = refusals.first
        self._log.warning(
            "Nothing was crawled: every start request was refused (%(refused)d). The first: %(why)s",
            {"refused": refused, "why": explanation(next(iter(first.values())))},
        )
        for advice in [*(ADVICE[reason] for reason in first if reason in ADVICE), FOR_ALL]:
            self._log.warning(advice)
