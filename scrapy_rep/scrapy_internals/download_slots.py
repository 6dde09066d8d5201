"""All that touches Scrapy's download slots (`Downloader.slots`): whether a slot has room for another page, which slots
the queue serves first, the delay between requests, and whether a robots.txt request has left its slot's queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.utils.asyncio import call_later

from scrapy_rep.scrapy_internals.compat import slot_clock
from scrapy_rep.scrapy_internals.fallbacks import tell_without

if TYPE_CHECKING:
    from scrapy.core.downloader import Slot

NEW = 10**6  # more downloads than a slot can have
_DELAY_NEEDS = ("delay", "concurrency", "lastseen")


class DownloadPlaces:
    """The slots that requests at the scheduler's door will need.

    Scrapy's `DownloaderAwarePriorityQueue` hands out requests of the slots with the fewest downloads first. A slot with
    requests that wait for a robots.txt has none, so it counts as full here: else the queue would hand out requests to
    dead origins before all others.
    """

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler`: open."""
        self._downloader: Any = crawler.engine.downloader
        self.place_of = getattr(self._downloader, "get_slot_key", lambda _request: "")
        """The key of a request's slot."""
        self._full = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self._waiting: Counter[str] = Counter()
        self._queues: list[Any] = []
        self._are_new_last = False
        if not hasattr(self._downloader, "slots"):
            return
        queues = (getattr(scheduler, "mqs", None), getattr(scheduler, "dqs", None))
        for queue in (queue for queue in queues if isinstance(queue, DownloaderAwarePriorityQueue)):
            interface: Any = getattr(queue, "_downloader_interface", None)
            if hasattr(interface, "stats"):
                interface.stats = self._busy
                self._queues.append(queue)
            else:
                tell_without(crawler, "DownloaderAwarePriorityQueue._downloader_interface")

    def begin_to_wait(self, request: Request) -> None:
        self._waiting[self.place_of(request)] += 1

    def end_to_wait(self, request: Request) -> None:
        key = self.place_of(request)
        self._waiting[key] -= 1
        if not self._waiting[key]:
            del self._waiting[key]

    def is_next_of_use(self, *, has_room: bool) -> bool:
        """Whether the queue's next request could go on, or begin a fetch, for which there must be room (`has_room`).

        Without room, the queue hands out requests to sites that have been asked before, before all others.
        """
        self._are_new_last = not has_room
        if has_room:
            return True
        slots, waiting = self._downloader.slots if self._queues else (), self._waiting
        return any(key in queue.pqueues and key not in waiting for queue in self._queues for key in slots)

    def has_room(self, place: str, pages: Container[Request]) -> bool:
        """Whether the slot has fewer pages than it downloads at a time. True if nobody can tell."""
        slot = getattr(self._downloader, "slots", {}).get(place)
        active, concurrency = getattr(slot, "active", ()), getattr(slot, "concurrency", 1)
        return len(active) < concurrency or sum(other in pages for other in active) < concurrency

    def _busy(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """The number of downloads of each slot; and if requests to it wait, more than it can have."""
        slots, waiting, full = self._downloader.slots, self._waiting, self._full
        of_new = NEW if self._are_new_last else 0
        # The queue asks for all its slots each time, so this costs as much as all the rest of a crawl of many sites.
        return [
            ((len(slots[key].active) if key in slots else of_new) + (full + waiting[key] if key in waiting else 0), key)
            for key in possible_slots
        ]


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
        if slot is not None and all(hasattr(slot, name) for name in _DELAY_NEEDS):
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
        if not isinstance(slot.transferring, _Transferring):
            slot.transferring = _Transferring(slot.transferring)
        slot.transferring.uncounted.add(request)
        call_later(0, process_queue, slot)  # once the other cancelled fetches have left the queue


class _Transferring(set[Request]):
    """What a download slot has on the wire. Its number, which the slot compares with its limit, leaves some out.

    Raising the slot's limit instead would let one request too many through when such a request ends.
    """

    def __init__(self, requests: Iterable[Request]) -> None:
        super().__init__(requests)
        self.uncounted: WeakSet[Request] = WeakSet()

    def __len__(self) -> int:
        return sum(request not in self.uncounted for request in self)
