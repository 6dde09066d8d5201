"""Requests in Scrapy's downloader that take no place among CONCURRENT_REQUESTS: those for a robots.txt, and those that
wait for one inside it.

Where the downloader does not count its requests as Scrapy's own, they take a place like any other request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later
from twisted.internet.defer import CancelledError

from scrapy_rep.scrapy_internals.fallbacks import tell_without


class UncountedDownloads:
    """While any is under way, the downloader's own check of its limit leaves them out."""

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
    def fetch(self, request: Request) -> Iterator[None]:
        """The same for a robots.txt request; one that is cancelled holds up nothing in its download slot."""
        with self.uncounted(request):
            try:
                yield
            except (asyncio.CancelledError, CancelledError):
                self._make_way(request)
                raise

    def is_on_wire(self, request: Request) -> bool:
        """Whether a download handler is at work on it, so that it no longer waits in its download slot's queue."""
        slots = getattr(self._downloader, "slots", None)
        # Without slots there is no queue to wait in.
        return not slots or any(request in getattr(slot, "transferring", (request,)) for slot in slots.values())

    def _needs_backout(self) -> bool:
        total, active = self._downloader.total_concurrency, self._downloader.active
        # A total concurrency of 0 means no limit.
        return 0 < total <= len(active) and total <= len(active) - len(self._requests & active)

    def _make_way(self, request: Request) -> None:
        """In its slot's queue it would still be sent; on the wire it would hold up the requests behind it."""
        slot: Any = getattr(self._downloader, "slots", {}).get(request.meta.get("download_slot"))
        if slot is None:
            return
        process_queue = getattr(self._downloader, "_process_queue", None)
        if process_queue is None or not hasattr(slot, "queue") or not hasattr(slot, "transferring"):
            tell_without(self._crawler, "Downloader._process_queue")
            return
        for queued in [queued for queued in slot.queue if queued[0] is request]:
            slot.queue.remove(queued)
        if request in slot.transferring:
            if not isinstance(slot.transferring, _Transferring):
                slot.transferring = _Transferring(slot.transferring)
            slot.transferring.uncounted.add(request)
            call_later(0, process_queue, slot)  # once the other cancelled fetches have left the queue

    @property
    def _downloader(self) -> Downloader:
        return self._crawler.engine.downloader


class _Transferring(set[Request]):
    """What a download slot has on the wire. Its number, which the slot compares with its limit, leaves some out.

    Raising the slot's limit instead would let one request too many through where one of those ends.
    """

    def __init__(self, requests: Iterable[Request]) -> None:
        super().__init__(requests)
        self.uncounted: WeakSet[Request] = WeakSet()

    def __len__(self) -> int:
        return sum(request not in self.uncounted for request in self)


def _counts_as_scrapys(downloader: Any) -> bool:
    return getattr(type(downloader), "needs_backout", None) is getattr(Downloader, "needs_backout", ...) and all(
        hasattr(downloader, name) for name in ("active", "total_concurrency")
    )
