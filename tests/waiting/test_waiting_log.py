"""Every 15 seconds, the log says which requests wait for a robots.txt."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from crawling import CrawlSpider, Time, close_spider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.test import get_crawler
from web import RULES, Web, answer

from scrapy_rep.crawl import Clock, Crawl
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_waited
from scrapy_rep.waiting import wait_stats
from scrapy_rep.waiting.wait_stats import Waits

LIMITS = (
    ". A request for robots.txt may take 30 s (REP_FETCH_TIMEOUT), not counting the time in other middlewares."
    " After a failure, requests wait up to 60 s (REP_UNREACHABLE_WAIT)"
)
A, B = Origin("https", "a.example", None), Origin("https", "b.example", 8443)


@pytest.mark.parametrize(
    ("waits", "line"),
    [
        ([], []),
        (
            [(A, 0.0)],
            [
                "Waiting for robots.txt: 1 request to 1 origin, the longest for 40 s (https://a.example/robots.txt)"
                + LIMITS
            ],
        ),
        (
            [(A, 30.0), (B, 1.0), (A, 35.0)],
            [
                "Waiting for robots.txt: 3 requests to 2 origins, the longest for 39 s (https://b.example:8443/robots.txt,"
                " https://a.example/robots.txt)" + LIMITS
            ],
        ),
        (
            [(Origin("https", f"{host}.example", None), float(at)) for at, host in enumerate("abcd")],
            [
                "Waiting for robots.txt: 4 requests to 4 origins, the longest for 40 s (https://a.example/robots.txt,"
                " https://b.example/robots.txt, https://c.example/robots.txt)" + LIMITS
            ],
        ),
    ],
)
def test_the_line_about_waiting_requests(
    waits: list[tuple[Origin, float]], line: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "scrapy_rep")
    time = Time()
    crawler = get_crawler(Spider, {"REP_UNREACHABLE_WAIT": 60})
    waiting = Waits(Crawl.of(crawler, RepSettings.read(crawler.settings), Clock(time, time, sleep)))
    for origin, time.now in waits:
        waiting.begin(Request(f"{origin}/"), origin)
    time.now = 40.0
    waiting.log()
    assert [record.getMessage() for record in caplog.records if record.name == "scrapy_rep"] == line


def test_a_request_is_counted_once_however_often_it_waits_until_it_has_resumed_or_was_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "scrapy_rep")
    time, crawler, said = Time(), get_crawler(Spider), list[tuple[Request, float]]()

    def waited(request: Request, seconds: float) -> None:
        said.append((request, seconds))

    crawler.signals.connect(waited, request_waited)
    assert crawler.stats is not None
    waits = Waits(Crawl.of(crawler, RepSettings.read(crawler.settings), Clock(time, time, sleep)))
    first, others = Request(f"{A}/"), [Request(f"{B}/{number}") for number in range(2)]
    waits.close()
    for _ in range(2):
        wait = waits.begin(first, A)
        time.now += 5.0
        waits.end(wait)
        waits.resumed(wait)
    cancelled, *_still_wait = [waits.begin(request, B) for request in others]
    for wait in (cancelled, waits.begin(first, A)):
        waits.end(wait)
        waits.cancelled(wait)
    assert (crawler.stats.get_value("rep/waited"), waits.number_waited, said) == (3, 1, [(first, 5.0)])
    waits.log()
    waits.close()
    under_way, at_the_end = (record.getMessage() for record in caplog.records if record.name == "scrapy_rep")
    assert under_way.startswith("Waiting for robots.txt: 1 request to 1 origin, ")
    assert at_the_end == "1 request still waited for robots.txt when the crawl stopped"


@ensureDeferred
async def test_the_line_counts_requests_of_the_scheduler_and_others(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_stats, "EVERY", 0.02)
    dead, other = (web.robots(answer(RULES, kind="hold")) for _ in range(2))

    class Downloads(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            for number in range(3):
                yield self.prepared(dead.url(f"/{number}"))
            assert self.crawler.engine is not None
            await self.crawler.engine.download_async(Request(other.url("/")))
            self.crawl.ends.append("downloaded")

    class ReleasesBoth(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("Waiting for robots.txt: 4 requests to 2 origins, "):
                web.release(dead, other)

    settings: dict[str, Any] = {"REP_FETCH_TIMEOUT": 20}
    logging.getLogger("scrapy_rep").addHandler(handler := ReleasesBoth())
    try:
        result = await crawl(spider=Downloads, settings=settings)
    finally:
        logging.getLogger("scrapy_rep").removeHandler(handler)
    assert (len(result.pages), result.ends) == (3, ["downloaded"])


@ensureDeferred
async def test_as_the_crawl_closes_the_line_names_only_what_holds_it_open(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_stats, "EVERY", 0.02)
    first, other = (web.robots(answer(RULES, kind="hold")) for _ in range(2))
    lines: list[str] = []
    is_closing: list[bool] = []

    class Closes(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            yield self.prepared(first.url("/"))
            while not first.robots_requests:
                await sleep(0.005)
            assert self.crawler.engine is not None
            download = deferred_from_coro(self.crawler.engine.download_async(Request(other.url("/"))))
            close_spider(self, "enough")
            is_closing.append(True)
            await maybe_deferred_to_future(download)

    class Collects(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("Waiting for robots.txt: "):
                lines.append(record.getMessage())
                is_of_other_alone = "1 request" in lines[-1] and other.robots_url in lines[-1]
                if is_closing and (is_of_other_alone or len(lines) > 50):
                    web.release(first, other)

    logging.getLogger("scrapy_rep").addHandler(handler := Collects())
    try:
        await crawl(spider=Closes, settings={"REP_FETCH_TIMEOUT": 20})
    finally:
        logging.getLogger("scrapy_rep").removeHandler(handler)
    assert lines[-1].startswith("Waiting for robots.txt: 1 request to 1 origin, ")
    assert f" ({other.robots_url})" in lines[-1]


@ensureDeferred
async def test_a_wait_that_was_cancelled_is_over_when_the_crawl_stops(web: Web) -> None:
    site = web.robots(answer(RULES, kind="hold"))

    class GivesUp(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            assert self.crawler.engine is not None
            download = deferred_from_coro(self.crawler.engine.download_async(Request(site.url("/"))))
            while not site.robots_requests:
                await sleep(0.005)
            download.addErrback(lambda _failure: self.crawl.ends.append("given up"))
            download.cancel()
            web.release(site)
            return
            yield  # makes this method a generator

    result = await crawl(spider=GivesUp)
    assert (result.ends, result.stats["rep/waited"]) == (["given up"], 1)
    assert not [line for line in result.messages(logging.INFO, "scrapy_rep") if "still waited" in line]
