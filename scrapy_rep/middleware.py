"""The downloader middleware: Scrapy's hooks, in which a request passes, waits or is dropped; and the order of a stop.

What a stop does, in order, whether the crawl has finished or was stopped (Ctrl-C, CloseSpider):

1. The engine begins to close: `SingleFlight.begin_close`. The waits of requests that can go back to the queue end.
   Pauses between rounds end (`Driver.end_pauses`). Fetches for which no other request waits are cancelled.
2. Requests of the scheduler that waited in the downloader go back to the queue (`SchedulerDoor.put_back`).
3. The engine waits for all downloads, callbacks and item pipelines. A request that belongs to an item still gets the
   result of the round that is under way.
4. The engine closes the scheduler: `SchedulerDoor.close` puts the requests at the door back, closes the scheduler, and
   only then deletes their copies (`waiting.copies`).
5. The engine sends `spider_closed`: `RepMiddleware` ends the waits that are left, and waits until what was fetched is
   stored and the leases are given back (`SingleFlight.close`). Meanwhile, extensions log and write their last lines.
   They get the signal before other components (`called_first`), so that Scrapy's `log_count/` counts these lines.

A process that is killed does none of this. With a JOBDIR or scrapy-redis, copies of the requests at the door are left.
"""

import time
from collections.abc import Awaitable

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object

from scrapy_rep.crawl import Clock, Crawl
from scrapy_rep.deferreds import within
from scrapy_rep.extensions import start_extensions
from scrapy_rep.extensions.mistakes import CHECKS, name_earlier_middlewares
from scrapy_rep.fetching.download import Fetcher
from scrapy_rep.fetching.driver import Driver
from scrapy_rep.fetching.places import Connections
from scrapy_rep.fetching.single_flight import SingleFlight
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of, wrong_start
from scrapy_rep.meta import ROBOTS_TXT_REQUEST
from scrapy_rep.origin_info import KnownOrigins
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads, prepare_handlers
from scrapy_rep.scrapy_internals.engine_state import call_when_closing, called_first
from scrapy_rep.settings import FILES, RepSettings, is_obeying
from scrapy_rep.waiting.at_scheduler import SchedulerDoor
from scrapy_rep.waiting.in_downloader import InDownloader
from scrapy_rep.waiting.wait_stats import Waits

ADDONS = "{'scrapy_rep.Addon': 500}"
IN_WRONG_SETTING = f"RepMiddleware belongs in no setting but DOWNLOADER_MIDDLEWARES; set ADDONS to {ADDONS}"


class RepMiddleware:
    """Drops the requests that robots.txt forbids (RFC 9309). It stands in the place of RobotsTxtMiddleware."""

    clock = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(sleep)

    def __init__(self, crawler: Crawler) -> None:
        """Raises NotConfigured if ROBOTSTXT_OBEY is False, and ValueError for a wrong setting."""
        if not is_obeying(crawler.settings):
            files = [name for name in FILES if crawler.settings.get(name)]
            also = f", and {' and '.join(files)} write{'' if files[1:] else 's'} nothing" if files else ""
            why = f"ROBOTSTXT_OBEY is False, so robots.txt is not obeyed{also}"
            if crawler.settings.getpriority("ROBOTSTXT_OBEY") == SETTINGS_PRIORITIES["spider"]:
                logger_of(crawler).info("The spider's settings switch scrapy-rep off: %s", why)
                raise NotConfigured  # without a reason, which Scrapy would log as a WARNING
            raise NotConfigured(why)
        settings = RepSettings.read(crawler.settings, crawler.spider)
        self._crawler = crawler
        self._downloads = downloads = UncountedDownloads(crawler)
        crawl = Crawl.of(crawler, settings, Clock(self.clock, self.monotonic, self.sleep))
        self._waits = Waits(crawl)
        connections, origins = Connections(crawl), KnownOrigins(settings.memory_origins)
        driver = Driver(crawl, Fetcher(crawl, downloads, connections), origins)
        self._single_flight = flight = SingleFlight(crawl, driver, connections)
        self.gate = Gate(crawl, flight, connections, origins)
        self._door = SchedulerDoor(crawl, self.gate, flight, connections, self._waits, in_pause=driver.in_pause.keys())
        self._in_downloader = InDownloader(self.gate, flight, downloads, self._door, self._waits)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        with called_first(crawler, signals.spider_opened):  # others may keep the method that this replaces
            crawler.signals.connect(self._watch_close, signal=signals.spider_opened)
        with called_first(crawler, signals.spider_closed):
            crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)
            self._extensions = start_extensions(crawl, self.gate)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "RepMiddleware":
        if cls in (load_object(name) for name, order in crawler.settings["ADDONS"].items() if order is not None):
            raise wrong_start(crawler, IN_WRONG_SETTING)
        try:
            return cls(crawler)
        except NotConfigured as exc:
            if not is_obeying(crawler.settings):
                raise
            # Scrapy would drop this middleware and crawl what robots.txt forbids.
            cure = "correct that, or set ROBOTSTXT_OBEY to False"
            raise wrong_start(crawler, f"{cls.__name__} cannot be built ({exc}); {cure}") from exc
        except ValueError as exc:
            raise wrong_start(crawler, exc) from None

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """Return None if the request may go on; an awaitable if it has to wait for robots.txt in the downloader.

        Raises ForbiddenByRobots, at once or when awaited. If the crawl closes first, raises IgnoreRequest; a request
        from the scheduler then goes back to its queue.
        """
        origin = self.gate.decide_if_known(request)
        return None if origin is None else self._in_downloader.wait_and_decide(request, origin)

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        """Return the response. If it comes from another URL whose robots.txt is not known, the result may be an
        awaitable of it. Raises what `Gate.look_at_page` raises."""
        return response if ROBOTS_TXT_REQUEST in request.meta else self.gate.look_at_page(request, response)

    # For spiders.

    @classmethod
    def of(cls, crawler: Crawler) -> "RepMiddleware":
        """The crawl's middleware. If there is none, raises ValueError, which names the setting to change."""
        middleware = crawler.get_downloader_middleware(cls)
        if middleware is not None:
            return middleware
        why = f"DOWNLOADER_MIDDLEWARES has no 'scrapy_rep.RepMiddleware'; set ADDONS to {ADDONS}"
        if not is_obeying(crawler.settings):
            why = "ROBOTSTXT_OBEY is False; set it to True"
        raise ValueError(f"scrapy-rep is off, because {why}")

    async def verdict(self, request: str | Request, timeout: float | None = None) -> Verdict:
        """Whether the URL or request may be fetched, and why. Waits for robots.txt as a request would.

        The verdict's `robots_url` is None if no robots.txt applies. REP_DRY_RUN does not change the verdict.

        Raises TimeoutError after `timeout` seconds; the request for robots.txt goes on. Raises IgnoreRequest if the
        crawl is over first. (While a crawl closes, it still waits for callbacks and item pipelines.)
        """
        request = Request(request) if isinstance(request, str) else request
        policy = self.gate.wait_for_policy(request)
        if timeout is not None:
            policy = within(timeout, policy, TimeoutError(f"robots.txt has not answered within {timeout:g} seconds"))
        return self.gate.verdict_on(request, await policy)

    # Beginning and end.

    def _spider_opened(self, spider: Spider) -> None:
        try:
            crawler = self._crawler
            get = crawler.get_extension, crawler.get_spider_middleware, crawler.get_item_pipeline
            if any(component(type(self)) is self for component in get):
                raise ValueError(IN_WRONG_SETTING)  # noqa: TRY301
            self.gate.open(spider)
        except ValueError as exc:  # or an attribute of the spider has changed since `__init__`
            wrong_start(self._crawler, exc)
            # Scrapy only logs exceptions of this handler. The next signal is the first at which the crawl can be ended.
            self._crawler.signals.connect(self._stop, signal=signals.engine_started)
            return
        self._door.open(self._downloads)
        prepare_handlers(self._crawler)
        for check in CHECKS:
            check(self._crawler, logger_of(self._crawler))
        if self._door.is_in_use:
            name_earlier_middlewares(self._crawler, self)

    def _watch_close(self) -> None:
        call_when_closing(self._crawler, self._single_flight.begin_close)

    async def _stop(self) -> None:
        await self._crawler.engine.close_spider_async(reason="wrong_settings")

    async def _spider_closed(self) -> None:
        self.gate.count_hits(self._waits.number_waited)
        self._waits.close()
        await self._single_flight.close()
