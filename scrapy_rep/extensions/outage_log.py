"""What the log says of outages: a WARNING for each of the first ones and an INFO line when it is over, DEBUG for the
others, a WARNING that explains challenges, and a WARNING at the end if requests were lost."""

from __future__ import annotations

import logging

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.origin_info import OriginInfo, OriginKind
from scrapy_rep.protocol.lifecycle import Basis
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.settings import RepSettings
from scrapy_rep.text import counted, printable

WARNED_ORIGINS = 10


class OutageLog:
    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        self._log = logger_of(crawler)
        self._is_dry_run = settings.dry_run
        self._wait = settings.unreachable_wait
        self._told: LocalCache[Origin, bool | None] = LocalCache(limit=settings.memory_origins)
        """Whether a WARNING told of its outage; None if that is over."""
        self._outages = self._origins = 0
        self._refusals = gate.refusals
        self._has_explained_challenges = False
        gate.robots_known.append(self._known)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    def _known(self, origin: Origin, info: OriginInfo, _request: Request) -> None:
        if info.failing_since is None:
            was_warning = self._told.get(origin)
            if was_warning is not None:
                self._told[origin] = None
                self._tell_it_is_back(info, was_warning)
        elif self._told.get(origin) is None:
            self._outages += 1
            self._origins += origin not in self._told
            self._told[origin] = is_warning = self._outages <= WARNED_ORIGINS
            self._tell(info, is_warning)
        if info.kind is OriginKind.CHALLENGED and not self._has_explained_challenges:
            self._has_explained_challenges = True
            self._explain_challenges(info)

    def _tell_it_is_back(self, info: OriginInfo, was_warning: bool) -> None:
        self._log.log(
            logging.INFO if was_warning else logging.DEBUG,
            "robots.txt is reachable again: %(url)s: %(answer)s",
            {"url": printable(info.robots_url), "answer": printable(info.answer)},
        )

    def _tell(self, info: OriginInfo, is_warning: bool) -> None:
        meanwhile = self._meanwhile(info)
        outage = info.entry.outage
        if info.pause is not None:
            # A fetch that is under way by then is still waited for.
            wait = f"{self._wait:g} s (REP_UNREACHABLE_WAIT) and the time of one more fetch"
            meanwhile = f"requests to its origin wait for it, at most {wait}; then {meanwhile}"
        elif info.status is not None and outage is not None and outage.retry_after > self._wait > 0:
            seconds = outage.retry_after
            meanwhile += f"; its Retry-After ({seconds:,.0f} s) is beyond REP_UNREACHABLE_WAIT ({self._wait:g} s)"
        self._log.log(
            logging.WARNING if is_warning else logging.DEBUG,
            "robots.txt is unreachable, so %(meanwhile)s: %(url)s: %(reason)s",
            {"meanwhile": meanwhile, "url": printable(info.robots_url), "reason": printable(info.answer)},
        )

    def _meanwhile(self, info: OriginInfo) -> str:
        words, source = info.outage_words
        if self._is_dry_run and info.basis is Basis.NOTHING_ALLOWED:
            words = "nothing of its origin would be fetched"
        return f"{words} ({source})"

    def _explain_challenges(self, info: OriginInfo) -> None:
        self._log.warning(
            "A challenge by %(vendor)s is a page that asks a browser to prove itself, instead of a robots.txt:"
            " %(url)s. While it lasts, %(meanwhile)s. Ask the site to let your crawler in, sign its requests (Web Bot"
            " Auth), or wait."
            " This is said once a crawl; the stats rep/challenge/ count such origins",
            {"vendor": info.sign, "meanwhile": self._meanwhile(info), "url": printable(info.robots_url)},
        )

    def _closed(self) -> None:
        refused = self._refusals.counts[VerdictReason.UNREACHABLE]
        if not refused:
            return
        rest = f"; the first {WARNED_ORIGINS} outages were warned of, the rest are logged at DEBUG"
        self._log.warning(
            "robots.txt was unreachable at %(origins)s, and %(requests)s %(were_refused)s for it%(rest)s",
            {
                "origins": counted(self._origins, "origin"),
                "requests": counted(refused, "request"),
                "were_refused": "would have been refused" if self._is_dry_run else "refused",
                "rest": rest if self._outages > WARNED_ORIGINS else "",
            },
        )
