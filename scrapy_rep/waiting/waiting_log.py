"""A line in the log every 15 seconds while requests wait for a robots.txt: how many, for which, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import create_looping_call

from scrapy_rep.log import logger_of
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.text import counted

EVERY = 15.0  # seconds


class Wait(NamedTuple):
    """Of one request."""

    origin: Origin
    """Whose robots.txt it waits for."""
    since: float
    """Seconds of the monotonic clock."""


class WaitingLog:
    def __init__(self, crawler: Crawler, waits: Callable[[], Collection[Wait]], monotonic: Callable[[], float]) -> None:
        """`waits`: those of this moment."""
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._waits = waits
        self._monotonic = monotonic
        crawler.signals.connect(self._opened, signal=signals.spider_opened)

    def tell(self) -> None:
        """Log what waits at this moment; nothing if nothing does."""
        waits = self._waits()
        if not waits:
            return
        first = min(waits, key=lambda wait: wait.since)
        self._log.info(
            "%(requests)s %(wait)s for the robots.txt of %(origins)s, the longest for %(seconds).0f s (%(url)s)",
            {
                "requests": counted(len(waits), "request"),
                "wait": "waits" if len(waits) == 1 else "wait",
                "origins": counted(len({wait.origin for wait in waits}), "origin"),
                "seconds": self._monotonic() - first.since,
                "url": first.origin.robots_url,
            },
        )

    def _opened(self) -> None:
        timer = create_looping_call(self.tell)
        timer.start(EVERY, now=False)
        self._crawler.signals.connect(timer.stop, signal=signals.spider_closed, weak=False)
