"""Schedulers of other packages: no request is lost, and waiting requests do not hold up others."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crawling import CrawlSpider, Releases, SlotByOrigin, close_spider, crawl
from own_scheduler import OwnScheduler
from processes import crawl_process, crawled
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Response
from web import RULES, Web, answer

from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.scrapy_internals.engine_state import scheduler_of
from scrapy_rep.waiting import wrapped_scheduler

HELD = answer(RULES, kind="hold")
SCHEDULERS = [f"own_scheduler.{name}" for name in ("OwnScheduler", "DerivedScheduler", "KeepsTheRest", "ReturnsNone")]


@pytest.fixture(params=SCHEDULERS)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return {"SCHEDULER": request.param, "BACKEND_FILE": str(tmp_path / "backend")}


@ensureDeferred
async def test_waiting_requests_do_not_hold_up_others(web: Web, own: dict[str, Any]) -> None:
    dead, healthy = [web.robots(HELD) for _ in range(10)], [web.robots(RULES) for _ in range(3)]
    urls = [site.url(f"/{n}") for site in dead + healthy for n in range(3)]
    settings = {**own, "REP_FETCH_TIMEOUT": 20, "DOWNLOADER": SlotByOrigin, "CONCURRENT_REQUESTS": 4}
    result = await crawl(*map(Request, urls), spider=Releases, dead=dead, healthy=9, settings=settings)
    assert result.ends == ["no stall"]
    assert sorted(result.pages) == sorted(urls)
    assert result.tracebacks == []


@pytest.mark.parametrize("most", [3, 1000])
def test_a_stopped_crawl_puts_waiting_requests_back_for_a_later_crawl(web: Web, own: dict[str, Any], most: int) -> None:
    site = web.robots(HELD)
    urls = [site.url(f"/{n}") for n in range(12)]
    settings = {**own, "REP_WAITING_MAX": most}
    with crawl_process(urls, settings, ready_after=0.4) as process:
        process.until_ready()
        process.interrupt()
        first = process.ended(15)
    assert first.ends == []
    web.release(site)
    second = crawled([], settings)
    assert Counter(end["url"] for end in second.ends) == Counter(urls)
    assert first.complaints == second.complaints == []


@pytest.mark.parametrize("most", [3, 1000])
@ensureDeferred
async def test_a_waiting_request_goes_through_the_queue_once(web: Web, own: dict[str, Any], most: int) -> None:
    sites = [web.robots(answer(RULES, delay=0.3)) for _ in range(3)]
    urls = [site.url(f"/{n}") for n in range(8) for site in sites]
    enqueued: list[Request] = []

    class Counts(CrawlSpider):
        async def start(self) -> Any:
            scheduler: Any = scheduler_of(self.crawler)
            enqueue = scheduler.enqueue_request

            def counted(request: Request) -> Any:
                enqueued.append(request)
                return enqueue(request)

            scheduler.enqueue_request = counted
            async for request in super().start():
                yield request

    settings = {**own, "REP_WAITING_MAX": most, "DOWNLOADER": SlotByOrigin}
    result = await crawl(*map(Request, urls), spider=Counts, settings=settings)
    assert sorted(result.pages) == sorted(urls)
    assert len(enqueued) == len(urls)
    for site in sites:
        assert Counter(site.targets) == Counter(["/robots.txt", *(f"/{n}" for n in range(8))])


@ensureDeferred
async def test_requests_that_waited_do_not_hold_up_other_origins(web: Web, own: dict[str, Any]) -> None:
    # Before 2.15, requests from a callback are in the queue 0.1 s later.
    slow, fast = web.site({"/robots.txt": HELD, "*": answer("x", delay=0.02)}), web.robots(RULES)
    order: list[str] = []

    class Orders(CrawlSpider):
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            while self.crawler.stats.get_value("rep/waited", 0) < 24:
                await sleep(0.01)
            web.release(slow)

        def parse(self, response: Response, **_: Any) -> Any:
            order.append(response.url)
            if response.url == slow.url("/0"):
                yield from (self.prepared(fast.url(f"/{n}")) for n in range(6))

    urls = [slow.url(f"/{n}") for n in range(24)]
    settings = {**own, "CONCURRENT_REQUESTS": 1, "DOWNLOADER": SlotByOrigin}
    await crawl(*map(Request, urls), spider=Orders, settings=settings)
    assert len(order) == 30
    assert order.index(fast.url("/5")) < 22, "about every second request, not after all others"


class GoesAway(OwnScheduler):
    """When it is full, its backend is away: each `enqueue_request` fails after two seconds of the test's clock."""

    left = 20
    now = 0.0

    def enqueue_request(self, request: Request) -> bool:
        if self.left:
            self.left -= 1
            return super().enqueue_request(request)
        self.now += 2.0
        raise OSError


@ensureDeferred
async def test_a_queue_that_is_away_does_not_block_the_close_for_each_request(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = web.robots(HELD)
    monkeypatch.setattr(wrapped_scheduler, "monotonic", lambda: schedulers[0].now)
    schedulers: list[Any] = []

    class Stops(CrawlSpider):
        async def start(self) -> Any:
            schedulers.append(scheduler_of(self.crawler))
            async for request in super().start():
                yield request
            while self.crawler.stats.get_value("rep/waited", 0) < 20:
                await sleep(0.01)
            close_spider(self, "stopped")

    settings = {"SCHEDULER": GoesAway, "BACKEND_FILE": str(tmp_path / "backend")}
    result = await crawl(*(site.url(f"/{number}") for number in range(20)), spider=Stops, settings=settings)
    assert any("has not taken back 20 of 20 requests" in message for message in result.messages(logging.ERROR))
    assert schedulers[0].now == 6.0, "no request is put back after more than five seconds"
