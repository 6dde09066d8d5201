"""Where requests wait for a robots.txt: at the scheduler's door, where the engine asks for the next request.

A request that waits here has left its queue, has passed no downloader middleware, and does not count against
CONCURRENT_REQUESTS.

1. The engine asks for a request, and the door takes the next one out of the queue. If no robots.txt applies to the
   request, or if its origin is known, the engine gets it.
2. Else the request waits (`waiting_requests`), and the origin's robots.txt is fetched (`cache.resolver`) unless
   that is under way. Then the door takes the next request, as long as one more fetch would begin soon: while fewer than
   twice REP_FETCH_CONCURRENCY fetches are under way or wait for their turn, not counting those that are slow or
   repeated (`fetching.turns`). When none would, the door takes from Scrapy's default queue
   (`DownloaderAwarePriorityQueue`) as long as that has requests to sites that have been asked before and that no
   request here goes to: these come out first. Of another queue nobody knows what comes next, so the door takes nothing.
3. REP_WAITING_MAX limits how many requests are here, not counting one request to each origin. Scrapy's queue in memory
   has no such limit: its requests take no more memory here than there. At the limit the door takes from Scrapy's
   default queue on disk as long as that has requests to sites that no request here goes to. From another queue it
   takes nothing.
4. The fetch has ended, whatever it has brought: the requests to its origin are ready. The engine gets them by turns, a
   request to each site that has room in the downloader (a site is a host, usually, and may have many origins), and in
   between requests from the queue. `RepMiddleware` decides about them like about any other request, by the policy in
   memory. If the policy is no longer there (forgotten for want of memory, or its time is over), the requests wait
   again, for another fetch, as soon as no other ready request can go on.
5. If no request can go on, and there are as many here as twice REP_FETCH_CONCURRENCY, or the door would take no request
   to a new site, `engine.needs_backout()` is true: a lazy `start` of the spider waits, as while the downloader is full.
6. If the crawl closes first, the requests that are here go back to their queue. If the process is killed, copies of
   those from disk or from scrapy-redis survive (`kept_copies`): the crawl that resumes the JOBDIR has them here when it
   opens; with scrapy-redis another crawler puts them back into the queue, some ten seconds later.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from twisted.python.failure import Failure

from scrapy_rep.cache.resolver import CrawlClosingError, Resolver
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.scrapy_internals.engine_state import look_for_requests, scheduler_of
from scrapy_rep.scrapy_internals.scheduler_queues import SchedulerQueues
from scrapy_rep.settings import RepSettings
from scrapy_rep.waiting.kept_copies import KILLED_LOSES, Keeper
from scrapy_rep.waiting.waiting_log import Waits
from scrapy_rep.waiting.waiting_requests import Wait, WaitingRequests
from scrapy_rep.waiting.wrapped_scheduler import WrappedScheduler, is_of

MAX_SECONDS = 0.005  # for one call of the engine's, while all requests that the queue hands out have to wait
MAX_READY = 100  # sites with ready requests; from this number on, these requests always go before the queue's
ENOUGH = 2  # times REP_FETCH_CONCURRENCY: the number of requests here from which on a lazy `start` waits


class SchedulerDoor:
    """Gives the engine the next request that need not wait, in place of the crawl's scheduler."""

    _scheduler: WrappedScheduler
    _queues: SchedulerQueues

    def __init__(self, crawler: Crawler, settings: RepSettings, gate: Gate, resolver: Resolver, waits: Waits) -> None:
        self._crawler = crawler
        self._max_waiting = settings.waiting_max
        """With 0, requests wait in the downloader."""
        self._enough = ENOUGH * settings.fetch_concurrency
        self._gate = gate
        self._resolver = resolver
        self._waits = waits
        self._here = WaitingRequests()
        self._next: Request | None = None
        """The request that the engine gets next, if it has been chosen already."""
        self._is_turn_of_queue = False
        self._handed_out: WeakKeyDictionary[Request, BaseException | None] = WeakKeyDictionary()
        """With the error of ours that has ended the fetch for which the request waited, if one has."""
        self._is_open = False
        self._keeper = Keeper(crawler)

    def open(self, downloads: UncountedDownloads) -> None:
        """From now on requests wait here, unless none may or the scheduler cannot be wrapped."""
        scheduler, log = scheduler_of(self._crawler), logger_of(self._crawler)
        if is_of(scheduler, "apify.scrapy.scheduler", "ApifyScheduler"):
            log.warning(
                "REP_WAITING_MAX counts as 0 with Apify's scheduler, which takes requests that are not in the"
                " downloader for done: requests that wait for a robots.txt count against CONCURRENT_REQUESTS"
            )
            self._max_waiting = 0
        try:
            self._scheduler = WrappedScheduler(self._crawler, scheduler, self)
        except AttributeError as exc:
            log.warning(
                "Requests that wait for a robots.txt count against CONCURRENT_REQUESTS in this crawl: the scheduler's"
                " methods cannot be replaced (%s)",
                exc,
            )
            return
        self._is_open = True
        self._queues = self._scheduler.queues
        self._queues.put_last(self._here.sites)
        self._keeper = _keeper(self._crawler, scheduler, self._queues)
        self._take_in(self._keeper.left_over())
        downloads.back_out_when(self._has_enough)

    def _take_in(self, left_over: list[Request]) -> None:
        """Requests that waited when this job was killed. They do not go through the queue, from which another kill
        could remove them."""
        if left_over:
            number = len(left_over)
            logger_of(self._crawler).info("Requests that waited for a robots.txt when this job was killed: %d", number)
        for request in left_over:
            origin = Origin.of(request.url)
            if origin is None:  # such a request never waits, so somebody else has written it
                for taken in self._scheduler.put_back([request]):
                    self._keeper.forget(taken)
            else:
                # It begins to wait when the engine asks for a request, if it still has to.
                wait = self._waits.begin(request, origin, self._queues.site_of(request))
                self._waits.end(wait)
                self._here.be_ready(wait)

    def never_saw(self, request: Request) -> bool:
        """Whether the request came to the downloader by another way, past the engine's check of CONCURRENT_REQUESTS."""
        return self._is_open and request not in self._handed_out

    def fault_of(self, request: Request) -> BaseException | None:
        """The error of ours that has ended the fetch for which the request waited here; None if none has."""
        return self._handed_out.get(request)

    def take_back(self, request: Request) -> bool:
        """The crawl closes: whether a request that was handed out is in the queue again."""
        return self._is_open and request in self._handed_out and bool(self._scheduler.put_back([request]))

    # In place of the scheduler's methods.

    def next_request(self) -> Request | None:
        """The next request that need not wait."""
        request, self._next = self._next or self._choose(), None
        if request is not None:
            self._keeper.forget(request)
            self._handed_out.setdefault(request, None)
        return request

    def has_pending_requests(self) -> bool:
        """Whether any request is here."""
        return bool(self._here) or self._next is not None

    def close(self, reason: str) -> Any:
        """What is here goes back first: what the scheduler keeps beyond the crawl, it keeps of these, too."""
        here = [*self._here, *([self._next] if self._next is not None else [])]
        taken_back = self._scheduler.put_back(here)
        closed = self._scheduler.close(reason)
        # Only now: Scrapy's queue on disk loses them if the process is killed before the queue is closed.
        for request in taken_back:
            self._keeper.forget(request)
        self._keeper.close()
        return closed

    # What the engine gets.

    def _has_enough(self) -> bool:
        """Whether all requests have to wait, and so many are here that the spider's `start` can wait as well."""
        if not self._max_waiting or (
            len(self._here) < self._enough and not self._is_full and self._resolver.has_room()
        ):
            return False
        if self._next is None:
            # The engine must not ask in vain: if it did, it would tell `start` that the scheduler is empty.
            self._next = self._choose(keep=True)
        return self._next is None

    def _choose(self, *, keep: bool = False) -> Request | None:
        """The next request that need not wait. `keep`: it may not go on at once, and must survive a kill."""
        is_turn_of_queue = self._is_turn_of_queue and self._here.ready_sites < MAX_READY
        self._is_turn_of_queue = not is_turn_of_queue
        if is_turn_of_queue:
            return self._from_queue(keep=keep) or self._from_here()
        return self._from_here() or self._from_queue(keep=keep)

    @property
    def _is_full(self) -> bool:
        return not self._queues.is_next_from_memory() and self._here.beyond_the_first >= self._max_waiting

    def _from_queue(self, *, keep: bool) -> Request | None:
        """The queue's next request that need not wait. Those before it begin to."""
        if not self._max_waiting:
            return self._scheduler.next_request()
        until = self._waits.monotonic() + MAX_SECONDS
        while self._queues.is_next_of_use(has_room=self._resolver.has_room(), is_full=self._is_full):
            is_from_memory = self._queues.is_next_from_memory()
            request = self._scheduler.next_request()
            origin = self._gate.origin_to_await(request) if request is not None else None
            if request is None:
                return None
            if not is_from_memory and (keep or origin is not None):
                self._keeper.keep(request)
            if origin is None:
                return request
            self._wait(self._waits.begin(request, origin, self._queues.site_of(request)))
            if self._waits.monotonic() >= until:
                look_for_requests(self._crawler)
                break
        return None

    def _from_here(self) -> Request | None:
        """The next request that is ready and has room in the downloader: one to each site by turns."""
        undecided = []
        for wait in self._here.ready_by_turns(self._has_room):
            if wait.fault is None and self._gate.origin_to_await(wait.request) is not None:
                undecided.append(wait)
                continue
            self._here.leave(wait)
            self._handed_out[wait.request] = wait.fault
            self._waits.went_on(wait)
            return wait.request
        # Only if no other ready request can go on: else origins would push each other out of memory without an end.
        for first in undecided:
            for wait in self._here.no_longer_ready(first):
                self._waits.begin_again(wait)
                self._wait(wait)
        return None

    def _has_room(self, site: str) -> bool:
        return self._queues.has_room(site, self._handed_out)

    # Waiting.

    def _wait(self, wait: Wait) -> None:
        if self._here.wait(wait):
            self._resolver.resolve(wait.origin, wait.request).addBoth(self._release, wait.origin)

    def _release(self, result: object, origin: Origin) -> None:
        """The fetch has ended, with an answer or without: memory has the policy. Or it has failed by a fault of ours,
        or because the crawl closes."""
        fault = result.value if isinstance(result, Failure) else None
        if isinstance(fault, CrawlClosingError):
            return  # `close` puts the requests back
        for wait in self._here.release(origin):
            wait.fault = fault
            self._waits.end(wait)
        look_for_requests(self._crawler)


def _keeper(crawler: Crawler, scheduler: Any, queues: SchedulerQueues) -> Keeper:
    try:
        if is_of(scheduler, "scrapy_redis.scheduler", "Scheduler"):
            from scrapy_rep.waiting.kept_in_redis import KeptInRedis  # noqa: PLC0415 - few crawls need it

            return KeptInRedis(crawler, scheduler)
        if queues.on_disk is not None:
            from scrapy_rep.waiting.kept_in_jobdir import KeptInJobdir  # noqa: PLC0415 - it imports sqlite3

            return KeptInJobdir(crawler)
    except Exception as exc:  # noqa: BLE001 - a queue class of the user's own, or a file that cannot be made
        logger_of(crawler).warning(KILLED_LOSES, exc)
    # Requests are lost with the process in any case, or nothing is known of the queue.
    return Keeper(crawler)
