"""A request is refused: stats, a line in the log, the signal `request_forbidden`, and the exception."""

from __future__ import annotations

from collections import Counter

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.exceptions import explanation, refusal
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.signals import request_forbidden
from scrapy_rep.text import printable


class Refusals:
    def __init__(self, crawler: Crawler, *, is_dry_run: bool) -> None:
        """`is_dry_run`: nothing is refused (REP_DRY_RUN)."""
        self.counts: Counter[VerdictReason] = Counter()
        """How many requests were refused for each reason; in a dry run, how many would have been."""
        self.advice = "set REP_REPORT, or log at DEBUG"
        """How to see which requests these were. The report, if there is one, says so here."""
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._stats = crawler.stats
        self._is_dry_run = is_dry_run
        self._has_warned_of_cost = False

    def announce(self) -> None:
        """Log at the start if this is a dry run."""
        if self._is_dry_run:
            self._log.warning(
                "Dry run (REP_DRY_RUN): what robots.txt forbids is counted and logged, and fetched all the same"
            )

    def refuse(self, request: Request, verdict: Verdict) -> None:
        """Tell of it, and raise ForbiddenByRobots unless this is a dry run."""
        self.report(request, verdict)
        if not self._is_dry_run:
            raise refusal(verdict)

    def report(self, request: Request, verdict: Verdict) -> None:
        """Tell that the request is refused, or would be if this were no dry run."""
        self.counts[verdict.reason] += 1
        kind = verdict.reason.name.lower()
        if self._is_dry_run:
            self._stats.inc_value("rep/dry_run/forbidden")
            self._stats.inc_value(f"rep/dry_run/{kind}")
        else:
            self._stats.inc_value("robotstxt/forbidden")
            self._stats.inc_value(f"rep/dropped/{kind}")
        self._log.debug(
            "Would be refused: %(reason)s: %(request)s" if self._is_dry_run else "%(reason)s: %(request)s",
            {"reason": explanation(verdict), "request": request},
        )
        if verdict.reason is VerdictReason.TOO_COSTLY and not self._has_warned_of_cost:
            self._has_warned_of_cost = True
            self._log.warning(
                "%s has rules that take too long to compare with some URLs, so these are refused. This is said once a"
                " crawl; see the stat rep/dropped/too_costly",
                printable(verdict.robots_url or ""),
            )
        self._crawler.signals.send_catch_log(request_forbidden, request=request, verdict=verdict)
