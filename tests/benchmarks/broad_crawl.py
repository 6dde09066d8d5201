"""A broad crawl of 1 000 local origins: CPU, seconds, memory and the event loop's longest stall, under each."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "protocol")]

from benchmarks.bodies import LIMIT, agents_and_rules, one_huge_group, rules_of_a_site
from benchmarks.measuring import head, row
from crawling import ADDON, BUILTIN, CrawlSpider, SlotByOrigin
from scrapy import Request
from scrapy.crawler import CrawlerProcess
from scrapy.utils.asyncio import call_later
from web import Web

from scrapy_rep.scrapy_internals.compat import sleep

ORIGINS, PAGES, ROUNDS = 1_000, 3, 3
MAX_SECONDS = 300  # for one crawl
WHO: dict[str, dict[str, Any]] = {"no robots.txt": {"ROBOTSTXT_OBEY": False}, "built-in": BUILTIN, "scrapy-rep": ADDON}


class Measured(CrawlSpider):
    """Keeps nothing, and notices how long the event loop stalls."""

    ticked = 0.0
    stall = 0.0

    async def start(self) -> AsyncIterator[Request]:
        await sleep(0)
        self.ticked = time.monotonic()
        self.tick()
        async for request in super().start():
            yield request

    def tick(self) -> None:
        now = time.monotonic()
        self.stall, self.ticked = max(self.stall, now - self.ticked - 0.01), now
        call_later(0.01, self.tick)

    def parse(self, response: Any, **_: Any) -> None:
        """Nothing."""

    def failed(self, failure: Any) -> None:
        """Nothing."""


def crawl_here(task: dict[str, Any]) -> None:
    settings = {"DOWNLOADER": SlotByOrigin, "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}
    process = CrawlerProcess({**settings, **task["settings"], "CONCURRENT_REQUESTS": 64})
    crawler = process.create_crawler(Measured)
    began = time.monotonic()
    process.crawl(crawler, requests=task["urls"])
    process.start()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    assert isinstance(crawler.spider, Measured)
    found = {
        "cpu": usage.ru_utime + usage.ru_stime,
        "seconds": time.monotonic() - began,
        "memory": usage.ru_maxrss / 1024,
        "stall": crawler.spider.stall * 1000,
        "pages": crawler.stats.get_value("downloader/response_count", 0),
    }
    sys.stdout.write(json.dumps(found) + "\n")


def measure(settings: dict[str, Any], urls: list[str]) -> dict[str, float]:
    run = subprocess.run(
        [sys.executable, __file__, "--crawl"],
        input=json.dumps({"settings": settings, "urls": urls}),
        stdout=subprocess.PIPE,
        text=True,
        timeout=MAX_SECONDS,
        check=True,
    )
    return dict(json.loads(run.stdout.splitlines()[-1]))


def table(web: Web, bodies: list[bytes], pages: int, rounds: int) -> None:
    sites = [web.robots(body) for body in bodies]
    urls = [site.url(f"/some/page-{n}.html?page={n}") for n in range(pages) for site in sites]
    samples: dict[str, list[dict[str, float]]] = {who: [] for who in WHO}
    for _ in range(rounds):
        for who, settings in WHO.items():
            samples[who].append(measure(settings, urls))
    head("", "CPU s", "beyond none", "seconds", "peak MiB", "longest stall, ms", "responses")
    base = median(sample["cpu"] for sample in samples["no robots.txt"])
    for who, found in samples.items():
        middle = {key: median(sample[key] for sample in found) for key in found[0]}
        beyond = middle["cpu"] - base
        row(
            who,
            f"{middle['cpu']:.2f}",
            f"{beyond:.2f}",
            f"{middle['seconds']:.1f}",
            f"{middle['memory']:.0f}",
            f"{middle['stall']:.0f}",
            f"{middle['pages']:.0f}",
        )


def main(files: Mapping[str, bytes]) -> None:
    some = list(files.values()) or [rules_of_a_site(number) for number in (2, 5, 9, 9, 20, 70)]
    bodies = list(islice(cycle(some), ORIGINS))
    web = Web()
    try:
        what = "real files" if files else "files of 2 to 70 rules"
        print(f"\n## A broad crawl: {ORIGINS:,} origins with {what}, {PAGES} pages each\n")
        table(web, bodies, PAGES, ROUNDS)
        print(f"\n## Ten origins: {LIMIT:,} octets of one huge group, or 32 000 of n agents, n rules\n")
        table(web, [one_huge_group(LIMIT)] * 5 + [agents_and_rules(32_000)] * 5, PAGES, 1)
    finally:
        web.close()


if __name__ == "__main__" and sys.argv[1:] == ["--crawl"]:
    crawl_here(json.load(sys.stdin))
