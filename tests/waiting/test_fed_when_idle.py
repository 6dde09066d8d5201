"""Spiders that get their next URLs when they are idle, as scrapy-redis' RedisSpider does.

Requests that wait between two rounds of an outage do not keep the spider from being idle. The crawl does not close
while they wait.
"""

from __future__ import annotations

from typing import Any

import pytest
from crawling import CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from web import RULES, Web, answer

from scrapy_rep.protocol import outage
from scrapy_rep.signals import robots_response

REFUSED = "http://127.0.0.1:1/"


class FedWhenIdle(CrawlSpider):
    """Gets its URLs one by one, each when the spider is idle. Notes in `ends` what happens, in order."""

    urls: list[str]

    def feed(self) -> None:
        self.crawl.ends.append("idle")
        if self.urls:
            assert self.crawler.engine is not None
            self.crawler.engine.crawl(self.prepared(Request(self.urls.pop(0))))
            raise DontCloseSpider

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> FedWhenIdle:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.feed, signals.spider_idle)
        crawler.signals.connect(spider.answered, robots_response)
        return spider

    def answered(self, **_: Any) -> None:
        self.crawl.ends.append("answered")

    def parse(self, response: Any, **more: Any) -> None:
        super().parse(response, **more)
        self.crawl.ends.append("page")

    def failed(self, failure: Any) -> None:
        super().failed(failure)
        self.crawl.ends.append("refused")


@pytest.fixture(autouse=True)
def short_backoffs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "BACKOFFS", (2.0,))


@ensureDeferred
async def test_it_is_fed_while_requests_wait_between_two_rounds(web: Web) -> None:
    urls = [REFUSED, web.robots(RULES).url(), REFUSED.replace(":1/", ":2/"), web.robots(RULES).url()]
    result = await crawl(spider=FedWhenIdle, settings={"REP_UNREACHABLE_WAIT": 3}, urls=urls)
    assert [end for end in result.ends if end in {"page", "refused"}] == ["page", "page", "refused", "refused"]
    assert result.stats["finish_reason"] == "finished"
    assert result.tracebacks == []


@ensureDeferred
async def test_a_request_that_waits_goes_on_after_the_outage(web: Web) -> None:
    """The crawl stays open until then."""
    site = web.robots([answer(status=503), answer(RULES)])
    result = await crawl(spider=FedWhenIdle, settings={"REP_UNREACHABLE_WAIT": 3}, urls=[site.url()])
    assert list(result.pages) == [site.url()]
    assert result.ends[-2:] == ["page", "idle"]


@ensureDeferred
async def test_a_fetch_under_way_keeps_the_spider_busy(web: Web) -> None:
    site = web.robots(answer(RULES, delay=1))
    result = await crawl(spider=FedWhenIdle, urls=[site.url()])
    assert result.ends == ["idle", "answered", "page", "idle"]


@ensureDeferred
async def test_it_is_not_fed_without_end_in_an_outage() -> None:
    """While REP_WAITING_MAX requests wait, the spider is busy. The first request to each origin does not count."""
    urls = [f"{REFUSED.replace(':1/', f':{1 + n % 5}/')}{n}" for n in range(300)]
    settings = {"REP_UNREACHABLE_WAIT": 3, "REP_WAITING_MAX": 20}
    result = await crawl(spider=FedWhenIdle, settings=settings, urls=urls)
    assert len(result.refused) == 300
    assert result.ends.index("refused") < 100
    assert result.stats["finish_reason"] == "finished"
