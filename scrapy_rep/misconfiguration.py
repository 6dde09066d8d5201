"""Warnings at the start of a crawl about settings that conflict with this package."""

from __future__ import annotations

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

from scrapy_rep.fetching.decoding import RepDecodingMiddleware
from scrapy_rep.log import logger_of
from scrapy_rep.robotparser import RepRobotParser


def warn_of_misconfiguration(crawler: Crawler) -> None:
    """Log a WARNING for each setting that conflicts with this package."""
    log = logger_of(crawler)
    builtin = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    if builtin is not None:
        path = f"{type(builtin).__module__}.{type(builtin).__qualname__}"
        log.warning(
            "%s also obeys robots.txt, and reads it differently from scrapy-rep: switch it off with"
            " DOWNLOADER_MIDDLEWARES = {'%s': None}",
            path,
            path,
        )
    if crawler.settings.getbool("REP_PURPOSES_REFUSE") and not crawler.settings.get("REP_PURPOSES"):
        log.warning(
            "REP_PURPOSES_REFUSE refuses nothing, because REP_PURPOSES is empty: set it to a list such as ['train-ai']"
        )
    parser = crawler.settings["ROBOTSTXT_PARSER"]
    if load_object(parser) not in {load_object(default_settings.ROBOTSTXT_PARSER), RepRobotParser}:
        log.warning("ROBOTSTXT_PARSER (%s) is not used: scrapy-rep parses robots.txt itself; remove it", parser)
    if crawler.get_downloader_middleware(RepDecodingMiddleware) is None:
        log.warning(
            "REP_BODY_LIMIT does not hold for a compressed robots.txt: use ADDONS, or add"
            " 'scrapy_rep.RepDecodingMiddleware': 595 to DOWNLOADER_MIDDLEWARES"
        )
