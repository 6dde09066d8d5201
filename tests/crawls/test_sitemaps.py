"""Sitemaps of the origins that a spider meets, without a second request for robots.txt."""

from __future__ import annotations

from typing import Any

import pytest
from crawling import BUILTIN, Crawl, CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spiders import SitemapSpider
from web import Site, Web, answer

from scrapy_rep import RobotsSitemapSpider

XML = {"Content-Type": "text/xml"}


class Shop(RobotsSitemapSpider, SitemapSpider, CrawlSpider):
    """Writes down what pages the sitemaps led to."""

    def parse(self, response: Response, **_: Any) -> None:
        self.crawl.pages[response.url] = response


def shop(**attributes: Any) -> type[Shop]:
    return type("Shop", (Shop,), attributes)


def sitemap(*urls: str) -> Any:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return answer(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>', headers=XML)


def site_with(web: Web, robots: str, *paths: str, at: str = "/sitemap.xml") -> Site:
    """An origin with a sitemap of these pages; `{origin}` in its robots.txt is its own."""
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
    assert result.stats["rep/dropped/rule"] == 1, "what a sitemap names is a page like others"
    assert result.tracebacks == []


@ensureDeferred
async def test_a_sitemap_that_is_forbidden_is_not_fetched(web: Web) -> None:
    site = site_with(web, "user-agent: *\ndisallow: /sitemap\nsitemap: {origin}/sitemap.xml\n", "/a")
    result = await crawl(spider=shop(start_urls=[site.url("/")]))
    assert result.pages == {}
    assert site.targets == ["/robots.txt"]


@ensureDeferred
async def test_sitemaps_of_every_origin_that_the_spider_meets(web: Web) -> None:
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


@ensureDeferred
async def test_addresses_that_lead_elsewhere_than_to_the_web_are_left(web: Web, tmp_path: Any) -> None:
    secret = tmp_path / "sitemap.xml"
    secret.write_text("<urlset><url><loc>https://example.com/</loc></url></urlset>")
    lines = [f"sitemap: {url}" for url in (secret.as_uri(), "data:,x", "javascript:x", "http://[x/", "ftp://x/y")]
    site = web.robots("\n".join(lines))
    result = await crawl(spider=shop(start_urls=[site.url("/")]))
    assert site.targets == ["/robots.txt"]
    assert result.stats.get("scheduler/enqueued") is None
    assert result.tracebacks == []


@pytest.mark.parametrize(
    ("attributes", "pages"),
    [
        ({"start_urls": ["http://a.example/x", "http://a.example/y"]}, ["http://a.example/y"]),
        ({"allowed_domains": ["a.example", "b.example"]}, ["https://a.example/", "https://b.example/"]),
        ({"start_urls": ["http://a.example/"], "allowed_domains": ["b.example"]}, ["http://a.example/"]),
        ({}, []),
    ],
)
def test_where_it_begins(attributes: dict[str, Any], pages: list[str]) -> None:
    assert shop(**attributes)().first_pages() == pages


@ensureDeferred
async def test_an_origin_that_is_dead_holds_up_no_other(web: Web) -> None:
    down, site = web.robots(answer(status=503)), site_with(web, "sitemap: /sitemap.xml\n", "/a")
    result = await crawl(spider=shop(start_urls=[down.url("/"), site.url("/")]))
    assert list(result.pages) == [site.url("/a")]


@ensureDeferred
async def test_sitemap_urls_are_crawled_as_well(web: Web) -> None:
    site = site_with(web, "", "/a", at="/hidden.xml")
    result = await crawl(spider=shop(sitemap_urls=[site.url("/hidden.xml")]))
    assert list(result.pages) == [site.url("/a")]


@ensureDeferred
async def test_without_the_middleware_it_names_the_cure() -> None:
    result = await crawl(spider=shop(start_urls=["http://127.0.0.1:1/"]), robots=BUILTIN)
    (line,) = (m for m in result.messages() if "scrapy-rep is off" in m)
    assert "set ADDONS to {'scrapy_rep.Addon': 500}" in line


@ensureDeferred
async def test_by_the_signal(web: Web) -> None:
    site = site_with(web, "sitemap: {origin}/a.xml\nsitemap: b.xml\n")
    found: list[str] = []

    def parsed(robotparser: Any) -> None:
        found.extend(robotparser.sitemaps)

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(parsed, signals.robots_parsed)

    result: Crawl = await crawl(site.url("/"), prepare=prepare)
    assert len(result.pages) == 1
    assert found == [site.url("/a.xml"), "b.xml"]
