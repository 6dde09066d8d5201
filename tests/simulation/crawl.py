"""Run the crawls of one case in virtual time, and record what happens.

The spider does what the case says. Spies see where a request is: in Scrapy's queue ("queued"), taken out of the queue
("taken"), in the downloader ("entered"), past its middlewares ("allowed").
"""

from __future__ import annotations

import asyncio
import logging
import random
import tempfile
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from network import Exchange, Handler, Network
from oracle import Key, origin_of
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.pqueues import ScrapyPriorityQueue
from store import Shelf, SimStorage
from virtual_time import START, Member, NeverEndsError, VirtualLoop, seconds

from scrapy_rep.waiting import waiting_log

NUMBER = "simulated"  # the meta key of a request's number in its case
FETCH = "simulated_fetch"  # the meta key of the fetch that a request for a robots.txt belongs to


@dataclass
class TrackedRequest:
    """One request in one run, with the last time it reached each place, in seconds. None: never."""

    run: str
    number: int
    plan: dict[str, Any]
    asked: float | None = None
    queued: float | None = None
    taken: float | None = None
    entered: float | None = None
    allowed: float | None = None
    ended: float | None = None
    ends: int = 0
    outcome: str = ""

    def __post_init__(self) -> None:
        self.key: Key = self.run, origin_of(self.plan["url"])

    def __str__(self) -> str:
        return f"request {self.number} of {self.run}, {self.plan['url']}"


class Simulation:
    """One case, and what happened in it."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.network = Network(case["origins"])
        self.shelf = Shelf(case["store"]) if case["store"] else None
        self.events: list[tuple[float, str, str, Any, str]] = []
        """(seconds, run, kind of event, request number or None, details)"""
        self.requests: dict[tuple[str, int], TrackedRequest] = {}
        self.errors: list[str] = []
        """Errors in the log, and why the simulation could not end."""
        self.ended_at = 0.0

    def of(self, *whats: str) -> Iterator[tuple[float, str, str, Any, str]]:
        return (event for event in self.events if event[2] in whats)

    async def live(self, plan: dict[str, Any], loop: VirtualLoop, folder: str) -> None:
        """All runs of one crawler. A run with a JOBDIR is closed or killed, and the next run resumes it."""
        for number, stop in enumerate(plan["runs"]):
            await asyncio.sleep(max(plan["begin"] - seconds(), 0.1))
            await Run(self, plan, number).crawl(stop, loop, folder)


class Run:
    """One run of one crawler."""

    def __init__(self, simulation: Simulation, plan: dict[str, Any], number: int) -> None:
        self.simulation = simulation
        self.plan = plan
        self.crawler_name: str = plan["name"]
        self.name = f"{plan['name']}{number}"
        self.plans = {number: each for number, each in enumerate(plan["requests"]) if each is not None}
        self.fetches: dict[Any, int] = {}
        """The task of each fetch of a robots.txt, and its number."""

    def note(self, what: str, number: Any = None, details: str = "") -> None:
        self.simulation.events.append((seconds(), self.name, what, number, details))
        if number is not None:
            if (self.name, number) not in self.simulation.requests:
                self.simulation.requests[self.name, number] = TrackedRequest(self.name, number, self.plans[number])
            request = self.simulation.requests[self.name, number]
            setattr(request, what, seconds())
            if what == "queued":  # it is in the queue, perhaps again
                request.taken = None
            elif what == "ended":
                request.ends, request.outcome = request.ends + 1, details

    def exchange_of(self, request: Request) -> Exchange:
        """The exchange that begins now."""
        number, agent = request.meta.get(NUMBER), (request.headers.get("User-Agent") or b"").decode()
        mark = str(request.meta[FETCH] if number is None else number)
        return Exchange(
            self.name, request.url, agent, mark, number is None, request.meta["download_timeout"], seconds()
        )

    async def crawl(self, stop: list[Any] | None, loop: VirtualLoop, folder: str) -> None:
        """Crawl until the end, or until `stop`: ["kill", seconds] or ["close", seconds] of this run."""
        member = Member(self.plan["clock"])
        settings: dict[str, Any] = {
            "TWISTED_REACTOR_ENABLED": False,
            "DOWNLOAD_HANDLERS": {"http": Handler, "https": Handler},
            "ADDONS": {"scrapy_rep.Addon": 500},
            "REP_STORAGES": {"sim": SimStorage},
            "REP_STORAGE": "sim:" if self.simulation.shelf is not None else None,
            "ROBOTSTXT_OBEY": True,
            "USER_AGENT": "SimBot/1.0",
            "RETRY_ENABLED": False,
            "REDIRECT_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
            "WARN_ON_GENERATOR_RETURN_VALUE": False,  # reads the spider's source code for each response
            "EXTENSIONS": {f"scrapy.extensions.{name}": None for name in ("logstats.LogStats", "memusage.MemoryUsage")},
            "JOBDIR": f"{folder}/{self.crawler_name}" if self.plan.get("jobdir") else None,
            **self.simulation.case["settings"],
        }
        crawler = member.context.run(Crawler, SimSpider, settings)
        crawling = member.context.run(lambda: asyncio.ensure_future(crawler.crawl_async(self)))
        await asyncio.wait([crawling], timeout=stop[1] if stop else None)
        if not crawling.done() and stop is not None and stop[0] == "kill":
            self.note("killed")
            loop.kill(member)
        else:
            if not crawling.done():
                self.note("closing")
                member.context.run(lambda: asyncio.ensure_future(crawler.stop_async()))
            await asyncio.wait([crawling])
            await asyncio.sleep(0)
            self.note_what_is_left(loop.timers_of(member))

    def note_what_is_left(self, timers: list[Any]) -> None:
        for timer in timers:
            self.note("left", None, str(timer)[:200])
        shelf = self.simulation.shelf
        if shelf is not None and not shelf.plan["faults"]:
            for origin, (_, until, crawler_name) in shelf.leases.items():
                if crawler_name == self.crawler_name and seconds() < until:
                    self.note("left", None, f"the lease of {origin}")


class SimSpider(Spider):
    name = "sim"
    run: Run

    @classmethod
    def from_crawler(cls, crawler: Crawler, run: Run, *args: Any, **kwargs: Any) -> SimSpider:
        spider = super().from_crawler(crawler, run=run)
        crawler.signals.connect(spider.note_idle, signals.spider_idle)
        return spider

    def note_idle(self) -> None:
        self.run.note("idle")

    async def start(self) -> AsyncIterator[Request]:
        for at, number in sorted((each["at"], n) for n, each in self.run.plans.items() if "after" not in each):
            await asyncio.sleep(max(at - seconds(), 0.0))
            while self.run.plan.get("lazy") and self.crawler.engine.needs_backout():
                await self.crawler.signals.wait_for(signals.scheduler_empty)  # Scrapy's documentation has this recipe
            yield self.request(number)

    def request(self, number: int) -> Request:
        plan = self.run.plans[number]
        self.run.note("asked", number)
        headers = {"User-Agent": plan["agent"]} if plan.get("agent") else None
        meta, priority = {NUMBER: number}, plan.get("priority", 0)
        return Request(plan["url"], self.parse, headers=headers, meta=meta, priority=priority, errback=self.failed)

    async def parse(self, response: Response) -> AsyncIterator[Request]:
        number = response.meta[NUMBER]
        self.run.note("ended", number, "page")
        for each, plan in self.run.plans.items():
            if plan.get("after") == number and plan.get("inline"):
                await self.download(self.request(each))
            elif plan.get("after") == number:
                yield self.request(each)

    async def download(self, request: Request) -> None:
        """Download it past the scheduler, as media pipelines do."""
        end = "page"
        try:
            await self.crawler.engine.download_async(request)
        except Exception as exc:  # noqa: BLE001 - whatever it is, that is how the request ended
            end = type(exc).__name__
        self.run.note("ended", request.meta[NUMBER], end)

    def failed(self, failure: Any) -> None:
        self.run.note("ended", failure.request.meta[NUMBER], type(failure.value).__name__)


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a method. The wrapper gets the original method, and then the arguments.

    The package checks whether a scheduler's method is Scrapy's own, so a subclass would not do.
    """
    right = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: wrapper(right, *args, **kwargs))


def spied_next_request(next_request: Callable[..., Any], scheduler: Any) -> Any:
    request = next_request(scheduler)
    if request is not None:
        scheduler.spider.run.note("taken", request.meta[NUMBER])
    return request


def noted(what: str, method: Callable[..., Any], component: Any, request: Request) -> Any:
    if NUMBER in request.meta:
        component.crawler.spider.run.note(what, request.meta[NUMBER])
    return method(component, request)


async def spied_download_async(download_async: Callable[..., Any], engine: Any, request: Request) -> Any:
    """Mark a request for a robots.txt with its fetch: all requests of one fetch are made by the same task."""
    if NUMBER not in request.meta:
        fetches = engine.spider.run.fetches
        request.meta.setdefault(FETCH, fetches.setdefault(asyncio.current_task(), len(fetches)))
    return await download_async(engine, request)


wrap(Scheduler, "next_request", spied_next_request)
wrap(ScrapyPriorityQueue, "push", partial(noted, "queued"))
wrap(Downloader, "fetch", partial(noted, "entered"))
wrap(Downloader, "_enqueue_request", partial(noted, "allowed"))  # the request has passed all downloader middlewares
wrap(ExecutionEngine, "download_async", spied_download_async)


class ErrorLog(logging.Handler):
    """Collects errors in the log. After a kill, only those of this package: Scrapy's queue on disk may be broken."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(logging.ERROR)
        self.simulation = simulation

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)] if error is not None else []
        is_ours = any("scrapy_rep" in file for file in files)
        is_queue = any("squeues" in file or "queuelib" in file for file in files)
        if (is_ours and not is_queue) or not any(self.simulation.of("killed")):
            self.simulation.errors.append(f"at {seconds():.3f} the log has: {record.getMessage()[:1000]} {error!r}")


def simulate(case: dict[str, Any]) -> Simulation:
    """Run the case."""
    random.seed(case["seed"])
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = case["heartbeat"]
    Downloader._SLOT_GC_INTERVAL = max(60.0, case["heartbeat"])
    waiting_log.EVERY = max(15.0, case["heartbeat"])
    simulation, loop = Simulation(case), VirtualLoop(case["max_seconds"])
    asyncio.set_event_loop(loop)
    logging.getLogger().addHandler(ErrorLog(simulation))

    async def all_crawlers() -> None:
        await asyncio.gather(*(simulation.live(plan, loop, folder) for plan in case["crawlers"]))

    with tempfile.TemporaryDirectory() as folder:
        try:
            loop.run_until_complete(all_crawlers())
        except NeverEndsError as exc:
            has_jobdir = any(plan.get("jobdir") for plan in case["crawlers"])
            if not (has_jobdir and any(simulation.of("killed"))):  # else Scrapy's queue may be broken
                simulation.errors.append(str(exc))
    simulation.ended_at = loop.now - START
    return simulation
