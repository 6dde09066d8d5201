"""Copies of the requests at the scheduler's door that have left a queue on disk or in Redis.

If the process is killed, these requests are not lost. A request that waits in the downloader has no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from scrapy_rep.log import logger_of
from scrapy_rep.text import printable

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
            self._warn(exc)

    def _warn(self, exc: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._log.warning(COPIES_FAILED, printable(str(exc)))

    def _request_of(self, copy: bytes, loads: Callable[[bytes], Any]) -> Request | None:
        try:
            return request_from_dict(loads(copy), spider=self._spider)
        except Exception:  # noqa: BLE001 - it is logged
            self._log.exception(
                "The copy of a request that waited for a robots.txt cannot be read, so the request is lost"
            )
            return None
