"""With scrapy-redis, copies of the requests that wait for a robots.txt are in Redis: if a crawler is killed, other
crawlers get its requests.

scrapy-redis removes a request from Redis when it hands the request out. While such a request waits here, a copy of the
request is in a hash of this crawler, `QUEUE:waiting:CRAWLER`. The sorted set `QUEUE:waiting` lists the crawlers that
keep copies, each with the time until which it counts as alive. After that time, another crawler puts the requests back
into the queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from time import monotonic
from typing import Any
from uuid import uuid4

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.asyncio import create_looping_call

from scrapy_rep.scrapy_internals.engine_state import look_for_requests
from scrapy_rep.waiting.kept_copies import Keeper

ALIVE = 10  # seconds from a crawler's last sign of life until the crawler is late
PULSE = 2.0  # seconds between two signs of life
LONGEST = 1.0  # seconds, about, that one beat spends on putting back requests of other crawlers


class KeptInRedis(Keeper):
    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler`: that of scrapy-redis, open. Raises AttributeError if its queue is not one of scrapy-redis."""
        super().__init__(crawler)
        self._crawler = crawler
        self._queue = scheduler.queue
        self._redis = scheduler.queue.server
        self._keepers = f"{scheduler.queue.key}:waiting"
        self._lock = f"{self._keepers}:taking-over"
        self._name = uuid4().hex.encode()
        self._fields: dict[Request, str] = {}
        self._next_field = count()
        self._forgotten: set[str] = set()
        """Fields of copies that are no longer needed, but may still be in Redis."""
        self._others_keep_some = False
        self._late_since: dict[bytes, float] = {}
        self._taken_over = 0
        """The number of requests that were put back and are not logged yet."""
        if scheduler.flush_on_start:
            with self._failing_softly():
                self._delete(self._crawlers())
        crawler.signals.connect(self._idle, signal=signals.spider_idle)
        self._pulse = create_looping_call(self._beat)
        self._pulse.start(PULSE)

    def keep(self, request: Request) -> None:
        if request not in self._fields:
            with self._failing_softly():
                if not self._fields:
                    self._show_life()
                self._fields[request] = field = str(next(self._next_field))
                copy = self._queue.serializer.dumps(request.to_dict(spider=self._spider))
                self._redis.hset(self._hash(self._name), field, copy)

    def forget(self, request: Request) -> None:
        if request in self._fields:
            self._forgotten.add(self._fields.pop(request))
            with self._failing_softly():
                self._forget_now()

    def close(self) -> None:
        """Stop the signs of life. About ten seconds later, other crawlers put back the requests that are left."""
        self._pulse.stop()

    # Signs of life.

    def _beat(self) -> None:
        seen_late, self._late_since = self._late_since, {}  # if Redis fails in this beat, nobody was seen late
        with self._failing_softly():
            self._forget_now()
            if self._fields:
                self._show_life()
            late, now = self._late(), monotonic()
            # Only one crawler at a time, or a request would come back twice. If Redis refuses writes, no crawler can
            # show life, and a late one may be alive. `set` then raises, so nothing is put back.
            if late and self._redis.set(self._lock, self._name, nx=True, ex=ALIVE):
                self._late_since = {name: seen_late.get(name, since) for name, since in late.items()}
                # A crawler has to be late in two beats in a row: after Redis has hung, all crawlers are late for one.
                self._take_over([name for name, since in self._late_since.items() if now - since > PULSE / 2])
                self._redis.delete(self._lock)
                look_for_requests(self._crawler)
            self._others_keep_some = bool(set(self._crawlers()) - {self._name})

    def _forget_now(self) -> None:
        """Delete the copies in `_forgotten`. If Redis fails, the next beat tries again: else other crawlers would put
        back requests that have gone on here."""
        if self._forgotten:
            self._redis.hdel(self._hash(self._name), *self._forgotten)
            self._forgotten.clear()
            if not self._fields:
                self._redis.zrem(self._keepers, self._name)

    def _late(self) -> dict[bytes, float]:
        """The other crawlers that are late, and since when, by `monotonic`. If the clock of Redis was set back, the
        times of crawlers are too far in the future: each of these crawlers is late ALIVE seconds from now."""
        by_redis = self._now()
        late, ahead = self._crawlers(until=by_redis), self._crawlers(since=by_redis + ALIVE + PULSE)
        now = monotonic()  # Redis may have hung before it answered
        since = dict.fromkeys(late, now) | dict.fromkeys(ahead, now + ALIVE)
        since.pop(self._name, None)
        return since

    def _take_over(self, dead: list[bytes]) -> None:
        """Put the requests of dead crawlers back into the queue. What is left after LONGEST seconds waits for the next
        beat, so that this crawler shows life in between."""
        began = monotonic()
        for name in dead:
            copies = self._redis.hgetall(self._hash(name)) if self._is_hash(name) else {}
            for field, copy in copies.items():
                if monotonic() - began > LONGEST:
                    return
                request = self._request_of(copy, self._queue.serializer.loads, "in another crawler")
                if request is not None:
                    self._queue.push(request)
                # Not earlier: if this crawler is killed here, the request comes back twice instead of never.
                self._redis.hdel(self._hash(name), field)
                self._taken_over += 1
            self._delete([name])
        if self._taken_over:
            self._log.warning(
                "Requests that waited for a robots.txt in crawlers that are gone, back in the queue: %d",
                self._taken_over,
            )
            self._taken_over = 0

    def _idle(self) -> None:
        """Keep the spider open while requests wait in other crawlers: if those are killed, the requests come back."""
        if self._others_keep_some:
            raise DontCloseSpider

    # Redis.

    def _hash(self, name: bytes) -> bytes:
        return self._keepers.encode() + b":" + name

    def _is_hash(self, name: bytes) -> bool:
        return self._redis.type(self._hash(name)) in {b"hash", "hash"}

    def _now(self) -> int:
        """Seconds since the epoch, by the clock of Redis, which all crawlers share."""
        return int(self._redis.time()[0])

    def _show_life(self) -> None:
        self._redis.zadd(self._keepers, {self._name: self._now() + ALIVE})

    def _crawlers(self, since: float = float("-inf"), until: float = float("inf")) -> list[bytes]:
        names = self._redis.zrangebyscore(self._keepers, since, until)
        return [name.encode() if isinstance(name, str) else name for name in names]

    def _delete(self, names: Iterable[bytes]) -> None:
        for name in names:
            if self._is_hash(name):  # else it is somebody else's
                self._redis.delete(self._hash(name))
            self._redis.zrem(self._keepers, name)
