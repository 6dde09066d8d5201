"""The report on a crawl's robots.txt (REP_REPORT): gathered while it runs in bounded memory, written at its end."""

from __future__ import annotations

import json
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler

from scrapy_rep.extensions.middleware_access import MiddlewareAccess
from scrapy_rep.extensions.report.top_k import TopK
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden, request_waited, robots_available, robots_fetched

logger = logging.getLogger("scrapy_rep")

MAX_ORIGINS = 5_000  # that are remembered; about 1 KiB each
MAX_RULES = 5_000
NAMED = 100  # of each kind, in the report
MAX_OUTAGES = 5  # of one origin
MAX_TEXT = 300  # characters of a stranger's text
WAITS = (0.1, 1.0, 10.0, 30.0, 60.0, 120.0)  # seconds: the upper ends of the classes that waits are counted in


@dataclass(slots=True)
class Outage:
    """Seconds since the epoch."""

    began: float
    ended: float | None = None
    """None: not before the end of the crawl."""
    cause: str = ""
    ended_in: str | None = None
    """The access result."""


@dataclass(slots=True)
class OriginSeen:
    """What happened at one origin."""

    access: str = ""
    answer: str = ""
    refused: int = 0
    waited: int = 0
    """Requests."""
    waited_seconds: float = 0.0
    delay_asked: float = 0.0
    delay_obeyed: float = 0.0
    outages: list[Outage] = field(default_factory=list)

    @property
    def size(self) -> float:
        """How much there is to tell of it."""
        return self.refused + self.waited_seconds + 10 * len(self.outages) + self.delay_obeyed

    @property
    def open_outage(self) -> Outage | None:
        return self.outages[-1] if self.outages and self.outages[-1].ended is None else None


@dataclass(slots=True)
class Totals:
    """Of the whole crawl."""

    access: Counter[str] = field(default_factory=Counter)
    """Origins by what their robots.txt came to, last time."""
    refused: Counter[str] = field(default_factory=Counter)
    """Pages by what refused them: a rule, or the access result."""
    waited: int = 0
    waited_seconds: float = 0.0
    longest_wait: float = 0.0
    waits: list[int] = field(default_factory=lambda: [0] * (len(WAITS) + 1))
    outages: int = 0
    outages_open: int = 0


class Report:
    """What the gate tells, as counts and as the origins and rules of which there is most to tell."""

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: MiddlewareAccess) -> None:
        self._crawler = crawler
        self._settings = settings
        self._gate = gate
        self._began = gate.now()
        self._put_aside: Counter[str] = Counter()
        self.totals = Totals()
        self.origins: TopK[Origin, OriginSeen] = TopK(MAX_ORIGINS, OriginSeen, lambda seen: seen.size, self._fold)
        # By robots.txt's address, the rule's line and the rule; pages.
        self.rules: TopK[tuple[str, int, str], list[int]] = TopK(
            MAX_RULES, lambda: [0], lambda pages: pages[0], lambda _pages: None
        )
        for signal in (robots_fetched, robots_available):
            crawler.signals.connect(self.known, signal=signal)
        crawler.signals.connect(self.waited, signal=request_waited)
        crawler.signals.connect(self.refused, signal=request_forbidden)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

    # What the gate tells.

    def known(self, origin: Origin, info: OriginInfo, request: Request) -> None:
        now, seen = self._gate.now(), self.origins[origin]
        seen.access, seen.answer = info.access.value, info.answer[:MAX_TEXT].rstrip(".")
        if info.robots is not None:
            seen.delay_asked = info.robots.crawl_delay(self._gate.product_tokens(request)) or 0.0
            seen.delay_obeyed = min(seen.delay_asked, self._settings.crawl_delay_max)
        if info.access is AccessResult.UNREACHABLE:
            if seen.open_outage is None:
                self.totals.outages += 1
                since = now if info.failing_since is None else info.failing_since
                seen.outages[MAX_OUTAGES - 1 :] = []
                seen.outages.append(Outage(since, cause=seen.answer))
        elif (outage := seen.open_outage) is not None:
            outage.ended, outage.ended_in = now, info.access.value

    def waited(self, request: Request, seconds: float) -> None:
        origin = Origin.of(request.url)
        if origin is None:
            return
        seen, totals = self.origins[origin], self.totals
        seen.waited += 1
        seen.waited_seconds += seconds
        totals.waited += 1
        totals.waited_seconds += seconds
        totals.longest_wait = max(totals.longest_wait, seconds)
        totals.waits[bisect_left(WAITS, seconds)] += 1

    def refused(self, request: Request, verdict: Verdict) -> None:
        self.totals.refused["rule" if verdict.rule is not None else verdict.access.value] += 1
        origin = Origin.of(request.url)
        if origin is not None:
            self.origins[origin].refused += 1
        if verdict.rule is not None:
            rule = str(verdict.rule)[:MAX_TEXT]
            self.rules[verdict.robots_url or "", verdict.rule.line, rule][0] += 1

    def _fold(self, seen: OriginSeen) -> None:
        self._put_aside[seen.access] += 1
        self.totals.outages_open += seen.open_outage is not None

    # What is written.

    def _spider_opened(self) -> None:
        self._began = self._gate.now()

    def _spider_closed(self, spider: Spider, reason: str) -> None:
        began = datetime.fromtimestamp(self._began, timezone.utc).strftime("%Y-%m-%dT%H-%M-%S")
        path = Path(str(self._settings.report) % {"name": spider.name, "time": began})
        lines = list(self.lines(spider, reason))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._rendered(path, lines), encoding="utf-8")
        except OSError as exc:
            logger.error("REP_REPORT: %s could not be written: %s", path, exc)  # noqa: TRY400 - it says all
        else:
            logger.info("REP_REPORT: written to %s", path)

    @staticmethod
    def _rendered(path: Path, lines: list[dict[str, Any]]) -> str:
        if path.suffix == ".jsonl":
            return "".join(json.dumps(line) + "\n" for line in lines)
        from scrapy_rep.extensions.report.html import page  # noqa: PLC0415 - a crawl without such a report does without it

        return page(lines)

    def lines(self, spider: Spider, reason: str) -> Iterator[dict[str, Any]]:
        """Objects with a `type` each: one `crawl`, then `origin`s and `rule`s, the largest first."""
        origins, rules = self.origins.items(), self.rules.items()
        yield self._crawl(spider, reason, origins, [pages[0] for _rule, pages in rules])
        for origin, seen in origins[:NAMED]:
            yield {"type": "origin", "origin": str(origin), **asdict(seen)}
        for (robots_url, line, rule), pages in rules[:NAMED]:
            yield {"type": "rule", "robots_url": robots_url, "line": line, "rule": rule, "pages": pages[0]}

    def _crawl(
        self, spider: Spider, reason: str, origins: list[tuple[Origin, OriginSeen]], pages: list[int]
    ) -> dict[str, Any]:
        totals, settings = self.totals, self._settings
        access = self._put_aside + Counter(seen.access for _origin, seen in origins)
        refused = dict(totals.refused)
        return {
            "type": "crawl",
            "spider": spider.name,
            "began": self._began,
            "ended": self._gate.now(),
            "reason": reason,
            "shadow": settings.shadow,
            "crawl_delay_max": settings.crawl_delay_max,
            "origins": {access_result or "not known": count for access_result, count in access.items()},
            "refused": refused,
            "rules_not_named": {
                "rules": self.rules.put_aside + max(len(pages) - NAMED, 0),
                "pages": refused.get("rule", 0) - sum(pages[:NAMED]),
            },
            "origins_not_named": sum(access.values()) - min(len(origins), NAMED),
            "waited": {
                "requests": totals.waited,
                "seconds": totals.waited_seconds,
                "longest": totals.longest_wait,
                "at_most": [*WAITS, None],
                "counts": totals.waits,
            },
            "outages": {
                "began": totals.outages,
                "not_over": totals.outages_open + sum(seen.open_outage is not None for _origin, seen in origins),
            },
        }
