"""What the log says of outages: a WARNING for each of the first origins, DEBUG for the others, one line at the end."""

from __future__ import annotations

import logging

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.extensions.middleware_access import MiddlewareAccess
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.lifecycle import OUTAGE_WORDS, Basis
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden, robots_available, robots_fetched
from scrapy_rep.text import counted, printable

logger = logging.getLogger("scrapy_rep")

WARNED_ORIGINS = 10

MEANWHILE = {basis: f"{words} ({source})" for basis, (words, source) in OUTAGE_WORDS.items()}
IN_DRY_RUN = {**MEANWHILE, Basis.NOTHING_ALLOWED: "nothing of its origin would be fetched (RFC 9309 2.3.1.4)"}


class OutageLog:
    def __init__(self, crawler: Crawler, settings: RepSettings, middleware: MiddlewareAccess) -> None:
        self._now = middleware.now
        self._meanwhile = IN_DRY_RUN if settings.shadow else MEANWHILE
        self._dropped = "would have been dropped" if settings.shadow else "dropped"
        self._wait = settings.unreachable_wait
        self._told: LocalCache[Origin, None] = LocalCache(limit=settings.memory_origins)
        self._outages = 0
        self._refused = 0
        for signal in (robots_fetched, robots_available):
            crawler.signals.connect(self._known, signal=signal)
        crawler.signals.connect(self._forbidden, signal=request_forbidden)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    def _known(self, origin: Origin, info: OriginInfo) -> None:
        if info.failing_since is None:
            self._told.pop(origin, None)
        elif origin not in self._told:
            self._told[origin] = None
            self._outages += 1
            self._tell(info, info.failing_since + self._wait)

    def _tell(self, info: OriginInfo, wait_until: float) -> None:
        meanwhile = self._meanwhile[info.basis]
        if info.basis is Basis.NOTHING_ALLOWED and self._wait and info.fetch_again_at <= wait_until:
            seconds = max(wait_until - self._now(), 0.0)
            meanwhile = f"its requests wait for it, {seconds:.0f} s at most (REP_UNREACHABLE_WAIT); then {meanwhile}"
        logger.log(
            logging.WARNING if self._outages <= WARNED_ORIGINS else logging.DEBUG,
            "robots.txt is unreachable, so %(meanwhile)s: %(url)s: %(reason)s",
            {"meanwhile": meanwhile, "url": printable(info.robots_url), "reason": printable(info.answer)},
        )

    def _forbidden(self, verdict: Verdict) -> None:
        self._refused += verdict.access is AccessResult.UNREACHABLE

    def _closed(self) -> None:
        if not self._outages:
            return
        rest = f"; the first {WARNED_ORIGINS} were warned of, the rest are logged at DEBUG"
        logger.log(
            logging.WARNING if self._refused else logging.INFO,
            "robots.txt was unreachable at %(origins)s, and %(requests)s %(dropped)s for it%(rest)s",
            {
                "origins": counted(self._outages, "origin"),
                "requests": counted(self._refused, "request"),
                "dropped": self._dropped,
                "rest": rest if self._outages > WARNED_ORIGINS else "",
            },
        )
