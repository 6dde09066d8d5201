"""Stops the download of a robots.txt that is longer than REP_BODY_LIMIT: 500 KiB or more (RFC 9309 section 2.5).

The last chunk may go beyond the limit. `RobotsTxt.parse` then cuts the body at the exact octet. The default limit is
`protocol.robotstxt.parser.PARSING_LIMIT`.
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
    """Stops a download of a robots.txt at the limit, and keeps what was received.

    It listens to `bytes_received` only during such a download, because Scrapy sends it for each chunk of all downloads.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._log = logger_of(crawler)
        self._signals = crawler.signals
        self._under_way = 0
        self._has_warned = False

    def __enter__(self) -> None:
        if not self._under_way:
            self._signals.connect(self._received, signal=signals.bytes_received)
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._signals.disconnect(self._received, signal=signals.bytes_received)

    def warn_if_too_late(self, request: Request, response: Response) -> None:
        """Log a WARNING, once, if the limit could not stop the download.

        The cause is a download handler of another package that sends no `bytes_received`. The whole body was received.
        """
        was_unreported = (
            response.body and not request.meta[ROBOTS_TXT_REQUEST].octets and "cached" not in response.flags
        )
        if was_unreported and not self._has_warned and urlparse_cached(request).scheme in HAVE_TIMEOUTS:
            self._has_warned = True
            self._log.warning(
                "%s: its download handler sends no signal bytes_received, so REP_BODY_LIMIT holds only afterwards",
                printable(request.url),
            )

    def abandon(self, request: Request) -> None:
        """Close the request's connection when the server sends the next data, because nothing waits for the answer."""
        request.meta[ROBOTS_TXT_REQUEST].limit = -1
        # The next signal ends the download, whether it is for headers or for a part of the body. Both signals stay
        # connected, because the crawl is closing.
        self._under_way += 1
        self._signals.connect(self._received, signal=signals.headers_received)

    def _received(self, request: Request, data: bytes = b"") -> None:
        download = request.meta.get(ROBOTS_TXT_REQUEST)
        if isinstance(download, RobotsTxtDownload):
            download.count(request, data)
            if download.octets > download.limit:
                raise StopDownload(fail=False)
