"""Pages that were fetched in spite of robots.txt (REP_BYPASSED): a browser or an API follows redirects by itself, and
only the response tells where they led."""

from __future__ import annotations

from collections.abc import Awaitable
from urllib.parse import urldefrag

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from scrapy_rep.exceptions import explanation, refusal
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.settings import RepSettings
from scrapy_rep.text import printable


class Bypassed:
    """Judges the URL of a response if it differs from the URL of the request."""

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate) -> None:
        self._stats = crawler.stats
        self._log = logger_of(crawler)
        self._drops = settings.bypassed == "drop"
        self._is_dry_run = settings.shadow
        self._gate = gate
        self._has_warned = False
        gate.after_fetch.append(self._look)

    def _look(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Raises ForbiddenByRobots for a page to drop, at once or when awaited."""
        if response.url == request.url or (target := where_it_ended(request, response)) is None:
            return None
        policy = self._gate.peek(target)
        if policy is None:
            return self._judge_later(target, request)
        self._judge(target, request, policy)
        return None

    async def _judge_later(self, target: Request, request: Request) -> None:
        try:
            policy = await self._gate.wait_for_policy(target)
        except IgnoreRequest:  # the crawl closes
            if self._drops and not self._is_dry_run:
                raise
            return
        if policy is not None:
            self._judge(target, request, policy)

    def _judge(self, target: Request, request: Request, policy: RobotsPolicy) -> None:
        verdict = policy.verdict(target.url, self._gate.product_tokens(target))
        if verdict.allowed:
            return
        self._stats.inc_value("rep/bypassed")
        if not self._has_warned:
            self._has_warned = True
            self._log.warning(
                "The download handler, or a service behind it, followed %(url)s to %(target)s. %(reason)s. This is said"
                " once a crawl; see the stat rep/bypassed. %(cure)s",
                {
                    "url": printable(request.url),
                    "target": printable(target.url),
                    "reason": explanation(verdict),
                    "cure": "Such pages are dropped" if self._drops else "REP_BYPASSED = 'drop' drops such pages",
                },
            )
        if self._drops:
            self._gate.report_refusal(target, verdict)
            request.meta.update(target.meta)  # what listeners noted about the target (evidence), for the errback
            if not self._is_dry_run:
                raise refusal(verdict)


def where_it_ended(request: Request, response: Response) -> Request | None:
    """A request for the URL of the response; None if the request has the same URL, or if the URL is not HTTP's."""
    if not response.url.startswith(("http://", "https://")) or urldefrag(response.url)[0] == urldefrag(request.url)[0]:
        return None
    try:
        return request.replace(url=response.url)
    except ValueError:  # the handler's URL is malformed
        return None
