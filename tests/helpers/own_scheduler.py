"""Schedulers that keep requests in a backend, an SQLite file that outlives the crawl.

`OwnScheduler` derives from BaseScheduler, as frontera's; `DerivedScheduler` from Scheduler, as scrapy-frontera's.
`KeepsTheRest` uses its backend only when it opens and closes.
"""

from __future__ import annotations

import pickle
import sqlite3

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

MAX_IN_MEMORY = 4


class Backend:
    def __init__(self, file: str, spider: Spider) -> None:
        self._spider = spider
        self._file = sqlite3.connect(file, isolation_level=None)
        self._file.execute("CREATE TABLE IF NOT EXISTS requests (number INTEGER PRIMARY KEY, request BLOB)")

    def put(self, request: Request) -> None:
        row = (pickle.dumps(request.to_dict(spider=self._spider)),)
        self._file.execute("INSERT INTO requests (request) VALUES (?)", row)

    def take(self) -> Request | None:
        rows = self._file.execute(
            "DELETE FROM requests WHERE number = (SELECT min(number) FROM requests) RETURNING request"
        ).fetchall()
        return request_from_dict(pickle.loads(rows[0][0]), spider=self._spider) if rows else None

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM requests").fetchone()[0])


class OwnScheduler(BaseScheduler):
    def __init__(self, file: str) -> None:
        self._path = file

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OwnScheduler:
        return cls(crawler.settings["BACKEND_FILE"])

    def open(self, spider: Spider) -> None:
        self._backend = Backend(self._path, spider)

    def enqueue_request(self, request: Request) -> bool:
        self._backend.put(request)
        return True

    def next_request(self) -> Request | None:
        return self._backend.take()

    def has_pending_requests(self) -> bool:
        return len(self._backend) > 0


class ReturnsNone(OwnScheduler):
    """Like scrapy-cluster's scheduler: `enqueue_request` does not return whether it accepted the request."""

    def enqueue_request(self, request: Request) -> bool:
        return super().enqueue_request(request) and None  # type: ignore[return-value]


class DerivedScheduler(Scheduler):
    """Takes requests from its backend only while its own queue is empty."""

    _backend: Backend

    def open(self, spider: Spider) -> None:
        super().open(spider)
        assert spider.crawler is not None
        self._backend = Backend(spider.settings["BACKEND_FILE"], spider)

    def close(self, reason: str) -> None:
        while (request := super().next_request()) is not None:
            self._backend.put(request)

    def enqueue_request(self, request: Request) -> bool:
        if request.meta.get("is_start_request") and not request.dont_filter:
            self._backend.put(request)
            return True
        return super().enqueue_request(request)

    def next_request(self) -> Request | None:
        if not self.has_pending_requests():
            for _ in range(MAX_IN_MEMORY):
                request = self._backend.take()
                if request is not None:
                    super().enqueue_request(request.replace(dont_filter=True))
        return super().next_request()


class KeepsTheRest(Scheduler):
    """Takes the requests that are left out of its own queue when it closes, and puts them into its backend."""

    _backend: Backend

    def open(self, spider: Spider) -> None:
        super().open(spider)
        self._backend = Backend(spider.settings["BACKEND_FILE"], spider)
        while (request := self._backend.take()) is not None:
            self.enqueue_request(request)

    def close(self, reason: str) -> None:
        while self.has_pending_requests():
            request = self.next_request()
            if request is not None:
                self._backend.put(request)
