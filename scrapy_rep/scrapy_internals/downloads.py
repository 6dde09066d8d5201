"""Scrapy's downloader: requests that do not count against CONCURRENT_REQUESTS, and its handlers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep.scrapy_internals import warn_missing

PACE_META = ("download_slot",)
"""The request meta that chooses with which requests a request shares limits and delays."""


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
        # A later Scrapy may reckon with a size for each request, and limit their sum. A robots.txt is small.
        manager = getattr(self._crawler.engine.downloader, "middleware", None)
        getattr(manager, "_rough_sizes", {}).setdefault(request, 0)
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
        is_scrapys = getattr(type(downloader), "needs_backout", None) is getattr(Downloader, "needs_backout", ...)
        if is_scrapys and hasattr(downloader, "active") and hasattr(downloader, "total_concurrency"):
            downloader.needs_backout = self._needs_backout
        else:
            warn_missing(self._crawler, "Downloader.needs_backout")

    def _needs_backout(self) -> bool:
        """Ask Scrapy's method, so that all its reasons count, with a limit that is higher by the uncounted requests."""
        downloader = self._crawler.engine.downloader
        total = downloader.total_concurrency
        if 0 < total <= len(downloader.active):  # 0 means no limit
            downloader.total_concurrency += len(self._requests & downloader.active)
        must_back_out: bool = Downloader.needs_backout(downloader)
        downloader.total_concurrency = total  # not raised for longer, because other components may set it, too
        return must_back_out or self._must_back_out()


Call = Callable[[], Coroutine[Any, Any, Response]]
"""The call of a download handler."""


def wrap_handlers(crawler: Crawler, wrap: Callable[[Request, Call], Coroutine[Any, Any, Response]]) -> None:
    """Await `wrap(request, call)` in place of `call()`, when the request leaves the queue of its slot."""
    handlers: Any = getattr(crawler.engine.downloader, "handlers", None)
    download = getattr(handlers, "download_request_async", None)
    if download is None:
        warn_missing(crawler, "DownloadHandlers.download_request_async")
    else:
        handlers.download_request_async = lambda request, *args, **kwargs: wrap(
            request, partial(download, request, *args, **kwargs)
        )
