"""What SitemapSpider makes of the response to a sitemap request."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy import Request
from scrapy.http import Response
from scrapy.spiders import SitemapSpider


class SitemapResponses(SitemapSpider):
    """Scrapy's, except that `parse_robots_txt` reads a robots.txt. Scrapy's would crawl all sitemaps in it."""

    def _parse_sitemap(self, response: Response) -> Iterable[Request]:
        if response.url.endswith("/robots.txt"):
            return self.parse_robots_txt(response)
        return super()._parse_sitemap(response)

    def parse_robots_txt(self, response: Response) -> Iterable[Request]:
        raise NotImplementedError
