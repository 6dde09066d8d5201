"""RFC 9309 section 2.3.1 (access results) against a live server.

What each status means is tested in `protocol/test_2_3_access.py`, and in one crawl in `test_answers_table.py`.
"""

from __future__ import annotations

import gzip
import logging
import socket
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import pytest
from crawling import CrawlSpider, Time, crawl, outcome, with_clock
from installed_scrapy import HANDLERS
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from web import RULES, Web, answer, redirect

from scrapy_rep import AccessResult, RobotsUnreachable


@pytest.mark.parametrize(
    ("status", "access"),
    [
        pytest.param(200, AccessResult.SUCCESS, id="2.3.1.1-200"),
        pytest.param(404, AccessResult.UNAVAILABLE, id="2.3.1.3-404"),
        pytest.param(503, AccessResult.UNREACHABLE, id="2.3.1.4-503"),
        pytest.param(304, AccessResult.UNREACHABLE, id="2.3.1.4-304-without-a-condition"),
        pytest.param(999, AccessResult.UNREACHABLE, id="2.3.1.4-no-status-of-HTTP"),
    ],
)
@ensureDeferred
async def test_status(web: Web, status: int, access: AccessResult) -> None:
    # The body is the same for each status. Only the body of a success is read as rules.
    site = web.robots(answer(RULES, status=status))
    result, found = await outcome(site)
    assert found is access
    assert len(site.robots_requests) == 1
    if access is AccessResult.UNREACHABLE:
        assert all(isinstance(error, RobotsUnreachable) for error in result.refused.values())
        assert {error.cause for error in result.refused.values() if isinstance(error, RobotsUnreachable)} == {
            f"HTTP {status}"
        }


@ensureDeferred
async def test_the_body_of_an_error_is_not_read_as_rules(web: Web) -> None:
    site = web.robots(answer("user-agent: *\ndisallow: /\n", status=404))
    _, access = await outcome(site)
    assert access is AccessResult.UNAVAILABLE


@ensureDeferred
async def test_a_meta_refresh_is_not_followed(web: Web) -> None:
    elsewhere = web.robots("user-agent: *\ndisallow: /\n")
    html = f'<html><head><meta http-equiv="refresh" content="0; url={elsewhere.robots_url}"></head></html>'
    site = web.robots(answer(html, headers={"Content-Type": "text/html"}))
    result = await crawl(site.url("/"))
    assert list(result.pages) == [site.url("/")]
    assert elsewhere.requests == []


@ensureDeferred
async def test_http_and_https_of_one_host_have_rules_of_their_own(web: Web) -> None:
    plain, secure = web.robots("user-agent: *\ndisallow: /a\n"), web.robots("user-agent: *\ndisallow: /b\n", tls=True)
    urls = [site.url(path) for site in (plain, secure) for path in ("/a", "/b")]
    result = await crawl(*urls)
    assert sorted(result.refused) == sorted([plain.url("/a"), secure.url("/b")])


# No answer -> unreachable.


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(answer(kind="reset"), id="reset"),
        pytest.param(answer(kind="garbage"), id="no-http"),
        pytest.param(answer(RULES, kind="cut"), id="cut-off"),
        pytest.param(answer(b"\xff" + RULES.encode(), headers={"Content-Encoding": "gzip"}), id="undecodable-gzip"),
        pytest.param(answer(RULES, headers={"Content-Encoding": "compress"}), id="undecodable-coding"),
        pytest.param(answer(b"", headers={"Content-Encoding": "gzip," * 9}), id="undecodable-too-many-codings"),
    ],
)
@ensureDeferred
async def test_no_answer_is_unreachable(web: Web, route: dict[str, Any]) -> None:
    site = web.robots(route)
    result, access = await outcome(site)
    assert access is AccessResult.UNREACHABLE
    assert len(result.messages()) == 2, "one WARNING for the origin and the summary"


@ensureDeferred
async def test_a_cut_body_is_unreachable_even_if_the_crawl_accepts_cut_pages(web: Web) -> None:
    site = web.robots(answer(RULES, kind="cut"))
    _, access = await outcome(site, settings={"DOWNLOAD_FAIL_ON_DATALOSS": False})
    assert access is AccessResult.UNREACHABLE


@ensureDeferred
async def test_a_refused_connection_is_unreachable() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        result = await crawl(url)
    (error,) = result.refused.values()
    assert isinstance(error, RobotsUnreachable)
    assert "ConnectionRefused" in error.cause
    assert result.tracebacks == []


@ensureDeferred
async def test_a_tls_failure_is_unreachable(web: Web) -> None:
    result = await crawl(web.robots(RULES).url("/").replace("http:", "https:"))
    (error,) = result.refused.values()
    assert isinstance(error, RobotsUnreachable)
    assert result.tracebacks == []


@ensureDeferred
async def test_a_server_that_hangs_is_unreachable_after_the_timeout(web: Web) -> None:
    site = web.robots(answer(kind="hang"))
    result, access = await outcome(site, settings={"REP_FETCH_TIMEOUT": 0.3})
    assert access is AccessResult.UNREACHABLE
    assert "0.3 seconds" in str(next(iter(result.refused.values())))


@ensureDeferred
async def test_a_fetch_that_another_middleware_drops_is_unreachable(web: Web) -> None:
    site = web.robots(RULES)
    result, access = await outcome(
        site, settings={"DOWNLOADER_MIDDLEWARES": {DropsRobotsTxt: 200}, "REP_FETCH_RETRIES": 3}
    )
    assert access is AccessResult.UNREACHABLE
    assert site.requests == []
    assert result.stats["robotstxt/request_count"] == 1, "another request would be dropped, too"
    dropped = (
        "another middleware dropped the request (IgnoreRequest: not today); let it pass requests with 'rep_robots_txt'"
        " in their meta"
    )
    first, *_ = result.messages()
    assert first.startswith(f"{site.robots_url}: {dropped}. Requests to this site ")
    assert dropped in str(next(iter(result.refused.values())))


class DropsRobotsTxt:
    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            raise IgnoreRequest("not today")


HEADERS, BYTES = signals.headers_received, signals.bytes_received
LONG = RULES + 300_000 * "#"
GZIP = {"Content-Encoding": "gzip"}
UNAVAILABLE, UNREACHABLE, SUCCESS = AccessResult.UNAVAILABLE, AccessResult.UNREACHABLE, AccessResult.SUCCESS


@pytest.mark.parametrize(("handler", "fail"), list(product(HANDLERS, [True, False])))
@pytest.mark.parametrize(
    ("stops", "expected"),
    [
        pytest.param((BYTES, answer(RULES)), SUCCESS, id="as-long-as-its-Content-Length"),
        pytest.param((BYTES, answer(gzip.compress(RULES.encode()), headers=GZIP)), SUCCESS, id="the-same-in-gzip"),
        pytest.param((HEADERS, answer(RULES, status=404)), UNAVAILABLE, id="404"),
        pytest.param((HEADERS, redirect("/gone")), UNAVAILABLE, id="a-redirect-to-a-404"),
        pytest.param((HEADERS, answer(RULES)), UNREACHABLE, id="before-its-body"),
        pytest.param((BYTES, answer(LONG)), UNREACHABLE, id="after-a-part-of-it"),
        pytest.param((HEADERS, answer(gzip.compress(RULES.encode()), headers=GZIP)), UNREACHABLE, id="before-its-gzip"),
    ],
)
@ensureDeferred
async def test_a_robots_txt_that_another_component_stops(
    web: Web, stops: tuple[object, Any], expected: AccessResult, handler: str, fail: bool
) -> None:
    signal, route = stops
    site = web.site({"/robots.txt": route, "/gone": answer(RULES, status=404)})
    settings = {"REP_FETCH_RETRIES": 3, "DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]}}
    result, access = await outcome(site, spider=stopping(signal, fail=fail), settings=settings)
    assert access is expected
    if expected is UNREACHABLE:
        assert result.stats["robotstxt/request_count"] == 1, "another request would be stopped, too"
        warning, _summary = [message for message in result.messages() if "StopDownload" in message]
        assert "skip requests that have 'rep_robots_txt' in their meta. " in warning


def stopping(signal: object, *, fail: bool) -> type[CrawlSpider]:
    """A spider that stops each download, as a spider does that accepts only some types or sizes."""

    def stop() -> None:
        raise StopDownload(fail=fail)

    class Stops(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            self.crawler.signals.connect(stop, signal=signal, weak=False)
            async for request in super().start():
                yield request

    return Stops


@ensureDeferred
async def test_a_robots_txt_that_another_middleware_requests_again_is_read_whole(web: Web) -> None:
    site = web.robots("user-agent: *\n" + "#" * 400_000 + "\ndisallow: /private\n")
    _, access = await outcome(site, settings={"DOWNLOADER_MIDDLEWARES": {RequestsRobotsTxtAgain: 200}})
    assert access is AccessResult.SUCCESS
    assert len(site.robots_requests) == 2


class RequestsRobotsTxtAgain:
    """Requests robots.txt again, as a middleware does that takes an answer for a ban."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if request.url.endswith("/robots.txt") and not request.meta.get("again"):
            return request.replace(meta={**request.meta, "again": True}, dont_filter=True)
        return response


@ensureDeferred
async def test_any_exception_of_another_middleware_is_unreachable(web: Web) -> None:
    site = web.robots(RULES)
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {RaisesForRobotsTxt: 200}})
    assert list(result.refused) == [site.url("/")]
    assert result.stats["robotstxt/exception_count/<class 'ZeroDivisionError'>"] == 1
    (error,) = result.tracebacks
    assert "RaisesForRobotsTxt has raised ZeroDivisionError. The site is not at fault" in error


class RaisesForRobotsTxt:
    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            raise ZeroDivisionError


# Headers and bodies that decide instead of the status.

ANUBIS = f'<!doctype html><html><head><script id="anubis_challenge">{{}}</script></head>\n{RULES}</html>'
CHALLENGES = {
    "Cloudflare": answer(RULES, status=403, headers={"CF-Mitigated": "challenge"}),
    "AWS WAF": answer(status=405, headers={"x-amzn-waf-action": "captcha"}),
    "Vercel": answer(RULES, status=429, headers={"X-Vercel-Mitigated": "challenge"}),
    "Anubis": answer(ANUBIS),
    "Imperva": answer(f'<html><iframe src="/_Incapsula_Resource?SWUDNSAI=31"></iframe>\n{RULES}</html>'),
    "DataDome": answer('<html><script src="https://ct.captcha-delivery.com/c.js"></script></html>', status=403),
    "Web Bot Auth": answer(status=401, headers={"Accept-Signature": 'sig1=("@authority");tag="web-bot-auth"'}),
}


@pytest.mark.parametrize("vendor", CHALLENGES)
@ensureDeferred
async def test_a_challenge_is_unreachable(web: Web, vendor: str) -> None:
    site = web.robots(CHALLENGES[vendor])
    result, access = await outcome(site, settings={"REP_FETCH_RETRIES": 3})
    assert access is AccessResult.UNREACHABLE
    assert len(site.robots_requests) == 1
    causes = {error.cause for error in result.refused.values()}
    assert causes == {f"HTTP {CHALLENGES[vendor]['status']}, a challenge by {vendor}"}


@pytest.mark.parametrize(("status", "coding"), [(202, ""), (403, "gzip")])
@ensureDeferred
async def test_a_challenge_that_is_recognized_by_its_page_whatever_the_status(
    web: Web, status: int, coding: str
) -> None:
    body = gzip.compress(ANUBIS.encode()) if coding else ANUBIS.encode()
    site = web.robots(answer(body, status=status, headers={"Content-Encoding": coding} if coding else {}))
    result, access = await outcome(site)
    assert access is AccessResult.UNREACHABLE
    assert {error.cause for error in result.refused.values()} == {f"HTTP {status}, a challenge by Anubis"}


@ensureDeferred
async def test_an_error_page_that_cannot_be_decoded_is_judged_by_its_status(web: Web) -> None:
    site = web.robots(answer(b"\xff" + ANUBIS.encode(), status=404, headers={"Content-Encoding": "gzip"}))
    _, access = await outcome(site)
    assert access is AccessResult.UNAVAILABLE


@pytest.mark.parametrize("name", ["Content-Type", "X"])
@ensureDeferred
async def test_a_page_of_html_is_unavailable(web: Web, name: str) -> None:
    site = web.robots(answer("<!DOCTYPE html>\n<title>Welcome</title>", headers={name: "text/html"}))
    _, access = await outcome(site)
    assert access is AccessResult.UNAVAILABLE


@ensureDeferred
async def test_rules_in_a_page_of_html_are_read(web: Web) -> None:
    _, access = await outcome(web.robots(answer(f"<pre>\n{RULES}</pre>", headers={"Content-Type": "text/html"})))
    assert access is AccessResult.SUCCESS


# Policies.


@ensureDeferred
async def test_overrides_by_status_and_range(web: Web) -> None:
    policy = {range(400, 500): "restricted", 404: "unavailable", "500-599": "unavailable"}
    expected = {403: "restricted", 404: "unavailable", 503: "unavailable", 407: "restricted", 429: "restricted"}
    for status, access in expected.items():
        _, found = await outcome(web.robots(answer(status=status)), settings={"REP_STATUS_POLICY": policy})
        assert found.value == access


@ensureDeferred
async def test_overrides_of_challenges_of_markup_and_of_202(web: Web) -> None:
    settings = {"REP_STATUS_POLICY": {"challenge": "unavailable", "markup": "unreachable", 202: "restricted"}}
    routes = {"unavailable": CHALLENGES["AWS WAF"], "unreachable": answer("<p>"), "restricted": answer(status=202)}
    for access, route in routes.items():
        _, found = await outcome(web.robots(route), settings=settings)
        assert found.value == access


# Retries and limits.


@ensureDeferred
async def test_a_server_error_is_requested_again_once(web: Web) -> None:
    site = web.robots([answer(status=503), answer(RULES)])
    result, access = await outcome(site, settings={"REP_FETCH_RETRIES": 1}, robots=with_clock(Time()))
    assert access is AccessResult.SUCCESS
    assert len(site.robots_requests) == 2
    assert result.stats["rep/retries"] == 1


@pytest.mark.parametrize("status", [404, 407, 429, 304])
@ensureDeferred
async def test_an_answer_that_would_not_change_is_not_requested_again(web: Web, status: int) -> None:
    site = web.robots(answer(status=status))
    settings = {"REP_FETCH_RETRIES": 3, "REP_STATUS_POLICY": "cautious"}
    await outcome(site, settings=settings, robots=with_clock(Time()))
    assert len(site.robots_requests) == 1


@ensureDeferred
async def test_a_host_that_hangs_is_not_requested_again(web: Web) -> None:
    site = web.robots(answer(kind="hang"))
    settings = {"REP_FETCH_RETRIES": 3, "REP_FETCH_TIMEOUT": 0.3}
    _, access = await outcome(site, settings=settings, robots=with_clock(Time()))
    assert access is AccessResult.UNREACHABLE
    assert len(site.robots_requests) == 1


@ensureDeferred
async def test_scrapys_retry_middleware_does_not_retry_robots_txt(web: Web) -> None:
    site = web.robots(answer(status=503))
    await outcome(site, settings={"RETRY_ENABLED": True})
    assert len(site.robots_requests) == 1


@ensureDeferred
async def test_a_body_is_read_up_to_the_limit(web: Web) -> None:
    line = "disallow: /x\n"
    head = "user-agent: *\ndisallow: /private\n"
    body = head + line * (512_000 // len(line)) + "disallow: /late\n"
    site = web.robots(answer(body))
    result = await crawl(site.url("/private"), site.url("/late"))
    assert list(result.refused) == [site.url("/private")]


@ensureDeferred
async def test_the_download_of_an_endless_body_stops_at_the_limit(web: Web) -> None:
    site = web.robots(answer((RULES + "#" * 65_000).encode(), kind="endless"))
    result, access = await outcome(site)
    assert access is AccessResult.SUCCESS
    assert result.stats["downloader/response_bytes"] < 2 * 512_000


@ensureDeferred
async def test_a_compressed_body_is_decoded_up_to_the_limit(web: Web) -> None:
    bomb = gzip.compress(RULES.encode() + b"#" * 100_000_000, 1)
    site = web.robots(answer(bomb, headers={"Content-Encoding": "x-gzip"}))
    result, access = await outcome(site)
    assert access is AccessResult.SUCCESS
    assert result.stats.get("httpcompression/response_bytes", 0) == 0, (
        "Scrapy, which has no such limit, did not decode it"
    )


COMPRESSIONS = ("gzip", "deflate", "br", "zstd")


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        pytest.param(gzip.compress(RULES.encode()), None, id="gzip-unnamed"),
        pytest.param(RULES.encode(), "utf-8", id="utf-8"),
        pytest.param(RULES.encode(), "none", id="none"),
        *(pytest.param(RULES.encode(), coding, id=coding) for coding in COMPRESSIONS),
    ],
)
@ensureDeferred
async def test_rules_under_a_wrong_content_encoding_are_read(web: Web, body: bytes, coding: str | None) -> None:
    site = web.robots(answer(body, headers={"Content-Encoding": coding} if coding else {}))
    result, access = await outcome(site)
    assert access is AccessResult.SUCCESS
    said = f"{site.robots_url}: the Content-Encoding is wrong. The body is plain text, and is read"
    assert result.messages(logging.INFO, "scrapy_rep").count(said) == (coding in COMPRESSIONS)


@pytest.mark.parametrize(("status", "expected"), [(404, AccessResult.UNAVAILABLE), (202, AccessResult.UNREACHABLE)])
@ensureDeferred
async def test_a_body_that_is_not_read_is_not_called_read(web: Web, status: int, expected: AccessResult) -> None:
    site = web.robots(answer(RULES, status, headers={"Content-Encoding": "gzip"}))
    result, access = await outcome(site)
    assert access is expected
    assert not [m for m in result.messages(logging.INFO, "scrapy_rep") if "Content-Encoding" in m]


@ensureDeferred
async def test_a_limit_above_the_minimum(web: Web) -> None:
    filler = "#" * 512_000 + "\n"
    site = web.robots("user-agent: *\n" + filler + "disallow: /private\n")
    _, access = await outcome(site, settings={"REP_BODY_LIMIT": 600_000})
    assert access is AccessResult.SUCCESS
