"""Refuses forbidden requests before they enter the queue, if their robots.txt is known (REP_DROP_EARLY)."""

from __future__ import annotations

from typing import Any

from scrapy import Request, signals
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.exceptions import refusal
from scrapy_rep.extensions import Extension
from scrapy_rep.protocol.words import AccessResult
from scrapy_rep.signals import request_forbidden

MAX_REFUSED = 100_000  # refused requests that are remembered; about 20 MB


class DropEarly(Extension):
    """Refuses a forbidden request when it is scheduled. Scrapy does not call the request's errback then.

    Scrapy's duplicate filter does not know these requests. This class remembers them, and counts no duplicates.
    """

    def start(self) -> None:
        # The duplicate filter uses the same fingerprints.
        self._fingerprinter: Any = self._crawler.request_fingerprinter
        self._refused: LocalCache[bytes, None] = LocalCache(limit=MAX_REFUSED)
        self._crawler.signals.connect(self._forbidden, signal=request_forbidden)
        self._crawler.signals.connect(self._scheduled, signal=signals.request_scheduled)

    def _scheduled(self, request: Request) -> None:
        """Raise ForbiddenByRobots for a forbidden request. It is an IgnoreRequest, so Scrapy drops the request."""
        policy = self._gate.peek(request)
        # An outage may end while the request is in the queue.
        if policy is None or policy.access is AccessResult.UNREACHABLE:
            return
        verdict = self._gate.judge(request, policy)
        if not verdict.allowed:
            if request.dont_filter or self._fingerprinter.fingerprint(request) not in self._refused:
                self._stats.inc_value("rep/dropped/early")
                self._gate.refusals.report(request, verdict)
            raise refusal(verdict)

    def _forbidden(self, request: Request) -> None:
        self._refused[self._fingerprinter.fingerprint(request)] = None
