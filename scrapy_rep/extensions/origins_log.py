"""What the log says about origins, and at the end about the whole crawl; and the stats of origins.

- OutageLog: each of the first WARNED_OUTAGES outages is logged as a WARNING, and its end at INFO. Others are logged at
  DEBUG. The first challenge is explained in a WARNING. If requests were refused because of outages, a WARNING at the
  end of the crawl has their number, and names the sites with most of them.
- OriginsLog: origins without rules, those with too long a robots.txt, and the totals.
- NothingCrawled: a WARNING at the end of a crawl whose start requests were all refused, with advice.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.exceptions import explanation
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol import words
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.status_policy import MARKUP
from scrapy_rep.protocol.words import Basis, OriginKind, VerdictReason, counted
from scrapy_rep.settings import MAX_BODY, RepSettings
from scrapy_rep.signals import request_waited, robots_known

# What exempts requests from robots.txt -> the stat that counts them.
EXEMPT_BY = {"dont_obey_robotstxt": "rep/exempt/dont_obey_robotstxt", "REP_EXEMPT": "rep/exempt/setting"}
MAX_CAUSES = 5  # causes in the log line for each kind of origin


class OriginsLog:
    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        self._log = logger_of(crawler)
        self._stats = crawler.stats
        self._settings = settings
        self._refusals = gate.refusals
        self._known: LocalCache[Origin, tuple[OriginKind, str, str, str]] = LocalCache(limit=settings.memory_origins)
        """Origin -> the kind, cause and stats of its last result, which is the only one that counts."""
        self._origins: Counter[tuple[OriginKind, str]] = Counter()
        """The number of origins by kind and cause."""
        self._waited = 0
        self._has_named_page = False
        """Whether a robots.txt that is a page of HTML has been logged at INFO."""
        self._has_warned_of_length = False
        crawler.signals.connect(self._robots_known, signal=robots_known)
        crawler.signals.connect(self._request_waited, signal=request_waited)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    def _robots_known(self, origin: Origin, info: OriginInfo) -> None:
        is_truncated = info.robots is not None and info.robots.truncated
        before = self._known.get(origin)
        now = info.kind, info.cause, info.stat, "rep/truncated" if is_truncated else ""
        if before == now:
            return
        self._known[origin] = now
        for result, change in ((before, -1), (now, 1)):
            if result is not None:
                kind, cause, *stats = result
                self._origins[kind, cause] += change
                for stat in filter(None, stats):
                    self._stats.inc_value(stat, change)
        if is_truncated and not self._has_warned_of_length:
            self._has_warned_of_length = True
            self._log.warning(
                "%(url)s is longer than %(limit)s bytes (REP_BODY_LIMIT). The rules beyond are not read, so pages that"
                " they forbid may be fetched (RFC 9309 2.5). REP_BODY_LIMIT = %(more)s reads ten times as much. The"
                " stat rep/truncated counts such files",
                {
                    "url": info.address,
                    "limit": f"{self._settings.body_limit:,}",
                    "more": f"{min(10 * self._settings.body_limit, MAX_BODY):_}",
                },
            )
        if info.kind is OriginKind.WITHOUT_RULES:
            is_first_page = info.sign == MARKUP and not self._has_named_page
            self._has_named_page |= is_first_page
            self._log.log(
                logging.INFO if is_first_page else logging.DEBUG,
                "%(url)s: %(why)s, so everything is allowed",
                {"url": info.address, "why": printable(info.why_no_rules)},
            )

    def _request_waited(self) -> None:
        self._waited += 1

    def _closed(self) -> None:
        kinds = ", ".join(self._kinds()) or "none was needed"
        self._log.info("robots.txt of %s: %s", counted(self._origins.total(), "origin"), kinds)
        still_waiting = self._stats.get_value("rep/waited", 0) - self._waited
        if still_waiting > 0:
            self._log.info("%s still waited for robots.txt when the crawl stopped", counted(still_waiting, "request"))
        exempt = {by: self._stats.get_value(stat, 0) for by, stat in EXEMPT_BY.items()}
        if any(exempt.values()):
            by = ", ".join(f"{number:,} by {by}" for by, number in exempt.items() if number)
            self._log.info("Exempt requests, which were sent without a look at robots.txt: %s", by)
        counts = self._refusals.counts
        numbers: Counter[str] = Counter()
        for reason, row in words.REASON_WORDS.items():
            numbers[row.counted] += counts[reason]
        by = ", ".join(f"{number:,} {by}" for by, number in numbers.items() if number)
        self._log.info(
            "Requests that would be refused (REP_DRY_RUN): %s" if self._settings.dry_run else "Refused requests: %s",
            f"{counts.total():,} ({by})" if by else "0",
        )
        if by:
            self._log.info("Most frequent reasons for refusal: %s. %s", self._refusals.largest(), self._refusals.advice)

    def _kinds(self) -> Iterator[str]:
        """Yield a text for each kind of origin, such as `6 without rules (4 x HTTP 404, 2 x a page of HTML)`."""
        for kind in OriginKind:
            causes = +Counter({cause: number for (of, cause), number in self._origins.items() if of is kind})
            named = sorted((cause for cause in causes if cause), key=lambda cause: (-causes[cause], cause))
            texts = [f"{causes[cause]:,} x {cause}" for cause in named[:MAX_CAUSES]]
            if len(named) > MAX_CAUSES:
                texts.append(f"{sum(causes[cause] for cause in named[MAX_CAUSES:]):,} x others")
            if causes:
                yield f"{causes.total():,} {kind.value}" + (f" ({', '.join(texts)})" if texts else "")


WARNED_OUTAGES = 10


class OutageLog:
    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        self._log = logger_of(crawler)
        self._is_dry_run = settings.dry_run
        self._wait = settings.unreachable_wait
        self._timeout = settings.fetch_timeout
        self._logged: LocalCache[Origin, bool | None] = LocalCache(limit=settings.memory_origins)
        """Origin -> whether its outage was logged as a WARNING; None if the outage is over."""
        self._outages = self._origins = 0
        self._refusals = gate.refusals
        self._has_explained_challenges = False
        crawler.signals.connect(self._known, signal=robots_known)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    def _known(self, origin: Origin, info: OriginInfo) -> None:
        was_warning = self._logged.get(origin)
        if info.failing_since is not None and was_warning is None:
            self._outages += 1
            self._origins += origin not in self._logged
            self._logged[origin] = is_warning = self._outages <= WARNED_OUTAGES
            level = logging.WARNING if is_warning else logging.DEBUG
            self._log_answer(level, "%s: %s. Requests to this site %s", info, self._meanwhile(info))
        elif info.failing_since is None and was_warning is not None:
            self._logged[origin] = None
            self._log_answer(logging.INFO if was_warning else logging.DEBUG, "%s: %s. It is reachable again", info)
        if info.kind is OriginKind.CHALLENGED and not self._has_explained_challenges:
            self._has_explained_challenges = True
            self._log.warning(words.CHALLENGE_ADVICE)

    def _log_answer(self, level: int, message: str, info: OriginInfo, *more: str) -> None:
        """Log a message that begins with the URL of robots.txt and its answer."""
        self._log.log(level, message, info.address, printable(info.answer.rstrip(".")), *more)

    def _meanwhile(self, info: OriginInfo) -> str:
        """Return what happens while robots.txt is unreachable, in words that follow "Requests to this site"."""
        if info.policy.basis is not Basis.NOTHING_ALLOWED:
            return words.OUTAGE_WORDS[info.policy.basis].requests
        refused = "would be refused without REP_DRY_RUN" if self._is_dry_run else "are refused"
        if info.pause is not None:
            return f"wait up to {self._wait:g} s (REP_UNREACHABLE_WAIT); then they {refused}"
        outage = info.entry.outage
        if outage is not None and outage.timed_out:
            return f"{refused}: it did not answer within REP_FETCH_TIMEOUT ({self._timeout:g} s)"
        seconds = outage.fetch_again_at - outage.failed_at if outage is not None else 0.0
        if info.status is not None and seconds > self._wait > 0:
            return f"{refused}: the next fetch is in {seconds:,.0f} s, beyond REP_UNREACHABLE_WAIT ({self._wait:g} s)"
        return f"{refused} (RFC 9309 2.3.1.4)"

    def _closed(self) -> None:
        refused = self._refusals.counts[VerdictReason.UNREACHABLE]
        if not refused:
            return
        self._log.warning(
            "%s %s because robots.txt was unreachable; %s had outages: %s",
            counted(refused, "request"),
            words.were_refused(refused, is_dry_run=self._is_dry_run),
            counted(self._origins, "origin"),
            self._refusals.largest(VerdictReason.UNREACHABLE),
        )
        if self._outages > WARNED_OUTAGES:
            self._log.warning(
                "Only the first %d outages were logged as warnings; %s at DEBUG",
                WARNED_OUTAGES,
                counted(self._outages - WARNED_OUTAGES, "other"),
            )


class NothingCrawled:
    def __init__(self, crawler: Crawler, _settings: RepSettings, gate: Gate) -> None:
        self._gate = gate
        self._log = logger_of(crawler)
        self._stat = crawler.stats.get_value
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    def _closed(self, reason: str) -> None:
        refusals = self._gate.refusals
        refused = refusals.counts.total() - self._stat("rep/dropped/early", 0)
        pages = self._stat("response_received_count", 0) - self._stat("robotstxt/response_count", 0)
        if reason != "finished" or pages > 0 or not 0 < refused >= self._gate.decided:
            return
        first = refusals.first
        self._log.warning(
            "Nothing was crawled: every start request was refused (%(refused)d). The first: %(why)s",
            {"refused": refused, "why": explanation(next(iter(first.values())))},
        )
        for advice in filter(None, [*(words.REASON_WORDS[reason].advice for reason in first), words.ADVICE]):
            self._log.warning(advice)
