"""Where the requests wait that do not come from the scheduler: in the downloader, as in any middleware of Scrapy's. All
other requests wait at the scheduler's door (`scheduler_door`).

A request comes here

- if it does not come from the scheduler (`engine.download_async`, a media pipeline): the engine has not asked whether
  there was room for it, so it does not count against CONCURRENT_REQUESTS while it waits. Where the scheduler cannot be
  wrapped, nobody can tell these requests from the others, and they count;
- if it comes from the scheduler, and no request may wait at the door (REP_WAITING_MAX = 0, a scheduler that cannot be
  wrapped): then it counts;
- if its robots.txt is no longer known since the door let it pass (forgotten for want of memory, or its time is over):
  it counts, too.
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
        """Let the request go on, or raise ForbiddenByRobots, once its origin's robots.txt is known.

        Raises IgnoreRequest if the crawl closes before; a request that came from the queue is put back then.
        """
        fault = self.door.fault_of(request)
        policy = await self._wait(request, origin) if fault is None else fault
        if isinstance(policy, BaseException):
            self.gate.refuse_for(policy, request, origin)
        else:
            self.gate.decide(request, policy)

    async def _wait(self, request: Request, origin: Origin) -> RobotsPolicy | BaseException:
        """The origin's policy, or the error of ours that has ended the fetch."""
        wait = self.waits.begin(request, origin)
        result: RobotsPolicy | BaseException
        try:
            with self.downloads.uncounted(request) if self.door.never_saw(request) else nullcontext():
                # As a value, because what is raised here may also be a cancellation of this request.
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
