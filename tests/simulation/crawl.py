"""Run the crawls of one case in virtual time, and record what happens.

The spider does what the case says. Spies see where a request is: in Scrapy's queue ("queued"), taken out of the queue
("taken"), in the downloader ("entered"), past its middlewares ("allowed").
"""

from __future__ import annotations

import asyncio
import logging
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

from network import FETCH, NUMBER, Exchange, Handler, Server, Threads, origin_of
from oracle import Key
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.http import Response
from scrapy.pqueues import ScrapyPriorityQueue
from store import Shelf, SimStorage
from virtual_time import NEVER, START, Member, NeverEndsError, VirtualLoop, seconds

from scrapy_rep.fetching.driver import Driver
from scrapy_rep.waiting import wait_stats

FETCH_NUMBERS = count(1)
FETCH_NUMBER: ContextVar[int] = ContextVar("FETCH_NUMBER")


@dataclass(eq=False)
class TrackedRequest:
    """One request in one run, with the last time it reached each place, in seconds."""

    run: str
    number: int
    plan: dict[str, Any]
    asked: float = NEVER
    queued: float = NEVER
    taken: float = NEVER
    entered: float = NEVER
    allowed: float = NEVER
    ended: float = NEVER
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
        self.crawlers = {plan["name"]: plan for plan in case["crawlers"]}
        self.loop = VirtualLoop(case["max_seconds"], case.get("stops", []))
        self.servers = {origin: Server(origin, plan) for origin, plan in case["origins"].items()}
        self.exchanges: list[Exchange] = []
        self.threads = Threads()
        vars(self.loop)["_default_executor"] = SimpleNamespace(_work_queue=self.threads)
        self.shelf = Shelf(case["store"]) if case["store"] else None
        self.events: list[tuple[float, str, str, Any, str]] = []
        """(seconds, run, kind of event, request number or None, details)"""
        self.requests: dict[tuple[str, int], TrackedRequest] = {}
        self.errors: list[str] = []
        """Errors in the log, and why the simulation could not end."""
        self.ended_at = 0.0

    def note(self, run: str, what: str, number: Any = None, details: str = "") -> None:
        self.events.append((seconds(), run, what, number, details))
        if number is not None:
            new = TrackedRequest(run, number, self.crawlers[run[0]]["requests"][number])
            request = self.requests.setdefault((run, number), new)
            setattr(request, what, seconds())
            if what == "queued":  # it is in the queue, perhaps again
                request.taken = NEVER
            elif what == "ended":
                request.ends, request.outcome = request.ends + 1, details

    def note_error(self, record: logging.LogRecord) -> None:
        """Note an error in the log. After a kill, note only errors of this package, because Scrapy's
        queue on disk may be broken. That nothing was crawled is no error of the crawl."""
        if record.getMessage().startswith("Nothing was crawled"):
            return
        text = logging.Formatter().format(record)  # with the traceback
        is_ours = "scrapy_rep" in text and not any(module in text for module in ("squeues", "queuelib"))
        if is_ours or not any(self.of("killed")):
            self.errors.append(f"at {seconds():.3f} the log has: {text[-1000:]}")

    def idle(self, spider: Any) -> None:
        """The crawl has nothing to do."""
        spider.note("idle")
        spider.feed()

    def of(self, *whats: str) -> Iterator[tuple[float, str, str, Any, str]]:
        return (event for event in self.events if event[2] in whats)

    async def run(self, folder: str) -> None:
        await asyncio.gather(*(self.run_crawler(name, folder) for name in self.crawlers))

    async def run_crawler(self, name: str, folder: str) -> None:
        """Run one crawler to its end. If it has a JOBDIR, each of its runs resumes the one before."""
        for number, stop in enumerate(self.crawlers[name]["runs"]):
            await asyncio.sleep(max(self.crawlers[name]["begin"] - seconds(), 0.1))
            await self.crawl(f"{name}{number}", stop, f"{folder}/{name}")

    async def crawl(self, run: str, stop: list[Any] | None, folder: str) -> None:
        """Crawl until the end, or until `stop`: ["kill", seconds] or ["close", seconds] of this run."""
        plan = self.crawlers[run[0]]
        member = Member(plan["clock"])
        settings: dict[str, Any] = {
            "TWISTED_REACTOR_ENABLED": False,
            "DOWNLOAD_HANDLERS": {"http": Handler, "https": Handler},
            "ADDONS": {"scrapy_rep.Addon": 500},
            "REP_STORAGES": {"sim": SimStorage},
            "REP_STORAGE": "sim:" if self.shelf is not None else None,
            "USER_AGENT": "SimBot/1.0",
            "RETRY_ENABLED": False,  # so each page is requested once
            "EXTENSIONS_BASE": {},  # Scrapy's own would only add timers
            "WARN_ON_GENERATOR_RETURN_VALUE": False,  # reads the spider's source code for each response
            "JOBDIR": folder if plan.get("jobdir") else None,
            **self.case["settings"],
        }
        crawler = member.context.run(Crawler, SimSpider, settings)
        crawler.signals.connect(self.idle, signals.spider_idle)
        crawling = member.context.run(asyncio.ensure_future, crawler.crawl_async(run, self))
        await asyncio.wait([crawling], timeout=stop[1] if stop else None)
        if not crawling.done() and stop is not None and stop[0] == "kill":
            self.note(run, "killed")
            self.loop.kill(member)
            return
        # A crawl that already closes by itself is left alone: a stop would end it at once (docs/limits.md).
        slot: Any = getattr(crawler.engine, "_slot", None)
        if not crawling.done() and getattr(slot, "closing", None) is None:
            self.note(run, "closing")
            member.context.run(asyncio.ensure_future, crawler.stop_async())
        await asyncio.wait([crawling])
        await asyncio.sleep(0)
        leases = self.shelf.leases_of(run[0]) if self.shelf is not None else []
        for what in [*self.loop.timers_of(member), *leases]:
            self.note(run, "left", None, str(what)[:200])


class SimSpider(Spider):
    """One run of one crawler. Its name is the name of the run."""

    def __init__(self, run: str, simulation: Simulation) -> None:
        super().__init__(run)
        self.simulation = simulation
        self.note = partial(simulation.note, run)
        self.plan = simulation.crawlers[run[0]]
        self.plans = {number: each for number, each in enumerate(self.plan["requests"]) if each is not None}
        self.fed = list(self.plans) if self.plan.get("fed") else []

    def feed(self) -> None:
        """Get the next requests, if this is a spider that gets its requests when it is idle."""
        if self.fed:
            for _ in range(min(self.plan["fed"], len(self.fed))):
                self.crawler.engine.crawl(self.request(self.fed.pop()))
            raise DontCloseSpider

    async def start(self) -> AsyncIterator[Request]:
        if self.plan.get("fed"):
            return
        for at, number in sorted((each["at"], n) for n, each in self.plans.items() if "after" not in each):
            await asyncio.sleep(max(at - seconds(), 0.0))
            while self.plan.get("lazy") and self.crawler.engine.needs_backout():
                await self.crawler.signals.wait_for(signals.scheduler_empty)  # Scrapy's documentation has this recipe
            yield self.request(number)

    def request(self, number: int) -> Request:
        plan = self.plans[number]
        self.note("asked", number)
        headers = {"User-Agent": plan["agent"]} if plan.get("agent") else None
        meta = {NUMBER: number, **({"proxy": plan["proxy"]} if "proxy" in plan else {})}
        priority = plan.get("priority", 0)
        return Request(plan["url"], self.parse, headers=headers, meta=meta, priority=priority, errback=self.failed)

    async def parse(self, response: Response) -> AsyncIterator[Request]:
        self.note("ended", response.meta[NUMBER], "page")
        for number in [n for n, plan in self.plans.items() if plan.get("after") == response.meta[NUMBER]]:
            request = self.request(number)
            if self.plans[number].get("inline"):  # past the scheduler, as media pipelines do
                (result,) = await asyncio.gather(self.crawler.engine.download_async(request), return_exceptions=True)
                self.note("ended", number, type(result).__name__)
            else:
                yield request

    def failed(self, failure: Any) -> None:
        if not str(failure.value).endswith("is back in the queue"):  # else it ends in a later run
            self.note("ended", failure.request.meta[NUMBER], type(failure.value).__name__)


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a method. The wrapper gets the original method, and then the arguments.

    The package checks whether a scheduler's method is Scrapy's own, so a subclass would not do.
    """
    original = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: wrapper(original, *args, **kwargs))


def spied_next_request(next_request: Callable[..., Any], scheduler: Any) -> Any:
    request = next_request(scheduler)
    if request is not None:
        scheduler.spider.note("taken", request.meta[NUMBER])
    return request


def noted(what: str, method: Callable[..., Any], component: Any, request: Request) -> Any:
    if NUMBER in request.meta:
        component.crawler.spider.note(what, request.meta[NUMBER])
    return method(component, request)


async def numbered_run(run: Callable[..., Any], *args: Any) -> Any:
    """Give the fetch a number. All tasks that it begins have it."""
    FETCH_NUMBER.set(next(FETCH_NUMBERS))
    return await run(*args)


async def spied_download_async(download_async: Callable[..., Any], engine: Any, request: Request) -> Any:
    if NUMBER not in request.meta:
        request.meta[FETCH] = FETCH_NUMBER.get()
    return await download_async(engine, request)


wrap(Scheduler, "next_request", spied_next_request)
wrap(ScrapyPriorityQueue, "push", partial(noted, "queued"))
wrap(Downloader, "fetch", partial(noted, "entered"))
wrap(Downloader, "_enqueue_request", partial(noted, "allowed"))  # the request has passed all downloader middlewares
wrap(ExecutionEngine, "download_async", spied_download_async)
wrap(Driver, "run", numbered_run)


def simulate(case: dict[str, Any]) -> Simulation:
    """Run the case."""
    random.seed(case["seed"])
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = case["heartbeat"]
    Downloader._SLOT_GC_INTERVAL = max(60.0, case["heartbeat"])
    wait_stats.EVERY = max(15.0, case["heartbeat"])
    simulation = Simulation(case)
    asyncio.set_event_loop(simulation.loop)
    log = logging.Handler(logging.ERROR)
    vars(log)["emit"] = simulation.note_error
    logging.getLogger().addHandler(log)
    with tempfile.TemporaryDirectory() as folder:
        try:
            simulation.loop.run_until_complete(simulation.run(folder))
        except NeverEndsError as exc:
            killed = [run for _, run, *_ in simulation.of("killed") if simulation.crawlers[run[0]].get("jobdir")]
            simulation.errors += [str(exc)] if not killed else []  # after a kill, Scrapy's queue may be broken
    simulation.ended_at = simulation.loop.now - START
    return simulation
