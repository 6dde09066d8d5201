"""All access to Scrapy's download slots, `Downloader.slots`: their delays, and taking a request out of a slot.

`scheduler_queues.py` gets the slots from here (`slots_of`), to choose the next request. A later Scrapy has a throttler
in place of download slots. A *scope* of the throttler takes the place of a slot.
"""
# ruff: noqa: SLF001 - the throttler has no public methods for jitter and for the time of the next request

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.log import logger_of
from scrapy_rep.scrapy_internals import warn_missing
from scrapy_rep.scrapy_internals.compat import slot_clock, throttler_of

MAX_SLOTS = 10_000  # slots whose delay is remembered; Scrapy itself drops a slot after a minute without requests


def slots_of(crawler: Crawler) -> Mapping[str, Any] | None:
    """Return the downloader's slots by key; None if it has none. The mapping changes during the crawl."""
    return getattr(crawler.engine.downloader, "slots", None)


class MinimumDelays:
    """The minimum delay of each download slot or scope: the longest minimum of all origins that share it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        throttler = throttler_of(crawler)
        self._slots: _Slots | _Scopes = _Slots(crawler) if throttler is None else _Scopes(throttler)
        self.minimums: LocalCache[str, tuple[object, float]] = LocalCache(limit=MAX_SLOTS)
        """The key of each slot or scope with a minimum -> the slot or scope, and its minimum in seconds."""
        self._keys_of_hosts: LocalCache[str, list[str]] = LocalCache(limit=MAX_SLOTS)
        self._has_warned = False

    def prepare(self, request: Request, delay: float) -> bool:
        """Return False if no delay can be set. Call this before requests to the site are sent.

        A throttler starts requests before they reach the downloader, so its delay is set here.
        """
        if isinstance(self._slots, _Slots):
            return self._slots.can_delay() or self._missing()
        return self.require(request, delay)

    def require(self, request: Request, delay: float) -> bool:
        """Make the request's slot leave at least `delay` seconds between its requests. Return False if it cannot.

        The slot then sends one request at a time, and the delay starts when that request has been answered. If the
        delay started earlier, a slow request and the next, fast one could reach the server with less time between them.
        """
        keys = self._slots.keys(request)
        if delay:
            self._warn_of_several_slots(request, keys)
        return all(self._require(key, delay) for key in keys)

    def _require(self, key: str, delay: float) -> bool:
        known, least = self.minimums.get(key, (None, 0.0))
        if known is None and not delay:
            return True
        slot = self._slots.get(key)
        if slot is None:
            return self._missing()
        if known is slot and delay <= least:
            delay = least
        elif delay and self._slots.was_used(slot):
            # The slot's last request, usually the one for robots.txt, has been answered by now.
            self._slots.restart(slot, delay)
        if delay:
            self.minimums[key] = slot, delay
            self._slots.raise_delay(slot, delay)
        return True

    def restart_delay(self, request: Request) -> None:
        """Start the delay of the request's slot now, if the slot has a minimum."""
        for key in self._slots.keys(request):
            slot, delay = self.minimums.get(key, (None, 0.0))
            if slot is not None:
                self._slots.restart(slot, delay)
                self._slots.raise_delay(slot, delay)

    def _missing(self) -> bool:
        warn_missing(self._crawler, "Downloader.slots")
        return False

    def _warn_of_several_slots(self, request: Request, keys: list[str]) -> None:
        """Log once if requests to one host are in several slots. After a redirect, a request may keep its old slot."""
        host = urlparse_cached(request).netloc
        if self._has_warned or "redirect_urls" in request.meta or self._keys_of_hosts.setdefault(host, keys) == keys:
            return
        self._has_warned = True
        logger_of(self._crawler).warning(
            "%s asks for a Crawl-delay, but its requests have different values of download_slot in their meta, for"
            " example one for each proxy. The delay holds within each download slot, not for the whole site",
            host,
        )


class _Slots:
    """The download slots, in Scrapy without a throttler."""

    _NEEDS = ("delay", "concurrency", "lastseen")

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    def can_delay(self) -> bool:
        slots = slots_of(self._crawler)
        return slots is not None and all(_has(slot, self._NEEDS) for slot in islice(slots.values(), 1))

    def keys(self, request: Request) -> list[str]:
        return [request.meta.get("download_slot", "")]

    def get(self, key: str) -> Any:
        slot = (slots_of(self._crawler) or {}).get(key)
        return slot if _has(slot, self._NEEDS) else None

    def was_used(self, slot: Any) -> bool:
        return bool(slot.lastseen)

    def restart(self, slot: Any, delay: float) -> None:  # noqa: ARG002 - as in _Scopes
        slot.lastseen = slot_clock()

    def raise_delay(self, slot: Any, delay: float) -> None:
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


class _Scopes:
    """The scopes of Scrapy's throttler."""

    _NEEDS = ("get_base_delay", "set_base_delay", "set_concurrency", "_jitter", "_last_seen", "_next_allowed_time")

    def __init__(self, throttler: Any) -> None:
        self._throttler = throttler

    def keys(self, request: Request) -> list[str]:
        keys: list[str] = self._throttler.get_applied_scopes(request)
        return keys

    def get(self, key: str) -> Any:
        scope = self._throttler.get_scope_manager(key)
        return scope if _has(scope, self._NEEDS) else None

    def was_used(self, scope: Any) -> bool:
        return scope._last_seen is not None

    def restart(self, scope: Any, delay: float) -> None:
        scope._next_allowed_time = time.monotonic() + max(delay, scope.get_base_delay())

    def raise_delay(self, scope: Any, delay: float) -> None:
        scope.set_concurrency(1)
        if scope.get_base_delay() * (1 - scope._jitter) < delay:
            scope._jitter = 0.0
            scope.set_base_delay(delay)  # the scope keeps a longer delay


def _has(holder: object, names: Iterable[str]) -> bool:
    return all(hasattr(holder, name) for name in names)


def remove_from_queue(crawler: Crawler, request: Request) -> None:
    """Remove a cancelled request from the queue of its slot, so that it is not sent."""
    if throttler_of(crawler) is not None:
        return  # a request that is cancelled leaves the throttler by itself
    slot = (slots_of(crawler) or {}).get(request.meta.get("download_slot", ""))
    if slot is not None and not hasattr(slot, "queue"):
        warn_missing(crawler, "Slot.queue")
    elif slot is not None:
        for queued in [queued for queued in slot.queue if queued[0] is request]:
            slot.queue.remove(queued)
