"""The Scrapy add-on: switches our middlewares on, and Scrapy's own robots.txt middleware off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import BaseSettings

from scrapy_rep.fetching.content_decoding import RepDecodingMiddleware
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.scrapy_internals.compat import switch_off
from scrapy_rep.scrapy_internals.one_shot import is_one_shot

if TYPE_CHECKING:
    from typing_extensions import Self

# RepMiddleware has the order of Scrapy's own robots.txt middleware, so that other middlewares see the same requests.
# RepDecodingMiddleware gets responses before HttpCompressionMiddleware (590) does.
ORDERS = {RepMiddleware: 100, RepDecodingMiddleware: 595}


class Addon:
    """`ADDONS = {"scrapy_rep.Addon": 500}`"""

    def __init__(self, *, is_one_shot: bool = False) -> None:
        """`is_one_shot` is whether a person waits for the crawl. Then requests do not wait for an outage to end."""
        self._is_one_shot = is_one_shot

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(is_one_shot=is_one_shot(crawler))

    def update_settings(self, settings: BaseSettings) -> None:
        """Replace Scrapy's own robots.txt middleware and ftp handler with ours. Other values that the project or the
        spider has set are kept."""
        switch_off(settings, RobotsTxtMiddleware)
        for middleware, order in ORDERS.items():
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", middleware, order)
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        if self._is_one_shot:
            settings.set("REP_UNREACHABLE_WAIT", 0, priority="addon")
        handlers = settings.getdict("DOWNLOAD_HANDLERS")
        if "ftp" not in handlers:
            handlers["ftp"] = "scrapy_rep.fetching.ftp.RepFTPDownloadHandler"
            settings.set("DOWNLOAD_HANDLERS", handlers, settings.getpriority("DOWNLOAD_HANDLERS") or 0)
