"""The middleware: allowed requests, waiting, memory, logs and signals (RFC 9309 sections 2.2.2, 2.3 and 2.4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from crawling import CrawlSpider, Time, close_spider, crawl, forbidden, in_turn, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from web import RULES, Web, answer, redirect

from scrapy_rep import AccessResult, ForbiddenByRobots, RepMiddleware, RobotsUnreachable
from scrapy_rep.fetching.download import Fetcher
from scrapy_rep.fetching.memory import Memory
from scrapy_rep.protocol.outage import BACKOFFS
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import OCTETS_OF_ORIGIN
from scrapy_rep.signals import robots_parsed

NOTHING = "user-agent: *\ndisallow: /\n"


# Requests that are always allowed.


@ensureDeferred
async def test_robots_txt_itself_is_always_allowed(web: Web) -> None:
    site = web.robots(NOTHING)
    result = await crawl(site.url("/robots.txt"), site.url("/robots.txt#x"))
    assert len(result.pages) == 2
    assert result.stats.get("robotstxt/request_count") is None, "the request does not wait"


@ensureDeferred
async def test_robots_txt_with_a_query_is_judged_like_any_page(web: Web) -> None:
    site = web.robots(NOTHING)
    result = await crawl(site.url("/robots.txt?x"), site.url("/a/robots.txt"))
    assert len(result.refused) == 2


@ensureDeferred
async def test_a_request_may_be_exempt_by_its_meta(web: Web) -> None:
    site = web.robots(NOTHING)
    result = await crawl(Request(site.url("/"), meta={"dont_obey_robotstxt": True}))
    assert list(result.pages) == [site.url("/")]
    assert site.robots_requests == []


@ensureDeferred
async def test_urls_that_cannot_have_a_robots_txt_are_allowed(tmp_path: Any) -> None:
    file = tmp_path / "page.html"
    file.write_text("page")
    result = await crawl(file.as_uri(), "data:text/plain,page")
    assert [response.text for response in result.pages.values()] == ["page", "page"]
    assert "rep/waited" not in result.stats


@ensureDeferred
async def test_with_obeying_off_nothing_is_asked(web: Web) -> None:
    site = web.robots(NOTHING)
    result = await crawl(site.url("/"), settings={"ROBOTSTXT_OBEY": False})
    assert list(result.pages) == [site.url("/")]
    assert site.robots_requests == []
    assert result.crawler.get_downloader_middleware(RepMiddleware) is None


# Requests that wait.


@ensureDeferred
async def test_many_waiting_requests_cause_one_fetch(web: Web) -> None:
    site = web.robots(answer(RULES, delay=0.2))
    urls = [site.url(f"/{n}") for n in range(20)]
    result = await crawl(*urls, site.url("/private"), settings={"CONCURRENT_REQUESTS_PER_DOMAIN": 20})
    assert len(result.pages) == 20
    assert len(site.robots_requests) == 1
    assert result.stats["rep/cache/miss"] == 1
    assert result.stats["rep/waited"] == 21, "more than CONCURRENT_REQUESTS, because they wait at the scheduler"


@ensureDeferred
async def test_requests_to_known_origins_are_decided_without_an_await(web: Web) -> None:
    site = web.robots(RULES)
    decided: list[Any] = []

    class Asks(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> None:
            middleware = self.crawler.get_downloader_middleware(RepMiddleware)
            assert middleware is not None
            decided.append(middleware.process_request(Request(site.url("/other"))))
            with pytest.raises(ForbiddenByRobots):
                middleware.process_request(Request(site.url("/private")))

    await crawl(site.url("/"), spider=Asks)
    assert decided == [None]


@ensureDeferred
async def test_all_spellings_of_an_origin_share_one_robots_txt(web: Web) -> None:
    site = web.robots(RULES)
    local = f"localhost:{site.port}"
    urls = [
        f"http://{authority}/"
        for authority in (local, local.upper(), f"user:password@{local}", f"localhost.:{site.port}")
    ]
    result = await crawl(*urls)
    assert result.refused == {}
    assert result.stats["rep/cache/miss"] == len(site.robots_requests) == 1


@pytest.mark.parametrize("concurrency", [1, 16])
@ensureDeferred
async def test_requests_of_media_pipelines_wait_too(web: Web, concurrency: int) -> None:
    site, media = web.robots(RULES), web.robots(RULES)
    seen: dict[str, str] = {}

    class Downloads(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> None:
            for path in ("/image", "/private"):
                try:
                    seen[path] = (await self.crawler.engine.download_async(Request(media.url(path)))).text
                except ForbiddenByRobots as error:
                    seen[path] = str(error.verdict.rule)

    await crawl(site.url("/"), spider=Downloads, settings={"CONCURRENT_REQUESTS": concurrency})
    assert seen == {"/image": "page", "/private": "Disallow: /private"}


@ensureDeferred
async def test_an_internal_error_in_a_fetch_refuses_the_requests(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(Fetcher, "fetch", fails)
    site = web.robots(answer(RULES, delay=0.1))
    result = await crawl(site.url("/a"), site.url("/b"))
    assert len(result.refused) == 2
    assert all(isinstance(error, RobotsUnreachable) for error in result.refused.values())
    assert result.tracebacks == [f"Internal error while fetching {site.robots_url}"], "an internal error is logged"


@ensureDeferred
async def test_an_internal_error_after_a_fetch_is_logged(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Memory.put

    def fails_once(*_: Any) -> Any:
        monkeypatch.setattr(Memory, "put", put)
        raise ZeroDivisionError

    monkeypatch.setattr(Memory, "put", fails_once)
    site = web.robots(RULES)
    result = await crawl(site.url("/a"))
    assert "internal error, ZeroDivisionError" in str(result.refused[site.url("/a")])
    assert result.tracebacks == [f"Internal error while fetching {site.robots_url}"]


@ensureDeferred
async def test_a_cancelled_fetch_refuses_the_requests(web: Web) -> None:
    class Cancels:
        def process_request(self, request: Request) -> None:
            if request.url.endswith("/robots.txt"):
                raise asyncio.CancelledError

    site = web.robots(RULES)
    result = await crawl(site.url("/a"), site.url("/b"), settings={"DOWNLOADER_MIDDLEWARES": {Cancels: 200}})
    assert len(result.refused) == 2


@ensureDeferred
async def test_other_requests_go_on_if_the_request_that_began_the_fetch_is_cancelled(web: Web) -> None:
    site, start = web.robots(answer(RULES, kind="hold")), web.site()
    ends: list[str] = []

    class Cancels(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> None:
            engine = self.crawler.engine
            first, second = (
                asyncio.ensure_future(engine.download_async(Request(site.url(path)))) for path in ("/a", "/b")
            )
            await asyncio.sleep(0.05)
            first.cancel()
            web.release(site)
            for download in (first, second):
                try:
                    ends.append((await download).text)
                except asyncio.CancelledError:
                    ends.append("cancelled")

    await crawl(start.url("/"), spider=Cancels)
    assert ends == ["cancelled", "page"]


@ensureDeferred
async def test_if_the_spider_closes_waiting_requests_go_back_to_the_queue(web: Web) -> None:
    site = web.robots(answer(RULES, kind="hold"))

    class Closes(CrawlSpider):
        async def start(self) -> Any:
            for request in self.requests:
                yield self.prepared(request)
            while self.crawler.stats.get_value("rep/waited", 0) < len(self.requests):
                await sleep(0.01)
            close_spider(self, "test")

    result = await crawl(site.url("/a"), site.url("/private"), spider=Closes)
    assert not result.pages
    assert result.stats["finish_reason"] == "test"
    assert (result.stats["scheduler/dequeued"], result.stats["scheduler/enqueued"]) == (2, 4)
    assert result.tracebacks == []


# Memory.


@ensureDeferred
async def test_2_4_rules_are_used_for_24_hours_and_no_longer(web: Web) -> None:
    site, time = web.robots(RULES), Time()
    hours = 3600.0
    result = await crawl(site.url("/"), spider=in_turn(time, 23.9 * hours, 0.1 * hours), robots=with_clock(time))
    assert result.ends == ["page"] * 3
    assert site.targets == ["/robots.txt", "/", "/", "/robots.txt", "/"]


@ensureDeferred
async def test_2_3_1_4_an_unreachable_robots_txt_is_requested_again_with_backoff(web: Web) -> None:
    site, time = web.robots([answer(status=503)] * 3 + [answer(RULES)]), Time()
    first, second, third = BACKOFFS[:3]
    steps = [first - 0.1, 0.1, second - 0.1, 0.1, third - 0.1, 0.1, 0.0]
    result = await crawl(site.url("/"), spider=in_turn(time, *steps), robots=with_clock(time))
    # No request waits for a fetch in an outage, so the request that causes the successful fetch is still refused.
    assert result.ends == ["RobotsUnreachable"] * 7 + ["page"]
    assert len(site.robots_requests) == 4
    assert len(result.messages(logger="scrapy_rep")) == 2, "one WARNING for the outage, and the summary"


@ensureDeferred
async def test_the_least_recently_used_origins_leave_the_memory_first(web: Web) -> None:
    a, b, c = (web.robots(RULES) for _ in range(3))
    order = [a, b, a, c, a, b]

    class OneByOne(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Iterator[Request]:
            if order:
                yield self.prepared(order.pop(0).url("/"))

    await crawl(order.pop(0).url("/"), spider=OneByOne, settings={"REP_MEMORY_OCTETS": 2 * OCTETS_OF_ORIGIN})
    assert [len(site.robots_requests) for site in (a, b, c)] == [1, 2, 1]


# Log lines, stats and signals.


@ensureDeferred
async def test_a_refusal_names_address_line_and_rule(web: Web) -> None:
    site = web.robots("# who may\nuser-agent: *\ndisallow: /private # not this\n")
    result = await crawl(site.url("/private/a"))
    (error,) = result.refused.values()
    verdict = error.verdict
    assert verdict.rule is not None
    assert (verdict.rule.line, verdict.rule.allow, verdict.rule.pattern) == (3, False, "/private")
    assert (verdict.allowed, verdict.product_token, verdict.access) == (False, "*", AccessResult.SUCCESS)
    assert verdict.robots_url == site.robots_url
    lines = [r.getMessage() for r in result.log if r.name == "scrapy_rep" and "<GET " in r.getMessage()]
    why = forbidden(f"{site.robots_url}, line 3, group of '*': Disallow: /private")
    assert lines[:1] == [f"{why}: <GET {site.url('/private/a')}>"]


@ensureDeferred
async def test_log_lines_cannot_be_forged(web: Web) -> None:
    site = web.robots(b"user-agent: *\ndisallow: /\x1b[2J\xe2\x80\xaeforged\x0b\xff\n")
    result = await crawl(site.url("/%1B%5B2J%E2%80%AEforged%0B%FF"))
    assert len(result.refused) == 1
    for message in result.messages(logging.DEBUG, "scrapy_rep"):
        assert message.isprintable()


@ensureDeferred
async def test_stats_of_a_refusal(web: Web) -> None:
    site, down = web.robots(RULES), web.robots(answer(status=503))
    result = await crawl(site.url("/private"), down.url("/"), site.url("/"))
    expected = {
        "robotstxt/request_count": 2,
        "robotstxt/response_count": 2,
        "robotstxt/response_status_count/200": 1,
        "robotstxt/response_status_count/503": 1,
        "robotstxt/forbidden": 2,
        "rep/access/success": 1,
        "rep/access/unreachable": 1,
        "rep/dropped/rule": 1,
        "rep/dropped/unreachable": 1,
        "rep/cache/miss": 2,
    }
    assert {key: result.stats.get(key) for key in expected} == expected


@ensureDeferred
async def test_ten_outages_are_logged_as_warnings_and_the_rest_is_counted(web: Web) -> None:
    sites = [web.robots(answer(status=500)) for _ in range(12)]
    result = await crawl(*(site.url("/") for site in sites))
    *warnings, summary, rest = result.messages(logger="scrapy_rep")
    assert len(warnings) == 10
    assert summary.startswith("12 requests were refused because robots.txt was unreachable; 12 origins had outages: ")
    assert summary.endswith(" (HTTP 500) or the same on 11 other origins")
    assert rest == "Only the first 10 outages were logged as warnings; 2 others at DEBUG"


@ensureDeferred
async def test_robots_parsed_is_sent_once_an_origin(web: Web) -> None:
    time = Time()
    site = web.robots("user-agent: *\ncrawl-delay: 3\ndisallow: /private\n")
    gone = web.robots(answer(status=404))
    moved = web.robots(redirect(site.robots_url))
    sent: list[tuple[str, bool, bool, float | None]] = []

    def parsed(robotparser: Any, request: Request) -> None:
        allowed = [robotparser.allowed(site.url(path), "Bot/1") for path in ("/", "/private")]
        sent.append((request.url, allowed[0], allowed[1], robotparser.crawl_delay("Bot/1")))

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(parsed, robots_parsed)

    spider = in_turn(time, 90_000.0, 90_000.0)
    await crawl(site.url("/"), spider=spider, prepare=prepare, robots=with_clock(time))
    assert sent == [(site.url("/"), True, False, 3.0)]
    await crawl(gone.url("/"), moved.url("/"), moved.url("/x"), prepare=prepare)
    assert sent[1:] == [(moved.url("/"), True, False, 3.0)], "for the rules behind a redirect, and not for a 404"


@ensureDeferred
async def test_robots_txt_is_requested_through_the_proxy_of_its_request(web: Web) -> None:
    proxy = web.site({"*": answer(RULES)})
    page = "http://origin.example/page"
    result = await crawl(Request(page, headers={"User-Agent": "Ownbot/1.0"}, meta={"proxy": proxy.origin}))
    assert list(result.pages) == [page]
    assert proxy.targets == ["http://origin.example/robots.txt", page]
    headers = proxy.requests[0]["headers"]
    assert headers["User-Agent"] == "Ownbot/1.0"
    assert headers["Accept-Encoding"] == "identity"
    assert "Referer" not in headers
    assert "Cookie" not in headers


@ensureDeferred
async def test_robots_txt_uses_the_download_slot_of_its_request(web: Web) -> None:
    """But a host that it is redirected to has its own."""
    moved = redirect("http://other.example/robots.txt")
    proxy = web.site({"http://a.example/robots.txt": moved, "*": answer(RULES)})
    urls = ["http://a.example/", "http://b.example/"]
    sent: dict[str, str] = {}

    def reached(request: Request) -> None:
        if request.meta.get("is_robotstxt_request"):
            sent[request.url] = request.meta["download_slot"]

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(reached, signals.request_reached_downloader, weak=False)

    meta = {"proxy": proxy.origin, "download_slot": "shared"}
    result = await crawl(*(Request(url, meta=meta) for url in urls), prepare=prepare)
    assert sorted(result.pages) == urls
    own = {"http://other.example/robots.txt": "other.example"}
    assert sent == {**{f"{url}robots.txt": "shared" for url in urls}, **own}


@ensureDeferred
async def test_a_cache_does_not_replay_an_outage(web: Web, tmp_path: Any) -> None:
    site, time = web.robots([answer(status=503), answer(RULES)]), Time()
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    spider = in_turn(time, BACKOFFS[0], 0.0)
    result = await crawl(site.url("/"), spider=spider, robots=with_clock(time), settings=settings)
    assert result.ends == ["RobotsUnreachable", "RobotsUnreachable", "page"]


# For extensions.


class Looks:
    """Listeners in `before_download` and `after_download` that note their arguments."""

    def __init__(self) -> None:
        self.before: list[tuple[str, str, bool]] = []
        self.after: list[str] = []

    def prepare(self, crawler: Crawler) -> None:
        def begin() -> None:
            middleware = RepMiddleware.of(crawler)
            middleware.gate.before_download.append(lambda r, v: self.before.append((r.url, v.reason.value, v.allowed)))
            middleware.gate.after_download.append(lambda _request, response, _landing: self.after.append(response.url))

        crawler.signals.connect(begin, signal=signals.spider_opened, weak=False)


@ensureDeferred
@pytest.mark.parametrize("lifetime", ["max-age=3600", "max-age=0"])
async def test_extensions_receive_each_request_that_goes_on_and_its_response(web: Web, lifetime: str) -> None:
    site, exempt, looks = web.robots(answer(RULES, headers={"cache-control": lifetime})), web.robots(NOTHING), Looks()
    free = Request(site.url("/private/free"), meta={"dont_obey_robotstxt": True})
    settings = {"REP_EXEMPT": [exempt.url("").rstrip("/")]}
    urls = [site.url("/public"), site.url("/private/x"), exempt.url("/page")]
    result = await crawl(*urls, free, settings=settings, prepare=looks.prepare)
    assert len(result.pages) == 3
    assert sorted(looks.before) == sorted(
        [(urls[0], "no rule", True), (urls[2], "exempt", True), (free.url, "exempt", True)]
    )
    assert sorted(looks.after) == sorted(result.pages)


@ensureDeferred
async def test_in_a_dry_run_extensions_receive_refused_requests(web: Web) -> None:
    site, looks = web.robots(NOTHING), Looks()
    await crawl(site.url("/x"), settings={"REP_DRY_RUN": True}, prepare=looks.prepare)
    assert looks.before == [(site.url("/x"), "rule", False)]
