"""Attacks and faults that succeeded against earlier versions: rules not obeyed, hangs, limits exceeded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from crawling import CrawlSpider, SlotByOrigin, Time, close_spider, crawl, in_turn, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.squeues import PickleLifoDiskQueue
from web import RULES, Web, answer, most_at_once

from scrapy_rep import RobotsUnreachable
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import (
    request_forbidden,
    request_waited,
    robots_known,
    robots_parsed,
    robots_response,
)

DISALLOW_ALL = "User-agent: *\nDisallow: /\n"

# Hangs.


class Inline:
    """A downloader middleware that fetches a page of another origin for each page, for example to log in."""

    target = ""
    at = "process_request"

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Inline:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        if self.at == "process_request":
            await self.download(request)

    async def process_response(self, request: Request, response: Response) -> Response:
        if self.at == "process_response":
            await self.download(request)
        return response

    async def download(self, request: Request) -> None:
        if "/page" in request.url:
            assert self.crawler.engine is not None
            await self.crawler.engine.download_async(Request(self.target))


@pytest.mark.parametrize("at", ["process_request", "process_response"])
@pytest.mark.parametrize("order", [50, 543])
@pytest.mark.parametrize("limits", [{"CONCURRENT_REQUESTS": 1}, {}, {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}], ids=str)
@ensureDeferred
async def test_inline_downloads_do_not_wait_for_the_requests_that_need_them(
    web: Web, at: str, order: int, limits: dict[str, int]
) -> None:
    site, other = web.robots(RULES), web.robots(answer(RULES, delay=0.1))
    middleware = type("Inlined", (Inline,), {"target": other.url("/token"), "at": at})
    settings = {**limits, "DOWNLOADER_MIDDLEWARES": {middleware: order}, "CLOSESPIDER_TIMEOUT": 15}
    urls = [site.url(f"/page/{n}") for n in range(16)]
    result = await crawl(*urls, settings=settings)
    assert len(result.pages) == 16
    assert result.stats["finish_reason"] == "finished"


# Limits.


class Undecodable:
    def process_response(self, request: Request, response: Response) -> Response:
        if request.url.endswith("/robots.txt"):
            raise RuntimeError("cannot be decoded")
        return response


@pytest.mark.parametrize("total", [1, 4])
@ensureDeferred
async def test_fetches_that_fail_do_not_raise_the_limit_on_concurrent_requests(web: Web, total: int) -> None:
    held = web.site({"/robots.txt": answer(status=404), "*": answer("page", delay=0.02)})
    broken = [web.robots(RULES) for _ in range(20)]
    requests = [*(Request(site.url("/")) for site in broken), *(Request(held.url(f"/{n}")) for n in range(60))]
    settings = {"CONCURRENT_REQUESTS": total, "DOWNLOADER": SlotByOrigin, "DOWNLOADER_MIDDLEWARES": {Undecodable: 900}}
    result = await crawl(*requests, settings={**settings, "REP_STATUS_POLICY": {404: "unavailable"}})
    (traceback,) = result.tracebacks
    assert "the download handler got HTTP 200" in traceback
    assert most_at_once(held.requests[1:]) <= total


@ensureDeferred
async def test_a_limit_that_another_component_sets_is_kept(web: Web) -> None:
    dead, site = web.robots(answer(RULES, kind="hold")), web.robots(RULES)
    seen: list[int] = []

    class Sets(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> None:
            super().parse(response)
            assert self.crawler.engine is not None
            downloader = self.crawler.engine.downloader
            seen.append(downloader.total_concurrency)
            downloader.total_concurrency = 3
            if len(self.crawl.pages) == 5:
                web.release(dead)

    result = await crawl(dead.url("/"), *(site.url(f"/{n}") for n in range(5)), spider=Sets)
    assert seen == [16, 3, 3, 3, 3, 3]
    assert len(result.pages) == 6


@ensureDeferred
async def test_requests_that_waited_go_on_in_order_of_priority(web: Web) -> None:
    site = web.robots(answer(RULES, kind="hold"))

    class Releases(CrawlSpider):
        async def start(self) -> AsyncIterator[Any]:
            for request in self.requests:
                yield self.prepared(request)
            while self.crawler.stats.get_value("rep/waited", 0) < len(self.requests):
                await sleep(0.01)
            web.release(site)

    requests = [Request(site.url(f"/{n}")) for n in range(150)]
    requests.append(Request(site.url("/urgent"), priority=10))
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    await crawl(*requests, spider=Releases, settings=settings)
    assert site.targets.index("/urgent") == 1


# Clocks.


@pytest.mark.parametrize("fetches", [1, 2, 4])
@pytest.mark.parametrize("seconds", [20, 100, 86_400])
@ensureDeferred
async def test_a_clock_that_is_set_back_makes_no_request_wait_longer(web: Web, seconds: int, fetches: int) -> None:
    site, time, wait = web.robots(answer(status=503)), Time(), {"REP_UNREACHABLE_WAIT": 30}
    began = time.now

    def wall_clock() -> float:
        """The wall clock is set back after these fetches. The monotonic clock goes on."""
        return time.now - seconds if len(site.robots_requests) >= fetches else time.now

    settings = with_clock(time)
    (middleware,) = [cls for cls in settings["DOWNLOADER_MIDDLEWARES"] if cls.__name__ == "ClockedMiddleware"]
    middleware.clock = staticmethod(wall_clock)
    result = await crawl(site.url("/"), robots=settings, settings=wait)
    assert len(result.refused) == 1
    assert time.now - began <= wait["REP_UNREACHABLE_WAIT"]


# Listeners.


@pytest.mark.parametrize(
    "signal",
    [robots_response, robots_known, request_waited, request_forbidden, robots_parsed],
    ids=["response", "known", "waited", "forbidden", "robots_parsed"],
)
@ensureDeferred
async def test_an_error_in_a_handler_changes_nothing(web: Web, signal: object) -> None:
    site = web.robots(RULES)
    calls: list[str] = []

    def fails(**_: Any) -> None:
        calls.append("called")
        raise ZeroDivisionError("a fault in a handler")

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(fails, signal=signal)

    result = await crawl(site.url("/"), site.url("/private"), prepare=prepare)
    assert calls
    assert (list(result.pages), list(result.refused)) == ([site.url("/")], [site.url("/private")])
    assert not isinstance(result.refused[site.url("/private")], RobotsUnreachable)
    assert all("signal handler" in message for message in result.tracebacks)


@pytest.mark.parametrize("kind", ["hang", "reset", "answer"])
@ensureDeferred
async def test_a_crawl_that_closes_leaves_no_fetch_behind(web: Web, kind: str) -> None:
    sites = [web.robots(answer(status=503, kind=kind)) for _ in range(10)]

    class Closes(CrawlSpider):
        async def start(self) -> AsyncIterator[Any]:
            for request in self.requests:
                yield self.prepared(request)
            await asyncio.sleep(0.3)
            assert self.crawler.engine is not None
            asyncio.ensure_future(self.crawler.engine.close_spider_async(reason="enough"))  # noqa: RUF006

    # If the stop waited for them, `faulthandler_timeout` would end the test.
    settings = {"REP_UNREACHABLE_WAIT": 600, "REP_FETCH_TIMEOUT": 600, "DOWNLOAD_TIMEOUT": 600}
    result = await crawl(*(site.url("/") for site in sites), spider=Closes, settings=settings)
    assert result.tracebacks == []
    asked = [len(site.requests) for site in sites]
    await crawl(web.robots(RULES).url("/"))
    assert [len(site.requests) for site in sites] == asked


@ensureDeferred
async def test_two_failures_a_month_apart_are_not_an_outage_of_a_month(web: Web) -> None:
    site, time = web.robots(answer(status=503)), Time()
    result = await crawl(site.url("/"), spider=in_turn(time, 31 * 86_400.0), robots=with_clock(time))
    assert result.ends == ["RobotsUnreachable"] * 2


# A request is decided by what is known when it goes on, not by what was known when it began to wait.

# Before 2.18, Scrapy handles a response 0.1 s after its arrival.
SLOW_PAGES = {"*": answer("page", delay=0.15)}


@ensureDeferred
async def test_expired_rules_do_not_decide_about_requests_that_waited_for_them(web: Web) -> None:
    site, time = (
        web.site({"/robots.txt": answer(RULES, headers={"Cache-Control": "max-age=3600"}), **SLOW_PAGES}),
        Time(),
    )

    class ThirtyHoursLater(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> None:
            if not self.crawl.pages:
                time.now += 30 * 3600
                site.change("/robots.txt", answer(DISALLOW_ALL))
            super().parse(response)

    urls = [site.url(f"/{n}") for n in range(6)]
    result = await crawl(*urls, spider=ThirtyHoursLater, robots=with_clock(time), settings={"CONCURRENT_REQUESTS": 1})
    assert len(site.robots_requests) == 2
    assert (len(result.pages), len(result.refused)) == (2, 4), "one more page was under way"


@ensureDeferred
async def test_requests_that_waited_do_not_hold_up_others(web: Web) -> None:
    site = web.site({"/robots.txt": answer(RULES, delay=0.5), **SLOW_PAGES})
    order: list[str] = []

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            order.append(response.url.rpartition("/")[2])
            if len(order) == 4:
                yield self.prepared(Request(site.url("/urgent"), priority=1000))
            if order[-1] == "urgent" or len(order) == 10:
                close_spider(self, "enough")

    urls = [site.url(f"/{n}") for n in range(100)]
    await crawl(*urls, spider=Follows, settings={"CONCURRENT_REQUESTS": 1})
    assert "urgent" in order, "soon after the fourth page, not after all others"


class FailsLater(PickleLifoDiskQueue):  # type: ignore[misc,valid-type]
    """A disk queue whose disk is full when the crawl stops."""

    is_full = False

    def push(self, request: Request) -> None:
        if self.is_full and request.url.endswith("/3"):
            raise OSError(28, "No space left on device")
        super().push(request)


@ensureDeferred
async def test_one_request_that_cannot_go_back_to_the_queue_loses_no_other_request(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = web.robots(answer(RULES, kind="hold"))

    class Closes(CrawlSpider):
        async def start(self) -> AsyncIterator[Any]:
            for request in self.requests:
                yield self.prepared(request)
            while self.crawler.stats.get_value("rep/waited", 0) < len(self.requests):
                await sleep(0.01)
            monkeypatch.setattr(FailsLater, "is_full", True)
            close_spider(self, "enough")

    queues = {"SCHEDULER_DISK_QUEUE": FailsLater, "SCHEDULER_START_DISK_QUEUE": None}
    settings = {"JOBDIR": str(tmp_path), **queues}
    result = await crawl(*(dead.url(f"/{n}") for n in range(6)), spider=Closes, settings=settings)
    assert len([m for m in result.messages(logging.ERROR) if "has not taken back 1 of 6" in m]) == 1
    assert (tmp_path / "requests.queue" / "active.json").exists()
    web.release(dead)
    monkeypatch.setattr(FailsLater, "is_full", False)
    resumed = await crawl(settings=settings)
    assert resumed.stats["response_received_count"] == 6 + 1, "the copy of the request was in the JOBDIR"
