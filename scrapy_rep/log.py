"""The logger: each line names its spider, as Scrapy's own lines do (`%(spider)s` in a log format)."""

from __future__ import annotations

import logging
from typing import TypeAlias

from scrapy.crawler import Crawler

Logger: TypeAlias = "logging.LoggerAdapter[logging.Logger]"


def logger_of(crawler: Crawler) -> Logger:
    """The logger `scrapy_rep`. Its records have the attribute `spider`, which tells the crawls of one process apart."""
    return logging.LoggerAdapter(logging.getLogger("scrapy_rep"), {"spider": crawler.spider})
