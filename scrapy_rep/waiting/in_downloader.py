"""Where all other requests wait for a robots.txt: in the downloader, as in any middleware of Scrapy's.

A request comes here instead of waiting at the scheduler's door

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

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_rep.cache.resolver import CrawlClosingError, Resolver
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.waiting.at_scheduler import SchedulerDoor
from scrapy_rep.waiting.waiting_log import Waits


@dataclass(frozen=True, slots=True)
class InDownloader:
    resolver: Resolver
    downloads: UncountedDownloads
    door: SchedulerDoor
    waits: Waits

    async def wait(self, request: Request, origin: Origin) -> RobotsPolicy:
        """The origin's policy, once it is known. Raises IgnoreRequest where the crawl closes before; a request that
        came from the queue is put back then."""
        wait = self.waits.begin(request, origin)
        try:
            with self.downloads.uncounted(request) if self.door.never_saw(request) else nullcontext():
                policy = await maybe_deferred_to_future(self.resolver.resolve(origin, request))
        except CrawlClosingError:
            again = ", and it is back in the queue" if self.door.take_back(request) else ""
            raise IgnoreRequest(f"The crawl closed while the request waited for robots.txt{again}") from None
        finally:
            self.waits.end(wait)
        self.waits.went_on(wait)
        return policy
