"""The origins of a crawl, each with its last result: for the log, the stats and the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from scrapy.utils.datatypes import LocalCache

from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.words import OriginKind


@dataclass(frozen=True, slots=True)
class LastResult:
    """The last result for an origin's robots.txt, which is the only one that counts."""

    kind: OriginKind
    cause: str
    """As in `OriginInfo.cause`."""
    stats: tuple[str, ...]
    """As in `OriginInfo.stats`."""
    outage: int | None
    """The number of the outage that goes on, counted from 1 in this crawl. 0 if the outage is over; None if there was
    none."""


class KnownOrigins:
    """Remembers as many origins as memory has room for (REP_MEMORY_OCTETS). Its numbers count all origins."""

    def __init__(self, limit: int) -> None:
        self._last: LocalCache[Origin, LastResult] = LocalCache(limit=limit)
        self.by_kind: Counter[tuple[OriginKind, str]] = Counter()
        """The number of origins by kind and cause."""
        self.outages = 0
        """The number of outages, of all origins."""
        self.open_outages = 0
        """The number of outages that go on."""
        self.with_outages = 0
        """The number of origins that had an outage."""

    def note(self, origin: Origin, info: OriginInfo) -> tuple[LastResult | None, LastResult]:
        """Remember what is known of the origin now. Return its result before, if there is one, and its result now."""
        before = self._last.get(origin)
        outage = before.outage if before is not None else None
        if info.failing_since is not None and not outage:
            self.with_outages += outage is None
            self.open_outages += 1
            self.outages += 1
            outage = self.outages
        elif info.failing_since is None and outage:
            self.open_outages -= 1
            outage = 0
        now = self._last[origin] = LastResult(info.kind, info.cause, info.stats, outage)
        self.by_kind[now.kind, now.cause] += 1
        if before is not None:
            self.by_kind[before.kind, before.cause] -= 1
        return before, now
