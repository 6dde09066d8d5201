"""The refusal of a request: its log line, its stats, the signal `request_forbidden`, the exception."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable
from heapq import nlargest
from typing import TypeVar

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.exceptions import explanation, refusal, refused_by
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.protocol.words import VerdictReason
from scrapy_rep.scrapy_internals.engine_state import is_one_shot
from scrapy_rep.signals import request_forbidden, send

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_FIRST_REFUSALS = 10  # rules whose first refused request is logged at INFO
MAX_COUNTED = 500  # rules whose refused requests are counted
MAX_NAMED = 3  # rules in the log line at the end of the crawl


class Refusals:
    def __init__(self, crawler: Crawler, *, is_dry_run: bool) -> None:
        """With `is_dry_run`, nothing is refused (REP_DRY_RUN)."""
        self.counts: Counter[VerdictReason] = Counter()
        """The number of refused requests for each reason. In a dry run, the number that would have been refused."""
        self.first: dict[VerdictReason, Verdict] = {}
        """The first verdict for each reason, in the order of the refusals."""
        self.advice = "For details, set REP_REPORT"
        """The end of the log line about refusals, which says where the details are. REP_REPORT replaces this text."""
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._stats = crawler.stats
        self._is_dry_run = is_dry_run
        self._is_one_shot = is_one_shot(crawler)
        self._by_rule: TopK[tuple[VerdictReason, str], int] = TopK(MAX_COUNTED, int, int)
        self._first_refusals: set[str] = set()

    def log_dry_run(self) -> None:
        """Log a WARNING at the start of a dry run."""
        if self._is_dry_run:
            self._log.warning(
                "Dry run (REP_DRY_RUN): requests that robots.txt forbids are sent, and logged as 'Would be refused'"
            )

    def refuse(self, request: Request, verdict: Verdict) -> None:
        """Report the refusal, and raise ForbiddenByRobots unless this is a dry run."""
        self.report(request, verdict)
        if not self._is_dry_run:
            raise refusal(verdict)

    def report(self, request: Request, verdict: Verdict) -> None:
        """Count, log and signal the refusal. In a dry run, the log says that the request would be refused."""
        self.counts[verdict.reason] += 1
        self.first.setdefault(verdict.reason, verdict)
        kind = verdict.reason.name.lower()
        is_dry_run = self._is_dry_run
        self._stats.inc_value("rep/dry_run/forbidden" if is_dry_run else "robotstxt/forbidden")
        self._stats.inc_value(f"rep/dry_run/{kind}" if is_dry_run else f"rep/dropped/{kind}")
        rule = refused_by(verdict)
        self._by_rule[verdict.reason, rule] += 1
        self._log.log(
            logging.INFO if self._is_shown(rule, verdict) else logging.DEBUG,
            "Would be refused: %(reason)s: %(request)s" if is_dry_run else "%(reason)s: %(request)s",
            {"reason": explanation(verdict), "request": request},
        )
        send(self._crawler, request_forbidden, request=request, verdict=verdict)

    def _is_shown(self, rule: str, verdict: Verdict) -> bool:
        """Whether the refusal is logged at INFO.

        `scrapy shell`, `fetch`, `view`, `parse` and `check` log all refusals at INFO. A crawl logs the first refusal by
        each rule, for MAX_FIRST_REFUSALS rules, but none by an unreachable robots.txt: `OutageLog` has a WARNING for
        the site.
        """
        is_new = rule not in self._first_refusals and verdict.reason is not VerdictReason.UNREACHABLE
        is_shown = is_new and len(self._first_refusals) < MAX_FIRST_REFUSALS
        if is_shown:
            self._first_refusals.add(rule)
        return is_shown or self._is_one_shot

    def largest(self, *reasons: VerdictReason) -> str:
        """Return what refused most requests, as in `2 x https://example.com/robots.txt line 2 (Disallow: /x)`.

        `reasons`: only refusals for these reasons count; without an argument, all refusals.
        """
        counts = self._by_rule.largest()
        texts = [f"{number:,} x {rule}" for (reason, rule), number in counts if not reasons or reason in reasons]
        return "; ".join(texts[:MAX_NAMED])


class TopK(dict[K, V]):
    """A dict of the largest of many values, in bounded memory. It creates missing values.

    It holds at most twice `most` values, and is exact up to that number of keys. When more come, it drops the smaller
    half. If a dropped key is used again, its value begins again with `new()`.
    """

    def __init__(self, most: int, new: Callable[[], V], size: Callable[[V], float]) -> None:
        super().__init__()
        self._most = most
        self._new = new
        self._size = size

    def __missing__(self, key: K) -> V:
        if len(self) >= 2 * self._most:
            largest = self.largest()
            self.clear()
            self.update(largest)
        value = self[key] = self._new()
        return value

    def largest(self) -> list[tuple[K, V]]:
        """Return the `most` largest items, the largest first. Equal items are in the order in which they were added."""
        return nlargest(self._most, self.items(), key=lambda item: self._size(item[1]))
