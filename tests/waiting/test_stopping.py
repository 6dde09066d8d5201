"""A crawl that stops while requests wait: it ends within seconds, begins no fetch, and loses no request of a JOBDIR."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crawling import CrawlSpider, SlotByOrigin, Time, close_spider, crawl, is_fetching
from in_loop import in_loop
from processes import REACTORS, crawl_process, crawled, until
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from web import RULES, Web, answer

from scrapy_rep import AccessResult, RepMiddleware
from scrapy_rep.deferreds import within
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import OCTETS_OF_ORIGIN

HANGS, HELD = answer(kind="hang"), answer(RULES, kind="hold")
# Seconds after which all requests have begun to wait.
WAITED: dict[str, Any] = {"ready_after": 0.8}


@pytest.mark.parametrize("reactor", REACTORS)
def test_sigint_ends_the_crawl_while_requests_wait(web: Web, reactor: str) -> None:
    sites = [web.robots(robots) for robots in (answer(status=503), answer(status=503), HANGS, HANGS, HANGS)]
    urls = [site.url(f"/{n}") for site in sites for n in range(10)]
    settings = {**REACTORS[reactor], "REP_FETCH_CONCURRENCY": 2, "REP_UNREACHABLE_WAIT": 600}
    with crawl_process(urls, settings, **WAITED, waited=len(urls)) as process:
        process.until_ready()
        until(lambda: all(site.requests for site in sites))
        asked = [len(site.requests) for site in sites]
        process.interrupt()
        ended = process.ended(15)
    assert [len(site.requests) for site in sites] == asked, "no fetch begins after the signal"
    assert ended.stats["finish_reason"] == "shutdown"
    assert ended.ends == [], "requests in the queue have no result"
    assert ended.stats["scheduler/enqueued"] == 2 * len(urls), "all requests went back to the queue"
    assert ended.complaints == []


STOPS = {"asyncio": "close_spider", "none": "engine.close", "select": "crawler.stop"}


@pytest.mark.parametrize("reactor", REACTORS)
def test_a_crawl_that_stops_itself_ends_while_requests_wait(web: Web, reactor: str) -> None:
    site = web.robots(HANGS)
    urls = [site.url(f"/{n}") for n in range(30)]
    with crawl_process(urls, REACTORS[reactor], **WAITED, waited=len(urls), stop=STOPS[reactor]) as process:
        process.until_ready()
        ended = process.ended(15)
    assert ended.stats["finish_reason"] == ("enough" if reactor == "asyncio" else "shutdown")
    assert ended.ends == []
    assert ended.stats["scheduler/enqueued"] == 2 * len(urls)
    assert site.targets == ["/robots.txt"]
    assert ended.complaints == []


@pytest.mark.parametrize("reactor", REACTORS)
def test_requests_that_waited_are_fetched_when_the_job_is_resumed(web: Web, tmp_path: Path, reactor: str) -> None:
    good, dead = web.robots(RULES), web.robots([HANGS, answer(RULES)])
    requests: list[dict[str, Any]] = [
        {"url": site.url(f"/{n}"), "dont_filter": n % 2 == 0, "priority": n % 3, "meta": {"mark": n}}
        for n in range(20)
        for site in (good, dead)
    ]
    settings = {**REACTORS[reactor], "JOBDIR": str(tmp_path / "job"), "DOWNLOADER": "crawling.SlotByOrigin"}
    with crawl_process(requests, settings, **WAITED) as process:
        process.until_ready()
        until(lambda: len(good.targets) == 1 + 20 and dead.targets)
        process.interrupt()
        first = process.ended(15)
    assert {end["url"] for end in first.ends} == {good.url(f"/{n}") for n in range(20)}, (
        "the errback is not called for the others"
    )
    assert dead.targets == ["/robots.txt"]
    second = crawled([], settings)
    assert second.stats["finish_reason"] == "finished"
    for site, ended in (good, first), (dead, second):
        assert Counter(site.targets) - Counter(["/robots.txt"] * 2) == Counter(f"/{n}" for n in range(20))
        assert Counter(end["url"] for end in ended.ends) == Counter(site.url(f"/{n}") for n in range(20))
    as_they_were = {r["url"]: (r["dont_filter"], r["priority"], r["meta"]) for r in requests}
    for end in first.ends + second.ends:
        assert (end["dont_filter"], end["priority"], {"mark": end["mark"]}) == as_they_were[end["url"]]
    assert first.complaints == second.complaints == []


def test_a_job_that_is_stopped_again_and_again_loses_and_repeats_no_request(web: Web, tmp_path: Path) -> None:
    site = web.robots([HANGS, answer(status=503), answer(RULES)])
    settings = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 2, "REP_WAITING_MAX": 5}
    urls = [site.url(f"/{n}") for n in range(12)]
    for n in range(2):
        again = {**settings, "REP_UNREACHABLE_WAIT": 600}
        with crawl_process(urls if n == 0 else [], again, **WAITED) as process:
            process.until_ready()
            process.interrupt()
            ended = process.ended(15)
        assert ended.ends == []
        assert ended.complaints == []
    last = crawled([], settings)
    assert Counter(end["url"] for end in last.ends) == Counter(urls)
    assert Counter(site.targets) == Counter(["/robots.txt"] * 3 + [f"/{n}" for n in range(12)])


@pytest.mark.parametrize("most", [3, 1000])
def test_a_job_that_is_stopped_and_then_killed_loses_no_waiting_request(web: Web, tmp_path: Path, most: int) -> None:
    sites = [web.robots(HELD) for _ in range(2)]
    settings = {
        "JOBDIR": str(tmp_path / "job"),
        "DOWNLOADER": "crawling.SlotByOrigin",
        "REP_WAITING_MAX": most,
        "SCHEDULER_START_DISK_QUEUE": None,
    }
    urls = [site.url(f"/{n}") for n in range(2) for site in sites]
    with crawl_process(urls, settings, **WAITED) as process:
        process.until_ready()
        process.interrupt()
        process.ended(15)
    with crawl_process([], settings, **WAITED) as process:
        process.until_ready()
        assert process.killed()
    web.release(*sites)
    last = crawled([], settings)
    assert Counter(end["url"] for end in last.ends) == Counter(urls)
    assert last.complaints == []
    assert not (tmp_path / "job" / "requests.waiting").exists()


@ensureDeferred
async def test_a_copy_that_cannot_be_read_is_logged_once_and_deleted(web: Web, tmp_path: Path) -> None:
    file = tmp_path / "requests.waiting"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE waiting (number INTEGER PRIMARY KEY, request BLOB)")
        db.execute("INSERT INTO waiting (request) VALUES (?)", (b"no request",))
    db.close()
    site = web.robots(RULES)
    said = []
    for path in ("/1", "/2"):
        result = await crawl(site.url(path), settings={"JOBDIR": str(tmp_path)})
        assert list(result.pages) == [site.url(path)]
        said.append([message for message in result.messages(logging.ERROR) if "cannot be read" in message])
    assert said == [["A copy of a request that waited for robots.txt cannot be read, so the request is lost"], []]
    assert not file.exists()


@ensureDeferred
async def test_a_kept_data_url_goes_on(tmp_path: Path) -> None:
    """The crawl was killed after the door had taken this request from the queue."""
    with sqlite3.connect(tmp_path / "requests.waiting") as db:
        db.execute("CREATE TABLE waiting (number INTEGER PRIMARY KEY, request BLOB)")
        kept = Request("data:,kept", meta={"asked": "data:,kept"})
        db.execute("INSERT INTO waiting (request) VALUES (?)", (pickle.dumps(kept.to_dict()),))
    db.close()
    result = await crawl(settings={"JOBDIR": str(tmp_path)})
    assert list(result.pages) == ["data:,kept"]
    assert not (tmp_path / "requests.waiting").exists()


def test_a_stopped_job_can_be_resumed_without_the_plugin(web: Web, tmp_path: Path) -> None:
    site = web.robots(HELD)
    requests: list[dict[str, Any]] = [{"url": site.url(f"/{n}"), "priority": n, "meta": {"mark": n}} for n in range(4)]
    settings = {"JOBDIR": str(tmp_path / "job")}
    with crawl_process(requests, settings, **WAITED) as process:
        process.until_ready()
        process.interrupt()
        process.ended(15)
    web.release(site)
    without = crawled([], {**settings, "ADDONS": {}})
    found = {end["url"]: (end["priority"], end["dont_filter"], end["meta"]) for end in without.ends}
    assert found == {r["url"]: (r["priority"], False, ["mark"]) for r in requests}


class Holds:
    """Holds the first request in the downloader, until another origin has replaced its origin in memory."""

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler

    async def process_request(self, request: Request) -> None:
        spider = self.crawler.spider
        if request.url == spider.first:
            spider.asked = True
            while not spider.is_other_known:
                await sleep(0.01)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Holds:
        return cls(crawler)


@ensureDeferred
async def test_a_request_that_waits_again_in_the_downloader_goes_back_to_the_queue(web: Web, tmp_path: Path) -> None:
    site, other = web.robots([answer(RULES), HANGS, answer(RULES)]), web.robots(RULES)

    class Two(CrawlSpider):
        first = site.url("/held")
        asked = is_other_known = False

        async def start(self) -> Any:
            yield self.prepared(self.first)
            while not self.asked:
                await sleep(0.01)
            yield self.prepared(other.url("/other"))

        def parse(self, response: Response, **_: Any) -> None:
            super().parse(response)
            if response.url == other.url("/other"):
                type(self).is_other_known = True
                asyncio.ensure_future(self.stop())  # noqa: RUF006

        async def stop(self) -> None:
            while len(site.robots_requests) < 2:
                await sleep(0.01)
            close_spider(self, "enough")

    held = {"DOWNLOADER_MIDDLEWARES": {Holds: 50}}
    settings = {"JOBDIR": str(tmp_path), "REP_MEMORY_OCTETS": OCTETS_OF_ORIGIN, "DOWNLOADER": SlotByOrigin}
    first = await crawl(spider=Two, settings={**settings, **held})
    assert list(first.pages) == [other.url("/other")]
    assert [str(error) for error in first.failed.values()] == [
        "The crawl closed while the request waited for robots.txt, and it is back in the queue"
    ]
    second = await crawl(settings=settings)
    assert list(second.pages) == [site.url("/held")]


MEDIA = ["files", "screenshots", "callback", "verdict"]
MEDIA_CRAWL: dict[str, Any] = {"command": (str(Path(__file__).parent.parent / "helpers" / "media_crawl.py"),)}
ALL_WITH_FILES = [f"{n}: 1" for n in range(6)]


def media_settings(tmp_path: Path, **settings: Any) -> dict[str, Any]:
    return {"FILES_STORE": str(tmp_path / "files"), "CONCURRENT_REQUESTS_PER_DOMAIN": 16, **settings}


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize(("how", "reactor"), [("SIGTERM", "asyncio"), ("SIGINT", "asyncio"), ("SIGINT", "select")])
def test_downloads_that_a_page_needs_go_on_waiting_when_the_crawl_closes(
    web: Web, tmp_path: Path, media: str, how: str, reactor: str
) -> None:
    site, elsewhere, hangs = web.robots(RULES), web.robots(HELD), web.robots(HANGS)
    urls = [*(site.url(f"/{n}") for n in range(6)), hangs.url("/7"), elsewhere.url("/8")]
    task: dict[str, Any] = {"media": media, "elsewhere": elsewhere.origin, **MEDIA_CRAWL, **WAITED}
    with crawl_process(urls, media_settings(tmp_path, **REACTORS[reactor]), **task) as process:
        process.until_ready()
        process.send_signal(signal.Signals[how])
        until(lambda: "Closing spider" in process.log)
        web.release(elsewhere)
        ended = process.ended(15)
    assert sorted(ended.notes) == ALL_WITH_FILES
    assert elsewhere.targets[0] == "/robots.txt"
    files = [] if media == "verdict" else [f"/file{n}" for n in range(6)]
    assert sorted(elsewhere.targets[1:]) == files, "the requests from the scheduler are not sent"
    assert ended.stats["scheduler/enqueued"] == len(urls) + 2
    assert ended.complaints == []


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("is_stored", [False, True], ids=["unknown", "stored"])
def test_downloads_that_a_page_begins_to_need_while_the_crawl_closes(
    web: Web, tmp_path: Path, media: str, is_stored: bool
) -> None:
    site = web.site({"/robots.txt": answer(RULES), "*": answer("page", delay=0.5)})
    elsewhere = web.robots(RULES)
    settings = media_settings(tmp_path, CLOSESPIDER_PAGECOUNT=2)  # the robots.txt, and one of six pages
    if is_stored:
        settings["REP_STORAGE"] = f"sqlite:///{tmp_path / 'rep.sqlite'}"
        crawled([elsewhere.url("/")], {"REP_STORAGE": settings["REP_STORAGE"]})
    task: dict[str, Any] = {"media": media, "elsewhere": elsewhere.origin, **MEDIA_CRAWL}
    ended = crawled([site.url(f"/{n}") for n in range(6)], settings, **task)
    assert ended.stats["finish_reason"] == "closespider_pagecount"
    assert sorted(ended.notes) == ALL_WITH_FILES
    assert len(elsewhere.robots_requests) == 1
    assert ended.complaints == []


def test_a_second_signal_does_not_wait_for_downloads_that_a_page_needs(web: Web, tmp_path: Path) -> None:
    site, hangs = web.robots(RULES), web.robots(HANGS)
    task: dict[str, Any] = {"media": "files", "elsewhere": hangs.origin, **MEDIA_CRAWL, **WAITED}
    settings = media_settings(tmp_path, REP_FETCH_TIMEOUT=60)
    with crawl_process([site.url("/0")], settings, **task) as process:
        process.until_ready()
        process.interrupt()
        until(lambda: "Closing spider" in process.log)
        process.interrupt()
        ended = process.ended(15)
    assert ended.notes == []


@ensureDeferred
async def test_requests_that_do_not_come_from_the_scheduler_are_decided(web: Web) -> None:
    """The pauses between rounds end with the crawl, and what was fetched decides."""
    site, held, down = web.robots(RULES), web.robots(HELD), web.robots(answer(status=503))
    ends: dict[str, str] = {}

    class Downloads(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> None:
            engine = self.crawler.engine
            assert engine is not None
            both = [asyncio.ensure_future(self.download(url)) for url in (held.url("/"), held.url("/private"))]
            asyncio.get_running_loop().call_later(0.7, self.stop)
            await self.download(down.url("/"))
            web.release(held)
            await asyncio.gather(*both)
            await self.download(down.url("/late"))  # memory knows this robots.txt
            await self.download(site.url("/late"))

        async def download(self, url: str) -> None:
            try:
                await self.crawler.engine.download_async(Request(url))
                ends[url] = "page"
            except Exception as exc:  # noqa: BLE001 - it is what the test is about
                ends[url] = type(exc).__name__

        def stop(self) -> None:
            assert self.crawler.engine is not None
            asyncio.ensure_future(self.crawler.engine.close_spider_async(reason="enough"))  # noqa: RUF006

    # If the stop waited, `faulthandler_timeout` would end the test.
    result = await crawl(Request(site.url("/")), spider=Downloads, settings={"REP_UNREACHABLE_WAIT": 600})
    refused = "RobotsUnreachable"
    assert ends == {
        down.url("/"): refused,
        held.url("/"): "page",
        held.url("/private"): "ForbiddenByRobots",
        down.url("/late"): refused,
        site.url("/late"): "page",
    }
    assert (len(held.robots_requests), len(down.robots_requests)) == (1, 1)
    assert result.tracebacks == []


@ensureDeferred
async def test_a_fetch_that_ended_with_the_crawl_begins_again_for_a_download(web: Web) -> None:
    """A request from the scheduler waited, and its fetch was cancelled. Then a callback needs the same robots.txt."""
    other = web.robots([HANGS, answer(RULES)])
    page = web.site({"/page": answer(kind="hold")})

    class Late(CrawlSpider):
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            while not (other.robots_requests and page.targets):
                await sleep(0.01)
            close_spider(self, "enough")
            assert self.crawler.engine is not None
            # In the same step of the event loop, before the cancelled fetch has ended.
            await sleep(0)
            self.crawl.ends.append(await self.crawler.engine.download_async(Request(other.url("/now"))))
            web.release(page)

    held = Request(page.url("/page"), meta={"dont_obey_robotstxt": True, "download_slot": "elsewhere"})
    result = await crawl(held, other.url("/"), spider=Late)
    assert [response.url for response in result.ends] == [other.url("/now")]
    assert other.targets == ["/robots.txt", "/robots.txt", "/now"]
    assert result.tracebacks == []


@pytest.mark.parametrize(
    ("queue", "seconds"),
    [
        # Both robots.txt share a slot, which sends one request at a time. The waiting requests have been released.
        pytest.param({"CONCURRENT_REQUESTS_PER_DOMAIN": 1}, 1.0, id="in-the-slot"),
        # The waiting requests have not been released yet.
        pytest.param({"REP_FETCH_CONCURRENCY": 1}, 0.05, id="before-it"),
    ],
)
@ensureDeferred
async def test_a_fetch_that_was_queued_behind_another_never_begins(
    web: Web, queue: dict[str, int], seconds: float
) -> None:
    slow, queued = web.robots(answer(RULES, kind="hold")), web.robots(RULES)
    page = web.site({"/page": answer(kind="hold")})

    class Stops(CrawlSpider):
        async def start(self) -> Any:
            for request in self.requests:
                yield self.prepared(request)
                await sleep(0.1)
            asyncio.ensure_future(self.later())  # noqa: RUF006
            close_spider(self, "enough")

        async def later(self) -> None:
            await sleep(seconds)
            web.release(slow)
            await sleep(0.3)
            web.release(page)

    held = Request(page.url("/page"), meta={"dont_obey_robotstxt": True, "download_slot": "elsewhere"})
    result = await crawl(held, slow.url("/"), queued.url("/"), spider=Stops, settings=queue)
    assert page.url("/page") in result.pages
    assert slow.targets[0] == "/robots.txt"
    assert queued.targets == []
    assert result.tracebacks == []


@ensureDeferred
async def test_a_fetch_for_which_no_request_waits_ends_with_the_crawl(web: Web) -> None:
    site, time = web.robots(answer(status=503)), Time()

    class Late(CrawlSpider):
        def failed(self, failure: Any) -> Any:
            time.now += 6  # the backoff is over
            if not self.crawl.failed:
                self.crawl.failed["first"] = failure.value
                yield failure.request.replace(dont_filter=True)

    class Clocked(RepMiddleware):
        clock = staticmethod(time)  # its sleeps are real

    middlewares = {RepMiddleware: None, Clocked: 100}
    settings = {"REP_FETCH_RETRIES": 1, "DOWNLOADER_MIDDLEWARES": middlewares}
    result = await crawl(site.url("/"), spider=Late, settings=settings)
    # Two requests while a request waited, one while none waited, and no retry after the crawl.
    assert result.stats["robotstxt/request_count"] == 3
    await deferred_from_coro(sleep(1.2))
    assert len(site.requests) == 3
    assert result.tracebacks == []


@ensureDeferred
async def test_a_callback_that_waits_for_a_verdict_does_not_delay_the_stop(web: Web) -> None:
    site, down = web.robots(RULES), web.robots(answer(status=503, headers={"Retry-After": "25"}))

    class Asks(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> None:
            middleware = self.crawler.get_downloader_middleware(RepMiddleware)
            assert middleware is not None
            closing = asyncio.ensure_future(self.closed_soon())
            verdict = await asyncio.wait_for(middleware.verdict(down.url("/")), 10)
            await closing
            self.crawl.ends.append(verdict.access)

        async def closed_soon(self) -> None:
            await sleep(0.3)
            deferred_from_coro(self.crawler.engine.close_spider_async(reason="enough"))

    result = await crawl(site.url("/"), spider=Asks, settings={"REP_UNREACHABLE_WAIT": 40})
    assert result.ends == [AccessResult.UNREACHABLE]
    assert result.tracebacks == []


@ensureDeferred
async def test_a_cancelled_fetch_is_no_internal_error_while_the_crawl_closes(web: Web) -> None:
    """Without a reactor, a second signal cancels all tasks, first perhaps the wait and then the fetch."""
    site, hangs = web.robots(RULES), web.robots(HANGS)

    class Cancels(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> None:
            middleware = RepMiddleware.of(self.crawler)
            wait = asyncio.ensure_future(middleware.verdict(hangs.url("/")))
            while not hangs.requests:
                await sleep(0.01)
            close_spider(self, "enough")
            await sleep(0.1)
            (fetch,) = middleware._single_flight._fetches.values()
            wait.cancel()
            await sleep(0)
            assert fetch.task is not None
            fetch.task.cancel()
            self.crawl.ends.append("cancelled")

    result = await crawl(site.url("/"), spider=Cancels)
    assert result.ends == ["cancelled"]
    assert result.tracebacks == []


class Stops(CrawlSpider):
    """Stops when each of its requests is under way."""

    async def start(self) -> Any:
        for request in self.requests:
            yield self.prepared(request)
            await sleep(0.3)
        close_spider(self, "enough")


@ensureDeferred
async def test_a_robots_txt_that_hangs_does_not_delay_the_stop(web: Web) -> None:
    site, hangs = web.robots(RULES), web.robots(HANGS)
    urls = [site.url("/0"), hangs.url("/"), site.url("/1")]
    # If the stop waited for it, `faulthandler_timeout` would end the test.
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "REP_FETCH_TIMEOUT": 600, "DOWNLOAD_TIMEOUT": 600}
    limits: list[int] = []

    class NotesLimits(Stops):
        def closed(self, _reason: str) -> None:
            limits.extend(slot.concurrency for slot in self.crawler.engine.downloader.slots.values())

    result = await crawl(*urls, spider=NotesLimits, settings=settings)
    assert limits == [1], "the limit of the slot is as before"
    assert list(result.pages) == [site.url("/0"), site.url("/1")]
    assert result.failed == {}
    assert result.stats["scheduler/enqueued"] == 3 + 1, "the waiting request went back to the queue"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system has no list of open files")
@ensureDeferred
async def test_a_robots_txt_that_arrives_after_the_crawl_leaves_no_file_open(web: Web) -> None:
    await crawl(web.robots(RULES).url("/"))  # some files are opened once for a process
    before = len(os.listdir("/proc/self/fd"))
    sites = [web.robots(answer(RULES, delay=1.2)) for _ in range(2)]
    await crawl(*(site.url("/") for site in sites), spider=Stops, settings={"DOWNLOADER": SlotByOrigin})
    for _ in range(100):
        if len(os.listdir("/proc/self/fd")) <= before:
            break
        await deferred_from_coro(sleep(0.1))
    assert len(os.listdir("/proc/self/fd")) <= before


async def ends_when(may_end: asyncio.Event) -> None:
    try:
        await sleep(60)
    finally:
        await may_end.wait()


@in_loop
async def test_a_cancellation_is_not_reported_as_a_timeout() -> None:
    may_end = asyncio.Event()
    waiting = asyncio.ensure_future(within(60, ends_when(may_end), TimeoutError("late")))
    await sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 30)
    may_end.set()


@in_loop
async def test_a_timeout_does_not_wait_for_the_end_of_the_call() -> None:
    may_end = asyncio.Event()
    with pytest.raises(TimeoutError, match="late"):
        await asyncio.wait_for(within(0.05, ends_when(may_end), TimeoutError("late")), 30)
    may_end.set()


class ClosesByAMethodThatItKept(CrawlSpider):
    """As an extension does that keeps `close_spider_async` when it gets `spider_opened`."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **attributes: Any) -> ClosesByAMethodThatItKept:
        spider = super().from_crawler(crawler, *args, **attributes)
        crawler.signals.connect(spider.keep, signals.spider_opened)
        return spider

    def keep(self) -> None:
        assert self.crawler.engine is not None
        self.kept = self.crawler.engine.close_spider_async

    async def start(self) -> Any:
        for request in self.requests:
            yield self.prepared(request)
        while not is_fetching(self.crawler):
            await sleep(0.01)
        asyncio.ensure_future(self.kept(reason="enough"))  # noqa: RUF006


@ensureDeferred
async def test_a_close_by_a_method_that_was_kept_early_does_not_wait_for_robots_txt(web: Web) -> None:
    site = web.robots(answer(kind="hang"))
    result = await crawl(site.url("/"), spider=ClosesByAMethodThatItKept, settings={"REP_FETCH_TIMEOUT": 60})
    assert result.stats["finish_reason"] == "enough"
    assert result.stats["elapsed_time_seconds"] < 30
