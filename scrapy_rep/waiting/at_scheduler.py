"""Where requests wait for a robots.txt: at the scheduler's door, where the engine asks for the next request.

A request that waits here has left its queue, has passed no downloader middleware, and does not count against
CONCURRENT_REQUESTS.

1. The engine asks for a request, and the door takes the next one out of the queue. If no robots.txt applies to the
   request, or if its origin is known, the engine gets it.
2. Else the request waits, and the origin's robots.txt is fetched (`cache.origin_fetch`) unless that is under way. Then
   the door takes the next request, as long as one more fetch would begin soon: while fewer than twice
   REP_FETCH_CONCURRENCY fetches are under way or wait for their turn, not counting those that are slow or repeated
   (`fetching.turns`). When none would, the door takes from Scrapy's default queue (`DownloaderAwarePriorityQueue`) as
   long as that has requests to sites that have been asked before and that no request here waits for: usually these
   come out first. Of another queue nobody knows what comes next, so the door takes nothing.
3. REP_WAITING_MAX limits how many requests are here. Not counted are one waiting request for each origin, and one ready
   request for each site. At the limit it depends on the queue. From Scrapy's queue in memory the door goes on taking:
   its requests take no more memory here than there. From Scrapy's queue on disk it still takes the next request: if its
   origin is known, the engine gets it; if others wait for the origin already, it goes back to the disk; else it waits.
   From the queue of another package's scheduler the door takes nothing.
4. The fetch has ended, whatever it has brought: the requests to its origin are ready. The engine gets them by turns, a
   request to each site that has room in the downloader (a site is a host, usually, and may have many origins), and in
   between requests from the queue. `RepMiddleware` decides about them like about any other request, by the policy in
   memory. If the policy is no longer there (forgotten for want of memory, or its time is over), the requests wait
   again, for another fetch, as soon as no other ready request can go on.
5. If the crawl closes first, the requests that are here go back to their queue. If the process is killed, copies of
   those from disk or from scrapy-redis survive (`kept_copies`): the crawl that resumes the JOBDIR puts them back when
   it opens; with scrapy-redis another crawler does so, some ten seconds later.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any, TypeVar
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.cache.resolver import Resolver
from scrapy_rep.gate import Gate
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.engine_state import look_for_requests, scheduler_of
from scrapy_rep.scrapy_internals.scheduler_queues import SchedulerQueues
from scrapy_rep.waiting.kept_copies import KILLED_LOSES, Keeper
from scrapy_rep.waiting.waiting_log import Wait, Waits

K = TypeVar("K")
V = TypeVar("V")

MAX_SECONDS = 0.005  # for one call of the engine's, while all requests that the queue hands out have to wait
MAX_READY = 100  # sites with ready requests; from this number on, these requests always go before the queue's
# Meta key of a request that goes back to a scheduler that is not Scrapy's own: `dont_filter` was False.
PUT_BACK = "rep_put_back"
# Seconds that a queue may take to fail. After that it is not asked to take back other requests: each may take as long.
MAX_FAILING = 5.0


class SchedulerDoor:
    """Wraps the `next_request`, `has_pending_requests` and `close` of the crawl's scheduler, whatever its class."""

    def __init__(self, crawler: Crawler, max_waiting: int, gate: Gate, resolver: Resolver, waits: Waits) -> None:
        """`max_waiting`: REP_WAITING_MAX. With 0, requests wait in the downloader."""
        self._crawler = crawler
        self._log = logger_of(crawler)
        self._max_waiting = max_waiting
        self._gate = gate
        self._resolver = resolver
        self._waits = waits
        self._monotonic = waits.monotonic
        self._waiting: dict[Origin, list[Wait]] = {}
        self._ready: OrderedDict[str, OrderedDict[Origin, deque[Wait]]] = OrderedDict()
        """By their site: the waits that have ended, whose requests may go on."""
        self._here: dict[Wait, None] = {}
        """All requests that wait or are ready, in the order in which they left the queue."""
        self._is_turn_of_queue = False
        self._handed_out: WeakSet[Request] = WeakSet()
        self._is_open = False
        self._is_queue_working = False
        self._keeper = Keeper(crawler)

    def open(self) -> None:
        """From now on requests wait here, unless none may or the scheduler cannot be wrapped."""
        scheduler: Any = scheduler_of(self._crawler)
        if _is_of(scheduler, "apify.scrapy.scheduler", "ApifyScheduler"):
            self._log.warning(
                "REP_WAITING_MAX counts as 0 with Apify's scheduler, which takes requests that are not in the"
                " downloader for done: requests that wait for a robots.txt count against CONCURRENT_REQUESTS"
            )
            self._max_waiting = 0
        try:
            self._next_of_queue = scheduler.next_request
            self._queue_has_pending = scheduler.has_pending_requests
            self._enqueue = scheduler.enqueue_request
            self._close_queue = scheduler.close
            scheduler.next_request = self._next_request
            scheduler.has_pending_requests = self._has_pending_requests
            scheduler.close = self._close
            self._is_open = True
        except AttributeError as exc:
            self._log.warning(
                "Requests that wait for a robots.txt count against CONCURRENT_REQUESTS in this crawl: the scheduler's"
                " methods cannot be replaced (%s)",
                exc,
            )
            return
        self._queues = SchedulerQueues(self._crawler, scheduler)
        self._keeper = _keeper(self._crawler, scheduler, self._queues)
        left_over = self._keeper.left_over()
        if left_over:
            self._log.info("Requests that waited for a robots.txt when this job was killed: %d", len(left_over))
            self._put_back(left_over)

    def never_saw(self, request: Request) -> bool:
        """Whether the request came to the downloader by another way, past the engine's check of CONCURRENT_REQUESTS."""
        return self._is_open and request not in self._handed_out

    def take_back(self, request: Request) -> bool:
        """The crawl closes: whether a request that was handed out is in the queue again."""
        return self._is_open and request in self._handed_out and self._put_back([request])

    # The scheduler's methods.

    def _next_request(self) -> Request | None:
        if self._is_turn_of_queue and len(self._ready) < MAX_READY:
            request = self._from_queue() or self._from_here()
            self._is_turn_of_queue = False
        else:
            request = self._from_here() or self._from_queue()
            self._is_turn_of_queue = True
        if request is not None:
            self._keeper.forget(request)
            self._handed_out.add(request)
        return request

    def _has_pending_requests(self) -> bool:
        # A scheduler that asks itself, as scrapy-frontera's does, means its own queue.
        return (bool(self._here) and not self._is_queue_working) or bool(self._queue_has_pending())

    def _close(self, reason: str) -> Any:
        """What is here goes back first: what the scheduler keeps beyond the crawl, it keeps of these, too."""
        self._put_back([wait.request for wait in self._here])
        self._keeper.close()
        return self._close_queue(reason)

    # What the engine gets.

    def _from_queue(self) -> Request | None:
        """The queue's next request that need not wait. Those before it begin to."""
        if not self._max_waiting:
            return self._taken_from_queue()
        until = self._monotonic() + MAX_SECONDS
        while self._queues.is_next_of_use(has_room=self._resolver.has_room()):
            is_from_memory = self._queues.is_next_from_memory()
            counted = len(self._here) - len(self._waiting) - len(self._ready)
            is_full = not is_from_memory and counted >= self._max_waiting
            if is_full and self._queues.on_disk is None:
                return None
            request = self._taken_from_queue()
            origin = self._gate.origin_to_await(request) if request is not None else None
            if request is None or origin is None:
                return request
            # It goes back to the disk, and Scrapy's default queue hands out requests to other hosts next.
            if is_full and origin in self._waiting:
                self._queues.leave_on_disk(request)
                return None
            if not is_from_memory:
                self._keeper.keep(request)
            wait = self._waits.begin(request, origin)
            self._here[wait] = None
            self._wait(wait)
            if self._monotonic() >= until:
                look_for_requests(self._crawler)
                break
        return None

    def _taken_from_queue(self) -> Request | None:
        self._is_queue_working = True
        try:
            request: Request | None = self._next_of_queue()
        finally:
            self._is_queue_working = False
        if request is not None and request.meta.pop(PUT_BACK, False):
            request.dont_filter = False
        return request

    def _from_here(self) -> Request | None:
        """The next request that is ready and has room in the downloader: one to each site by turns."""
        undecided = []
        for site, of_site in _by_turns(self._ready):
            if not self._queues.has_room(site, self._handed_out):
                continue
            for origin, waits in _by_turns(of_site):
                wait = waits[0]
                if self._gate.origin_to_await(wait.request) is not None:
                    undecided.append((site, origin))
                    continue
                waits.popleft()
                if not waits:
                    self._take_out(site, origin)
                del self._here[wait]
                self._gate.hits -= 1  # it is about to be counted as decided at once, but it has waited
                self._waits.went_on(wait)
                return wait.request
        # Only if no other ready request can go on: else origins would push each other out of memory without an end.
        for site, origin in undecided:
            for wait in self._take_out(site, origin):
                self._waits.begin_again(wait)
                self._wait(wait)
        return None

    def _take_out(self, site: str, origin: Origin) -> deque[Wait]:
        """What is ready of this origin at this site, which leaves the door or waits again."""
        waits = self._ready[site].pop(origin)
        if not self._ready[site]:
            del self._ready[site]
        return waits

    # Waiting.

    def _wait(self, wait: Wait) -> None:
        self._queues.begin_to_wait(wait.request)
        if wait.origin in self._waiting:
            self._waiting[wait.origin].append(wait)
            return
        self._waiting[wait.origin] = [wait]
        fetched = self._resolver.resolve(wait.origin, wait.request)
        # It fails only if the crawl closes; then `_close` puts the request back.
        fetched.addCallbacks(self._release, lambda _closing: None, (wait.origin,))

    def _release(self, _policy: object, origin: Origin) -> None:
        """Its fetch has ended, with an answer or without. Memory has the policy."""
        for wait in sorted(self._waiting.pop(origin), key=lambda wait: -wait.request.priority):
            self._waits.end(wait)
            self._queues.end_to_wait(wait.request)
            of_site = self._ready.setdefault(self._queues.site_of(wait.request), OrderedDict())
            of_site.setdefault(origin, deque()).append(wait)
        look_for_requests(self._crawler)

    # The crawl closes.

    def _put_back(self, requests: list[Request]) -> bool:
        """Whether the queue took back all of them."""
        number, seconds_failing, error = 0, 0.0, None
        for request in _in_order(requests):
            began = self._monotonic()
            try:
                if seconds_failing <= MAX_FAILING and self._is_taken_back(request):
                    self._keeper.forget(request)
                    number += 1
                    continue
            except Exception as exc:  # noqa: BLE001 - of any scheduler
                error = error or exc
            seconds_failing += self._monotonic() - began
        if number < len(requests):
            self._log.error(
                "The scheduler has not taken back %d of %d requests that waited for a robots.txt; its first error: %r",
                len(requests) - number,
                len(requests),
                error,
            )
        return number == len(requests)

    def _is_taken_back(self, request: Request) -> bool:
        if self._queues.in_memory is not None:
            self._queues.put_back(request)
            return True
        if not request.dont_filter:
            request.dont_filter = request.meta[PUT_BACK] = True  # the duplicate filter has seen it
        # Some schedulers return None.
        return self._enqueue(request) is not False


def _by_turns(items: OrderedDict[K, V]) -> Iterator[tuple[K, V]]:
    """Each item once. It goes to the end as it comes, so that next time the items after it come first."""
    for _ in range(len(items)):
        key = next(iter(items))
        items.move_to_end(key)
        yield key, items[key]


def _in_order(requests: list[Request]) -> list[Request]:
    """The order in which to put them back, so that they come out as they did before: Scrapy's queue for start requests
    is first in, first out, its queue for all others last in, first out."""
    starts = [request for request in requests if request.meta.get("is_start_request")]
    return starts + [request for request in reversed(requests) if not request.meta.get("is_start_request")]


def _keeper(crawler: Crawler, scheduler: Any, queues: SchedulerQueues) -> Keeper:
    try:
        if _is_of(scheduler, "scrapy_redis.scheduler", "Scheduler"):
            from scrapy_rep.waiting.kept_in_redis import KeptInRedis  # noqa: PLC0415 - few crawls need it

            return KeptInRedis(crawler, scheduler)
        if queues.on_disk is not None:
            from scrapy_rep.waiting.kept_in_jobdir import KeptInJobdir  # noqa: PLC0415 - it imports sqlite3

            return KeptInJobdir(crawler)
    except Exception as exc:  # noqa: BLE001 - a queue class of the user's own, or a file that cannot be made
        logger_of(crawler).warning(KILLED_LOSES, exc)
    # Requests are lost with the process in any case, or nothing is known of the queue.
    return Keeper(crawler)


def _is_of(scheduler: Any, module: str, name: str) -> bool:
    """Whether it is of this class. The module is not imported: a crawl that uses it has done so."""
    # Not `isinstance`, by which Scrapy takes any class with a scheduler's methods for one of its own.
    return getattr(sys.modules.get(module), name, None) in type(scheduler).__mro__
