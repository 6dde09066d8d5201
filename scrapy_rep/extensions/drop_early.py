"""Requests that are known to be forbidden, dropped before they cost a place in the queue (REP_DROP_EARLY)."""

from __future__ import annotations

from scrapy import Request, signals
from scrapy.crawler import Crawler

from scrapy_rep.exceptions import refusal
from scrapy_rep.observers import Gate, Observer
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.settings import RepSettings


class DropEarly(Observer):
    """Scrapy calls no errback for what is dropped when it is scheduled."""

    def __init__(self, crawler: Crawler, gate: Gate) -> None:
        self._count = crawler.stats.inc_value
        self._gate = gate
        crawler.signals.connect(self._scheduled, signal=signals.request_scheduled)

    def _scheduled(self, request: Request) -> None:
        """Raises ForbiddenByRobots, an IgnoreRequest, which Scrapy takes for "do not schedule"."""
        policy = self._gate.known(request)
        # An outage may be over before the request's turn comes.
        if policy is None or policy.access is AccessResult.UNREACHABLE:
            return
        tokens = self._gate.tokens(request)
        if not policy.allows(request.url, tokens):
            reason = refusal(policy.verdict(request.url, tokens), policy.entry.reason)
            self._count("rep/dropped/early")
            self._gate.tell(reason, request)
            raise reason


def drop_early(crawler: Crawler, settings: RepSettings, gate: Gate) -> Observer | None:
    return DropEarly(crawler, gate) if settings.drop_early and not settings.shadow else None
