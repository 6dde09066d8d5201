"""Requests may have proxies of their own. One proxy that fails does not make a site unreachable."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from crawling import ADDON, CrawlSpider, Time, crawl, outcome, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response
from scrapy.signals import response_received
from web import RULES, Route, Site, Web, answer, redirect

from scrapy_rep import AccessResult
from scrapy_rep.fetching.request import new_download
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.conversation import Ask
from scrapy_rep.protocol.outage import BACKOFFS
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_response

REFUSED = "http://127.0.0.1:1"
HOST = "http://site.example"
TWO_ROUNDS = {"REP_UNREACHABLE_WAIT": BACKOFFS[0] + 1}


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
        settings=TWO_ROUNDS,
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
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite", **TWO_ROUNDS}
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
    request = new_download(Ask(url), page, crawler, RepSettings.read(crawler.settings), proxy_may_follow=True).request
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


class SetsSome:
    """A downloader middleware that sets the proxy of requests for one site, if they have none."""

    address = ""

    def process_request(self, request: Request) -> None:
        if "first.example" in request.url:
            request.meta.setdefault("proxy", self.address)


@pytest.mark.parametrize("login", ["", "user:s3cr3t@"])
@ensureDeferred
async def test_the_spiders_proxy_is_used_where_a_middleware_sets_none(
    web: Web, login: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy of a redirected request is left out at first, because a middleware may choose another one."""
    theirs = web.site({"http://first.example/robots.txt": answer(RULES), "*": answer("page")})
    monkeypatch.setattr(SetsSome, "address", theirs.origin)
    routes = {f"{HOST}/": redirect("http://second.example/"), "http://second.example/robots.txt": answer(RULES)}
    own = web.site({"*": answer("page"), f"{HOST}/robots.txt": answer(RULES), **routes})

    class ThenItsOwn(Redirected):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            if "first.example" in response.url:
                yield self.prepared(Request(f"{HOST}/", meta={"proxy": own.origin.replace("//", f"//{login}")}))

    page = Request("http://first.example/")
    result = await crawl(page, spider=ThenItsOwn, settings={"DOWNLOADER_MIDDLEWARES": {SetsSome: 740}})
    assert len(result.pages) == 2
    assert own.targets == [
        f"{HOST}/robots.txt",
        f"{HOST}/",
        "http://second.example/robots.txt",
        "http://second.example/",
    ]
    assert ["Proxy-Authorization" in request["headers"] for request in own.requests] == [bool(login)] * 4
    assert [request for request in theirs.requests if "Proxy-Authorization" in request["headers"]] == []


class BlamesTheProxy:
    """A downloader middleware that notes errors, as one that changes proxies does."""

    def __init__(self, crawler: Crawler) -> None:
        self.ends = crawler.spider.crawl.ends  # type: ignore[union-attr]

    from_crawler = classmethod(lambda cls, crawler: cls(crawler))

    def process_exception(self, request: Request, exception: Exception) -> None:
        self.ends += [exception] if request.url.endswith("robots.txt") else []


@ensureDeferred
async def test_a_body_that_cannot_be_decoded_blames_no_proxy(web: Web, tmp_path: Path) -> None:
    """Nor does a cache keep it: an empty body would allow everything in the next crawl."""
    broken = answer("\x1f\x8b garbage", headers={"Content-Encoding": "gzip"})
    site = web.robots(broken)
    settings = {"DOWNLOADER_MIDDLEWARES": {BlamesTheProxy: 800}, "HTTPCACHE_ENABLED": True}
    for _crawl in range(2):
        result = await crawl(site.url("/"), settings={**settings, "HTTPCACHE_DIR": str(tmp_path)})
        assert result.ends == []
        assert "UndecodableBodyError" in str(result.refused[site.url("/")])
    assert len(site.robots_requests) == 2


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
    assert any("Check the proxy" in line for line in result.denied)
    assert [name for name, text in texts_of(tmp_path) if f"through the proxy {proxy}" not in text] == []


@ensureDeferred
async def test_a_site_that_answers_through_a_proxy_is_to_blame_itself(web: Web) -> None:
    proxy = web.site({"*": answer(status=503)}).origin
    result = await crawl(Request(f"{HOST}/", meta={"proxy": proxy}))
    (error,) = result.refused.values()
    assert "proxy" not in str(error)


# Whose proxy a robots.txt is fetched through.


OTHERS = [f"http://other{n}.example" for n in range(6)]
FOLLOWED = pytest.mark.parametrize("by", ["redirect", "meta"])


def leading_on(web: Web) -> Site:
    """A proxy. Behind it, pages of HOST lead to OTHERS."""
    routes: dict[str, Route] = {f"{url}/robots.txt": answer(RULES) for url in (HOST, *OTHERS)}
    routes |= {f"{HOST}/{n}": redirect(f"{url}/") for n, url in enumerate(OTHERS)}
    return web.site({**routes, "*": answer("page")})


class LeadsOn(Redirected):
    """Requests OTHERS with the meta of a page of HOST, or HOST redirects to them (`by`). Records each request for a
    robots.txt in `ends`: its URL, proxy and download slot."""

    by = "redirect"
    stops = False
    """Whether the crawl stops while the requests are in the queue."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **attributes: Any) -> LeadsOn:
        spider = super().from_crawler(crawler, *args, **attributes)
        crawler.signals.connect(spider.received, response_received)
        return spider

    def received(self, request: Request) -> None:
        if request.meta.get("is_robotstxt_request"):
            self.crawl.ends.append((request.url, request.meta.get("proxy"), request.meta["download_slot"]))

    def parse(self, response: Response, **more: Any) -> Any:
        super().parse(response, **more)
        if response.url == f"{HOST}/start":
            for n, url in enumerate(OTHERS):
                next_url = f"{HOST}/{n}" if self.by == "redirect" else f"{url}/"
                yield self.prepared(Request(next_url, meta=response.meta))
            if self.stops:
                raise CloseSpider("enough")


@FOLLOWED
@pytest.mark.parametrize("setup", ["first-crawl", "JOBDIR", "REP_STORAGE", "REP_EXEMPT"])
@ensureDeferred
async def test_no_host_sees_an_address_that_the_spider_hides(web: Web, tmp_path: Path, setup: str, by: str) -> None:
    proxy = leading_on(web)
    values = {"JOBDIR": f"{tmp_path}/job", "REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite", "REP_EXEMPT": [HOST]}
    settings = {name: value for name, value in values.items() if name == setup}
    crawls = []
    if setup == "JOBDIR":
        spider = type("Stops", (LeadsOn,), {"by": by, "stops": True})
        crawls.append(await crawl(*hidden(proxy, "start"), spider=spider, settings=settings))
        assert len(crawls[0].pages) < 1 + len(OTHERS)
    if setup == "REP_STORAGE":
        crawls.append(await crawl(*hidden(proxy, "other"), spider=LeadsOn, settings=settings))
    urls = () if setup == "JOBDIR" else hidden(proxy, "start")
    crawls.append(await crawl(*urls, spider=type("Goes", (LeadsOn,), {"by": by}), settings=settings))
    asked = OTHERS if setup == "REP_EXEMPT" else [HOST, *OTHERS]
    robots = {end[:2] for each in crawls for end in each.ends}
    assert robots == {(f"{url}/robots.txt", proxy.origin) for url in asked}
    assert {f"{url}/" for url in OTHERS} <= set(proxy.targets)
    assert [each.refused or each.failed or each.tracebacks for each in crawls] == [[]] * len(crawls)


def hidden(proxy: Site, path: str) -> list[Request]:
    return [Request(f"{HOST}/{path}", meta={"proxy": proxy.origin})]


class Marks:
    """Sets a proxy and a mark beside it, as scrapy-proxies does. With a proxy but no mark, it raises a KeyError, and
    then gives the proxy up."""

    addresses: ClassVar[list[str]] = []

    def process_request(self, request: Request) -> None:
        if "proxy" not in request.meta or request.meta["has_failed"]:
            request.meta.update(proxy=self.addresses[0], has_failed=False)

    def process_exception(self, request: Request, exception: Exception) -> None:
        if request.meta.get("proxy") in self.addresses:
            self.addresses.remove(request.meta["proxy"])


@FOLLOWED
@ensureDeferred
async def test_a_middleware_that_sets_proxies_sets_them_for_robots_txt_too(
    web: Web, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    proxy = leading_on(web)
    addresses = [proxy.origin] * 3
    monkeypatch.setattr(Marks, "addresses", addresses)
    spider = type("Goes", (LeadsOn,), {"by": by})
    result = await crawl(f"{HOST}/start", spider=spider, settings={"DOWNLOADER_MIDDLEWARES": {Marks: 100}})
    assert {f"{url}/" for url in OTHERS} <= set(proxy.targets)
    assert len(result.ends) == 1 + len(OTHERS)
    assert (result.refused, result.failed, result.tracebacks, len(addresses)) == ({}, {}, [], 3)


@FOLLOWED
@ensureDeferred
async def test_each_host_has_a_download_slot_of_its_own(web: Web, by: str) -> None:
    """A redirected request, or one with the meta of a response, carries the slot of the first host."""
    proxy = leading_on(web)
    result = await crawl(*hidden(proxy, "start"), spider=type("Goes", (LeadsOn,), {"by": by}))
    slots = sorted((url, slot) for url, _, slot in result.ends)
    assert slots == sorted((f"{url}/robots.txt", url.removeprefix("http://")) for url in (HOST, *OTHERS))


class ForOneHost:
    """Sets a proxy for one host, which can be reached only through it."""

    address = ""

    def process_request(self, request: Request) -> None:
        if "//first.example" in request.url:
            request.meta.setdefault("proxy", self.address)


@FOLLOWED
@ensureDeferred
async def test_a_middleware_that_sets_proxies_for_one_host_shows_no_address_to_others(
    web: Web, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    proxy = leading_on(web)
    monkeypatch.setattr(ForOneHost, "address", proxy.origin)
    spider = type("Goes", (LeadsOn,), {"by": by})
    settings = {"CONCURRENT_REQUESTS": 1, "DOWNLOADER_MIDDLEWARES": {ForOneHost: 100}}
    result = await crawl("http://first.example/", *hidden(proxy, "start"), spider=spider, settings=settings)
    assert {address for _, address, _ in result.ends} == {proxy.origin}


@FOLLOWED
@pytest.mark.parametrize("setup", ["REP_STORAGE", "REP_EXEMPT"])
@ensureDeferred
async def test_a_middleware_sets_proxies_although_the_first_robots_txt_is_a_redirected_requests(
    web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setup: str, by: str
) -> None:
    proxy = leading_on(web)
    addresses = [proxy.origin] * 3
    monkeypatch.setattr(Marks, "addresses", addresses)
    values = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite", "REP_EXEMPT": [HOST]}
    settings = {setup: values[setup], "DOWNLOADER_MIDDLEWARES": {Marks: 100}}
    if setup == "REP_STORAGE":
        await crawl(f"{HOST}/other", spider=LeadsOn, settings=settings)
    spider = type("Goes", (LeadsOn,), {"by": by})
    result = await crawl(f"{HOST}/start", spider=spider, settings=settings)
    assert (result.refused, result.failed, len(addresses)) == ({}, {}, 3)


class OwnHttpProxy(HttpProxyMiddleware):
    """A project's own middleware in the place of Scrapy's. Its method is async."""

    async def process_request(self, request: Request) -> Any:  # type: ignore[override]
        return super().process_request(request)


OWN = {"scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None, OwnHttpProxy: 750}


@pytest.mark.parametrize("middlewares", [{}, OWN], ids=["scrapys", "own"])
@pytest.mark.parametrize("then", ["without-password", "none", "another-password"])
@ensureDeferred
async def test_a_proxy_that_the_spider_changes_keeps_its_own_password(
    web: Web, then: str, middlewares: dict[Any, int | None]
) -> None:
    """The second request is made from the first one, as HttpProxyMiddleware has changed it: with the mark and the
    header of the first proxy. Its proxy is another one, or none."""
    site, first, second = web.robots(RULES), web.site({"*": answer(RULES)}), web.site({"*": answer(RULES)})
    logins = {"without-password": second.origin, "none": None}
    proxy = logins.get(then, second.origin.replace("//", "//eve:s3cr3t@"))

    class Changes(CrawlSpider):
        def parse(self, response: Response, **more: Any) -> Any:
            super().parse(response, **more)
            if len(self.crawl.pages) == 1:
                assert response.request is not None
                meta = {**response.request.meta, "proxy": proxy}
                yield self.prepared(response.request.replace(url=site.url("/"), meta=meta))

    page = Request(f"{HOST}/", meta={"proxy": first.origin.replace("//", "//bob:s3cr3t@")})
    result = await crawl(page, spider=Changes, settings={"DOWNLOADER_MIDDLEWARES": middlewares})
    assert (len(result.pages), result.refused) == (2, {})
    asked = site if then == "none" else second
    assert len(asked.requests) == 2
    headers = {request["headers"].get("Proxy-Authorization") for request in asked.requests}
    assert headers == ({"Basic " + b64encode(b"eve:s3cr3t").decode()} if then == "another-password" else {None})


class RepliesFromElsewhere:
    """A downloader middleware that has the robots.txt already, compressed as a server sent it."""

    def process_request(self, request: Request) -> Response | None:
        if not request.url.endswith("/robots.txt"):
            return None
        return Response(request.url, body=gzip.compress(b"user-agent: *\ndisallow: /private\n"), flags=["cached"])


@pytest.mark.parametrize("compression", [True, False])
@ensureDeferred
async def test_a_body_that_no_download_handler_gave_is_decoded_too(web: Web, compression: bool) -> None:
    site = web.site({"*": answer("page")})
    settings = {"DOWNLOADER_MIDDLEWARES": {RepliesFromElsewhere: 900}, "COMPRESSION_ENABLED": compression}
    _, access = await outcome(site, settings=settings)
    assert access is AccessResult.SUCCESS


class GoesDirectly:
    """A downloader middleware that chooses no proxy for each robots.txt."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            request.meta["proxy"] = None


@ensureDeferred
async def test_a_middleware_may_choose_no_proxy(web: Web) -> None:
    site, proxy = web.robots(RULES), web.site({"*": answer("page")})
    page = Request(site.url("/"), meta={"proxy": proxy.origin.replace("//", "//bob:s3cr3t@"), "retry_times": 1})
    result = await crawl(page, settings={"DOWNLOADER_MIDDLEWARES": {GoesDirectly: 200}})
    assert (len(result.pages), site.targets, proxy.targets) == (1, ["/robots.txt"], [site.url("/")])
    assert "Proxy-Authorization" not in site.requests[0]["headers"]
