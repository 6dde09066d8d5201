"""Scrapy's download slots, `Downloader.slots`: how busy a site is, setting a Crawl-delay, and their queues.

A site is the key of a slot: usually a host, which may have many origins.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from itertools import islice
from sys import maxsize
from typing import Any, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.log import logger_of
from scrapy_rep.scrapy_internals import warn_missing
from scrapy_rep.scrapy_internals.compat import slot_clock

H = TypeVar("H", bound=Hashable)

MAX_SLOTS = 10_000  # slots whose delay is remembered; Scrapy itself drops a slot after a minute without requests


def slots_of(crawler: Crawler) -> Mapping[str, Any] | None:
    """Return the downloader's slots by key; None if it has none. The mapping changes during the crawl."""
    # A later Scrapy has a throttler instead, and `slots` as a deprecated property.
    downloader: Any = crawler.engine.downloader
    return getattr(downloader, "slots", None) if "slots" in vars(downloader) else None


class Sites:
    """Which requests of the door the downloader has, how busy a site is, and whether there is room for it."""

    def __init__(self, crawler: Crawler) -> None:
        self._downloader: Any = crawler.engine.downloader
        slots = slots_of(crawler)
        self._slots: Mapping[str, Any] = {} if slots is None else slots
        self._key_of: Callable[[Request], str] = getattr(self._downloader, "get_slot_key", lambda _request: "")
        self._handed_out: dict[Request, str] = {}
        """The requests that the engine got from the door, and their sites. `look_at_downloads` removes those that have
        left the downloader."""
        self._all: set[Request] = set()
        """The same requests. Of two sets, Python finds the difference in a third of the time."""
        self._in_no_slot: set[Request] = set()
        """Those of them that have not been seen in their slot. Until then, a middleware may move them to another."""
        self._in_downloader: Counter[str] = Counter()
        """The number of these requests for each site."""

    def site_of(self, request: Request) -> str:
        """Return the request's site; empty if it is not known."""
        try:
            return self._key_of(request)
        except Exception:  # noqa: BLE001 - a project's own downloader; when it gets the request, the request fails
            return ""

    def hand_out(self, request: Request) -> None:
        """Count a request that the engine gets from the door."""
        if request not in self._handed_out:
            self._handed_out[request] = site = self.site_of(request)
            self._in_downloader[site] += 1
            self._all.add(request)
            self._in_no_slot.add(request)

    def is_in_downloader(self, request: Request) -> bool:
        """Whether the engine got the request from the door, and the request has not left the downloader."""
        return request in self._handed_out

    def look_at_downloads(self) -> None:
        """Find out which requests have left the downloader, and which ones a middleware has moved to another slot.
        Called before the next request is chosen."""
        active, slots = getattr(self._downloader, "active", ()), self._slots
        for request in self._all.difference(active):
            self._all.remove(request)
            self._in_no_slot.discard(request)
            count_down(self._in_downloader, self._handed_out.pop(request))
        for request in [*self._in_no_slot]:
            site = self._handed_out[request]
            slot = request.meta.get("download_slot", site)
            if slot in slots and request in slots[slot].active:
                self._in_no_slot.remove(request)
            if slot != site:
                self._handed_out[request] = slot
                self._in_downloader[slot] += 1
                count_down(self._in_downloader, site)

    @property
    def known(self) -> Collection[str]:
        """The sites that were used in the last minute or so."""
        return self._slots

    def load(self, site: str) -> int:
        """Return the site's downloads: the larger number of those in its slot, and of the requests that the engine got
        from the door. (The downloader takes requests later than the engine, so the slot may not have them yet.)"""
        load = self._in_downloader.get(site, 0)
        return max(load, len(self._slots[site].active)) if site in self._slots else load

    def has_room(self, site: str) -> bool:
        """Whether the downloader has room for one more request of the door to this site.

        It has room for one more than the site's slot sends at a time, so that the next request is ready when the slot
        is. True if there is no slot.
        """
        slot = self._slots.get(site)
        return self._in_downloader[site] <= getattr(slot, "concurrency", maxsize)


class MinimumDelays:
    """The minimum delay of each download slot: the longest of all origins whose requests have come to it."""

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


def count_down(counter: Counter[H], key: H) -> None:
    """Take 1 off. A key without a count leaves."""
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
