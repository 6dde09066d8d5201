"""The few requests that cannot wait at the scheduler: they wait in the downloader.

Scrapy awaits `process_request` while they wait. Most requests wait at the scheduler's door (`at_scheduler`). These wait
here:

- Requests that do not come from the scheduler (`engine.download_async`, a media pipeline). They do not count against
  CONCURRENT_REQUESTS while they wait, because the engine has not checked this limit for them.
- Requests from the door, if the policy in memory has expired or was dropped to save memory. They count. If their wait
  at the door ended because robots.txt is unreachable, they do not wait again (`SchedulerDoor.take_policy`).
- All requests, if REP_WAITING_MAX is 0 or the scheduler cannot be wrapped. Those from the scheduler count. If the
  scheduler cannot be wrapped, all count, because it is not known where a request comes from.
"""

from contextlib import nullcontext
from dataclasses import dataclass

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_rep.deferreds import CANCELLATIONS
from scrapy_rep.fetching.single_flight import CrawlClosingError, SingleFlight
from scrapy_rep.gate import Gate
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.waiting.at_scheduler import SchedulerDoor
from scrapy_rep.waiting.wait_stats import Waits


@dataclass(frozen=True, slots=True)
class InDownloader:
    gate: Gate
    single_flight: SingleFlight
    downloads: UncountedDownloads
    door: SchedulerDoor
    waits: Waits

    async def wait_and_decide(self, request: Request, origin: Origin) -> None:
        """Wait until the origin's robots.txt is known. Then let the request go on, or raise ForbiddenByRobots.

        If the crawl begins to close, a request from the scheduler goes back to its queue, and IgnoreRequest is raised.
        Any other request goes on waiting: an item may need its response, and Scrapy finishes such work.
        """
        policy = self.door.take_policy(request) or await self._wait(request, origin)
        self.gate.decide(request, policy)

    async def _wait(self, request: Request, origin: Origin) -> RobotsPolicy:
        wait = self.waits.begin(request, origin)
        is_from_scheduler = self.door.is_from_scheduler(request)
        goes_back = is_from_scheduler is True
        try:
            with self.downloads.uncounted(request) if is_from_scheduler is False else nullcontext():
                policy = await maybe_deferred_to_future(self.single_flight.join(origin, request, goes_back=goes_back))
        except CrawlClosingError:
            again = ", and it is back in the queue" if goes_back and self.door.put_back(request) else ""
            raise IgnoreRequest(f"The crawl closed while the request waited for robots.txt{again}") from None
        except CANCELLATIONS:
            self.waits.cancelled(wait)
            raise
        finally:
            self.waits.end(wait)
        self.waits.resumed(wait)
        return policy
