"""Broad crawls of local origins, compared with Scrapy's own middleware: CPU time, calls, start, memory, growth.

    python tests/benchmarks/broad_crawl.py pairs [CORPUS] [--pairs N] [--sites N] [--store STORE] [--latency S]
    python tests/benchmarks/broad_crawl.py calls
    python tests/benchmarks/broad_crawl.py queued [--pairs N] [--sites N]
    python tests/benchmarks/broad_crawl.py growth
    python tests/benchmarks/broad_crawl.py where [--sites N]
    python tests/benchmarks/broad_crawl.py stall

- `pairs`: crawls of one page per origin, with the pages as start requests or as links of a first page, and crawls of
  three pages per origin. `start` is the CPU time of the process until the spider is opened, `CPU` the CPU time after.
- `calls`: how many functions are called for a site with one page, by cProfile. Unlike time, this hardly depends on what
  else the machine does.
- `queued`: the CPU time of a site by the number of sites, up to N, that are in the queue. One page names them all. The
  last column is scrapy-rep with `gc.set_threshold(10_000)`: Python then collects garbage less often.
- `growth`: up to 100,000 origins.
- `where`: which code uses the CPU time of an origin, with 1,000 origins and with N. It compares our middleware,
  Scrapy's own and a crawl without robots.txt.
- `stall`: the largest robots.txt files that are read.

CORPUS is a folder of robots.txt files; without it, files of 2 to 70 rules are generated. Each crawl runs in a process
of its own, which imports what a user's script would import, with Scrapy's default settings except for the log and the
telnet console. `growth` and `where` set CONCURRENT_REQUESTS to 64. One row of `growth` also sets REP_MEMORY_OCTETS to
1 MiB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers")]

from benchmarks.bodies import LIMIT, agents_and_rules, one_huge_group, rules_of_a_site
from benchmarks.measuring import head, row
from benchmarks.numbered_origins import KINDS, SLOW, NumberedOrigins
from redis_server import RedisServer

ADDON = {"ADDONS": {"scrapy_rep.Addon": 500}}
BUILTIN = {"ROBOTSTXT_OBEY": True}
PAGES = 3
MAX_SECONDS = 900  # for one crawl

Urls = list[tuple[str, int, int]]
"""Patterns of NumberedOrigins, each with the first number and the one after the last."""


def measure(settings: dict[str, Any], urls: Urls, *, on_a_page: bool = False, **options: bool) -> dict[str, Any]:
    """Run one crawl in a process, and return its figures.

    `on_a_page`: the first page links to all others; else they are start requests. `options`: also take `samples`, or
    count `calls`, or collect garbage less often (`rare_collection`).
    """
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("measured_crawl.py"))],
        input=json.dumps({"settings": settings, "urls": urls, "on_a_page": on_a_page, **options}),
        stdout=subprocess.PIPE,
        text=True,
        timeout=MAX_SECONDS,
        check=True,
    )
    return dict(json.loads(run.stdout.splitlines()[-1]))


def in_pairs(address: Callable[[], str], urls: Urls, pairs: int, *, on_a_page: bool) -> list[str]:
    """Return cells: the median of Scrapy's, of ours, and of the ratio in each pair (for the start: the difference)."""
    found = []
    for number in range(pairs):
        ours_settings = {**ADDON, "REP_STORAGE": address()}
        if number % 2:  # each goes first in every other pair
            ours, theirs = (measure(settings, urls, on_a_page=on_a_page) for settings in (ours_settings, BUILTIN))
        else:
            theirs, ours = (measure(settings, urls, on_a_page=on_a_page) for settings in (BUILTIN, ours_settings))
        assert theirs["pages"] == ours["pages"]
        found.append((theirs, ours))
    cells: list[str] = []
    for key, digits in (("cpu", 2), ("seconds", 1), ("start", 2), ("peak", 0)):
        cells += [f"{median(pair[who][key] for pair in found):.{digits}f}" for who in (0, 1)]
        if key == "start":
            compared, sign = [our[key] - their[key] for their, our in found], "+"
        else:
            compared, sign = [our[key] / their[key] for their, our in found], ""
        cells.append(f"**{median(compared):{sign}.2f}** ({min(compared):{sign}.2f} to {max(compared):{sign}.2f})")
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


def pairs_table(corpus: list[bytes], pairs: int, sites: int, only: str, latency: float) -> None:
    files = corpus or [rules_of_a_site(number) for number in (2, 5, 9, 9, 20, 70)]
    with NumberedOrigins(files, latency=latency, keep_alive=True) as origins, storages() as addresses:
        patterns = [origins.pattern(path=f"/some/page-{n}.html?page={n}") for n in range(PAGES)]
        page_by_page: Urls = [(pattern, 0, sites) for pattern in patterns]
        crawls: dict[str, tuple[Urls, bool]] = {
            "one page": (page_by_page[:1], False),
            "one page, of sites that a page names": (page_by_page[:1], True),
            f"{PAGES} pages, page by page": (page_by_page, False),
            f"{PAGES} pages, site by site": ([(p, n, n + 1) for n in range(sites) for p in patterns], False),
        }
        what = "real files" if corpus else "files of 2 to 70 rules"
        print(f"\n## {sites:,} origins with {what}; {pairs} pairs; latency {latency:g} s\n")
        print("CPU and clock in seconds, peak in MiB: the ratio is ours / theirs, the difference ours - theirs.")
        print("Median (least to most).\n")
        cpu, clock, peak = ((f"{what} theirs", "ours", "ratio") for what in ("CPU", "clock", "peak"))
        head("crawl", "store", *cpu, *clock, "start theirs", "ours", "difference", *peak)
        for crawl, (urls, on_a_page) in crawls.items():
            for store, address in addresses.items():
                if only in {"", store}:
                    row(crawl, store, *in_pairs(address, urls, pairs, on_a_page=on_a_page))


def calls_table() -> None:
    """Function calls for each site: the difference of two crawls, divided by the difference of their sites."""
    few, many = 200, 800
    print(f"\n## Function calls for each site, from crawls of {few} and of {many} sites\n")
    head("scrapy-rep", "built-in", "ratio")
    with NumberedOrigins(latency=0.1, keep_alive=True) as origins:
        calls = []
        for settings in (ADDON, BUILTIN):
            of_few, of_many = (
                measure(settings, [(origins.pattern(), 0, number)], calls=True)["calls"] for number in (few, many)
            )
            calls.append((of_many - of_few) / (many - few))
    row(*(f"{number:,.0f}" for number in calls), f"{calls[0] / calls[1]:.3f}")


def queued_table(pairs: int, most: int) -> None:
    print("\n## CPU time of a site in ms, by the number of sites in the queue\n")
    head("sites", "scrapy-rep", "built-in", "ratio", "clock, s", "built-in's", "rare collection")
    crawls: list[tuple[dict[str, Any], bool]] = [(ADDON, False), (BUILTIN, False), (ADDON, True)]
    with NumberedOrigins() as origins:
        for number in sorted({1_000, most // 3, most}):
            urls = [(origins.pattern(), 0, number)]
            found = [
                [measure(settings, urls, on_a_page=True, rare_collection=rare) for settings, rare in crawls]
                for _ in range(pairs)
            ]
            ours, theirs, rarely = (1000 * median(each[who]["cpu"] for each in found) / number for who in range(3))
            clocks = [f"{median(each[who]['seconds'] for each in found):.0f}" for who in (0, 1)]
            row(f"{number:,}", f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}", *clocks, f"{rarely:.2f}")


def growth_table() -> None:
    """CPU time for each origin with more and more origins, and memory with a small REP_MEMORY_OCTETS."""
    with NumberedOrigins() as origins:
        small = {"REP_MEMORY_OCTETS": 2**20}
        page, slow, dead = map(origins.pattern, KINDS)
        rows: list[tuple[str, dict[str, Any], Urls, int]] = [
            *((f"{number:,} origins", {}, [(page, 0, number)], number) for number in (1_000, 10_000, 50_000)),
            ("1,000 origins once more", {}, [(page, 0, 1_000)], 1_000),
            (f"10,000 origins that answer after {SLOW:g} s", {}, [(slow, 0, 10_000)], 10_000),
            ("1,000 origins unreachable, 9,000 not", {}, [(dead, 0, 1_000), (page, 1_000, 10_000)], 10_000),
            ("100,000 origins, 1 MiB of memory", small, [(page, 0, 100_000)], 100_000),
        ]
        print("\n## Growth: one page of each origin\n")
        head("", "CPU ms an origin", "seconds", "grown by MiB", "peak MiB")
        for name, settings, urls, number in rows:
            found = measure({**ADDON, "CONCURRENT_REQUESTS": 64, **settings}, urls)
            cells = (f"{found[key]:.1f}" for key in ("seconds", "grown", "peak"))
            row(name, f"{1000 * found['cpu'] / number:.2f}", *cells)


def where_table(sites: int) -> None:
    """CPU time for each origin in ms, by package; and the ten functions that take most of it."""
    nothing = {"ROBOTSTXT_OBEY": False}
    settings_of: dict[str, dict[str, Any]] = {"scrapy-rep": ADDON, "built-in": BUILTIN, "no robots.txt": nothing}
    packages = ("scrapy_rep", "scrapy", "twisted", "collection of garbage", "benchmarks", "other")
    print("\n## Where the CPU of an origin goes, in ms\n")
    head("", "origins", "CPU", *packages)
    functions: dict[str, dict[str, float]] = {}
    with NumberedOrigins() as origins:
        for who, settings in settings_of.items():
            for number in (1_000, sites):
                urls = [(origins.pattern(), 0, number)]
                found = measure({**settings, "CONCURRENT_REQUESTS": 64}, urls, samples=True)
                each = 1000 * found["cpu"] / number
                shares = found["shares"]
                row(who, f"{number:,}", f"{each:.2f}", *(f"{each * shares.get(name, 0):.2f}" for name in packages))
                functions[f"{who}, {number:,}"] = {name: each * share for name, share in found["functions"].items()}
    for crawl, times in functions.items():
        print(f"\n{crawl}: {'; '.join(f'{name} {time:.2f}' for name, time in times.items())}")


def stall_table() -> None:
    bodies = [one_huge_group(LIMIT)] * 5 + [agents_and_rules(32_000)] * 5
    with NumberedOrigins(bodies) as origins:
        urls = [(origins.pattern(path=f"/page-{n}"), 0, len(bodies)) for n in range(PAGES)]
        print(f"\n## Ten origins: {LIMIT:,} octets of one huge group, or 32 000 of n agents, n rules\n")
        head("", "CPU s", "seconds", "peak MiB", "longest stall, ms")
        nothing = {"ROBOTSTXT_OBEY": False}
        settings_of: dict[str, dict[str, Any]] = {"no robots.txt": nothing, "built-in": BUILTIN, "scrapy-rep": ADDON}
        for who, settings in settings_of.items():
            found = measure(settings, urls)
            cells = [f"{found[key]:.2f}" for key in ("cpu", "seconds")]
            row(who, *cells, *(f"{found[key]:.0f}" for key in ("peak", "stall")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pairs", "calls", "queued", "growth", "where", "stall"])
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument(
        "--sites", type=int, default=1_000, help="number of sites; `where` and `queued` also measure 1,000"
    )
    parser.add_argument("--store", default="", help="only this one: memory, sqlite or redis")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until a server answers")
    options = parser.parse_args()
    if options.what == "calls":
        calls_table()
    elif options.what == "queued":
        queued_table(options.pairs, options.sites)
    elif options.what == "growth":
        growth_table()
    elif options.what == "where":
        where_table(options.sites)
    elif options.what == "stall":
        stall_table()
    else:
        files = sorted(options.corpus.iterdir()) if options.corpus else []
        bodies = [file.read_bytes() for file in files if file.is_file()]
        pairs_table(bodies, options.pairs, options.sites, options.store, options.latency)
