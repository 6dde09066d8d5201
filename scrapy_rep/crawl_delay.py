"""Crawl-delay, by way of Scrapy's download slots: the one file that touches how Scrapy spaces requests."""

from __future__ import annotations

import logging
from time import monotonic
from typing import Any, NamedTuple

from scrapy import Request, signals
from scrapy.core.downloader import Downloader, Slot
from scrapy.crawler import Crawler
from scrapy.http import Response

from .facts import Facts
from .log import printable
from .observers import Gate, Observer
from .protocol.access import Origin
from .settings import RepSettings

logger = logging.getLogger("scrapy_rep")

_SLOT_NEEDS = ("delay", "concurrency", "lastseen")


class _Held(NamedTuple):
    slot: Slot
    delay: float


class CrawlDelay(Observer):
    """What robots.txt asks for, and what is made of it."""

    def __init__(self, crawler: Crawler, most: float, gate: Gate) -> None:
        """`most`: seconds; 0 where no delay is obeyed, which is said once."""
        self._crawler = crawler
        self._most = most
        self._gate = gate
        self._has_hinted = False
        if most:
            # Late, so that whoever adjusts delays as well (AutoThrottle) has done so by then.
            crawler.signals.connect(self._listen, signal=signals.engine_started)
            self._slots = HeldSlots(crawler)

    def _listen(self) -> None:
        self._crawler.signals.connect(self._reached, signal=signals.request_reached_downloader)
        self._crawler.signals.connect(self._downloaded, signal=signals.response_downloaded)

    def introduced(self, origin: Origin, facts: Facts, cause: Request) -> None:  # noqa: ARG002 - an observer's
        asked = _asked_for(facts.robots, self._gate.tokens(cause))
        if not asked:
            return
        kind = "ignored" if not self._most else "capped" if asked > self._most else "obeyed"
        self._crawler.stats.inc_value(f"rep/crawl_delay/{kind}")
        if kind != "obeyed":
            self._hint(facts, asked)

    def _hint(self, facts: Facts, asked: float) -> None:
        if self._has_hinted or self._spacing() >= asked:
            return
        self._has_hinted = True
        logger.info(
            "%(url)s asks for a Crawl-delay of %(asked)g s, which is %(made)s (REP_CRAWL_DELAY_MAX = %(most)g);"
            " set REP_CRAWL_DELAY_MAX to the most seconds that you would wait. This is said once a crawl",
            {
                "url": printable(facts.robots_url),
                "asked": asked,
                "made": "capped" if self._most else "not obeyed",
                "most": self._most,
            },
        )

    def _spacing(self) -> float:
        """Seconds between requests to one slot by the user's own settings, at least."""
        settings = self._crawler.settings
        jitter = settings.getfloat("DOWNLOAD_DELAY_JITTER", 0.5 * settings.getbool("RANDOMIZE_DOWNLOAD_DELAY"))
        return settings.getfloat("DOWNLOAD_DELAY") * (1 - min(jitter, 1.0))

    def _reached(self, request: Request) -> None:
        """A request is about to be queued in its slot, which may be a new one: those without work are disposed of."""
        standing = self._gate.known(request)
        asked = 0.0 if standing is None else _asked_for(standing.robots, self._gate.tokens(request))
        self._slots.hold(request, min(asked, self._most))

    def _downloaded(self, response: Response, request: Request) -> None:  # noqa: ARG002 - the signal's
        self._slots.count_from_now(request)


def _asked_for(robots: Any, tokens: tuple[str, ...]) -> float:
    """Seconds; 0 where nothing is asked for."""
    return (robots.crawl_delay(tokens) or 0.0) if robots is not None else 0.0


class HeldSlots:
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


def crawl_delay(crawler: Crawler, settings: RepSettings, gate: Gate) -> Observer | None:
    return CrawlDelay(crawler, settings.crawl_delay_max, gate)
