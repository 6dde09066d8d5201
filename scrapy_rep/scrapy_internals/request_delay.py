"""Makes Scrapy's download slots leave a minimum delay between requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.scrapy_internals.compat import slot_clock
from scrapy_rep.scrapy_internals.fallbacks import tell_without

if TYPE_CHECKING:
    from scrapy.core.downloader import Slot

_SLOT_NEEDS = ("delay", "concurrency", "lastseen")


class _Minimum(NamedTuple):
    slot: Slot
    delay: float


class MinimumDelays:
    """The minimum delay of each download slot: the longest of the origins whose requests go through the slot."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._minimums: dict[str, _Minimum] = {}

    def require(self, request: Request, delay: float) -> None:
        """From now on the request's slot leaves at least `delay` seconds between requests.

        It sends one at a time, and the delay begins when the last one is answered. Otherwise requests that travel for
        different times could arrive closer together.
        """
        key = request.meta.get("download_slot", "")
        minimum = self._minimums.get(key)
        if minimum is None and not delay:
            return
        slot = self._slot(key)
        if slot is None:
            return
        if minimum is not None and minimum.slot is slot:
            delay = max(delay, minimum.delay)
        elif delay and slot.lastseen:
            # The slot has been used, usually for robots.txt, which is answered by now.
            slot.lastseen = slot_clock()
        if delay:
            self._minimums[key] = _Minimum(slot, delay)
            _raise_delay(slot, delay)
        self._forget_old_slots()

    def count_from_now(self, request: Request) -> None:
        minimum = self._minimums.get(request.meta.get("download_slot", ""))
        if minimum is not None:
            minimum.slot.lastseen = slot_clock()
            _raise_delay(minimum.slot, minimum.delay)

    def _slot(self, key: str) -> Slot | None:
        slot: Slot | None = getattr(self._crawler.engine.downloader, "slots", {}).get(key)
        if slot is not None and all(hasattr(slot, name) for name in _SLOT_NEEDS):
            return slot
        tell_without(self._crawler, "Downloader.slots")
        return None

    def _forget_old_slots(self) -> None:
        slots = self._crawler.engine.downloader.slots
        if len(self._minimums) > 2 * len(slots) + 100:
            self._minimums = {key: minimum for key, minimum in self._minimums.items() if slots.get(key) is minimum.slot}


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
