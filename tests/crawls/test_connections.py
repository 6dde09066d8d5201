"""CONCURRENT_REQUESTS limits the connections for pages and for robots.txt files together, where the project sets it.

Through a proxy, it always does: plans of proxies allow a number of connections, and answer 429 above it.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from crawling import BY_ORIGIN, Crawl, CrawlSpider, close_spider, crawl
from processes import crawled
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.internet import reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IResolverSimple
from web import RULES, Route, Site, Web, answer, most_at_once
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_rep import RepMiddleware
from scrapy_rep.fetching import places
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import sleep

HOSTS = [f"http://site{n}.example" for n in range(60)]
LIMIT = 5


@implementer(IResolverSimple)
class Here:
    """Resolves every name to 127.0.0.1."""

    def getHostByName(self, name: str, timeout: Any = ()) -> Deferred[str]:  # noqa: N802
        return succeed("127.0.0.1")


@pytest.fixture
def every_name_is_here() -> Iterator[None]:
    loop: Any = reactor
    before = loop.installResolver(Here())
    yield
    loop.installResolver(before)


def server(web: Web, *, delay: float = 0.02, **more: Any) -> Site:
    """A proxy, or a server of many hosts: it answers each request after `delay` seconds."""
    robots = answer(RULES, delay=delay)
    routes: dict[str, Route] = {"*": answer("page", delay=delay), "/robots.txt": robots}
    routes |= {f"{host}/robots.txt": robots for host in HOSTS}
    return web.site(routes, **more)


def assert_all_pages(result: Crawl, site: Site, *, number: int = len(HOSTS), limit: int = LIMIT) -> None:
    assert result.refused == result.failed == {}
    assert [response.status for response in result.pages.values()] == [200] * number
    assert most_at_once(site.requests) <= limit
    assert result.tracebacks == []


class SetsProxy:
    """A downloader middleware that gives each request a proxy."""

    address = ""

    def process_request(self, request: Request) -> None:
        request.meta["proxy"] = self.address


@pytest.mark.parametrize("by", ["meta", "middleware", "environment"])
@ensureDeferred
async def test_a_proxy_that_allows_some_connections(web: Web, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = server(web, limit=LIMIT)
    monkeypatch.setattr(SetsProxy, "address", proxy.origin)
    if by == "environment":
        monkeypatch.setenv("http_proxy", proxy.origin)
    meta = {"proxy": proxy.origin} if by == "meta" else {}
    middlewares = {SetsProxy: 700} if by == "middleware" else {}
    settings = {"CONCURRENT_REQUESTS": LIMIT, "DOWNLOADER_MIDDLEWARES": middlewares}
    result = await crawl(*(Request(f"{host}/", meta=meta) for host in HOSTS), settings=settings)
    assert_all_pages(result, proxy)


@pytest.mark.parametrize("more", [{}, {"REP_FETCH_CONCURRENCY": 64}, {"REP_FETCH_CONCURRENCY": 0}], ids=str)
@ensureDeferred
async def test_a_slow_proxy(web: Web, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    """A request that is slow still has its connection."""
    monkeypatch.setattr(places, "SLOW_AFTER", 0.02)
    proxy = server(web, delay=0.1, limit=LIMIT)
    requests = [Request(f"{host}/", meta={"proxy": proxy.origin}) for host in HOSTS]
    result = await crawl(*requests, settings={"CONCURRENT_REQUESTS": LIMIT, **more})
    assert_all_pages(result, proxy)


@ensureDeferred
async def test_a_proxy_has_scrapys_default_number_of_connections(web: Web) -> None:
    proxy = server(web, delay=0.1, limit=16)
    result = await crawl(*(Request(f"{host}/", meta={"proxy": proxy.origin}) for host in HOSTS))
    assert_all_pages(result, proxy, limit=16)


@ensureDeferred
async def test_many_hosts_of_one_server(web: Web, every_name_is_here: None) -> None:
    site = server(web, limit=LIMIT)
    urls = [f"{host}:{site.port}/" for host in HOSTS]
    result = await crawl(*urls, settings={"CONCURRENT_REQUESTS": LIMIT})
    assert_all_pages(result, site)


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        pytest.param({"CONCURRENT_REQUESTS": 3, "REP_FETCH_CONCURRENCY": 2}, 2, id="on top of the project's"),
        pytest.param({"REP_FETCH_CONCURRENCY": 2}, 2, id="on top of the default"),
        pytest.param({"REP_FETCH_CONCURRENCY": 0}, 16, id="none on top"),
        pytest.param({}, None, id="neither is set"),
    ],
)
@ensureDeferred
async def test_rep_fetch_concurrency_comes_on_top(
    web: Web, every_name_is_here: None, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], most: int | None
) -> None:
    monkeypatch.setattr(places, "SLOW_AFTER", 60.0)
    site = server(web, delay=0.1 if most else 1.0)
    result = await crawl(*(f"{host}:{site.port}/" for host in HOSTS), settings=settings)
    pages = settings.get("CONCURRENT_REQUESTS", 16)
    assert_all_pages(result, site, limit=max(most or 0, pages + settings.get("REP_FETCH_CONCURRENCY", 64)))
    at_once = most_at_once(site.robots_requests)
    assert at_once <= most if most else at_once > 16


@pytest.mark.parametrize("waiting_max", [0, 1_000], ids=["in-the-downloader", "at-the-scheduler"])
@pytest.mark.parametrize("has_proxy", [True, False], ids=["proxy", "direct"])
@ensureDeferred
async def test_one_connection_suffices(web: Web, every_name_is_here: None, waiting_max: int, has_proxy: bool) -> None:
    """Pages may wait in the downloader for their own robots.txt. Downloads of callbacks need no place."""
    site = server(web)
    meta = {"proxy": site.origin} if has_proxy else {}
    port = "" if has_proxy else f":{site.port}"

    class DownloadsMore(CrawlSpider):
        async def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            assert self.crawler.engine is not None
            if response.url.endswith("/"):
                file = Request(response.url.replace("site", "site1") + "file", meta=meta)
                self.crawl.ends.append((await self.crawler.engine.download_async(file)).status)

    settings = {"CONCURRENT_REQUESTS": 1, "REP_WAITING_MAX": waiting_max}
    requests = [Request(f"{host}{port}/", meta=meta) for host in HOSTS[:6]]
    result = await crawl(*requests, spider=DownloadsMore, settings=settings)
    assert_all_pages(result, site, number=6, limit=1 + 6)
    assert most_at_once([each for each in site.requests if not each["target"].endswith("file")]) == 1
    assert result.ends == [200] * 6


@pytest.mark.parametrize("kind", ["hang", "hold"])
@ensureDeferred
async def test_dead_hosts_give_their_places_to_others(web: Web, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = [web.robots(answer(kind=kind)) for _ in range(12)]
    healthy = [web.robots(RULES) for _ in range(6)]

    class Stops(CrawlSpider):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            if len(self.crawl.pages) == len(healthy):
                close_spider(self, "enough")

    monkeypatch.setattr(places, "SLOW_AFTER", 0.05)
    settings = {**BY_ORIGIN, "CONCURRENT_REQUESTS": 2, "REP_FETCH_TIMEOUT": 60}
    result = await crawl(*(site.url() for site in (*dead, *healthy)), spider=Stops, settings=settings)
    assert len(result.pages) == len(healthy)


@ensureDeferred
async def test_a_stop_ends_requests_that_wait_for_a_place(web: Web) -> None:
    proxy = web.site({"*": answer(kind="hang")})

    class Stops(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            for request in self.requests:
                yield self.prepared(request)
            while len(RepMiddleware.of(self.crawler)._single_flight._fetches) < 4:
                await sleep(0.01)
            close_spider(self, "enough")

    settings = {"CONCURRENT_REQUESTS": 2, "REP_FETCH_TIMEOUT": 60}
    requests = [Request(f"{host}/", meta={"proxy": proxy.origin}) for host in HOSTS]
    result = await crawl(*requests, spider=Stops, settings=settings)
    assert result.crawler.stats.get_value("finish_reason") == "enough"
    assert len(proxy.requests) <= 2
    assert result.tracebacks == []


# What does not come from the scheduler, and a limit that changes.


FILES = [f"http://files{n}.example" for n in range(72)]


class ReleasesTogether(CrawlSpider):
    """Lets the pages answer when as many are under way as should be, or after ten seconds."""

    site: Site
    number: int

    async def start(self) -> AsyncIterator[Request]:
        async for request in super().start():
            yield request
        for _ in range(100):
            if len(self.site.requests) - len(self.site.robots_requests) >= self.number:
                break
            await sleep(0.1)
        self.site.web.release(self.site)


def pages_at_once(site: Site) -> int:
    return most_at_once(request for request in site.requests if request["target"] != "/robots.txt")


@ensureDeferred
async def test_files_of_a_pipeline_need_no_place(web: Web, every_name_is_here: None, tmp_path: Path) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/": answer("page"), "*": answer("file", kind="hold")})

    class HasFiles(CrawlSpider):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            yield {"file_urls": [f"{host}:{site.port}/file" for host in FILES]}

    spider = type("Together", (ReleasesTogether, HasFiles), {"site": site, "number": 1 + len(FILES)})
    pipeline = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": str(tmp_path)}
    result = await crawl(f"{HOSTS[0]}:{site.port}/", spider=spider, settings={**pipeline, "CONCURRENT_REQUESTS": 4})
    assert pages_at_once(site) == len(FILES)
    assert result.stats["file_count"] == len(FILES)
    assert result.tracebacks == []


@ensureDeferred
async def test_a_limit_that_is_raised_during_the_crawl(web: Web, every_name_is_here: None) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/": answer("page"), "*": answer("page", kind="hold")})

    class Raises(CrawlSpider):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            self.crawl.downloader.total_concurrency = 32

    spider = type("Together", (ReleasesTogether, Raises), {"site": site, "number": 1 + 32})
    urls = [f"{host}:{site.port}/{'page' * (n > 0)}" for n, host in enumerate(HOSTS)]
    result = await crawl(*urls, spider=spider, settings={"CONCURRENT_REQUESTS": 2})
    assert pages_at_once(site) == 32
    assert_all_pages(result, site, limit=32)


class NeedsToken(HTTP11DownloadHandler):
    """Gets a token through the engine before it downloads a page."""

    base = ""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.crawler: Any = crawler

    async def download_request(self, request: Request) -> Response:
        if request.url.endswith("/page"):
            token = Request(urljoin(self.base or request.url, "token"))
            await asyncio.wait_for(self.crawler.engine.download_async(token), 10)
        return await super().download_request(request)


@ensureDeferred
async def test_a_download_handler_that_downloads_through_the_engine(web: Web) -> None:
    site = web.site({"/robots.txt": answer(RULES), "*": answer("page")})
    settings = {"CONCURRENT_REQUESTS": 1, "DOWNLOAD_HANDLERS": {"http": NeedsToken}}
    result = await crawl(site.url("/page"), settings=settings)
    assert site.targets == ["/robots.txt", "/token", "/page"]
    assert result.tracebacks == []


@pytest.mark.skipif(sys.platform != "linux", reason="this reactor needs Linux")
def test_links_that_fail_at_once_without_asyncio(web: Web) -> None:
    """They wait while all places are taken. Then one after the other fails in the call that gives it its place."""
    hanging = [web.robots(answer(kind="hang")).url() for _ in range(90)]
    failing = [f"nothing://host{n}.example/" for n in range(200)]
    reactor = {"TWISTED_REACTOR": "twisted.internet.epollreactor.EPollReactor", "DOWNLOADER": "crawling.SlotByOrigin"}
    ended = crawled([*hanging, *failing], {**reactor, "CONCURRENT_REQUESTS": 90, "REP_FETCH_TIMEOUT": 2})
    assert Counter(ended.by_url.values()) == {"RobotsUnreachable": 290}
    assert ended.complaints == []


def is_awaited(crawler: Crawler, site: Site) -> bool:
    """Whether a fetch of the site's robots.txt is under way."""
    return Origin.of(site.origin) in RepMiddleware.of(crawler)._single_flight._fetches


@ensureDeferred
async def test_a_download_handler_that_waits_for_a_robots_txt_lets_the_crawl_end(web: Web) -> None:
    """With one place, which its own request has. When the crawl begins to close, everybody gets a place."""
    site, other = web.robots(RULES), web.robots(RULES)
    handler = type("Handler", (NeedsToken,), {"base": other.url("/")})

    class Closes(CrawlSpider):
        async def start(self) -> Any:
            yield self.prepared(site.url("/page"))
            while not is_awaited(self.crawler, other):
                await sleep(0.05)
            await sleep(0.1)
            self.crawl.ends.append(other.targets)
            close_spider(self, "enough")

    settings = {"CONCURRENT_REQUESTS": 1, "DOWNLOAD_HANDLERS": {"http": handler}}
    result = await crawl(spider=Closes, settings=settings)
    assert list(result.pages) == [site.url("/page")]
    assert result.ends == [[]]
    assert other.targets == ["/robots.txt", "/token"]
    assert result.stats["finish_reason"] == "enough"
