"""Decides about Crawl-delay: requests to a site are at least this time apart (REP_CRAWL_DELAY_MAX).

The time is at most REP_CRAWL_DELAY_MAX (0 by default). `scrapy_internals.slots.MinimumDelays` sets it.
"""

from scrapy import Request, signals

from scrapy_rep.extensions import Extension
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.scrapy_internals.slots import MinimumDelays
from scrapy_rep.stats import CRAWL_DELAY


class CrawlDelay(Extension):
    def start(self) -> None:
        self._max_delay = self._settings.crawl_delay_max  # seconds
        if self._max_delay:
            self._delays = MinimumDelays(self._crawler)
            self._gate.is_delayed = self._delays.minimums.__contains__

    def engine_started(self) -> None:
        # Connect late, so that other components that adjust delays, such as AutoThrottle, receive signals earlier.
        if self._max_delay:
            self._crawler.signals.connect(self._reached, signal=signals.request_reached_downloader)
            self._crawler.signals.connect(self._delays.restart_delay, signal=signals.response_downloaded)

    def robots_known(self, info: OriginInfo, request: Request) -> None:
        asked = self._asked_for(info.policy, request)
        if not asked:
            return
        can_delay = self._max_delay and self._delays.can_delay()
        kind = "ignored" if not can_delay else "capped" if asked > self._max_delay else "obeyed"
        self._count(CRAWL_DELAY.format(kind))
        if self._spacing() < asked and self._is_first(kind):
            message = "%s asks for a Crawl-delay of %g s, which is %s (REP_CRAWL_DELAY_MAX = %g)"
            outcome = "not obeyed" if kind == "ignored" else kind
            self._log.info(message, info.address, asked, outcome, self._max_delay)

    def _spacing(self) -> float:
        """Return the shortest time between requests to one host by the user's settings, in seconds."""
        settings = self._crawler.settings
        jitter = settings.getfloat("DOWNLOAD_DELAY_JITTER", 0.5 * settings.getbool("RANDOMIZE_DOWNLOAD_DELAY"))
        return settings.getfloat("DOWNLOAD_DELAY") * (1 - min(jitter, 1.0))

    def _reached(self, request: Request) -> None:
        """Set the delay now, before each request is queued in the downloader, because Scrapy forgets idle hosts."""
        self._delays.require(request, min(self._asked_for(self._gate.peek(request), request), self._max_delay))

    def _asked_for(self, policy: RobotsPolicy | None, request: Request) -> float:
        """Return the Crawl-delay in seconds; 0 if there is none."""
        robots = policy.robots if policy is not None else None
        return (robots.crawl_delay(self._gate.product_tokens(request)) or 0.0) if robots is not None else 0.0
