"""The refusal of a request: logs it in the words of `exceptions`, counts it, signals it, raises the exception."""

import logging
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from scrapy import Request
from scrapy.utils.url import strip_url

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.exceptions import explanation, refusal, refused_by
from scrapy_rep.protocol.foreign_text import MAX_RULE, shortened
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.protocol.words import counted
from scrapy_rep.scrapy_internals.engine_state import is_one_shot
from scrapy_rep.signals import request_forbidden, send
from scrapy_rep.stats import DROPPED, DRY_RUN, FORBIDDEN
from scrapy_rep.top_k import TopK

MAX_FIRST_REFUSALS = 10  # rules whose first refused request is logged at INFO
MAX_RULES = 500  # rules whose refused requests are counted; up to twice as many are kept in memory
MAX_RULE_ORIGINS = 100  # origins that are counted for one rule
MAX_EXAMPLES = 3  # refused URLs for one rule
MAX_RULES_NAMED = 3  # rules in the log line at the end of the crawl


@dataclass(slots=True)
class RefusedPages:
    """Pages that were refused by the same rule, or because of the same answer for robots.txt, on all origins."""

    first: str = ""
    """What refused the first of the pages, as `exceptions.refused_by` returns it."""
    pages: int = 0
    origins: set[int] = field(default_factory=set)
    """The hashes of the origins, up to MAX_RULE_ORIGINS + 1 of them."""
    examples: list[dict[str, Any]] = field(default_factory=list)
    """The first MAX_EXAMPLES pages, as in the report's JSON lines."""

    def __str__(self) -> str:
        others = len(self.origins) - 1
        if others <= 0:
            return f"{self.pages:,} x {self.first}"
        more = "at least " if others == MAX_RULE_ORIGINS else ""
        return f"{self.pages:,} x {self.first} or the same on {more}{counted(others, 'other origin')}"

    def add(self, request: Request, verdict: Verdict) -> None:
        self.first = self.first or refused_by(verdict)
        self.pages += 1
        if len(self.origins) <= MAX_RULE_ORIGINS:
            self.origins.add(hash(Origin.of(request.url)))
        if len(self.examples) < MAX_EXAMPLES:
            example = {
                "url": shortened(strip_url(request.url, strip_default_port=False, strip_fragment=False)),
                "robots_url": shortened(verdict.robots_url or ""),
                "final_url": shortened(verdict.final_url),
                "line": verdict.decided_by.line if verdict.decided_by is not None else None,
            }
            if example not in self.examples:
                self.examples.append(example)


class Refusals(Part):
    def __init__(self, crawl: Crawl) -> None:
        super().__init__(crawl)
        self.counts: Counter[VerdictReason] = Counter()
        """The number of refused requests for each reason. In a dry run, the number that would have been refused."""
        self.first: dict[VerdictReason, Verdict] = {}
        """The first verdict for each reason, in the order of the refusals."""
        self.by_rule: TopK[tuple[VerdictReason, str], RefusedPages] = TopK(MAX_RULES, RefusedPages, attrgetter("pages"))
        """Reason and rule -> the pages. Without a rule, the answer for robots.txt takes its place."""
        self._first_refusals: set[str] = set()

    def log_dry_run(self) -> None:
        """Log a WARNING at the start of a dry run."""
        if self._settings.dry_run:
            self._log.warning(
                "Dry run (REP_DRY_RUN): requests that robots.txt forbids are sent, and logged as 'Would be refused'"
            )

    def refuse(self, request: Request, verdict: Verdict) -> None:
        """Count, log and signal the refusal, and raise ForbiddenByRobots. In a dry run, the log says that the request
        would be refused, and nothing is raised."""
        self.counts[verdict.reason] += 1
        self.first.setdefault(verdict.reason, verdict)
        self._count(DRY_RUN.format("forbidden") if self._settings.dry_run else FORBIDDEN)
        self._count((DRY_RUN if self._settings.dry_run else DROPPED).format(verdict.reason.name.lower()))
        self.by_rule[verdict.reason, _rule_or_answer(verdict)].add(request, verdict)
        self._log.log(
            logging.INFO if self._is_shown(verdict) else logging.DEBUG,
            "Would be refused: %(reason)s: %(request)s" if self._settings.dry_run else "%(reason)s: %(request)s",
            {"reason": explanation(verdict), "request": request},
        )
        send(self._crawler, request_forbidden, request=request, verdict=verdict)
        if not self._settings.dry_run:
            raise refusal(verdict)

    def _is_shown(self, verdict: Verdict) -> bool:
        """Whether the refusal is logged at INFO.

        `scrapy shell`, `fetch`, `view`, `parse` and `check` log all refusals at INFO. A crawl logs the first refusal by
        each rule, for MAX_FIRST_REFUSALS rules, but none by an unreachable robots.txt: `OutageLog` has a WARNING for
        the site.
        """
        rule = refused_by(verdict)
        is_new = rule not in self._first_refusals and verdict.reason is not VerdictReason.UNREACHABLE
        if is_new and len(self._first_refusals) <= MAX_FIRST_REFUSALS:  # one more, so that the log says that it exists
            self._first_refusals.add(rule)
            if len(self._first_refusals) <= MAX_FIRST_REFUSALS:
                return True
            self._log.info("More than %d rules refuse pages. The others are DEBUG lines", MAX_FIRST_REFUSALS)
        return is_one_shot(self._crawler)

    def largest(self, *reasons: VerdictReason) -> str:
        """Return what refused most requests, as in `2 x https://example.com/robots.txt line 2 (Disallow: /x)`.

        `reasons`: only refusals for these reasons count; without an argument, all refusals.
        """
        texts = [str(pages) for (reason, _), pages in self.by_rule.largest() if not reasons or reason in reasons]
        return "; ".join(texts[:MAX_RULES_NAMED])


def _rule_or_answer(verdict: Verdict) -> str:
    """Return by what refusals are counted, on all origins: the rule, or the answer for robots.txt."""
    if verdict.decided_by is not None:
        return shortened(str(verdict.decided_by), MAX_RULE)
    # The text after a colon is cut: it may name the host.
    return shortened(f"{verdict.words}: {verdict.answer.partition(':')[0]}")
