"""Scrapy's stats count the last lines of the log, and monitors see them when the spider closes."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from crawling import Crawl, crawl
from pytest_twisted import ensureDeferred
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from web import Web, answer


class Monitor:
    """An extension that reads the stats when the spider closes, as Spidermon does."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.seen: dict[str, Any] = {}
        crawler.signals.connect(self.closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Monitor:
        return cls(crawler)

    def closed(self, spider: Spider) -> None:
        self.seen = dict(self.crawler.stats.get_stats())


def logged(result: Crawl) -> Counter[str]:
    levels = Counter(record.levelname for record in result.log if record.levelno >= logging.WARNING)
    return Counter({f"log_count/{level}": number for level, number in levels.items()})


def counted(stats: dict[str, Any]) -> Counter[str]:
    return Counter({name: stats[name] for name in ("log_count/WARNING", "log_count/ERROR") if name in stats})


@ensureDeferred
async def test_scrapy_counts_our_last_lines_and_a_monitor_sees_an_error_if_nothing_was_crawled(web: Web) -> None:
    down = web.robots(answer(status=503))
    result = await crawl(down.url("/"), settings={"EXTENSIONS": {Monitor: 500}, "LOG_LEVEL": "INFO"})
    assert result.stats["finish_reason"] == "finished"
    assert logged(result)["log_count/ERROR"] == 1
    assert counted(result.stats) == logged(result)
    monitor = result.crawler.get_extension(Monitor)
    assert monitor is not None
    assert counted(monitor.seen) == logged(result)
    assert "retry/max_reached" not in result.stats


@ensureDeferred
async def test_a_crawl_with_a_page_has_no_error(web: Web) -> None:
    site, down = web.robots("user-agent: *\ndisallow: /private\n"), web.robots(answer(status=503))
    result = await crawl(site.url("/"), down.url("/"), settings={"LOG_LEVEL": "INFO"})
    assert counted(result.stats) == logged(result) == {"log_count/WARNING": 2}
