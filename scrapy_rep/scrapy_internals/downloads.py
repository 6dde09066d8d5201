"""Scrapy's downloader: requests that do not count in it, the delays of its slots, and removing a request from its slot.

`scheduler_queues.py` reads the slots, too, to choose the next request.
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
from scrapy_rep.scrapy_internals.fallbacks import warn_missing

if TYPE_CHECKING:
    from scrapy.core.downloader import Slot

_COUNTING_NEEDS = ("active", "total_concurrency")
_DELAY_NEEDS = ("delay", "concurrency", "lastseen")
_PACE_META = ("download_slot", "throttling_scopes")  # Scrapy's throttler, not released yet, has the second one
MAX_SLOTS = 10_000  # slots whose delay is remembered; Scrapy itself drops a slot after a minute without requests


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


class MinimumDelays:
    """The minimum delay of each download slot: the longest minimum of all origins that share the slot."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._minimums: LocalCache[str, tuple[Slot, float]] = LocalCache(limit=MAX_SLOTS)

    def require(self, request: Request, delay: float) -> None:
        """Make the request's slot leave at least `delay` seconds between its requests.

        The slot then sends one request at a time, and the delay starts when that request has been answered. If the
        delay started earlier, a slow request and the next, fast one could reach the server with less time between them.
        """
        key = request.meta.get("download_slot", "")
        known, least = self._minimums.get(key, (None, 0.0))
        slot = self._slot(key) if known is not None or delay else None
        if slot is None:
            return
        if known is slot:
            delay = max(delay, least)
        elif delay and slot.lastseen:
            # The slot's last request, usually the one for robots.txt, has been answered by now.
            slot.lastseen = slot_clock()
        if delay:
            self._minimums[key] = slot, delay
            _raise_delay(slot, delay)

    def restart_delay(self, request: Request) -> None:
        """Start the delay of the request's slot now, if the slot has a minimum."""
        slot, delay = self._minimums.get(request.meta.get("download_slot", ""), (None, 0.0))
        if slot is not None:
            slot.lastseen = slot_clock()
            _raise_delay(slot, delay)

    def _slot(self, key: str) -> Slot | None:
        slot: Slot | None = getattr(self._crawler.engine.downloader, "slots", {}).get(key)
        if slot is not None and all(hasattr(slot, name) for name in _DELAY_NEEDS):
            return slot
        warn_missing(self._crawler, "Downloader.slots")
        return None


def _raise_delay(slot: Slot, delay: float) -> None:
    """Raise the slot's delay to at least `delay`. A longer delay, set by the user or by AutoThrottle, stays."""
    slot.concurrency = 1
    has_jitter = hasattr(slot, "jitter")  # before Scrapy 2.19: `randomize_delay`, which varies the delay by 50 %
    jitter = slot.jitter if has_jitter else 0.5 * bool(getattr(slot, "randomize_delay", False))
    if slot.delay * (1 - jitter) < delay:
        slot.delay = max(slot.delay, delay)
        if has_jitter:
            slot.jitter = 0.0
        else:
            slot.randomize_delay = False


def pace_meta(request: Request) -> dict[str, Any]:
    """Return the request meta that chooses with which requests the request shares limits and delays."""
    return {key: request.meta[key] for key in _PACE_META if key in request.meta}


def remove_from_downloader(crawler: Crawler, request: Request) -> None:
    """Remove a cancelled or late request from its slot, so that it is not sent, and the next request can be sent."""
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
