"""Pages that were fetched although robots.txt forbids them (REP_BYPASSED).

A browser or an API follows redirects by itself, so only the URL of its response shows the page that was fetched. If the
robots.txt of that URL is not known, the page waits for it only if an extension may drop or change the page
(`Gate.waits_for_landings`). Else the page goes on, and its robots.txt is looked up in the background.
"""

from collections import Counter

from scrapy.http import Request, Response
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.deferreds import CANCELLATIONS
from scrapy_rep.exceptions import explanation
from scrapy_rep.extensions import Extension
from scrapy_rep.fetching.single_flight import CrawlClosingError
from scrapy_rep.gate import Landing
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.words import counted
from scrapy_rep.stats import BYPASSED, NOT_JUDGED


class Bypassed(Extension):
    """Checks the URL of a response if it differs from the URL of the request."""

    def start(self) -> None:
        self._drops = self._settings.bypassed == "drop"
        outcome_of_drop = "kept (REP_DRY_RUN)" if self._settings.dry_run else "dropped (REP_BYPASSED)"
        self._outcome = outcome_of_drop if self._drops else "kept; REP_BYPASSED = 'drop' drops them"
        self._looked_up: Counter[Origin] = Counter()
        """The origins whose robots.txt is looked up now -> the number of their pages."""
        self._gate.after_download.append(self._look)
        self._gate.waits_for_landings |= self._drops

    def _look(self, request: Request, _response: Response, landing: Landing | None) -> None:
        """Judge a page, or look its robots.txt up first. Raises what `_judge` raises."""
        if landing is None or not isinstance(origin := self._gate.applicable_origin(landing.request), Origin):
            return
        target, policy = landing
        if policy is not None:
            self._judge(request, target, policy)
        elif origin in self._looked_up or self._gate.may_look_up(target, len(self._looked_up)):
            self._looked_up[origin] += 1
            deferred_from_coro(self._look_up(origin, request, target))
        else:
            self._count(NOT_JUDGED)

    async def _look_up(self, origin: Origin, request: Request, target: Request) -> None:
        try:
            self._judge(request, target, await self._gate.look_up(origin, target))
        except (CrawlClosingError, *CANCELLATIONS):
            self._count(NOT_JUDGED)
        except Exception:  # noqa: BLE001 - it is logged; the page has gone on
            self._log.exception("Internal error while judging %s", printable(target.url))
        finally:
            self._looked_up -= Counter([origin])

    def _judge(self, request: Request, target: Request, policy: RobotsPolicy) -> None:
        """Count a forbidden page. Raises ForbiddenByRobots if the page is to be dropped, but not in a dry run."""
        verdict = self._gate.verdict_on(target, policy)
        if verdict.allowed:
            return
        self._count(BYPASSED)
        if self._is_first("bypassed"):
            self._log.warning(
                "%(target)s was fetched in place of %(url)s, by the download handler or a service behind it."
                " %(reason)s",
                {"target": printable(target.url), "url": printable(request.url), "reason": explanation(verdict)},
            )
            self._log.warning("Such pages are %s. The stat rep/bypassed counts them", self._outcome)
        if self._drops:
            try:
                self._gate.refusals.refuse(target, verdict)
            finally:
                request.meta.update(target.meta)  # so that the errback sees the evidence about the target

    def spider_closed(self) -> None:
        number = self._stats.get_value(NOT_JUDGED, 0)
        if number:
            self._log.info(
                "%s not judged (REP_BYPASSED): the robots.txt was not known in time", counted(number, "page")
            )
