"""Random crawls, each of which must keep our promises: `python tests/benchmarks/chaos.py [--crawls N] [--seconds S]`.

Servers, their faults, the settings, the requests and the way a crawl is stopped are drawn at random. Each run of a
crawl is a process of its own. Each crawl must keep these promises:

- No page that robots.txt forbids reaches its server, and no page that it allows is refused.
- Each request ends exactly once: in its callback or its errback. With a JOBDIR that holds across all runs of a job.
- The servers see no more pages at once than CONCURRENT_REQUESTS and CONCURRENT_REQUESTS_PER_DOMAIN allow. (The second
  limit is checked only with the `select` reactor. The first leaves out pages that a callback downloads itself.)
- `spider_idle` is not sent while a request is pending.
- The crawl ends, its process ends, its log has no traceback, and the downloader is left as it was found.

Crawl n of a run with `--seed S` is drawn from S + n, and each fault is printed with that number. To repeat that crawl,
pass `--seed NUMBER --crawls 1 --log`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "protocol")]

from processes import REACTORS, Ended, TellsAll, crawl_process, run_crawl
from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from scrapy.settings import default_settings
from scrapy.utils.asyncio import call_later
from scrapy.utils.httpobj import urlparse_cached
from web import RULES, Route, Site, Web, answer, most_at_once, redirect

from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import OCTETS_OF_ORIGIN

logger = logging.getLogger("chaos")

MAX_SECONDS = 60  # for one run of a job


# In the crawl's process.


class Chaos(TellsAll):
    """Makes the requests that are drawn for the crawl, and records broken promises that only the crawl can see."""

    def __init__(self, task: dict[str, Any], **attributes: Any) -> None:
        super().__init__(task, **attributes)
        self.pending = set(task["pending"])

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Chaos:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    async def start(self) -> AsyncIterator[Request]:
        for begin, seconds in self.task["pauses"]:
            call_later(begin, self.pause, seconds)
        async for request in super().start():
            await sleep(request.meta["wait"])
            yield request

    def request(self, details: dict[str, Any]) -> Request:
        self.pending.add(details["meta"]["mark"])
        return super().request(details)

    async def parse(
        self, response: Response, follow: Iterable[dict[str, Any]] = (), inline: Iterable[str] = (), **_: Any
    ) -> AsyncIterator[Request]:
        for url in inline:
            await download(self.crawler, url)
        super().parse(response)
        for details in follow:
            yield self.request(details)

    def end(self, request: Request, end: str, arguments: dict[str, Any], why: str = "") -> None:
        super().end(request, end, arguments, why)
        self.pending.discard(request.meta["mark"])

    def idle(self) -> None:
        if self.pending:
            self.notes.append(f"spider_idle while {len(self.pending)} requests were pending")

    def pause(self, seconds: float) -> None:
        engine = self.crawler.engine
        if engine is not None and engine.running:
            engine.pause()
            call_later(seconds, engine.unpause)

    def closed(self, _reason: str) -> None:
        downloader = self.crawler.engine.downloader
        found = downloader.total_concurrency, len(downloader.active)
        if found != (self.settings.getint("CONCURRENT_REQUESTS"), 0):
            self.notes.append(f"total concurrency and requests in the downloader at the end: {found}")


async def download(crawler: Crawler, url: str) -> None:
    try:
        await crawler.engine.download_async(Request(url))
    except Exception as exc:  # noqa: BLE001 - that it comes to an end is what matters
        logger.debug("%s: %r", url, exc)


class Meddles:
    """A downloader middleware that drops, delays or answers a request, or fails, as the request's meta or site says."""

    WAYS = ("drop", "drop later", "answer", "delay", "fail", "download before", "download after")

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.robots = crawler.settings.getdict("CHAOS_ROBOTS")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Meddles:
        return cls(crawler)

    def way(self, request: Request) -> str | None:
        if urlparse_cached(request).path == "/robots.txt":
            return self.robots.get(str(urlparse_cached(request).port))
        way: str | None = request.meta.get("meddle")
        return way

    async def process_request(self, request: Request) -> Response | None:
        way = self.way(request)
        if way == "drop later":
            await sleep(0.02)
        if way in {"drop", "drop later"}:
            raise IgnoreRequest(way)
        if way == "download before":
            await download(self.crawler, request.meta["elsewhere"])
        return TextResponse(request.url, body=b"another's") if way == "answer" else None

    async def process_response(self, request: Request, response: Response) -> Response:
        way = self.way(request)
        if way == "delay":
            await sleep(0.05)
        if way == "fail":
            raise ConnectionError(way)  # a bug of a component would be logged as an ERROR
        if way == "download after":
            await download(self.crawler, request.meta["elsewhere"])
        return response


class Fifo(BaseScheduler):
    """A scheduler of a user, with only the methods that Scrapy requires."""

    def __init__(self) -> None:
        self.queue: deque[Request] = deque()

    def has_pending_requests(self) -> bool:
        return bool(self.queue)

    def enqueue_request(self, request: Request) -> bool:
        self.queue.append(request)
        return True

    def next_request(self) -> Request | None:
        return self.queue.popleft() if self.queue else None


class ReturnsNone(Fifo):
    """Accepts each request, but `enqueue_request` does not return True."""

    def enqueue_request(self, request: Request) -> bool:
        return super().enqueue_request(request) and None  # type: ignore[return-value]


class ReturnsFalse(Fifo):
    """Has a duplicate filter, and returns whether it accepted a request."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def enqueue_request(self, request: Request) -> bool:
        is_new = request.dont_filter or request.url not in self.seen
        self.seen.add(request.url)
        return is_new and super().enqueue_request(request)


class ForgetsIdle(Fifo):
    """Counts a request as done if it has left the queue and is not in the downloader. Needs REP_WAITING_MAX = 0."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__()
        self.crawler = crawler
        self.handed_out: list[Request] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ForgetsIdle:
        return cls(crawler)

    def next_request(self) -> Request | None:
        engine: Any = self.crawler.engine
        busy = engine.downloader.active | engine.scraper.slot.active
        known = {request.meta["mark"] for request in [*busy, *self.queue] if "mark" in request.meta}
        spider: Any = self.crawler.spider
        for done in self.handed_out:
            if done not in busy and done.meta["mark"] in spider.pending - known:
                spider.notes.append(f"request {done.meta['mark']} was not in the downloader while it was pending")
        self.handed_out = [request for request in self.handed_out if request in busy]
        request = super().next_request()
        self.handed_out += [request] if request is not None else []
        return request


# A scheduler -> the settings that it needs.
FOREIGN: dict[str, dict[str, Any]] = {
    "chaos.Fifo": {},
    "chaos.ReturnsNone": {},
    "chaos.ReturnsFalse": {},
    # With little memory, each request to a dead site would wait in the downloader for a fetch of its own.
    "chaos.ForgetsIdle": {"REP_WAITING_MAX": 0, "REP_MEMORY_OCTETS": 2**26},
}

# What is drawn.

Robots = Callable[["Draw"], "Route | list[Route]"]
BOMB = gzip.compress(RULES.encode() + b"#" * 5_000_000)
DOWN = answer(status=503)

# Kind of site -> its robots.txt, and which pages are allowed ("rules in the end": none until robots.txt is reachable,
# then those that the rules allow).
KINDS: dict[str, tuple[Robots, str]] = {
    "good": (lambda _: answer(RULES), "rules"),
    "slow": (lambda draw: answer(RULES, delay=draw.random() / 3), "rules"),
    "gzip": (lambda _: answer(gzip.compress(RULES.encode()), headers={"Content-Encoding": "gzip"}), "rules"),
    "bomb": (lambda _: answer(BOMB, headers={"Content-Encoding": "gzip"}), "rules"),
    "endless": (lambda _: answer(RULES + "#" * 65_000, kind="endless"), "rules"),
    "https": (lambda _: answer(RULES), "rules"),
    "redirects": (lambda draw: redirect(draw.site("good").robots_url), "rules"),
    "redirects-to-itself": (lambda _: redirect("/robots.txt?again"), "rules"),
    "heals": (lambda _: [DOWN, answer(kind="reset"), answer(RULES)], "rules in the end"),
    "gone": (lambda draw: answer(RULES, status=draw.choice([400, 404, 405, 410, 499])), "all"),
    "restricted": (lambda draw: answer(RULES, status=draw.choice([401, 402, 403, 451])), "all"),
    "loops": (lambda _: redirect("/robots.txt"), "all"),
    "down": (lambda draw: answer(RULES, status=draw.choice([202, 300, 407, 429, 500, 502, 503, 599, 600])), "none"),
    "challenged": (lambda _: answer(RULES, status=403, headers={"cf-mitigated": "challenge"}), "none"),
    "html": (lambda _: answer("<html>Welcome</html>"), "all"),
    "dead": (lambda _: answer(kind="hang"), "none"),
    "drip": (lambda _: answer(RULES * 50, kind="drip"), "none"),
    "headers": (lambda _: answer(kind="headers"), "none"),
    "half-closed": (lambda _: answer(RULES, kind="half-closed"), "none"),
    "cut": (lambda _: answer(RULES, kind="cut"), "none"),
    "reset": (lambda _: answer(kind="reset"), "none"),
    "garbage": (lambda _: answer(kind="garbage"), "none"),
    "undecodable": (lambda _: answer(b"\xff" + RULES.encode(), headers={"Content-Encoding": "gzip"}), "none"),
    "tls-failure": (lambda _: answer(RULES), "none"),
    "redirects-to-a-dead-one": (lambda draw: redirect(draw.site("dead").robots_url), "none"),
    "redirects-nowhere": (lambda draw: redirect(draw.choice(["file:///x", "http://", "gopher://x/"])), "none"),
    "dropped-by-a-middleware": (lambda _: answer(RULES), "none"),
    "failed-by-a-middleware": (lambda _: answer(RULES), "none"),
}
OFTEN = {"good": 8, "slow": 6, "dead": 3, "heals": 2, "endless": 0.3, "bomb": 0.5, "headers": 0.3}
MEDDLING = {"dropped-by-a-middleware": "drop later", "failed-by-a-middleware": "fail"}

# A setting -> what it is drawn from.
SETTINGS: dict[str, list[Any]] = {
    "CONCURRENT_REQUESTS": [1, 2, 3, 8, 16, 16],
    "CONCURRENT_REQUESTS_PER_DOMAIN": [1, 2, 8, 8],
    "DOWNLOADER": ["crawling.SlotByOrigin"] * 3 + ["scrapy.core.downloader.Downloader"],
    "DOWNLOAD_DELAY": [0, 0, 0, 0.02],
    "AUTOTHROTTLE_ENABLED": [False] * 5 + [True],
    "SCHEDULER_PRIORITY_QUEUE": ["scrapy.pqueues.DownloaderAwarePriorityQueue", "scrapy.pqueues.ScrapyPriorityQueue"],
    "SCRAPER_SLOT_MAX_ACTIVE_SIZE": [5_000_000, 5_000_000, 5_000],
    # An older Scrapy always logs the last failure as an error, which would count as a fault.
    "RETRY_ENABLED": [False, hasattr(default_settings, "RETRY_GIVE_UP_LOG_LEVEL")],
    "REP_STATUS_POLICY": ["rfc9309", "rfc9309", "cautious"],
    "REP_STORAGE": ["memory:", "memory:", "sqlite://{folder}/robots.db"],
    "REP_MEMORY_OCTETS": [2**26, 2**26, 2 * OCTETS_OF_ORIGIN],
    "REP_FETCH_CONCURRENCY": [1, 3, 64, 64],
    "REP_FETCH_RETRIES": [0, 1],
    "REP_WAITING_MAX": [1, 5, 1_000, 1_000],
    "REP_UNREACHABLE_WAIT": [0, 0, 2],
}
ALWAYS = {
    "REP_FETCH_TIMEOUT": 1.5,
    "DOWNLOAD_TIMEOUT": 4,
    "AUTOTHROTTLE_START_DELAY": 0.02,
    "AUTOTHROTTLE_MAX_DELAY": 0.05,
    "RETRY_GIVE_UP_LOG_LEVEL": "INFO",
}
STOPS = [None, None, None, "SIGINT", "close_spider", "engine.close", "crawler.stop"]
REFUSED = {"ForbiddenByRobots", "RobotsUnreachable"}


@dataclass
class Page:
    """One request of a crawl, and what is expected of it."""

    site: Site
    path: str
    is_forbidden: bool | None
    """Whether the page is forbidden; None if it is forbidden only until its site's robots.txt becomes reachable."""
    is_meddled_with: bool
    follows: list[str]
    """The marks of the requests that its callback makes."""


class Draw(random.Random):
    """One crawl: its settings, sites and requests, all from one seed."""

    def __new__(cls, seed: int, web: Web, folder: str) -> Draw:
        return super().__new__(cls, seed)  # type: ignore[call-arg]

    def __init__(self, seed: int, web: Web, folder: str) -> None:
        super().__init__(seed)
        self.web = web
        self.sites: dict[int, tuple[str, Site]] = {}
        self.pages: dict[str, Page] = {}
        self.settings: dict[str, Any] = {name: self.choice(values) for name, values in SETTINGS.items()}
        self.settings["REP_STORAGE"] = self.settings["REP_STORAGE"].format(folder=folder)
        # Before our middleware, or after it.
        self.settings["DOWNLOADER_MIDDLEWARES"] = {"chaos.Meddles": self.choice([50, 543])}
        self.settings |= {**ALWAYS, **REACTORS[self.choice(list(REACTORS))]}
        self.stop: str | None = self.choice(STOPS)
        self.runs = 1 if self.stop is None or self.random() < 0.3 else self.randint(2, 3)
        if self.random() < 1 / 3:
            scheduler = self.choice(list(FOREIGN))
            self.settings |= {"SCHEDULER": scheduler, **FOREIGN[scheduler]}
            self.runs = 1
        if self.runs > 1:
            self.settings["JOBDIR"] = f"{folder}/job"
        self.pauses = [(self.random(), self.random() / 2)] if self.random() < 0.2 else []
        kinds = self.choices(list(KINDS), [OFTEN.get(kind, 1) for kind in KINDS], k=self.randint(1, 12))
        # Sites in one slot would wait for each other. With memory for two sites, most requests to dead sites need a
        # fetch of their own, so the crawl would take minutes.
        remembers_all = self.settings["REP_MEMORY_OCTETS"] == 2**26
        if self.settings["DOWNLOADER"].endswith("SlotByOrigin") and remembers_all:
            kinds += ["dead"] * self.choice([0, 0, 0, 20])  # more than there are connections in a handler's pool
        sites = [self.site(kind) for kind in kinds]
        self.requests = [self.request(site) for site in sites for _ in range(self.randint(1, 16))]
        self.shuffle(self.requests)
        self.settings["CHAOS_ROBOTS"] = {
            str(port): MEDDLING[kind] for port, (kind, _) in self.sites.items() if kind in MEDDLING
        }

    def site(self, kind: str) -> Site:
        """A new one of that kind."""
        routes = {"/robots.txt": KINDS[kind][0](self), "/robots.txt?again": answer(RULES), "*": answer("x", delay=0.02)}
        site = self.web.site(routes, tls=kind == "https")
        if kind == "tls-failure":
            site = replace(site, scheme="https")
        self.sites[site.port] = kind, site
        return site

    def forbids(self, site: Site, path: str) -> bool | None:
        """Whether the site forbids the path; None if only until its robots.txt can be reached."""
        kind = self.sites[site.port][0]
        is_cautious = self.settings["REP_STATUS_POLICY"] == "cautious"
        meaning = "none" if kind == "restricted" and is_cautious else KINDS[kind][1]
        by_rules = path.startswith("/private")
        return {"all": False, "none": True, "rules": by_rules, "rules in the end": by_rules or None}[meaning]

    def request(self, site: Site, depth: int = 0) -> dict[str, Any]:
        """Draw a request, as JSON. Note in `pages` how it must end."""
        mark = str(len(self.pages))
        path = f"/{self.choice(['page', 'page', 'private'])}/{mark}"
        page = self.pages[mark] = Page(site, path, self.forbids(site, path), self.random() < 0.1, [])
        kind = self.choices(["plain", "slow", "fails", "resets", "hangs", "leads-on"], [8, 6, 1, 1, 0.05, 2])[0]
        target = f"/{self.choice(['page', 'private'])}/{mark}/led-to"
        if kind == "leads-on":
            page.is_forbidden = page.is_forbidden or self.forbids(site, target)
        routes = {
            "slow": answer("x" * 2_000, delay=self.random() / 5),
            "fails": answer(status=self.choice([404, 500, 503])),
            "resets": answer(kind="reset"),
            "hangs": answer(kind="hang"),
            "leads-on": redirect(target, status=self.choice([301, 302, 307])),
        }
        if kind in routes:
            site.change(path, routes[kind])
        follow = []
        if self.random() < 0.2 / (depth + 1):
            follow = [self.request(site, depth + 1) for _ in range(self.randint(1, 3))]
            page.follows = [details["meta"]["mark"] for details in follow]
        inline = [site.url(f"/{self.choice(['page', 'private'])}/inline")] if self.random() < 0.03 else []
        elsewhere = self.choice(list(self.sites.values()))[1].url(f"/{self.choice(['page', 'private'])}/inline")
        return {
            "url": site.url(path),
            "dont_filter": self.random() < 0.5,
            "priority": self.choice([0, 0, 0, 10, -10]),
            "meta": {
                "mark": mark,
                "meddle": self.choice(Meddles.WAYS) if page.is_meddled_with else None,
                "elsewhere": elsewhere,
                "wait": 0.02 * (self.random() < 0.1),
            },
            "cb_kwargs": {"follow": follow, "inline": inline},
        }

    def told(self) -> str:
        sites = [f"{site.origin} {kind}" for kind, site in self.sites.values()]
        requests = [f"{mark} {page.site.url(page.path)}" for mark, page in self.pages.items()]
        return json.dumps([self.settings, sites, requests, {"stop": self.stop, "runs": self.runs}], indent=1)


# From the benchmark's side.


class Crawl:
    """One crawl, in one process for each run of its job."""

    def __init__(self, seed: int, web: Web, folder: str) -> None:
        self.draw = Draw(seed, web, folder)
        self.runs: list[Ended] = []
        self.faults: list[str] = []

    def run(self, **settings: Any) -> None:
        draw = self.draw
        for run in range(draw.runs):
            is_last = run == draw.runs - 1
            stop = None if is_last and run > 0 else draw.stop
            with crawl_process(
                [] if run else draw.requests,
                {"LOG_LEVEL": "INFO", **draw.settings, **settings},
                command=[__file__, "--crawl"],
                pending=sorted(self.asked() - set(self.ends())) if run else [],
                pauses=draw.pauses,
                stop=stop,
                ready_after=draw.uniform(0.01, 1.5) if stop else None,
            ) as process:
                try:
                    self.runs.append(process.ended(MAX_SECONDS))
                except TimeoutError:
                    self.faults.append(f"run {run} did not end within {MAX_SECONDS} s")
                    process.interrupt()
                    self.runs.append(process.ended(MAX_SECONDS))
                    break
        for check in (self.servers, self.limits, self.all_ends, self.each_end, self.logs):
            self.faults.extend(check())

    def ends(self) -> dict[str, dict[str, Any]]:
        """The end of each request, by its mark."""
        return {end["mark"]: end for end in self.all()}

    def all(self) -> Iterator[dict[str, Any]]:
        """Each end, but for requests that a later run gets again."""
        return (end for ended in self.runs for end in ended.ends if not end["why"].endswith("is back in the queue"))

    def asked(self) -> set[str]:
        """The marks of the requests that the spider made."""
        ends, asked = self.ends(), {details["meta"]["mark"] for details in self.draw.requests}
        followed = sorted(asked)
        for mark in followed:
            if mark in ends and ends[mark]["end"].startswith("HTTP"):
                followed.extend(self.draw.pages[mark].follows)
        return set(followed)

    # What must hold.

    def servers(self) -> Iterator[str]:
        for kind, site in self.draw.sites.values():
            third_robots = [*(request["began"] for request in site.robots_requests), *[float("inf")] * 3][2]
            for page in pages_of(site):
                is_forbidden = self.draw.forbids(site, page["target"])
                if is_forbidden or (is_forbidden is None and page["began"] < third_robots):
                    yield f"a forbidden page was fetched: {site.url(page['target'])} ({kind})"

    def limits(self) -> Iterator[str]:
        settings, by_site = self.draw.settings, [pages_of(site) for _, site in self.draw.sites.values()]
        everything = [page for pages in by_site for page in pages]
        # What a callback downloads itself is limited by its download slot alone.
        scheduled = [page for page in everything if not page["target"].endswith("/inline")]
        if (most := most_at_once(scheduled)) > settings["CONCURRENT_REQUESTS"]:
            yield f"CONCURRENT_REQUESTS is {settings['CONCURRENT_REQUESTS']}, and {most} pages were under way at once"
        if "TWISTED_REACTOR" not in settings:
            return  # With asyncio, Scrapy 2.19 sends a slot's whole queue as soon as it may send one request.
        has_own_slots = settings["DOWNLOADER"].endswith("SlotByOrigin")
        for pages in by_site if has_own_slots else [everything]:
            if (most := most_at_once(pages)) > settings["CONCURRENT_REQUESTS_PER_DOMAIN"]:
                yield f"{most} pages of one download slot were under way at once"

    def all_ends(self) -> Iterator[str]:
        times = Counter(end["mark"] for end in self.all())
        for mark, number in times.items():
            if number > 1:
                yield f"request {self.told(mark)} ended {number} times"
        if self.draw.stop is None or self.draw.runs > 1:
            for mark in sorted(self.asked() - set(times), key=int):
                yield f"request {self.told(mark)} never ended"

    def each_end(self) -> Iterator[str]:
        for mark, end in self.ends().items():
            page, how = self.draw.pages[mark], end["end"]
            if page.is_meddled_with:
                continue
            if how == "IgnoreRequest":
                if self.draw.stop is None or self.draw.runs > 1:
                    yield f"request {self.told(mark)} was dropped: {end['why']}"
            elif page.is_forbidden and how not in REFUSED:
                yield f"request {self.told(mark)} was not refused: {how}"
            elif page.is_forbidden is False and how in REFUSED and not (how == "RobotsUnreachable" and self.was_busy()):
                yield f"request {self.told(mark)} was refused: {end['why']}"

    def was_busy(self) -> bool:
        """Whether the machine was too busy: a robots.txt that should come at once took half of its time limit, by the
        servers' clock."""
        healthy = [site for kind, site in self.draw.sites.values() if KINDS[kind][1] != "none"]
        robots = [request for site in healthy for request in site.robots_requests if request["ended"] is not None]
        return any(
            request["ended"] - request["began"] > self.draw.settings["REP_FETCH_TIMEOUT"] / 2 for request in robots
        )

    def told(self, mark: str) -> str:
        page = self.draw.pages[mark]
        return f"{mark}, {page.site.url(page.path)} ({self.draw.sites[page.site.port][0]})"

    def logs(self) -> Iterator[str]:
        for ended in self.runs:
            yield from ended.notes
            # A fault of Scrapy: a crawl that stops at once changes the set that `CrawlerRunner.stop` iterates over.
            if "RuntimeError: Set changed size during iteration" not in ended.log:
                yield from ended.complaints


def pages_of(site: Site) -> list[dict[str, Any]]:
    """Return the pages that the server answered. It does not know when a client gave up on a page that hangs."""
    return [
        request for request in site.requests if not request["target"].startswith("/robots.txt") and "status" in request
    ]


def crawls(seeds: Iterator[int], until: float, log: bool) -> Iterator[tuple[int, Crawl]]:
    """Yield one crawl after another, until the seeds or the time are used up."""
    web = Web()
    try:
        for seed in seeds:
            if time.monotonic() >= until:
                return
            with tempfile.TemporaryDirectory() as folder:
                crawl = Crawl(seed, web, folder)
                crawl.run(**({"LOG_LEVEL": "DEBUG"} if log else {}))
            yield seed, crawl
    finally:
        web.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crawls", type=int, metavar="N", help="number of crawls (20; with --seconds: any number)")
    parser.add_argument("--seconds", type=float, metavar="S", help="begin no crawl after so many seconds")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000_000), help="of the first crawl")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), metavar="N", help="crawls at once")
    parser.add_argument("--log", action="store_true", help="print what was drawn, and the log, of each crawl")
    options = parser.parse_args()
    number = options.crawls if options.crawls or options.seconds else 20
    print(f"seed {options.seed}", flush=True)
    seeds, lock = iter(range(options.seed, options.seed + number) if number else count(options.seed)), threading.Lock()
    until = time.monotonic() + (options.seconds or float("inf"))
    done: Counter[str] = Counter()

    def work(_: int) -> None:
        for seed, crawl in crawls(seeds, until, options.log):
            with lock:
                done["crawls"] += 1
                done["processes"] += len(crawl.runs)
                done["stopped"] += crawl.draw.stop is not None
                done["requests"] += len(crawl.asked())
                done["crawls with faults"] += bool(crawl.faults)
                if options.log:
                    print(crawl.draw.told(), *(ended.log for ended in crawl.runs), sep="\n")
                for fault in crawl.faults:
                    print(f"seed {seed}: {fault}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, range(options.jobs)))
    print(", ".join(f"{number} {what}" for what, number in done.items()))
    sys.exit(bool(done["crawls with faults"]))


if __name__ == "__main__":
    if sys.argv[1:] == ["--crawl"]:
        run_crawl(json.load(sys.stdin), Chaos)
    else:
        main()
