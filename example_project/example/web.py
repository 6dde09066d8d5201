"""An extension that starts the example's server when the crawl begins, and stops the server when the crawl ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.crawler import Crawler

if TYPE_CHECKING:
    from .spiders import TourSpider


class Web:
    """Serves the sites while the spider is open, and tells the spider where they are."""

    def __init__(self, port: str | int) -> None:
        self._port = str(port)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Web:
        web = cls(crawler.settings["WEB_PORT"])
        crawler.signals.connect(web.start, signal=signals.spider_opened)
        crawler.signals.connect(web.stop, signal=signals.spider_closed)
        return web

    def start(self, spider: TourSpider) -> None:
        # The server exits when its standard input is closed, so it exits even if this process is killed.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "example.server", self._port],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # the project may be deployed as an egg
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        spider.origins = json.loads(self._process.stdout.readline())  # type: ignore[union-attr] # a pipe, as asked for

    def stop(self) -> None:
        with self._process:  # closes the pipes and waits for the process
            self._process.terminate()
