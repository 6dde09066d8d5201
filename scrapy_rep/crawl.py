"""What the parts of one crawl share: its crawler, settings, clocks, log and stats."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from scrapy.crawler import Crawler

from scrapy_rep.log import Logger, logger_of
from scrapy_rep.settings import RepSettings


class Clock(NamedTuple):
    """The clocks of a crawl. Tests replace them."""

    now: Callable[[], float]
    """Seconds since the epoch. This clock may be set back or forward during the crawl."""
    monotonic: Callable[[], float]
    """Seconds since some moment. This clock never goes back, so it measures how long something takes."""
    sleep: Callable[[float], Awaitable[None]]
    """Waits for a number of seconds."""


class Crawl(NamedTuple):
    """What all parts of one crawl share. `Part` keeps the fields, in this order."""

    crawler: Crawler
    settings: RepSettings
    clock: Clock
    log: Logger
    inc_stat: Callable[..., None]
    """Adds 1, or the second argument, to a stat."""

    @classmethod
    def of(cls, crawler: Crawler, settings: RepSettings, clock: Clock) -> "Crawl":
        return cls(crawler, settings, clock, logger_of(crawler), crawler.stats.inc_value)


class Part:
    """The base class of the parts of a crawl. They have what they share as private attributes."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawler, self._settings, self._clock, self._log, self._count = crawl
        self._happened: set[object] = set()

    def _is_first(self, event: object) -> bool:
        """Whether this is the first call for the event, so that it is logged once."""
        is_first = event not in self._happened
        self._happened.add(event)
        return is_first
