"""Waiting requests and fetches of robots.txt take no place in the downloader, and no request is lost."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, Releases, SlotByOrigin, Time, crawl, with_clock
from installed_scrapy import CAN, HANDLERS
from processes import REACTORS, crawl_process
from pydispatch.dispatcher import getAllReceivers, liveReceivers
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.core.downloader import Downloader, Slot
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from web import RULES, Site, Web, answer, most_at_once, redirect

from scrapy_rep.fetching import places
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.scrapy_internals.engine_state import scheduler_of
from scrapy_rep.settings import OCTETS_OF_ORIGIN
from scrapy_rep.signals import request_waited, robots_known
from scrapy_rep.waiting import turns

ORDERS = ["round-robin", "origin-by-origin", "dead-first"]
QUEUES = ["scrapy.pqueues.DownloaderAwarePriorityQueue", "scrapy.pqueues.ScrapyPriorityQueue"]
# The timeout is longer than any of these crawls. A test whose requests wait for it fails.
DEAD = answer(RULES, kind="hold")
LONG = {"REP_FETCH_TIMEOUT": 20, "DOWNLOADER": SlotByOrigin}


class Inside:
    """Watches the downloader of a crawl."""

    def __init__(self) -> None:
        self.idle = 0
        self.most_running = 0
        self._running: set[Request] = set()
        self.reached: list[str] = []

    def prepare(self, crawler: Crawler) -> None:
        self.crawler = crawler
        crawler.signals.connect(self._idle, signals.spider_idle)
        crawler.signals.connect(self._reached, signals.request_reached_downloader)
        crawler.signals.connect(self._left, signals.request_left_downloader)

    def _idle(self) -> None:
        self.idle += 1

    def _reached(self, request: Request) -> None:
        self.reached.append(request.url)
        if "rep_robots_txt" not in request.meta:
            self._running.add(request)
            self.most_running = max(self.most_running, len(self._running))

    def _left(self, request: Request) -> None:
        self._running.discard(request)

    @property
    def downloader(self) -> Downloader:
        assert self.crawler.engine is not None
        return self.crawler.engine.downloader

    @property
    def left_over(self) -> list[Any]:
        """The requests that are still in the downloader, and our receivers that are still connected."""
        slots = self.downloader.slots.values()
        receivers = [
            receiver
            for signal in (signals.bytes_received, signals.request_left_downloader, signals.request_scheduled)
            for receiver in liveReceivers(getAllReceivers(self.crawler.signals.sender, signal))
        ]
        return [
            *self.downloader.active,
            *chain.from_iterable((*slot.active, *slot.queue, *slot.transferring) for slot in slots),
            *(receiver for receiver in receivers if "scrapy_rep" in receiver.__module__),
        ]


async def crawl_past(dead: list[Site], healthy: list[Site], urls: list[str], **more: Any) -> Crawl:
    """A crawl whose dead origins answer only after all pages of the healthy ones. Then it notes "no stall"."""
    pages = sum(url.startswith(site.origin + "/") for site in healthy for url in urls)
    settings = {**LONG, **more.pop("settings", {})}
    requests = more.pop("requests", urls)
    return await crawl(*requests, spider=Releases, dead=dead, healthy=pages, settings=settings, **more)


# Waiting takes no place in the downloader.


@pytest.mark.parametrize("handler", HANDLERS)
@ensureDeferred
async def test_hosts_that_hang_take_no_connection_from_healthy_ones(web: Web, handler: str) -> None:
    dead, healthy = [web.robots(DEAD) for _ in range(40)], [web.robots(RULES) for _ in range(10)]
    urls = [site.url(f"/{n}") for site in dead + healthy for n in range(3 if site in healthy else 1)]
    settings = {"CONCURRENT_REQUESTS": 16, "DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]}}
    result = await crawl_past(dead, healthy, urls, settings=settings)
    assert (result.ends, len(result.pages), result.tracebacks) == (["no stall"], 70, [])


# The simulator has all orders with all queues.
@pytest.mark.parametrize(("order", "queue"), [*zip(ORDERS, cycle(QUEUES), strict=False)])
@ensureDeferred
async def test_dead_origins_do_not_stall_healthy_ones(web: Web, queue: str, order: str) -> None:
    dead, healthy = [web.robots(DEAD) for _ in range(20)], [web.robots(RULES) for _ in range(10)]
    sites = [site for pair in zip(dead[::2], healthy, dead[1::2], strict=True) for site in pair]
    urls = {
        "round-robin": [site.url(f"/{n}") for n in range(3) for site in sites],
        "origin-by-origin": [site.url(f"/{n}") for site in sites for n in range(3)],
        "dead-first": [site.url(f"/{n}") for site in dead + healthy for n in range(3)],
    }[order]
    inside = Inside()
    settings = {"SCHEDULER_PRIORITY_QUEUE": queue, "CONCURRENT_REQUESTS": 8}
    result = await crawl_past(dead, healthy, urls, settings=settings, prepare=inside.prepare)
    assert (result.ends, len(result.pages), result.tracebacks) == (["no stall"], len(urls), [])
    assert inside.idle == 1, "only at the end, not while requests waited"
    assert (inside.left_over, inside.downloader.total_concurrency) == ([], 8)


@pytest.mark.parametrize("concurrency", [1, 16, *([0] if CAN["take a CONCURRENT_REQUESTS of 0 for no limit"] else [])])
@pytest.mark.parametrize("queue", QUEUES)
@ensureDeferred
async def test_waiting_works_with_any_concurrency(web: Web, queue: str, concurrency: int) -> None:
    dead, healthy = [web.robots(DEAD) for _ in range(3)], [web.robots(RULES) for _ in range(3)]
    urls = [site.url(f"/{n}") for n in range(8) for site in dead + healthy]
    inside = Inside()
    settings = {"SCHEDULER_PRIORITY_QUEUE": queue, "CONCURRENT_REQUESTS": concurrency}
    result = await crawl_past(dead, healthy, urls, settings=settings, prepare=inside.prepare)
    assert (result.ends, len(result.pages), result.tracebacks) == (["no stall"], len(urls), [])
    assert inside.idle == 1
    assert (inside.left_over, inside.downloader.total_concurrency) == ([], concurrency)
    if concurrency:
        assert inside.most_running <= concurrency


@pytest.mark.parametrize("concurrency", [1, 16])
@ensureDeferred
async def test_media_pipelines_do_not_stall_others(web: Web, concurrency: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Scrapy closes an idle crawl at its next heartbeat. Five seconds are long for a test.
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 0.5)
    dead, site = web.robots(DEAD), web.robots(RULES)
    ends: list[str] = []

    class Downloads(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> Any:
            if response.url == site.url("/0"):
                engine = self.crawler.engine
                assert engine is not None
                media = [asyncio.ensure_future(engine.download_async(Request(dead.url(f"/{n}")))) for n in range(40)]
                for n in range(1, 20):
                    yield self.prepared(site.url(f"/{n}"))
                await asyncio.gather(*media)
                ends.append("media")
            else:
                ends.append("page")
                if len(ends) == 19:
                    web.release(dead)

    inside = Inside()
    settings = {**LONG, "CONCURRENT_REQUESTS": concurrency}
    result = await crawl(site.url("/0"), spider=Downloads, prepare=inside.prepare, settings=settings)
    assert ends == ["page"] * 19 + ["media"]
    assert result.tracebacks == []
    assert (inside.left_over, inside.downloader.total_concurrency) == ([], concurrency)


@ensureDeferred
async def test_requests_that_waited_go_on_by_priority_without_the_queue(web: Web) -> None:
    site = web.robots(DEAD)
    requests = [Request(site.url(f"/{number}"), priority=int(number == 2)) for number in range(5)]
    inside = Inside()
    settings = {**LONG, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await crawl(*requests, spider=once_all_wait(web, site), prepare=inside.prepare, settings=settings)
    assert len(result.pages) == 5
    assert inside.reached[:2] == [site.robots_url, requests[2].url], "the request with the highest priority is first"
    assert result.stats["rep/waited"] == 5
    assert result.stats["scheduler/enqueued"] == 5


@pytest.mark.parametrize(
    ("queue", "most"),
    [
        pytest.param(QUEUES[0], 0, id="aware-0"),
        pytest.param(QUEUES[0], 5, id="aware-5"),
        pytest.param(QUEUES[1], 0, id="strict-0"),
        # This queue hands out the requests to the dead origin first.
        pytest.param(QUEUES[1], 30, id="strict-30"),
    ],
)
@ensureDeferred
async def test_with_any_limit_on_waiting_a_dead_origin_does_not_hold_up_others(
    web: Web, tmp_path: Path, queue: str, most: int
) -> None:
    dead, healthy = web.robots(DEAD), [web.robots(RULES) for _ in range(3)]
    urls = [dead.url(f"/{n}") for n in range(30)] + [site.url(f"/{n}") for n in range(3) for site in healthy]
    requests = [Request(url, dont_filter=n % 2 == 0, priority=n % 3) for n, url in enumerate(urls)]
    inside = Inside()
    total = 4 if most else 40  # with 0, requests wait in the downloader
    settings = {"SCHEDULER_PRIORITY_QUEUE": queue, "REP_WAITING_MAX": most, "CONCURRENT_REQUESTS": total}
    settings["JOBDIR"] = str(tmp_path)
    result = await crawl_past([dead], healthy, urls, requests=requests, settings=settings, prepare=inside.prepare)
    assert (result.ends, len(result.pages), result.tracebacks) == (["no stall"], len(urls), [])
    assert dead.targets[0] == "/robots.txt"
    assert (inside.left_over, inside.downloader.total_concurrency) == ([], total)
    as_they_were = {request.url: (request.dont_filter, request.priority) for request in requests}
    for url, page in result.pages.items():
        assert page.request is not None
        assert (page.request.dont_filter, page.request.priority) == as_they_were[url]
        assert "rep_put_back" not in page.meta


@ensureDeferred
async def test_the_queue_on_disk_stays_correct_while_no_more_may_wait(web: Web, tmp_path: Path) -> None:
    dead, healthy = web.robots(DEAD), web.site({"/robots.txt": answer(RULES), "/late": answer("x", delay=0.3)})
    of_dead = [dead.url(f"/{number}") for number in range(9)]

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            if response.url == healthy.url("/"):
                yield from map(self.prepared, [*of_dead[:6], healthy.url("/late")])
            if response.url == healthy.url("/late"):  # the queue gets more requests after the first were taken out
                yield from map(self.prepared, of_dead[6:])
                web.release(dead)

    settings = {"JOBDIR": str(tmp_path), "REP_WAITING_MAX": 1}
    result = await crawl(healthy.url("/"), spider=Follows, settings=settings)
    assert result.tracebacks == []
    assert sorted(dead.targets) == [*(f"/{number}" for number in range(9)), "/robots.txt"]


@pytest.fixture
def no_fetch_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, fetches would count as slow, and more than the setting says would be under way."""
    monkeypatch.setattr(places, "SLOW_AFTER", 60.0)


@pytest.mark.parametrize("most", [1, 3])
@ensureDeferred
async def test_rep_fetch_concurrency_limits_fetches(web: Web, most: int, no_fetch_is_slow: None) -> None:
    sites = [web.robots(answer(RULES, delay=0.05)) for _ in range(12)]
    settings = {**LONG, "REP_FETCH_CONCURRENCY": most, "CONCURRENT_REQUESTS": 2}
    result = await crawl(*(site.url("/") for site in sites), settings=settings)
    assert len(result.pages) == 12
    assert most_at_once(chain.from_iterable(site.robots_requests for site in sites)) == most


# Requests that are taken out of the queue.


@ensureDeferred
async def test_no_more_requests_are_taken_from_the_queue_than_fetches_can_begin(
    web: Web, no_fetch_is_slow: None
) -> None:
    sites = [web.robots(answer(RULES, delay=0.05)) for _ in range(40)]
    waiting: list[int] = []

    class AsksAtOnce(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url.startswith("data:"):
                yield from map(self.prepared, (site.url("/") for site in sites))

    class Counts(Inside):
        went_on = 0

        def prepare(self, crawler: Crawler) -> None:
            super().prepare(crawler)
            crawler.signals.connect(self.count, request_waited)
            crawler.signals.connect(self.look, robots_known)

        def count(self) -> None:
            self.went_on += 1

        def look(self) -> None:
            waiting.append(self.crawler.stats.get_value("rep/waited") - self.went_on)

    settings = {**LONG, "REP_FETCH_CONCURRENCY": 2, "CONCURRENT_REQUESTS": 40}
    result = await crawl("data:,", spider=AsksAtOnce, settings=settings, prepare=Counts().prepare)
    assert len(result.pages) == 1 + 40
    assert max(waiting) <= 2 * 2 + 2, "two fetches, two that begin next, and two that just end"


@pytest.mark.parametrize(
    ("bound", "concurrency", "number"),
    [
        pytest.param(("MAX_SLOW", 0), 1, 5, id="no more slow fetches"),
        pytest.param(("max_open_files", lambda: 64), 16, 100, id="few open files"),
    ],
)
@ensureDeferred
async def test_pages_of_known_origins_go_on_while_no_fetch_can_begin(
    web: Web, monkeypatch: pytest.MonkeyPatch, bound: tuple[str, Any], concurrency: int, number: int
) -> None:
    monkeypatch.setattr(places, *bound)
    dead, healthy = [web.robots(DEAD) for _ in range(number)], web.robots(RULES)

    class AsksAtOnce(Releases):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            if response.url == healthy.url("/0"):
                yield from (self.prepared(site.url("/")) for site in dead)
                yield from (self.prepared(healthy.url(f"/{n}")) for n in range(1, 40))

    settings = {**LONG, "REP_FETCH_CONCURRENCY": concurrency}
    more: dict[str, Any] = {"dead": dead, "healthy": 40}
    result = await crawl(healthy.url("/0"), spider=AsksAtOnce, settings=settings, **more)
    assert result.ends == ["no stall"]
    assert len(result.pages) == 40 + number


@pytest.mark.parametrize("is_on_disk", [False, True], ids=["memory", "disk"])
@ensureDeferred
async def test_the_default_queue_hands_out_requests_to_origins_that_answer_first(
    web: Web, tmp_path: Path, is_on_disk: bool
) -> None:
    dead, healthy = web.robots(DEAD), web.robots(answer(RULES))
    waited: list[int] = []

    class AsksAtOnce(Releases):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            if response.url == healthy.url("/0"):
                yield from (self.prepared(healthy.url(f"/{n}")) for n in range(1, 40))
                yield from (self.prepared(dead.url(f"/{n}")) for n in range(100))

    class Looks(Inside):
        def _reached(self, request: Request) -> None:
            super()._reached(request)
            if request.url.startswith(healthy.origin):
                waited.append(self.crawler.stats.get_value("rep/waited", 0))

    settings = {**LONG, "CONCURRENT_REQUESTS": 4, **({"JOBDIR": str(tmp_path)} if is_on_disk else {})}
    more: dict[str, Any] = {"dead": [dead], "healthy": 40, "prepare": Looks().prepare}
    result = await crawl(healthy.url("/0"), spider=AsksAtOnce, settings=settings, **more)
    assert result.ends == ["no stall"]
    assert len(result.pages) == 140
    assert waited[30] <= 4, "only the first requests to the dead origin"


# Requests that go on.


def once_all_wait(web: Web, *sites: Site) -> type[CrawlSpider]:
    """A spider that lets the dead origins answer when all its requests wait."""

    class OnceAllWait(CrawlSpider):
        async def start(self) -> Any:
            for request in self.requests:
                yield self.prepared(request)
            while self.crawler.stats.get_value("rep/waited", 0) < len(self.requests):
                await sleep(0.01)
            web.release(*sites)

    return OnceAllWait


@pytest.mark.parametrize("per_domain", [2, 8])
@ensureDeferred
async def test_requests_that_waited_do_not_exceed_concurrent_requests(web: Web, per_domain: int) -> None:
    site = web.site({"/robots.txt": DEAD, "*": answer("page", delay=0.005)})
    urls = [site.url(f"/{n}") for n in range(100)]
    inside = Inside()
    settings = {**LONG, "CONCURRENT_REQUESTS": 6, "CONCURRENT_REQUESTS_PER_DOMAIN": per_domain}
    spider = once_all_wait(web, site)
    result = await crawl(*urls, spider=spider, settings=settings, prepare=inside.prepare)
    assert len(result.pages) == 100
    assert result.stats["rep/waited"] == 100
    # The limit of a slot is left to Scrapy: requests beyond it may be in the downloader, and in 2.19 on the wire, too.
    assert min(per_domain, 6) <= inside.most_running <= 6
    assert [url for url in inside.reached if url != site.robots_url] == urls, "in the order of the spider"
    assert (inside.left_over, inside.downloader.total_concurrency) == ([], 6)


@ensureDeferred
async def test_requests_of_many_origins_that_waited_do_not_exceed_concurrent_requests(web: Web) -> None:
    sites = [web.site({"/robots.txt": DEAD, "*": answer("page", delay=0.005)}) for _ in range(20)]
    inside = Inside()
    urls = [site.url(f"/{n}") for site in sites for n in range(10)]
    settings = {**LONG, "CONCURRENT_REQUESTS": 5}
    result = await crawl(*urls, spider=once_all_wait(web, *sites), settings=settings, prepare=inside.prepare)
    assert len(result.pages) == 200
    assert inside.most_running == 5
    by_site: dict[str, list[str]] = defaultdict(list)
    for url in inside.reached:
        by_site[url.rpartition("/")[0]].append(url)
    assert all(reached[1:] == [u for u in urls if u.startswith(f"{site}/")] for site, reached in by_site.items())
    assert (inside.left_over, inside.downloader.total_concurrency) == ([], 5)


@ensureDeferred
async def test_the_cost_of_origins_that_share_a_download_slot_is_linear() -> None:
    number, looks = 300, 0

    class Slots(dict[str, Slot]):
        def get(self, *args: Any) -> Any:
            nonlocal looks
            looks += 1
            return super().get(*args)

    class OneSlot(Downloader):
        def __init__(self, crawler: Crawler) -> None:
            super().__init__(crawler)
            self.slots = Slots()

        def get_slot_key(self, request: Request) -> str:
            nonlocal looks
            looks += 1
            return "robots" if request.url.endswith("/robots.txt") else "pages"

    class AnswersAtOnce(HTTP11DownloadHandler):
        async def download_request(self, request: Request) -> Response:
            stats = self._crawler.stats
            while not request.url.endswith("/robots.txt") and stats.get_value("rep/access/unavailable") < number:
                await sleep(0.1)  # pages wait until all robots.txt are known
            return Response(request.url, status=404, request=request)

    settings = {
        "DOWNLOADER": OneSlot,
        "DOWNLOAD_HANDLERS": {"http": AnswersAtOnce},
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    }
    result = await crawl(*(f"http://{n}.example/" for n in range(number)), settings=settings)
    assert len(result.pages) == number
    assert result.stats["rep/waited"] == number
    assert looks < 40 * number


@pytest.mark.parametrize("downloader", [{}, {"DOWNLOADER": "crawling.SlotByOrigin"}], ids=["one-slot", "slots"])
@pytest.mark.parametrize("reactor", ["asyncio", "select"])
def test_a_request_that_waits_twice_is_counted_once(web: Web, reactor: str, downloader: dict[str, Any]) -> None:
    sites = [web.robots(DEAD) for _ in range(4)]
    urls = [site.url(f"/{n}") for n in range(4) for site in sites]
    settings = {**REACTORS[reactor], **downloader, "REP_MEMORY_OCTETS": 2 * OCTETS_OF_ORIGIN, "CONCURRENT_REQUESTS": 1}
    with crawl_process(urls, settings, ready_after=0.1, waited=len(urls)) as process:
        process.until_ready()
        web.release(*sites)
        ended = process.ended()
    assert sorted(ended.pages) == sorted(urls)
    assert ended.stats["rep/cache/miss"] > len(sites), "some origins were dropped from memory"
    assert ended.stats["rep/waited"] == len(urls)
    assert ended.complaints == []


class DropsLater:
    async def process_request(self, request: Request) -> None:
        if "drop" in request.url:
            await sleep(0)
            raise IgnoreRequest("later")


@pytest.mark.parametrize("end", ["dropped", "redirected", "failed"])
@ensureDeferred
async def test_the_next_request_goes_on_after_any_end_of_a_request(web: Web, end: str) -> None:
    target = web.site()
    routes = {"/robots.txt": answer(RULES, delay=0.2), "/redirected": redirect(target.url("/"))}
    site = web.site({**routes, "/failed": answer(kind="reset")})
    requests = [Request(site.url(f"/{end}"), dont_filter=True) for _ in range(20)]

    class Counts(CrawlSpider):
        def prepared(self, request: str | Request) -> Request:
            prepared = super().prepared(request)
            prepared.meta.pop("handle_httpstatus_all")
            return prepared

        def parse(self, response: Response, **_: Any) -> None:
            self.count()

        def failed(self, failure: Any) -> None:
            self.count()

        def count(self) -> None:
            self.crawl.ends.append(end)

    settings = {"CONCURRENT_REQUESTS": 1, "DOWNLOADER_MIDDLEWARES": {DropsLater: 200}, "CLOSESPIDER_TIMEOUT": 20}
    result = await crawl(*requests, spider=Counts, settings=settings)
    assert result.ends == [end] * 20
    assert result.stats["finish_reason"] == "finished"


# Downloaders that differ from Scrapy's.


class NoSlots(Downloader):
    _get_slot = property()

    async def _enqueue_request(self, request: Request) -> Response:
        return await self.handlers.download_request_async(request)


class OtherSlots(Downloader):
    """A downloader with another class of slots."""

    def _get_slot(self, *args: Any) -> Any:
        key, slot = super()._get_slot(*args)
        if not isinstance(slot, OtherSlot):
            other: Any = OtherSlot(slot)
            slot = self.slots[key] = other
        return key, slot


class OtherSlot:
    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self.working = slot.active

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slot, name)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self if name in {"_slot", "working"} else self._slot, name, value)


class NoConcurrency(Downloader):
    """A downloader without `total_concurrency`."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        del self.total_concurrency

    def needs_backout(self) -> bool:
        return len(self.active) >= 3


@pytest.mark.parametrize("downloader", [NoSlots, OtherSlots, NoConcurrency])
@ensureDeferred
async def test_requests_wait_with_any_downloader(web: Web, downloader: type[Downloader]) -> None:
    sites = [web.robots(answer(RULES, delay=0.05)) for _ in range(3)]
    urls = [site.url(path) for site in sites for path in ("/a", "/b", "/private")]
    result = await crawl(*urls, settings={"DOWNLOADER": downloader, "CONCURRENT_REQUESTS": 3})
    assert len(result.pages) == 6
    assert len(result.refused) == 3
    assert result.tracebacks == []


# While the engine takes no requests, requests that waited do not go on.


@ensureDeferred
async def test_requests_that_waited_stay_while_the_engine_is_paused(web: Web) -> None:
    site = web.robots(DEAD)

    class Pauses(once_all_wait(web)):  # type: ignore[misc]
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            self.crawler.engine.pause()
            web.release(site)
            await sleep(0.8)  # longer than the interval between looks for room
            self.crawl.ends.extend(site.targets[1:])
            self.crawler.engine.unpause()

    urls = [site.url(f"/{n}") for n in range(20)]
    result = await crawl(*urls, spider=Pauses, settings={**LONG, "CONCURRENT_REQUESTS": 4})
    assert result.ends == [], "no page while the engine was paused"
    assert len(result.pages) == 20


@ensureDeferred
async def test_requests_that_waited_do_not_exceed_the_limit_of_the_scraper(web: Web) -> None:
    site = web.site({"/robots.txt": DEAD, "*": answer("x" * 10_000)})

    class Slow(once_all_wait(web, site)):  # type: ignore[misc]
        running = 0

        async def parse(self, response: Response, **_: Any) -> None:
            self.running += 1
            self.crawl.ends.append(self.running)
            # Requests of callbacks are sent even if the scraper is full.
            await self.crawler.engine.download_async(Request(site.url("/more")))
            await sleep(0.02)
            self.running -= 1
            super().parse(response)

    urls = [site.url(f"/{n}") for n in range(60)]
    settings = {**LONG, "CONCURRENT_REQUESTS": 4, "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 50_000}
    result = await crawl(*urls, spider=Slow, settings=settings)
    assert len(result.pages) == 60
    assert max(result.ends) <= 5 + 4 + 1, "the responses that fill the scraper, and those under way"


# The turns of the queue.


@ensureDeferred
async def test_the_queue_has_no_turn_while_many_sites_have_ready_requests(web: Web) -> None:
    ready, known = [web.robots(DEAD) for _ in range(102)], web.robots(RULES)
    inside = Inside()

    class Fills(once_all_wait(web)):  # type: ignore[misc]
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            self.crawler.engine.pause()
            for number in range(20):
                self.crawler.engine.crawl(self.prepared(known.url(f"/{number}")))
            web.release(*ready)
            while self.crawler.stats.get_value("rep/access/success", 0) < len(self.requests):
                await sleep(0.01)
            inside.reached.clear()
            self.crawler.engine.unpause()

    settings = {**LONG, "REP_FETCH_CONCURRENCY": 200, "CONCURRENT_REQUESTS": 1}
    urls = [known.url("/"), *(site.url("/") for site in ready)]
    result = await crawl(*urls, spider=Fills, prepare=inside.prepare, settings=settings)
    assert len(result.pages) == 103 + 20
    is_from_queue = [url.startswith(known.origin) for url in inside.reached]
    # While 102, 101 and 100 sites have ready requests, the queue has no turn. Then it has every second one.
    assert is_from_queue[:12] == [False] * 3 + [True, False] * 4 + [True]


@ensureDeferred
async def test_the_door_takes_requests_from_the_queue_for_a_short_time(
    web: Web, monkeypatch: pytest.MonkeyPatch, no_fetch_is_slow: None
) -> None:
    # The engine goes on at once, not at its next heartbeat.
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 600.0)
    sites = [web.robots(DEAD) for _ in range(30)]
    taken: list[int] = []

    class Ticks(Time):  # a millisecond for each look at the clock
        def __call__(self) -> float:
            self.now += 0.001
            return self.now

    class Counts(CrawlSpider):
        async def start(self) -> Any:
            scheduler: Any = scheduler_of(self.crawler)
            next_request = scheduler.next_request

            def counted() -> Request | None:
                before = self.crawler.stats.get_value("rep/waited", 0)
                request: Request | None = next_request()
                taken.append(self.crawler.stats.get_value("rep/waited", 0) - before)
                return request

            scheduler.next_request = counted
            self.crawler.engine.pause()
            for request in self.requests:
                self.crawler.engine.crawl(self.prepared(request))
            self.crawler.engine.unpause()
            for _ in range(1_000):
                if sum(taken) == len(self.requests):
                    break
                await sleep(0.01)
            self.crawl.ends.append(sum(taken))
            web.release(*sites)
            return
            yield

    settings = {**LONG, **with_clock(Ticks()), "REP_FETCH_CONCURRENCY": 200}
    result = await crawl(*(site.url("/") for site in sites), spider=Counts, settings=settings)
    assert (result.ends, len(result.pages)) == ([30], 30)
    assert 1 < max(taken) < 6, "after five milliseconds, the engine goes on"


# The next site of the default queue.


class AsksLater(CrawlSpider):
    """Asks for all other pages in one callback when it has the first ones, so that the queue has all sites."""

    later: list[str]

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        if len(self.crawl.pages) == len(self.requests):
            yield from map(self.prepared, self.later)


@ensureDeferred
async def test_no_site_waits_for_more_than_one_round_through_all_others(web: Web) -> None:
    sites, rounds = [web.robots(RULES) for _ in range(6)], 8
    later = [site.url(f"/{number}") for site in sites for number in range(rounds)]
    settings = {**LONG, "CONCURRENT_REQUESTS": 1}
    result = await crawl(*(site.url("/") for site in sites), spider=AsksLater, later=later, settings=settings)
    assert result.pages.keys() >= set(later)
    order = [url.rpartition("/")[0] for url in result.pages]
    # Not the rounds before the queue has all sites, nor those after it has lost one.
    all_queued = order[2 * len(sites) : -2 * len(sites)]
    windows = [all_queued[start : start + len(sites)] for start in range(len(all_queued) - len(sites))]
    assert [len(set(window)) for window in windows] == [len(sites)] * len(windows)


class CountsLooks(dict[str, Slot]):
    """Download slots that count how often one of them is looked up or walked past."""

    looks = 0

    def __contains__(self, key: object) -> bool:
        self.looks += 1
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.looks += 1
            yield key


class CountingDownloader(SlotByOrigin):
    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.slots = CountsLooks()


@pytest.mark.parametrize("fetches", [20, 1], ids=["rarely-at-the-limit", "always-at-the-limit"])
@ensureDeferred
async def test_the_choice_of_a_request_looks_at_few_sites_however_many_there_are(
    web: Web, monkeypatch: pytest.MonkeyPatch, fetches: int
) -> None:
    monkeypatch.setattr(turns, "LOOKS", 5)
    monkeypatch.setattr(turns, "LOOKS_AT_KNOWN", 5)
    settings = {"REP_FETCH_CONCURRENCY": fetches, "DOWNLOADER": CountingDownloader}
    looks = []
    for number in (50, 200):
        urls = [web.robots(RULES).url("/") for _ in range(number)]
        result = await crawl("data:,", spider=AsksLater, later=urls, settings=settings)
        assert len(result.pages) == 1 + number
        assert isinstance(result.downloader.slots, CountsLooks)
        looks.append(result.downloader.slots.looks / number)
    few, many = looks  # for each page
    assert many < 2 * few
