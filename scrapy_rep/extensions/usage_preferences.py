"""What each page may be used for (REP_PURPOSES): stored with its response, counted, and refused if the crawl asks for
it."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep.exceptions import refusal
from scrapy_rep.extensions.bypassed import where_it_ended
from scrapy_rep.extensions.middleware_access import MiddlewareAccess
from scrapy_rep.protocol.robotstxt.preferences import CONTENT_USAGE, PREFERENCE_WORDS, Purposes, Usage
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.signals import request_forbidden

META_KEY = "robots_usage"


class UsagePreferences:
    """Puts the preferences into `response.meta["robots_usage"]`: a dict of category to bool, unknown ones left out."""

    def __init__(self, crawler: Crawler, purposes: Purposes, shadow: bool, middleware: MiddlewareAccess) -> None:
        """`shadow`: a dry run, in which nothing is refused."""
        self._count = crawler.stats.inc_value
        self._purposes = purposes
        self._shadow = shadow
        self._middleware = middleware
        # Not in the meta before the response is there: redirects and retries copy that.
        self._verdicts: WeakKeyDictionary[Request, Verdict] = WeakKeyDictionary()
        middleware.before_fetch.append(self._before_fetch)
        middleware.after_fetch.append(self._after_fetch)
        crawler.signals.connect(self._forbidden, signal=request_forbidden)

    def _before_fetch(self, request: Request, verdict: Verdict) -> None:
        request.meta.pop(META_KEY, None)  # of the response that the spider copied it from
        self._verdicts[request] = verdict

    def _after_fetch(self, request: Request, response: Response) -> None:
        before = self._verdicts.pop(request, None)
        verdict = self._verdict(request, response, before)
        usage = (verdict.usage or Usage()).with_header(response.headers.getlist(CONTENT_USAGE))
        verdict = verdict.with_usage(usage, self._purposes)
        # In a dry run, the request may have been reported before it was fetched.
        if verdict.reason is VerdictReason.USAGE and (before is None or before.allowed):
            self._middleware.report_forbidden(request, verdict)
            if not self._shadow:
                raise refusal(verdict)
        request.meta[META_KEY] = dict(usage)
        self._count_page(usage)

    def _verdict(self, request: Request, response: Response, before: Verdict | None) -> Verdict:
        """That on the page. If a handler follows redirects by itself, that is another one than was asked for, of which
        `Bypassed` has fetched the robots.txt by now.

        `before`: that on the request; None if another middleware had a response before this package saw the request.
        """
        target = where_it_ended(request, response)
        if target is None and before is not None:
            return before
        target = target or request
        policy = self._middleware.peek(target)
        return before if policy is None and before is not None else self._middleware.judged(target, policy)

    def _forbidden(self, request: Request, verdict: Verdict) -> None:
        request.meta.pop(META_KEY, None)
        if verdict.reason is VerdictReason.USAGE and not self._shadow:
            self._count_page(verdict.usage or {})

    def _count_page(self, preferences: Mapping[str, bool]) -> None:
        for purpose in self._purposes.categories:
            self._count(f"rep/usage/{purpose}/{PREFERENCE_WORDS[preferences.get(purpose)]}")
