"""Requests that wait while a handler or a fetch fails, the clock is set, or origins leave the memory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from crawling import ADDON, BUILTIN, CrawlSpider, SlotByOrigin, Time, crawl, in_turn, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.internet.defer import CancelledError
from web import RULES, Web, answer, redirect

from scrapy_rep import RepMiddleware, RobotsUnreachable
from scrapy_rep.fetching.driver import Driver
from scrapy_rep.fetching.memory import Memory
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import Terms
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import OCTETS_OF_ORIGIN
from scrapy_rep.signals import request_forbidden, request_waited, robots_known, robots_parsed, robots_response


@pytest.mark.parametrize("error", [asyncio.CancelledError, CancelledError, ValueError])
@ensureDeferred
async def test_a_handler_of_request_waited_that_fails_loses_no_request(web: Web, error: type[BaseException]) -> None:
    site = web.robots(answer(RULES, delay=0.1))
    told: list[str] = []

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(fails, request_waited)

    def fails(request: Request) -> None:
        told.append(request.url)
        raise error

    class Downloads(CrawlSpider):
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            assert self.crawler.engine is not None
            await self.crawler.engine.download_async(Request(site.url("/media")))
            self.crawl.ends.append("media")

    urls = [site.url(f"/{n}") for n in range(5)]
    result = await crawl(*urls, spider=Downloads, prepare=prepare, settings={"CLOSESPIDER_TIMEOUT": 10})
    assert sorted(result.pages) == urls
    assert result.ends == ["media"]
    assert sorted(told) == [*urls, site.url("/media")], "once for each request"
    assert result.stats["finish_reason"] == "finished"


@pytest.mark.parametrize("error", [asyncio.CancelledError, CancelledError, ValueError])
@ensureDeferred
async def test_a_handler_of_request_forbidden_that_fails_loses_no_request(web: Web, error: type[BaseException]) -> None:
    site, told = web.robots(RULES), []

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(fails, request_forbidden)

    def fails(request: Request) -> None:
        told.append(request.url)
        raise error

    class Goes(CrawlSpider):
        async def start(self) -> Any:
            yield self.prepared(site.url("/"))
            while not self.crawl.pages:  # then robots.txt is known
                await sleep(0.01)
            for path in ("/private/1", "/2"):
                yield self.prepared(site.url(path))

        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url == site.url("/2"):
                yield from (self.prepared(site.url(path)) for path in ("/private/3", "/4"))

    settings = {"CLOSESPIDER_TIMEOUT": 10}
    result = await crawl(spider=Goes, prepare=prepare, settings=settings)
    assert sorted(result.pages) == [site.url(path) for path in ("/", "/2", "/4")]
    assert sorted(told) == [site.url("/private/1"), site.url("/private/3")]
    assert result.stats["finish_reason"] == "finished"


@pytest.mark.parametrize("error", [asyncio.CancelledError, CancelledError, ValueError])
@pytest.mark.parametrize("signal", [robots_response, robots_known, robots_parsed], ids=["response", "known", "parsed"])
@ensureDeferred
async def test_a_handler_that_fails_does_not_end_the_fetch(
    web: Web, signal: object, error: type[BaseException]
) -> None:
    site, told = web.site({"/robots.txt": redirect("/moved"), "/moved": answer(RULES)}), []

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(fails, signal)

    def fails(request: Request) -> None:
        told.append(request.url)
        raise error

    result = await crawl(site.url("/a"), site.url("/private"), prepare=prepare)
    assert list(result.pages) == [site.url("/a")]
    assert list(result.refused) == [site.url("/private")]
    assert result.stats["rep/access/success"] == 1
    assert len(told) == (2 if signal is robots_response else 1)
    if signal is not robots_parsed or error is not asyncio.CancelledError:  # Scrapy does not log a cancelled handler
        assert len(result.tracebacks) == len(told), "the error is logged"


@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError("broken"), CancelledError("broken")])
@pytest.mark.parametrize("at_door", [True, False], ids=["at-the-door", "in-the-downloader"])
@ensureDeferred
async def test_if_the_fetch_has_an_internal_error_each_request_is_refused_once(
    web: Web, monkeypatch: pytest.MonkeyPatch, at_door: bool, error: BaseException
) -> None:
    """No request goes on without a verdict, and none waits until the crawl closes."""
    site, other = web.robots(RULES), web.robots(answer(RULES, delay=0.3))
    policy, told = Driver.run, []

    async def fails(self: Driver, origin: Any, *args: Any) -> Any:
        if f"{origin}" == other.origin:
            return await policy(self, origin, *args)
        await sleep(0.1)
        raise error

    monkeypatch.setattr(Driver, "run", fails)

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(lambda request: told.append(request.url), request_forbidden, weak=False)

    urls = [site.url(f"/{n}") for n in range(20)]
    settings = {"CLOSESPIDER_TIMEOUT": 10, **({} if at_door else {"REP_WAITING_MAX": 0})}
    result = await crawl(*urls, other.url("/"), settings=settings, prepare=prepare)
    assert list(result.pages) == [other.url("/")]
    assert sorted(result.refused) == sorted(told) == sorted(urls)
    for refused in result.refused.values():
        assert isinstance(refused, RobotsUnreachable)
        assert f"internal error, {type(error).__name__}: broken" in str(refused)
    assert result.stats["rep/dropped/unreachable"] == 20
    assert result.stats["finish_reason"] == "finished"
    assert result.tracebacks == [f"Internal error while fetching {site.url('/robots.txt')}"]
    assert site.requests == []


@pytest.mark.parametrize("failing", [(Terms, "policy_at"), (Memory, "put")], ids=["policy_at", "put"])
@pytest.mark.parametrize("at_door", [True, False], ids=["at-the-door", "in-the-downloader"])
@pytest.mark.parametrize("is_dry_run", [False, True], ids=["obeying", "dry-run"])
@ensureDeferred
async def test_if_memory_fails_each_request_is_refused_once(
    web: Web, monkeypatch: pytest.MonkeyPatch, failing: tuple[type, str], at_door: bool, is_dry_run: bool
) -> None:
    """No policy of the site can be built, or none can be put into memory."""
    site, other = web.robots(RULES), web.robots(answer(RULES, delay=0.3))
    right = getattr(*failing)

    def fails(self: Any, first: Any, *args: Any) -> Any:
        if site.origin in (str(first), getattr(first, "robots_url", "").removesuffix("/robots.txt")):
            raise ValueError("broken")
        return right(self, first, *args)

    monkeypatch.setattr(*failing, fails)
    urls = [site.url(f"/{n}") for n in range(40)]
    settings = {"CLOSESPIDER_TIMEOUT": 10, "REP_DRY_RUN": is_dry_run, **({} if at_door else {"REP_WAITING_MAX": 0})}
    result = await crawl(*urls, other.url("/"), settings=settings)
    assert sorted(result.pages) == sorted([*(urls if is_dry_run else []), other.url("/")])
    assert sorted(result.refused) == sorted([] if is_dry_run else urls)
    assert {refused.cause for refused in result.refused.values()} <= {"internal error, ValueError: broken"}
    assert result.stats["rep/dry_run/unreachable" if is_dry_run else "rep/dropped/unreachable"] == 40
    assert result.stats["finish_reason"] == "finished"


@ensureDeferred
async def test_an_internal_error_keeps_good_rules_and_else_counts_as_an_outage(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, time = web.robots(RULES), Time()
    policy = Driver.run
    fetches: list[int] = []

    async def fails(self: Driver, *args: Any) -> Any:
        fetches.append(len(fetches))
        if fetches[-1] in (1, 2, 3):
            raise ValueError
        return await policy(self, *args)

    monkeypatch.setattr(Driver, "run", fails)
    fetched_in_background = 0.95 * DAY
    spider = in_turn(time, fetched_in_background, 0, DAY, 0, 6, 0, note=lambda end: (end, len(fetches)))
    result = await crawl(site.url("/"), spider=spider, settings=with_clock(time))
    refused = "RobotsUnreachable"
    assert result.ends == [
        ("page", 1),
        ("page", 2),
        ("page", 3),
        (refused, 4),
        (refused, 4),
        (refused, 5),
        ("page", 5),
    ]


class SlotFails(SlotByOrigin):
    """A project's own downloader, which cannot find the slot of some requests."""

    def get_slot_key(self, request: Request) -> str:
        if "/broken" in request.url:
            raise KeyError(request.url)
        return super().get_slot_key(request)


@pytest.mark.parametrize(
    "robots", [BUILTIN, ADDON, {**ADDON, "REP_WAITING_MAX": 0}], ids=["builtin", "at-the-door", "in-the-downloader"]
)
@ensureDeferred
async def test_a_request_whose_slot_cannot_be_found_fails_as_without_this_package(
    web: Web, robots: dict[str, Any]
) -> None:
    """Its errback gets the exception. The queue must not ask for the slot, as Scrapy's default queue does."""
    site = web.robots(answer(RULES, delay=0.1))
    urls = [site.url(path) for path in ("/broken/1", "/2", "/broken/3", "/4")]

    class Again(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url == site.url("/2"):  # robots.txt is known
                yield self.prepared(site.url("/broken/5"))

    settings = {
        "DOWNLOADER": SlotFails,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
        "CLOSESPIDER_TIMEOUT": 5,
    }
    result = await crawl(*urls, spider=Again, settings=settings, robots=robots)
    assert sorted(result.pages) == [site.url("/2"), site.url("/4")]
    assert sorted(result.failed) == [site.url(f"/broken/{n}") for n in (1, 3, 5)]
    assert {type(error) for error in result.failed.values()} == {KeyError}
    assert result.stats["finish_reason"] == "finished"


@pytest.mark.parametrize("by", [-86_400.0, 86_400.0], ids=["back", "ahead"])
@pytest.mark.parametrize("robots", [answer(RULES, delay=0.2), answer(status=503)], ids=["rules", "outage"])
@pytest.mark.parametrize("when", [0.1, 0.35, 0.7])
@ensureDeferred
async def test_a_clock_that_is_set_delays_no_request(web: Web, by: float, robots: Any, when: float) -> None:
    """The clock is set during the fetch, or while the requests that waited go on, one at a time."""
    site = web.site({"/robots.txt": robots, "*": answer("page", delay=0.1)})
    set_by = 0.0

    class Clocked(RepMiddleware):
        clock = staticmethod(lambda: time.time() + set_by)

    class Sets(CrawlSpider):
        async def start(self) -> Any:
            nonlocal set_by
            async for request in super().start():
                yield request
            await sleep(when)
            set_by += by

    urls = [site.url(f"/{n}") for n in range(6)]
    settings: dict[str, Any] = {**ADDON, "DOWNLOADER_MIDDLEWARES": {RepMiddleware: None, Clocked: 100}}
    settings |= {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "REP_UNREACHABLE_WAIT": 1, "CLOSESPIDER_TIMEOUT": 15}
    result = await crawl(*urls, spider=Sets, settings=settings)
    assert sorted([*result.pages, *result.refused]) == urls
    assert result.stats["finish_reason"] != "closespider_timeout"
    assert result.tracebacks == []


@pytest.mark.parametrize("queue", ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"])
@pytest.mark.parametrize("most", [1, 4])
@ensureDeferred
async def test_at_most_the_limit_and_one_request_for_each_origin_wait(
    web: Web, tmp_path: Path, most: int, queue: str
) -> None:
    """With memory for few origins, some requests of an origin are ready while others wait for its robots.txt."""
    sites = [web.robots(answer(RULES, delay=0.02)) for _ in range(8)]
    urls = [site.url(f"/{n}") for n in range(7) for site in sites]
    here: list[int] = []

    class Counts:
        went_on = 0

        def prepare(self, crawler: Crawler) -> None:
            self.crawler = crawler
            crawler.signals.connect(self.one_went_on, request_waited)

        def one_went_on(self) -> None:
            here.append(self.crawler.stats.get_value("rep/waited") - self.went_on)
            self.went_on += 1

    settings = {
        "JOBDIR": str(tmp_path),
        "REP_WAITING_MAX": most,
        "REP_MEMORY_OCTETS": 2 * OCTETS_OF_ORIGIN,
        "DOWNLOADER": SlotByOrigin,
        "CONCURRENT_REQUESTS": 2,
        "SCHEDULER_PRIORITY_QUEUE": f"scrapy.pqueues.{queue}",
    }
    counts = Counts()
    result = await crawl(*urls, settings=settings, prepare=counts.prepare)
    assert len(result.pages) == len(urls)
    in_downloader = 2  # requests whose origin left the memory after they had entered the downloader
    assert max(here) <= most + len(sites) + in_downloader
