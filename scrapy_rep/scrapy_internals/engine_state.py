"""What the engine does not tell by a signal: that the crawl begins to close; and asking it to look for requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy.crawler import Crawler

from scrapy_rep.scrapy_internals.fallbacks import tell_without


def engine_slot(crawler: Crawler) -> Any:
    """The engine's slot, which has the scheduler; None before the spider is opened and after it is closed."""
    return getattr(crawler.engine, "_slot", None)


def scheduler_of(crawler: Crawler) -> Any:
    """The crawl's scheduler while its spider is open. `engine.scheduler` is there since Scrapy 2.19."""
    if hasattr(crawler.engine, "scheduler"):
        return crawler.engine.scheduler
    return getattr(engine_slot(crawler), "scheduler", None)


def call_when_closing(crawler: Crawler, closing: Callable[[], None]) -> None:
    """Call this once the crawl begins to close; the spider is open by now.

    Scrapy waits for all downloads before it sends `spider_closed`, and they may wait for a robots.txt.
    """
    slot = engine_slot(crawler)
    close = getattr(slot, "close", None)
    if close is None:
        tell_without(crawler, "ExecutionEngine._slot.close")
        return

    def tell_and_close(*args: Any, **kwargs: Any) -> Any:
        closing()
        return close(*args, **kwargs)

    slot.close = tell_and_close


def look_for_requests(crawler: Crawler) -> None:
    """Let the engine ask the scheduler for the next request soon; otherwise it does within five seconds."""
    slot = engine_slot(crawler)
    if hasattr(slot, "nextcall"):
        slot.nextcall.schedule()
    elif slot is not None:
        tell_without(crawler, "ExecutionEngine._slot.nextcall")
