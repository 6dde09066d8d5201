"""What a crawl loses if a part of Scrapy is not as expected. It still obeys robots.txt."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler

from scrapy_rep.log import logger_of

COSTS: Mapping[str, str] = {
    "AiohttpDownloadHandler._session": "Pages are lost behind hosts that hang, and some URLs are sent in another"
    " spelling than was judged",
    "Downloader.needs_backout": "Requests for a robots.txt count against CONCURRENT_REQUESTS, so dead origins slow the"
    " crawl down, and a lazy start() is read too far ahead",
    "Downloader.slots": "REP_CRAWL_DELAY_MAX has no effect",
    "Downloader._process_queue": "When the crawl stops, pages of an origin may wait for a robots.txt that nobody needs",
    "DownloaderAwarePriorityQueue._downloader_interface": "Requests to origins whose robots.txt does not come may come"
    " out of the queue before others",
    "ExecutionEngine._slot.close": "When the crawl stops, it waits for the robots.txt requests that are under way",
    "ExecutionEngine._slot.nextcall": "Requests that waited for a robots.txt go on up to five seconds late",
    "HttpxDownloadHandler._limits": "Pages are lost behind hosts that hang",
}
"""Part -> what the crawl loses if it is missing or has been replaced."""

_told: WeakKeyDictionary[Crawler, set[str]] = WeakKeyDictionary()


def tell_without(crawler: Crawler, part: str) -> None:
    """Log a WARNING, once a crawl for each part of COSTS."""
    told = _told.setdefault(crawler, set())
    if part not in told:
        told.add(part)
        logger_of(crawler).warning("%s: Scrapy's %s is missing in this crawl, or has been replaced", COSTS[part], part)
