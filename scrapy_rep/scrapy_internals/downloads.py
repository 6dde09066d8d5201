"""Requests in Scrapy's downloader that take no place among CONCURRENT_REQUESTS: those for a robots.txt, and those that
wait for a robots.txt inside the downloader.

Where the downloader does not count its requests as Scrapy's own, they take a place like any other request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from twisted.internet.defer import CancelledError

from scrapy_rep.scrapy_internals.download_slots import make_way
from scrapy_rep.scrapy_internals.fallbacks import tell_without


class UncountedDownloads:
    """While such a request is under way, the downloader's own check of its limit leaves it out."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._requests: set[Request] = set()

    @contextmanager
    def uncounted(self, request: Request) -> Iterator[None]:
        """For this long the request takes no place."""
        downloader: Any = self._downloader
        self._requests.add(request)
        # Raising `total_concurrency` instead would be wrong for a moment whenever a request ends, and would have to
        # share that number with everybody else who sets it.
        if _counts_as_scrapys(downloader):
            downloader.needs_backout = self._needs_backout
        else:
            tell_without(self._crawler, "Downloader.needs_backout")
        try:
            yield
        finally:
            self._requests.discard(request)
            if not self._requests:
                vars(downloader).pop("needs_backout", None)

    @contextmanager
    def for_robots_txt(self, request: Request) -> Iterator[None]:
        """The same for a robots.txt request; one that is cancelled holds up nothing in its download slot."""
        with self.uncounted(request):
            try:
                yield
            except (asyncio.CancelledError, CancelledError):
                make_way(self._crawler, request)
                raise

    def _needs_backout(self) -> bool:
        total, active = self._downloader.total_concurrency, self._downloader.active
        # A total concurrency of 0 means no limit.
        return 0 < total <= len(active) and total <= len(active) - len(self._requests & active)

    @property
    def _downloader(self) -> Downloader:
        return self._crawler.engine.downloader


def _counts_as_scrapys(downloader: Any) -> bool:
    return getattr(type(downloader), "needs_backout", None) is getattr(Downloader, "needs_backout", ...) and all(
        hasattr(downloader, name) for name in ("active", "total_concurrency")
    )
