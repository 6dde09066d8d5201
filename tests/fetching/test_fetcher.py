"""One request for a robots.txt. Every end of it is an `Answer`, and its context manager is left once."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, time
from typing import Any
from weakref import ref

import pytest
from crawling import CrawlSpider, crawl
from loopback import serving
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.signals import bytes_received
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError
from twisted.web._newclient import HTTP11ClientProtocol
from web import Web, answer, redirect

from scrapy_rep.crawl import Clock, Crawl
from scrapy_rep.fetching.download import Fetcher
from scrapy_rep.fetching.places import Connections
from scrapy_rep.fetching.request import Cookies
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.conversation import Ask
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_response

RULES = "user-agent: *\ndisallow: /private\n"

ONCE = {"REP_FETCH_RETRIES": 0, "REP_UNREACHABLE_WAIT": 0}
ANY = Origin("http", "any.example", None)


class Faulty:
    """A downloader middleware that fails as the URL's query says."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("?request"):
            raise RuntimeError("in process_request")
        if request.url.endswith("?ignored"):
            raise IgnoreRequest("not today")

    def process_response(self, request: Request, response: Response) -> Any:
        if request.url.endswith("?response"):
            raise RuntimeError("in process_response")
        if request.url.endswith("?redirected"):
            return request.replace(url=request.url.removesuffix("?redirected"))
        return response

    def process_exception(self, request: Request, exception: Exception) -> Any:
        if request.url.endswith("?exception"):
            raise RuntimeError("in process_exception")
        if request.url.endswith("?rescued"):
            return Response(request.url)
        return None


class UnderWay(UncountedDownloads):
    """Notes when the context manager of a request is entered and left."""

    def __init__(self) -> None:  # without a crawler
        self.steps: list[str] = []

    @contextmanager
    def uncounted(self, request: Request) -> Iterator[None]:
        self.steps.append("entered")
        try:
            yield
        finally:
            self.steps.append("left")


def crawl_of(crawler: Crawler) -> Crawl:
    return Crawl.of(crawler, RepSettings.read(crawler.settings), Clock(time, monotonic, sleep))


async def fetched(url: str, *, cancel_after: float | None = None, **settings: Any) -> tuple[Any, list[str]]:
    """Return the result of `Fetcher.fetch` in a crawl, and the steps of its context manager."""
    under_way = UnderWay()
    came: list[Any] = []

    class Fetches(CrawlSpider):
        async def start(self) -> AsyncIterator[Any]:
            crawl = crawl_of(self.crawler)
            fetcher = Fetcher(crawl, under_way, Connections(crawl))
            fetching = deferred_from_coro(fetcher.fetch(Ask(url), Request(url), Cookies(ANY)))
            if cancel_after is not None:
                await sleep(cancel_after)
                fetching.cancel()
            try:
                answer, _response = await maybe_deferred_to_future(fetching)
                came.append(answer)
            except (CancelledError, asyncio.CancelledError) as exc:
                came.append(exc)
            return
            yield

    result = await crawl(spider=Fetches, settings={"DOWNLOADER_MIDDLEWARES": {Faulty: 50}, **settings})
    (end,) = came
    has_raised = "has raised" in getattr(end, "reason", "")
    assert len(result.tracebacks) == has_raised, "an error of a middleware has its traceback"
    return end, under_way.steps


@pytest.mark.parametrize("query", ["", "?response", "?request", "?ignored", "?redirected", "?exception", "?rescued"])
@pytest.mark.parametrize(
    "route",
    [
        pytest.param(answer(RULES), id="200"),
        pytest.param(answer(status=503), id="503"),
        pytest.param(redirect("/elsewhere"), id="301"),
        pytest.param(answer(RULES, headers={"Content-Encoding": "compress"}), id="undecodable"),
        pytest.param(answer(RULES * 100_000), id="past-the-limit"),
        pytest.param(answer(kind="reset"), id="reset"),
        pytest.param(answer(kind="garbage"), id="garbage"),
        pytest.param(answer(RULES, kind="cut"), id="cut-off"),
        pytest.param(answer(kind="hang"), id="timeout"),
        pytest.param(answer(kind="headers"), id="endless-headers"),
    ],
)
@ensureDeferred
async def test_every_end_of_a_fetch_is_an_answer(web: Web, route: Any, query: str) -> None:
    site = web.site({"*": route})
    end, steps = await fetched(f"{site.robots_url}{query}", REP_FETCH_TIMEOUT=0.3)
    assert isinstance(end, Answer)
    assert (end.status is None) == bool(end.reason)
    assert end.dropped == (query == "?ignored")
    # An error in `process_exception` comes after one of the network.
    faults = tuple(
        f"test_fetcher.Faulty has raised RuntimeError: in process_{name}" for name in ("request", "response")
    )
    assert end.is_fault == end.reason.startswith(faults)
    assert end.is_fault >= (query == "?request")
    assert steps == ["entered", "left"]


@ensureDeferred
async def test_fields_whose_meaning_the_body_or_a_challenge_decides_later_are_read(web: Web) -> None:
    page = web.robots(answer("<!doctype html><p>Maintenance</p>", headers={"Retry-After": "1800"}))
    end, _ = await fetched(page.robots_url)
    assert end.retry_after == 1800.0
    challenge = web.robots(answer(status=302, headers={"Location": "/challenge", "cf-mitigated": "challenge"}))
    end, _ = await fetched(challenge.robots_url)
    assert (end.sign, end.location) == ("Cloudflare", f"{challenge.origin}/challenge")


@ensureDeferred
async def test_a_cancelled_fetch(web: Web) -> None:
    end, steps = await fetched(web.robots(answer(kind="hang")).robots_url, cancel_after=0.1)
    assert isinstance(end, (CancelledError, asyncio.CancelledError))
    assert steps == ["entered", "left"]


@ensureDeferred
async def test_after_a_cancelled_fetch_the_crawl_hears_of_no_octets_of_pages(web: Web) -> None:
    site, heard = web.robots(answer(kind="hang")), list[int]()

    class Cancels(CrawlSpider):
        async def start(self) -> AsyncIterator[Any]:
            under_way = UncountedDownloads(self.crawler)
            crawl = crawl_of(self.crawler)
            fetcher = Fetcher(crawl, under_way, Connections(crawl))
            request = Request(site.url("/"))
            fetching = deferred_from_coro(fetcher.fetch(Ask(site.robots_url), request, Cookies(ANY)))
            fetching.addErrback(lambda _failure: None)
            for moment in (0.1, 0.1):
                await sleep(moment)
                sent = self.crawler.signals.send_catch_log(bytes_received, data=b"", request=Request(site.url("/")))
                heard.append(len(sent))
                fetching.cancel()
            return
            yield

    await crawl(spider=Cancels)
    assert heard == [1, 0]


class Cancels(HTTP11DownloadHandler):
    """A download handler that cancels its own requests, as one does whose browser closes."""

    async def download_request(self, request: Request) -> Response:
        raise CancelledError if request.url.endswith("?twisted") else asyncio.CancelledError


@pytest.mark.parametrize("library", ["twisted", "asyncio"])
@ensureDeferred
async def test_a_request_that_its_handler_cancels_is_not_one_that_a_middleware_drops(web: Web, library: str) -> None:
    url = f"{web.robots(RULES).robots_url}?{library}"
    end, steps = await fetched(url, DOWNLOAD_HANDLERS={"http": Cancels})
    assert end.reason == "ConnectionAbortedError: The download was cancelled"
    assert not end.dropped
    assert not end.timed_out
    assert steps == ["entered", "left"]


@ensureDeferred
async def test_reasons_are_text_for_people(web: Web) -> None:
    end, _ = await fetched(web.robots(answer(kind="reset")).robots_url)
    assert end.reason.startswith("Connection")
    assert "Failure" not in end.reason


@ensureDeferred
async def test_a_tls_error_has_a_name_that_says_so_in_the_report_too(tmp_path: Path) -> None:
    async def answers_without_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    report = tmp_path / "report.jsonl"
    async with serving(answers_without_tls) as host:
        result = await crawl(f"https://{host}/", settings={"REP_REPORT": str(report), **ONCE})
    assert "robots.txt: OpenSSL.SSL.Error: [('SSL routines', '', 'wrong version number')]" in str(result.messages())
    assert '"text": "robots.txt is unreachable: OpenSSL.SSL.Error"' in report.read_text()


@ensureDeferred
async def test_a_fetch_leaves_nothing_for_the_garbage_collector(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    sites = [web.robots(RULES) for _ in range(3)]
    requests: list[ref[Request]] = []

    def answered(response: Response) -> None:
        assert response.request is not None
        requests.append(ref(response.request))

    caplog.set_level(logging.INFO, logger="scrapy")  # records at DEBUG keep the requests

    def connections() -> list[object]:
        return [each for each in gc.get_referrers(HTTP11ClientProtocol) if type(each) is HTTP11ClientProtocol]

    gc.collect()
    gc.disable()
    of_others = connections()
    try:
        await crawl(
            *(site.url("/") for site in sites),
            prepare=lambda crawler: crawler.signals.connect(answered, robots_response, weak=False),
        )
        alive: list[object] = [request for each in requests if (request := each()) is not None]
        alive += [each for each in connections() if each not in of_others]
    finally:
        gc.enable()
    assert len(requests) == 3
    assert alive == []
