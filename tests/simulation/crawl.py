"""Run the crawls of one case in virtual time, and record what happens in a `History`.

The spider does what the case says. Spies see where a request is: in Scrapy's queue ("queued"), taken out of it
("taken"), handed to the engine ("handed"), in the downloader ("entered"), past RepMiddleware ("allowed", "refused").
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import tempfile
import traceback
from collections.abc import AsyncIterator, Iterator
from typing import Any

from network import Exchange, Handler, Network
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.http import Response
from scrapy.pqueues import ScrapyPriorityQueue
from store import Shelf, SimStorage
from virtual_time import START, Member, NeverEndsError, VirtualLoop, seconds

from scrapy_rep.waiting import waiting_log

NUMBER = "simulated"  # the meta key of a request's number in its case
FETCH = "simulated_fetch"  # the meta key of the fetch that a robots.txt request belongs to
SETTINGS = {
    "TWISTED_REACTOR_ENABLED": False,
    "DOWNLOAD_HANDLERS": {"http": Handler, "https": Handler},
    "ADDONS": {"scrapy_rep.Addon": 500},
    "REP_STORAGES": {"sim": SimStorage},
    "ROBOTSTXT_OBEY": True,
    "USER_AGENT": "SimBot/1.0",
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "WARN_ON_GENERATOR_RETURN_VALUE": False,  # reads the spider's source code for each response
    "EXTENSIONS": {f"scrapy.extensions.{name}": None for name in ("logstats.LogStats", "memusage.MemoryUsage")},
}


class History:
    """What happened in a case: events in their order, and the exchanges of the network."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.events: list[tuple[float, str, str, Any, str]] = []
        """Seconds, the run, what, the request's number if it is about one, details."""
        self.exchanges: list[Exchange] = []
        self.faults: list[str] = []
        """Errors in the log, and why the simulation could not end."""
        self.has_broken_queue = False
        """A kill has broken a file of Scrapy's own queue on disk: the crawl that resumes the job may never end."""
        self.ended_at = 0.0

    def note(self, run: str, what: str, number: Any = None, details: str = "") -> None:
        self.events.append((seconds(), run, what, number, details))

    def of(self, *whats: str) -> Iterator[tuple[float, str, str, Any, str]]:
        return (event for event in self.events if event[2] in whats)

    @property
    def digest(self) -> str:
        """The same for the same case, in each process."""
        lines = [repr(event) for event in self.events]
        lines += [repr(sorted(vars(exchange).items())) for exchange in self.exchanges]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


class Simulation:
    """One run of one crawler: what its spider, its handler and its spies share."""

    def __init__(self, history: History, network: Network, shelf: Shelf | None, plan: dict[str, Any], run: int) -> None:
        self.history = history
        self.network = network
        self.shelf = shelf
        self.name: str = plan["name"]
        self.run = f"{plan['name']}{run}"
        self.plan = plan
        self.requests = {number: each for number, each in enumerate(plan["requests"]) if each is not None}
        self.fetches: dict[Any, int] = {}

    def note(self, what: str, number: Any = None, details: str = "") -> None:
        self.history.note(self.run, what, number, details)

    def mark_fetch(self, request: Request) -> None:
        """Mark a robots.txt request with its fetch: all requests of one fetch are made by the same task."""
        task = asyncio.current_task()
        request.meta.setdefault(FETCH, str(self.fetches.setdefault(task, len(self.fetches))))

    def exchange_of(self, request: Request) -> Exchange:
        agent = (request.headers.get("User-Agent") or b"").decode()
        mark = request.meta.get(FETCH) if NUMBER not in request.meta else str(request.meta[NUMBER])
        if NUMBER in request.meta:
            self.note("sent", request.meta[NUMBER])
        timeout = request.meta["download_timeout"]
        return Exchange(self.run, request.url, agent, mark or "?", NUMBER not in request.meta, seconds(), timeout)


class SimSpider(Spider):
    name = "sim"

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self.simulation = simulation

    @classmethod
    def from_crawler(cls, crawler: Crawler, simulation: Simulation, *args: Any, **kwargs: Any) -> SimSpider:
        spider = super().from_crawler(crawler, simulation)
        for signal in (signals.spider_opened, signals.spider_idle, signals.spider_closed):
            crawler.signals.connect(spider.tell, signal)
        return spider

    def tell(self, signal: object, reason: str = "") -> None:
        names = {signals.spider_opened: "opened", signals.spider_idle: "idle", signals.spider_closed: "closed"}
        self.simulation.note(names[signal], None, reason)

    async def start(self) -> AsyncIterator[Request]:
        plan = self.simulation.plan
        mine = [(each["at"], number) for number, each in self.simulation.requests.items() if "after" not in each]
        for at, number in sorted(mine):
            if at > seconds():
                await asyncio.sleep(at - seconds())
            while plan.get("lazy") and self.crawler.engine.needs_backout():
                await self.crawler.signals.wait_for(signals.scheduler_empty)  # Scrapy's documentation has this recipe
            yield self.request(number)

    def request(self, number: int) -> Request:
        plan = self.simulation.requests[number]
        self.simulation.note("asked", number)
        headers = {"User-Agent": plan["agent"]} if plan.get("agent") else None
        meta, priority = {NUMBER: number}, plan.get("priority", 0)
        return Request(plan["url"], self.parse, headers=headers, meta=meta, priority=priority, errback=self.failed)

    async def parse(self, response: Response) -> AsyncIterator[Request]:
        number = response.meta[NUMBER]
        self.simulation.note("ended", number, "page")
        for each, plan in self.simulation.requests.items():
            if plan.get("after") == number:
                if plan.get("inline"):
                    await self.download(self.request(each))
                else:
                    yield self.request(each)

    async def download(self, request: Request) -> None:
        """Download it past the scheduler, as media pipelines do."""
        end = "page"
        try:
            await self.crawler.engine.download_async(request)
        except Exception as exc:  # noqa: BLE001 - whatever it is, that is how the request ended
            end = type(exc).__name__
        self.simulation.note("ended", request.meta[NUMBER], end)

    def failed(self, failure: Any) -> None:
        self.simulation.note("ended", failure.request.meta[NUMBER], type(failure.value).__name__)


class Entered:
    """A downloader middleware: the request has entered the downloader."""

    what = "entered"

    def __init__(self, crawler: Any) -> None:
        self.simulation: Simulation = crawler.spider.simulation

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Entered:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        if NUMBER in request.meta:
            self.simulation.note(self.what, request.meta[NUMBER])


class Decided(Entered):
    """The same behind RepMiddleware: the request was allowed, or refused."""

    what = "allowed"

    def process_exception(self, request: Request, exception: Exception) -> None:
        if NUMBER in request.meta:
            self.simulation.note("refused", request.meta[NUMBER], type(exception).__name__)


def simulation_of(component: Any) -> Simulation | None:
    spider = getattr(component, "spider", None)
    return spider.simulation if isinstance(spider, SimSpider) else None


def spy_on_queue() -> None:
    """Replace methods of Scrapy's classes: the package looks whether a scheduler is of Scrapy's own class."""
    next_request, push = Scheduler.next_request, ScrapyPriorityQueue.push

    def spied_next_request(self: Scheduler) -> Request | None:
        request = next_request(self)
        simulation = simulation_of(self)
        if request is not None and simulation is not None:
            simulation.note("taken", request.meta[NUMBER])
        return request

    def spied_push(self: ScrapyPriorityQueue, request: Request) -> None:
        simulation = simulation_of(self.crawler)
        if simulation is not None:
            simulation.note("queued", request.meta[NUMBER])
        push(self, request)

    Scheduler.next_request = spied_next_request  # type: ignore[method-assign]
    ScrapyPriorityQueue.push = spied_push  # type: ignore[method-assign]


def spy_on_engine() -> None:
    engine: Any = ExecutionEngine
    download, download_async = engine._download, engine.download_async

    def spied_download(self: Any, request: Request) -> Any:
        simulation = simulation_of(self)
        if simulation is not None and NUMBER in request.meta:
            simulation.note("handed", request.meta[NUMBER])
        return download(self, request)

    async def spied_download_async(self: Any, request: Request) -> Response:
        simulation = simulation_of(self)
        if simulation is not None and NUMBER not in request.meta:
            simulation.mark_fetch(request)
        response: Response = await download_async(self, request)
        return response

    engine._download = spied_download
    engine.download_async = spied_download_async


spy_on_queue()
spy_on_engine()


class ErrorLog(logging.Handler):
    """Errors in the log are faults, except those of Scrapy's own queue on disk, whose files a kill may break."""

    def __init__(self, history: History) -> None:
        super().__init__(logging.ERROR)
        self.history = history

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        frames = traceback.extract_tb(error.__traceback__) if error is not None else []
        has_kills = any(self.history.of("killed"))
        if has_kills and any("squeues" in frame.filename or "queuelib" in frame.filename for frame in frames):
            self.history.has_broken_queue = True
        elif not has_kills or any("scrapy_rep" in frame.filename for frame in frames):
            self.history.faults.append(f"at {seconds():.3f} the log has: {record.getMessage()[:1000]} {error!r}")


def simulate(case: dict[str, Any]) -> History:
    """Run the case."""
    random.seed(case["seed"])
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = case["heartbeat"]
    Downloader._SLOT_GC_INTERVAL = max(60.0, case["heartbeat"])
    waiting_log.EVERY = max(15.0, case["heartbeat"])
    history, network = History(case), Network(case["origins"])
    history.exchanges = network.exchanges
    shelf = Shelf(case["store"]) if case["store"] else None
    loop = VirtualLoop(case["max_seconds"])
    asyncio.set_event_loop(loop)
    log = ErrorLog(history)
    logging.getLogger().addHandler(log)
    with tempfile.TemporaryDirectory() as folder:
        lives = [Life(plan, history, network, shelf, folder) for plan in case["crawlers"]]
        try:
            loop.run_until_complete(all_of(lives, loop))
        except NeverEndsError as exc:
            if not history.has_broken_queue:
                history.faults.append(str(exc))
        history.ended_at = loop.now - START
    logging.getLogger().removeHandler(log)
    return history


async def all_of(lives: list[Life], loop: VirtualLoop) -> None:
    await asyncio.gather(*(life.live(loop) for life in lives))


class Life:
    """One crawler of the case, run after run: a JOBDIR is paused or killed, and resumed."""

    def __init__(
        self, plan: dict[str, Any], history: History, network: Network, shelf: Shelf | None, folder: str
    ) -> None:
        self.plan = plan
        self.history = history
        self.network = network
        self.shelf = shelf
        self.folder = folder

    async def live(self, loop: VirtualLoop) -> None:
        for number, stop in enumerate(self.plan["runs"]):
            await asyncio.sleep(max(self.plan["begin"] - seconds(), 0.1))
            await self.run(number, stop, loop)

    async def run(self, number: int, stop: list[Any] | None, loop: VirtualLoop) -> None:
        """Crawl until the end, or until `stop`: ["kill", seconds] or ["close", seconds] of this run."""
        simulation = Simulation(self.history, self.network, self.shelf, self.plan, number)
        member = Member(self.plan["name"], self.plan["clock"])
        settings: dict[str, Any] = {**SETTINGS, **self.history.case["settings"]}
        settings["DOWNLOADER_MIDDLEWARES"] = {Entered: 50, Decided: 101}
        if self.shelf is not None:
            settings["REP_STORAGE"] = "sim:"
        if self.plan.get("jobdir"):
            settings["JOBDIR"] = f"{self.folder}/{self.plan['name']}"
        runner: Any = member.context.run(AsyncCrawlerRunner, settings)
        crawler: Crawler = member.context.run(runner.create_crawler, SimSpider)
        crawling = member.context.run(runner.crawl, crawler, simulation)  # a task
        others = [asyncio.ensure_future(self.pause(crawler, *each)) for each in self.plan.get("pauses", [])]
        done, _ = await asyncio.wait([crawling], timeout=stop[1] if stop else None)
        if not done and stop is not None and stop[0] == "kill":
            simulation.note("killed")
            loop.kill(member)
        else:
            if not done:
                simulation.note("closing")
                member.context.run(asyncio.ensure_future, crawler.stop_async())
            await asyncio.wait([crawling])
            await asyncio.sleep(0)
            self.look_what_is_left(member, simulation, loop)
        for each in others:
            each.cancel()

    @staticmethod
    def look_what_is_left(member: Member, simulation: Simulation, loop: VirtualLoop) -> None:
        for handle in loop.timers_of(member):
            simulation.note("left", None, str(handle)[:200])
        for origin in simulation.shelf.leases_of(member.name) if simulation.shelf is not None else ():
            simulation.note("leased", None, origin)

    async def pause(self, crawler: Crawler, begin: float, length: float) -> None:
        await asyncio.sleep(begin)
        if crawler.engine is not None and crawler.engine.running:
            crawler.engine.pause()
            self.history.note(self.plan["name"], "paused")
            await asyncio.sleep(length)
            crawler.engine.unpause()
            self.history.note(self.plan["name"], "unpaused")
