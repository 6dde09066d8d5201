"""A lazy `start` (Scrapy's documentation, "Delaying start request iteration") is asked only for requests that can be
used soon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, SlotByOrigin, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.core.scheduler import Scheduler
from scrapy.http import Response
from twisted.internet.defer import Deferred
from web import RULES, Site, Web, answer

from scrapy_rep.fetching import places

PAGES, FETCHES = 4, 4  # at a time
MOST_AHEAD = PAGES + 2 * FETCHES
FEW = {
    "CONCURRENT_REQUESTS": PAGES,
    "REP_FETCH_CONCURRENCY": FETCHES,
    "REP_CRAWL_DELAY_MAX": 1,
    "DOWNLOADER": SlotByOrigin,
}


class Lazy(CrawlSpider):
    """Notes at each request how many more requests than pages there were."""

    received = 0

    async def start(self) -> AsyncIterator[Request]:
        assert self.crawler.engine is not None
        # By a signal, because Scrapy 2.14 calls the callback 0.1 s later.
        self.crawler.signals.connect(self.count, signals.response_received)
        for number, request in enumerate(self.requests):
            if self.crawler.engine.needs_backout():
                await self.crawler.signals.wait_for(signals.scheduler_empty)
            self.crawl.ends.append(number - self.received)
            yield self.prepared(request)

    def count(self, response: Response) -> None:
        self.received += not response.url.endswith("/robots.txt")


def of_many_sites(web: Web) -> list[str]:
    return [web.robots(answer(RULES, delay=0.15)).url("/") for _ in range(30)]


def of_one_site(web: Web) -> list[str]:
    site = web.site({"/robots.txt": answer(RULES, delay=0.3), "*": answer("page", delay=0.01)})
    return [site.url(f"/{n}") for n in range(30)]


def of_a_dead_site_and_others(web: Web) -> list[str]:
    dead = web.robots(answer(status=503, delay=0.5))
    sites: list[Site] = [web.robots(answer(RULES, delay=0.1)) for _ in range(10)]
    return [site.url(f"/{n}") for n in range(3) for site in (dead, *sites)]


def of_a_site_with_a_delay(web: Web) -> list[str]:
    site = web.robots("user-agent: *\ncrawl-delay: 0.05\n")
    return [site.url(f"/{n}") for n in range(2 * MOST_AHEAD)]


SETTINGS: dict[str, dict[str, Any]] = {
    "memory": {},
    "memory-strict": {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"},
    "disk": {"JOBDIR": "job"},
    "disk-strict": {"JOBDIR": "job", "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"},
    "full-door": {"JOBDIR": "job", "REP_WAITING_MAX": 2},
}


@pytest.mark.parametrize(
    ("urls", "name"),
    [
        *((of_many_sites, name) for name in SETTINGS),
        *((of_a_dead_site_and_others, name) for name in SETTINGS),
        (of_one_site, "memory"),
        (of_a_site_with_a_delay, "memory"),
        (of_a_site_with_a_delay, "disk-strict"),
    ],
)
@ensureDeferred
async def test_a_lazy_start_is_not_read_ahead(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, urls: Any, name: str
) -> None:
    # Fetches soon count as slow, so others may begin.
    monkeypatch.setattr(places, "SLOW_AFTER", 0.05)
    monkeypatch.chdir(tmp_path)  # the JOBDIR is in it
    requests = urls(web)
    result = await crawl(*requests, spider=Lazy, settings={**FEW, **SETTINGS[name]})
    refused = len(result.refused)
    assert len(result.pages) + refused == len(requests)
    assert result.tracebacks == []
    assert max(result.ends) <= MOST_AHEAD + refused


@ensureDeferred
async def test_each_crawl_of_a_process_holds_back_its_own_start(web: Web) -> None:
    crawls = [Deferred.fromCoroutine(crawl(*of_many_sites(web), spider=Lazy, settings=FEW)) for _ in range(2)]
    for crawled in crawls:
        result: Crawl = await crawled
        assert len(result.pages) == 30
        assert FETCHES < max(result.ends) <= MOST_AHEAD


@ensureDeferred
async def test_requests_to_known_sites_go_on_while_start_is_held_back(web: Web) -> None:
    """Requests from callbacks are taken out of the queue, and start still waits."""
    held, known = web.robots(answer(RULES, kind="hold")), web.robots(RULES)
    new = [web.robots(answer(RULES, delay=0.05)) for _ in range(5)]

    class Follows(Lazy):
        def parse(self, response: Any, **_: Any) -> Any:
            super().parse(response)
            if response.url == known.url("/0"):
                yield from (self.prepared(held.url(f"/more/{n}")) for n in range(20))
                yield self.prepared(known.url("/1"))
            if response.url == known.url("/1"):
                yield from (self.prepared(site.url(f"/{n}")) for site in (known, *new) for n in range(2, 12))
            if len(self.crawl.pages) == 2 + 60:
                self.read_while_held = len(self.crawl.ends)
                web.release(held)

    urls = [known.url("/0"), *(held.url(f"/{n}") for n in range(50))]
    result = await crawl(*urls, spider=Follows, settings={**FEW, "REP_FETCH_TIMEOUT": 20})
    assert len(result.pages) == 1 + 50 + 20 + 1 + 60
    assert result.crawler.spider.read_while_held <= 1 + MOST_AHEAD  # type: ignore[union-attr]


@ensureDeferred
async def test_a_start_that_is_not_lazy_is_read_at_once(web: Web) -> None:
    """The requests to dead sites at the beginning do not hold up the others behind them."""
    dead, healthy = [web.robots(answer(RULES, kind="hold")) for _ in range(20)], [web.robots(RULES) for _ in range(3)]

    class Releases(CrawlSpider):
        def parse(self, response: Any, **_: Any) -> None:
            super().parse(response)
            if len(self.crawl.pages) == 9:
                self.crawl.ends.append("no stall")
                web.release(*dead)

    urls = [site.url(f"/{n}") for site in dead + healthy for n in range(3)]
    result = await crawl(*urls, spider=Releases, settings={**FEW, "REP_FETCH_TIMEOUT": 20})
    assert result.ends == ["no stall"]
    assert len(result.pages) == len(urls)


class RaisesOnce(Scheduler):
    """Cannot read one of its requests, like a queue on disk after a callback was renamed."""

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None and request.url.endswith("/broken"):
            raise ValueError("broken")
        return request


class WaitsForTheFirst(CrawlSpider):
    async def start(self) -> AsyncIterator[Request]:
        for number, request in enumerate(self.requests):
            yield self.prepared(request)
            if number == 0:
                await self.crawler.signals.wait_for(signals.response_received)  # of robots.txt
                await self.crawler.signals.wait_for(signals.response_received)


@ensureDeferred
async def test_an_error_of_the_queue_does_not_end_a_crawl_whose_start_is_held_back(web: Web) -> None:
    healthy = web.site({"/robots.txt": answer(RULES), "*": answer("page", delay=0.05)})
    dead = [web.robots(answer(kind="hang")).url("/") for _ in range(4)]
    pages = [healthy.url(f"/{number}") for number in range(10)]
    settings = {**FEW, "REP_FETCH_CONCURRENCY": 1, "REP_FETCH_TIMEOUT": 1, "SCHEDULER": RaisesOnce}
    urls = [pages[0], *dead, healthy.url("/broken"), *pages[1:]]
    result = await crawl(*urls, spider=WaitsForTheFirst, settings=settings)
    assert sorted(result.pages) == sorted(pages)
    assert result.stats["finish_reason"] == "finished"
    assert len(result.refused) == len(dead)
