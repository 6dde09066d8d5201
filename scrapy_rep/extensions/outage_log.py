"""The warning about an outage, when it begins; and the log line at its end.

- Each of the first WARNED_OUTAGES outages is logged as a WARNING, and its end at INFO. Others are logged at DEBUG.
- The first challenge is explained in a WARNING, and so is the first request for a signature (Web Bot Auth).
- If requests were refused because of outages, a WARNING at the end of the crawl has their number, and names one site
  for each of the three most frequent answers.
"""

import logging

from scrapy_rep.extensions import Extension
from scrapy_rep.origin_info import LastResult, OriginInfo, OriginKind
from scrapy_rep.protocol import words
from scrapy_rep.protocol.challenge import WEB_BOT_AUTH
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.lifecycle import Basis
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import counted

WARNED_OUTAGES = 10  # outages that are logged as warnings; later ones are DEBUG lines


class OutageLog(Extension):
    def robots_known(self, info: OriginInfo, before: LastResult | None, result: LastResult) -> None:
        before_outage = before.outage if before is not None else None
        if result.outage and not before_outage:
            level = logging.WARNING if result.outage <= WARNED_OUTAGES else logging.DEBUG
            self._log_answer(level, "%s: %s. Requests to this site %s", info, self._meanwhile(info))
        elif before_outage and not result.outage:
            level = logging.INFO if before_outage <= WARNED_OUTAGES else logging.DEBUG
            self._log_answer(level, "%s: %s. It is reachable again", info)
        advice = words.SIGNATURE_ADVICE if info.last.sign == WEB_BOT_AUTH else words.CHALLENGE_ADVICE
        if info.kind is OriginKind.CHALLENGED and self._is_first(advice):
            self._log.warning(advice)

    def _log_answer(self, level: int, message: str, info: OriginInfo, *more: str) -> None:
        """Log a message that begins with the URL of robots.txt and its answer."""
        self._log.log(level, message, info.address, printable(info.last.reason.rstrip(".")), *more)

    def _meanwhile(self, info: OriginInfo) -> str:
        """Return what happens while robots.txt is unreachable, in words that follow "Requests to this site"."""
        if info.policy.basis is not Basis.NOTHING_ALLOWED:
            return words.OUTAGE_WORDS[info.policy.basis.value].requests
        refused = "would be refused without REP_DRY_RUN" if self._settings.dry_run else "are refused"
        wait = self._settings.unreachable_wait
        if info.pause is not None:
            return f"wait up to {wait:g} s (REP_UNREACHABLE_WAIT); then they {refused}"
        last = info.last
        if last.timed_out:
            return f"{refused}: it did not answer within REP_FETCH_TIMEOUT ({self._settings.fetch_timeout:g} s)"
        seconds = info.fetch_again_at - last.ended_at
        if info.last.status is not None and not last.is_of_proxy and seconds > wait > 0:
            return f"{refused}: the next fetch begins in {seconds:,.0f} s, later than REP_UNREACHABLE_WAIT ({wait:g} s)"
        return f"{refused} (RFC 9309 2.3.1.4)"

    def spider_closed(self) -> None:
        refused, outages = self._gate.refusals.counts[VerdictReason.UNREACHABLE], self._gate.origins.outages
        if not refused:
            return
        self._log.warning(
            "%s %s because robots.txt was unreachable; %s had outages: %s",
            counted(refused, "request"),
            words.were_refused(refused, is_dry_run=self._settings.dry_run),
            counted(self._gate.origins.with_outages, "origin"),
            self._gate.refusals.largest(VerdictReason.UNREACHABLE),
        )
        if outages > WARNED_OUTAGES:
            others = counted(outages - WARNED_OUTAGES, "other")
            self._log.warning("Only the first %d outages were logged as warnings; %s at DEBUG", WARNED_OUTAGES, others)
