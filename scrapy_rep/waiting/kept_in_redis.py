"""With scrapy-redis, requests that wait for a robots.txt are kept in Redis: if a crawler is killed, others fetch them.

scrapy-redis removes a request from Redis when it hands it out. While such a request waits here, a copy of it is in a
hash of this crawler, `QUEUE:waiting:CRAWLER`. The sorted set `QUEUE:waiting` has the crawlers that keep some, each with
the time until which it counts as alive. The others put a dead one's requests back into the queue.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.request import request_from_dict

from scrapy_rep.scrapy_internals.engine_state import look_for_requests

logger = logging.getLogger("scrapy_rep")

ALIVE = 10  # seconds from a sign of life, after which a crawler is late
PULSE = 2.0  # seconds between two signs of life
KILLED_LOSES = "If this crawler is killed, requests that wait for a robots.txt are lost: %s"


class WaitingInRedis:
    """A failure of Redis loses this safety, and nothing else."""

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler`: open, and scrapy-redis's."""
        self._crawler = crawler
        self._queue = scheduler.queue
        self._redis = scheduler.queue.server
        self._keepers = f"{scheduler.queue.key}:waiting"
        self._name = uuid4().hex
        self._fields: WeakKeyDictionary[Request, int] = WeakKeyDictionary()
        self._next_field = count()
        self._others_keep_some = self._has_warned = False
        self._late_since: dict[str, float] = {}
        if scheduler.flush_on_start:
            with self._failing_softly():
                self._delete(self._crawlers())
        crawler.signals.connect(self._idle, signal=signals.spider_idle)
        self._pulse = create_looping_call(self._beat)
        self._pulse.start(PULSE)

    def keep(self, request: Request) -> None:
        """The request waits from now on."""
        with self._failing_softly():
            is_first = not self._fields
            self._fields[request] = field = next(self._next_field)
            self._redis.hset(self._hash(self._name), str(field), self._encoded(request))
            if is_first:
                self._show_life()

    def forget(self, requests: Iterable[Request]) -> None:
        """The requests wait no longer."""
        fields = [str(self._fields.pop(request)) for request in requests if request in self._fields]
        if fields:
            with self._failing_softly():
                self._redis.hdel(self._hash(self._name), *fields)
                if not self._fields:
                    self._redis.zrem(self._keepers, self._name)

    def close(self) -> None:
        """From now on this crawler counts as dead: others put back what it has not forgotten."""
        self._pulse.stop()

    # Signs of life.

    def _beat(self) -> None:
        with self._failing_softly():
            if self._fields:
                self._show_life()
            dead = self._dead()
            # One crawler at a time, or a request would come back twice.
            if dead and self._redis.set(f"{self._keepers}:taking-over", self._name, nx=True, ex=ALIVE):
                self._take_over(dead)
            self._others_keep_some = bool(set(self._crawlers()) - {self._name})

    def _dead(self) -> list[str]:
        """Crawlers that were late at the last look and still are. After Redis has hung, all are late once."""
        now = monotonic()
        self._late_since = {name: self._late_since.get(name, now) for name in self._crawlers(until=self._now())}
        return [name for name, since in self._late_since.items() if now - since > PULSE / 2]

    def _take_over(self, dead: list[str]) -> None:
        requests = [copy for name in dead for copy in self._redis.hvals(self._hash(name))]
        for request in filter(None, map(self._decoded, requests)):
            self._queue.push(request)
        # Only now: if this crawler is killed meanwhile, a request comes back twice, and none is lost.
        self._delete(dead)
        self._redis.delete(f"{self._keepers}:taking-over")
        if requests:  # else another crawler was faster
            logger.warning(
                "Requests that waited for a robots.txt in crawlers that are gone, back in the queue: %d", len(requests)
            )
        look_for_requests(self._crawler)

    def _idle(self) -> None:
        """Requests that wait in other crawlers will come back to the queue, so this crawler stays."""
        if self._others_keep_some:
            raise DontCloseSpider

    # Redis.

    def _hash(self, name: str) -> str:
        return f"{self._keepers}:{name}"

    def _now(self) -> int:
        """By the clock of Redis, which all crawlers share."""
        return int(self._redis.time()[0])

    def _show_life(self) -> None:
        self._redis.zadd(self._keepers, {self._name: self._now() + ALIVE})

    def _crawlers(self, until: float = float("inf")) -> list[str]:
        names = self._redis.zrangebyscore(self._keepers, "-inf", until)
        return [name if isinstance(name, str) else name.decode() for name in names]

    def _delete(self, names: list[str]) -> None:
        for name in names:
            self._redis.delete(self._hash(name))
            self._redis.zrem(self._keepers, name)

    def _encoded(self, request: Request) -> Any:
        return self._queue.serializer.dumps(request.to_dict(spider=self._queue.spider))

    def _decoded(self, copy: Any) -> Request | None:
        try:
            return request_from_dict(self._queue.serializer.loads(copy), spider=self._queue.spider)
        except Exception:
            logger.exception("A request that waited for a robots.txt in another crawler cannot be read")
            return None

    @contextmanager
    def _failing_softly(self) -> Iterator[None]:
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - redis's, or of the serializer in use
            if not self._has_warned:
                self._has_warned = True
                logger.warning(KILLED_LOSES, exc)


def waiting_in_redis(crawler: Crawler, scheduler: Any) -> WaitingInRedis | None:
    """None if the scheduler is not scrapy-redis's, or has a queue of another kind."""
    # It is not imported here: a crawl that uses it has done so.
    its_class: Any = getattr(sys.modules.get("scrapy_redis.scheduler"), "Scheduler", None)
    # Not `isinstance`, by which Scrapy takes any class with a scheduler's methods for one of its own.
    if its_class not in type(scheduler).__mro__:
        return None
    try:
        return WaitingInRedis(crawler, scheduler)
    except AttributeError as exc:  # a queue class of the user's own
        logger.warning(KILLED_LOSES, exc)
        return None
