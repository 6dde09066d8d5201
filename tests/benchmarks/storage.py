"""Storage benchmarks at full size: `python tests/benchmarks/storage.py [runs|fleet|files|outage|memory ...]`."""

from __future__ import annotations

import gc
import os
import random
import sqlite3
import sys
import tempfile
import threading
import time
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "protocol")]

from benchmarks.measured_crawl import resident
from crawling import ADDON
from fleets import fleet, open_sites, torn_by_killed_writers
from processes import Ended, crawl_process
from redis_server import RedisServer
from scrapy import Spider
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.test import get_crawler
from test_lifecycle_table import copy as response, forty_days
from web import Site, Web

from scrapy_rep.fetching.memory import EACH_PARSED, Memory
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, entry_from_bytes, entry_to_bytes
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.settings import RepSettings

DAY = 24 * 3600.0


def crawl(sites: list[Site], storage: str, clock_ahead: float = 0.0) -> tuple[Ended, float]:
    urls = [site.url(path) for site in sites for path in ("/", "/private")]
    settings = {"REP_STORAGE": storage, "LOG_LEVEL": "WARNING"}
    begun = time.monotonic()
    with crawl_process(urls, settings, clock_ahead=clock_ahead) as process:
        return process.ended(600), time.monotonic() - begun


def runs() -> None:
    """Three crawls in a row over 1,000 origins, the third 25 hours later; then an empty crawl."""
    web = Web()
    for address in ("memory:", "sqlite"):
        with tempfile.TemporaryDirectory() as folder:
            storage = address if address == "memory:" else f"sqlite://{folder}/robots.db"
            sites = open_sites(web, 1_000, delay=0.0)
            for run, ahead in (("first", 0), ("second", 0), ("third, 25 hours later", 25 * 3600)):
                before = sum(len(site.robots_requests) for site in sites)
                result, seconds = crawl(sites, storage, ahead)
                asked = sum(len(site.robots_requests) for site in sites)
                print(
                    f"{address:8} {run:22} {seconds:5.1f} s, {asked - before:5} robots.txt requests,"
                    f" {len(result.pages)} pages, {len(result.refused)} refused"
                )
            print(f"{address:8} {'an empty crawl':22} {crawl([], storage)[1]:5.2f} s")
    web.close()


def fleets() -> None:
    """8 crawlers, 500 origins, one Redis."""
    web = Web()
    for name, kills, restarts in (("undisturbed", 0, 0), ("20 SIGKILLs", 20, 0), ("Redis stopped and started", 0, 3)):
        with RedisServer() as redis:

            def come_and_go(redis: RedisServer = redis, times: int = restarts) -> None:
                for _ in range(times):
                    time.sleep(3)
                    redis.stop()
                    time.sleep(2)
                    redis.start()

            sites = open_sites(web, 500, delay=0.3)
            thread = threading.Thread(target=come_and_go)
            settings = {"REP_STORAGE": redis.url}
            account = fleet(sites, settings, crawlers=8, kills=kills, between=(0.5, 1.5), meanwhile=thread.start)
            thread.join()
        waited = sum(c.stats.get("rep/storage/hit", 0) for c in account.crawls)
        errors = sum(c.stats.get("rep/storage/error", 0) for c in account.crawls)
        print(
            f"{name}: {account.seconds:.0f} s; robots.txt requests an origin: {min(account.asked)} to"
            f" {max(account.asked)}, {account.asked_more} in all beyond one each, {account.kills} kills;"
            f" complete: {account.is_complete(500)}; answered from the store {waited} times, {errors} store errors"
        )
    web.close()


def files() -> None:
    """4 processes on one SQLite file, 50 SIGKILLs; then a store that is damaged after its first 100 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "robots.db"
        torn, kills = torn_by_killed_writers(file, writers=4, kills=50)
        with closing(sqlite3.connect(file)) as db:
            (check,) = db.execute("PRAGMA integrity_check").fetchone()
            rows = db.execute("SELECT origin, octets FROM entries_1").fetchall()
        header = file.read_bytes()[:100]
        whole = sum(entry_from_bytes(octets, f"{origin}/robots.txt") is not None for origin, octets in rows)
        print(f"{kills} kills: found torn while writing {torn}, afterwards {len(rows) - whole} of {len(rows)};")
        print(f"integrity_check: {check}; in the folder: {sorted(os.listdir(folder))}")
    web = Web()
    sites = open_sites(web, 20)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "robots.db").write_bytes(header + os.urandom(1_000_000))
        result, _ = crawl(sites, f"sqlite://{folder}/robots.db")
        print(f"damaged: {len(result.pages)} of 20 pages, {len(result.refused)} of 20 refused;")
        print(f"warnings: {len(result.warnings)}; in the folder: {sorted(os.listdir(folder))}")
    web.close()


def outage() -> None:
    """40 days of outage: `/` and `/x`, which the rules disallow; + allowed, - not."""
    cases = {
        "no copy": None,
        "rules": response(),
        "rules, must-revalidate": response(forbids_stale=True),
        "a 404": response(AccessResult.UNAVAILABLE),
    }
    for name, held in cases.items():
        days = forty_days(held)
        for path, which in (("/", 0), ("/x", 1)):
            print(f"{name:24} {path:3} " + "".join("+" if day[which] else "-" for day in days))


def body(chance: random.Random) -> bytes:
    """A robots.txt of a usual size: 0.1 to 6 KiB, median 1.2."""
    words = "wp-admin wp-includes cart checkout search tag feed author private tmp api static users login node".split()
    lines = ["User-agent: *"]
    for _ in range(int(min(2 + chance.expovariate(1 / 50), 200))):
        rule = chance.choice(["Disallow", "Disallow", "Disallow", "Allow"])
        wildcard = chance.choice(["", "/", "*", "/"])
        lines.append(f"{rule}: /{chance.choice(words)}/{chance.choice(words)}{wildcard}{chance.randrange(99)}")
    return "\n".join([*lines, "Sitemap: https://www.example.com/sitemap.xml"]).encode()


def memory() -> None:
    """100,000 origins through a memory that holds 38,600; octets of each origin."""
    chance = random.Random(1)
    crawler = get_crawler(Spider, ADDON)
    memory = Memory(RepSettings.read(crawler.settings))
    now, sizes = time.time(), []
    print(f"resident at the start: {resident():.0f} MiB")
    for number in range(1, 100_001):
        octets = body(chance)
        sizes.append(len(octets))
        origin = Origin("https", f"www.some-example-{number}.com", None)
        robots = RobotsTxt.parse(octets)
        robots.allows(f"{origin}/x", "bot")
        caching = StoredResponse(
            Answer(origin.robots_url, 200, AccessResult.SUCCESS, "HTTP 200"), now, now + DAY, robots
        )
        memory.put(origin, Entry(origin.robots_url, caching), now)
        if number in {1_000, 5_000, 10_000} or number % 20_000 == 0:
            gc.collect()
            print(f"after {number:6} origins: {resident():.0f} MiB resident")
    sizes.sort()
    print(f"size of the files: median {sizes[len(sizes) // 2]} octets, largest {sizes[-1]}")
    tracemalloc.start()
    kept: Any = []
    crawler = get_crawler(Spider, ADDON)
    again = Memory(RepSettings.read(crawler.settings))
    base = tracemalloc.get_traced_memory()[0]
    for number in range(3_000):
        origin = Origin("https", f"www.some-example-{number}.com", None)
        copied = StoredResponse(
            Answer("", 200, AccessResult.SUCCESS, "HTTP 200"), now, now + DAY, RobotsTxt.parse(body(chance))
        )
        again.put(origin, Entry(origin.robots_url, copied), now)
    while len(again._in_use):
        again._compress(*again._pop_oldest())
    gc.collect()
    print(f"an origin not in use: {(tracemalloc.get_traced_memory()[0] - base) / 3_000:.0f} octets")
    base, reckoned = tracemalloc.get_traced_memory()[0], 0
    for _ in range(500):
        octets = body(chance)
        robots = RobotsTxt.parse(octets)
        robots.allows("https://example.com/x", "bot")
        reckoned += robots.memory
        kept.append(robots)
    gc.collect()
    each = (tracemalloc.get_traced_memory()[0] - base) / 500
    print(f"parsed: {each:.0f} octets each; reckoned as {EACH_PARSED + reckoned / 500:.0f}")
    base = tracemalloc.get_traced_memory()[0]
    for _ in range(500):
        parser = ProtegoRobotParser(body(chance), None)
        parser.allowed("https://example.com/x", "bot")
        kept.append(parser)
    gc.collect()
    print(f"the built-in's: {(tracemalloc.get_traced_memory()[0] - base) / 500:.0f} octets each")
    one = entry_to_bytes(
        Entry("", StoredResponse(Answer("", access=AccessResult.SUCCESS), now, now, RobotsTxt.parse(body(chance))))
    )
    print(f"an entry's bytes, one of them: {len(one)}")


ALL = {"runs": runs, "fleet": fleets, "files": files, "outage": outage, "memory": memory}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or ALL:
        print(f"\n== {ALL[chosen].__doc__}")
        ALL[chosen]()
