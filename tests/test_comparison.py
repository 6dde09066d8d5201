"""The README's comparison, row by row: Scrapy's own middleware and ours (`pytest -k comparison`)."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from os import urandom
from typing import Any

import pytest
from crawling import ADDON, BUILTIN, Crawl, CrawlSpider, Time, crawl, forbidden, with_clock
from protego import Protego
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Response, TextResponse
from web import Route, Site, Web, answer, redirect

from scrapy_rep import RobotsTxt
from scrapy_rep.scrapy_internals.compat import sleep

EACH = pytest.mark.parametrize(("robots", "is_ours"), [(BUILTIN, False), (ADDON, True)], ids=["built-in", "ours"])
RULES = "user-agent: *\ndisallow: /\n"


async def crawled(site: Site, robots: dict[str, Any], path: str = "/", **settings: Any) -> Crawl:
    return await crawl(site.url(path), robots=robots, settings=settings)


class AnsweredWhenAllWait(CrawlSpider):
    """The robots.txt is held until every request waits for it."""

    site: Site

    async def start(self) -> AsyncIterator[Request]:
        async for request in super().start():
            yield request
        while self.crawler.stats.get_value("scheduler/dequeued") != len(self.requests):
            await sleep(0.01)
        for _ in range(100):  # from the scheduler to the middleware
            await sleep(0)
        self.site.web.release(self.site)


@pytest.mark.parametrize(
    "settings",
    [{}, {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 0.1}],
    ids=["defaults", "template"],
)
@EACH
@ensureDeferred
async def test_requests_that_wait_for_the_same_robots_txt(
    web: Web, robots: dict[str, Any], is_ours: bool, settings: dict[str, Any]
) -> None:
    """Eight pages that wait for the same robots.txt, which forbids them all."""
    site = web.robots(answer(RULES, kind="hold"))
    urls = [site.url(f"/{page}") for page in range(8)]
    result = await crawl(*urls, robots=robots, spider=AnsweredWhenAllWait, settings=settings, site=site)
    assert len(result.pages) == (0 if is_ours else 6)


@pytest.mark.parametrize(
    "response",
    [answer(status=503), answer(kind="hang"), answer(RULES, kind="cut")],
    ids=["5xx", "hangs", "cut-off"],
)
@EACH
@ensureDeferred
async def test_unreachable(web: Web, robots: dict[str, Any], is_ours: bool, response: Route) -> None:
    """Robots.txt answers 5xx, hangs or is cut off."""
    site = web.robots(response)
    timeouts: dict[str, Any] = {} if is_ours else {"DOWNLOAD_TIMEOUT": 1}
    result = await crawled(site, robots, REP_FETCH_TIMEOUT=1, **timeouts)
    assert bool(result.pages) is not is_ours


@EACH
@ensureDeferred
async def test_error_page(web: Web, robots: dict[str, Any], is_ours: bool) -> None:
    """The body of an error page."""
    result = await crawled(web.robots(answer(RULES, status=404)), robots)
    assert bool(result.pages) is is_ours


@EACH
@ensureDeferred
async def test_redirect_to_another_site(web: Web, robots: dict[str, Any], is_ours: bool) -> None:
    """A robots.txt that redirects to another site, with `allowed_domains`."""
    other = web.robots(RULES)
    site = web.robots(redirect(f"http://localhost:{other.port}/robots.txt"))
    result = await crawl(site.url("/"), robots=robots, allowed_domains=["127.0.0.1"])
    assert bool(result.pages) is not is_ours


class BothSchemes:
    """A download handler: one host whose http and https have different rules."""

    lazy = False

    async def download_request(self, request: Request) -> Response:
        rules = RULES if request.url == "https://example.com/robots.txt" else ""
        return TextResponse(request.url, body=rules.encode(), request=request)

    async def close(self) -> None:
        pass


@EACH
@ensureDeferred
async def test_schemes(robots: dict[str, Any], is_ours: bool) -> None:
    """Http and https of one host."""
    handlers = {"http": BothSchemes, "https": BothSchemes}
    urls = ["http://example.com/", "https://example.com/"]
    settings = {"DOWNLOAD_HANDLERS": handlers, "CONCURRENT_REQUESTS": 1}
    result = await crawl(*(Request(url, priority=-n) for n, url in enumerate(urls)), robots=robots, settings=settings)
    assert sorted(result.pages) == (urls[:1] if is_ours else urls)


class OneAfterTheOther(CrawlSpider):
    time = Time()

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        if "first" in response.url:
            self.time.now += 61
            yield self.prepared(response.urljoin("/second"))


@EACH
@ensureDeferred
async def test_lifetime(web: Web, robots: dict[str, Any], is_ours: bool) -> None:
    """Rules past their lifetime."""
    site = web.robots(answer("", headers={"Cache-Control": "max-age=0"}))
    robots = with_clock(OneAfterTheOther.time) if is_ours else robots
    settings = {"REP_LIFETIME_MIN": 0}
    result = await crawl(site.url("/first"), spider=OneAfterTheOther, robots=robots, settings=settings)
    assert len(result.pages) == 2
    assert len(site.robots_requests) == (2 if is_ours else 1)


@EACH
@ensureDeferred
async def test_like_googlebot(web: Web, robots: dict[str, Any], is_ours: bool) -> None:
    """`like Googlebot` in the User-Agent."""
    site = web.robots("user-agent: googlebot\ndisallow:\n\nuser-agent: *\ndisallow: /\n")
    result = await crawled(site, robots, USER_AGENT="Mozilla/5.0 (compatible; NewsBot/1.0) like Googlebot")
    assert bool(result.pages) is not is_ours


def test_crawl_delay_between_user_agent_lines() -> None:
    """A `Crawl-delay` between user-agent lines."""
    text = "user-agent: a\ncrawl-delay: 5\nuser-agent: b\ndisallow: /\n"
    assert Protego.parse(text).can_fetch("https://example.com/", "a")
    assert not RobotsTxt.parse(text.encode()).allows("https://example.com/", "a")


@EACH
@ensureDeferred
async def test_large_file(web: Web, robots: dict[str, Any], is_ours: bool) -> None:
    """A robots.txt of more than 500 KiB."""
    site = web.robots("user-agent: *\n" + "# nothing\n" * 60_000 + "disallow: /private\n")
    assert bool((await crawled(site, robots, "/private")).pages) is is_ours


@EACH
@ensureDeferred
async def test_cut_in_gzip(web: Web, robots: dict[str, Any], is_ours: bool) -> None:
    """A compressed robots.txt whose data end too early."""
    body = gzip.compress(b"user-agent: *\n" + urandom(2_000).hex().encode() + b"\ndisallow: /\n")
    site = web.robots(answer(body[:-100], headers={"Content-Encoding": "gzip"}))
    assert bool((await crawled(site, robots)).pages) is not is_ours


@EACH
@ensureDeferred
async def test_dot_segments(web: Web, robots: dict[str, Any], is_ours: bool) -> None:
    """A page whose path has dot segments, such as `/x/../private`."""
    site = web.robots("user-agent: *\ndisallow: /private\n")
    assert bool((await crawled(site, robots, "/x/../private")).pages) is not is_ours


@EACH
@ensureDeferred
async def test_log_line(web: Web, robots: dict[str, Any], is_ours: bool) -> None:
    """The log line of a refusal."""
    site = web.robots(RULES)
    why = forbidden(f"{site.robots_url}, line 2, group of '*': Disallow: /") if is_ours else "Forbidden by robots.txt"
    lines = [m for m in (await crawled(site, robots)).messages(0) if m.startswith(why)]
    assert lines == [f"{why}: <GET {site.url('/')}>"]
