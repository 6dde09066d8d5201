"""What the log says of the crawl: one DEBUG line for each origin without rules, one INFO line at the end."""

from __future__ import annotations

import logging
from collections import Counter

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.gate import Gate
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden, robots_available
from scrapy_rep.text import counted, printable

logger = logging.getLogger("scrapy_rep")

# What refused a request, in the words of the last line. All other reasons are policies of the settings.
RULES, OUTAGES, POLICY = KINDS = "rules", "outages", "policy"
KIND_OF_REASON = {
    VerdictReason.RULE: RULES,
    VerdictReason.TOO_COSTLY: RULES,
    VerdictReason.UNREACHABLE: OUTAGES,
}


class CrawlLog:
    def __init__(self, crawler: Crawler, settings: RepSettings, _gate: Gate) -> None:
        self._shadow = settings.shadow
        self._has_report = settings.report is not None
        self._seen: LocalCache[Origin, None] = LocalCache(limit=settings.memory_origins)
        self._origins = 0
        self._refused: Counter[str] = Counter()
        crawler.signals.connect(self._known, signal=robots_available)
        crawler.signals.connect(self._forbidden, signal=request_forbidden)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    def _known(self, origin: Origin, info: OriginInfo) -> None:
        if origin in self._seen:
            return
        self._seen[origin] = None
        self._origins += 1
        if logger.isEnabledFor(logging.DEBUG) and (why := _why_everything_is_allowed(info)):
            logger.debug(
                "robots.txt has no rules, so everything is allowed: %(url)s: %(why)s",
                {"url": printable(info.robots_url), "why": printable(why)},
            )

    def _forbidden(self, verdict: Verdict) -> None:
        self._refused[KIND_OF_REASON.get(verdict.reason, POLICY)] += 1

    def _closed(self) -> None:
        kinds = ", ".join(f"{self._refused[kind]:,} by {kind}" for kind in KINDS if self._refused[kind])
        where = "run `scrapy robots URL`" if self._has_report else "run `scrapy robots URL` or set REP_REPORT"
        logger.info(
            "robots.txt of %(origins)s: %(requests)s %(refused)s%(kinds)s",
            {
                "origins": counted(self._origins, "origin"),
                "requests": counted(self._refused.total(), "request"),
                "refused": "would have been refused (REP_SHADOW)" if self._shadow else "refused",
                "kinds": f", {kinds}; to see why, {where}" if kinds else "",
            },
        )


def _why_everything_is_allowed(info: OriginInfo) -> str:
    """In words; empty if there are rules, or an outage, which has a line of its own."""
    is_unavailable = info.failing_since is None and info.access is AccessResult.UNAVAILABLE
    return info.answer if is_unavailable else ""
