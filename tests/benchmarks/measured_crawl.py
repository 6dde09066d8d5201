"""One crawl of numbered origins, as a user's script runs it: a task in JSON on standard input, figures in JSON out.

Imports what such a script does and no more, because the start is measured too.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]

from benchmarks.numbered_origins import NumberedOrigins
from scrapy import Request, Spider, signals
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.utils.asyncio import call_later


class Measured(Spider):
    """Keeps nothing, and notices how long the event loop stalls."""

    name = "measured"
    urls: list[tuple[str, int, int]]
    on_a_page = False
    """The first page names all others; else they are start requests."""
    ticked = 0.0
    stall = 0.0

    async def start(self) -> AsyncIterator[Request]:
        self.ticked = time.monotonic()
        call_later(0.1, self.tick)
        requests = self.requests()
        if self.on_a_page:
            yield next(requests).replace(callback=lambda _response: requests)
        for request in requests:
            yield request

    def requests(self) -> Iterator[Request]:
        for pattern, first, last in self.urls:
            for number in range(first, last):
                yield Request(NumberedOrigins.url(pattern, number), self.parse, dont_filter=True)

    def tick(self) -> None:
        now = time.monotonic()
        self.stall, self.ticked = max(self.stall, now - self.ticked - 0.1), now
        call_later(0.1, self.tick)

    def parse(self, response: Response, **_: Any) -> None:
        """Nothing."""


def resident() -> float:
    """MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    task = json.load(sys.stdin)
    process = CrawlerProcess({"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, **task["settings"]})
    crawler = process.create_crawler(Measured)
    opened: list[float] = []

    def spider_opened() -> None:
        opened[:] = time.process_time(), time.monotonic(), resident()

    crawler.signals.connect(spider_opened, signals.spider_opened)
    process.crawl(crawler, urls=task["urls"], on_a_page=task["on_a_page"])
    process.start()
    cpu, clock, size = opened
    assert isinstance(crawler.spider, Measured)
    found = {
        "start": cpu,
        "cpu": time.process_time() - cpu,
        "seconds": time.monotonic() - clock,
        "grown": resident() - size,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "stall": crawler.spider.stall * 1000,
        "pages": crawler.stats.get_value("downloader/response_count", 0),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
