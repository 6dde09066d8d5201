"""Stops the download of a robots.txt after REP_BODY_LIMIT octets, 500 KiB or more (RFC 9309 section 2.5).

What was received is used. The last chunk may go beyond the limit; `RobotsTxt.parse` cuts the body at the exact octet.
"""

from __future__ import annotations

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.fetching.robots_request import HAVE_TIMEOUTS, ROBOTS_TXT_REQUEST, RobotsTxtDownload
from scrapy_rep.log import logger_of
from scrapy_rep.text import printable


class BodyLimit:
    """Listens to Scrapy's signals only during downloads of a robots.txt: Scrapy sends `bytes_received` for every chunk
    of any download."""

    def __init__(self, crawler: Crawler) -> None:
        self._log = logger_of(crawler)
        self._signals = crawler.signals
        self._under_way = 0
        self._has_warned = False

    def __enter__(self) -> None:
        if not self._under_way:
            self._signals.connect(self._received, signal=signals.bytes_received)
            self._signals.connect(self._reached, signal=signals.request_reached_downloader)
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._signals.disconnect(self._received, signal=signals.bytes_received)
            self._signals.disconnect(self._reached, signal=signals.request_reached_downloader)

    def warn_without_signal(self, request: Request, response: Response) -> None:
        """Log a WARNING, once, if a download handler of another package sends no `bytes_received`."""
        download = request.meta[ROBOTS_TXT_REQUEST]
        if self._has_warned or not response.body or download.octets or not download.is_sent:
            return
        if urlparse_cached(request).scheme in HAVE_TIMEOUTS:
            self._has_warned = True
            self._log.warning(
                "%s: the download handler sends no signal bytes_received, so REP_BODY_LIMIT applies after the download",
                printable(request.url),
            )

    def abandon(self, request: Request) -> None:
        """Close the connection when more of the body comes. The crawl is closing, so nothing waits for the answer."""
        request.meta[ROBOTS_TXT_REQUEST].limit = -1
        self._under_way += 1  # so the signal stays connected

    def _reached(self, request: Request) -> None:
        download = request.meta.get(ROBOTS_TXT_REQUEST)
        if isinstance(download, RobotsTxtDownload):
            download.is_sent = True

    def _received(self, request: Request, data: bytes) -> None:
        download = request.meta.get(ROBOTS_TXT_REQUEST)
        if isinstance(download, RobotsTxtDownload):
            if download.response is not None:  # a middleware has requested the robots.txt again
                download.response, download.octets = None, 0
            download.octets += len(data)
            if download.octets > download.limit:
                raise StopDownload(fail=False)
