"""Broad crawls of local origins beside Scrapy's own middleware, in pairs: CPU, seconds, memory, growth.

    python tests/benchmarks/broad_crawl.py pairs [CORPUS] [--pairs N] [--store STORE] [--latency S]
    python tests/benchmarks/broad_crawl.py growth
    python tests/benchmarks/broad_crawl.py stall

`pairs`: 1 000 origins, 3 pages each. `growth`: up to 50 000 origins. `stall`: robots.txt files as large as can be.
CORPUS is a folder of robots.txt files; without it, files of 2 to 70 rules are made up.

With a server that answers at once, a crawl flips by chance between two states, with few requests under way or with as
many as there may be, which cost different CPU for the same work. With --latency 0.1 there is only the second.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from itertools import count, cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "protocol")]

from benchmarks.bodies import LIMIT, agents_and_rules, one_huge_group, rules_of_a_site
from benchmarks.measuring import head, row
from benchmarks.numbered_origins import KINDS, SLOW, NumberedOrigins
from crawling import ADDON, BUILTIN, CrawlSpider, SlotByOrigin
from redis_server import RedisServer
from scrapy.crawler import CrawlerProcess
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.asyncio import call_later
from web import Web, answer

from scrapy_rep import RepMiddleware
from scrapy_rep.scrapy_internals.compat import sleep

# Imported here, so that importing them is not measured with the crawl.
MIDDLEWARES = RobotsTxtMiddleware, RepMiddleware

ORIGINS, PAGES = 1_000, 3
MAX_SECONDS = 900  # for one crawl
NONE = {"ROBOTSTXT_OBEY": False}


class Measured(CrawlSpider):
    """Keeps nothing, and notices how long the event loop stalls."""

    ticked = 0.0
    stall = 0.0

    async def start(self) -> AsyncIterator[Any]:
        await sleep(0)
        self.ticked = time.monotonic()
        self.tick()
        async for request in super().start():
            yield request

    def tick(self) -> None:
        now = time.monotonic()
        self.stall, self.ticked = max(self.stall, now - self.ticked - 0.1), now
        call_later(0.1, self.tick)

    def parse(self, response: Any, **_: Any) -> None:
        """Nothing."""

    def failed(self, failure: Any) -> None:
        """Nothing."""


def resident() -> float:
    """MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def crawl_here(task: dict[str, Any]) -> None:
    settings = {"DOWNLOADER": SlotByOrigin, "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}
    process = CrawlerProcess({**settings, "CONCURRENT_REQUESTS": 64, **task["settings"]})
    crawler = process.create_crawler(Measured)
    began, cpu, before = time.monotonic(), time.process_time(), resident()
    process.crawl(crawler, requests=(url for urls in task["urls"] for url in urls_of(urls)))
    process.start()
    assert isinstance(crawler.spider, Measured)
    found = {
        "cpu": time.process_time() - cpu,
        "seconds": time.monotonic() - began,
        "grown": resident() - before,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "stall": crawler.spider.stall * 1000,
        "pages": crawler.stats.get_value("downloader/response_count", 0),
    }
    sys.stdout.write(json.dumps(found) + "\n")


def urls_of(urls: str | list[str | int]) -> Iterator[str]:
    """A URL, or its pattern and a range of numbers."""
    if isinstance(urls, str):
        yield urls
        return
    pattern, first, last = urls
    yield from (NumberedOrigins.url(str(pattern), number) for number in range(int(first), int(last)))


def measure(settings: dict[str, Any], urls: list[Any]) -> dict[str, float]:
    run = subprocess.run(
        [sys.executable, __file__, "crawl"],
        input=json.dumps({"settings": settings, "urls": urls}),
        stdout=subprocess.PIPE,
        text=True,
        timeout=MAX_SECONDS,
        check=True,
    )
    return dict(json.loads(run.stdout.splitlines()[-1]))


def in_pairs(address: Callable[[], str], urls: list[Any], pairs: int) -> list[str]:
    """Median seconds of CPU and of the clock and MiB of theirs and ours, and the median of each pair's ratios."""
    found = []
    for number in range(pairs):
        ours_settings = {**ADDON, "REP_STORAGE": address()}
        if number % 2:  # each goes first in every other pair
            ours, theirs = measure(ours_settings, urls), measure(BUILTIN, urls)
        else:
            theirs, ours = measure(BUILTIN, urls), measure(ours_settings, urls)
        assert theirs["pages"] == ours["pages"]
        found.append((theirs, ours))
    cells: list[str] = []
    for key in ("cpu", "seconds", "grown"):
        their, our = median(pair[0][key] for pair in found), median(pair[1][key] for pair in found)
        ratios = sorted(pair[1][key] / pair[0][key] for pair in found)
        cells += [f"{their:.2f}", f"{our:.2f}", f"**{median(ratios):.2f}** ({ratios[0]:.2f}-{ratios[-1]:.2f})"]
    return cells


@contextmanager
def storages() -> Iterator[dict[str, Callable[[], str]]]:
    """Addresses by their scheme; each call gives an empty store."""
    with tempfile.TemporaryDirectory() as folder, RedisServer() as redis:
        names = count()

        def empty_redis() -> str:
            redis.stop()
            redis.start()
            return redis.url

        yield {
            "memory": lambda: "memory:",
            "sqlite": lambda: f"sqlite://{folder}/{next(names)}.db",
            "redis": empty_redis,
        }


def pairs_table(corpus: list[bytes], pairs: int, only: str, latency: float) -> None:
    bodies = list(islice(cycle(corpus or [rules_of_a_site(number) for number in (2, 5, 9, 9, 20, 70)]), ORIGINS))
    web = Web()
    try:
        page = answer("page", delay=latency)
        sites = [web.site({"/robots.txt": answer(body, delay=latency), "*": page}) for body in bodies]
        by_origin = [site.url(f"/some/page-{n}.html?page={n}") for site in sites for n in range(PAGES)]
        orders = {
            "round-robin": [by_origin[place] for n in range(PAGES) for place in range(n, len(by_origin), PAGES)],
            "origin by origin": by_origin,
        }
        what = "real files" if corpus else "files of 2 to 70 rules"
        print(f"\n## {ORIGINS:,} origins with {what}, {PAGES} pages each; {pairs} pairs; latency {latency:g} s\n")
        print("CPU and clock in seconds; growth in MiB of resident memory; ratio: median (least-most).\n")
        head("order", "store", "CPU theirs", "ours", "ratio", "clock theirs", "ours", "ratio", "MiB", "ours", "ratio")
        with storages() as addresses:
            for order, urls in orders.items():
                for store, address in addresses.items():
                    if only in {"", store}:
                        row(order, store, *in_pairs(address, urls, pairs))
    finally:
        web.close()


def growth_table() -> None:
    """CPU of an origin by how many there are; MiB by the bound on memory."""
    with NumberedOrigins() as origins:
        small = {"REP_MEMORY_OCTETS": 2**20, "REP_MEMORY_ORIGINS": 10**6}
        page, slow, dead = map(origins.pattern, KINDS)
        rows: list[tuple[str, dict[str, Any], list[Any], int]] = [
            *((f"{number:,} origins", {}, [[page, 0, number]], number) for number in (1_000, 10_000, 50_000)),
            ("1,000 origins once more", {}, [[page, 0, 1_000]], 1_000),
            (f"10,000 origins that answer after {SLOW:g} s", {}, [[slow, 0, 10_000]], 10_000),
            ("1,000 origins unreachable, 9,000 not", {}, [[dead, 0, 1_000], [page, 1_000, 10_000]], 10_000),
            ("100,000 origins, 1 MiB of memory", small, [[page, 0, 100_000]], 100_000),
        ]
        print("\n## Growth: one page of each origin\n")
        head("", "CPU ms an origin", "seconds", "grown by MiB", "peak MiB")
        for name, settings, urls, number in rows:
            found = measure({**ADDON, **settings}, urls)
            cells = (f"{found[key]:.1f}" for key in ("seconds", "grown", "peak"))
            row(name, f"{1000 * found['cpu'] / number:.2f}", *cells)


def stall_table() -> None:
    web = Web()
    try:
        bodies = [one_huge_group(LIMIT)] * 5 + [agents_and_rules(32_000)] * 5
        urls = [site.url(f"/page-{n}") for site in [web.robots(body) for body in bodies] for n in range(PAGES)]
        print(f"\n## Ten origins: {LIMIT:,} octets of one huge group, or 32 000 of n agents, n rules\n")
        head("", "CPU s", "seconds", "peak MiB", "longest stall, ms")
        settings_of: dict[str, dict[str, Any]] = {"no robots.txt": NONE, "built-in": BUILTIN, "scrapy-rep": ADDON}
        for who, settings in settings_of.items():
            found = measure(settings, urls)
            row(
                who,
                *(f"{found[key]:.2f}" for key in ("cpu", "seconds")),
                f"{found['peak']:.0f}",
                f"{found['stall']:.0f}",
            )
    finally:
        web.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["pairs", "growth", "stall", "crawl"])
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--store", default="", help="only this one: memory, sqlite or redis")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until a server answers")
    options = parser.parse_args()
    if options.what == "crawl":
        crawl_here(json.load(sys.stdin))
    elif options.what == "growth":
        growth_table()
    elif options.what == "stall":
        stall_table()
    else:
        files = sorted(options.corpus.iterdir()) if options.corpus else []
        pairs_table(
            [file.read_bytes() for file in files if file.is_file()], options.pairs, options.store, options.latency
        )
