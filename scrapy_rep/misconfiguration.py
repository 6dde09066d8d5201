"""Warnings at the start of a crawl about settings that conflict with this package."""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

from scrapy_rep.fetching.content_decoding import RepDecodingMiddleware
from scrapy_rep.log import logger_of
from scrapy_rep.robotparser import RepRobotParser


def warn_of_misconfiguration(crawler: Crawler) -> None:
    """Log a WARNING for each setting that conflicts with this package."""
    log = logger_of(crawler)
    middlewares: Any = crawler.engine.downloader.middleware.middlewares
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
    if _loaded(parser) not in {load_object(default_settings.ROBOTSTXT_PARSER), RepRobotParser}:
        log.warning("ROBOTSTXT_PARSER (%s) is not used: scrapy-rep parses robots.txt itself; remove it", parser)
    # Responses pass the middlewares from the last to the first.
    decompressing = [m for m in middlewares if isinstance(m, RepDecodingMiddleware | HttpCompressionMiddleware)]
    if not decompressing or not isinstance(decompressing[-1], RepDecodingMiddleware):
        log.warning(
            "A compressed robots.txt is read without REP_BODY_LIMIT, and as whole even if it was cut off: use ADDONS,"
            " or add 'scrapy_rep.RepDecodingMiddleware' to DOWNLOADER_MIDDLEWARES, with a higher order than that of"
            " HttpCompressionMiddleware (595 by default)"
        )


def _loaded(path: Any) -> Any:
    """Return what the import path names; None if it cannot be imported."""
    try:
        return load_object(path)
    except (AttributeError, ImportError, NameError, TypeError, ValueError):
        return None
