"""Refuse forbidden requests before they enter the queue, if their robots.txt is known (REP_DROP_EARLY)."""

from __future__ import annotations

from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.exceptions import refusal
from scrapy_rep.gate import Gate
from scrapy_rep.protocol.words import AccessResult
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden

MAX_REFUSED = 100_000  # refused requests that are remembered; about 20 MB


class DropEarly:
    """Refuses a forbidden request when it is scheduled. Scrapy does not call the request's errback then.

    Scrapy's duplicate filter does not know these requests. This class remembers them, and counts no duplicates.
    """

    def __init__(self, crawler: Crawler, _settings: RepSettings, gate: Gate) -> None:
        self._count = crawler.stats.inc_value
        self._gate = gate
        # The duplicate filter uses the same fingerprints.
        self._fingerprinter: Any = crawler.request_fingerprinter
        self._refused: LocalCache[bytes, None] = LocalCache(limit=MAX_REFUSED)
        crawler.signals.connect(self._forbidden, signal=request_forbidden)
        crawler.signals.connect(self._scheduled, signal=signals.request_scheduled)

    def _scheduled(self, request: Request) -> None:
        """Raise ForbiddenByRobots for a forbidden request. It is an IgnoreRequest, so Scrapy drops the request."""
        policy = self._gate.peek(request)
        # An outage may end while the request is in the queue.
        if policy is None or policy.access is AccessResult.UNREACHABLE:
            return
        tokens = self._gate.product_tokens(request)
        verdict = self._gate.verdict(policy, request.url, tokens)
        if not verdict.allowed:
            if request.dont_filter or self._fingerprinter.fingerprint(request) not in self._refused:
                self._count("rep/dropped/early")
                self._gate.refusals.report(request, verdict)
            raise refusal(verdict)

    def _forbidden(self, request: Request) -> None:
        self._refused[self._fingerprinter.fingerprint(request)] = None
