"""Minimum delays between the requests of Scrapy's download slots."""

from __future__ import annotations

import logging
from time import monotonic
from typing import NamedTuple

from scrapy import Request
from scrapy.core.downloader import Downloader, Slot
from scrapy.crawler import Crawler

logger = logging.getLogger("scrapy_rep")

_SLOT_NEEDS = ("delay", "concurrency", "lastseen")


class _Held(NamedTuple):
    slot: Slot
    delay: float


class SlotDelays:
    """Download slots, each held to the longest delay that an origin asks for whose requests go through it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._held: dict[str, _Held] = {}
        self._has_warned = False

    def hold(self, request: Request, delay: float) -> None:
        """From now on the request's slot leaves so many seconds between requests, at least, for as long as it lives.

        One at a time, and counted from when the last one has its answer: only so no gap is shorter where they arrive,
        however long it took to get there.
        """
        key = request.meta.get(Downloader.DOWNLOAD_SLOT, "")
        held = self._held.get(key)
        if held is None and not delay:
            return
        slot = self._slot(key)
        if slot is None:
            return
        if held is not None and held.slot is slot:
            delay = max(delay, held.delay)
        elif delay and slot.lastseen:
            # Something went through it before, as a rule robots.txt itself: that has its answer by now.
            slot.lastseen = monotonic()
        if delay:
            self._held[key] = _Held(slot, delay)
            _raise(slot, delay)
        self._forget_the_disposed()

    def count_from_now(self, request: Request) -> None:
        held = self._held.get(request.meta.get(Downloader.DOWNLOAD_SLOT, ""))
        if held is not None:
            held.slot.lastseen = monotonic()
            _raise(held.slot, held.delay)

    def _slot(self, key: str) -> Slot | None:
        slot: Slot | None = getattr(self._crawler.engine.downloader, "slots", {}).get(key)
        if slot is not None and all(hasattr(slot, name) for name in _SLOT_NEEDS):
            return slot
        if not self._has_warned:
            self._has_warned = True
            logger.warning("REP_CRAWL_DELAY_MAX has no effect: the DOWNLOADER has no download slots as Scrapy's has")
        return None

    def _forget_the_disposed(self) -> None:
        slots = self._crawler.engine.downloader.slots
        if len(self._held) > 2 * len(slots) + 100:
            self._held = {key: held for key, held in self._held.items() if slots.get(key) is held.slot}


def _raise(slot: Slot, delay: float) -> None:
    """What the user set, or AutoThrottle, stays where it is more."""
    slot.concurrency = 1
    has_jitter = hasattr(slot, "jitter")  # Scrapy 2.18 has `randomize_delay`, which varies by half
    jitter = slot.jitter if has_jitter else 0.5 * bool(slot.randomize_delay)
    if slot.delay * (1 - jitter) < delay:
        slot.delay = max(slot.delay, delay)
        if has_jitter:
            slot.jitter = 0.0
        else:
            slot.randomize_delay = False
