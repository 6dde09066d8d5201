"""Copies of the requests that wait for a robots.txt, so that these are not lost if the process is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import request_from_dict

from scrapy_rep.log import logger_of

KILLED_LOSES = "If this crawler is killed, requests that wait for a robots.txt are lost: %s"


class Keeper:
    """Keeps nothing. Those derived from it keep a copy of each request that has left its queue and waits; if they fail,
    only this safety is lost."""

    _has_warned = False

    def __init__(self, crawler: Crawler) -> None:
        self._log = logger_of(crawler)
        self._spider = crawler.spider

    def keep(self, request: Request) -> None:
        """The request waits from now on."""

    def forget(self, request: Request) -> None:
        """The request has gone on, or is back in its queue for good. It need not be one that is kept."""

    def left_over(self) -> list[Request]:
        """The requests that a killed crawl of this job has left, in their order. They stay kept until `forget`. None
        where other crawlers take such requests over while they run (scrapy-redis)."""
        return []

    def close(self) -> None:
        """The crawl ends. What is still kept has to be found later."""

    @contextmanager
    def _failing_softly(self) -> Iterator[None]:
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - of a database, or of what writes a request
            self._warn(exc)

    def _warn(self, exc: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._log.warning(KILLED_LOSES, exc)

    def _request_of(self, copy: bytes, loads: Callable[[bytes], Any], where: str) -> Request | None:
        try:
            return request_from_dict(loads(copy), spider=self._spider)
        except Exception:  # noqa: BLE001 - it is logged
            self._log.exception("A request that waited for a robots.txt %s cannot be read", where)
            return None
