"""What differs between Scrapy 2.14 and newer releases. A name is Scrapy's own if it exists, else ours."""

import time
from collections.abc import Callable, Coroutine, Mapping
from importlib.util import find_spec
from typing import Any

from scrapy import exceptions, signals
from scrapy.core import downloader
from scrapy.utils import asyncio as scrapy_asyncio
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet import error
from twisted.internet.defer import Deferred


async def _sleep(seconds: float) -> None:
    over: Deferred[None] = Deferred()
    scrapy_asyncio.call_later(seconds, over.callback, None)
    await maybe_deferred_to_future(over)


sleep: Callable[[float], Coroutine[Any, Any, None]] = getattr(scrapy_asyncio, "sleep", _sleep)
"""Wait for the given number of seconds. In Scrapy since 2.18."""

robots_parsed: object = getattr(signals, "robots_parsed", object())
"""The signal `robots_parsed`. In Scrapy since 2.18; the built-in middleware of older releases does not send it."""

DownloadTimeoutError: type[Exception] = getattr(exceptions, "DownloadTimeoutError", error.TimeoutError)
"""The exception of a download handler after a time-out: Scrapy's since 2.15, Twisted's before."""

slot_clock: Callable[[], float] = time.monotonic if hasattr(downloader, "monotonic") else time.time
"""The clock of a download slot's `lastseen`: monotonic seconds from Scrapy 2.16 on; before, seconds since the epoch."""

NO_SESSION: Mapping[str, Any] = {"session": None} if find_spec("scrapy.sessions") else {"dont_merge_cookies": True}
"""The request meta that keeps the crawl's cookies away from a request. `session` is in no release of Scrapy yet."""
