"""A crawl in a process of its own. The task is JSON on standard input; the result is the last line of the output.

The keys of the task:

- `settings`
- `urls`: URLs, or requests as dicts
- `ready_after`: seconds between the last request and the line that says the crawl is ready
- `waited`: how many requests must have waited for a robots.txt before that line
- `stop`: how the crawl then stops itself
- `clock_ahead`: seconds by which our middleware's clock is ahead

The log goes to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from crawling import Time, close_spider, with_clock
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.scrapy_internals.compat import sleep

# Meta keys that Scrapy sets.
SCRAPYS = {
    *("depth", "download_latency", "download_slot", "download_timeout", "is_start_request"),
}


def tell(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Ahead(Time):
    """A clock that is ahead by this many seconds."""

    def __call__(self) -> float:
        return time.time() + self.now

    sleep = staticmethod(sleep)  # type: ignore[assignment]


class TellsAll(Spider):
    name = "tells-all"

    def __init__(self, task: dict[str, Any], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.task = task
        self.ends: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.is_ready = False

    async def start(self) -> AsyncIterator[Request]:
        for request in self.task["urls"]:
            yield self.request({"url": request} if isinstance(request, str) else request)
        if self.task.get("ready_after"):
            call_later(self.task["ready_after"], self.ready)
            if self.task.get("stop") == "close_spider":
                await sleep(self.task["ready_after"])
                while not self.is_ready:
                    await sleep(0.01)
                close_spider(self, "enough")

    def request(self, details: dict[str, Any]) -> Request:
        return Request(**details, callback=self.parse, errback=self.failed)

    def ready(self) -> None:
        if self.crawler.stats.get_value("rep/waited", 0) < self.task.get("waited", 0):
            call_later(0.01, self.ready)
            return
        self.is_ready = True
        tell({"ready": True})
        engine = self.crawler.engine
        assert engine is not None
        if self.task.get("stop") == "engine.close":
            deferred_from_coro(engine.close_async())
        elif self.task.get("stop") == "SIGINT":
            os.kill(os.getpid(), signal.SIGINT)
        elif self.task.get("stop") == "crawler.stop":
            deferred_from_coro(self.crawler.stop_async())

    def parse(self, response: Response, **arguments: Any) -> Any:
        assert response.request is not None
        self.end(response.request, f"HTTP {response.status}", arguments)

    def failed(self, failure: Any) -> None:
        self.end(failure.request, type(failure.value).__name__, {}, str(failure.value))

    def end(self, request: Request, end: str, arguments: dict[str, Any], why: str = "") -> None:
        as_it_was = {"dont_filter": request.dont_filter, "priority": request.priority, "mark": request.meta.get("mark")}
        as_it_was["meta"] = sorted(set(request.meta) - SCRAPYS)
        self.ends.append({"url": request.url, "end": end, "why": why, **as_it_was, **arguments})


def main(task: dict[str, Any], spider_class: type[TellsAll] = TellsAll) -> None:
    settings = task["settings"]
    if "clock_ahead" in task:
        settings.update(with_clock(Ahead(task["clock_ahead"])))
    process_class = CrawlerProcess if settings.get("TWISTED_REACTOR_ENABLED", True) else AsyncCrawlerProcess
    process = process_class(settings)
    crawler = process.create_crawler(spider_class)
    process.crawl(crawler, task=task)
    process.start()
    spider, stats = crawler.spider, crawler.stats
    assert isinstance(spider, TellsAll)
    assert stats is not None
    as_json = {name: value for name, value in stats.get_stats().items() if isinstance(value, int | float | str)}
    tell({"ends": spider.ends, "stats": as_json, "notes": spider.notes})


if __name__ == "__main__":
    main(json.load(sys.stdin))
