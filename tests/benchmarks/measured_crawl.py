"""Run and measure one crawl of numbered origins: the task is JSON on standard input, the figures are JSON on output.

This imports only what a user's script would import, because the start is measured, too.
"""

from __future__ import annotations

import gc
import json
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from cProfile import Profile
from pathlib import Path
from types import FrameType
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
    """Whether the first page links to all others; else all pages are start requests."""
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


class Samples:
    """Every five milliseconds of CPU time, count the package and the function that run.

    What the standard library does is counted for the package that called it. The garbage collection is timed, because
    Python handles no signal while it collects.
    """

    PACKAGES = ("scrapy_rep", "scrapy", "twisted", "benchmarks")

    def __init__(self) -> None:
        self.by_package: Counter[str] = Counter()
        self.by_function: Counter[str] = Counter()
        self._began = self._collection_began = time.process_time()
        self._collecting = 0.0
        gc.callbacks.append(self._collect)
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)

    def _collect(self, phase: str, _info: dict[str, int]) -> None:
        now = time.process_time()
        if phase == "start":
            self._collection_began = now
        else:
            self._collecting += now - self._collection_began

    def _look(self, _number: int, frame: FrameType | None) -> None:
        package = "other"
        while frame is not None:
            found = next((name for name in self.PACKAGES if f"/{name}/" in frame.f_code.co_filename), None)
            if found is not None:
                package = found
                file = frame.f_code.co_filename.rpartition(f"/{found}/")[2]
                self.by_function[f"{found}/{file}: {frame.f_code.co_name}"] += 1
                break
            frame = frame.f_back
        self.by_package[package] += 1

    def shares(self) -> tuple[dict[str, float], dict[str, float]]:
        """Name -> share of the CPU time: of all packages, and of the ten functions with most of it."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        garbage = self._collecting / (time.process_time() - self._began)
        each = (1 - garbage) / self.by_package.total()
        packages, functions = (
            {name: number * each for name, number in counted.most_common(10)}
            for counted in (self.by_package, self.by_function)
        )
        return {"collection of garbage": garbage, **packages}, functions


def resident() -> float:
    """MiB of memory that the process uses now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    task = json.load(sys.stdin)
    if task.get("rare_collection"):
        gc.set_threshold(10_000)
    process = CrawlerProcess({"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, **task["settings"]})
    crawler = process.create_crawler(Measured)
    opened: list[float] = []

    samples: list[Samples] = []

    def spider_opened() -> None:
        if task.get("samples"):
            samples.append(Samples())
        opened[:] = time.process_time(), time.monotonic(), resident()

    crawler.signals.connect(spider_opened, signals.spider_opened)
    process.crawl(crawler, urls=task["urls"], on_a_page=task["on_a_page"])
    profile = Profile()
    if task.get("calls"):
        profile.enable()
    process.start()
    profile.disable()
    cpu, clock, size = opened
    assert isinstance(crawler.spider, Measured)
    found = {
        "start": cpu,
        "cpu": time.process_time() - cpu,
        "seconds": time.monotonic() - clock,
        "grown": resident() - size,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "stall": crawler.spider.stall * 1000,
        "calls": sum(entry.callcount for entry in profile.getstats()),
        "pages": crawler.stats.get_value("downloader/response_count", 0),
    }
    for each in samples:
        found["shares"], found["functions"] = each.shares()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
