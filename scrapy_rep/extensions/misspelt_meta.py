"""A WARNING about a misspelt key in the meta of a request, such as `dont_obey_robots` for `dont_obey_robotstxt`."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.fetching.request import ROBOTS_TXT_REQUEST
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.settings import RepSettings, nearest
from scrapy_rep.signals import request_forbidden, request_waited
from scrapy_rep.user_agent import META_KEY

KEYS = ("dont_obey_robotstxt", META_KEY, ROBOTS_TXT_REQUEST)


class MisspeltMeta:
    """Looks at requests that wait or are refused. To look at each request of the crawl would take too much time."""

    def __init__(self, crawler: Crawler, _settings: RepSettings, _gate: Gate) -> None:
        self._crawler = crawler
        for signal in (request_waited, request_forbidden):
            crawler.signals.connect(self._look, signal=signal)

    def _look(self, request: Request) -> None:
        for key in request.meta:
            if isinstance(key, str) and "robots" in key and key not in KEYS and (meant := nearest(key, KEYS)):
                logger_of(self._crawler).warning(
                    "request.meta[%r] has no effect; did you mean %r? The first such request: %s", key, meant, request
                )
                for signal in (request_waited, request_forbidden):
                    self._crawler.signals.disconnect(self._look, signal=signal)
                return
