"""Scrapy's downloader: requests that do not count in it, and removing a request from its slot.

`delays.py` sets the delays of the slots, and `scheduler_queues.py` reads the slots to choose the next request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later

from scrapy_rep.scrapy_internals import warn_missing
from scrapy_rep.scrapy_internals.compat import throttler_of

_COUNTING_NEEDS = ("active", "total_concurrency")
_PACE_META = ("download_slot", "throttling_scopes")  # Scrapy's throttler, not released yet, has the second one


class UncountedDownloads:
    """Requests that do not count against CONCURRENT_REQUESTS: requests for a robots.txt, and some that wait for one.

    If the project has replaced the downloader's check of its limit, these requests count like any other.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._requests: set[Request] = set()
        self._must_back_out: Callable[[], bool] = bool

    @contextmanager
    def uncounted(self, request: Request) -> Iterator[None]:
        """Leave the request out of the downloader's check of its limit, until the `with` block ends."""
        self._requests.add(request)
        self._replace_check()
        try:
            yield
        finally:
            self._requests.discard(request)

    def back_out_when(self, must_back_out: Callable[[], bool]) -> None:
        """Make the engine take no requests from the scheduler while `must_back_out` returns True, as if the downloader
        were full. `must_back_out` is called only while the downloader has room."""
        self._must_back_out = must_back_out
        self._replace_check()

    def _replace_check(self) -> None:
        downloader: Any = self._crawler.engine.downloader
        # Raising `total_concurrency` for each request would not do, because other components may set it, too.
        is_scrapys = getattr(type(downloader), "needs_backout", None) is getattr(Downloader, "needs_backout", ...)
        if is_scrapys and all(hasattr(downloader, name) for name in _COUNTING_NEEDS):
            downloader.needs_backout = self._needs_backout
        else:
            warn_missing(self._crawler, "Downloader.needs_backout")

    def _needs_backout(self) -> bool:
        downloader = self._crawler.engine.downloader
        total, active = downloader.total_concurrency, downloader.active
        # A total concurrency of 0 means no limit.
        is_full = 0 < total <= len(active) and total <= len(active) - len(self._requests & active)
        return is_full or self._must_back_out()


def watch_handlers(crawler: Crawler, watch: Callable[[Request], AbstractContextManager[None]]) -> None:
    """Enter `watch(request)` while a download handler has the request: from the moment when the request leaves the
    queue of its slot, to the response or the handler's error."""
    handlers: Any = getattr(crawler.engine.downloader, "handlers", None)
    download = getattr(handlers, "download_request_async", None)
    if download is None:
        warn_missing(crawler, "DownloadHandlers.download_request_async")
        return

    async def watched(request: Request, *args: Any, **kwargs: Any) -> Any:
        with watch(request):
            return await download(request, *args, **kwargs)

    handlers.download_request_async = watched


def pace_meta(request: Request) -> dict[str, Any]:
    """Return the request meta that chooses with which requests the request shares limits and delays."""
    return {key: request.meta[key] for key in _PACE_META if key in request.meta}


def remove_from_downloader(crawler: Crawler, request: Request) -> None:
    """Remove a cancelled or late request from its slot, so that it is not sent, and the next request can be sent."""
    if throttler_of(crawler) is not None:
        return  # a request that is cancelled leaves the throttler and the downloader by itself
    downloader: Any = crawler.engine.downloader
    slot: Any = getattr(downloader, "slots", {}).get(request.meta.get("download_slot"))
    if slot is None:
        return
    process_queue = getattr(downloader, "_process_queue", None)
    if process_queue is None or not hasattr(slot, "queue") or not hasattr(slot, "transferring"):
        warn_missing(crawler, "Downloader._process_queue")
        return
    for queued in [queued for queued in slot.queue if queued[0] is request]:
        slot.queue.remove(queued)
    if request in slot.transferring:
        slot.transferring = _Transferring(slot.transferring - {request})
        call_later(0, process_queue, slot)  # later, when the other cancelled fetches have left the queue, too


class _Transferring(set[Request]):
    """The requests that a slot has on the wire. Scrapy removes a request again after `remove_from_downloader` did;
    `set.remove` would raise KeyError then."""

    def remove(self, request: Request) -> None:
        self.discard(request)
