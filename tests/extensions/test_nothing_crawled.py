"""The log at the end of a crawl whose start requests were all refused. The finish reason is Scrapy's own."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from crawling import BUILTIN, CrawlSpider, crawl
from loopback import serving
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from web import RULES, Route, Web, answer

from scrapy_rep.fetching.download import DROPPED, STOPPED
from scrapy_rep.protocol.words import failure

NOTHING = "user-agent: *\ndisallow: /\n"


def instead(url: str) -> type[CrawlSpider]:
    """A spider that requests this URL after each refusal."""

    class Instead(CrawlSpider):
        def failed(self, failure: Any) -> Any:
            super().failed(failure)
            yield self.prepared(url)

    return Instead


@ensureDeferred
async def test_the_log_says_that_every_start_request_was_refused(web: Web) -> None:
    site, down = web.robots(NOTHING), web.robots(answer(status=503))
    result = await crawl(site.url("/a"), site.url("/b"), down.url("/"))
    warning, *advice = result.denied
    start = "Nothing was crawled: every start request was refused (3). The first: "
    # The first is the request whose robots.txt was known first.
    assert warning in {f"{start}{error}" for error in result.refused.values()}
    assert all(any(cure in line for line in advice) for cure in ("scrapy robots", "all crawlers", "later"))
    (record,) = (record for record in result.log if record.levelno == logging.ERROR)
    assert record.getMessage() == warning


@pytest.mark.parametrize(
    ("route", "advice"),
    [
        (answer(NOTHING), ["The rule is for all crawlers that robots.txt does not name. Ask the site for access"]),
        (
            answer("user-agent: scrapy\ndisallow: /\n"),
            ["The rule is for 'Scrapy'. If your crawler has another name, set ROBOTSTXT_USER_AGENT to that name"],
        ),
        (
            answer(status=503),
            ["robots.txt was unreachable. Check that the site is up. Crawl later, or more slowly"],
        ),
        (
            answer(status=403),
            ["The site restricts access to robots.txt. Ask it for access, or change REP_STATUS_POLICY"],
        ),
    ],
    ids=["rule-for-all", "rule", "outage", "policy"],
)
@ensureDeferred
async def test_the_advice_depends_on_the_cause(web: Web, route: Route, advice: list[str]) -> None:
    result = await crawl(web.robots(route).url("/"), settings={"REP_STATUS_POLICY": "cautious"})
    for_all = (
        "Is the site yours, or have you permission to crawl it? Set REP_EXEMPT. `scrapy robots URL` explains refusals"
    )
    assert result.denied[1:] == [*advice, for_all]


IS_UP = "Check that the site is up. Crawl later, or more slowly"


@pytest.mark.parametrize(
    ("way", "kind", "cure"),
    [
        ("dns", "DNS", "Check the name of the host"),
        ("tls", "TLS", "Check that the site has https, and a certificate for this name"),
        ("refused", "", IS_UP),
        ("hang", "", IS_UP),
        ("reset", "", IS_UP),
        ("proxy", "proxy", "Check the proxy"),
        ("scheme", "scheme", "Check the scheme of the URL"),
    ],
)
@ensureDeferred
async def test_the_advice_depends_on_the_failure(web: Web, tmp_path: Path, way: str, kind: str, cure: str) -> None:
    async def no_tls(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    broken = web.robots(answer(kind=way if way in {"hang", "reset"} else "answer"))
    urls = {
        "dns": "http://exmaple.invalid/",
        "refused": "http://127.0.0.1:1/",
        "scheme": "htp://exmaple.invalid/",
    }
    report = tmp_path / "report.html"
    settings = {"REP_FETCH_TIMEOUT": 0.5 if way == "hang" else 30, "REP_REPORT": str(report)}
    async with serving(no_tls) as host:
        request = Request({**urls, "tls": f"https://{host}/"}.get(way, broken.url("/")))
        if way == "proxy":
            request.meta["proxy"] = "http://127.0.0.1:1"
        result = await crawl(request, settings=settings)
    # To exempt a site that does not answer is no help.
    assert result.denied[1:] == [f"robots.txt was unreachable. {cure}"]
    assert f"REP_UNREACHABLE_DAYS. {cure} (in the docs: Difficult sites)" in report.read_text("utf-8")
    counted = f"robots.txt of 1 origin: 1 unreachable{f' (1 x {kind})' if kind else ''}"
    assert counted in result.messages(logging.INFO)


@pytest.mark.parametrize(
    ("kind", "answer_in_words"),
    [
        # As the handlers of Scrapy for Twisted, httpx and aiohttp, and older releases of Scrapy, name them.
        ("DNS", "CannotResolveHostError: [Errno -2] Name or service not known"),
        ("DNS", "DNSLookupError: DNS lookup failed: no results for hostname lookup: exmaple.invalid"),
        ("TLS", "Error: [('SSL routines', '', 'wrong version number')]"),
        ("TLS", "DownloadConnectionRefusedError: [SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1000)"),
        (
            "TLS",
            "VerificationError: VerificationError(errors=[DNSMismatch(mismatched_id=DNS_ID(hostname=b'a.example'))])",
        ),
        ("", "DownloadConnectionRefusedError: Cannot connect to host 127.0.0.1:1 ssl:<ssl.SSLContext object at 0x7f>"),
        ("", "DownloadTimeoutError: Getting https://ssl.certificate.example/SSL took longer than 1 seconds"),
        ("scheme", "NotSupported: Unsupported URL scheme 'htp': no handler available for that scheme"),
        ("proxy", "CannotResolveHostError: no such host, through the proxy http://exmaple.invalid:8080"),
        ("proxy", "HTTP 407"),
        ("component", DROPPED % "IgnoreRequest: no"),
        ("component", STOPPED),
        ("component", "own.Middleware has raised KeyError: 'x'. The site is not at fault"),
        ("component", "A component of the crawl has raised KeyError: 'x'. The site is not at fault"),
        ("", "HTTP 503"),
    ],
)
def test_the_kind_of_a_failure(kind: str, answer_in_words: str) -> None:
    assert failure(answer_in_words) == kind


@pytest.mark.parametrize("robots", [None, BUILTIN], ids=["ours", "built-in"])
@ensureDeferred
async def test_the_finish_reason_is_that_of_the_built_in(web: Web, tmp_path: Path, robots: Any) -> None:
    """Monitors and deployments count every other reason as a failure."""
    for _ in range(2):
        site = web.robots(NOTHING)
        result = await crawl(Request(site.url("/")), Request(site.url("/")), robots=robots)
        assert result.stats["finish_reason"] == "finished"
        assert bool(result.denied) is (robots is None)
    result = await crawl(site.url("/"), robots=robots, settings={"JOBDIR": str(tmp_path)})
    assert result.stats["finish_reason"] == "finished"
    assert getattr(result.crawler.spider, "state", {}) == {}


@pytest.mark.parametrize("where", ["start", "callback", "errback", "cache", "exempt"])
@ensureDeferred
async def test_a_page_that_came_is_a_crawl(web: Web, tmp_path: Path, where: str) -> None:
    site = web.robots(RULES)

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            if not response.url.endswith("/private"):
                yield self.prepared(site.url("/private"))

    spiders = {"start": CrawlSpider, "callback": Follows, "exempt": CrawlSpider}
    urls = {"start": ["/private", "/"], "callback": ["/"], "exempt": ["/private", "/own"]}.get(where, ["/private"])
    cached = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)} if where == "cache" else {}
    for _ in range(1 + (where == "cache")):
        result = await crawl(
            *(Request(site.url(url), meta={"dont_obey_robotstxt": url == "/own"}) for url in urls),
            spider=spiders.get(where, instead(site.url("/instead"))),
            settings=cached,
        )
        assert result.refused
        assert result.denied == []


@ensureDeferred
async def test_a_request_that_fails_otherwise_was_not_refused(web: Web) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/gone": answer(kind="reset")})

    class Again(CrawlSpider):
        def failed(self, failure: Any) -> Any:
            super().failed(failure)
            if failure.request.url.endswith("/gone"):
                yield from (self.prepared(site.url(f"/private/{n}")) for n in range(3))

    result = await crawl(site.url("/private"), site.url("/gone"), spider=Again)
    assert list(result.failed) == [site.url("/gone")]
    assert result.denied == []


@ensureDeferred
async def test_a_crawl_that_was_stopped_or_asked_for_nothing_says_nothing(web: Web) -> None:
    class Stops(CrawlSpider):
        def failed(self, failure: Any) -> Any:
            raise CloseSpider("enough")

    assert (await crawl(web.robots(NOTHING).url("/"), spider=Stops)).denied == []
    assert (await crawl()).denied == []
    assert (await crawl(web.robots(NOTHING).url("/"), settings={"REP_DRY_RUN": True})).denied == []
