"""A crawl in a process of its own: `{"urls": [...], "settings": {...}}` in, what came of it out, as JSON."""

from __future__ import annotations

import json
import logging
import sys
from time import time
from typing import Any

from crawling import ADDON, QUIET, Crawl, CrawlSpider, Time, with_clock
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.utils.asyncio import sleep


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


class _Ahead(Time):
    """The clock, so many seconds ahead."""

    def __call__(self) -> float:
        return time() + self.now

    sleep = staticmethod(sleep)


def main(job: dict[str, Any]) -> None:
    settings = {**QUIET, **ADDON, "LOG_ENABLED": False, **job["settings"]}
    ahead = settings.pop("CLOCK_AHEAD", 0)
    if ahead:
        settings.update(with_clock(_Ahead(ahead)))
    reactor = settings.get("TWISTED_REACTOR", "asyncio")
    process_class = AsyncCrawlerProcess if "asyncio" in reactor else CrawlerProcess
    warnings, result = _Warnings(), Crawl()
    logging.getLogger().addHandler(warnings)
    process = process_class(settings)
    crawler = process.create_crawler(CrawlSpider)
    process.crawl(crawler, requests=job["urls"], crawl=result)
    process.start()
    said = {"pages": list(result.pages), "refused": list(result.refused), "failed": list(result.failed)}
    stats = {key: value for key, value in crawler.stats.get_stats().items() if isinstance(value, (int, float))}
    json.dump({**said, "warnings": warnings.messages, "stats": stats}, sys.stdout)


if __name__ == "__main__":
    main(json.load(sys.stdin))
