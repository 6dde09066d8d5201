"""How the cost of a crawl grows: function calls and live objects, beside Scrapy's own middleware.

    python tests/benchmarks/growth.py [AXIS ...] [--full | --small | --most N] [--functions] [--jobs N]
    python tests/benchmarks/growth.py --quarters PAGES

A download handler answers from memory, in virtual time (`tests/simulation/virtual_time.py`). So there are no sockets
and no pauses, and a count hardly depends on the machine. Each row is an axis: n is doubled four times (on the axis
CONCURRENT_REQUESTS six times), and the first n and the last are measured. Each crawl runs in a process of its own, with
both middlewares. The columns:

- `calls`: function calls (by cProfile) for each unit of n, at the largest n, ours and the built-in's
- `growth`: the exponent of all calls. 1.00 means: twice n, twice the calls. 2.00 would be quadratic
- `objects`: the most live objects for each unit that Python's garbage collector tracks
- `robots.txt`: requests for a robots.txt for each unit
- `bar`: a growth of at most the built-in's + 0.05, at most 1.10 times its calls and its objects; or what is over it.
  docs/benchmarks.md has the reasons. The exit code is 1 if a growth is over its bar

--functions lists the functions that make the difference, in calls for each unit at the largest n.

--quarters crawls 500 sites for so long, without counting calls, and prints the live objects and the memory of the
process in the middle of each quarter.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from cProfile import Profile
from dataclasses import asdict, dataclass, field
from functools import partial
from math import log2
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "simulation")]

from virtual_time import NEVER, VirtualLoop  # noqa: I001 - it replaces the clocks before Scrapy is imported
import asyncio

from benchmarks.measuring import head, row
from redis_server import RedisServer
from scrapy import Request, Spider, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadConnectionRefusedError
from scrapy.http import Response, TextResponse

from scrapy_rep.scrapy_internals.compat import DownloadTimeoutError
from scrapy_rep.settings import OCTETS_OF_ORIGIN

DOUBLED = 4
EIGHTHS = 8
LATENCY = 0.05  # virtual seconds
RULES = b"User-agent: *\nDisallow: /private/\nDisallow: /*?session=\nAllow: /private/about\n"
MOST_GROWTH, MOST_TIMES = 0.05, 1.10
MOST_FUNCTIONS = 60


@dataclass
class Plan:
    """One crawl, or several that share a folder."""

    sites: dict[str, int]
    """The kinds of robots.txt (`Answers`), and how many sites have each."""
    pages: int = 1
    way: str = "listed"
    """One page names all pages ("listed"), in turns of the sites; each page names the next of its site ("linked"); or
    a callback downloads all of them ("inline")."""
    settings: dict[str, Any] = field(default_factory=dict)
    ours: dict[str, Any] = field(default_factory=dict)
    """Settings of scrapy-rep alone. FOLDER stands for the folder."""
    path: str = "/page-{}.html"
    stop_after: int = 0
    """The first crawl is stopped after this many pages. Then it is resumed."""
    crawls: int = 1
    """Each crawl requests the same pages."""
    redis: bool = False
    """The storage is an empty Redis. The crawl is in real time, because Redis answers through a socket."""

    def units(self, what: str) -> int:
        """The number of sites, or of pages."""
        return sum(self.sites.values()) * (self.pages if what == "page" else 1)


@dataclass
class Axis:
    """`plan(n)` is the crawl. The largest n of the table is `most`, and with --full `full`."""

    plan: Callable[[int], Plan]
    most: int
    full: int
    per: str = "n"
    """What a unit is: one of n, a site, or a page."""
    doubled: int = DOUBLED
    most_growth: float = MOST_GROWTH
    """How much the growth may be larger than the built-in's."""


def memory_for(sites: int) -> dict[str, Any]:
    return {"REP_MEMORY_OCTETS": sites * OCTETS_OF_ORIGIN}


def beyond_memory(pages: int, way: str, n: int) -> Plan:
    return Plan({"rules": n}, pages, way, ours=memory_for(n * 5 // 6))


def folder(name: str) -> str:
    return f"FOLDER/{name}"


PLAIN = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
SQLITE = {"REP_STORAGE": "sqlite:///FOLDER/robots.db"}
FILES = {
    "report": {"REP_REPORT": folder("report.html")},
    "refusals file": {"REP_REFUSALS": folder("refusals.jsonl")},
    "evidence": {**SQLITE, "REP_EVIDENCE": True},
    "archive": {"REP_ARCHIVE": folder("archive.warc.gz")},
}
AXES = {
    "sites in the queue": Axis(lambda n: Plan({"rules": n}), 4_000, 64_000),
    "sites, ScrapyPriorityQueue": Axis(lambda n: Plan({"rules": n}, settings=PLAIN), 4_000, 32_000),
    **{
        f"sites, 1.2 times the memory, {pages} pages{what}": Axis(partial(beyond_memory, pages, way), 2_880, 46_080)
        for pages, what, way in ((2, "", "listed"), (4, "", "listed"), (4, ", found one by one", "linked"))
    },
    **{
        f"pages of each of {sites} sites": Axis(
            partial(lambda sites, n: Plan({"rules": sites}, n), sites), most, full, per="page"
        )
        for sites, most, full in ((5, 1_024, 4_096), (50, 128, 4_096), (500, 64, 512))
    },
    **{
        f"dead sites ({kind})": Axis(
            partial(lambda n, kind: Plan({"rules": n // 10, kind: n}, 2), kind=kind), 2_000, 16_000
        )
        for kind in ("hang", "unavailable", "refuse")
    },
    "requests that wait for one robots.txt": Axis(lambda n: Plan({"slow": 1}, n), 4_000, 128_000),
    "refused requests": Axis(lambda n: Plan({"rules": 1}, n, path="/private/{}.html"), 4_000, 128_000),
    "a JOBDIR, stopped and resumed": Axis(
        lambda n: Plan({"rules": n}, settings={"JOBDIR": folder("job")}, stop_after=n // 2), 2_000, 32_000
    ),
    "sqlite, two crawls": Axis(lambda n: Plan({"rules": n}, ours=SQLITE, crawls=2), 2_000, 32_000),
    "redis, two crawls": Axis(lambda n: Plan({"rules": n}, crawls=2, redis=True), 2_000, 32_000),
    **{
        name: Axis(partial(lambda n, ours: Plan({"rules": n}, ours=ours), ours=ours), 2_000, 32_000)
        for name, ours in FILES.items()
    },
    "redirects, three in a row": Axis(lambda n: Plan({"chain": n}), 2_000, 16_000),
    "pages of each of 100 ports of one host": Axis(lambda n: Plan({"port": 100}, n), 64, 320, per="page"),
    "CONCURRENT_REQUESTS": Axis(
        lambda n: Plan({"rules": max(1_024, 2 * n)}, settings={"CONCURRENT_REQUESTS": n}),
        1_024,
        4_096,
        per="site",
        doubled=6,
        most_growth=log2(1.05) / 6,  # a site costs at the last n at most 1.05 times what it costs at the first
    ),
    "sites, no CONCURRENT_REQUESTS": Axis(
        lambda n: Plan({"rules": n}, settings={"CONCURRENT_REQUESTS": 0}), 4_000, 16_000
    ),
    "download_async to many hosts": Axis(lambda n: Plan({"rules": n}, way="inline"), 2_000, 16_000),
}


class Answers(BaseDownloadHandler):
    """Answers by the kind of the host, which is the first word of its name."""

    async def download_request(self, request: Request) -> Response:
        host, _, path = request.url.partition("://")[2].partition("/")
        kind, timeout = host.partition("-")[0], request.meta["download_timeout"]
        seconds, status, headers, body = LATENCY, 200, {}, RULES
        if path != "robots.txt":
            body = b"<html><title>A page</title><p>Text.</p></html>"
        elif kind in {"hang", "slow"}:
            seconds = NEVER if kind == "hang" else 20.0
        elif kind == "unavailable":
            status = 503
        elif kind.startswith("chain") and kind != "chainxxx":
            status, headers = 302, {"Location": request.url.replace("chain", "chainx")}
        await asyncio.sleep(min(seconds, timeout))
        if seconds > timeout:
            raise DownloadTimeoutError
        if kind == "refuse" and path == "robots.txt":
            raise DownloadConnectionRefusedError
        return TextResponse(request.url, status, headers, body, request=request)


class Planned(Spider):
    """Requests the pages of a plan, and looks at Python's objects after each eighth of them."""

    name = "planned"
    plan: Plan
    ended = 0

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.objects: list[int] = []
        self.octets: list[int] = []

    def url(self, kind: str, site: int, page: int) -> str:
        host = f"port-host.example:{1_000 + site}" if kind == "port" else f"{kind}-{site}.example"
        return f"http://{host}{self.plan.path.format(page)}"

    def request(self, kind: str, site: int, page: int) -> Request:
        at = {"at": (kind, site, page)}
        return Request(self.url(kind, site, page), self.parse, errback=self.count, cb_kwargs=at)

    def requests(self, page: int) -> Iterator[Request]:
        for kind, number in self.plan.sites.items():
            for site in range(number):
                yield self.request(kind, site, page)

    async def start(self) -> AsyncIterator[Request]:
        yield Request("data:,", self.parse_list)

    async def parse_list(self, _response: Response) -> AsyncIterator[Request]:
        if self.plan.way == "inline":
            download = self.crawler.engine.download_async
            each = [download(request) for request in self.requests(0)]
            for result in await asyncio.gather(*each, return_exceptions=True):
                self.count(result)
            return
        for page in range(self.plan.pages if self.plan.way == "listed" else 1):
            for request in self.requests(page):
                yield request

    def parse(self, response: Response, at: tuple[str, int, int]) -> Iterator[Request]:
        self.count(response)
        kind, site, page = at
        if self.plan.way == "linked" and page + 1 < self.plan.pages:
            yield self.request(kind, site, page + 1)

    def count(self, _result: object) -> None:
        if self.ended % max(1, self.plan.units("page") // EIGHTHS) == 0:
            gc.collect()
            self.objects.append(len(gc.get_objects()))
            self.octets.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        self.ended += 1
        if self.ended == self.plan.stop_after:
            self.stop = asyncio.ensure_future(self.crawler.stop_async())


async def crawl(plan: Plan, settings: dict[str, Any], profile: Profile | None) -> tuple[list[int], list[int], int]:
    """Return how many objects the crawl had more than at its start, the octets of memory, and the requests for a
    robots.txt."""
    crawler = Crawler(Planned, settings)
    before = []

    def opened() -> None:
        gc.collect()
        before.append(len(gc.get_objects()))
        if profile is not None:
            profile.enable()

    crawler.signals.connect(opened, signals.spider_opened)
    await crawler.crawl_async(plan=plan)
    if profile is not None:
        profile.disable()
    spider = crawler.spider
    assert isinstance(spider, Planned)
    assert crawler.stats is not None
    objects = [number - before[0] for number in spider.objects]
    return objects, spider.octets, crawler.stats.get_value("robotstxt/request_count", 0)


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Run the crawls of a plan in this process, and return their figures."""
    gc.set_threshold(100_000, 20)  # the same counts in half the time
    plan, profile = Plan(**task["plan"]), Profile() if task["counted"] else None
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ours = {"ADDONS": {"scrapy_rep.Addon": 500}, **plan.ours}
        if plan.redis:
            ours["REP_STORAGE"] = stack.enter_context(RedisServer()).url
        settings: dict[str, Any] = {
            "TWISTED_REACTOR_ENABLED": False,
            "DOWNLOAD_HANDLERS": {"http": Answers, "https": Answers},
            "LOG_ENABLED": False,
            "RETRY_ENABLED": False,
            "USER_AGENT": "GrowthBot/1.0",
            "REP_REPORT": None,
            **plan.settings,
            **(ours if task["ours"] else {"ROBOTSTXT_OBEY": True}),
        }
        settings |= {
            name: value.replace("FOLDER", folder) for name, value in settings.items() if isinstance(value, str)
        }
        loop = asyncio.new_event_loop() if plan.redis else VirtualLoop(NEVER, [])
        asyncio.set_event_loop(loop)
        found = []
        for _ in range(2 if plan.stop_after else plan.crawls):
            found.append(loop.run_until_complete(crawl(plan, settings, profile)))
            plan.stop_after = 0
        octets = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    functions: Counter[str] = Counter()
    for entry in profile.getstats() if profile is not None else ():
        functions[name_of(entry.code)] += entry.callcount
    return {
        "calls": functions.total(),
        "functions": functions if task["functions"] else {},
        "objects": max(max(objects) for objects, _, _ in found),
        "at eighths": found[-1][:2],
        "robots": sum(number for _, _, number in found),
        "octets": octets,
    }


def name_of(code: Any) -> str:
    """The name of a profiled function: its file and its name, or Python's text for a built-in function."""
    if isinstance(code, str):
        return code.partition(" at 0x")[0]
    return f"{'/'.join(Path(code.co_filename).parts[-2:])}: {getattr(code, 'co_qualname', code.co_name)}"


def measure(plan: Plan, *, ours: bool, counted: bool = True, functions: bool = False) -> dict[str, Any]:
    """Run the crawls of a plan in a process of their own, and return their figures."""
    task = json.dumps({"plan": asdict(plan), "ours": ours, "counted": counted, "functions": functions})
    ran = subprocess.run([sys.executable, __file__, "--run"], input=task, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def over_bar(axis: Axis, growth: list[float], calls: list[float], objects: list[float]) -> list[str]:
    """What is over the bar."""
    over = {
        "growth": growth[0] > growth[1] + axis.most_growth,
        "calls": calls[0] > calls[1] * MOST_TIMES,
        "objects": objects[0] > objects[1] * MOST_TIMES,
    }
    return [name for name, is_over in over.items() if is_over]


def measure_axis(axis: Axis, most: int, jobs: int, *, functions: bool) -> tuple[list[str], list[str], list[str]]:
    """Return the cells of the axis' row, what is over the bar, and the functions that make the difference."""
    sizes = [most >> axis.doubled, most]
    plans = [axis.plan(size) for size in sizes]
    with ThreadPoolExecutor(jobs) as pool:
        found = [
            [pool.submit(measure, plan, ours=ours, functions=functions) for plan in plans] for ours in (True, False)
        ]
        (ours, theirs) = ([each.result() for each in of_one] for of_one in found)
    units = [size if axis.per == "n" else plan.units(axis.per) for plan, size in zip(plans, sizes, strict=True)]
    both = ours, theirs
    calls, objects, robots = ([of[-1][what] / units[-1] for of in both] for what in ("calls", "objects", "robots"))
    growth = [1 + log2(of[-1]["calls"] / units[-1] / of[0]["calls"] * units[0]) / axis.doubled for of in both]
    octets = f"{ours[-1]['octets'] / units[-1]:,.0f}" if ours[-1]["octets"] else ""
    cells = [
        f"{sizes[0]:,} to {most:,}",
        *(f"{number:,.0f}" for number in calls),
        f"{calls[0] / calls[1]:.2f}",
        *(f"{number:.3f}" for number in growth),
        *(f"{number:.1f}" for number in objects),
        *(f"{number:.2f}" for number in robots),
        octets,
    ]
    return cells, over_bar(axis, growth, calls, objects), differences(ours[-1], theirs[-1], units[-1])


def differences(ours: dict[str, Any], theirs: dict[str, Any], units: int) -> list[str]:
    """The functions that one of the crawls calls more often for each unit, the largest difference first."""
    more = Counter(ours["functions"])
    more.subtract(theirs["functions"])
    listed = sorted(more.items(), key=lambda pair: -abs(pair[1]))
    return [f"{number / units:+10.2f}  {name}" for name, number in listed[:MOST_FUNCTIONS] if number]


def print_quarters(pages: int) -> None:
    plan = Plan({"rules": 500}, pages // 500, "linked")
    head("middleware", "", *(f"quarter {number}" for number in range(1, 5)))
    for ours in (True, False):
        objects, octets = (at[1::2] for at in measure(plan, ours=ours, counted=False)["at eighths"])
        row("ours" if ours else "built-in", "objects", *(f"{number:,}" for number in objects[:4]))
        row("", "MiB", *(f"{number / 2**20:.1f}" for number in octets[:4]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"some of: {'; '.join(AXES)}")
    parser.add_argument("--full", action="store_true", help="up to 128,000 units: takes hours")
    parser.add_argument("--small", action="store_true", help="a quarter of the usual sizes")
    parser.add_argument("--most", type=int, help="the largest n")
    parser.add_argument("--functions", action="store_true", help="list the functions that make the difference")
    parser.add_argument(
        "--quarters", type=int, metavar="PAGES", help="objects and memory over a crawl, by its quarters"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        sys.stdout.write(json.dumps(run(json.load(sys.stdin))) + "\n")
        return
    if options.quarters:
        print_quarters(options.quarters)
        return
    both = (f"{what} {who}" for what in ("growth", "objects", "robots.txt") for who in ("ours", "built-in"))
    head("axis", "n", "calls ours", "built-in", "ratio", *both, "octets on disk", "bar")
    is_kept = True
    for name in options.axes or AXES:
        axis = AXES[name]
        most = options.most or (axis.full if options.full else axis.most // 4 if options.small else axis.most)
        cells, over, functions = measure_axis(axis, most, options.jobs, functions=options.functions)
        is_kept &= "growth" not in over
        row(name, *cells, f"over: {', '.join(over)}" if over else "kept")
        print(*functions, sep="\n", end="\n" if functions else "", flush=True)
    sys.exit(not is_kept)


if __name__ == "__main__":
    main()
