"""Warnings at the start of a crawl about settings that conflict with this package."""

from __future__ import annotations

from itertools import takewhile

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import default_settings

from scrapy_rep.fetching.decoding import RepDecodingMiddleware
from scrapy_rep.log import logger_of
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.scrapy_internals.engine_state import downloader_middlewares

INSTEAD = (
    ". For what your class adds, set REP_EXEMPT (hosts and paths), ROBOTSTXT_OBEY in custom_settings (spiders),"
    " REP_CRAWL_DELAY_MAX (Crawl-delay), REP_STATUS_POLICY (a stricter crawl), or REP_MEMORY_OCTETS (a bound on memory)"
)


def warn_of_misconfiguration(crawler: Crawler, ours: object, *, waits_at_scheduler: bool) -> None:
    """Log a WARNING for each setting that conflicts with this package.

    `ours` is our middleware. `waits_at_scheduler`: whether requests wait for robots.txt before the middlewares get
    them.
    """
    log = logger_of(crawler)
    middlewares = downloader_middlewares(crawler)
    builtin = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    if builtin is not None:
        path = f"{type(builtin).__module__}.{type(builtin).__qualname__}"
        log.warning(
            "%s also obeys robots.txt, and reads it differently from scrapy-rep: switch it off with"
            " DOWNLOADER_MIDDLEWARES = {'%s': None}%s",
            path,
            path,
            "" if type(builtin) is RobotsTxtMiddleware else INSTEAD,
        )
    first = [type(m) for m in takewhile(lambda m: m is not ours, middlewares) if hasattr(m, "process_request")]
    own = ", ".join(m.__qualname__ for m in first if not m.__module__.startswith("scrapy."))
    if own and waits_at_scheduler:
        log.info(
            "%s: requests wait for robots.txt before these downloader middlewares, whose orders are lower than that of"
            " RepMiddleware. To let these middlewares act first, set REP_WAITING_MAX = 0, or use the signal"
            " request_scheduled",
            own,
        )
    if crawler.settings.getbool("REP_PURPOSES_REFUSE") and not crawler.settings.get("REP_PURPOSES"):
        log.warning(
            "REP_PURPOSES_REFUSE refuses nothing, because REP_PURPOSES is empty: set it to a list such as ['train-ai']"
        )
    parser = crawler.settings["ROBOTSTXT_PARSER"]
    class_name = getattr(parser, "__name__", str(parser)).rpartition(".")[2]
    if not default_settings.ROBOTSTXT_PARSER.endswith(f".{class_name}") and class_name != RepRobotParser.__name__:
        log.warning("ROBOTSTXT_PARSER (%s) is not used: scrapy-rep parses robots.txt itself; remove it", parser)
    # Responses pass the middlewares from the last to the first.
    decompressing = [m for m in middlewares if isinstance(m, RepDecodingMiddleware | HttpCompressionMiddleware)]
    if middlewares and not isinstance([None, *decompressing][-1], RepDecodingMiddleware):
        log.warning(
            "A compressed robots.txt is read without REP_BODY_LIMIT, and as whole even if it was cut off: use ADDONS,"
            " or add 'scrapy_rep.RepDecodingMiddleware' to DOWNLOADER_MIDDLEWARES, with a higher order than that of"
            " HttpCompressionMiddleware (595 by default)"
        )
