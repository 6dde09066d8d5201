"""Requests that wait in the downloader, as in any middleware of Scrapy's: mainly those that do not come from the
scheduler. Nearly all other requests wait at the scheduler's door (`scheduler_door`).

Three kinds of requests wait here:

- Requests that do not come from the scheduler (`engine.download_async`, a media pipeline). The engine has not checked
  CONCURRENT_REQUESTS for them, so they do not count against it while they wait. If the scheduler cannot be wrapped,
  such requests cannot be recognised, and they count.
- Requests from the scheduler, if no request may wait at the door (REP_WAITING_MAX = 0, or a scheduler that cannot be
  wrapped). They count.
- Requests that the door let pass, but whose robots.txt is no longer known: its policy was forgotten to save memory, or
  has expired. They count, too.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.cache.resolver import CrawlClosingError, Resolver
from scrapy_rep.gate import Gate
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.waiting.scheduler_door import SchedulerDoor
from scrapy_rep.waiting.waiting_log import Waits


@dataclass(frozen=True, slots=True)
class InDownloader:
    gate: Gate
    resolver: Resolver
    downloads: UncountedDownloads
    door: SchedulerDoor
    waits: Waits

    async def decide(self, request: Request, origin: Origin) -> None:
        """Wait until the origin's robots.txt is known. Then let the request go on, or raise ForbiddenByRobots.

        Raises IgnoreRequest if the crawl closes first. A request that came from the queue is then put back.
        """
        fault = self.door.fault_of(request)
        policy = await self._wait(request, origin) if fault is None else fault
        if isinstance(policy, BaseException):
            self.gate.refuse_for(policy, request, origin)
        else:
            self.gate.decide(request, policy)

    async def _wait(self, request: Request, origin: Origin) -> RobotsPolicy | BaseException:
        """Wait for the origin's policy. Returns it, or the internal error that has ended the fetch."""
        wait = self.waits.begin(request, origin)
        result: RobotsPolicy | BaseException
        try:
            with self.downloads.uncounted(request) if self.door.never_saw(request) else nullcontext():
                # The fetch's error becomes a value, so that it is not mistaken for a cancellation of this request.
                resolved: Deferred[Any] = self.resolver.resolve(origin, request)
                resolved.addErrback(lambda failure: failure.value)
                result = await maybe_deferred_to_future(resolved)
        finally:
            self.waits.end(wait)
        if isinstance(result, CrawlClosingError):
            again = ", and it is back in the queue" if self.door.take_back(request) else ""
            raise IgnoreRequest(f"The crawl closed while the request waited for robots.txt{again}")
        self.waits.went_on(wait)
        return result
