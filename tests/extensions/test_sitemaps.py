"""Sitemaps: Scrapy's own SitemapSpider with a robots.txt in `sitemap_urls`, and the signal `robots_parsed`."""

from __future__ import annotations

from typing import Any

from crawling import ADDON, BUILTIN, Crawl, CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spiders import SitemapSpider
from web import Site, Web, answer

from scrapy_rep.signals import robots_parsed

XML = {"Content-Type": "text/xml"}


def sitemap(*urls: str) -> Any:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return answer(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>', headers=XML)


def site_with(web: Web, robots: str, *paths: str) -> Site:
    """An origin with a sitemap of these pages. `{origin}` in its robots.txt stands for itself."""
    site = web.site()
    text, urls = robots.format(origin=site.origin), map(site.url, paths)
    site.change("/robots.txt", answer(text))
    site.change("/sitemap.xml", sitemap(*urls))
    return site


def spider_for(*urls: str) -> type[CrawlSpider]:
    class Plain(SitemapSpider, CrawlSpider):
        sitemap_urls = list(urls)
        start = SitemapSpider.start

        def parse(self, response: Response, **_: Any) -> None:
            self.crawl.pages[response.url] = response

    return Plain


@ensureDeferred
async def test_scrapys_own_sitemap_spider_crawls_the_sitemaps_of_a_robots_txt(web: Web) -> None:
    """A later Scrapy reads them from the signal, if it needs this robots.txt for another sitemap of the host anyway."""
    site = site_with(web, "sitemap: /sitemap.xml\n", "/a")
    site.change("/other.xml", sitemap(site.url("/b")))
    result = await crawl(spider=spider_for(site.robots_url, site.url("/other.xml")), settings={**BUILTIN, **ADDON})
    assert sorted(result.pages) == [site.url("/a"), site.url("/b")]
    assert result.tracebacks == []


@ensureDeferred
async def test_its_requests_are_judged(web: Web) -> None:
    site = site_with(web, "user-agent: *\ndisallow: /private\nsitemap: {origin}/sitemap.xml\n", "/a", "/private/b")
    result = await crawl(spider=spider_for(site.robots_url))
    assert list(result.pages) == [site.url("/a")]
    assert result.stats["rep/dropped/rule"] == 1
    assert site.targets.count("/robots.txt") == 2, "by the spider, and for its rules"


@ensureDeferred
async def test_a_sitemap_that_is_forbidden_is_not_fetched(web: Web) -> None:
    site = site_with(web, "user-agent: *\ndisallow: /sitemap\nsitemap: {origin}/sitemap.xml\n", "/a")
    result = await crawl(spider=spider_for(site.robots_url))
    assert (result.pages, set(site.targets)) == ({}, {"/robots.txt"})


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
