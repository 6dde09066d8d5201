"""REP_BYPASSED: forbidden pages that a download handler fetched, because it follows redirects by itself."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, FollowsByItself, crawl, forbidden
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from web import RULES, Site, Web, answer, redirect

from scrapy_rep import RepMiddleware, gate
from scrapy_rep.fetching import places
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import sleep

HANDLER: dict[str, Any] = {"DOWNLOAD_HANDLERS": {"http": FollowsByItself}}
DROP: dict[str, Any] = {**HANDLER, "REP_BYPASSED": "drop"}
SECRET = answer("secret")


def warnings(result: Crawl) -> list[str]:
    return [
        message
        for message in result.messages(logging.WARNING)
        if "rep/bypassed" in message or " was fetched in place of " in message
    ]


def leads_to(web: Web, other: Site) -> Site:
    return web.site({"/robots.txt": answer(RULES), "*": redirect(other.url("/private"))})


@ensureDeferred
async def test_by_default_such_a_page_is_counted_and_logged_once(web: Web) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/private/x": SECRET, "*": redirect("/private/x")})
    urls = [site.url(f"/{n}") for n in range(3)]
    result = await crawl(*urls, settings=HANDLER)
    assert [page.text for page in result.pages.values()] == ["secret"] * 3
    assert result.stats["rep/bypassed"] == 3
    warning, cure = warnings(result)
    assert warning.startswith(f"{site.url('/private/x')} was ")
    assert f" was fetched in place of {site.url('/')}" in warning
    assert f" robots.txt ({site.robots_url}, line 2" in warning
    assert cure == "Such pages are kept; REP_BYPASSED = 'drop' drops them. The stat rep/bypassed counts them"
    assert "robotstxt/forbidden" not in result.stats


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "fetched"])
@ensureDeferred
async def test_drop_uses_the_rules_of_the_origin_that_it_led_to(web: Web, is_known: bool) -> None:
    other = web.site({"/robots.txt": answer(RULES), "/private": SECRET})
    site = leads_to(web, other)
    first = [other.url("/")] if is_known else []
    settings = {**DROP, "CONCURRENT_REQUESTS": 1}
    result = await crawl(*first, site.url("/page"), settings=settings)
    assert list(result.pages) == first
    assert str(result.refused[site.url("/page")]) == (
        forbidden(f"{other.robots_url}, line 2, group of '*': Disallow: /private")
    )
    assert len(other.robots_requests) == 1
    assert (result.stats["rep/bypassed"], result.stats["robotstxt/forbidden"]) == (1, 1)
    assert warnings(result)[1].startswith("Such pages are dropped (REP_BYPASSED). ")
    assert result.tracebacks == []


@pytest.mark.parametrize("why", ["allowed", "exempt", "not-obeyed", "robots.txt", "dry-run"])
@ensureDeferred
async def test_pages_that_are_not_dropped(web: Web, why: str) -> None:
    other = web.robots("user-agent: *\nallow: /\n" if why == "allowed" else RULES)
    path = "/robots.txt" if why == "robots.txt" else "/private"
    site = web.site({"/robots.txt": answer(RULES), "*": redirect(other.url(path))})
    meta = {"dont_obey_robotstxt": True} if why == "not-obeyed" else {}
    settings = {**DROP, "REP_EXEMPT": [other.origin] if why == "exempt" else [], "REP_DRY_RUN": why == "dry-run"}
    result = await crawl(Request(site.url("/"), meta=meta), settings=settings)
    assert list(result.pages) == [site.url("/")]
    assert result.stats.get("rep/bypassed", 0) == (why == "dry-run")
    if why == "dry-run":
        assert warnings(result)[1].startswith("Such pages are kept (REP_DRY_RUN). ")


class Says(HTTP11DownloadHandler):
    """A download handler whose responses have another URL."""

    url = ""

    async def download_request(self, request: Request) -> Response:
        response = await super().download_request(request)
        return response if "robots.txt" in request.url else response.replace(url=self.url)


@pytest.mark.parametrize("url", ["about:blank", "http://[::1", "http://", "HTTP:", "", "data:,x"])
@ensureDeferred
async def test_a_handler_that_gives_a_strange_url(web: Web, url: str) -> None:
    site = web.robots(RULES)
    handler = type("SaysThis", (Says,), {"url": url})
    result = await crawl(site.url("/"), settings={**DROP, "DOWNLOAD_HANDLERS": {"http": handler}})
    assert list(result.pages) == [site.url("/")]
    assert result.tracebacks == []


@ensureDeferred
async def test_a_fragment_does_not_make_another_url(web: Web) -> None:
    site = web.robots(RULES)
    free = Request(site.url("/page#part"))
    result = await crawl(free, settings={"DOWNLOAD_HANDLERS": {"http": type("S", (Says,), {"url": site.url("/page")})}})
    assert len(result.pages) == 1
    assert "rep/bypassed" not in result.stats


class ReleasesLater(CrawlSpider):
    """Lets `held` answer when the spider has all pages."""

    web: Web
    held: Site

    def parse(self, response: Response, **more: Any) -> Any:
        super().parse(response, **more)
        assert "rep/bypassed" not in self.crawler.stats.get_stats()
        if len(self.crawl.pages) == len(self.requests):
            call_later(0.2, self.web.release, self.held)


@ensureDeferred
async def test_pages_that_are_only_counted_do_not_wait(web: Web) -> None:
    other = web.site({"/robots.txt": answer(RULES, kind="hold"), "/private": SECRET})
    site = leads_to(web, other)
    spider = type("Releases", (ReleasesLater,), {"web": web, "held": other})
    result = await crawl(*(site.url(f"/{n}") for n in range(40)), spider=spider, settings=HANDLER)
    assert [page.text for page in result.pages.values()] == ["secret"] * 40
    assert result.stats["rep/bypassed"] == 40
    assert len(other.robots_requests) == 1
    assert result.tracebacks == []


@ensureDeferred
async def test_pages_beyond_the_limit_of_look_ups_are_not_judged(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are those whose robots.txt is not known when the crawl ends."""
    monkeypatch.setattr(gate, "MAX_LOOK_UPS", 2)
    others = [web.site({"/robots.txt": answer(kind="reset"), "/private": SECRET}) for _ in range(5)]
    urls = [leads_to(web, other).url("/") for other in others]
    result = await crawl(*urls, settings={**HANDLER, "REP_UNREACHABLE_WAIT": 60})
    assert len(result.pages) == 5
    assert sum(bool(other.robots_requests) for other in others) == 2
    assert result.stats["rep/bypassed/not_judged"] == 5
    (line,) = (message for message in result.messages(logging.INFO) if "not judged" in message)
    assert line == "5 pages not judged (REP_BYPASSED): the robots.txt was not known in time"
    assert result.tracebacks == []


@ensureDeferred
async def test_look_ups_leave_most_places_to_pages(web: Web) -> None:
    """At most a quarter of them, and at least one: behind a proxy, a host that hangs holds its place."""

    class Asks(CrawlSpider):
        async def start(self) -> Any:
            may_look_up = RepMiddleware.of(self.crawler).gate.may_look_up
            for meta in ({"proxy": "http://a.example"}, {}):
                page = Request("http://site.example/", meta=meta)
                self.crawl.ends.append(sum(may_look_up(page, number) for number in range(100)))
            yield Request("data:,")

    limits = [(await crawl(spider=Asks, settings={"CONCURRENT_REQUESTS": number})).ends for number in (12, 1)]
    assert limits == [[3, 3], [1, 1]]
    assert (await crawl(spider=Asks)).ends == [4, 16]


@ensureDeferred
async def test_look_ups_for_pages_that_are_only_counted_hold_up_no_request(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not count as starting: with one place for fetches, two that start keep requests in the queue."""
    monkeypatch.setattr(places, "SLOW_AFTER", 0.05)
    dead = [web.site({"/robots.txt": answer(RULES, kind="hold"), "/private": SECRET}) for _ in range(4)]
    sites = [leads_to(web, other) for other in dead]
    new = web.robots(RULES)

    class Starting(CrawlSpider):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            self.crawl.ends.append(RepMiddleware.of(self.crawler)._single_flight._connections._starting.copy())
            if len(self.crawl.pages) == len(sites):
                yield self.prepared(new.url("/"))
            elif len(self.crawl.pages) > len(sites):
                for site in dead:
                    web.release(site)

    result = await crawl(*(site.url("/") for site in sites), spider=Starting, settings=HANDLER)
    assert len(result.pages) == len(sites) + 1
    origins = {Origin.of(other.origin) for other in dead}
    assert [starting & origins for starting in result.ends] == [set()] * len(result.pages)


@ensureDeferred
async def test_an_error_while_a_page_is_judged_in_the_background_is_logged(web: Web) -> None:
    other = web.site({"/robots.txt": answer(RULES, delay=0.1), "/private": SECRET})
    site = leads_to(web, other)

    def fail(*_: Any) -> Any:
        raise RuntimeError("a judge of the project's own")

    class Fails(CrawlSpider):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            RepMiddleware.of(self.crawler).gate.judges.append(fail)
            yield Request("data:,later", self.wait, dont_filter=True)

        async def wait(self, response: Response) -> None:
            await sleep(0.5)

    result = await crawl(site.url("/"), spider=Fails, settings=HANDLER)
    assert list(result.pages) == [site.url("/")]
    assert result.tracebacks == [f"Internal error while judging {other.url('/private')}"]


@ensureDeferred
async def test_a_crawl_that_closes_asks_no_more_for_pages_that_are_only_counted(web: Web) -> None:
    other = web.site({"/robots.txt": answer(RULES), "/private": answer("secret", kind="hold")})
    site = leads_to(web, other)

    class Closes(CrawlSpider):
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            while "/private" not in other.targets:
                await sleep(0.05)
            deferred_from_coro(self.crawler.engine.close_spider_async(reason="enough"))
            await sleep(0.1)
            web.release(other)

    result = await crawl(site.url("/"), spider=Closes, settings=HANDLER)
    assert len(result.pages) == 1
    assert (other.robots_requests, result.tracebacks) == ([], [])


@ensureDeferred
async def test_a_page_that_waits_for_robots_txt_is_judged_although_the_crawl_closes(web: Web) -> None:
    other = web.site({"/robots.txt": answer(RULES, kind="hold"), "/private": SECRET})
    site = leads_to(web, other)

    class Closes(CrawlSpider):
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            while "/robots.txt" not in other.targets:
                await sleep(0.05)
            deferred_from_coro(self.crawler.engine.close_spider_async(reason="enough"))
            await sleep(0.1)
            web.release(other)

    result = await crawl(site.url("/"), spider=Closes, settings=DROP)
    assert result.stats["finish_reason"] == "enough"
    assert (result.pages, len(result.refused)) == ({}, 1)
    assert result.tracebacks == []


@ensureDeferred
async def test_the_errback_of_a_dropped_page_receives_the_evidence_of_the_refusal(web: Web) -> None:
    other = web.site({"/robots.txt": answer(RULES), "/private": SECRET})
    site = leads_to(web, other)
    noted: list[Any] = []

    class Notes(CrawlSpider):
        def failed(self, failure: Any) -> None:
            super().failed(failure)
            noted.append(failure.request.meta["robots"])

    await crawl(site.url("/"), spider=Notes, settings={**DROP, "REP_EVIDENCE": True})
    ((url, allowed),) = ((evidence["url"], evidence["allowed"]) for evidence in noted)
    assert (url, allowed) == (other.url("/private"), False)


class RequestForShop(Request):
    """A request of a project, with an argument of its own."""

    def __init__(self, url: str, shop: str, **others: Any) -> None:
        super().__init__(url, **others)
        self.shop = shop


class NamesAnotherUrl(HTTP11DownloadHandler):
    async def download_request(self, request: Request) -> Response:
        response = await super().download_request(request)
        return response.replace(url=response.urljoin("/private/x"))


class ShopSpider(CrawlSpider):
    def prepared(self, request: str | Request) -> Request:
        meta = {"asked": request}
        return RequestForShop(str(request), "shop", callback=self.parse, errback=self.failed, meta=meta)


@ensureDeferred
async def test_a_page_of_a_request_of_the_project_s_own_class_is_judged(web: Web) -> None:
    site = web.robots(answer(RULES))
    settings = {"DOWNLOAD_HANDLERS": {"http": NamesAnotherUrl}}
    result = await crawl(site.url("/"), spider=ShopSpider, settings=settings)
    assert list(result.pages) == [site.url("/")]
    assert result.stats["rep/bypassed"] == 1


class FetchesByHttp:
    """Fetches `s3:` URLs by http, as Scrapy's handler for S3 does. The response has the URL of the http request."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        self.http = HTTP11DownloadHandler(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FetchesByHttp:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        return await self.http.download_request(request.replace(url=request.url.replace("s3://", "http://")))

    async def close(self) -> None:
        await self.http.close()


@ensureDeferred
async def test_a_page_of_a_scheme_without_robots_txt_is_not_judged_by_that_of_its_http_server(web: Web) -> None:
    site = web.site({"/robots.txt": answer("User-agent: *\nDisallow: /"), "*": SECRET})
    settings = {**DROP, "DOWNLOAD_HANDLERS": {"s3": FetchesByHttp}}
    url = site.url("/page").replace("http://", "s3://")
    result = await crawl(url, settings=settings)
    assert list(result.pages) == [url]
    assert "rep/bypassed" not in result.stats
    assert site.robots_requests == []
