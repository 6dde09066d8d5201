"""Scrapy's download slots, `Downloader.slots`: their delays, where a Crawl-delay takes effect, and their queues.

`scheduler_queues.py` gets the slots from here (`slots_of`), to choose the next request.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.log import logger_of
from scrapy_rep.scrapy_internals import warn_missing
from scrapy_rep.scrapy_internals.compat import slot_clock

MAX_SLOTS = 10_000  # slots whose delay is remembered; Scrapy itself drops a slot after a minute without requests


def slots_of(crawler: Crawler) -> Mapping[str, Any] | None:
    """Return the downloader's slots by key; None if it has none. The mapping changes during the crawl."""
    # A later Scrapy has a throttler instead, and `slots` as a deprecated property.
    downloader: Any = crawler.engine.downloader
    return getattr(downloader, "slots", None) if "slots" in vars(downloader) else None


class MinimumDelays:
    """The minimum delay of each download slot: the longest minimum of all origins that share it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.minimums: LocalCache[str, tuple[Any, float]] = LocalCache(limit=MAX_SLOTS)
        """The key of each slot with a minimum -> the slot, and its minimum in seconds."""
        self._keys_of_hosts: LocalCache[str, str] = LocalCache(limit=MAX_SLOTS)
        self._has_warned = False

    def can_delay(self) -> bool:
        """Return False if no delay can be set."""
        slots = slots_of(self._crawler)
        can = slots is not None and all(_has_delay(slot) for slot in islice(slots.values(), 1))
        if not can:
            warn_missing(self._crawler, "Downloader.slots")
        return can

    def require(self, request: Request, delay: float) -> None:
        """Make the request's slot leave at least `delay` seconds between its requests, if it can.

        The slot then sends one request at a time, and the delay starts when that request has been answered. If it
        started when the request is sent, a slow request could reach the server shortly before the next one.
        """
        key = request.meta.get("download_slot", "")
        if delay:
            self._warn_of_several_slots(request, key)
        known, least = self.minimums.get(key, (None, 0.0))
        if known is None and not delay:
            return
        slot: Any = (slots_of(self._crawler) or {}).get(key)
        if not _has_delay(slot):
            warn_missing(self._crawler, "Downloader.slots")
            return
        if known is slot and delay <= least:
            delay = least
        elif delay and slot.lastseen:
            # The slot's last request, usually the one for robots.txt, has been answered by now.
            slot.lastseen = slot_clock()
        if delay:
            self.minimums[key] = slot, delay
            _raise_delay(slot, delay)

    def restart_delay(self, request: Request) -> None:
        """Start the delay of the request's slot now, if the slot has a minimum."""
        slot, delay = self.minimums.get(request.meta.get("download_slot", ""), (None, 0.0))
        if slot is not None:
            slot.lastseen = slot_clock()
            _raise_delay(slot, delay)
            slot.close()  # stop the timer that began with the shorter delay

    def _warn_of_several_slots(self, request: Request, key: str) -> None:
        """Log once if requests to one host are in several slots. After a redirect, a request may keep its old slot."""
        host = urlparse_cached(request).netloc
        if self._has_warned or "redirect_urls" in request.meta or self._keys_of_hosts.setdefault(host, key) == key:
            return
        self._has_warned = True
        logger_of(self._crawler).warning(
            "%s asks for a Crawl-delay, but its requests have different values of download_slot in their meta, for"
            " example one for each proxy. The delay holds within each download slot, not for the whole site",
            host,
        )


def _raise_delay(slot: Any, delay: float) -> None:
    """Raise the slot's delay to at least `delay`. A longer delay, set by the user or by AutoThrottle, stays."""
    slot.concurrency = 1
    has_jitter = hasattr(slot, "jitter")  # before Scrapy 2.19: `randomize_delay`, which varies the delay by 50 %
    jitter = slot.jitter if has_jitter else 0.5 * bool(getattr(slot, "randomize_delay", False))
    if slot.delay * (1 - jitter) < delay:
        slot.delay = max(slot.delay, delay)
        setattr(slot, "jitter" if has_jitter else "randomize_delay", 0)


def _has_delay(slot: object) -> bool:
    return all(hasattr(slot, name) for name in ("delay", "concurrency", "lastseen"))


def remove_from_queue(crawler: Crawler, request: Request) -> None:
    """Remove a cancelled request from the queue of its slot, so that it is not sent."""
    slot = (slots_of(crawler) or {}).get(request.meta.get("download_slot", ""))
    if slot is not None and not hasattr(slot, "queue"):
        warn_missing(crawler, "Slot.queue")
    elif slot is not None:
        for queued in [queued for queued in slot.queue if queued[0] is request]:
            slot.queue.remove(queued)
