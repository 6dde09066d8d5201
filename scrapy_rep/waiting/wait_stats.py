"""The stat, the signal and the log line about requests that wait."""

from weakref import WeakSet

from scrapy import Request, signals
from scrapy.utils.asyncio import create_looping_call

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.words import counted
from scrapy_rep.signals import request_waited, send
from scrapy_rep.stats import WAITED
from scrapy_rep.waiting.order import Wait

EVERY = 15.0  # seconds from one log line to the next
MAX_ORIGINS_NAMED = 3  # origins in the log line, those with the longest waits


class Waits(Part):
    """Counts a request in rep/waited when it first waits. Sends `request_waited` when the request first resumes."""

    def __init__(self, crawl: Crawl) -> None:
        super().__init__(crawl)
        self._under_way: set[Wait] = set()
        self._resumed: WeakSet[Request] = WeakSet()
        self.number_waited = 0
        """The number of requests that have waited and then resumed."""
        self._number_cancelled = 0
        crawl.crawler.signals.connect(self._opened, signal=signals.spider_opened)

    def begin(self, request: Request, origin: Origin, site: str = "") -> Wait:
        if request not in self._resumed:
            self._count(WAITED)
        wait = Wait(request, origin, self._clock.monotonic(), site=site)
        self._under_way.add(wait)
        return wait

    def end(self, wait: Wait) -> None:
        """The wait is over: the fetch has ended, or the crawl closes and the request goes back to its queue."""
        wait.seconds = self._clock.monotonic() - wait.since
        self._under_way.discard(wait)

    def resumed(self, wait: Wait) -> None:
        """The request leaves the door, or gets its verdict in the downloader."""
        if wait.request in self._resumed:
            return
        self._resumed.add(wait.request)
        self.number_waited += 1
        send(self._crawler, request_waited, request=wait.request, seconds=wait.seconds)

    def cancelled(self, wait: Wait) -> None:
        """The wait was cancelled, for example by a time limit in the spider's own code."""
        self._number_cancelled += wait.request not in self._resumed

    def log(self) -> None:
        """Log how many requests wait now, for how long, and for which robots.txt files."""
        if not self._under_way:
            return
        waits = sorted(self._under_way, key=lambda wait: wait.since)
        origins = list(dict.fromkeys(wait.origin for wait in waits))
        self._log.info(
            "Waiting for robots.txt: %s to %s, the longest for %.0f s (%s)."
            " A request for robots.txt may take %g s (REP_FETCH_TIMEOUT), not counting the time in other middlewares."
            " After a failure, requests wait up to %g s (REP_UNREACHABLE_WAIT)",
            counted(len(self._under_way), "request"),
            counted(len(origins), "origin"),
            self._clock.monotonic() - waits[0].since,
            ", ".join(origin.robots_url for origin in origins[:MAX_ORIGINS_NAMED]),
            self._settings.fetch_timeout,
            self._settings.unreachable_wait,
        )

    def close(self) -> None:
        """Log how many requests still wait when the crawl ends."""
        waiting = self._crawler.stats.get_value(WAITED, 0) - self.number_waited - self._number_cancelled
        if waiting > 0:
            self._log.info("%s still waited for robots.txt when the crawl stopped", counted(waiting, "request"))

    def _opened(self) -> None:
        self._timer = create_looping_call(self.log)
        self._timer.start(EVERY, now=False)
        self._crawler.signals.connect(self._timer.stop, signal=signals.spider_closed)
