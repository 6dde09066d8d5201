"""How much bad robots.txt files delay a crawl, with our middleware and with the built-in one.

    python tests/benchmarks/waiting.py [PART ...]

Parts: `dead`, `limits`, `handlers`, `outage`, `bodies`, `pages`; without an argument, all of them. Each crawl runs in a
process of its own, with default settings except for the log and timeouts of 10 s. `limits` also sets
CONCURRENT_REQUESTS. `bodies` sets timeouts of 5 s, REP_UNREACHABLE_WAIT and REP_FETCH_RETRIES to 0, and RETRY_ENABLED
to False. Each origin has a download slot of its own, as different hosts have.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "protocol")]

from benchmarks.numbered_origins import NumberedOrigins
from crawling import ADDON, BUILTIN, CrawlSpider, SlotByOrigin
from installed_scrapy import HANDLERS
from scrapy import Request
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from web import RULES, Route, Web, answer

from scrapy_rep.scrapy_internals.compat import sleep

HEALTHY, PAGES = 100, 3
MAX_SECONDS = 1_800  # for one crawl
WHO: dict[str, dict[str, Any]] = {"scrapy-rep": ADDON, "built-in": BUILTIN}
TIMEOUTS = {"DOWNLOAD_TIMEOUT": 10, "REP_FETCH_TIMEOUT": 10}


# In the crawl's process.


class Measures(CrawlSpider):
    """Seconds until the last of the awaited pages was there, and the event loop's longest stall."""

    def __init__(self, awaited: list[str], keep: bool, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.awaited = set(awaited)
        self.all_awaited = len(awaited)
        self.began = self.ticked = time.monotonic()
        self.done = 0.0
        self.stall = 0.0
        self.keep = keep

    async def start(self) -> AsyncIterator[Request]:
        await sleep(0)
        self.began = self.ticked = time.monotonic()
        self.tick()
        async for request in super().start():
            yield request

    def tick(self) -> None:
        now = time.monotonic()
        self.stall, self.ticked = max(self.stall, now - self.ticked), now
        call_later(0.01, self.tick)

    def parse(self, response: Response, **_: Any) -> None:
        self.awaited.discard(response.meta["asked"])
        self.done = time.monotonic() - self.began
        if not self.awaited and not self.keep:
            # All awaited pages have come. Requests to dead origins need not end.
            sys.stdout.write(json.dumps(self.measured()) + "\n")
            sys.stdout.flush()
            os._exit(0)

    def measured(self) -> dict[str, Any]:
        # Not ru_maxrss of getrusage: a forked process inherits its parent's.
        peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
        return {"seconds": self.done, "lost": len(self.awaited), "stall": self.stall, "peak": peak}


def crawl_here(task: dict[str, Any]) -> None:
    settings = {
        **WHO[task["who"]],
        **TIMEOUTS,
        "DOWNLOADER": SlotByOrigin,
        "LOG_LEVEL": "CRITICAL",
        "TELNETCONSOLE_ENABLED": False,
        **task["settings"],
    }
    has_reactor = settings.get("TWISTED_REACTOR_ENABLED", True)
    process = (CrawlerProcess if has_reactor else AsyncCrawlerProcess)(settings)
    crawler = process.create_crawler(Measures)
    process.crawl(crawler, requests=task["urls"], awaited=task["awaited"], keep=task["keep"])
    process.start()
    assert isinstance(crawler.spider, Measures)
    sys.stdout.write(json.dumps(crawler.spider.measured()) + "\n")


# From the benchmark's side.


def measure(who: str, urls: list[str], awaited: list[str], *, keep: bool = False, **settings: Any) -> dict[str, Any]:
    task = {"who": who, "urls": urls, "awaited": awaited, "keep": keep, "settings": settings}
    command = [sys.executable, __file__, "--crawl"]
    try:
        run = subprocess.run(
            command, input=json.dumps(task), stdout=subprocess.PIPE, text=True, timeout=MAX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"seconds": float("inf"), "lost": -1, "stall": float("inf"), "peak": float("inf")}
    return dict(json.loads(run.stdout.splitlines()[-1]))


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def dead(web: Web) -> None:
    print(f"\nSeconds until the {HEALTHY * PAGES} pages of {HEALTHY} healthy origins were done.\n")
    row("order", "dead origins", "scrapy-rep", "times as long as with none", "built-in", "peak MiB")
    row(*["---"] * 6)
    none: dict[str, float] = {}
    for order in ("round-robin", "dead first"):
        for number in (0, 64, 200, 1_000):
            rotten = [web.site({"/robots.txt": answer(kind="hang")}) for _ in range(number)]
            dead_row(order, f"{number:,}", [[site.url(f"/{n}") for n in range(PAGES)] for site in rotten], web, none)
    for number in (5_000, 50_000):
        rotten = [web.site({"/robots.txt": answer(kind="hang")})]
        urls = [rotten[0].url(f"/more/{n}") for n in range(number)]
        dead_row("dead first", f"1, {number:,} requests to it", [urls], web, none)


def limits(web: Web) -> None:
    """With Scrapy's default of CONCURRENT_REQUESTS, robots.txt files come on top of it; if it is set, they share it."""
    print("\nSeconds until the pages of healthy sites were done: one page of each of 1,000, three of each of 200.\n")
    row("CONCURRENT_REQUESTS", "1,000 sites", "built-in", "200 sites", "40 of the 200 never answer", "ratio")
    row(*["---"] * 6)
    dead = [web.site({"/robots.txt": answer(kind="hang")}) for _ in range(40)]
    sites = [web.site({"/robots.txt": answer(RULES, delay=0.1), "*": answer("page", delay=0.1)}) for _ in range(200)]
    none, some = ([site.url(f"/{n}") for n in range(PAGES) for site in all_] for all_ in (sites, sites[40:] + dead))
    healthy = [site.url(f"/{n}") for n in range(PAGES) for site in sites[40:]]
    choices: dict[str, dict[str, Any]] = {"its default, 16": {}, "set to 16": {"CONCURRENT_REQUESTS": 16}}
    for name, settings in choices.items():
        with NumberedOrigins(latency=0.1, keep_alive=True) as origins:
            many = [origins.url(origins.pattern(), number) for number in range(1_000)]
            times = [measure(who, many, many, **settings)["seconds"] for who in WHO]
        for urls, awaited in ((none, none), (some, healthy)):
            mixed = sorted(urls, key=hash_of)
            times.append(measure("scrapy-rep", mixed, awaited, **settings)["seconds"])
        row(name, *(f"{seconds:.1f}" for seconds in times), f"{times[3] / times[2]:.2f}")


def dead_row(order: str, number: str, rotten: list[list[str]], web: Web, none: dict[str, float]) -> None:
    # Delays as on the internet.
    robots, page = answer(RULES, delay=0.05), answer("page", delay=0.1)
    sites = [web.site({"/robots.txt": robots, "*": page}) for _ in range(HEALTHY)]
    healthy = [[site.url(f"/{n}") for n in range(PAGES)] for site in sites]
    awaited = [url for urls in healthy for url in urls]
    if order == "dead first":
        urls = [url for urls in rotten for url in urls] + awaited
    else:
        # All origins mixed, with the first page of each, then the second, then the third.
        mixed = sorted(rotten + healthy, key=lambda urls: hash_of(urls[0]))
        urls = [urls[n] for n in range(PAGES) for urls in mixed]
    ours = measure("scrapy-rep", urls, awaited)
    # The built-in middleware takes minutes if there are dead origins, so only one such row has it: twelve minutes.
    has_theirs = not rotten or (order, number) == ("round-robin", "200")
    theirs = f"{measure('built-in', urls, awaited)['seconds']:.1f}" if has_theirs else "-"
    first = none.setdefault(order, ours["seconds"])
    row(order, number, f"{ours['seconds']:.1f}", f"{ours['seconds'] / first:.2f}", theirs, f"{ours['peak']:.0f}")


def hash_of(url: str) -> int:
    """A number by which origins mix, the same in each run."""
    return zlib.crc32(url.encode())


def handlers(web: Web) -> None:
    print("\nThe 60 pages of 20 healthy origins behind 40 dead ones, by Scrapy's download handlers,")
    print("with CONCURRENT_REQUESTS = 16.\n")
    row("handler", *(f"{who}: pages lost, seconds" for who in WHO))
    row("---", *["---"] * len(WHO))
    for name, path in HANDLERS.items():
        cells = []
        for who in WHO:
            rotten = [web.site({"/robots.txt": answer(kind="hang")}).url("/") for _ in range(40)]
            sites = [web.site({"/robots.txt": answer(RULES)}) for _ in range(20)]
            awaited = [site.url(f"/{n}") for site in sites for n in range(3)]
            settings: dict[str, Any] = {"DOWNLOAD_HANDLERS": {"http": path}, "CONCURRENT_REQUESTS": 16}
            if name != "twisted":
                settings["TWISTED_REACTOR_ENABLED"] = False
            result = measure(who, rotten + awaited, awaited, **settings)
            cells.append(f"{result['lost']}, {result['seconds']:.1f}")
        row(name, *cells)


def outage(web: Web) -> None:
    print("\nA robots.txt that answers 503 for the first 10 s, then rules that allow all 50 pages.\n")
    row("", "pages lost", "fetched before the rules were there", "seconds")
    row(*["---"] * 4)
    for who in WHO:
        site = web.robots(answer(RULES, before=[10, 503]))
        urls = [site.url(f"/{n}") for n in range(50)]
        result = measure(who, urls, urls, keep=True)
        requests = site.requests
        ok = next((r["began"] for r in requests if r["target"] == "/robots.txt" and r["status"] == 200), float("inf"))
        early = sum(r["began"] < ok for r in requests if r["target"] != "/robots.txt")
        row(who, result["lost"], early, f"{result['seconds']:.1f}")


def bodies(web: Web) -> None:
    print("\nHostile bodies: peak memory, longest stall of the event loop, octets that the server got rid of.\n")
    row("robots.txt", *(f"{who}: MiB, stall s, octets" for who in WHO))
    row("---", *["---"] * len(WHO))
    bomb = gzip.compress(RULES.encode() + b"#" * 1_000_000_000, 1)
    agents = "".join(f"user-agent: a{n}\n" for n in range(3000)) + "".join(f"disallow: /{n}\n" for n in range(3000))
    routes: dict[str, Route] = {
        "ordinary": answer(RULES),
        "50 MB": answer(RULES + "disallow: /x\n" * 77_000, times=50),
        "endless, chunked (64 MiB)": answer(RULES + "#" * 65_000, kind="endless"),
        "gzip bomb (1 GB)": answer(bomb, headers={"Content-Encoding": "gzip"}),
        "3 000 agents, 3 000 rules": answer(agents),
        "drip-fed": answer(RULES * 100, kind="drip"),
        "headers without end (64 MiB)": answer(kind="headers"),
    }
    for name, route in routes.items():
        cells = []
        for who in WHO:
            site = web.robots(route)
            settings = {
                "REP_FETCH_TIMEOUT": 5,
                "DOWNLOAD_TIMEOUT": 5,
                "REP_UNREACHABLE_WAIT": 0,
                "REP_FETCH_RETRIES": 0,
            }
            urls = [site.url("/")]
            result = measure(who, urls, urls, keep=True, RETRY_ENABLED=False, **settings)
            octets = sum(request["octets"] for request in site.robots_requests)
            cells.append(f"{result['peak']:.0f}, {result['stall']:.2f}, {octets:,}")
        row(name, *cells)


def pages(web: Web) -> None:
    print("\nOrdinary pages: milliseconds a page of 100 000 octets, 1 000 of them of one origin; the best of three.\n")
    row(*WHO, "scrapy-rep, not obeying")
    row(*["---"] * (1 + len(WHO)))
    crawls: list[tuple[str, dict[str, Any]]] = [*((who, {}) for who in WHO), ("scrapy-rep", {"ROBOTSTXT_OBEY": False})]
    best = [float("inf")] * len(crawls)
    for _ in range(3):
        for n, (who, settings) in enumerate(crawls):
            site = web.site({"/robots.txt": answer(RULES), "*": answer("x" * 100_000)})
            urls = [site.url(f"/{n}") for n in range(1000)]
            best[n] = min(best[n], measure(who, urls, urls, **settings)["seconds"])
    row(*(f"{seconds:.2f}" for seconds in best))


PARTS: dict[str, Callable[[Web], None]] = {
    "dead": dead,
    "limits": limits,
    "handlers": handlers,
    "outage": outage,
    "bodies": bodies,
    "pages": pages,
}


def main(names: list[str]) -> None:
    web = Web()
    try:
        for name in names or PARTS:
            PARTS[name](web)
    finally:
        web.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["--crawl"]:
        crawl_here(json.load(sys.stdin))
    else:
        main(sys.argv[1:])
