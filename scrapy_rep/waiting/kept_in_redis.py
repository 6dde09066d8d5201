"""With scrapy-redis, Redis has copies of the requests at the door. If a crawler is killed, another crawler puts the
requests of that crawler back into the queue.

scrapy-redis removes a request from Redis when it hands the request out. While the request is at the door, a copy is in
the hash of its crawler, `QUEUE:waiting:CRAWLER`. The set `QUEUE:waiting` has the names of these hashes. As a sign of
life, each crawler with copies renews the key `QUEUE:waiting:CRAWLER:alive` before it expires.
"""

from __future__ import annotations

from itertools import count
from time import monotonic
from typing import Any
from uuid import uuid4

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.asyncio import create_looping_call

from scrapy_rep.scrapy_internals.engine_state import look_for_requests
from scrapy_rep.text import counted, printable
from scrapy_rep.waiting.kept_copies import KeptCopies

ALIVE = 10  # seconds until a sign of life expires
PULSE = 2.0  # seconds between two signs of life
LONGEST = 1.0  # seconds that one `_beat` (every PULSE) may spend on putting back requests of other crawlers


class KeptInRedis(KeptCopies):
    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        """`scheduler`: the open scheduler. Raises AttributeError if its queue is not one of scrapy-redis."""
        super().__init__(crawler)
        self._crawler = crawler
        self._queue = scheduler.queue
        self._redis = scheduler.queue.server
        self._keepers = f"{scheduler.queue.key}:waiting"
        self._lock = f"{self._keepers}:taking-over"
        self._own = f"{self._keepers}:{uuid4().hex}".encode()
        self._fields: dict[Request, str] = {}
        self._next_field = count()
        self._to_delete: set[str] = set()
        """Fields of copies that are no longer needed, but may still be in Redis."""
        self._others_keep_some = False
        self._number_put_back = 0
        self._late_since: dict[bytes, float] = {}  # crawler -> when its sign of life was first missing
        self._unreadable: set[bytes] = set()
        """Names in the set of hashes whose copies could not be put back. Each beat tries again."""
        if scheduler.flush_on_start:
            with self._failing_softly():
                for name in self._hashes():
                    self._delete_hash(name)
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
                self._redis.hset(self._own, field, copy)

    def delete(self, request: Request) -> None:
        if request in self._fields:
            self._to_delete.add(self._fields.pop(request))
            with self._failing_softly():
                self._delete_copies()

    def close(self) -> None:
        """Stop the signs of life. About ten seconds later, other crawlers put back the requests that are left."""
        self._pulse.stop()

    def _beat(self) -> None:
        seen_late, self._late_since = self._late_since, {}  # if Redis fails now, no crawler counts as late
        with self._failing_softly():
            self._delete_copies()
            if self._fields:
                self._show_life()
            others = self._hashes() - {self._own}
            self._unreadable &= others
            self._others_keep_some = bool(others - self._unreadable)
            late = [name for name in others if not self._redis.exists(_alive(name))]
            now = monotonic()  # Redis may have hung before it answered
            # The lock keeps two crawlers from putting back the same request. If Redis refuses writes, a crawler without
            # a sign of life may be alive. Then `set` raises, and nothing is put back.
            if late and self._redis.set(self._lock, self._own, nx=True, ex=ALIVE):
                self._late_since = {name: seen_late.get(name, now) for name in late}
                # A crawler is dead only if it is late in two beats. After Redis has hung, the signs of life of live
                # crawlers have expired, too, until their next beat.
                self._take_over([name for name, since in self._late_since.items() if now - since > PULSE / 2])
                self._redis.delete(self._lock)
                look_for_requests(self._crawler)

    def _delete_copies(self) -> None:
        """Delete the copies in `_to_delete`. If Redis fails, the next beat tries again, so that no other crawler puts
        the requests back."""
        if self._to_delete:
            self._redis.hdel(self._own, *self._to_delete)
            self._to_delete.clear()
            if not self._fields:
                self._delete_hash(self._own)

    def _take_over(self, dead: list[bytes]) -> None:
        """Put the requests of dead crawlers back into the queue. What is left after LONGEST seconds waits for the next
        beat, so that this crawler shows life in between."""
        end, before = monotonic() + LONGEST, self._number_put_back
        try:
            for name in dead:
                if monotonic() > end:
                    return
                try:
                    self._put_back(name, end)
                    self._unreadable.discard(name)
                except Exception as exc:  # noqa: BLE001 - another program may have put a name or a key there
                    self._warn_unreadable(name, exc)
        finally:
            if number := self._number_put_back - before:
                self._log.warning("Put %s of killed crawlers back into the queue", counted(number, "request"))

    def _put_back(self, name: bytes, end: float) -> None:
        """Put the requests of one dead crawler back into the queue, until the time `end`."""
        for field, copy in self._redis.hgetall(name).items():
            if monotonic() > end:
                return
            request = self._request_of(copy, self._queue.serializer.loads)
            if request is not None:
                self._queue.push(request)
            # The copy is deleted last. After a kill in between, the request comes back twice; it is never lost.
            self._redis.hdel(name, field)
            self._number_put_back += 1
        self._delete_hash(name)

    def _warn_unreadable(self, name: bytes, exc: Exception) -> None:
        if name not in self._unreadable:
            self._unreadable.add(name)
            self._log.warning(
                "The waiting requests of another crawler cannot be put back into the queue (%s: %s). The crawl goes on"
                " without them and retries",
                printable(name.decode(errors="replace")),
                printable(f"{type(exc).__name__}: {exc}"),
            )

    def _idle(self) -> None:
        """Keep the spider open while other crawlers have copies: if they are killed, their requests come back."""
        if self._others_keep_some:
            raise DontCloseSpider

    def _show_life(self) -> None:
        self._redis.set(_alive(self._own), "", ex=ALIVE)
        self._redis.sadd(self._keepers, self._own)

    def _hashes(self) -> set[bytes]:
        names = self._redis.smembers(self._keepers)  # text if the client decodes responses
        return {name.encode() if isinstance(name, str) else name for name in names}

    def _delete_hash(self, name: bytes) -> None:
        self._redis.delete(name, _alive(name))
        self._redis.srem(self._keepers, name)


def _alive(name: bytes) -> bytes:
    """Return the key of a crawler's sign of life."""
    return name + b":alive"
