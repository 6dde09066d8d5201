"""Requests that are known to be forbidden, dropped before they cost a place in the queue (REP_DROP_EARLY)."""

from __future__ import annotations

from scrapy import Request, signals
from scrapy.crawler import Crawler

from .exceptions import refusal
from .observers import Gate, Observer
from .protocol.access import AccessResult
from .settings import RepSettings


class DropEarly(Observer):
    """Scrapy calls no errback for what is dropped when it is scheduled."""

    def __init__(self, crawler: Crawler, gate: Gate) -> None:
        self._count = crawler.stats.inc_value
        self._gate = gate
        crawler.signals.connect(self._scheduled, signal=signals.request_scheduled)

    def _scheduled(self, request: Request) -> None:
        """Raises ForbiddenByRobots, an IgnoreRequest, which Scrapy takes for "do not schedule"."""
        standing = self._gate.known(request)
        # An outage may be over before the request's turn comes.
        if standing is None or standing.access is AccessResult.UNREACHABLE:
            return
        tokens = self._gate.tokens(request)
        if not standing.allows(request.url, tokens):
            reason = refusal(standing.verdict(request.url, tokens), standing.entry.cause)
            self._count("rep/dropped/early")
            self._gate.tell(reason, request)
            raise reason


def drop_early(crawler: Crawler, settings: RepSettings, gate: Gate) -> Observer | None:
    return DropEarly(crawler, gate) if settings.drop_early and not settings.shadow else None
