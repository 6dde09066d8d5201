"""Copies of the requests that wait for a robots.txt, so that a killed process does not lose the requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from scrapy_rep.log import logger_of

COPIES_FAILED = "If this crawler is killed, requests that wait for a robots.txt are lost: %s"


class KeptCopies:
    """Keeps no copies. Its subclasses do. If they fail, they log a warning once, and the crawl goes on."""

    _has_warned = False

    def __init__(self, crawler: Crawler) -> None:
        self._log = logger_of(crawler)
        self._spider = crawler.spider

    def keep(self, request: Request) -> None:
        """Keep a copy of the request, which has left its queue."""

    def delete(self, request: Request) -> None:
        """Delete the copy of the request, if there is one: the request has gone on, or is safe in its queue."""

    def left_over(self) -> list[Request]:
        """Return the requests that waited when this job was killed, in their order. Their copies stay until `delete`.

        With scrapy-redis, the list is empty: other crawlers put such requests back into the queue.
        """
        return []

    def close(self) -> None:
        """The crawl ends. The copies that are left are for a later crawl or for other crawlers."""

    @contextmanager
    def _failing_softly(self) -> Iterator[None]:
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - the database may raise it, or the code that serialises a request
            self._warn(exc)

    def _warn(self, exc: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._log.warning(COPIES_FAILED, exc)

    def _request_of(self, copy: bytes, loads: Callable[[bytes], Any], where: str) -> Request | None:
        try:
            return request_from_dict(loads(copy), spider=self._spider)
        except Exception:  # noqa: BLE001 - it is logged
            self._log.exception("A request that waited for a robots.txt %s cannot be read", where)
            return None
