"""Up to a million origins: `python tests/benchmarks/many_origins.py sqlite|redis|memory [CORPUS] [--most N]`.

- `sqlite`, `redis`: the size of the store with up to a million entries, and the time to store and to look up an entry.
- `memory`: how much memory a crawler uses after up to a million origins, with its default bounds.

CORPUS is a folder of robots.txt files as sites serve them; without it, files of 2 to 70 rules are generated. Each
origin has one of them, in turn.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers")]

from benchmarks.bodies import rules_of_a_site
from benchmarks.measured_crawl import resident
from benchmarks.measuring import head, row
from redis_server import RedisServer
from scrapy import Spider
from scrapy.utils.reactor import install_reactor
from scrapy.utils.test import get_crawler

from scrapy_rep.fetching.memory import Memory
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, entry_to_bytes
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import Storage, storage_of

ADDON = {"ADDONS": {"scrapy_rep.Addon": 500}}
DAY = 24 * 3600.0
STEPS = (10_000, 100_000, 1_000_000)  # origins
TOGETHER = 100  # calls under way at a time while the store is filled, as in a crawl
CALLS = 2_000  # that are timed, one after another


def origin_of(number: int) -> Origin:
    return Origin("https", f"www.some-example-{number}.com", None)


def entry_of(body: bytes, now: float) -> Entry:
    robots = RobotsTxt.parse(body)
    return Entry("", StoredResponse(Answer("", 200, AccessResult.SUCCESS, "HTTP 200"), now, now + DAY, robots))


async def filled(storage: Storage, entries: list[bytes], first: int, last: int) -> None:
    """Store the entries of these origins."""
    from asyncio import gather

    for begin in range(first, last, TOGETHER):
        numbers = range(begin, min(begin + TOGETHER, last))
        await gather(*(storage.put(str(origin_of(n)), entries[n % len(entries)], 30 * DAY) for n in numbers))


async def timed(calls: Iterator[Awaitable[object]]) -> str:
    """Median and 99th percentile of a call in microseconds. The calls are made one after another."""
    times = []
    for call in calls:
        begun = time.perf_counter()
        await call
        times.append(1e6 * (time.perf_counter() - begun))
    return f"{median(times):.0f}, {sorted(times)[len(times) * 99 // 100]:.0f}"


async def stores_table(name: str, address: str, entries: list[bytes], most: int, size: Callable[[], int]) -> None:
    storage = storage_of(crawler := get_crawler(Spider, {**ADDON, "REP_STORAGE": address}), settings_of(crawler))
    assert storage is not None
    print(f"\n## `{name}`; times of a call: median, 99th percentile\n")
    head("origins", "MiB", "bytes an origin", "stored in s", "store, us", "look up, us", "look up what is missing, us")
    first, chance = 0, Random(1)
    for step in (step for step in STEPS if step <= most):
        begun = time.monotonic()
        await filled(storage, entries, first, step)
        seconds, first = time.monotonic() - begun, step
        numbers = [chance.randrange(step) for _ in range(CALLS)]
        one = entries[0]
        cells = [
            await timed(storage.put(str(origin_of(n)), one, 30 * DAY) for n in numbers),
            await timed(storage.get(str(origin_of(n))) for n in reversed(numbers)),
            await timed(storage.get(str(origin_of(n + 10**7))) for n in numbers),
        ]
        row(f"{step:,}", f"{size() / 2**20:.0f}", f"{size() / step:.0f}", f"{seconds:.0f}", *cells)
    await storage.close()


def settings_of(crawler: Any) -> RepSettings:
    return RepSettings.read(crawler.settings)


def memory_table(bodies: list[bytes], most: int) -> None:
    memory = Memory(settings_of(get_crawler(Spider, ADDON)))
    now = time.time()
    entries = [entry_of(body, now) for body in bodies]
    gc.collect()
    before = resident()
    print("\n## A crawler's memory at its default bounds\n")
    head("origins", "grown by MiB")
    for number in range(1, most + 1):
        origin = origin_of(number)
        stored = entries[number % len(entries)].stored
        assert stored is not None
        robots = RobotsTxt.parse(bodies[number % len(bodies)])
        robots.allows(f"{origin}/x", "bot")
        response = StoredResponse(stored.answer, now, now + DAY, robots)
        memory.put(origin, Entry(origin.robots_url, response), now)
        if number in STEPS:
            gc.collect()
            row(f"{number:,}", f"{resident() - before:.0f}")


def run_in_reactor(main: Callable[[], Awaitable[None]]) -> None:
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from scrapy.utils.defer import deferred_from_coro
    from twisted.internet.task import react

    react(lambda _reactor: deferred_from_coro(main()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sqlite", "redis", "memory"])
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--most", type=int, default=STEPS[-1], help="origins")
    options = parser.parse_args()
    files = sorted(options.corpus.rglob("*")) if options.corpus else []
    bodies = [file.read_bytes() for file in files if file.is_file()]
    bodies = bodies or [rules_of_a_site(number) for number in (2, 5, 9, 9, 20, 70)]
    if options.what == "memory":
        memory_table(bodies, options.most)
        return
    entries = [entry_to_bytes(entry_of(body, time.time())) for body in bodies]
    print(f"{len(bodies)} files; {sum(map(len, bodies)) / len(bodies):.0f} bytes each, as entries", end=" ")
    print(f"{sum(map(len, entries)) / len(entries):.0f}")
    if options.what == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "robots.db"
            address = f"sqlite://{file}"
            run_in_reactor(lambda: stores_table("sqlite:", address, entries, options.most, lambda: file.stat().st_size))
        return
    from redis import Redis

    with RedisServer() as server:
        client: Any = Redis(port=server.port)
        run_in_reactor(
            lambda: stores_table(
                "redis:", server.url, entries, options.most, lambda: client.info("memory")["used_memory"]
            )
        )


if __name__ == "__main__":
    main()
