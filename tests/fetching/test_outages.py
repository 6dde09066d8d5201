"""Requests wait for the end of a brief outage (REP_UNREACHABLE_WAIT). In a long outage, robots.txt is requested less
and less often (RFC 9309 2.3.1.4)."""

from __future__ import annotations

import asyncio
import gc
import logging
from email.utils import formatdate
from itertools import accumulate
from typing import Any
from weakref import ref

import pytest
import scrapy.exceptions
from crawling import BUILTIN, CrawlSpider, Time, crawl, in_turn, with_clock
from installed_scrapy import HANDLERS
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.internet import error as network
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed
from web import RULES, Route, Site, Web, answer

from scrapy_rep import RepMiddleware, RobotsUnreachable
from scrapy_rep.fetching.download import Fetcher
from scrapy_rep.protocol import outage as outage_module
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import BACKOFF_MAX, BACKOFFS, RETRY_DELAY
from scrapy_rep.scrapy_internals.compat import sleep

DOWN = answer(status=503)


def exceptions(newer: str, *older: type[Exception]) -> tuple[type[Exception], ...]:
    """Scrapy's exception, and those of Twisted that older releases of Scrapy raise."""
    return (*older, *filter(None, [getattr(scrapy.exceptions, newer, None)]))


RESOLVING = exceptions("CannotResolveHostError", network.DNSLookupError)
TIMEOUTS = exceptions("DownloadTimeoutError", network.TimeoutError, network.TCPTimedOutError)
REFUSED = exceptions("DownloadConnectionRefusedError", network.ConnectionRefusedError)
FIRST, SECOND, THIRD, FOURTH, FIFTH = BACKOFFS[:5]
ROUNDS = [0.0, *accumulate(BACKOFFS[:3])]
"""When the fetches begin that requests wait for, in seconds from the beginning: 0, 5, 15 and 30."""
LONGEST = ROUNDS[-1]
WAIT = {"REP_UNREACHABLE_WAIT": LONGEST}


class Watched(Time):
    """A clock that notes when each robots.txt was requested, in seconds from the beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.began = self.now
        self.asked: list[float] = []

    def prepare(self, crawler: Crawler) -> None:
        crawler.signals.connect(self._asked, signals.request_reached_downloader)

    def _asked(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            self.asked.append(round(self.now - self.began, 1))

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await sleep(0.02)  # other tasks run, as in a real sleep


async def outage(site: Site, *paths: str, settings: dict[str, Any] | None = None) -> tuple[Any, Watched]:
    watched = Watched()
    result = await crawl(
        *(site.url(path) for path in paths or ("/", "/private")),
        robots=with_clock(watched),
        settings={**WAIT, **(settings or {})},
        prepare=watched.prepare,
    )
    assert result.tracebacks == []
    return result, watched


@ensureDeferred
async def test_a_brief_outage_loses_no_page(web: Web) -> None:
    site = web.robots([DOWN] * 3 + [answer(RULES)])
    pages = [f"/{n}" for n in range(30)]
    result, watched = await outage(site, *pages, "/private")
    assert watched.asked == ROUNDS
    assert len(result.pages) == 30
    assert list(result.refused) == [site.url("/private")]
    assert "rep/dropped/unreachable" not in result.stats


@ensureDeferred
async def test_the_log_says_what_waits_and_what_was_refused(web: Web) -> None:
    site = web.robots([DOWN, answer(RULES)])
    brief, _ = await outage(site)
    (warning,) = brief.messages(logger="scrapy_rep")
    wait = f"Requests to this site wait up to {LONGEST:.0f} s (REP_UNREACHABLE_WAIT); then they are refused"
    assert warning == f"{site.robots_url}: HTTP 503. {wait}"
    _agent, _begin, back, *_ = brief.messages(logging.INFO, "scrapy_rep")
    assert back == f"{site.robots_url}: HTTP 200. It is reachable again"
    down = web.robots(DOWN)
    long, _ = await outage(down)
    summary = "2 requests were refused because robots.txt was unreachable; 1 origin had outages"
    summary += f": 2 x {down.robots_url} (HTTP 503)"
    assert long.messages(logger="scrapy_rep")[-1] == summary
    busy = web.robots(answer(status=503, headers={"Retry-After": "1800"}))
    in_vain, _ = await outage(busy)
    in_half_an_hour = f"the next fetch begins in 1,800 s, later than REP_UNREACHABLE_WAIT ({LONGEST:.0f} s)"
    at_once = f"{busy.robots_url}: HTTP 503. Requests to this site are refused: {in_half_an_hour}"
    assert in_vain.messages(logger="scrapy_rep")[0] == at_once


@ensureDeferred
async def test_the_log_names_the_wait_as_set(web: Web) -> None:
    # The wait includes the retry after a second.
    result, _ = await outage(web.robots(DOWN), settings={"REP_FETCH_RETRIES": 1})
    assert f" wait up to {LONGEST:.0f} s (REP_UNREACHABLE_WAIT); " in result.messages(logger="scrapy_rep")[0]


@ensureDeferred
async def test_a_retry_is_part_of_the_outage(web: Web) -> None:
    site = web.robots([DOWN] * 4 + [answer(RULES)])
    result, watched = await outage(site, settings={"REP_FETCH_RETRIES": 1})
    # There is one retry, a second after the first failure.
    assert watched.asked == [0.0, 1.0, *ROUNDS[1:]]
    assert len(result.pages) == 1


@ensureDeferred
async def test_requests_are_refused_at_the_end_of_the_wait(web: Web) -> None:
    site = web.robots(DOWN)
    result, watched = await outage(site)
    assert watched.asked == ROUNDS
    assert result.pages == {}
    assert result.stats["rep/dropped/unreachable"] == 2
    assert all(isinstance(error, RobotsUnreachable) for error in result.refused.values())


@pytest.mark.parametrize("budget", [0, FIRST])
@ensureDeferred
async def test_the_wait_is_as_long_as_the_setting(web: Web, budget: float) -> None:
    _, watched = await outage(web.robots(DOWN), settings={"REP_UNREACHABLE_WAIT": budget})
    assert watched.asked == [at for at in ROUNDS if at <= budget]


@ensureDeferred
async def test_after_the_wait_no_request_waits_until_a_fetch_succeeds(web: Web) -> None:
    site, watched = web.robots([DOWN] * 5 + [answer(RULES)]), Watched()
    steps = [1.0, FOURTH - 1.1, 0.2, FIFTH - 0.1, 0.1, 0.0]

    def note(end: str) -> tuple[float, str, int]:
        return round(watched.now - watched.began, 1), end, len(watched.slept)

    result = await crawl(
        site.url("/"),
        spider=in_turn(watched, *steps, note=note),
        robots=with_clock(watched),
        settings=WAIT,
        prepare=watched.prepare,
    )
    fifth = LONGEST + FOURTH + 0.1
    assert watched.asked == [*ROUNDS, fifth, fifth + FIFTH]
    told: list[tuple[float, str, int]] = result.ends
    assert [end for _, end, _ in told] == ["RobotsUnreachable"] * 6 + ["page"]
    assert {slept for *_, slept in told} == {3}, "no request slept after the wait was over"
    assert result.stats["rep/dropped/unreachable"] == 6


@pytest.mark.parametrize(("status", "ends"), [(404, ["page"] * 3), (200, ["ForbiddenByRobots"] * 3)])
@ensureDeferred
async def test_an_outage_that_a_refresh_finds_has_a_wait(web: Web, status: int, ends: list[str]) -> None:
    brief = answer(RULES, status=status, headers={"Cache-Control": "max-age=100, must-revalidate"})
    site, watched = web.robots([brief, DOWN, DOWN, answer(RULES)]), Watched()
    result = await crawl(
        site.url("/private" if status == 200 else "/"),
        spider=in_turn(watched, 95.0, 8.0),
        robots=with_clock(watched),
        settings={**WAIT, "REP_LIFETIME_MIN": 60},
        prepare=watched.prepare,
    )
    assert watched.asked == [0.0, 95.0, 103.0, 103.0 + SECOND]
    assert result.ends == ends


@ensureDeferred
async def test_the_next_outage_has_a_wait_of_its_own(web: Web) -> None:
    # With must-revalidate, expired rules are not obeyed. Otherwise they would be, and no request would wait.
    rules = answer(RULES, headers={"Cache-Control": "must-revalidate"})
    site, watched = web.robots([DOWN, rules, DOWN, DOWN, rules]), Watched()
    result = await crawl(
        site.url("/"),
        spider=in_turn(watched, 90_000.0),
        robots=with_clock(watched),
        settings=WAIT,
        prepare=watched.prepare,
    )
    later = FIRST + 90_000.0
    assert watched.asked == [0.0, FIRST, *(later + seconds for seconds in ROUNDS[:3])]
    assert result.ends == ["page"] * 2


# Retry-After.


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("20", 20.0, id="RFC9110-10.2.3-seconds"),
        pytest.param("1", FIRST, id="less-than-the-backoff"),
        pytest.param("soon", RETRY_DELAY, id="unreadable-so-the-usual-retry"),
    ],
)
@ensureDeferred
async def test_retry_after_is_obeyed(web: Web, value: str, seconds: float) -> None:
    site = web.robots([answer(status=503, headers={"Retry-After": value}), answer(RULES)])
    result, watched = await outage(site, settings={"REP_FETCH_RETRIES": 1})
    assert watched.asked == [0.0, seconds]
    assert len(result.pages) == 1


@ensureDeferred
async def test_retry_after_as_a_date(web: Web) -> None:
    # The date is by the clock of the crawl, which differs from the machine's by years.
    date = formatdate(Watched().now + 20, usegmt=True)
    site = web.robots([answer(status=503, headers={"Retry-After": date}), answer(RULES)])
    result, watched = await outage(site)
    assert watched.asked == [0.0, 20.0]
    assert len(result.pages) == 1


@pytest.mark.parametrize("value", [f"{LONGEST + 1:.0f}", "9" * 40])
@ensureDeferred
async def test_requests_do_not_wait_for_a_retry_after_beyond_the_wait(web: Web, value: str) -> None:
    site, watched = web.robots([answer(status=503, headers={"Retry-After": value}), answer(RULES)]), Watched()
    wait = min(float(value), BACKOFF_MAX)
    result = await crawl(
        site.url("/"),
        spider=in_turn(watched, wait - 0.5, 0.5, 0.0),
        robots=with_clock(watched),
        settings=WAIT,
        prepare=watched.prepare,
    )
    assert watched.asked == [0.0, wait]
    assert result.ends == ["RobotsUnreachable"] * 3 + ["page"]
    assert watched.slept == []


class FailsTheSecond:
    """A downloader middleware that cancels the second request for a robots.txt."""

    number = 0

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            self.number += 1
            if self.number == 2:
                raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("way", "slept"),
    [
        pytest.param("cancelled", [FIRST], id="cancelled-requests-wait-no-longer"),
        pytest.param("internal error", [*BACKOFFS[:3]], id="internal-error-counts-as-a-failure"),
    ],
)
@pytest.mark.parametrize("waiting_max", [0, 1_000], ids=["in-the-downloader", "at-the-scheduler"])
@ensureDeferred
async def test_an_internal_error_or_cancellation_is_part_of_the_outage(
    web: Web, monkeypatch: pytest.MonkeyPatch, way: str, slept: list[float], waiting_max: int
) -> None:
    site, watched = web.robots(DOWN), Watched()
    robots = with_clock(watched)
    if way == "cancelled":
        robots["DOWNLOADER_MIDDLEWARES"][FailsTheSecond] = 200
    else:
        fetch = Fetcher.fetch

        async def fails_later(*args: Any) -> Any:
            if watched.slept:
                raise ZeroDivisionError
            return await fetch(*args)

        monkeypatch.setattr(Fetcher, "fetch", fails_later)
    settings = {**WAIT, "REP_WAITING_MAX": waiting_max}
    result = await crawl(site.url("/"), robots=robots, settings=settings, prepare=watched.prepare)
    assert watched.slept == slept
    (error,) = result.refused.values()
    assert way in str(error)
    origin = Origin.of(site.origin)
    assert origin is not None
    policy = RepMiddleware.of(result.crawler)._single_flight.peek(origin)
    assert policy is not None
    assert policy.entry.outage is not None
    assert (policy.entry.outage.failures, policy.entry.outage.since) == (len(slept) + 1, watched.began)
    assert len(result.tracebacks) == (0 if way == "cancelled" else 3)


@ensureDeferred
async def test_two_outages_of_one_origin_count_as_one_origin(web: Web) -> None:
    time = Time()
    site = web.robots([DOWN, answer(RULES), DOWN, answer(RULES)])
    settings = {**with_clock(time), "REP_UNREACHABLE_WAIT": 0, "REP_FETCH_RETRIES": 0}
    result = await crawl(site.url("/"), spider=in_turn(time, *[90_000] * 3), settings=settings)
    last = result.messages(logger="scrapy_rep")[-1]
    assert last == (
        "2 requests were refused because robots.txt was unreachable; 1 origin had outages:"
        f" 2 x {site.robots_url} (HTTP 503)"
    )


@ensureDeferred
async def test_the_wait_begins_when_the_request_is_sent(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    # All requests share a download slot with a delay, so the last one waits there for longer than REP_UNREACHABLE_WAIT.
    monkeypatch.setattr(outage_module, "BACKOFFS", (0.2, 0.2, 0.2))
    monkeypatch.setattr(outage_module, "LEAST_REST", 0.0)
    sites = [*(web.robots(RULES) for _ in range(4)), web.robots([DOWN, answer(RULES)])]
    requests = [Request(site.url("/"), meta={"download_slot": "one"}) for site in sites]
    slot = {"one": {"concurrency": 1, "delay": 0.2}}
    result = await crawl(*requests, settings={"DOWNLOAD_SLOTS": slot, "REP_UNREACHABLE_WAIT": 0.2})
    assert len(result.pages) == len(sites)
    waited = sites[-1].requests[0]["began"] - sites[0].requests[0]["began"]
    assert waited > 0.2, "REP_UNREACHABLE_WAIT"


# What errbacks receive.


class DocumentedErrback(CrawlSpider):
    """The errback of Scrapy's documentation, with the names of the newest release."""

    def failed(self, failure: Any) -> None:
        error = failure.value
        if isinstance(error, RobotsUnreachable):
            failure = Failure(error.__cause__ or error)  # type: ignore[no-untyped-call]
        if failure.check(HttpError):
            self.crawl.ends.append("HttpError")
        elif failure.check(*RESOLVING):
            self.crawl.ends.append("DNSLookupError")
        elif failure.check(*TIMEOUTS):
            self.crawl.ends.append("TimeoutError")
        elif failure.check(*REFUSED):
            self.crawl.ends.append("ConnectionRefusedError")
        else:
            self.crawl.ends.append(type(failure.value).__name__)


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize(
    ("route", "end"),
    [
        pytest.param("http://nothing.invalid", "DNSLookupError", id="no-such-host"),
        pytest.param("http://127.0.0.1:1", "ConnectionRefusedError", id="refused"),
        pytest.param(answer(kind="hang"), "TimeoutError", id="hangs"),
        pytest.param(DOWN, "RobotsUnreachable", id="503"),
    ],
)
@ensureDeferred
async def test_the_documented_errback_tells_why_with_the_cause(
    web: Web, handler: str, route: Route | str, end: str
) -> None:
    origin = route if isinstance(route, str) else web.site({"*": route}).origin
    settings = {"REP_FETCH_TIMEOUT": 0.5, "DOWNLOAD_TIMEOUT": 0.5, "DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]}}
    result = await crawl(f"{origin}/", settings=settings, spider=DocumentedErrback)
    assert result.ends == [end]
    if isinstance(route, str) or route is not DOWN:  # Scrapy's own middleware lets the page fail
        result = await crawl(f"{origin}/", settings=settings, spider=DocumentedErrback, robots=BUILTIN)
        assert result.ends == [end]


@pytest.mark.parametrize("handler", HANDLERS)
@ensureDeferred
async def test_an_outage_does_not_keep_the_request_in_memory(
    web: Web, handler: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    urls = ["http://127.0.0.1:1/", "http://nothing.invalid/", web.robots(answer(kind="reset")).url("/")]
    requests: list[ref[Request]] = []

    def reached(request: Request) -> None:
        if request.url.endswith("robots.txt"):
            requests.append(ref(request))

    result = await crawl(
        *urls,
        settings={"DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]}},
        prepare=lambda crawler: crawler.signals.connect(reached, signals.request_reached_downloader, weak=False),
    )
    assert [error.__cause__ is not None for error in result.refused.values()] == [True] * 3
    gc.collect()
    assert len(requests) == 3
    assert [each() for each in requests] == [None] * 3


@ensureDeferred
async def test_an_outage_does_not_keep_the_failures_in_an_exception_of_twisted() -> None:
    """Scrapy's handler for Twisted raised such exceptions before it had exceptions of its own."""
    kept: list[ref[Local]] = []

    class Fails(HTTP11DownloadHandler):
        async def download_request(self, *_: Any) -> Any:
            local = Local()
            kept.append(ref(local))
            try:
                try:
                    int("x")
                except ValueError as exc:
                    raise OSError("the body is cut") from exc
            except OSError:
                raise ResponseFailed([Failure()]) from None  # type: ignore[no-untyped-call]

    result = await crawl("http://127.0.0.1/", settings={"DOWNLOAD_HANDLERS": {"http": Fails}, "REP_FETCH_RETRIES": 0})
    (error,) = result.refused.values()
    assert isinstance(error.__cause__, ResponseFailed)
    assert "OSError: the body is cut" in str(error)
    gc.collect()
    assert [each() for each in kept] == [None]


class Local:
    """Stands for what the frames of a failure hold."""
