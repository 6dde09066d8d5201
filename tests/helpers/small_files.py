"""A Scrapy extension that simulates a full disk: no file of the process may exceed the setting FILE_SIZE."""

from __future__ import annotations

import resource

from scrapy.crawler import Crawler


class SmallFiles:
    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SmallFiles:
        size = crawler.settings.getint("FILE_SIZE")
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return cls()
