"""Usage preferences for pages (REP_PURPOSES): stored in `response.meta`, counted and enforced (REP_PURPOSES_REFUSE)."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep.gate import Gate, Landing
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_forbidden
from scrapy_rep.usage.preferences import Purposes, usage_in
from scrapy_rep.usage.vocabulary import PREFERENCE_WORDS, USAGE_DIRECTIVES

META_KEY = "robots_usage"


class PageUsage:
    """Stores `response.meta["robots_usage"]`, a dict: category -> whether it is allowed. Unknown ones are left out."""

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        """Raises ValueError if the extra `usage` is not installed."""
        self._count = crawler.stats.inc_value
        self._purposes = Purposes.of(settings.purposes, settings.purposes_refuse)
        self._is_dry_run = settings.dry_run
        self._gate = gate
        # Verdicts are not stored in the request's meta, because redirects and retries copy the meta.
        self._verdicts: WeakKeyDictionary[Request, Verdict] = WeakKeyDictionary()
        gate.also_judge = self._purposes.judge
        gate.before_download.append(self._before_fetch)
        gate.after_download.append(self._after_fetch)
        crawler.signals.connect(self._forbidden, signal=request_forbidden)

    def _before_fetch(self, request: Request, verdict: Verdict) -> None:
        request.meta.pop(META_KEY, None)  # the spider may have copied another page's meta
        self._verdicts[request] = verdict

    def _after_fetch(self, request: Request, response: Response, landing: Landing | None) -> None:
        """Store and count the page's preferences. Raises ForbiddenByRobots if the page is refused."""
        # None if another middleware returned a response before this package saw the request.
        before = self._verdicts.pop(request, None)
        if landing is not None:
            verdict = self._gate.judge(landing.request, landing.policy)
        else:
            verdict = before or self._gate.judge(request, self._gate.peek(request))
        usage = usage_in(verdict)
        for directive in USAGE_DIRECTIVES:
            usage = usage.with_header(directive, response.headers.getlist(directive))
        verdict = self._purposes.judge_usage(verdict, usage)
        # In a dry run, the request may have been reported before it was fetched.
        if verdict.reason is VerdictReason.USAGE and (before is None or before.allowed):
            self._gate.refusals.refuse(request, verdict)
        request.meta[META_KEY] = dict(usage)
        self._count_page(usage)

    def _forbidden(self, request: Request, verdict: Verdict) -> None:
        request.meta.pop(META_KEY, None)
        if verdict.reason is VerdictReason.USAGE and not self._is_dry_run:
            self._count_page(usage_in(verdict))

    def _count_page(self, preferences: Mapping[str, bool]) -> None:
        for purpose in self._purposes.categories:
            self._count(f"rep/usage/{purpose}/{PREFERENCE_WORDS[preferences.get(purpose)]}")
