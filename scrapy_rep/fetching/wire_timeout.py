"""A deadline for download handlers that know none, counted on the wire, never in the download slot's queue."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.python.failure import Failure

LOOKS = 10  # within the deadline


async def within(seconds: float, download: Coroutine[Any, Any, Response], is_on_wire: Callable[[], bool]) -> Response:
    """The response; raises DownloadTimeoutError once the download was seen on the wire for so long."""
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
