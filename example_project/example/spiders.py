"""The example's spiders: each visits every site and follows its links."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure


class TourSpider(Spider):
    """Obeys the groups of the product token in its User-Agent. The project's settings make it TourBot."""

    name = "tour"

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.origins: dict[str, str] = {}
        """Site -> origin. Empty until the spider is opened."""
        self.refusals: dict[str, IgnoreRequest] = {}
        """Refused URL -> the exception that says why."""

    async def start(self) -> AsyncIterator[Request]:
        for origin in self.origins.values():
            yield Request(f"{origin}/", errback=self.refused)

    def parse(self, response: Response, **_: Any) -> Iterator[Request | dict[str, Any]]:
        yield {"page": response.url, "robots": response.meta.get("robots")}  # with REP_EVIDENCE, why it was allowed
        for page in response.css("a::attr(href)").getall():
            yield response.follow(page, errback=self.refused)

    def refused(self, failure: Failure) -> None:
        if isinstance(failure.value, IgnoreRequest):
            self.refusals[failure.request.url] = failure.value  # type: ignore[attr-defined] # Scrapy sets it
        else:
            self.logger.error("Neither fetched nor refused: %s", failure.value)


class TourAsGuestSpider(TourSpider):
    """Obeys the groups of its own product token. Its User-Agent contains that token, as RFC 9309 2.2.1 recommends."""

    name = "tour_as_guest"
    robotstxt_user_agent = "GuestBot"
    custom_settings = {"USER_AGENT": "GuestBot/1.0"}


class TourInFleetSpider(TourSpider):
    """One crawler of a fleet, which `example.fleet` starts: the queue and the robots.txt files are in Redis."""

    name = "tour_in_fleet"
    custom_settings = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,  # otherwise the first crawler to end would delete the shared queue
        "REP_STORAGE": "redis:",  # the server in REDIS_URL
        # Slow enough that each crawler gets some of the requests.
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOAD_DELAY": 0.2,
        "EXTENSIONS": {"example.table.Table": 0},  # no Web: `example.fleet` has started the sites for both crawlers
    }

    def __init__(self, origins: str = "{}", **arguments: Any) -> None:
        super().__init__(**arguments)
        self.origins = json.loads(origins)


class TourBuiltinSpider(TourSpider):
    """Obeys robots.txt with Scrapy's own middleware, for comparison."""

    name = "tour_builtin"
    custom_settings = {
        "ADDONS": {},
        "ROBOTSTXT_OBEY": True,
        # As REP_FETCH_TIMEOUT. Without this, the site that hangs would take nine minutes (180 s, and two retries).
        "DOWNLOAD_TIMEOUT": 2,
        "LOG_LEVEL": "CRITICAL",  # hides the traceback of each robots.txt that is not answered
    }
