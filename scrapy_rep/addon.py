"""The add-on (setting ADDONS): switches our middlewares on, and Scrapy's own robots.txt middleware off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object

from scrapy_rep.fetching.decoding import RepDecodingMiddleware
from scrapy_rep.log import logger_of
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.scrapy_internals.compat import switch_off
from scrapy_rep.scrapy_internals.engine_state import is_one_shot
from scrapy_rep.settings import is_obeying

MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"
PLACES = {
    SETTINGS_PRIORITIES["project"]: "the project's settings",
    SETTINGS_PRIORITIES["spider"]: "the spider's custom_settings",
    SETTINGS_PRIORITIES["cmdline"]: "the command line",
}
# The orders in Scrapy's default settings.
ROBOTSTXT_ORDER, HTTPCOMPRESSION_ORDER = 100, 590


class Addon:
    """`ADDONS = {"scrapy_rep.Addon": 500}`"""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Addon:
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Replace Scrapy's own robots.txt middleware with ours. Other values that the project or the
        spider has set are kept."""
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        orders = {load_object(name): order for name, order in settings.getdict(MIDDLEWARES).items()}
        # On the command line, ROBOTSTXT_OBEY is a decision about this crawl.
        is_decided = (settings.getpriority("ROBOTSTXT_OBEY") or 0) >= SETTINGS_PRIORITIES["cmdline"]
        if not is_decided and is_obeying(settings) and _has_only_switched_off_the_builtin(orders):
            logger_of(self._crawler).warning(
                "DOWNLOADER_MIDDLEWARES (in %s) switches RobotsTxtMiddleware off, but ROBOTSTXT_OBEY is True, so"
                " scrapy-rep obeys robots.txt. To crawl without robots.txt, set ROBOTSTXT_OBEY = False there. Otherwise"
                " remove the entry",
                PLACES.get(settings.getpriority(MIDDLEWARES) or 0, "the settings"),
            )
        _enable_middlewares(settings, orders)
        # In such a crawl, a person waits for one page.
        if is_one_shot(self._crawler):
            settings.set("REP_UNREACHABLE_WAIT", 0, priority="addon")


def _has_only_switched_off_the_builtin(orders: Mapping[Any, Any]) -> bool:
    """Whether DOWNLOADER_MIDDLEWARES has `RobotsTxtMiddleware: None`, and no other middleware for robots.txt."""
    ours = (RobotsTxtMiddleware, RepMiddleware)
    return {kind: order for kind, order in orders.items() if _is_a(kind, *ours)} == {RobotsTxtMiddleware: None}


def _is_a(middleware: Any, *classes: type) -> bool:
    return isinstance(middleware, type) and issubclass(middleware, classes)


def _enable_middlewares(settings: BaseSettings, orders: Mapping[Any, Any]) -> None:
    """Put RepMiddleware where Scrapy's own robots.txt middleware stands, and RepDecodingMiddleware next to the
    middleware that decompresses. `orders`: class -> order in DOWNLOADER_MIDDLEWARES."""
    order = orders.get(RobotsTxtMiddleware)
    switch_off(settings, RobotsTxtMiddleware)
    if RepMiddleware not in orders:
        # It comes first in the dict, because Scrapy's sort is stable. So it gets requests before the project's own
        # middlewares of the same order, like Scrapy's robots.txt middleware.
        ours = {RepMiddleware: ROBOTSTXT_ORDER if order is None else order, **settings.getdict(MIDDLEWARES)}
        settings.set(MIDDLEWARES, ours, settings.getpriority(MIDDLEWARES) or 0)
    # It gets responses before every HttpCompressionMiddleware, because it has a higher order.
    orders = {HttpCompressionMiddleware: HTTPCOMPRESSION_ORDER, **orders}
    decompressing = [order for kind, order in orders.items() if _is_a(kind, HttpCompressionMiddleware)]
    order = max(filter(None, decompressing), default=HTTPCOMPRESSION_ORDER) + 5  # None: it is switched off
    settings.setdefault_in_component_priority_dict(MIDDLEWARES, RepDecodingMiddleware, order)
