"""The cost of the scheduler's queue while requests wait for a robots.txt, with our middleware and the built-in one.

    python tests/benchmarks/queues.py [PART ...] [--kills N]

- `flood`: one callback requests one page of each of 20,000 sites. This measures the crawl until 1,000 pages have been
  fetched.
- `jobdir`: a callback requests five pages of each of 3,000 sites, with a JOBDIR. This measures the whole crawl.
- `kills`: one callback makes 2,000 requests, with a JOBDIR, to 20 sites whose robots.txt takes two seconds and to 5
  fast sites. The crawl is stopped, resumed, and killed twice while requests wait. This counts the requests that are
  lost.
- `lazy`: a `start` that waits while `engine.needs_backout()` is true (Scrapy's documentation) requests one page of each
  of 300 sites. The servers answer after 1 or 2 seconds. This counts the requests that `start` is ahead of the pages.

Each crawl runs in a process of its own, with default settings except for the log and the telnet console. `kills`
replaces the DOWNLOADER, so that each site has a download slot of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "protocol")]

from benchmarks.measuring import head, row
from benchmarks.numbered_origins import NumberedOrigins
from crawling import ADDON, BUILTIN
from job_folder import kept_urls, queued_urls
from scrapy import Request, Spider, signals
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from web import RULES, Web, answer

WHO: dict[str, dict[str, Any]] = {"scrapy-rep": ADDON, "built-in": BUILTIN}
Process = subprocess.Popen[str]
MAX_SECONDS = 600  # for one crawl
SITES, ENOUGH = 20_000, 1_000
JOB_SITES, JOB_PAGES = 3_000, 5
STALL = 0.2  # seconds
SLOW_SITES, FAST_SITES, REQUESTS = 20, 5, 2_000
LAZY_SITES, LATENCIES = 300, (1.0, 2.0)


# In the crawl's process.


class AsksAtOnce(Spider):
    """Asks for all pages in one callback, and measures until there are enough of them."""

    name = "asks-at-once"

    def __init__(self, task: dict[str, Any], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.task = task
        self.pages = 0
        self.asked = self.ahead = 0
        self.ticked = 0.0
        self.stalls: list[float] = []
        self.most_files = 0

    async def start(self) -> Any:
        if self.task["settings"].get("LAZY"):
            for url in self.task["urls"]:
                if self.crawler.engine.needs_backout():
                    await self.crawler.signals.wait_for(signals.scheduler_empty)
                self.asked += 1
                self.ahead = max(self.ahead, self.asked - self.pages)
                yield Request(url)
        elif self.task["urls"]:
            yield Request("data:,", callback=self.ask)

    def ask(self, _response: Response) -> Iterator[Request]:
        self.ticked = time.monotonic()
        call_later(0, self.tick)
        for url in self.task["urls"]:
            yield Request(url)

    def tick(self) -> None:
        now = time.monotonic()
        self.stalls.append(now - self.ticked)
        self.ticked = now
        self.most_files = max(self.most_files, len(os.listdir("/proc/self/fd")))
        call_later(0.02, self.tick)

    def parse(self, response: Response, **_: Any) -> None:
        self.pages += 1
        if self.task["fetched_file"]:
            with Path(self.task["fetched_file"]).open("a") as file:
                file.write(response.url + "\n")
        if self.pages == self.task["enough"]:
            self.tell()
            os._exit(0)

    def closed(self, _reason: str) -> None:
        self.tell()

    def tell(self) -> None:
        peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
        measured = {
            "cpu": time.process_time(),
            "peak": peak,
            "stalls": sum(stall > STALL for stall in self.stalls),
            "longest": max(self.stalls, default=0.0),
            "files": self.most_files,
            "pages": self.pages,
            "ahead": self.ahead,
        }
        sys.stdout.write(json.dumps(measured) + "\n")
        sys.stdout.flush()


def crawl_here(task: dict[str, Any]) -> None:
    settings = {"LOG_LEVEL": "CRITICAL", "TELNETCONSOLE_ENABLED": False, **WHO[task["who"]], **task["settings"]}
    process = CrawlerProcess(settings)
    process.crawl(AsksAtOnce, task=task)
    process.start()


# From the benchmark's side.


def started(who: str, urls: list[str], enough: int = -1, fetched_file: str = "", **settings: Any) -> Process:
    task = {"who": who, "urls": urls, "enough": enough, "fetched_file": fetched_file, "settings": settings}
    command = [sys.executable, __file__, "--crawl"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(task))
    process.stdin.close()
    process.stdin = None
    return process


def measured(process: Process) -> dict[str, Any]:
    output, _ = process.communicate(timeout=MAX_SECONDS)
    return dict(json.loads(output.splitlines()[-1]))


def flood(_: int) -> None:
    print(f"\n{SITES:,} sites of one callback, until the {ENOUGH:,}th page.\n")
    head("", "CPU s", f"stalls over {STALL} s", "longest", "peak MiB")
    with NumberedOrigins() as origins:
        urls = [origins.url(origins.pattern(), number) for number in range(SITES)]
        for who in WHO:
            found = measured(started(who, urls, enough=ENOUGH))
            row(who, f"{found['cpu']:.1f}", found["stalls"], f"{found['longest']:.2f}", f"{found['peak']:.0f}")


def jobdir(_: int) -> None:
    print(f"\n{JOB_SITES:,} sites, {JOB_PAGES} pages each, with a JOBDIR.\n")
    head("", "CPU s", "most open files", "longest stall", "peak MiB", "pages")
    with NumberedOrigins() as origins:
        patterns = [origins.pattern(path=f"/{n}.html") for n in range(JOB_PAGES)]
        urls = [origins.url(pattern, number) for pattern in patterns for number in range(JOB_SITES)]
        for who in WHO:
            with tempfile.TemporaryDirectory() as folder:
                found = measured(started(who, urls, JOBDIR=folder))
            cells = [f"{found['cpu']:.1f}", found["files"], f"{found['longest']:.2f}", f"{found['peak']:.0f}"]
            row(who, *cells, found["pages"])


def kills(times: int) -> None:
    print(f"\n{REQUESTS:,} requests with a JOBDIR: stopped, resumed, killed in mid-wait. Requests lost.\n")
    head("", *(f"kill {number + 1}" for number in range(times)), "most")
    web = Web()
    try:
        for who in WHO:
            lost = [lost_by_a_kill(web, who, after=number / 10) for number in range(times)]
            row(who, *lost, max(lost))
    finally:
        web.close()


def lost_by_a_kill(web: Web, who: str, after: float) -> int:
    """Return how many requests are lost. `after`: seconds between the resumed crawl's first page and the kill."""
    delays = [2.0] * SLOW_SITES + [0.0] * FAST_SITES
    sites = [web.site({"/robots.txt": answer(RULES, delay=delay), "*": answer("page")}) for delay in delays]
    urls = [sites[number % len(sites)].url(f"/{number}") for number in range(REQUESTS)]
    with tempfile.TemporaryDirectory() as folder:
        fetched_file = Path(folder, "fetched")
        settings: dict[str, Any] = {
            "JOBDIR": f"{folder}/job",
            "DOWNLOADER": "crawling.SlotByOrigin",
            "fetched_file": str(fetched_file),
        }
        stopped = started(who, urls, **settings)
        while not fetched_file.exists():
            time.sleep(0.05)
        stopped.send_signal(signal.SIGINT)
        stopped.communicate(timeout=MAX_SECONDS)
        size = fetched_file.stat().st_size
        killed = started(who, [], **settings)
        while size == fetched_file.stat().st_size:
            time.sleep(0.05)
        time.sleep(after)
        killed.kill()
        killed.communicate()
        # After the first kill, Scrapy's queue on disk is damaged. Requests still in it are not counted, because any
        # middleware loses them.
        before = {*fetched_file.read_text().split(), *queued_urls(Path(folder, "job"))}
        again = started(who, [], **settings)
        time.sleep(1.2)
        again.kill()
        again.communicate()
        done = fetched_file.read_text().split()
        return len(set(urls).difference(before, done, kept_urls(Path(folder, "job"))))


def lazy(_: int) -> None:
    print(f"\n{LAZY_SITES} sites of a lazy start: how many requests it is ahead of the pages, at most.\n")
    head("", *(f"answers after {latency:g} s" for latency in LATENCIES))
    found: dict[str, list[str]] = {who: [] for who in WHO}
    for latency in LATENCIES:
        with NumberedOrigins(latency=latency) as origins:
            urls = [origins.url(origins.pattern(), number) for number in range(LAZY_SITES)]
            for who, cells in found.items():
                cells.append(str(measured(started(who, urls, enough=LAZY_SITES, LAZY=True))["ahead"]))
    for who, cells in found.items():
        row(who, *cells)


PARTS: dict[str, Callable[[int], None]] = {"flood": flood, "jobdir": jobdir, "kills": kills, "lazy": lazy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all of them if none is named")
    parser.add_argument("--kills", type=int, default=5, metavar="N")
    options = parser.parse_args()
    for part in options.parts or PARTS:
        PARTS[part](options.kills)


if __name__ == "__main__":
    if sys.argv[1:] == ["--crawl"]:
        crawl_here(json.load(sys.stdin))
    else:
        main()
