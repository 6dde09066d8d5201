"""Pages that were fetched although robots.txt forbids them (REP_BYPASSED).

A browser or an API follows redirects by itself, so only the URL of its response shows the page that was fetched.
"""

from __future__ import annotations

from functools import partial

from scrapy.http import Request, Response
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.exceptions import explanation
from scrapy_rep.extensions import Extension
from scrapy_rep.gate import Landing
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.stats import BYPASSED


class Bypassed(Extension):
    """Checks the URL of a response if it differs from the URL of the request."""

    def start(self) -> None:
        self._drops = self._settings.bypassed == "drop"
        outcome_of_drop = "kept (REP_DRY_RUN)" if self._settings.dry_run else "dropped (REP_BYPASSED)"
        self._outcome = outcome_of_drop if self._drops else "kept; REP_BYPASSED = 'drop' drops them"
        self._gate.after_download.append(self._look)
        self._gate.waits_for_landings |= self._drops

    def _look(self, request: Request, _response: Response, landing: Landing | None) -> None:
        """Judge a page, in the background if the robots.txt has to be fetched first. Raises what `_judge` raises."""
        if landing is not None and (self._drops or landing.policy is not None):
            self._judge(request, *landing)
        elif landing is not None:
            waiting = deferred_from_coro(self._gate.wait_for_policy(landing.request, goes_back=True))
            waiting.addCallbacks(partial(self._judge, request, landing.request), lambda _closing: None)

    def _judge(self, request: Request, target: Request, policy: RobotsPolicy | None) -> None:
        """Count a forbidden page. Raises ForbiddenByRobots if the page is to be dropped, but not in a dry run."""
        verdict = self._gate.verdict_on(target, policy)
        if policy is None or verdict.allowed:
            return
        self._stats.inc_value(BYPASSED)
        if self._is_first("bypassed"):
            self._log.warning(
                "%(target)s: the download handler, or a service behind it, went there from %(url)s. %(reason)s",
                {"target": printable(target.url), "url": printable(request.url), "reason": explanation(verdict)},
            )
            self._log.warning("Such pages are %s. The stat rep/bypassed counts them", self._outcome)
        if self._drops:
            try:
                self._gate.refusals.refuse(target, verdict)
            finally:
                request.meta.update(target.meta)  # so that the errback sees the evidence about the target
