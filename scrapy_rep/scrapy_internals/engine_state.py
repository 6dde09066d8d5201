"""Scrapy's engine: its scheduler and middlewares, what is called at a close, and a call to ask for requests.

Also: whether a person waits for the end of the crawl (`scrapy fetch`, `view`, `parse`, `shell`, `check`). This uses
the names of the modules of these commands, and that the shell never calls `Crawler.crawl`. If Scrapy changes that, the
crawl counts as ordinary.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pydispatch.dispatcher import getReceivers
from scrapy.crawler import Crawler

from scrapy_rep.scrapy_internals import warn_missing


def engine_slot(crawler: Crawler) -> Any:
    """Return the engine's slot, which has the scheduler; None before the spider is opened and after it is closed."""
    return getattr(crawler.engine, "_slot", None)


def scheduler_of(crawler: Crawler) -> Any:
    """Return the crawl's scheduler; None if no spider is open."""
    # The engine itself has it since Scrapy 2.19.
    return getattr(crawler.engine if hasattr(crawler.engine, "scheduler") else engine_slot(crawler), "scheduler", None)


def downloader_middlewares(crawler: Crawler) -> tuple[Any, ...]:
    """Return the downloader middlewares, in the order in which they get requests; empty if Scrapy hides them."""
    manager = getattr(getattr(crawler.engine, "downloader", None), "middleware", None)
    return tuple(getattr(manager, "middlewares", ()))


def call_when_closing(crawler: Crawler, closing: Callable[[], None]) -> None:
    """Have `closing` called when the crawl begins to close. The spider has to be open already.

    `spider_closed` comes too late: Scrapy sends it after all downloads have ended, and some may wait for a robots.txt.
    """
    engine: Any = crawler.engine
    close = engine.close_spider_async

    async def call_and_close(**reason: Any) -> None:
        closing()
        await close(**reason)

    engine.close_spider_async = call_and_close


@contextmanager
def called_first(crawler: Crawler, signal: object) -> Iterator[None]:
    """Have receivers that are connected within the `with` block called before those that were connected earlier.

    Scrapy and extensions connect their receivers first, and PyDispatcher calls receivers in the order of this list. So
    Scrapy's stats count what is logged at `spider_closed`, and monitors that read them then see it. And nobody has kept
    a method that is replaced at `spider_opened`.
    """
    others = [*getReceivers(crawler, signal)]
    yield
    getReceivers(crawler, signal).sort(key=others.__contains__)


def look_for_requests(crawler: Crawler) -> None:
    """Make the engine ask the scheduler for the next request now. On its own, the engine asks within five seconds."""
    slot = engine_slot(crawler)
    if hasattr(slot, "nextcall"):
        slot.nextcall.schedule()
    elif slot is not None:
        warn_missing(crawler, "ExecutionEngine._slot.nextcall")


# These commands replace the `start` of the spider's class. `view` is a subclass of `fetch`.
COMMANDS = ("scrapy.commands.fetch", "scrapy.commands.parse", "scrapy.commands.check")


def is_one_shot(crawler: Crawler) -> bool:
    """Whether one of the commands `fetch`, `view`, `parse`, `shell` and `check` runs the crawl."""
    # `scrapy shell` prepares a crawler and its engine, but does not call `crawl`.
    return getattr(crawler.spidercls.start, "__module__", None) in COMMANDS or not crawler.crawling
