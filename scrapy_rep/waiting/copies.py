"""Copies, on disk or in Redis, of the requests that wait at the scheduler: after a kill, they come back.

If the process is killed, these requests are not lost. A request that waits in the downloader has no copy.

Scrapy and scrapy-redis remove a request from their queue when they hand it out:

- With a JOBDIR, the copies are in its SQLite file `requests.waiting`. A copy stays there until the engine gets the
  request, or until the request is back in the queue on disk and that queue is closed. If the process is killed, the
  crawl that resumes the job reads the copies.
- With scrapy-redis, the copies are in Redis, in the hash of their crawler, `QUEUE:waiting:CRAWLER`. The set
  `QUEUE:waiting` has the names of these hashes. As a sign of life, each crawler with copies renews the key
  `QUEUE:waiting:CRAWLER:alive` before it expires. If a crawler is killed, another crawler puts the requests of that
  crawler back into the queue.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.job import job_dir
from scrapy.utils.request import request_from_dict

from scrapy_rep.log import logger_of
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.words import counted
from scrapy_rep.scrapy_internals.engine_state import look_for_requests

COPIES_FAILED = "If this crawler is killed, requests that wait for a robots.txt are lost: %s"


class KeptCopies:
    """Keeps no copies. Its subclasses do. If a subclass fails, it logs one warning, and the crawl goes on."""

    _has_warned = False

    def __init__(self, crawler: Crawler) -> None:
        self._log = logger_of(crawler)
        self._spider = crawler.spider

    def keep(self, request: Request) -> None:
        """Keep a copy of the request, which has left its queue."""

    def delete(self, request: Request) -> None:
        """Delete the copy of the request, if there is one: the engine has the request, or its queue has it again."""

    def left_over(self) -> list[Request]:
        """Return the requests that were at the door when this job was killed, in order. `delete` deletes their copies.

        With scrapy-redis, the list is empty: other crawlers put such requests back into the queue.
        """
        return []

    def close(self) -> None:
        """The crawl ends. The copies that are left are for a later crawl, or for other crawlers."""

    @contextmanager
    def _failing_softly(self) -> Iterator[None]:
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - the database may raise it, or the code that serialises a request
            if not self._has_warned:
                self._has_warned = True
                self._log.warning(COPIES_FAILED, printable(str(exc)))

    def _request_of(self, copy: bytes, loads: Callable[[bytes], Any]) -> Request | None:
        try:
            return request_from_dict(loads(copy), spider=self._spider)
        except Exception:  # noqa: BLE001 - it is logged
            self._log.exception("A copy of a request that waited for robots.txt cannot be read, so the request is lost")
            return None


FILE = "requests.waiting"
LOCKED = 1.0  # seconds that a call waits if another program has locked the file. The event loop waits, too.


class KeptInJobdir(KeptCopies):
    """After its first failure, nothing more is written."""

    def __init__(self, crawler: Crawler) -> None:
        """Raises sqlite3.Error."""
        import sqlite3  # noqa: PLC0415 - few crawls have a JOBDIR

        super().__init__(crawler)
        self._path = Path(job_dir(crawler.settings) or "", FILE)
        self._numbers: dict[Request, int | None] = {}
        """The requests whose copies are needed, and the numbers of the copies."""
        self._file = sqlite3.connect(self._path, isolation_level=None, timeout=LOCKED)
        # With these, a killed process loses nothing. A machine that loses its power may lose copies.
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, request BLOB)")
        for number, copy in self._file.execute("SELECT number, request FROM waiting ORDER BY number").fetchall():
            request = self._request_of(copy, pickle.loads)
            if request is not None:
                self._numbers[request] = number
            else:
                self._file.execute("DELETE FROM waiting WHERE number = ?", (number,))

    def keep(self, request: Request) -> None:
        if request in self._numbers or self._has_warned:
            return
        with self._failing_softly():
            # The format is that of Scrapy's own queue on disk.
            copy = pickle.dumps(request.to_dict(spider=self._spider), protocol=4)
            self._numbers[request] = self._file.execute("INSERT INTO waiting (request) VALUES (?)", (copy,)).lastrowid

    def delete(self, request: Request) -> None:
        number = self._numbers.pop(request, None)
        if number is not None and not self._has_warned:
            with self._failing_softly():
                self._file.execute("DELETE FROM waiting WHERE number = ?", (number,))

    def left_over(self) -> list[Request]:
        return list(self._numbers)

    def close(self) -> None:
        with self._failing_softly():
            self._file.close()
            if not self._numbers:  # after a failure, copies that are no longer needed may still be in the file
                self._path.unlink()


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
        self._late_since: dict[bytes, float] = {}  # crawler -> when its sign of life was first missing
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
        """Stop the signs of life. Ten to fourteen seconds later, another crawler puts the requests back."""
        self._pulse.stop()

    def _beat(self) -> None:
        from redis.exceptions import LockError  # noqa: PLC0415 - scrapy-redis needs redis-py

        seen_late, self._late_since = self._late_since, {}  # if Redis fails now, no crawler counts as late
        with self._failing_softly():
            self._delete_copies()
            if self._fields:
                self._show_life()
            others = self._hashes() - {self._own}
            self._others_keep_some = bool(others)
            late = [name for name in others if not self._redis.exists(_alive(name))]
            now = monotonic()  # Redis may have hung before it answered
            if not late:
                return
            # The lock keeps two crawlers from putting back the same request. LockError: another crawler has the lock.
            # If Redis refuses writes, a crawler without a sign of life may be alive. Then there is another error, and
            # nothing is put back.
            with suppress(LockError), self._redis.lock(self._lock, timeout=ALIVE, blocking_timeout=0):
                self._late_since = {name: seen_late.get(name, now) for name in late}
                # A crawler is dead only if it is late in two beats. If Redis hung, the signs of all crawlers have
                # expired. Live ones renew them within a beat.
                self._take_over([name for name, since in self._late_since.items() if now - since > PULSE / 2])
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
        end, number = monotonic() + LONGEST, 0
        try:
            for name, field, copy in self._copies_of(dead):
                request = self._request_of(copy, self._queue.serializer.loads)
                if request is not None:
                    self._queue.push(request)
                    number += 1
                # The copy is deleted last. After a kill in between, the request comes back twice; it is never lost.
                self._redis.hdel(name, field)
                if monotonic() > end:
                    return
        finally:
            if number:
                self._log.warning("Put %s of killed crawlers back into the queue", counted(number, "request"))

    def _copies_of(self, names: list[bytes]) -> Iterator[tuple[bytes, Any, Any]]:
        """Yield the copies of these crawlers: the hash, the field and the copy. The caller deletes each copy."""
        from redis.exceptions import ResponseError  # noqa: PLC0415 - scrapy-redis needs redis-py

        for name in names:
            try:
                copies = self._redis.hgetall(name)
            except ResponseError as exc:  # another program has put the name there, or something else under its key
                self._redis.srem(self._keepers, name)
                self._log.warning(
                    "The waiting requests of another crawler cannot be put back into the queue (%s: %s). The crawl goes"
                    " on without them",
                    printable(name.decode(errors="replace")),
                    printable(f"{type(exc).__name__}: {exc}"),
                )
                continue
            for field, copy in copies.items():
                yield name, field, copy
            self._delete_hash(name)

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
