"""Sitemaps of all origins of a crawl, without a second request for robots.txt."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from crawling import ADDON, BUILTIN, Crawl, CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spiders import SitemapSpider
from web import Site, Web, answer

from scrapy_rep import RepRobotParser, RobotsSitemapSpider, RobotsTxt
from scrapy_rep.signals import robots_parsed

XML = {"Content-Type": "text/xml"}


class Shop(RobotsSitemapSpider, SitemapSpider, CrawlSpider):
    """Notes the pages that the sitemaps name."""

    def parse(self, response: Response, **_: Any) -> None:
        self.crawl.pages[response.url] = response


def shop(**attributes: Any) -> type[Shop]:
    return type("Shop", (Shop,), attributes)


def sitemap(*urls: str) -> Any:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return answer(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>', headers=XML)


def site_with(web: Web, robots: str, *paths: str, at: str = "/sitemap.xml") -> Site:
    """An origin with a sitemap of these pages. `{origin}` in its robots.txt stands for itself."""
    site = web.site()
    text, urls = robots.format(origin=site.origin), map(site.url, paths)
    site.change("/robots.txt", answer(text))
    site.change(at, sitemap(*urls))
    return site


@ensureDeferred
async def test_a_spider_needs_no_sitemap_urls(web: Web) -> None:
    site = site_with(web, "user-agent: *\ndisallow: /private\nsitemap: {origin}/sitemap.xml\n", "/a", "/private/b")
    result = await crawl(spider=shop(start_urls=[site.url("/")]))
    assert list(result.pages) == [site.url("/a")]
    assert site.targets == ["/robots.txt", "/sitemap.xml", "/a"], "one robots.txt, and no start page"
    assert result.stats["rep/dropped/rule"] == 1, "pages of a sitemap are judged, too"
    assert result.tracebacks == []


@ensureDeferred
async def test_a_sitemap_that_is_forbidden_is_not_fetched(web: Web) -> None:
    site = site_with(web, "user-agent: *\ndisallow: /sitemap\nsitemap: {origin}/sitemap.xml\n", "/a")
    result = await crawl(spider=shop(start_urls=[site.url("/")]))
    assert result.pages == {}
    assert site.targets == ["/robots.txt"]


@ensureDeferred
async def test_sitemaps_of_every_origin_of_the_crawl_are_read(web: Web) -> None:
    other = site_with(web, "sitemap: /sitemap.xml\n", "/b")
    first = site_with(web, "sitemap: {origin}/sitemap.xml\n", "/a")

    class Follows(Shop):
        start_urls = [first.url("/")]

        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url == first.url("/a"):
                yield Request(other.url("/page"))

    result = await crawl(spider=Follows)
    assert sorted(result.pages) == sorted([first.url("/a"), other.url("/page"), other.url("/b")])
    assert len(other.robots_requests) == 1


# Unusable addresses. The last ones make Request raise, or lead to another host than they seem to.
BAD = [
    *r"""
    file:///etc/passwd data:,x javascript:x ftp://x/y http: http:x http:/// http://[x/ http://[::1/ http://x:port/
    http://x:99999/ http://user@x/ http://a..b/ http://127.0.0.1%00/ http://0127.0.0.1/ s3://x/y
    """.split(),
    f"http://{'a' * 300}.example/",
    f"/{'x' * 10_000}",
    "http://a b/",
    "http://\x7f/",
]


@ensureDeferred
async def test_unusable_addresses_are_skipped_with_one_line_each(web: Web) -> None:
    lines = [f"sitemap: {url}" for url in BAD]
    site = site_with(web, "\n".join([*lines, "sitemap: /sitemap.xml", *lines]), "/a")
    result = await crawl(spider=shop(start_urls=[site.url("/")]))
    assert list(result.pages) == [site.url("/a")]
    assert site.targets == ["/robots.txt", "/sitemap.xml", "/a"]
    skipped = [m for m in result.messages(logging.DEBUG, "scrapy_rep") if "skipped a sitemap" in m]
    assert len(skipped) == len(BAD)
    assert max(map(len, skipped)) < 500
    assert result.messages() == []
    assert result.tracebacks == []


@pytest.mark.parametrize("private", [False, True])
@ensureDeferred
async def test_a_private_sitemap_of_a_public_host_is_skipped(web: Web, private: bool) -> None:
    named = ["http://10.0.0.1/sitemap.xml", "http://printer.lan/sitemap.xml"]
    robots = answer("\n".join(f"sitemap: {url}" for url in named))
    proxy = web.site({"http://shop.example/robots.txt": robots, **{url: sitemap() for url in named}})

    class Proxied(Shop):
        async def start(self) -> AsyncIterator[Any]:
            async for request in super().start():
                yield request
            yield Request("http://shop.example/", meta={"proxy": proxy.origin})

    settings = {"REP_REDIRECT_PRIVATE": private, "DOWNLOADER_MIDDLEWARES": {ProxyOnly: 1}, "PROXY": proxy.origin}
    result = await crawl(spider=Proxied, settings=settings)
    hosts = {target.split("/")[2] for target in proxy.targets}
    assert hosts == ({"shop.example", "10.0.0.1", "printer.lan"} if private else {"shop.example"})
    assert result.tracebacks == []


class ProxyOnly:
    """Sends all requests through the proxy in the settings."""

    def __init__(self, proxy: str) -> None:
        self.proxy = proxy

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ProxyOnly:
        return cls(crawler.settings["PROXY"])

    def process_request(self, request: Request) -> None:
        request.meta["proxy"] = self.proxy


INDEX = (
    '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>{}</loc></sitemap></sitemapindex>'
)


@pytest.mark.parametrize(
    "source", ["robots.txt", "a sitemap that is one", "a sitemap index", "sitemap_urls", "sitemap_urls with others"]
)
@ensureDeferred
async def test_the_number_of_sitemaps_of_an_origin_is_limited(web: Web, source: str) -> None:
    site = site_with(web, "\n".join(f"sitemap: /{n}.xml" for n in range(20_000)), "/a", at="*")
    first = site_with(web, f"sitemap: {site.robots_url}\n")
    index = web.site({"/robots.txt": answer(""), "/index.xml": answer(INDEX.format(site.robots_url), headers=XML)})
    begin = {
        "robots.txt": {"start_urls": [site.url("/")]},
        "a sitemap index": {"sitemap_urls": [index.url("/index.xml")]},
        "sitemap_urls": {"sitemap_urls": [site.robots_url]},
        "sitemap_urls with others": {"sitemap_urls": [site.robots_url, site.url("/0.xml")]},
    }
    result = await crawl(
        spider=shop(max_sitemaps=100, **begin.get(source, {"start_urls": [first.url("/")]})),
        settings={**BUILTIN, **ADDON},
    )
    assert sorted(t for t in site.targets if t.endswith(".xml")) == sorted(f"/{n}.xml" for n in range(100))
    (said,) = {m for m in result.messages(logging.INFO, "scrapy_rep") if "max_sitemaps" in m}
    assert said == f"{site.robots_url} names 20,000 sitemaps; the first 100 are crawled (max_sitemaps)"
    assert result.tracebacks == []


@ensureDeferred
async def test_the_spider_stays_open_while_sitemaps_are_dropped(web: Web) -> None:
    lines = [f"sitemap: http://{n}.example/" for n in range(500)]  # offsite
    site = site_with(web, "\n".join([*lines, "sitemap: /sitemap.xml"]), "/a")
    result = await crawl(spider=shop(start_urls=[site.url("/")], allowed_domains=["127.0.0.1"]))
    assert list(result.pages) == [site.url("/a")]


@ensureDeferred
async def test_sitemaps_that_become_known_while_the_spider_is_idle_are_crawled(web: Web) -> None:
    site = site_with(web, "", "/a", at="*")
    robots = RobotsTxt.parse("".join(f"sitemap: /{n}.xml\n" for n in range(1, 31)).encode())
    signalled: list[Request] = []

    def prepare(crawler: Crawler) -> None:
        def idle() -> None:
            if not signalled:
                signalled.append(Request(site.url("/")))
                parsed = {"robotparser": RepRobotParser(robots), "request": signalled[0]}
                crawler.signals.send_catch_log(robots_parsed, **parsed)

        crawler.signals.connect(idle, signals.spider_idle, weak=False)

    result = await crawl(spider=shop(sitemap_urls=[site.url("/first.xml")]), prepare=prepare)
    assert {f"/{n}.xml" for n in range(1, 31)} <= set(site.targets)
    assert result.tracebacks == []


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({}, "Shop has nowhere to begin: set start_urls, allowed_domains or sitemap_urls"),
        ({"start_urls": ["{}/", "{}/x"]}, "Shop: found no sitemap to crawl in 1 robots.txt file"),
        ({"sitemap_urls": ["{}/sitemap.xml"]}, None),
        ({"sitemap_urls": ["{}/robots.txt"]}, "Shop: {}/robots.txt names no sitemap"),
    ],
)
@ensureDeferred
async def test_without_sitemaps_or_start_urls_a_warning_is_logged(
    web: Web, attributes: dict[str, list[str]], said: str | None
) -> None:
    site = site_with(web, "user-agent: *\ndisallow:\n", "/a")
    attributes = {name: [url.format(site.origin) for url in urls] for name, urls in attributes.items()}
    result = await crawl(spider=shop(**attributes))
    assert result.messages() == ([] if said is None else [said.format(site.origin)])


@ensureDeferred
async def test_a_malformed_start_url_is_logged_and_the_rest_goes_on(web: Web) -> None:
    site = site_with(web, "sitemap: /sitemap.xml\n", "/a")
    extra = site_with(web, "", "/b", at="/extra.xml")
    urls = [site.url("/"), "a.example", "http://[x/", None, "http:///x", "data:,x"]
    result = await crawl(spider=shop(start_urls=urls, sitemap_urls=[extra.url("/extra.xml")]))
    assert sorted(result.pages) == sorted([site.url("/a"), extra.url("/b")])
    first, second, *others = result.messages()
    assert first == "Shop: skipped 'a.example' of start_urls: Missing scheme in request url: a.example"
    assert second.startswith("Shop: skipped 'http://[x/' of start_urls: ")
    assert others == [
        "Shop: skipped 'None' of start_urls: Missing scheme in request url: None",
        "Shop: skipped 'http:///x' of start_urls: the URL has no valid host",
        "Shop: skipped 'data:,x' of start_urls: robots.txt does not apply to it",
    ]
    assert result.tracebacks == []


@ensureDeferred
async def test_a_start_url_may_be_that_of_robots_txt(web: Web) -> None:
    site = site_with(web, "sitemap: /sitemap.xml\n", "/a")
    result = await crawl(spider=shop(start_urls=[site.robots_url]))
    assert (list(result.pages), result.messages()) == ([site.url("/a")], [])


@ensureDeferred
async def test_the_robots_txt_of_an_exempt_start_url_is_not_counted(web: Web) -> None:
    site = site_with(web, "sitemap: /sitemap.xml\n", "/a")
    result = await crawl(spider=shop(start_urls=[site.url("/")]), settings={"REP_EXEMPT": [site.origin]})
    assert result.messages() == [f"Shop: skipped '{site.url('/')}' of start_urls: the crawl exempts it"]


@pytest.mark.parametrize(("limit", "last"), [(2, 2), (0, 5)])
@ensureDeferred
async def test_depth_limit_holds_for_sitemaps_on_new_hosts(web: Web, limit: int, last: int) -> None:
    hosts = [f"http://{number}.example" for number in range(6)]
    robots = {
        f"{host}/robots.txt": answer(f"sitemap: {following}/sitemap.xml\n") for host, following in pairwise(hosts)
    }
    proxy = web.site({**robots, f"{hosts[-1]}/robots.txt": answer(""), "*": sitemap()})
    settings = {"DEPTH_LIMIT": limit, "DOWNLOADER_MIDDLEWARES": {ProxyOnly: 1}, "PROXY": proxy.origin}
    result = await crawl(spider=shop(start_urls=[f"{hosts[0]}/"]), settings=settings)
    asked = [target for target in proxy.targets if target.endswith("robots.txt")]
    assert asked == [f"{host}/robots.txt" for host in hosts[: last + 1]]
    assert result.stats["request_depth_max"] == last
    assert result.tracebacks == []


@ensureDeferred
async def test_depth_limit_holds_for_sitemaps_of_a_robots_txt_in_sitemap_urls(web: Web) -> None:
    site = site_with(web, "sitemap: /sitemap.xml\n", "/a")
    result = await crawl(spider=shop(sitemap_urls=[site.robots_url]), settings={"DEPTH_LIMIT": 1})
    assert set(site.targets) == {"/robots.txt", "/sitemap.xml"}
    assert result.pages == {}


@ensureDeferred
async def test_a_robots_txt_that_has_not_answered_when_the_crawl_closes_is_not_counted(web: Web) -> None:
    site = web.robots(answer(kind="hang"))
    settings = {"CLOSESPIDER_TIMEOUT": 0.5, "REP_FETCH_TIMEOUT": 2}
    result = await crawl(spider=shop(start_urls=[site.url("/")]), settings=settings)
    assert site.targets == ["/robots.txt"]
    assert [m for m in result.messages() if "found no sitemap" in m] == []


@pytest.mark.parametrize(
    ("attributes", "pages"),
    [
        ({"start_urls": ["http://a.example/x", "http://a.example/y"]}, ["http://a.example/"]),
        ({"allowed_domains": ["a.example", "b.example"]}, ["https://a.example/", "https://b.example/"]),
        ({"start_urls": ["http://a.example/"], "allowed_domains": ["b.example"]}, ["http://a.example/"]),
        ({"start_urls": ["a.example", "b.example"]}, ["a.example", "b.example"]),
        ({}, []),
    ],
)
def test_the_first_pages(attributes: dict[str, Any], pages: list[str]) -> None:
    assert shop(**attributes)().first_pages() == pages


@ensureDeferred
async def test_an_unreachable_origin_does_not_stop_the_sitemaps_of_others(web: Web) -> None:
    down, site = web.robots(answer(status=503)), site_with(web, "sitemap: /sitemap.xml\n", "/a")
    result = await crawl(spider=shop(start_urls=[down.url("/"), site.url("/")]))
    assert list(result.pages) == [site.url("/a")]


@ensureDeferred
async def test_sitemap_urls_are_crawled_too(web: Web) -> None:
    site = site_with(web, "", "/a", at="/hidden.xml")
    result = await crawl(spider=shop(sitemap_urls=[site.url("/hidden.xml")]))
    assert list(result.pages) == [site.url("/a")]


@ensureDeferred
async def test_a_robots_txt_in_sitemap_urls_is_read_up_to_the_limit(web: Web) -> None:
    site = site_with(web, "# a comment\n" * 50_000 + "sitemap: /sitemap.xml\n", "/a")
    settings = {"REP_BODY_LIMIT": 1_000_000}
    result = await crawl(spider=shop(sitemap_urls=[site.robots_url]), settings=settings)
    assert list(result.pages) == [site.url("/a")]


@ensureDeferred
async def test_without_the_middleware_a_warning_names_the_cure() -> None:
    result = await crawl(spider=shop(start_urls=["http://127.0.0.1:1/"]), robots=BUILTIN)
    (line,) = (m for m in result.messages() if "scrapy-rep is off" in m)
    assert "set ADDONS to {'scrapy_rep.Addon': 500}" in line


@ensureDeferred
async def test_scrapys_own_sitemap_spider_crawls_the_sitemaps_of_a_robots_txt(web: Web) -> None:
    """A later Scrapy reads them from the signal, if it needs this robots.txt for another sitemap of the host anyway."""
    site = site_with(web, "sitemap: /sitemap.xml\n", "/a")
    site.change("/other.xml", sitemap(site.url("/b")))

    class Plain(SitemapSpider, CrawlSpider):
        sitemap_urls = [site.robots_url, site.url("/other.xml")]
        start = SitemapSpider.start

        def parse(self, response: Response, **_: Any) -> None:
            self.crawl.pages[response.url] = response

    result = await crawl(spider=Plain, settings={**BUILTIN, **ADDON})
    assert sorted(result.pages) == [site.url("/a"), site.url("/b")]
    assert result.tracebacks == []


@ensureDeferred
async def test_a_handler_of_robots_parsed_gets_the_sitemaps(web: Web) -> None:
    site = site_with(web, "sitemap: {origin}/a.xml\nsitemap: b.xml\n")
    found: list[str] = []

    def parsed(robotparser: Any) -> None:
        found.extend(robotparser.sitemaps())

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(parsed, robots_parsed)

    result: Crawl = await crawl(site.url("/"), prepare=prepare)
    assert len(result.pages) == 1
    assert found == [site.url("/a.xml"), "b.xml"]
