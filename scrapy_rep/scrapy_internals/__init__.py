"""Nearly all use of private parts of Scrapy and Twisted; and what a crawl loses without one of these parts."""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler

from scrapy_rep.log import logger_of

COSTS: Mapping[str, str] = {
    "AiohttpDownloadHandler._session": "Pages may time out while hosts hang, and some URLs are sent with another"
    " spelling than the one that was checked against robots.txt",
    "Downloader.needs_backout": "Requests for a robots.txt count against CONCURRENT_REQUESTS, so dead origins slow the"
    " crawl down, and a lazy start() is read too far ahead",
    "DownloadHandlers.download_request_async": "REP_BODY_LIMIT applies after the download of a robots.txt, a robots.txt"
    " whose octets come slowly may take longer than REP_FETCH_TIMEOUT, and an error of a middleware looks like an error"
    " of the site",
    "Downloader.slots": "REP_CRAWL_DELAY_MAX has no effect",
    "DownloaderAwarePriorityQueue._downloader_interface": "Requests to origins whose robots.txt is not known yet may"
    " leave the queue before other requests",
    "ExecutionEngine._slot.nextcall": "Requests that waited for a robots.txt go on up to five seconds late",
    "HttpxDownloadHandler._limits": "Pages may time out while hosts hang",
    "Slot.queue": "When the crawl stops, pages may wait behind a robots.txt request that was cancelled",
}
"""A part of Scrapy -> what the crawl loses if the part is missing or has been replaced."""

_warned: WeakKeyDictionary[Crawler, set[str]] = WeakKeyDictionary()


def warn_missing(crawler: Crawler, part: str) -> None:
    """Log once per crawl what the crawl loses without this part of Scrapy (a key of COSTS)."""
    warned = _warned.setdefault(crawler, set())
    if part not in warned:
        warned.add(part)
        logger_of(crawler).warning("%s: Scrapy's %s is missing in this crawl, or has been replaced", COSTS[part], part)
