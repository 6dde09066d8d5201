"""The logger: each line names its spider, as Scrapy's own lines do (`%(spider)s` in a log format)."""

import logging
from typing import TypeAlias

from scrapy.crawler import Crawler

Logger: TypeAlias = "logging.LoggerAdapter[logging.Logger]"


def logger_of(crawler: Crawler) -> Logger:
    """The logger `scrapy_rep`. Its records have the attribute `spider`, which tells the crawls of one process apart."""
    return logging.LoggerAdapter(logging.getLogger("scrapy_rep"), {"spider": crawler.spider})


def wrong_start(crawler: Crawler, why: object) -> ValueError:
    """Log why the crawl does not start, and return the error to raise. Scrapy logs its message as the last line of a
    long traceback, or does not end the crawl."""
    logger_of(crawler).critical("The crawl does not start: %s", why)
    return ValueError(why)
