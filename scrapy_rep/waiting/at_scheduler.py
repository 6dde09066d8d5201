"""Where requests wait for a robots.txt: at the door between the scheduler's queue and the engine.

Scrapy's engine asks the scheduler for one request after the other, and stops at CONCURRENT_REQUESTS. If requests waited
in the downloader, a few slow robots.txt files would take all these places. So the door stands in for the scheduler: the
engine asks the door (`next_request`), and gets only requests that need not wait. A request that waits at the door has
left its queue and has passed no downloader middleware. It does not count against CONCURRENT_REQUESTS. The door only
keeps requests: the gate decides whether they may be fetched (`gate.Gate`).

1. The engine asks for a request, and the door takes the next request out of the queue. If no robots.txt applies to that
   request, or if memory has a usable policy for it, the engine gets the request.
2. Else the request waits (`order`) for a fetch of its origin's robots.txt (`fetching.single_flight`), and the door
   takes the next request out of the queue.
3. When the fetch ends, with an answer or without, the requests to its origin are ready. A ready request can go on if
   the downloader has room for its site: usually a host, which may have many origins. Sites take turns. The engine gets
   a ready request and a request from the queue in turn; but while MANY_READY or more sites have ready requests, the
   queue has a turn only if no ready request can go on. Requests in Scrapy's default queue need room, too, if the
   Crawl-delay of their site is obeyed. Without room, they stay in the queue.
4. `RepMiddleware` decides about a ready request by the policy in memory. If this policy has expired, or was dropped to
   save memory, the request waits in the downloader (`in_downloader`). There is one exception: if the wait ended because
   robots.txt is unreachable, the request does not wait again. The policy of that time decides (`take_policy`).

Two limits keep requests in the queue:

- Fetches: those that have just begun or wait for a place are twice as many as there are places (`fetching.places`).
  Slow requests for a robots.txt do not count. Nor do repeated requests (a retry, or a robots.txt that was fetched
  before), and fetches in the background.
- Requests: REP_WAITING_MAX requests are at the door. The first request to each origin does not count. This limit never
  stops a request from the queue in memory.

At a limit, the door takes nothing more from most queues. From Scrapy's default queue, it still takes requests to sites
that have no request at the door. At the limit of fetches, it takes only requests to sites that the downloader knows:
their robots.txt is probably known (`turns.Turns.prepare_next`).

A lazy `start` of the spider waits while `engine.needs_backout()` is true. The door makes this true if it has nothing
for the engine, and one of these limits is reached, or as many requests are at the door as there may be such fetches.
Requests in the queue count, too, if a Crawl-delay holds all of them.

If the crawl closes, the requests at the door go back to their queue. If the process is killed, copies of the requests
from disk or from scrapy-redis are left (`copies`). A crawl that resumes a JOBDIR begins with these requests at the
door. With scrapy-redis, another crawler puts them back into the queue.
"""

from collections.abc import KeysView
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from twisted.python.failure import Failure

from scrapy_rep.crawl import Crawl, Part
from scrapy_rep.fetching.places import Connections
from scrapy_rep.fetching.single_flight import SingleFlight
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.lifecycle import Basis, RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.scrapy_internals.engine_state import look_for_requests, scheduler_of
from scrapy_rep.scrapy_internals.scheduler_queues import SchedulerQueues
from scrapy_rep.scrapy_internals.slots import Sites
from scrapy_rep.waiting.copies import COPIES_FAILED, KeptCopies, KeptInJobdir, KeptInRedis
from scrapy_rep.waiting.order import Wait, WaitingRequests
from scrapy_rep.waiting.turns import Turns
from scrapy_rep.waiting.wait_stats import Waits
from scrapy_rep.waiting.wrapped_scheduler import WrappedScheduler, is_of

MAX_SECONDS = 0.005  # seconds that one `next_request` may take while all requests from the queue have to wait
MANY_READY = 100  # sites with ready requests
IDLE_EVERY = 1.0  # seconds between two signals `spider_idle` while REP_WAITING_MAX requests are at the door
NO_ORIGIN = Origin("", "", None)  # stands for the origin of a left-over request that need not wait


class SchedulerDoor(Part):
    """Stands in for the scheduler: hands requests to the engine, and keeps those that wait for a robots.txt."""

    _scheduler: WrappedScheduler
    _queues: SchedulerQueues
    _sites: Sites
    _turns: Turns

    def __init__(
        self,
        crawl: Crawl,
        gate: Gate,
        single_flight: SingleFlight,
        connections: Connections,
        waits: Waits,
        *,
        in_pause: KeysView[Origin],
    ) -> None:
        """`in_pause`: the origins whose fetch pauses between two rounds, as a live view: `Driver` changes them."""
        super().__init__(crawl)
        self._max_waiting = crawl.settings.waiting_max
        """REP_WAITING_MAX. If it is 0, requests wait in the downloader."""
        self._connections = connections
        self._in_pause = in_pause
        connections.is_from_scheduler = self.is_from_scheduler
        self._gate = gate
        self._single_flight = single_flight
        self._waits = waits
        self._here = WaitingRequests()
        self._next: Request | None = None
        """The request that the engine gets next; None if it is not chosen yet."""
        self._error: Exception | None = None
        """The error of the queue while `_next` was chosen. `next_request` raises it."""
        self._is_turn_of_queue = False
        self._idle_at = 0.0
        """When the spider was idle, by the monotonic clock."""
        self._ended_by: WeakKeyDictionary[Request, RobotsPolicy] = WeakKeyDictionary()
        """The policy that ended a request's wait, if it allows nothing because robots.txt is unreachable."""
        self._is_open = False
        self._copies = KeptCopies(crawl.crawler)

    @property
    def is_in_use(self) -> bool:
        """Whether requests wait here, and not in the downloader."""
        return self._is_open and self._max_waiting > 0

    def open(self, downloads: UncountedDownloads) -> None:
        """Wrap the scheduler. If that is impossible, requests wait in the downloader."""
        scheduler = scheduler_of(self._crawler)
        if is_of(scheduler, "apify.scrapy.scheduler", "ApifyScheduler"):
            self._log.warning(
                "REP_WAITING_MAX counts as 0 with Apify's scheduler, which believes that a request outside of the"
                " downloader is done. Requests from this scheduler count against CONCURRENT_REQUESTS while they wait"
                " for a robots.txt"
            )
            self._max_waiting = 0
        try:
            self._scheduler = WrappedScheduler(self._crawler, scheduler, self)
        except AttributeError as exc:
            self._log.warning(
                "Requests that wait for a robots.txt count against CONCURRENT_REQUESTS in this crawl: the scheduler's"
                " methods cannot be replaced (%s)",
                exc,
            )
            return
        self._is_open = True
        self._queues = self._scheduler.queues
        self._sites = Sites(self._crawler)
        max_sites = max(self._settings.memory_origins // 2, 1)
        self._turns = Turns(self._queues, self._sites, self._here.sites, self._gate.is_delayed, max_sites)
        self._copies = _copies_for(self._crawler, scheduler, self._queues)
        downloads.back_out_when(self._choose_or_back_out)
        # The engine has asked for no request when it sends this signal. All handlers of `spider_opened` have ended.
        self._crawler.signals.connect(self._add_left_over, signal=signals.engine_started)
        self._crawler.signals.connect(self._keep_open, signal=signals.spider_idle)

    def _add_left_over(self) -> None:
        """Add the requests that waited when this job was killed. In the queue on disk, another kill could lose them."""
        left_over = self._copies.left_over()
        if left_over:
            number = len(left_over)
            self._log.info("Requests that waited for a robots.txt when this job was killed: %d", number)
        for request in left_over:
            origin, site = self._gate.origin_to_await(request), self._sites.site_of(request)
            if origin is not None:
                self._wait(self._waits.begin(request, origin, site))
            else:
                self._here.add_ready(Wait(request, NO_ORIGIN, self._clock.monotonic(), site=site))

    # For requests that are in the downloader.

    def is_from_scheduler(self, request: Request) -> bool | None:
        """Whether the request comes from the scheduler; None if that is not known, because the scheduler could not be
        wrapped."""
        return self._sites.is_in_downloader(request) if self._is_open else None

    def take_policy(self, request: Request) -> RobotsPolicy | None:
        """The policy that ended the request's wait at the door, if it allows nothing because robots.txt is unreachable;
        else None."""
        return self._ended_by.pop(request, None)

    def put_back(self, request: Request) -> bool:
        """Step 2 of a stop (`middleware`): put a request of the scheduler back. Returns whether the queue took it."""
        return bool(self._scheduler.put_back([request]))

    # In place of the scheduler's methods.

    def next_request(self) -> Request | None:
        """The next request that need not wait at the door. Raises what the queue raises."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        request, self._next = self._next or self._choose(), None
        if request is not None:
            self._copies.delete(request)
            self._sites.hand_out(request)
        return request

    def has_pending_requests(self) -> bool:
        """Whether the spider is not idle. Requests that wait between two rounds of an outage do not count: otherwise,
        a spider that gets its URLs when it is idle would get none for as long as they wait. But if
        REP_WAITING_MAX is reached, the spider is idle at most once in IDLE_EVERY: otherwise, it would get all its URLs
        meanwhile."""
        is_pausing = self._here.waiting.keys() <= self._in_pause
        is_full = self._here.beyond_the_first >= self._max_waiting > 0
        was_idle = is_full and self._clock.monotonic() < self._idle_at + IDLE_EVERY
        is_busy = bool(self._here.ready) or not is_pausing or was_idle
        return is_busy or self._next is not None or self._scheduler.has_pending_requests()

    def _keep_open(self) -> None:
        """Keep the spider open while requests are here."""
        self._idle_at = self._clock.monotonic()
        if self._here:
            raise DontCloseSpider

    def close(self, reason: str) -> Any:
        """Step 4 of a stop (`middleware`): put the requests at the door back into the queue, because some schedulers
        keep it for the next crawl. Then close the scheduler."""
        taken_back = self._scheduler.put_back([*self._here] if self._next is None else [*self._here, self._next])
        closed = self._scheduler.close(reason)
        # The copies stay until now: Scrapy's queue on disk loses requests if the process is killed before it is closed.
        for request in taken_back:
            self._copies.delete(request)
        self._copies.close()
        return closed

    # What the engine gets.

    def _choose_or_back_out(self) -> bool:
        """Return whether a lazy `start` of the spider has to wait. At a limit, first choose the engine's next request:
        if there is one, `start` need not wait.

        One limit is `Connections.max_starting` requests at the door, or held in the queue by a Crawl-delay.
        """
        if not self._max_waiting or (
            len(self._here) + self._turns.number_held < self._connections.max_starting
            and not self._is_full
            and self._connections.can_start_another()
        ):
            return False
        if self._next is None and self._error is None:
            # Choose before the engine asks. If it got None, it would send `scheduler_empty`, and `start` would go on.
            try:
                self._next = self._choose(keep=True)
            except Exception as exc:  # noqa: BLE001 - here, an error of the queue would end the crawl
                self._error = exc
        return self._next is None and self._error is None

    def _choose(self, *, keep: bool = False) -> Request | None:
        """The next request that need not wait at the door, or None. With `keep`, a copy is kept, because the engine may
        not get the request for a while."""
        self._sites.look_at_downloads()
        is_turn_of_queue = self._is_turn_of_queue and len(self._here.ready) < MANY_READY
        self._is_turn_of_queue = not is_turn_of_queue
        if is_turn_of_queue:
            return self._from_queue(keep=keep) or self._from_here()
        return self._from_here() or self._from_queue(keep=keep)

    @property
    def _is_full(self) -> bool:
        """Whether REP_WAITING_MAX keeps the next request in its queue. It never keeps one that is in memory."""
        return not self._queues.is_next_from_memory() and self._here.beyond_the_first >= self._max_waiting

    def _from_queue(self, *, keep: bool) -> Request | None:
        """The queue's next request that need not wait at the door. The requests before it begin to wait."""
        if not self._max_waiting:
            return self._scheduler.next_request()
        until = self._clock.monotonic() + MAX_SECONDS
        while self._turns.prepare_next(can_fetch=self._connections.can_start_another(), is_full=self._is_full):
            is_from_memory = self._queues.is_next_from_memory()
            request = self._scheduler.next_request()
            if request is None:
                return None
            origin = self._gate.origin_to_await(request)
            if not is_from_memory and (keep or origin is not None):
                self._copies.keep(request)
            if origin is None:
                return request
            self._wait(self._waits.begin(request, origin, self._sites.site_of(request)))
            if self._clock.monotonic() >= until:
                look_for_requests(self._crawler)
                break
        return None

    def _from_here(self) -> Request | None:
        """The next ready request that can go on."""
        wait = self._here.take_ready(self._sites.has_room)
        if wait is None:
            return None
        if wait.origin is not NO_ORIGIN:
            self._waits.resumed(wait)
        return wait.request

    def _wait(self, wait: Wait) -> None:
        self._ended_by.pop(wait.request, None)
        if self._here.add_waiting(wait):
            self._single_flight.join(wait.origin, wait.request, goes_back=True).addBoth(self._release, wait.origin)
        else:
            self._single_flight.add_trigger(wait.origin, wait.request)

    def _release(self, result: RobotsPolicy | Failure, origin: Origin) -> None:
        """The fetch has ended: the origin's requests are ready. `result`: a policy; a Failure if the crawl closes. Then
        the engine asks for no more requests, and `close` puts these back."""
        for wait in self._here.release(origin):
            self._waits.end(wait)
            if isinstance(result, RobotsPolicy) and result.basis is Basis.NOTHING_ALLOWED:
                self._ended_by[wait.request] = result
        look_for_requests(self._crawler)


def _copies_for(crawler: Crawler, scheduler: Any, queues: SchedulerQueues) -> KeptCopies:
    try:
        if is_of(scheduler, "scrapy_redis.scheduler", "Scheduler"):
            return KeptInRedis(crawler, scheduler)
        if queues.on_disk is not None:
            return KeptInJobdir(crawler)
    except Exception as exc:  # noqa: BLE001 - a user's own queue class, or a file that cannot be created
        logger_of(crawler).warning(COPIES_FAILED, printable(str(exc)))
    # A queue in memory loses its requests with the process anyway. For any other queue, no copies can be kept.
    return KeptCopies(crawler)
