"""What `scrapy_rep.scrapy_internals` takes for granted of Scrapy and Twisted: each by itself, in crawls without us.

A test that fails here names what another release has changed. `scrapy_internals/README.md` says what that costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from inspect import getsource
from pathlib import Path
from typing import Any

import pytest
import scrapy.exceptions
import scrapy.signals
import scrapy.utils.asyncio
from crawling import CrawlSpider, close_spider, crawl
from in_loop import in_loop
from pydispatch.dispatcher import getReceivers
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.commands import check, fetch, parse, shell
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response
from scrapy.spiders import SitemapSpider
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler
from web import Web, answer

from scrapy_rep.scrapy_internals import compat
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.scrapy_internals.engine_state import downloader_middlewares

HELD = {"/held": answer(kind="hold")}


async def look_inside(look: Callable[[Any], Awaitable[None]], **settings: Any) -> None:
    """Call it with the engine of a crawl of Scrapy alone, while the crawl is open."""

    class Looks(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            try:
                await look(self.crawler.engine)
            except Exception as exc:  # noqa: BLE001 - Scrapy would log it
                self.crawl.ends.append(exc)
            for request in self.requests:
                yield self.prepared(request)

    settings = {"DOWNLOAD_TIMEOUT": 5, **settings}
    for exception in (await crawl(spider=Looks, robots={}, settings=settings)).ends:
        raise exception


async def until(is_so: Callable[[], object]) -> None:
    for _ in range(500):
        if is_so():
            return
        await sleep(0.01)
    raise TimeoutError


# The engine.


@ensureDeferred
async def test_the_engine_asks_the_scheduler_in_its_slot_by_methods_that_can_be_replaced(web: Web) -> None:
    asked: set[str] = set()
    names = {"next_request", "has_pending_requests", "close"}

    class Spies(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            engine: Any = self.crawler.engine
            scheduler = engine._slot.scheduler
            for name in names:
                setattr(scheduler, name, self.spy(name, getattr(scheduler, name)))
            async for request in super().start():
                yield request

        def spy(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
            def replaced(*args: Any) -> Any:
                asked.add(name)
                return method(*args)

            return replaced

    await crawl(web.site().url("/"), spider=Spies, robots={})
    assert asked == names


@ensureDeferred
async def test_the_engine_looks_for_requests_when_its_slots_nextcall_is_scheduled(web: Web) -> None:
    site = web.site()

    async def look(engine: Any) -> None:
        await sleep(0.05)  # what the start of the crawl has scheduled is over
        engine._slot.scheduler.enqueue_request(Request(site.url("/")))
        engine._slot.nextcall.schedule()
        await sleep(0.05)
        await until(lambda: site.targets)

    await look_inside(look)


def test_the_engine_looks_for_requests_every_five_seconds() -> None:
    assert ExecutionEngine._SLOT_HEARTBEAT_INTERVAL == 5


@ensureDeferred
async def test_the_engine_closes_the_spider_before_the_downloads_have_ended(web: Web) -> None:
    site = web.site(HELD)
    under_way: list[int] = []

    async def look(engine: Any) -> None:
        close = engine.close_spider_async

        async def replaced(**reason: Any) -> None:
            under_way.append(len(engine.downloader.active))
            web.release(site)
            await close(**reason)

        engine.close_spider_async = replaced
        download = deferred_from_coro(engine.download_async(Request(site.url("/held"))))
        await until(lambda: site.targets)
        close_spider(engine.spider, "enough")
        await until(lambda: download.called)

    await look_inside(look)
    assert under_way == [1]


@ensureDeferred
async def test_start_requests_are_marked(web: Web) -> None:
    site = web.site()

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if not response.url.endswith("/next"):
                yield self.prepared(site.url("/next"))

    result = await crawl(site.url("/"), spider=Follows, robots={})
    assert {url: page.meta.get("is_start_request") for url, page in result.pages.items()} == {
        site.url("/"): True,
        site.url("/next"): None,
    }


class First:
    def process_request(self, request: Request) -> None:
        request.meta["seen"] = ["First"]


class Second:
    def process_request(self, request: Request) -> None:
        request.meta["seen"].append("Second")


@ensureDeferred
async def test_the_downloader_has_its_middlewares_in_the_order_of_requests(web: Web) -> None:
    site = web.site()
    result = await crawl(site.url("/"), robots={}, settings={"DOWNLOADER_MIDDLEWARES": {Second: 60, First: 55}})
    assert result.pages[site.url("/")].meta["seen"] == ["First", "Second"]
    kinds = [type(middleware) for middleware in downloader_middlewares(result.crawler)]
    assert kinds.index(First) + 1 == kinds.index(Second)


# The scheduler.


@ensureDeferred
async def test_the_scheduler_says_whether_it_took_a_request() -> None:
    async def look(engine: Any) -> None:
        enqueue = engine._slot.scheduler.enqueue_request
        assert enqueue(Request("data:,a"))
        assert not enqueue(Request("data:,a"))
        assert enqueue(Request("data:,a", dont_filter=True))

    await look_inside(look)


def not_in_a_file(response: Response) -> None:
    """A callback that is no method of the spider cannot be written to disk."""


@ensureDeferred
async def test_the_scheduler_hands_out_what_is_in_memory_before_what_is_on_disk(tmp_path: Path) -> None:
    async def look(engine: Any) -> None:
        scheduler = engine._slot.scheduler
        scheduler.enqueue_request(Request("data:,disk"))
        scheduler.enqueue_request(Request("data:,memory", callback=not_in_a_file))
        assert (len(scheduler.dqs), len(scheduler.mqs)) == (1, 1)
        assert [scheduler.next_request().url for _ in range(2)] == ["data:,memory", "data:,disk"]

    await look_inside(look, JOBDIR=str(tmp_path))


@ensureDeferred
async def test_without_a_jobdir_the_scheduler_has_no_disk_queue() -> None:
    async def look(engine: Any) -> None:
        assert engine._slot.scheduler.dqs is None

    await look_inside(look)


# The downloader.


@ensureDeferred
async def test_the_engine_asks_the_downloaders_needs_backout_which_can_be_replaced() -> None:
    async def look(engine: Any) -> None:
        asked: list[object] = []
        engine.downloader.needs_backout = lambda: asked.append(True)
        engine._slot.nextcall.schedule()
        await until(lambda: asked)

    await look_inside(look)


@ensureDeferred
async def test_needs_backout_compares_active_with_total_concurrency() -> None:
    async def look(engine: Any) -> None:
        engine.downloader.total_concurrency = 2
        for number in (1, 2, 3):
            engine.downloader.active = {Request(f"data:,{n}") for n in range(number)}
            assert Downloader.needs_backout(engine.downloader) is (number >= 2)
        engine.downloader.active.clear()

    await look_inside(look)


@ensureDeferred
async def test_what_is_downloaded_is_active(web: Web) -> None:
    site, request = web.site(HELD), Request("data:,")

    async def look(engine: Any) -> None:
        held = request.replace(url=site.url("/held"))
        download = deferred_from_coro(engine.download_async(held))
        await until(lambda: site.targets)
        assert engine.downloader.active == {held}
        web.release(site)
        await until(lambda: download.called)
        assert engine.downloader.active == set()

    await look_inside(look)


@ensureDeferred
async def test_a_request_that_leaves_the_queue_of_its_slot_is_not_sent(web: Web) -> None:
    site = web.site(HELD)
    first, second = Request(site.url("/held")), Request(site.url("/held"))

    async def look(engine: Any) -> None:
        downloads = [deferred_from_coro(engine.download_async(first))]
        await until(lambda: site.targets)
        downloads.append(deferred_from_coro(engine.download_async(second)))
        slot = engine.downloader.slots[engine.downloader.get_slot_key(first)]
        await until(lambda: slot.queue)
        assert [queued[0] for queued in slot.queue] == [second]
        downloads[1].addErrback(lambda _failure: None).cancel()
        slot.queue.clear()
        web.release(site)
        await until(lambda: all(download.called for download in downloads))
        assert len(site.targets) == 1

    await look_inside(look, CONCURRENT_REQUESTS_PER_DOMAIN=1)


@ensureDeferred
async def test_a_download_slot_has_a_delay_that_counts_from_when_it_was_last_seen(web: Web) -> None:
    site = web.site()

    async def look(engine: Any) -> None:
        request = Request(site.url("/1"))
        await engine.download_async(request)
        slot = engine.downloader.slots[request.meta["download_slot"]]
        assert 0 <= compat.slot_clock() - slot.lastseen < 30
        assert hasattr(slot, "jitter") or slot.randomize_delay is True
        slot.concurrency, slot.delay, slot.lastseen = 1, 0.3, compat.slot_clock()
        setattr(slot, *(("jitter", 0.0) if hasattr(slot, "jitter") else ("randomize_delay", False)))
        await engine.download_async(Request(site.url("/2")))

    await look_inside(look)
    first, second = site.requests
    assert second["began"] - first["ended"] >= 0.3


# The sitemap spider.


@ensureDeferred
async def test_a_sitemap_spiders_requests_have_the_callback_parse_sitemap(web: Web) -> None:
    site = web.robots("sitemap: /map.xml")
    seen: list[str] = []

    class Sitemaps(SitemapSpider):
        name = "sitemaps"
        sitemap_urls = [site.robots_url]

        def _parse_sitemap(self, response: Response) -> Any:
            seen.append(response.url)
            yield from super()._parse_sitemap(response)

    class Both(Sitemaps, CrawlSpider):
        start = Sitemaps.start

    await crawl(spider=Both, robots={})
    assert seen == [site.robots_url, site.url("/map.xml")]


# Our replacements for what older releases of Scrapy lack.


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (scrapy.utils.asyncio, "sleep"),
        (scrapy.signals, "robots_parsed"),
        (scrapy.exceptions, "DownloadTimeoutError"),
    ],
    ids=str,
)
def test_scrapys_own_comes_first(module: Any, name: str) -> None:
    ours = getattr(compat, name)
    assert getattr(module, name, ours) is ours


@in_loop
async def test_our_own_sleep() -> None:
    await compat._sleep(0)
    ended: list[float] = []

    async def sleep(seconds: float) -> None:
        await compat._sleep(seconds)
        ended.append(seconds)

    await asyncio.gather(sleep(0.1), sleep(0.001))
    assert ended == [0.001, 0.1]
    sleeping = asyncio.ensure_future(compat._sleep(0.05))
    await compat._sleep(0)
    sleeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeping
    await compat._sleep(0.1)


@ensureDeferred
async def test_a_page_that_times_out_raises_the_timeout_error_of_compat(web: Web) -> None:
    site = web.site({"/": answer(kind="hang")})
    result = await crawl(site.url("/"), robots={}, settings={"DOWNLOAD_TIMEOUT": 0.2})
    assert isinstance(result.failed[site.url("/")], compat.DownloadTimeoutError)


# builtin_robotstxt.py


def test_scrapys_own_middleware_has_what_the_comparison_needs() -> None:
    middleware = RobotsTxtMiddleware(get_crawler(settings_dict={"ROBOTSTXT_OBEY": True}))
    assert {"_robotstxt_useragent", "_default_useragent"} <= vars(middleware).keys()
    assert "_parse_robots" in vars(RobotsTxtMiddleware)


# engine_state.py: the receivers of a signal


def test_pydispatcher_calls_receivers_in_the_order_of_the_list_that_it_returns() -> None:
    crawler, called = get_crawler(), list[str]()

    def first() -> None:
        called.append("first")

    def second() -> None:
        called.append("second")

    for receiver in (first, second):
        crawler.signals.connect(receiver, signal=scrapy.signals.spider_closed)
    getReceivers(crawler, scrapy.signals.spider_closed).reverse()
    crawler.signals.send_catch_log(scrapy.signals.spider_closed)
    assert called == ["second", "first"]


# download.py: whether a download handler got a request


@ensureDeferred
async def test_the_downloader_names_the_slot_of_each_request_that_a_handler_gets(web: Web) -> None:
    site = web.site({"/": answer("")})
    result = await crawl(site.url("/"), robots={})
    assert "download_slot" in result.pages[site.url("/")].meta


# engine_state.py: a crawl for one page


def test_fetch_parse_check_and_shell_can_be_recognised() -> None:
    assert "crawler._apply_settings()" in getsource(shell)
    assert ".crawl(" not in getsource(shell)
    for command in (check, fetch, parse):
        assert "spidercls.start = start" in getsource(command)
