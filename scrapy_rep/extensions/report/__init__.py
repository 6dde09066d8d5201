"""The report at the end of a crawl (REP_REPORT): collects its data in bounded memory, and writes it."""

import json
import platform
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import accumulate, product
from typing import Any

from scrapy import Request, Spider

from scrapy_rep.extensions import Extension
from scrapy_rep.extensions.output_file import output_path, partial_path
from scrapy_rep.extensions.report.page import html_page
from scrapy_rep.gate import EXEMPT_BY
from scrapy_rep.meta import ROBOTS_TXT_REQUEST, USAGE_KEY
from scrapy_rep.origin_info import LastResult, OriginInfo, OriginKind
from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.refusals import MAX_RULE_ORIGINS
from scrapy_rep.settings import SETTINGS
from scrapy_rep.stats import NOT_JUDGED, USAGE
from scrapy_rep.storage import without_password
from scrapy_rep.top_k import TopK
from scrapy_rep.usage import PREFERENCE_WORDS
from scrapy_rep.usage.preferences import usage_in

MAX_ORIGINS = 5_000  # origins in the report; up to twice as many are kept in memory
MAX_OUTAGES = 5  # outages of one origin
WAITS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0)  # seconds: the upper bounds of the classes of waiting times


class WaitingTimes(Counter[float]):
    """A counter of requests by the seconds that they waited.

    Seconds are rounded to two significant digits and to a hundredth of a second, which bounds the memory. The error
    of a quantile is therefore at most 5 % or 5 ms.
    """

    longest = 0.0
    """The longest wait in seconds, not rounded."""

    def add(self, seconds: float) -> None:
        self.longest = max(self.longest, seconds)
        self[float(f"{round(seconds, 2):.2g}")] += 1

    def quantile(self, share: float) -> float:
        """Return the waiting time in seconds that this share of the requests did not exceed; 0 if no request waited."""
        seconds = sorted(self)
        requests = list(accumulate(self[each] for each in seconds))  # how many waited at most so long
        return min(seconds[bisect_left(requests, share * requests[-1])], self.longest) if requests else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the object `waited` of the report. Its last class, with `at_most` None, has no bound."""
        counts: Counter[int] = Counter()
        for seconds, requests in self.items():
            counts[bisect_left(WAITS, seconds)] += requests
        return {
            "requests": self.total(),
            "median": self.quantile(0.5),
            "nine_tenths": self.quantile(0.9),
            "longest": self.longest,
            "classes": [{"at_most": end, "count": counts[index]} for index, end in enumerate([*WAITS, None])],
        }


@dataclass(slots=True)
class OriginSeen:
    """The counts and outages of one origin."""

    result: dict[str, str] = field(default_factory=dict)
    """The result of the last fetch, as in the JSON lines: `final_url`, `kind`, `cause`, `access` and `answer`. Empty
    before the first fetch has ended."""
    fetched: int = 0
    """The number of pages that were fetched."""
    refused: int = 0
    waits: WaitingTimes = field(default_factory=WaitingTimes)
    crawl_delay: float = 0.0
    preferences: set[tuple[str, str]] = field(default_factory=set)
    """The purpose and preference of each of its pages, without duplicates."""
    outages: list[dict[str, Any]] = field(default_factory=list)
    """The first MAX_OUTAGES - 1 outages, and the last, as in the JSON lines. `ended` is None while an outage lasts."""

    def size(self) -> float:
        """Return how significant the origin is. The report lists the most significant origins first."""
        return self.refused + 10 * len(self.outages) + self.waits.longest + self.crawl_delay + self.fetched / 10

    def as_json(self, origin: Origin, now: float) -> dict[str, Any]:
        return {
            "type": "origin",
            "origin": shortened(str(origin)),
            "robots_url": shortened(origin.robots_url),
            **self.result,
            "fetched": self.fetched,
            "refused": self.refused,
            "waited": self.waits.total(),
            "waited_median": self.waits.quantile(0.5),
            "waited_longest": self.waits.longest,
            "crawl_delay": self.crawl_delay,
            "outage_seconds": sum((now if o["ended"] is None else o["ended"]) - o["began"] for o in self.outages),
            "outages": self.outages,
        }


class Report(Extension):
    """Counts events by listening to signals. Keeps details of the most significant origins and rules only."""

    def start(self) -> None:
        """Raises ValueError if the report cannot be written."""
        self._began = self._gate.now()
        self._path = output_path("REP_REPORT", str(self._settings.report), self._crawler, self._began)
        self._fetched = 0
        self._origins_stated: Counter[tuple[str, str]] = Counter()  # origins by purpose and preference
        self._waits = WaitingTimes()
        self._origins: TopK[Origin, OriginSeen] = TopK(MAX_ORIGINS, OriginSeen, OriginSeen.size)

    def robots_known(
        self, origin: Origin, info: OriginInfo, request: Request, before: LastResult | None, result: LastResult
    ) -> None:
        seen, kind, robots = self._origins[origin], result.kind.value, info.robots
        beyond = ", not read beyond REP_BODY_LIMIT" if robots is not None and robots.truncated else ""
        answer = shortened(info.last.reason.rstrip(".") + beyond)
        seen.result = {"final_url": shortened(info.last.url), "kind": kind, "cause": info.cause}
        seen.result |= {"access": info.last.access.value, "answer": answer}
        if robots is not None:
            seen.crawl_delay = robots.crawl_delay(self._gate.product_tokens(request)) or 0.0
        was_down = before is not None and bool(before.outage)
        if result.outage and not was_down:
            del seen.outages[MAX_OUTAGES - 1 :]
            seen.outages.append({"began": info.failing_since, "reason": answer, "ended": None, "ended_in": None})
        elif was_down and not result.outage and seen.outages:  # `TopK` may have dropped the outage
            seen.outages[-1].update(ended=self._gate.now(), ended_in=kind)

    def request_waited(self, request: Request, seconds: float) -> None:
        self._waits.add(seconds)
        if (seen := self._seen(request)) is not None:
            seen.waits.add(seconds)

    def request_forbidden(self, request: Request, verdict: Verdict) -> None:
        if (seen := self._seen(request)) is not None:
            seen.refused += 1
            if verdict.reason is VerdictReason.USAGE and not self._settings.dry_run:
                self._count_preferences(usage_in(verdict), seen)

    def response_received(self, request: Request) -> None:
        if ROBOTS_TXT_REQUEST in request.meta:
            return
        self._fetched += 1
        if (seen := self._seen(request)) is not None:
            seen.fetched += 1
            self._count_preferences(request.meta.get(USAGE_KEY) or {}, seen)

    def _count_preferences(self, preferences: Mapping[str, bool], seen: OriginSeen) -> None:
        stated = {(purpose, PREFERENCE_WORDS[preferences.get(purpose)]) for purpose in self._settings.purposes}
        self._origins_stated.update(stated - seen.preferences)
        seen.preferences |= stated

    def _seen(self, request: Request) -> OriginSeen | None:
        """Return the counts of the request's origin; None if no robots.txt applies, or if TopK dropped the counts."""
        origin = Origin.of(request.url)
        return self._origins.get(origin) if origin is not None else None

    def spider_closed(self, spider: Spider, reason: str) -> None:
        lines = list(self.lines(spider, reason))
        text = html_page(lines) if self._path.suffix == ".html" else "".join(json.dumps(line) + "\n" for line in lines)
        partial = partial_path(self._path)
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(self._path)
        except OSError as exc:
            partial.unlink(missing_ok=True)
            self._log.error("REP_REPORT: %s could not be written: %s", self._path, exc)
        else:
            self._log.info("REP_REPORT: written to %s", self._path)

    def lines(self, spider: Spider, reason: str) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects (docs/report.md): the `crawl`, then each `origin` and `refused`, the largest first."""
        now, origins, rules = self._gate.now(), self._origins.largest(), self._gate.refusals.by_rule.largest()
        known, refusals = self._gate.origins, self._gate.refusals.counts
        origins_by_kind, refused = +known.by_kind, refusals.total()
        # In a dry run, the pages that would have been refused are also counted as fetched.
        requests = max(self._fetched, refused) if self._settings.dry_run else self._fetched + refused
        yield {
            "type": "crawl",
            "spider": spider.name,
            "began": self._began,
            "ended": now,
            "finish_reason": reason,
            **self._configuration(),
            "requests": requests,
            "fetched": self._fetched,
            "refused": refused,
            "refused_by": {reason.value: number for reason, number in refusals.items()},
            "exempt": {by: self._stats.get_value(stat, 0) for by, stat in EXEMPT_BY.items()},
            "refused_not_listed": refused - sum(rule.pages for _, rule in rules),
            "pages_not_judged": self._stats.get_value(NOT_JUDGED, 0),
            "usage": self._usage(),
            "origins": origins_by_kind.total(),
            "origins_not_listed": origins_by_kind.total() - len(origins),
            "kinds": [
                {"kind": kind.value, "cause": cause, "origins": number}
                for kind in OriginKind
                for (of_kind, cause), number in origins_by_kind.most_common()
                if of_kind is kind
            ],
            "waited": self._waits.as_json(),
            "outages": known.outages,
            "outages_not_over": known.open_outages,
        }
        for origin, seen in origins:
            yield seen.as_json(origin, now)
        for (reason_of_rule, text), rule in rules:
            yield {
                "type": "refused",
                "reason": reason_of_rule.value,
                "text": text,
                "pages": rule.pages,
                "share": rule.pages / requests,
                "origins": min(len(rule.origins), MAX_RULE_ORIGINS),
                "more_origins": len(rule.origins) > MAX_RULE_ORIGINS,
                "examples": rule.examples,
            }

    def _usage(self) -> list[dict[str, Any]]:
        """Return an object for each purpose of the crawl and each preference, with its pages and origins."""
        return [
            {
                "purpose": purpose,
                "preference": preference,
                "pages": self._stats.get_value(USAGE.format(purpose, preference), 0),
                "origins": self._origins_stated[purpose, preference],
            }
            for purpose, preference in product(self._settings.purposes, PREFERENCE_WORDS.values())
        ]

    def _configuration(self) -> dict[str, Any]:
        user_agent = self._gate.user_agent
        settings = {name: self._crawler.settings.get(name, setting.default) for name, setting in SETTINGS.items()}
        packages = {name: version(name) for name in ("scrapy-rep", "Scrapy", "Twisted")}
        return {
            "dry_run": self._settings.dry_run,
            "product_tokens": list(user_agent.product_tokens),
            "product_token_source": user_agent.source,
            "status_policy": _shown(settings["REP_STATUS_POLICY"]),
            "crawl_delay_max": self._settings.crawl_delay_max,
            "settings": {
                name: _shown(settings[name])
                for name, setting in SETTINGS.items()
                if name != "REP_REPORT" and setting.check(settings[name]) != setting.check(setting.default)
            },
            "versions": {**packages, "Python": platform.python_version()},
        }


def _shown(value: Any) -> str:
    """Return a setting's value as text. The password and the query of an address are removed."""
    return without_password(value) if isinstance(value, str) else shortened(repr(value))
