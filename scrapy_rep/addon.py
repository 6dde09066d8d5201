"""The add-on (setting ADDONS): switches our middlewares on, and Scrapy's own robots.txt middleware off."""

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_rep.log import logger_of, wrong_start
from scrapy_rep.middleware import ADDONS, RepMiddleware
from scrapy_rep.scrapy_internals.engine_state import is_one_shot
from scrapy_rep.settings import is_obeying

MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"
ROBOTSTXT_ORDER = 100  # in Scrapy's default settings
COMPARED = (RobotsTxtMiddleware, RepMiddleware)
CLASSES = {path: cls for cls in COMPARED for path in (global_object_name(cls), f"scrapy_rep.{cls.__name__}")}
"""Import path -> class. The modules of other middlewares are not imported, because Scrapy has not installed its reactor
yet: a module with `from twisted.internet import reactor` at its top would install another one."""


class Addon:
    """`ADDONS = {"scrapy_rep.Addon": 500}`"""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Addon":
        if cls not in map(load_object, crawler.settings["ADDONS"]):
            raise wrong_start(crawler, f"{cls.__name__} belongs in no setting but ADDONS; set it to {ADDONS}")
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Replace Scrapy's own robots.txt middleware with ours. Other values that the project or the
        spider has set are kept."""
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        listed, self._priority = settings.getdict(MIDDLEWARES), settings.getpriority(MIDDLEWARES) or 0
        self._orders = {CLASSES.get(name, name): order for name, order in listed.items()}
        order = self._orders.get(RobotsTxtMiddleware)
        # RepMiddleware comes first in the dict, because Scrapy's sort is stable. So it gets requests before the
        # project's own middlewares of the same order, like Scrapy's robots.txt middleware.
        ours = {} if RepMiddleware in self._orders else {RepMiddleware: ROBOTSTXT_ORDER if order is None else order}
        others = {name: order for name, order in listed.items() if CLASSES.get(name, name) is not RobotsTxtMiddleware}
        # A path, because before Scrapy 2.15, a class does not override the path in Scrapy's default list.
        scrapys = {global_object_name(RobotsTxtMiddleware): None}
        settings.set(MIDDLEWARES, ours | others | scrapys, self._priority)
        # In such a crawl, a person waits for one page.
        if is_one_shot(self._crawler):
            settings.set("REP_UNREACHABLE_WAIT", 0, priority="addon")
        self._crawler.signals.connect(self._warn_of_none, signal=signals.spider_opened)

    def _warn_of_none(self) -> None:
        """Log a WARNING if DOWNLOADER_MIDDLEWARES switches off Scrapy's middleware, which is off anyway, or ours."""
        builtin, ours = map(self._crawler.get_downloader_middleware, COMPARED)
        orders, off = self._orders, ""
        if ours is None:
            off, obeys = "RepMiddleware", "does not obey"
        elif builtin is None and orders.get(RobotsTxtMiddleware, 0) is None and RepMiddleware not in orders:
            off, obeys = "RobotsTxtMiddleware", "obeys"
        if off and is_obeying(self._crawler.settings):
            names = {number: name for name, number in SETTINGS_PRIORITIES.items()}
            logger_of(self._crawler).warning(
                "DOWNLOADER_MIDDLEWARES (in the %s settings) switches %s off, but ROBOTSTXT_OBEY is True: scrapy-rep %s"
                " robots.txt. To crawl without robots.txt, set ROBOTSTXT_OBEY = False there. Otherwise remove the"
                " entry",
                *(names.get(self._priority, self._priority), off, obeys),
            )
