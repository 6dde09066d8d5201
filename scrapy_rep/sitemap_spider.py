"""RobotsSitemapSpider: crawls the sitemaps named in robots.txt, without a second request for robots.txt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spiders import SitemapSpider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import DeferredList

from scrapy_rep.fetching.headers import url_of
from scrapy_rep.log import Logger, logger_of
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.redirect_target import why_not_followed
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.words import AccessResult, counted
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_parsed

if TYPE_CHECKING:
    from typing_extensions import Self


class RobotsSitemapSpider(SitemapSpider):
    """A SitemapSpider that finds its sitemaps in robots.txt: `class ShopSpider(RobotsSitemapSpider)`.

    It begins with the origins of `start_urls`. Without `start_urls`, it begins with `https://DOMAIN` for each of
    `allowed_domains`. It also crawls the sitemaps of every other origin whose robots.txt the crawl reads. It skips
    sitemaps beyond the first `max_sitemaps` of a robots.txt, and URLs with a private host that a public site's
    robots.txt names (docs/spiders.md).
    """

    max_sitemaps = 1_000
    """How many of the sitemaps that one robots.txt names are crawled."""
    _has_sitemaps = False

    @cached_property
    def _rep_settings(self) -> RepSettings:
        return RepSettings.read(self.settings)

    @property
    def _log(self) -> Logger:
        return logger_of(self.crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.crawl_sitemaps, signal=robots_parsed)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Fetch robots.txt of the first origins; then yield the requests for `sitemap_urls`."""
        middleware, pages, name = RepMiddleware.of(self.crawler), self.first_pages(), type(self).__name__
        verdicts = [deferred_from_coro(middleware.verdict(page)) for page in pages]
        results: list[tuple[bool, Any]] = await maybe_deferred_to_future(DeferredList(verdicts, consumeErrors=True))
        known = 0
        for page, (succeeded, result) in zip(pages, results, strict=True):
            if not succeeded and result.check(IgnoreRequest):  # the crawl closes
                continue
            if succeeded and result.policy is not None:
                known += result.access is not AccessResult.UNREACHABLE
            else:  # no robots.txt was fetched
                why = result.words if succeeded else result.value
                self._log.error("%s: skipped %r of start_urls: %s", name, printable(page), why)
        if not self.sitemap_urls and not self._has_sitemaps:
            if known:
                files = counted(known, "robots.txt file")
                self._log.warning("%s: found no sitemap to crawl in %s", name, files)
            elif not pages:
                self._log.warning("%s has nowhere to begin: set start_urls, allowed_domains or sitemap_urls", name)
        async for item in super().start():
            yield item

    def first_pages(self) -> list[str]:
        """Return one URL of each origin that the spider begins with, and each value that is no URL of an origin."""
        pages = self.start_urls or [f"https://{domain}/" for domain in getattr(self, "allowed_domains", None) or ()]
        origins = dict.fromkeys(Origin.of(str(page)) or str(page) for page in pages)
        return [f"{origin}/" if isinstance(origin, Origin) else origin for origin in origins]

    def crawl_sitemaps(self, robotparser: Any, request: Request) -> None:
        """Crawl the sitemaps of a robots.txt. This is the handler of the signal `robots_parsed`."""
        if isinstance(robotparser, RepRobotParser):
            self._request_sitemaps(request.url, robotparser.sitemaps(), request.meta)

    def _robots_parsed(self) -> None:
        """Do nothing: in a later Scrapy, SitemapSpider handles `robots_parsed` here, without our limits."""

    def _parse_sitemap(self, response: Response) -> Iterable[Request]:
        """Do what Scrapy does, but obey `max_sitemaps` also for a robots.txt that is itself named as a sitemap."""
        if not response.url.endswith("/robots.txt"):
            return super()._parse_sitemap(response)
        sitemaps = RobotsTxt.parse(response.body, self._rep_settings.body_limit).sitemaps
        if sitemaps:
            self._request_sitemaps(response.url, sitemaps, response.meta)
        else:
            self._log.warning("%s: %s names no sitemap", type(self).__name__, printable(response.url))
        return ()

    def _request_sitemaps(self, page: str, written: tuple[str, ...], meta: Mapping[str, Any]) -> None:
        """Request the sitemaps that the robots.txt of a page names, at most `max_sitemaps`. `meta` is that of the
        request that led to the robots.txt; the sitemaps are one level deeper (DEPTH_LIMIT)."""
        origin = Origin.of(page)
        base = origin.robots_url if origin is not None else page
        most, private = self.max_sitemaps, self._rep_settings.redirect_private
        if len(written) > most:
            sitemaps = counted(len(written), "sitemap")
            self._log.info("%s names %s; the first %s are crawled (max_sitemaps)", base, sitemaps, f"{most:,}")
        for text in written[:most]:
            url = url_of(base, text) or ""
            wrong = why_not_followed(base, url, private=private) if Origin.of(url) else "nowhere"
            if wrong is not None:
                self._log.debug("%s: skipped a sitemap that leads %s: %s", base, wrong, printable(text))
                continue
            self._has_sitemaps = True
            request = self._one_deeper(Request(url, self._parse_sitemap), meta)
            if request is not None:
                self.crawler.engine.crawl(request)

    def _one_deeper(self, request: Request, meta: Mapping[str, Any]) -> Request | None:
        """Let Scrapy's DepthMiddleware set the depth of the request; None if DEPTH_LIMIT forbids the request."""
        depth = self.crawler.get_spider_middleware(DepthMiddleware)
        response = Response(request.url, request=Request(request.url, meta={"depth": meta.get("depth", 0)}))
        return depth.get_processed_request(request, response) if depth is not None else request
