"""Names that Scrapy 2.14 lacks and newer releases have: Scrapy's own if there, else ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

import scrapy.core.downloader
import scrapy.exceptions
import scrapy.signals
import scrapy.utils.asyncio
import twisted.internet.error
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred


async def _sleep(seconds: float) -> None:
    over: Deferred[None] = Deferred()
    call_later(seconds, over.callback, None)
    await maybe_deferred_to_future(over)


sleep: Callable[[float], Coroutine[Any, Any, None]] = getattr(scrapy.utils.asyncio, "sleep", _sleep)
"""Waits for the seconds that it is given. Scrapy's since 2.18."""

robots_parsed: object = getattr(scrapy.signals, "robots_parsed", object())
"""The signal. Scrapy's since 2.18; it is not sent by older ones' own middleware."""

DownloadTimeoutError: type[Exception] = getattr(
    scrapy.exceptions, "DownloadTimeoutError", twisted.internet.error.TimeoutError
)
"""What a download handler raises. Scrapy's since 2.15, Twisted's before."""

slot_clock: Callable[[], float] = time.monotonic if hasattr(scrapy.core.downloader, "monotonic") else time.time
"""The seconds that a download slot's `lastseen` is in: monotonic since 2.16, since the epoch before."""


def switch_off(settings: BaseSettings, middleware: type) -> None:
    """Leave out a downloader middleware that Scrapy enables by default."""
    name = "DOWNLOADER_MIDDLEWARES"
    settings.set_in_component_priority_dict(name, middleware, None)
    if not hasattr(settings, "get_component_priority_dict_with_base"):
        # Before Scrapy 2.15 the class does not replace the path that Scrapy's own list has.
        middlewares = {**settings.getdict(name), global_object_name(middleware): None}
        settings.set(name, middlewares, settings.getpriority(name) or 0)
