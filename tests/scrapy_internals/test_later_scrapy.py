"""What open pull requests of Scrapy change, in small. `scrapy_internals/README.md` lists them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from crawling import CrawlSpider, Releases, SlotByOrigin, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider
from scrapy.core.downloader import Downloader
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response
from scrapy.http.cookies import CookieJar
from web import RULES, Web, answer, redirect

from scrapy_rep.fetching import request as fetching_request
from scrapy_rep.scrapy_internals import COSTS

# 6430: the downloader backs out for one more reason, the size of all responses in memory.


@ensureDeferred
async def test_each_reason_of_the_downloader_to_back_out_counts(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str] = []
    by_concurrency = Downloader.needs_backout
    monkeypatch.setattr(Downloader, "needs_backout", lambda self: by_concurrency(self) or bool(reasons))

    class Asks(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> None:
            for self_made in ([], ["another reason"]):
                reasons[:] = self_made
                self.crawl.ends.append(self.crawler.engine.needs_backout())
            reasons.clear()

    result = await crawl(web.robots(RULES).url("/a"), spider=Asks)
    assert result.ends == [False, True]


@pytest.fixture
def weighing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Scrapy reckon with a size of 1 for each request under way, and back out at 4 times CONCURRENT_REQUESTS."""
    fetch, by_concurrency = Downloader.fetch, Downloader.needs_backout

    def fetch_and_weigh(self: Any, request: Request) -> Any:
        sizes = vars(self.middleware).setdefault("_rough_sizes", {})
        sizes.setdefault(request, 1)

        def discount(result: Any) -> Any:
            sizes.pop(request, None)
            return result

        return fetch(self, request).addBoth(discount)

    def needs_backout(self: Any) -> bool:
        weight = sum(getattr(self.middleware, "_rough_sizes", {}).values())
        return by_concurrency(self) or weight >= 4 * self.settings.getint("CONCURRENT_REQUESTS")

    monkeypatch.setattr(Downloader, "fetch", fetch_and_weigh)
    monkeypatch.setattr(Downloader, "needs_backout", needs_backout)


@pytest.mark.usefixtures("weighing")
@ensureDeferred
async def test_requests_for_a_robots_txt_weigh_nothing(web: Web) -> None:
    dead = [web.robots(answer(RULES, kind="hold")) for _ in range(20)]
    healthy = [web.robots(RULES) for _ in range(5)]
    urls = [site.url(f"/{n}") for site in dead + healthy for n in range(3)]
    settings = {"DOWNLOADER": SlotByOrigin, "CONCURRENT_REQUESTS": 4, "REP_FETCH_TIMEOUT": 20}
    result = await crawl(*urls, spider=Releases, dead=dead, healthy=15, settings=settings)
    assert (result.ends, len(result.pages), result.tracebacks) == (["no stall"], 75, [])


# 6931: a throttler. The downloader's slots become a deprecated property.


class SlotsAreDeprecated(Downloader):
    used: set[str] = set()

    @property
    def slots(self) -> Any:
        self.used.add(str(sys._getframe(1).f_globals["__name__"]).partition(".")[0])
        return self._slots

    @slots.setter
    def slots(self, slots: Any) -> None:
        self._slots = slots


@ensureDeferred
async def test_with_a_throttler_a_warning_says_that_no_crawl_delay_is_obeyed(web: Web) -> None:
    site = web.robots("user-agent: *\ncrawl-delay: 5\ndisallow: /private\n")
    settings = {"DOWNLOADER": SlotsAreDeprecated, "REP_CRAWL_DELAY_MAX": 9}
    result = await crawl(site.url("/a"), site.url("/private"), settings=settings)
    assert (list(result.pages), list(result.refused)) == ([site.url("/a")], [site.url("/private")])
    assert result.stats["rep/crawl_delay/ignored"] == 1
    (message,) = result.messages()
    assert message.startswith(COSTS["Downloader.slots"])
    assert SlotsAreDeprecated.used == {"scrapy"}


# 7984: sessions. A request with the session None has no cookies but those in its attribute `cookies`.


class Sessions(CookiesMiddleware):
    def process_request(self, request: Request, spider: Spider | None = None) -> Any:
        assert "dont_merge_cookies" not in request.meta, "deprecated"
        if request.meta.get("session", "main") is not None:
            return super().process_request(request)
        jar = CookieJar()
        self._process_cookies(self._get_request_cookies(jar, request), jar=jar, request=request)
        request.headers.pop("Cookie", None)
        jar.add_cookie_header(request)
        return None

    def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Any:
        has_session = request.meta.get("session", "main") is not None
        return super().process_response(request, response) if has_session else response


@ensureDeferred
async def test_cookies_are_kept_within_one_chain_of_redirects(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(fetching_request._META, "dont_merge_cookies", raising=False)
    monkeypatch.setitem(fetching_request._META, "session", None)
    to_itself = redirect("/robots.txt", 302, {"Set-Cookie": "seen=1; Path=/"})
    site = web.robots([to_itself, redirect("/robots.txt", 302, {"Set-Cookie": "a=b=c"}), answer(RULES)])
    settings = {"DOWNLOADER_MIDDLEWARES": {CookiesMiddleware: None, Sessions: 700}}
    await crawl(Request(site.url("/a"), cookies={"mine": "1"}), settings=settings)
    cookies = [(asked["target"], asked["headers"].get("Cookie")) for asked in site.requests]
    assert [(target, set(text.split("; ")) if text else None) for target, text in cookies] == [
        ("/robots.txt", None),
        ("/robots.txt", {"seen=1"}),
        ("/robots.txt", {"seen=1", "a=b=c"}),
        ("/a", {"mine=1"}),
    ]
