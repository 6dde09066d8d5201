"""Log robots.txt files that are longer than REP_BODY_LIMIT. The rest of them is not read (RFC 9309 section 2.5)."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.text import printable


class Truncated:
    """Counts files that are too long, and logs a WARNING for the first of them."""

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        self._count = crawler.stats.inc_value
        self._log = logger_of(crawler)
        self._limit = settings.body_limit
        self._has_warned = False
        gate.robots_known.append(self._robots_known)

    def _robots_known(self, _origin: Origin, info: OriginInfo, _request: Request) -> None:
        if info.robots is None or not info.robots.truncated:
            return
        self._count("rep/truncated")
        if not self._has_warned:
            self._has_warned = True
            self._log.warning(
                "%(url)s is longer than %(limit)s bytes (REP_BODY_LIMIT). The rules beyond are not read, so pages that"
                " they forbid may be fetched (RFC 9309 2.5). A higher REP_BODY_LIMIT reads them. This is said once a"
                " crawl; the stat rep/truncated counts such files",
                {"url": printable(info.robots_url), "limit": f"{self._limit:,}"},
            )
