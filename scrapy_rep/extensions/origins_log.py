"""The log and the stats of origins: a line for each origin without rules, and the totals at the end of the crawl."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.origin_info import OriginInfo, OriginKind
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.status_policy import MARKUP
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_waited
from scrapy_rep.text import counted, printable

# Words for the log line of refused requests, which follow a number.
REFUSED_BY = {
    "by rules": (VerdictReason.RULE, VerdictReason.TOO_COSTLY),
    "because robots.txt was unreachable": (VerdictReason.UNREACHABLE,),
    "by REP_STATUS_POLICY": (VerdictReason.RESTRICTED,),
    "by REP_PURPOSES_REFUSE": (VerdictReason.USAGE,),
}
MAX_CAUSES = 5  # causes in the log line for each kind of origin


class OriginsLog:
    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        self._log = logger_of(crawler)
        self._stats = crawler.stats
        self._is_dry_run = settings.dry_run
        self._known: LocalCache[Origin, tuple[OriginKind, str, str]] = LocalCache(limit=settings.memory_origins)
        # The number of origins by kind and cause. Only the last result of each origin counts.
        self._origins: Counter[tuple[OriginKind, str]] = Counter()
        self._refusals = gate.refusals
        self._waited = 0
        self._has_named_page = False
        """Whether a robots.txt that is a page of HTML has been logged at INFO."""
        connect = crawler.signals.connect
        gate.robots_known.append(self._robots_known)
        connect(self._request_waited, signal=request_waited)
        connect(self._closed, signal=signals.spider_closed)

    def _robots_known(self, origin: Origin, info: OriginInfo, _request: Request) -> None:
        before, kind, cause, stat = self._known.get(origin), info.kind, info.cause, info.stat
        if before == (kind, cause, stat):
            return
        self._known[origin] = kind, cause, stat
        if before is not None:
            self._origins[before[:2]] -= 1
            self._count(before[2], -1)
        self._origins[kind, cause] += 1
        self._count(stat, 1)
        if kind is OriginKind.WITHOUT_RULES:
            is_first_page = info.sign == MARKUP and not self._has_named_page
            self._has_named_page |= is_first_page
            self._log.log(
                logging.INFO if is_first_page else logging.DEBUG,
                "%(url)s: %(why)s, so everything is allowed",
                {"url": printable(info.robots_url), "why": printable(info.why_no_rules)},
            )

    def _count(self, stat: str, origins: int) -> None:
        if stat:
            self._stats.inc_value(stat, origins)

    def _request_waited(self) -> None:
        self._waited += 1

    def _closed(self) -> None:
        kinds = ", ".join(self._kinds()) or "none was needed"
        self._log.info("robots.txt of %s: %s", counted(self._origins.total(), "origin"), kinds)
        still_waiting = self._stats.get_value("rep/waited", 0) - self._waited
        if still_waiting > 0:
            self._log.info("%s still waited for robots.txt when the crawl stopped", counted(still_waiting, "request"))
        self._log_refusals()

    def _log_refusals(self) -> None:
        counts = self._refusals.counts
        numbers = {by: sum(counts[reason] for reason in reasons) for by, reasons in REFUSED_BY.items()}
        by = ", ".join(f"{number:,} {by}" for by, number in numbers.items() if number)
        self._log.info(
            "Requests that would be refused (REP_DRY_RUN): %s" if self._is_dry_run else "Refused requests: %s",
            f"{counts.total():,} ({by})" if by else "0",
        )
        if by:
            self._log.info("Refused most: %s. %s", self._refusals.largest(), self._refusals.advice)

    def _kinds(self) -> Iterator[str]:
        """Yield a text for each kind of origin, such as `6 without rules (4 x HTTP 404, 2 x a page of HTML)`."""
        for kind in OriginKind:
            causes = Counter({cause: number for (of, cause), number in self._origins.items() if of is kind})
            if causes.total():
                yield f"{causes.total():,} {kind.value}{_causes_in_words(+causes)}"


def _causes_in_words(causes: Counter[str]) -> str:
    """Return the causes in brackets, the most common first; empty if there are none."""
    named = sorted(((cause, number) for cause, number in causes.items() if cause), key=lambda one: (-one[1], one[0]))
    words = [f"{number:,} x {cause}" for cause, number in named[:MAX_CAUSES]]
    if len(named) > MAX_CAUSES:
        words.append(f"{sum(number for _, number in named[MAX_CAUSES:]):,} x others")
    return f" ({', '.join(words)})" if words else ""
