"""Scrapy with one of its parts out of our sight, as if a release had renamed it: the crawl obeys all the same, and says
once what it loses."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import scrapy.core.engine
from crawling import BY_ORIGIN, Crawl, CrawlSpider, close_spider, crawl
from installed_scrapy import HANDLERS
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.core.downloader import Downloader, Slot
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scheduler import Scheduler
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.misc import load_object
from web import RULES, Web, answer

from scrapy_rep.scrapy_internals import COSTS
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.scrapy_internals.downloads import LIMITED

EngineSlot = vars(scrapy.core.engine)["_Slot"]
NO_DOOR = "Requests that wait for a robots.txt count against CONCURRENT_REQUESTS in this crawl"

# Since Scrapy 2.19 the engine has the scheduler, too.
NO_SCHEDULER = [] if hasattr(ExecutionEngine, "scheduler") else [NO_DOOR]

# The class, the name in it that we do not find, and how the WARNINGs begin.
HIDDEN: list[tuple[type, str, list[str]]] = [
    (Downloader, "active", [COSTS["Downloader.needs_backout"]]),
    (Downloader, "total_concurrency", [COSTS["Downloader.needs_backout"]]),
    (Downloader, "slots", [COSTS["Downloader.slots"]]),
    (Slot, "delay", [COSTS["Downloader.slots"]]),
    (Slot, "lastseen", [COSTS["Downloader.slots"]]),
    (Slot, "queue", [COSTS["Slot.queue"]]),
    (
        DownloaderAwarePriorityQueue,
        "_downloader_interface",
        [COSTS["DownloaderAwarePriorityQueue._downloader_interface"]],
    ),
    (EngineSlot, "nextcall", [COSTS["ExecutionEngine._slot.nextcall"]]),
    (EngineSlot, "scheduler", NO_SCHEDULER),
    (ExecutionEngine, "_slot", NO_SCHEDULER),
    (Scheduler, "next_request", [NO_DOOR]),
    (Scheduler, "mqs", []),
    (Scheduler, "dqs", []),
]


def hide(monkeypatch: pytest.MonkeyPatch, cls: type, name: str) -> None:
    """Let `scrapy_rep` find no such attribute in the instances of the class. Scrapy itself finds it."""
    find: Any = cls.__getattribute__

    def find_unless_hidden(self: object, attribute: str) -> Any:
        if attribute == name and sys._getframe(1).f_globals["__name__"].startswith("scrapy_rep."):
            raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
        return find(self, attribute)

    monkeypatch.setattr(cls, "__getattribute__", find_unless_hidden)


async def crawl_that_uses_all(web: Web) -> Crawl:
    """Requests that wait, are refused, are delayed, and are waiting still when the crawl stops."""
    site = web.robots("user-agent: *\ndisallow: /private\ncrawl-delay: 0.05")
    dead = web.robots(answer(RULES, kind="hold"))

    later: list[CallLaterResult] = []

    class Stops(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            for url in (site.url("/a"), site.url("/private"), dead.url("/"), site.url("/b")):
                yield self.prepared(url)
            while len(self.crawl.pages) < 2 or not self.crawl.refused or not dead.targets:
                await sleep(0.01)
            close_spider(self, "enough")
            later.append(call_later(0.3, web.release, dead))  # for the requests that wait for it

    settings = {**BY_ORIGIN, "REP_CRAWL_DELAY_MAX": 1}
    result = await crawl(spider=Stops, settings=settings)
    later[0].cancel()  # else it may come when the tests have ended, and their web with them
    assert set(result.pages) - {dead.url("/")} == {site.url("/a"), site.url("/b")}
    assert list(result.refused) == [site.url("/private")]
    assert dead.targets[0] == "/robots.txt"
    assert result.stats["finish_reason"] == "enough"
    assert result.tracebacks == []
    return result


@ensureDeferred
async def test_a_crawl_with_scrapy_as_it_is_says_nothing(web: Web) -> None:
    assert (await crawl_that_uses_all(web)).messages() == []


@pytest.mark.parametrize(("cls", "name", "costs"), HIDDEN, ids=[f"{cls.__name__}.{name}" for cls, name, _ in HIDDEN])
@ensureDeferred
async def test_without_a_part_a_crawl_obeys_and_says_what_it_loses(
    web: Web, monkeypatch: pytest.MonkeyPatch, cls: type, name: str, costs: list[str]
) -> None:
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 0.5)  # five seconds are long for a test
    hide(monkeypatch, cls, name)
    result = await crawl_that_uses_all(web)
    messages = result.messages()
    assert len(messages) == len(costs), messages
    assert all(message.startswith(cost) for message, cost in zip(messages, costs, strict=True)), messages
    kind = "ignored" if COSTS["Downloader.slots"] in costs else "obeyed"
    assert {stat: n for stat, n in result.stats.items() if "crawl_delay" in stat} == {f"rep/crawl_delay/{kind}": 1}


# The class, the name in it that we do not find, and how the WARNING begins.
HIDDEN_IN_HANDLERS = [
    ("twisted", DownloadHandlers, "download_request_async", COSTS["DownloadHandlers.download_request_async"]),
    ("aiohttp", DownloadHandlers, "_get_handler", COSTS["AiohttpDownloadHandler._session"]),
    ("aiohttp", None, "_session", COSTS["AiohttpDownloadHandler._session"]),
    ("httpx", DownloadHandlers, "_get_handler", COSTS["HttpxDownloadHandler._limits"]),
    *(
        ("httpx", None, name, COSTS["HttpxDownloadHandler._limits"])
        for name in ("_limits", "_make_client", "_default_client")
    ),
]


@pytest.mark.parametrize("hidden", HIDDEN_IN_HANDLERS, ids=str)
@ensureDeferred
async def test_without_a_part_of_a_handler_pages_are_judged_and_a_warning_says_what_is_lost(
    web: Web, monkeypatch: pytest.MonkeyPatch, hidden: tuple[str, type | None, str, str]
) -> None:
    handler, cls, name, cost = hidden
    if handler not in HANDLERS:
        return
    site = web.robots(RULES)
    hide(monkeypatch, cls or load_object(HANDLERS[handler]), name)
    settings = {"DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]}}
    result = await crawl(site.url("/a"), site.url("/private"), settings=settings)
    assert (list(result.pages), list(result.refused)) == ([site.url("/a")], [site.url("/private")])
    assert [message for message in result.messages() if message.startswith(cost)] != []


class CountsItself(Downloader):
    def needs_backout(self) -> bool:
        return len(self.active) >= 8


@ensureDeferred
async def test_with_a_downloader_that_counts_itself_a_warning_says_what_is_lost(web: Web) -> None:
    site = web.robots(RULES)
    result = await crawl(site.url("/a"), site.url("/private"), settings={"DOWNLOADER": CountsItself})
    assert (list(result.pages), list(result.refused)) == ([site.url("/a")], [site.url("/private")])
    (message,) = result.messages()
    assert message.startswith(COSTS["Downloader.needs_backout"])


def test_every_part_with_a_cost_is_hidden_once() -> None:
    said = {message for *_, costs in HIDDEN for message in costs} | {cost for *_, cost in HIDDEN_IN_HANDLERS}
    assert said == {NO_DOOR, *COSTS.values()}


class BaseStreamingDownloadHandler(HTTP11DownloadHandler):
    """Handlers are recognised by this name, because Scrapy's class is private."""


class UnknownHandler(BaseStreamingDownloadHandler):
    pass


class CurlCffiDownloadHandler(BaseStreamingDownloadHandler):
    _pool_size_total = 16


class DerivedFromIt(CurlCffiDownloadHandler):
    pass


@pytest.mark.parametrize("handler", [UnknownHandler, CurlCffiDownloadHandler, DerivedFromIt, HTTP11DownloadHandler])
@ensureDeferred
async def test_a_handler_whose_pool_may_keep_its_limit_is_named_once(
    web: Web, handler: type[HTTP11DownloadHandler]
) -> None:
    site = web.robots(RULES)
    result = await crawl(site.url("/a"), settings={"DOWNLOAD_HANDLERS": {"http": handler, "https": handler}})
    assert list(result.pages) == [site.url("/a")]
    assert result.messages() == ([LIMITED % "UnknownHandler"] if handler is UnknownHandler else [])
    used: Any = result.crawler.engine and result.crawler.engine.downloader.handlers._handlers["http"]
    assert getattr(used, "_pool_size_total", 0) == (2_016 if isinstance(used, CurlCffiDownloadHandler) else 0)
