"""Crawl-delay: no gap between the requests to an origin is shorter than its delay (REP_CRAWL_DELAY_MAX)."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Response
from web import Site, Web, answer, redirect

from scrapy_rep.scrapy_internals.compat import sleep

DELAY = 0.2
AUTOTHROTTLE = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.01, "AUTOTHROTTLE_MAX_DELAY": 0.05}
OBEYED = {"REP_CRAWL_DELAY_MAX": 60, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}


def robots(delay: float) -> str:
    return f"user-agent: *\ncrawl-delay: {delay}\ndisallow: /private\n"


def gaps(*sites: Site) -> list[float]:
    """Seconds between the requests to these sites, including the requests for robots.txt."""
    began = sorted(request["began"] for site in sites for request in site.requests)
    return [later - earlier for earlier, later in pairwise(began)]


def delay_of(crawler: Any) -> float:
    """The delay between requests to the only host of a crawl."""
    (delay,) = {slot.delay for slot in crawler.engine.downloader.slots.values()}
    assert isinstance(delay, float)
    return delay


def hints(result: Crawl) -> list[str]:
    return [m for m in result.messages(logging.INFO, "scrapy_rep") if "REP_CRAWL_DELAY_MAX" in m]


@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
@pytest.mark.parametrize("jitter", [True, False], ids=["jitter", "no-jitter"])
@pytest.mark.parametrize("throttle", [AUTOTHROTTLE, {}], ids=["autothrottle", "no-autothrottle"])
@ensureDeferred
async def test_no_gap_is_shorter(web: Web, jitter: bool, throttle: dict[str, Any]) -> None:
    site = web.site({"/robots.txt": answer(robots(DELAY)), "/slow": answer("page", delay=DELAY + 0.1)})
    # With 0.15 s and jitter, the gaps of Scrapy alone would be 0.075 s to 0.225 s.
    settings = {**OBEYED, **throttle, "RANDOMIZE_DOWNLOAD_DELAY": jitter, "DOWNLOAD_DELAY": 0.15}

    class Follows(CrawlSpider):
        """The first requests wait for robots.txt. Later ones come when it is known, and queue in the slot."""

        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url.endswith("/start"):
                yield from (self.prepared(site.url(path)) for path in ("/a", "/slow", "/b", "/c", "/private"))

    result = await crawl(site.url("/start"), site.url("/next"), spider=Follows, settings=settings)
    assert len(result.pages) == 6
    assert len(gaps(site)) == 6
    assert min(gaps(site)) >= DELAY
    assert result.stats["rep/crawl_delay/obeyed"] == 1
    (line,) = hints(result)
    assert "which is obeyed" in line


@ensureDeferred
async def test_no_gap_is_shorter_if_a_handler_of_the_project_lowers_the_delay(web: Web) -> None:
    site = web.robots(robots(1.0))

    class Lowers(CrawlSpider):
        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Lowers:
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.received, signals.response_received)
            return spider

        def received(self, request: Request) -> None:
            assert self.crawler.engine is not None
            self.crawler.engine.downloader.slots[request.meta["download_slot"]].delay = 0.1

    result = await crawl(*(site.url(f"/{n}") for n in range(5)), spider=Lowers, settings=OBEYED)
    assert len(result.pages) == 5
    assert min(gaps(site)) >= 0.9


class Far(HTTP11DownloadHandler):
    """A download handler whose requests for `/far` take long to arrive."""

    async def download_request(self, request: Request) -> Response:
        if request.url.endswith("/far"):
            await sleep(1.5 * DELAY)
        return await super().download_request(request)


@ensureDeferred
async def test_no_gap_is_shorter_when_the_requests_arrive(web: Web) -> None:
    site = web.robots(robots(DELAY))

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url.endswith("/start"):
                yield self.prepared(site.url("/far")).replace(priority=1)
                yield self.prepared(site.url("/near"))

    settings = {**OBEYED, "DOWNLOAD_HANDLERS": {"http": Far}}
    await crawl(site.url("/start"), spider=Follows, settings=settings)
    assert sorted(site.targets) == ["/far", "/near", "/robots.txt", "/start"]
    assert min(gaps(site)) >= DELAY


@ensureDeferred
async def test_by_default_it_is_not_obeyed_and_this_is_logged_once(web: Web) -> None:
    sites = [web.robots(robots(100)) for _ in range(2)]
    result = await crawl(*(site.url("/") for site in sites))
    assert len(result.pages) == 2
    assert result.stats["rep/crawl_delay/ignored"] == 2
    (hint,) = hints(result)
    assert "asks for a Crawl-delay of 100 s, which is not obeyed" in hint


@ensureDeferred
async def test_obeying_is_logged_once(web: Web) -> None:
    sites = [web.robots(robots(DELAY)) for _ in range(2)]
    result = await crawl(*(site.url("/") for site in sites), settings=OBEYED)
    assert result.stats["rep/crawl_delay/obeyed"] == 2
    (line,) = hints(result)
    assert line.endswith("asks for a Crawl-delay of 0.2 s, which is obeyed (REP_CRAWL_DELAY_MAX = 60)")


@ensureDeferred
async def test_no_log_line_if_the_users_own_delay_is_enough(web: Web) -> None:
    result = await crawl(web.robots(robots(0.05)).url("/"), settings={"DOWNLOAD_DELAY": 0.1})
    assert hints(result) == []


@ensureDeferred
async def test_it_is_capped(web: Web) -> None:
    site = web.robots(robots(100))
    result = await crawl(site.url("/"), settings={"REP_CRAWL_DELAY_MAX": DELAY})
    assert delay_of(result.crawler) == DELAY
    assert result.stats["rep/crawl_delay/capped"] == 1
    (hint,) = hints(result)
    assert "asks for a Crawl-delay of 100 s, which is capped (REP_CRAWL_DELAY_MAX = 0.2)" in hint


@ensureDeferred
async def test_the_users_own_delay_is_never_lowered(web: Web) -> None:
    # Shorter than the user's delay of 0.4 s, but longer than 0.4 s minus the jitter.
    site = web.robots(robots(0.3))
    result = await crawl(site.url("/"), settings={**OBEYED, "DOWNLOAD_DELAY": 0.4})
    assert delay_of(result.crawler) == 0.4


@pytest.mark.parametrize("throttle", [AUTOTHROTTLE, {}], ids=["autothrottle", "no-autothrottle"])
@ensureDeferred
async def test_origins_that_share_a_slot_share_the_longest_delay(web: Web, throttle: dict[str, Any]) -> None:
    sites = [web.robots(robots(delay)) for delay in (0.05, DELAY, 0.1)]
    urls = [site.url(f"/{n}") for n in range(2) for site in sites]
    result = await crawl(*urls, settings={**OBEYED, **throttle})
    assert delay_of(result.crawler) == DELAY
    pages = [[r for r in site.requests if r["target"] != "/robots.txt"] for site in sites]
    assert [len(asked) for asked in pages] == [2, 2, 2]
    # Only the origin with the longest Crawl-delay has a bound on its gaps.
    assert min(gaps(sites[1])) >= DELAY


@ensureDeferred
async def test_the_delay_is_read_from_the_groups_of_the_crawlers_token(web: Web) -> None:
    text = "user-agent: *\ncrawl-delay: 100\ndisallow:\n\nuser-agent: quickbot\ncrawl-delay: 0.05\ndisallow:\n"
    site = web.robots(text)
    settings = {**OBEYED, "ROBOTSTXT_USER_AGENT": "QuickBot", "USER_AGENT": "QuickBot/1.0"}
    result = await crawl(site.url("/"), settings=settings)
    assert delay_of(result.crawler) == 0.05


@ensureDeferred
async def test_the_delay_is_set_again_for_a_new_slot(web: Web) -> None:
    site = web.robots(robots(DELAY))
    delays: list[float] = []

    class Disposes(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url.endswith("/start"):
                downloader: Downloader = self.crawler.engine.downloader
                downloader._slot_gc(age=-3600)
                assert downloader.slots == {}
                for n in range(3):
                    yield self.prepared(site.url(f"/{n}"))
            else:
                delays.append(delay_of(self.crawler))

    await crawl(site.url("/start"), spider=Disposes, settings=OBEYED)
    assert delays == [DELAY] * 3
    assert min(gaps(site)[2:]) >= DELAY, "except for the first gap: Scrapy has dropped the time of the last request"


@pytest.mark.parametrize("from_queue", [False, True], ids=["they-wait-at-the-door", "they-come-from-the-queue"])
@ensureDeferred
async def test_a_site_with_a_delay_takes_two_places(web: Web, from_queue: bool) -> None:
    delayed, other = web.robots(robots(DELAY)), web.robots("")
    pages = [site.url(f"/{n}") for site in (delayed, other) for n in range(10)]
    places: list[int] = []

    class Looks(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            downloads = [request.url for request in self.crawler.engine.downloader.active]
            places.append(sum(url in pages and url.startswith(delayed.url("/")) for url in downloads))
            if response.url == other.url("/start"):
                yield from map(self.prepared, pages)

    settings = {**OBEYED, "DOWNLOADER": "crawling.SlotByOrigin", "CONCURRENT_REQUESTS": 4}
    settings["CONCURRENT_REQUESTS_PER_DOMAIN"] = 1
    starts = [delayed.url("/start"), other.url("/start")] if from_queue else pages
    result = await crawl(*starts, spider=Looks, settings=settings)
    asked = [url for url in result.pages if url in pages]
    assert sorted(asked) == sorted(pages)
    assert max(places) <= 2
    last_other = max(asked.index(url) for url in pages if url.startswith(other.url("/")))
    assert sum(url.startswith(delayed.url("/")) for url in asked[:last_other]) <= 3


class OneProxyForEach:
    """A middleware that gives each proxy a slot of its own, as scrapy-rotating-proxies does."""

    def process_request(self, request: Request) -> None:
        if "rep_robots_txt" not in request.meta:
            request.meta["download_slot"] = request.url


@ensureDeferred
async def test_requests_that_a_middleware_moves_to_other_slots_take_all_places(web: Web) -> None:
    site = web.site({"/robots.txt": answer(robots(0)), "*": answer("page", delay=0.05)})
    places: list[int] = []

    class Looks(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            places.append(len(self.crawler.engine.downloader.active))

    pages = [site.url(f"/{n}") for n in range(20)]
    settings: dict[str, Any] = {"DOWNLOAD_DELAY": 0.01, "CONCURRENT_REQUESTS": 6, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    settings["DOWNLOADER_MIDDLEWARES"] = {OneProxyForEach: 600}
    result = await crawl(*pages, spider=Looks, settings=settings)
    assert len(result.pages) == 20
    assert max(places) >= 5


@ensureDeferred
async def test_exempt_requests_are_delayed_like_the_others(web: Web) -> None:
    site = web.robots(robots(DELAY))
    free = [Request(site.url(f"/free{n}"), meta={"dont_obey_robotstxt": True}, dont_filter=True) for n in range(2)]

    class Then(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url.endswith("/start"):
                yield from map(self.prepared, free)

    await crawl(site.url("/start"), spider=Then, settings=OBEYED)
    assert len(gaps(site)) == 3
    assert min(gaps(site)) >= DELAY


@pytest.mark.parametrize("varies", [True, False])
@ensureDeferred
async def test_a_warning_if_the_requests_to_one_site_are_in_several_slots(web: Web, varies: bool) -> None:
    """Plugins for rotating proxies give each proxy a slot of its own."""
    site = web.robots(robots(DELAY))
    slots = ["proxy-1", "proxy-2"] if varies else ["proxies", "proxies"]
    requests = [Request(site.url(f"/{slot}"), meta={"download_slot": slot}, dont_filter=True) for slot in 2 * slots]
    result = await crawl(*requests, settings=OBEYED)
    assert len(result.pages) == len(set(slots))
    warnings = result.messages(logger="scrapy_rep")
    assert len(warnings) == varies
    assert all("The delay holds within each download slot, not for the whole site" in line for line in warnings)


@ensureDeferred
async def test_no_warning_about_slots_after_a_redirect_to_another_host(web: Web) -> None:
    """Scrapy keeps the download slot of the first host in the request that follows the redirect."""
    routes = {"http://a.example/": redirect("http://b.example/"), "*/robots.txt": answer(robots(DELAY))}
    proxy = web.site({**routes, "http://b.example/robots.txt": answer(robots(DELAY)), "*": answer("page")})
    pages = [Request(url, meta={"proxy": proxy.origin}) for url in ("http://a.example/", "http://b.example/1")]

    class Redirected(CrawlSpider):
        def prepared(self, request: str | Request) -> Request:
            request = super().prepared(request)
            del request.meta["handle_httpstatus_all"]
            return request

    result = await crawl(*pages, spider=Redirected, settings=OBEYED)
    assert "http://b.example/" in proxy.targets
    assert result.messages(logger="scrapy_rep") == []


@ensureDeferred
async def test_autothrottle_takes_a_robots_txt_for_a_response_like_any_other(web: Web) -> None:
    """As with Scrapy's own middleware. So its start delay is halved once before the first page."""
    site = web.robots("")
    settings = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 1.0}
    result = await crawl(site.url(), settings=settings)
    assert len(result.pages) == 1
    assert delay_of(result.crawler) < 0.4
