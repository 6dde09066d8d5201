"""Sitemaps of the origins that a spider meets, from the robots.txt that the gate has fetched anyway."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.spiders import SitemapSpider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import DeferredList

from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.text import printable

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("scrapy_rep")


class RobotsSitemapSpider(SitemapSpider):
    """`class ShopSpider(RobotsSitemapSpider, SitemapSpider)` needs no `sitemap_urls`.

    It begins with the origins of `start_urls`, or without those with `https://` and each of `allowed_domains`, and
    takes in the sitemaps of whatever other origin it comes to. Sitemaps are fetched through the gate, like any page.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.crawl_sitemaps, signal=signals.robots_parsed)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Yields what SitemapSpider does, for `sitemap_urls`, once the robots.txt of these origins were asked for."""
        middleware = RepMiddleware.of(self.crawler)
        # Whatever fails is told of elsewhere, and holds up none of the others.
        asking = [deferred_from_coro(middleware.verdict(url)) for url in self.first_pages()]
        await maybe_deferred_to_future(DeferredList(asking, consumeErrors=True))
        async for item_or_request in super().start():
            yield item_or_request

    def first_pages(self) -> list[str]:
        """A URL of each origin to begin with."""
        pages = self.start_urls or [f"https://{domain}/" for domain in getattr(self, "allowed_domains", None) or ()]
        return list({Origin.of(page): page for page in pages}.values())

    def crawl_sitemaps(self, robotparser: Any, request: Request) -> None:
        """An origin's robots.txt has been read: crawl what sitemaps it names."""
        origin = Origin.of(request.url)
        if not isinstance(robotparser, RepRobotParser) or origin is None:
            return
        for written in robotparser.sitemaps:
            sitemap = _joined(origin.robots_url, written)
            if sitemap is None:
                logger.debug("No address of a sitemap, at %s: %s", origin.robots_url, printable(written))
            else:
                self.crawler.engine.crawl(Request(sitemap, self._parse_sitemap))


def _joined(base: str, written: str) -> str | None:
    """The address, absolute; None where a stranger's file had better not lead: `file:`, `data:` and the like."""
    try:
        sitemap = urljoin(base, written)
    except ValueError:
        return None
    origin = Origin.of(sitemap)
    return sitemap if origin is not None and origin.scheme in {"http", "https"} else None
