"""Scrapy's own engine, downloader and scheduler, open but not running, for tests of what looks into them."""

from __future__ import annotations

from typing import Any

from scrapy import Request, Spider
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.test import get_crawler


def unstarted(sites: str = "", **settings: Any) -> tuple[Crawler, Scheduler]:
    """A crawler and its open scheduler. Each character of `sites` is a host that the downloader knows."""
    crawler = get_crawler(Spider, settings)
    crawler.spider = Spider.from_crawler(crawler, "any")
    crawler.engine = ExecutionEngine(crawler, lambda _: None)
    for site in sites:
        crawler.engine.downloader._get_slot(Request(f"http://{site}/"))
    crawler.engine.downloader.close()
    scheduler = build_from_crawler(load_object(crawler.settings["SCHEDULER"]), crawler)
    scheduler.open(crawler.spider)
    return crawler, scheduler
