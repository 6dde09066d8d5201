"""Hostile answers: their cost is bounded, and they have no effect but rules."""

from __future__ import annotations

import gzip
import logging
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import pytest
from crawling import Crawl, crawl
from installed_scrapy import CAN, HANDLERS
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from web import RULES, Route, Site, Web, answer

from scrapy_rep import RobotsUnreachable
from scrapy_rep.scrapy_internals.compat import sleep

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NOTHING = "user-agent: *\ndisallow: /\n"
LIMIT = 512_000  # octets
# The octets that may be in the buffers of the operating system, at both ends, when reading stops.
IN_FLIGHT = 8 * 2**20


class Octets:
    """Counts the octets of robots.txt bodies as they arrive."""

    def __init__(self) -> None:
        self.came = 0
        self.most = 0

    def prepare(self, crawler: Crawler) -> None:
        crawler.signals.connect(self._came, signals.bytes_received)

    def _came(self, data: bytes, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            self.came += len(data)
            self.most = max(self.most, len(data))


async def rules_of(site: Site, **more: Any) -> tuple[Crawl, Octets]:
    """Crawl a site, and check that RULES were obeyed."""
    octets = Octets()
    result = await crawl(site.url("/"), site.url("/private"), prepare=octets.prepare, **more)
    assert list(result.pages) == [site.url("/")]
    assert list(result.refused) == [site.url("/private")]
    assert result.stats["rep/access/success"] == 1
    assert result.tracebacks == []
    return result, octets


# Bodies.

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda body: brotli.compress(body, quality=1),
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("coding", COMPRESS)
@ensureDeferred
async def test_a_compression_bomb_is_decoded_up_to_the_limit(web: Web, coding: str) -> None:
    bomb = COMPRESS[coding](RULES.encode() + b"#" * 100_000_000)
    tracemalloc.start()
    try:
        result, _ = await rules_of(web.robots(answer(bomb, headers={"Content-Encoding": coding})))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000, "the body is not decoded as a whole"
    assert "httpcompression/response_bytes" not in result.stats, "not decoded by Scrapy"
    assert result.messages(logger="scrapy.") == []


@pytest.mark.parametrize("coding", COMPRESS)
@ensureDeferred
async def test_a_compressed_body_that_is_cut_is_decoded_as_far_as_possible(web: Web, coding: str) -> None:
    # Noise does not compress. So the compressed body is longer than the limit, and its end is not read.
    noise = "".join(f"# {zlib.crc32(bytes([n % 256, n // 256 % 256, n // 65536])):08x}" + "\n" for n in range(150_000))
    body = COMPRESS[coding]((RULES + noise).encode())
    assert len(body) > LIMIT
    _, octets = await rules_of(web.robots(answer(body, headers={"Content-Encoding": coding})))
    assert octets.came <= LIMIT + octets.most


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize(
    "route",
    [
        pytest.param(answer(RULES + "#" * 65_536, times=1, kind="endless"), id="endless-chunked"),
        pytest.param(answer(RULES + "#" * 1_000_000 + "\n", times=50), id="50-MB"),
    ],
)
@ensureDeferred
async def test_no_more_than_the_limit_and_a_buffer_is_read(web: Web, route: Route, tls: bool) -> None:
    site = web.robots(route, tls=tls)
    _, octets = await rules_of(site)
    assert LIMIT < octets.came <= LIMIT + octets.most
    assert site.robots_requests[0]["octets"] < LIMIT + IN_FLIGHT, "the connection was closed at the limit"


async def came_to_an_end(site: Site) -> None:
    """Wait until the server sees that the connection was closed."""
    for _ in range(100):
        if site.robots_requests[0]["ended"] is not None:
            return
        await deferred_from_coro(sleep(0.05))
    pytest.fail("still under way")


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(answer(RULES * 100, kind="drip"), id="drip-fed-body"),
        pytest.param(answer(RULES, kind="hold"), id="nothing"),
        pytest.param(answer(kind="headers"), id="headers"),
    ],
)
@ensureDeferred
async def test_the_timeout_ends_an_endless_answer(web: Web, route: Route) -> None:
    site = web.robots(route)
    result = await crawl(site.url("/"), settings={"REP_FETCH_TIMEOUT": 0.5})
    (error,) = result.refused.values()
    assert isinstance(error, RobotsUnreachable)
    assert result.tracebacks == []
    if route["kind"] == "hold":
        (warning, _summary) = result.messages(logger="scrapy_rep")
        assert warning.startswith(f"{site.robots_url}: ")
        assert warning.endswith("are refused: it did not answer within REP_FETCH_TIMEOUT (0.5 s)")
    await came_to_an_end(site)


@pytest.mark.parametrize("handler", HANDLERS)
@ensureDeferred
async def test_the_timeout_holds_for_the_whole_answer_with_each_handler(web: Web, handler: str) -> None:
    """A handler's own limit may be for each read. The bodies would take 400 seconds, and would be read as rules."""
    slow, healthy = [web.robots(answer(RULES * 100, kind="drip")) for _ in range(20)], web.robots(RULES)
    settings = {"REP_FETCH_TIMEOUT": 1, "DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]}}
    result = await crawl(*(site.url("/") for site in [*slow, healthy]), settings=settings)
    assert list(result.pages) == [healthy.url("/")]
    assert len(result.refused) == 20
    assert all(isinstance(error, RobotsUnreachable) for error in result.refused.values())
    assert result.tracebacks == []
    for site in slow:
        await came_to_an_end(site)


@ensureDeferred
async def test_a_body_that_is_half_closed_is_unreachable(web: Web) -> None:
    result = await crawl(web.robots(answer(RULES, kind="half-closed")).url("/"))
    assert result.stats["rep/access/unreachable"] == 1
    assert result.tracebacks == []


@ensureDeferred
async def test_the_signal_bytes_received_has_no_receiver_while_pages_are_fetched(web: Web) -> None:
    site = web.robots(RULES)
    listeners: list[int] = []

    def prepare(crawler: Crawler) -> None:
        def look(request: Request) -> None:
            listeners.append(len(crawler.signals.send_catch_log(signals.bytes_received, data=b"", request=request)))

        crawler.signals.connect(look, signals.headers_received, weak=False)

    await crawl(*(site.url(f"/{n}") for n in range(5)), prepare=prepare)
    assert listeners == [1, 0, 0, 0, 0, 0], "only robots.txt itself had a receiver"


# Log lines and stats.

FORGERY = "\r\n2026-01-01 [scrapy] ERROR: forged\x1b[2J\x1b]0;title\x07\x85\u2028\u202e\x00\x7f"


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(answer(f"user-agent: *\ndisallow: /{FORGERY}\ndisallow: /\x1b[2J\x07\n"), id="rule"),
        pytest.param(answer(status=302, headers={"Location": "ftp://h/\x1b[2J\x85\x7f"}), id="location"),
        pytest.param(answer(status=302, headers={"Location": "http://a\x1b[2Jb\x85/\x7f"}), id="location-host"),
        pytest.param(answer(RULES, headers={"Content-Encoding": "x\x1b[2J\x85\xad"}), id="content-encoding"),
        pytest.param(answer(RULES, headers={"Retry-After": "\x1b[2J"}, status=503), id="retry-after"),
        pytest.param(answer(kind="garbage"), id="no-http"),
    ],
)
@ensureDeferred
async def test_log_lines_cannot_be_forged(web: Web, route: Route) -> None:
    site = web.robots(route)
    result = await crawl(site.url("/"), site.url("/%1B%5B2J%07"))
    ours = result.messages(logging.DEBUG, "scrapy_rep")
    assert ours
    for message in [*ours, *map(str, result.refused.values())]:
        assert message.isprintable()


@pytest.mark.parametrize(
    ("route", "longest"),
    [
        pytest.param(answer(f"user-agent: *\ndisallow: /{'x' * 1_900}\ndisallow: /$\n"), 700, id="rule"),
        pytest.param(answer(status=302, headers={"Location": f"ftp://h/{'x' * 8_000}"}), 500, id="location"),
        pytest.param(answer(status=302, headers={"Location": f"http://{'x' * 8_000}/"}), 500, id="location-host"),
        pytest.param(answer(RULES, headers={"Content-Encoding": "x" * 8_000}), 500, id="content-encoding"),
        pytest.param(answer(RULES, headers={"Server": "x" * 8_000}, status=503), 500, id="server"),
        pytest.param(answer(kind="garbage"), 500, id="no-http"),
    ],
)
@ensureDeferred
async def test_text_of_sites_is_cut(web: Web, route: Route, longest: int) -> None:
    site = web.robots(route)
    result = await crawl(site.url("/"), site.url(f"/{'x' * 1_950}"))
    for message in [*result.messages(logging.DEBUG, "scrapy_rep"), *map(str, result.refused.values())]:
        # The URL of the request is the user's own, and Scrapy does not cut it.
        assert len(message.partition("<GET")[0]) < longest
    assert all(len(error.verdict.answer) <= 250 for error in result.refused.values())


@ensureDeferred
async def test_unknown_statuses_share_one_stat(web: Web) -> None:
    statuses = [600, 601, 799, 999, 200, 503, 418]
    sites = [web.robots(answer(status=status)) for status in statuses]
    result = await crawl(*(site.url("/") for site in sites))
    ours = {k: v for k, v in result.stats.items() if k.startswith("robotstxt/response_status_count/")}
    prefix = "robotstxt/response_status_count/"
    assert ours == {f"{prefix}{status}": 1 for status in (200, 418, 503)} | {f"{prefix}other": 4}


# Credentials.


if CAN["send credentials by settings and by request meta"]:

    @ensureDeferred
    async def test_credentials_of_one_request_are_sent_with_this_request_only(web: Web) -> None:
        site = web.robots(RULES)
        await crawl(Request(site.url("/"), meta={"http_user": "u", "http_pass": "p"}))
        robots, page = site.requests
        assert "Authorization" not in robots["headers"]
        assert page["headers"]["Authorization"] == "Basic dTpw"
