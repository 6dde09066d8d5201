"""Requests may have proxies of their own. One proxy that fails does not make a site unreachable."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from crawling import ADDON, CrawlSpider, Time, crawl, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from web import RULES, Route, Site, Web, answer, redirect

from scrapy_rep.fetching.request import new_download
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.conversation import Ask
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_response

REFUSED = "http://127.0.0.1:1"
HOST = "http://site.example"


def proxies(web: Web, number: int, **routes: Route) -> list[Site]:
    """Proxies that work. `routes`: other answers of the site."""
    everything = {f"{HOST}/robots.txt": answer(RULES), "*": answer("page"), **routes}
    return [web.site(everything) for _ in range(number)]


def through(*addresses: str, number: int = 20) -> list[Request]:
    """Requests for pages of one site, each through the next of these proxies."""
    return [
        Request(f"{HOST}/{n}", meta={"proxy": addresses[n % len(addresses)], "download_timeout": 2})
        for n in range(number)
    ]


@pytest.mark.parametrize("waiting_max", [0, 1_000], ids=["in-the-downloader", "at-the-scheduler"])
@pytest.mark.parametrize("kind", ["refused", "hanging", "407"])
@ensureDeferred
async def test_one_dead_proxy_costs_one_page(web: Web, kind: str, waiting_max: int) -> None:
    good = proxies(web, 19)
    bad = {"refused": lambda: REFUSED, "hanging": lambda: web.site({"*": answer(kind="hang")}).origin}
    first = bad.get(kind, lambda: web.site({"*": answer(status=407)}).origin)()
    settings = {"REP_FETCH_TIMEOUT": 1, "REP_WAITING_MAX": waiting_max}
    result = await crawl(*through(first, *(proxy.origin for proxy in good)), settings=settings)
    pages = [response for response in result.pages.values() if response.status == 200]
    assert len(pages) == 19
    assert result.refused == {}
    assert result.stats["robotstxt/request_count"] == 2
    assert sum(proxy.targets.count(f"{HOST}/robots.txt") for proxy in good) == 1
    assert result.tracebacks == []


@ensureDeferred
async def test_a_fetch_uses_ten_proxies_at_most(web: Web) -> None:
    dead = [web.site({"*": answer(status=407)}) for _ in range(12)]
    result = await crawl(*through(*(proxy.origin for proxy in dead), number=24))
    assert len(result.refused) == 24
    assert [len(proxy.requests) for proxy in dead] == [1] * 10 + [0] * 2


@ensureDeferred
async def test_a_later_round_uses_another_proxy(web: Web) -> None:
    # The answer 503 is the site's, so the next proxy is not used at once.
    routes = {f"{HOST}/robots.txt": answer(status=503)}
    first, second = proxies(web, 1, **routes)[0], proxies(web, 1)[0]
    asked: list[str] = []

    def answered(answer: Answer, request: Request) -> None:
        asked.append(request.meta["proxy"])

    result = await crawl(
        *through(first.origin, second.origin, number=4),
        settings={"REP_UNREACHABLE_WAIT": 6},
        robots=with_clock(Time()),
        prepare=lambda crawler: crawler.signals.connect(answered, robots_response, weak=False),
    )
    assert len(result.pages) == 4
    assert asked == [first.origin, second.origin]


@ensureDeferred
async def test_a_retry_uses_another_proxy(web: Web) -> None:
    routes = {f"{HOST}/robots.txt": answer(status=503)}
    first, second = proxies(web, 1, **routes)[0], proxies(web, 1)[0]
    result = await crawl(*through(first.origin, second.origin, number=4), settings={"REP_FETCH_RETRIES": 1})
    assert len(result.pages) == 4
    assert [proxy.targets.count(f"{HOST}/robots.txt") for proxy in (first, second)] == [1, 1]


@pytest.mark.parametrize("waiting_max", [0, 1_000], ids=["in-the-downloader", "at-the-scheduler"])
@ensureDeferred
async def test_a_later_request_makes_an_attempt_of_its_own(web: Web, waiting_max: int) -> None:
    good = proxies(web, 1)[0]
    dead, *others = through(REFUSED, good.origin, good.origin, number=3)

    class Later(CrawlSpider):
        async def failed(self, failure: Any) -> AsyncIterator[Request]:
            self.crawl.ends.append("refused")
            for request in others:
                yield self.prepared(request)

    result = await crawl(dead, spider=Later, settings={"REP_UNREACHABLE_WAIT": 0, "REP_WAITING_MAX": waiting_max})
    assert result.ends == ["refused"]
    assert len(result.pages) == 2
    assert good.targets.count(f"{HOST}/robots.txt") == 1


@pytest.mark.parametrize("meta", [{}, {"proxy": None}])
@ensureDeferred
async def test_a_request_without_a_proxy_has_a_way_of_its_own(web: Web, meta: dict[str, Any]) -> None:
    site = web.robots(RULES)
    requests = [Request(site.url(f"/{n}"), meta=each) for n, each in enumerate([{"proxy": REFUSED}, meta, meta])]
    result = await crawl(*requests)
    assert len(result.pages) == 2
    assert len(site.robots_requests) == 1


# What the next crawl knows (REP_STORAGE).


@pytest.mark.parametrize("kind", ["refused", "407"])
@ensureDeferred
async def test_the_next_crawl_does_not_know_of_a_dead_proxy(web: Web, kind: str, tmp_path: Path) -> None:
    site = web.robots(RULES)
    proxy = web.site({"*": answer(status=407)}).origin if kind == "407" else REFUSED
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    urls = [site.url(f"/{n}") for n in range(5)]
    first = await crawl(*(Request(url, meta={"proxy": proxy}) for url in urls), settings=settings)
    second = await crawl(*urls, settings=settings)
    assert (len(first.refused), len(second.pages)) == (5, 5)
    assert second.messages(logger="scrapy_rep") == []


@ensureDeferred
async def test_the_next_crawl_asks_a_host_that_was_down(web: Web, tmp_path: Path) -> None:
    site = web.robots([answer(kind="reset"), answer(RULES)])
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    urls = [site.url(f"/{n}") for n in range(5)]
    first = await crawl(*urls, settings=settings)
    second = await crawl(*urls, settings=settings)
    assert (len(first.refused), len(second.pages)) == (5, 5)
    assert second.messages(logger="scrapy_rep") == []


@ensureDeferred
async def test_the_next_crawl_makes_one_round_if_the_host_is_still_down(web: Web, tmp_path: Path) -> None:
    site = web.robots(answer(kind="reset"))
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite", "REP_UNREACHABLE_WAIT": 6}
    clock = with_clock(Time())
    for number in (2, 3):
        result = await crawl(site.url("/"), robots=clock, settings=settings)
        assert len(result.refused) == 1
        assert len(site.robots_requests) == number


class DropsBanned:
    """A downloader middleware that drops each request through a banned proxy, as plugins for proxies do."""

    def process_request(self, request: Request) -> None:
        if request.meta.get("proxy") == REFUSED:
            raise IgnoreRequest("this proxy is banned")


@ensureDeferred
async def test_a_request_that_is_dropped_because_of_its_proxy_refuses_no_other(web: Web) -> None:
    site = web.robots(RULES)
    requests = [Request(site.url(f"/{n}"), meta={} if n else {"proxy": REFUSED}) for n in range(4)]
    result = await crawl(*requests, settings={"DOWNLOADER_MIDDLEWARES": {DropsBanned: 760}})
    assert len(result.pages) == 3
    assert len(site.robots_requests) == 1


# Who gets which secret, and who is to blame.


class AnotherProxy:
    """A downloader middleware that gives each request for the second site another proxy, without a password."""

    address = ""

    def process_request(self, request: Request) -> None:
        if "second.example" in request.url:
            request.meta["proxy"] = self.address


@ensureDeferred
async def test_a_proxys_password_is_sent_to_no_other_proxy(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapy's redirect keeps what HttpProxyMiddleware has set: the proxy, and the header with the password."""
    first = web.site({"*": redirect("http://second.example/"), f"{HOST}/robots.txt": answer(RULES)})
    second = web.site({"*": answer("page"), "http://second.example/robots.txt": answer(RULES)})
    monkeypatch.setattr(AnotherProxy, "address", second.origin)
    page = Request(f"{HOST}/", meta={"proxy": first.origin.replace("//", "//user:s3cr3t@")})
    settings = {"DOWNLOADER_MIDDLEWARES": {AnotherProxy: 90}}
    result = await crawl(page, spider=Redirected, settings=settings)
    assert [response.status for response in result.pages.values()] == [200]
    assert all("Proxy-Authorization" in request["headers"] for request in first.requests)
    assert second.targets == ["http://second.example/robots.txt", "http://second.example/"]
    assert [request for request in second.requests if "Proxy-Authorization" in request["headers"]] == []


def copied_to(url: str) -> str:
    """What a request for this robots.txt has of a page request that has all secrets that Scrapy and plugins know."""
    meta = {
        "proxy": "http://proxy.example",
        "_auth_proxy": "http://proxy.example",
        "ftp_user": "s3cr3t-ftp-user",
        "ftp_password": "s3cr3t-ftp",
        "impersonate_curl_options": {"USERPWD": "s3cr3t-curl"},
        "impersonate_args": {"auth": "s3cr3t-args"},
        "zyte_api": {"customHttpRequestHeaders": [{"name": "Cookie", "value": "s3cr3t-api"}], "tags": {"a": "b"}},
        "cookiejar": "s3cr3t-jar",
        "own": "s3cr3t-own",
    }
    headers = {name: f"s3cr3t-{name}" for name in ("Authorization", "Cookie", "Referer", "X-Api-Key")}
    page = Request(f"{HOST}/", headers={**headers, "Proxy-Authorization": "s3cr3t-proxy"}, meta=meta)
    crawler = Crawler(CrawlSpider, ADDON)
    request = new_download(
        Ask(url), page, crawler, RepSettings.read(crawler.settings), middlewares_set_proxies=False
    ).request
    return f"{dict(request.headers)} {request.meta}"


def secrets_in(text: str) -> list[str]:
    return sorted(set(re.findall(r"s3cr3t-[\w-]+", text)))


def test_each_secret_goes_to_its_addressee_alone() -> None:
    assert secrets_in(copied_to(f"{HOST}/robots.txt")) == [*SAME_HOST, "s3cr3t-proxy"]
    assert secrets_in(copied_to("http://elsewhere.example/robots.txt")) == ["s3cr3t-proxy"]


SAME_HOST = ["s3cr3t-curl", "s3cr3t-ftp", "s3cr3t-ftp-user"]


class Redirected(CrawlSpider):
    """Lets RedirectMiddleware follow redirects."""

    def prepared(self, request: str | Request) -> Request:
        prepared = super().prepared(request)
        del prepared.meta["handle_httpstatus_all"]
        return prepared


@ensureDeferred
async def test_an_authenticated_proxy_is_asked_with_the_password(web: Web) -> None:
    """Also for the robots.txt of a page that Scrapy has redirected."""
    routes = {f"{HOST}/": redirect("http://second.example/"), "http://second.example/robots.txt": answer(RULES)}
    proxy = web.site({"*": answer("page"), f"{HOST}/robots.txt": answer(RULES), **routes})
    page = Request(f"{HOST}/", meta={"proxy": proxy.origin.replace("//", "//user:s3cr3t@")})
    result = await crawl(page, spider=Redirected)
    assert [response.status for response in result.pages.values()] == [200]
    assert len(proxy.requests) == 4
    assert all("Proxy-Authorization" in request["headers"] for request in proxy.requests)


@ensureDeferred
async def test_the_environments_proxy_of_one_scheme_is_used_for_this_scheme(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scrapy's redirect keeps the proxy of `http_proxy`. The robots.txt leads to https, for which there is none."""
    secure = web.site({"/robots.txt": answer(RULES)}, tls=True)
    routes = {f"{HOST}/": redirect("http://second.example/"), f"{HOST}/robots.txt": answer(RULES)}
    routes["http://second.example/robots.txt"] = redirect(secure.robots_url)
    proxy = web.site({"*": answer("page"), **routes})
    monkeypatch.setenv("http_proxy", proxy.origin)
    monkeypatch.delenv("no_proxy", raising=False)
    result = await crawl(f"{HOST}/", spider=Redirected, settings={"REP_REDIRECT_PRIVATE": True})
    assert [response.status for response in result.pages.values()] == [200]
    assert secure.targets == ["/robots.txt"]


def texts_of(folder: Path) -> list[tuple[str, str]]:
    return [(name, (folder / name).read_text()) for name in ("report.jsonl", "refusals.jsonl")]


@pytest.mark.parametrize("kind", ["refused", "407"])
@ensureDeferred
async def test_a_dead_proxy_is_named_not_the_site(
    web: Web, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    proxy = web.site({"*": answer(status=407)}).origin if kind == "407" else REFUSED
    files = {"REP_REPORT": "report.jsonl", "REP_REFUSALS": "refusals.jsonl", "REP_EVIDENCE": True}
    page = Request(f"{HOST}/", meta={"proxy": proxy.replace("//", "//user:s3cr3t@")})
    result = await crawl(page, settings={**files, "FEEDS": {"items.jsonl": {"format": "jsonlines"}}})
    (error,) = result.refused.values()
    assert f"through the proxy {proxy}" in str(error)
    warnings = result.messages(logger="scrapy_rep")
    assert warnings
    assert all(f"through the proxy {proxy}" in line for line in warnings)
    assert any("check the proxy" in line for line in result.denied)
    assert [name for name, text in texts_of(tmp_path) if f"through the proxy {proxy}" not in text] == []


@ensureDeferred
async def test_a_site_that_answers_through_a_proxy_is_to_blame_itself(web: Web) -> None:
    proxy = web.site({"*": answer(status=503)}).origin
    result = await crawl(Request(f"{HOST}/", meta={"proxy": proxy}))
    (error,) = result.refused.values()
    assert "proxy" not in str(error)
