"""Scrapy's downloader and its slots (`Downloader.slots`): the delay between requests, a robots.txt request in a slot,
requests that do not count against CONCURRENT_REQUESTS, and whether the downloader takes another request.

One other file reads the slots: `scheduler_queues`, for the order of the scheduler's requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.scrapy_internals.compat import slot_clock
from scrapy_rep.scrapy_internals.fallbacks import tell_without

if TYPE_CHECKING:
    from scrapy.core.downloader import Slot

_COUNTING_NEEDS = ("active", "total_concurrency")
_DELAY_NEEDS = ("delay", "concurrency", "lastseen")
MAX_SLOTS = 10_000  # whose delay is remembered; Scrapy itself drops those without requests after a minute


class UncountedDownloads:
    """Requests that take no place: those for a robots.txt, and those that wait for a robots.txt in the downloader.

    Where the downloader does not count its requests as Scrapy's own, they take a place like any other request.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._requests: set[Request] = set()
        self._is_enough: Callable[[], bool] = bool

    @contextmanager
    def uncounted(self, request: Request) -> Iterator[None]:
        """For this long the downloader's own check of its limit leaves the request out."""
        self._requests.add(request)
        self._replace_check()
        try:
            yield
        finally:
            self._requests.discard(request)

    def back_out_when(self, is_enough: Callable[[], bool]) -> None:
        """From now on the engine takes no request out of the scheduler, either, while `is_enough` returns True. Without
        room in the downloader it is not called."""
        self._is_enough = is_enough
        self._replace_check()

    def _replace_check(self) -> None:
        downloader: Any = self._crawler.engine.downloader
        # Raising `total_concurrency` instead would be wrong for a moment whenever a request ends, and would have to
        # share that number with everybody else who sets it.
        is_scrapys = getattr(type(downloader), "needs_backout", None) is getattr(Downloader, "needs_backout", ...)
        if is_scrapys and all(hasattr(downloader, name) for name in _COUNTING_NEEDS):
            downloader.needs_backout = self._needs_backout
        else:
            tell_without(self._crawler, "Downloader.needs_backout")

    def _needs_backout(self) -> bool:
        downloader = self._crawler.engine.downloader
        total, active = downloader.total_concurrency, downloader.active
        # A total concurrency of 0 means no limit.
        is_full = 0 < total <= len(active) and total <= len(active) - len(self._requests & active)
        return is_full or self._is_enough()


class MinimumDelays:
    """The minimum delay of each download slot: the longest of the origins whose requests go through the slot."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._minimums: LocalCache[str, tuple[Slot, float]] = LocalCache(limit=MAX_SLOTS)

    def require(self, request: Request, delay: float) -> None:
        """From now on the request's slot leaves at least `delay` seconds between requests.

        It sends one at a time, and the delay begins when the last one is answered. Otherwise requests that travel for
        different times could arrive closer together.
        """
        key = request.meta.get("download_slot", "")
        known, least = self._minimums.get(key, (None, 0.0))
        slot = self._slot(key) if known is not None or delay else None
        if slot is None:
            return
        if known is slot:
            delay = max(delay, least)
        elif delay and slot.lastseen:
            # The slot has been used, usually for robots.txt, which is answered by now.
            slot.lastseen = slot_clock()
        if delay:
            self._minimums[key] = slot, delay
            _raise_delay(slot, delay)

    def count_from_now(self, request: Request) -> None:
        slot, delay = self._minimums.get(request.meta.get("download_slot", ""), (None, 0.0))
        if slot is not None:
            slot.lastseen = slot_clock()
            _raise_delay(slot, delay)

    def _slot(self, key: str) -> Slot | None:
        slot: Slot | None = getattr(self._crawler.engine.downloader, "slots", {}).get(key)
        if slot is not None and all(hasattr(slot, name) for name in _DELAY_NEEDS):
            return slot
        tell_without(self._crawler, "Downloader.slots")
        return None


def _raise_delay(slot: Slot, delay: float) -> None:
    """A longer delay, set by the user or AutoThrottle, stays."""
    slot.concurrency = 1
    has_jitter = hasattr(slot, "jitter")  # Scrapy 2.18 has `randomize_delay`, which varies by half
    jitter = slot.jitter if has_jitter else 0.5 * bool(getattr(slot, "randomize_delay", False))
    if slot.delay * (1 - jitter) < delay:
        slot.delay = max(slot.delay, delay)
        if has_jitter:
            slot.jitter = 0.0
        else:
            slot.randomize_delay = False


def is_on_wire(crawler: Crawler, request: Request) -> bool:
    """Whether a download handler is at work on it, so that it no longer waits in its slot's queue."""
    slots = getattr(crawler.engine.downloader, "slots", None)
    # Without slots there is no queue to wait in.
    return not slots or any(request in getattr(slot, "transferring", (request,)) for slot in slots.values())


def make_way(crawler: Crawler, request: Request) -> None:
    """Of a cancelled request. In its slot's queue it would still be sent; on the wire it would hold up the requests
    behind it."""
    downloader: Any = crawler.engine.downloader
    slot: Any = getattr(downloader, "slots", {}).get(request.meta.get("download_slot"))
    if slot is None:
        return
    process_queue = getattr(downloader, "_process_queue", None)
    if process_queue is None or not hasattr(slot, "queue") or not hasattr(slot, "transferring"):
        tell_without(crawler, "Downloader._process_queue")
        return
    for queued in [queued for queued in slot.queue if queued[0] is request]:
        slot.queue.remove(queued)
    if request in slot.transferring:
        slot.transferring = _Transferring(slot.transferring - {request})
        call_later(0, process_queue, slot)  # once the other cancelled fetches have left the queue


class _Transferring(set[Request]):
    """What a slot has on the wire, and a request may leave early: Scrapy removes it again when it has ended."""

    def remove(self, request: Request) -> None:
        self.discard(request)
