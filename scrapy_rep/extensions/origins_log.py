"""Log lines and stats of origins: no rules, files that are too long; and the error that nothing was crawled.

`outage_log` logs outages.

The log has origins without rules, those with too long a robots.txt, and the totals. If all start requests of a crawl
were refused, an ERROR says so, and WARNINGs have advice.
"""

import logging
from collections import Counter

from scrapy_rep.exceptions import advice, explanation
from scrapy_rep.extensions import Extension
from scrapy_rep.gate import EXEMPT_BY
from scrapy_rep.origin_info import LastResult, OriginInfo, OriginKind
from scrapy_rep.protocol import words
from scrapy_rep.protocol.answer import AccessResult
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import counted, duration
from scrapy_rep.settings import MAX_BODY
from scrapy_rep.stats import RESPONSES, TRUNCATED

MAX_CAUSES = 5  # causes in the log line for each kind of origin


class OriginsLog(Extension):
    def start(self) -> None:
        self._replayed = 0
        """The number of robots.txt files that a cache of the crawl has replayed."""
        self._oldest: float | None = None
        """The age in seconds of the oldest of these files that have a Date; None if none has."""

    # When an attempt to find or fetch an origin's robots.txt has ended.

    def robots_known(self, info: OriginInfo, before: LastResult | None, result: LastResult, fetched: bool) -> None:
        if fetched and info.last.replayed and info.last.access is not AccessResult.UNREACHABLE:
            self._count_replay(info)
        if before is None or (before.cause, before.stats) != (result.cause, result.stats):
            for stat in before.stats if before is not None else ():  # only its last result counts
                self._count(stat, -1)
            for stat in result.stats:
                self._count(stat)
            if TRUNCATED in result.stats and self._is_first("too long"):
                self._warn_of_long_file(info)
            if info.kind is OriginKind.WITHOUT_RULES:
                self._log_no_rules(info)

    def _count_replay(self, info: OriginInfo) -> None:
        self._replayed += 1
        if info.last.caching.date is not None:
            self._oldest = max(self._oldest or 0.0, info.policy.at - info.last.caching.date)

    def _warn_of_long_file(self, info: OriginInfo) -> None:
        limit = self._settings.body_limit
        self._log.warning(
            "%s is longer than %s bytes (REP_BODY_LIMIT). Later rules are not read, so pages that they forbid may"
            " be fetched (RFC 9309 2.5). REP_BODY_LIMIT = %s reads ten times as much. The stat rep/truncated counts"
            " such files",
            *(info.address, f"{limit:,}", f"{min(10 * limit, MAX_BODY):_}"),
        )

    def _log_no_rules(self, info: OriginInfo) -> None:
        # Owners of such sites often mean the opposite.
        is_shown = info.cause in {words.A_PAGE, *words.ACCESS_DENIED} and self._is_first(info.cause)
        level, why = logging.INFO if is_shown else logging.DEBUG, printable(info.why_no_rules)
        self._log.log(level, "%s: %s, so everything is allowed", info.address, why)

    # At the end of the crawl.

    def spider_closed(self, reason: str) -> None:
        self._log_kinds()
        self._log_replays()
        self._log_exempt()
        self._log_refused()
        if reason == "finished" and not self._settings.dry_run:
            self._log_if_all_refused()

    def _log_kinds(self) -> None:
        """Log a text for each kind of origin, such as `6 without rules (4 x HTTP 404, 2 x a page of HTML)`."""
        by_kind, kinds = self._gate.origins.by_kind, []
        for kind in OriginKind:
            causes = +Counter({cause: number for (of, cause), number in by_kind.items() if of is kind})
            if causes:
                kinds.append(f"{causes.total():,} {kind.value}{_in_brackets(causes)}")
        self._log.info(
            "robots.txt of %s: %s", counted(by_kind.total(), "origin"), ", ".join(kinds) or "none was needed"
        )

    def _log_replays(self) -> None:
        if self._replayed:
            age = "of unknown age" if self._oldest is None else f"{duration(self._oldest)} old"
            files = counted(self._replayed, "robots.txt file")
            self._log.info("%s came from a cache of the crawl. The oldest is %s", files, age)

    def _log_exempt(self) -> None:
        stats = ((by, self._stats.get_value(stat)) for by, stat in EXEMPT_BY.items())
        if exempt := ", ".join(f"{number:,} by {by}" for by, number in stats if number):
            self._log.info("Exempt requests, which were sent without a look at robots.txt: %s", exempt)

    def _log_refused(self) -> None:
        refusals, numbers = self._gate.refusals, Counter[str]()
        for reason, row in words.REASON_WORDS.items():
            numbers[row.counted] += refusals.counts[VerdictReason(reason)]
        by = ", ".join(f"{number:,} {by}" for by, number in numbers.items() if number)
        self._log.info(
            "Requests that would be refused (REP_DRY_RUN): %s" if self._settings.dry_run else "Refused requests: %s",
            f"{refusals.counts.total():,} ({by})" if by else "0",
        )
        if by:
            details = "The report (REP_REPORT) has details" if self._settings.report else "For details, set REP_REPORT"
            self._log.info("Most frequent reasons for refusal: %s. %s", refusals.largest(), details)

    def _log_if_all_refused(self) -> None:
        """Log an ERROR if the crawl ends because all its start requests were refused."""
        refusals, refused = self._gate.refusals, self._gate.refusals.counts.total()
        pages = self._stats.get_value("response_received_count", 0) - self._stats.get_value(RESPONSES, 0)
        if pages <= 0 and 0 < refused >= self._gate.decided:
            self._log.error(
                "Nothing was crawled: every start request was refused (%d). The first: %s",
                *(refused, explanation(next(iter(refusals.first.values())))),
            )
            # To exempt a site that does not answer is no help.
            has_answer = any(verdict.error is None for verdict in refusals.first.values())
            for text in filter(None, [*map(advice, refusals.first.values()), words.ADVICE * has_answer]):
                self._log.warning(text)


def _in_brackets(causes: Counter[str]) -> str:
    """Return the causes in words, such as ` (4 x HTTP 404, 2 x others)`; empty if none has a name."""
    named = sorted(filter(None, causes), key=lambda cause: (-causes[cause], cause))[:MAX_CAUSES]
    texts = [f"{causes[cause]:,} x {cause}" for cause in named]
    others = causes.total() - sum(causes[cause] for cause in named)
    texts += [f"{others:,} x others"] if others else []
    return f" ({', '.join(texts)})" if named else ""
