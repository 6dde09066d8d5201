"""Every way to a verdict asks the judges of the gate, so a second reason to refuse holds everywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from crawling import CrawlSpider, FollowsByItself, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from web import RULES, Web, answer, redirect

from scrapy_rep import RepMiddleware, RobotsTxt, Verdict, VerdictReason


class NoDrafts:
    """An extension that refuses each URL with `drafts` in it."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        crawler.signals.connect(self.opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoDrafts:
        return cls(crawler)

    def opened(self) -> None:
        RepMiddleware.of(self.crawler).gate.judges.append(self.judge)

    def judge(self, verdict: Verdict, robots: RobotsTxt | None, url: str, tokens: Sequence[str]) -> Verdict:
        is_draft = verdict.allowed and "drafts" in url
        return replace(verdict, allowed=False, reason=VerdictReason.RESTRICTED) if is_draft else verdict


JUDGED: dict[str, Any] = {"EXTENSIONS": {NoDrafts: 500}}


@ensureDeferred
async def test_a_request_is_refused_with_and_without_rules(web: Web) -> None:
    sites = web.robots(RULES), web.robots(answer(status=404))
    urls = [site.url(path) for site in sites for path in ("/drafts/1", "/page")]
    result = await crawl(*urls, settings=JUDGED)
    assert sorted(result.pages) == sorted(urls[1::2])
    assert result.stats["rep/dropped/restricted"] == 2


@ensureDeferred
async def test_a_spider_that_asks_before_it_requests_gets_the_same_verdict(web: Web) -> None:
    site = web.robots(RULES)

    class Asks(CrawlSpider):
        async def start(self) -> AsyncIterator[Any]:
            middleware = RepMiddleware.of(self.crawler)
            self.crawl.ends += [(await middleware.verdict(site.url(path))).allowed for path in ("/drafts/1", "/page")]
            return
            yield

    result = await crawl(spider=Asks, settings=JUDGED)
    assert result.ends == [False, True]


@ensureDeferred
async def test_a_page_that_a_handler_landed_on_is_judged_too(web: Web) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/page": redirect("/drafts/1"), "*": answer("draft")})
    handler = {"DOWNLOAD_HANDLERS": {"http": FollowsByItself}, "REP_BYPASSED": "drop"}
    result = await crawl(Request(site.url("/page")), settings={**JUDGED, **handler})
    assert result.pages == {}
    assert result.stats["rep/bypassed"] == 1
