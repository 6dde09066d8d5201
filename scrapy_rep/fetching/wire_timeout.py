"""A time limit for download handlers that have none. Time in the downloader's queue does not count."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.python.failure import Failure

from scrapy_rep.scrapy_internals.compat import DownloadTimeoutError

LOOKS = 10  # within the limit


async def within(seconds: float, download: Coroutine[Any, Any, Response], is_on_wire: Callable[[], bool]) -> Response:
    """The response. Raises DownloadTimeoutError once the download was on the wire for that many seconds."""
    looks = 0
    downloading = deferred_from_coro(download)

    def look() -> None:
        nonlocal looks
        looks += is_on_wire()
        if looks > LOOKS:
            downloading.cancel()

    def too_late(failure: Failure) -> Failure:
        if looks > LOOKS:
            raise DownloadTimeoutError(f"No answer within {seconds:g} seconds")
        return failure

    downloading.addErrback(too_late)
    watch = create_looping_call(look)
    watch.start(seconds / LOOKS, now=False)
    try:
        return await maybe_deferred_to_future(downloading)
    finally:
        watch.stop()
