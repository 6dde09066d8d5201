"""Scrapy's downloader: requests that do not count against CONCURRENT_REQUESTS, its handlers, look-ups of names.

Two changes to Scrapy's aiohttp and httpx handlers, and to those of scrapy-download-handlers-incubator
(`prepare_handlers`):

1. Remove the limit of their connection pools. A pool has CONCURRENT_REQUESTS connections, and the time that a request
   waits for a connection counts against its time-out. Robots.txt fetches that hang would make pages time out. Pages are
   still limited by the downloader, and fetches by REP_FETCH_CONCURRENCY.
2. With aiohttp, send each URL as it was checked against robots.txt. It would rewrite `/%40admin` as `/@admin`.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.http import Request, Response
from scrapy.utils.misc import load_object

from scrapy_rep.log import logger_of
from scrapy_rep.scrapy_internals import warn_missing

PACE_META = ("download_slot",)
"""The request meta that chooses with which requests a request shares limits and delays."""
# The meta of a request that was sent before. A redirect, a retry and `meta=response.meta` keep it, and with it what the
# downloader and middlewares have set. They set that for our request themselves.
_SENT = {"download_latency", "redirect_times", "retry_times"}


def was_sent(request: Request) -> bool:
    """Whether the request, or the one from which it has its meta, was sent before."""
    return not _SENT.isdisjoint(request.meta)


def limit_of_downloader(crawler: Crawler) -> int:
    """Return how many requests Scrapy's downloader allows at a time now: CONCURRENT_REQUESTS, unless another component
    has changed it during the crawl."""
    return getattr(crawler.engine.downloader, "total_concurrency", 0) or sys.maxsize  # 0 means no limit


class UncountedDownloads:
    """Requests that do not count against CONCURRENT_REQUESTS: requests for a robots.txt, and some that wait for one.

    If the project has replaced the downloader's check of its limit, these requests count like any other.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._requests: set[Request] = set()
        self._must_back_out: Callable[[], bool] = bool
        crawler.signals.connect(self._replace_check, signal=signals.spider_opened)

    @contextmanager
    def uncounted(self, request: Request) -> Iterator[None]:
        """Leave the request out of the downloader's check of its limit, until the `with` block ends."""
        self._requests.add(request)
        # A later Scrapy may reckon with a size for each request, and limit their sum. A robots.txt is small.
        manager = getattr(self._crawler.engine.downloader, "middleware", None)
        getattr(manager, "_rough_sizes", {}).setdefault(request, 0)
        try:
            yield
        finally:
            self._requests.discard(request)

    def back_out_when(self, must_back_out: Callable[[], bool]) -> None:
        """Make the engine take no requests from the scheduler while `must_back_out` returns True, as if the downloader
        were full. `must_back_out` is called only while the downloader has room."""
        self._must_back_out = must_back_out

    def _replace_check(self) -> None:
        downloader: Any = self._crawler.engine.downloader
        is_scrapys = getattr(type(downloader), "needs_backout", None) is getattr(Downloader, "needs_backout", ...)
        if is_scrapys and hasattr(downloader, "active") and hasattr(downloader, "total_concurrency"):
            downloader.needs_backout = self._needs_backout
        else:
            warn_missing(self._crawler, "Downloader.needs_backout")

    def _needs_backout(self) -> bool:
        """Ask Scrapy's method, so that all its reasons count, with a limit that is higher by the uncounted requests."""
        downloader = self._crawler.engine.downloader
        total = downloader.total_concurrency
        if 0 < total <= len(downloader.active):  # 0 means no limit
            downloader.total_concurrency += len(self._requests & downloader.active)
        must_back_out: bool = Downloader.needs_backout(downloader)
        downloader.total_concurrency = total  # not raised for longer, because other components may set it, too
        return must_back_out or self._must_back_out()


Call = Callable[[], Coroutine[Any, Any, Response]]
"""The call of a download handler."""


def wrap_handlers(crawler: Crawler, wrap: Callable[[Request, Call], Coroutine[Any, Any, Response]]) -> bool:
    """Await `wrap(request, call)` in place of `call()`, when the request leaves the queue of its slot. Returns False if
    that is impossible."""
    handlers: Any = getattr(crawler.engine.downloader, "handlers", None)
    download = getattr(handlers, "download_request_async", None)
    if download is None:
        warn_missing(crawler, "DownloadHandlers.download_request_async")
    else:
        handlers.download_request_async = lambda request: wrap(request, partial(download, request))
    return download is not None


def do_look_ups_wait() -> bool:
    """Whether look-ups of names wait for a thread: of Twisted's reactor or, with aiohttp and httpx, of asyncio's loop.
    False if the pools of threads cannot be read."""
    reactor: Any = sys.modules.get("twisted.internet.reactor")  # importing it would install a reactor
    loop: Any = asyncio._get_running_loop()  # noqa: SLF001 - None without a loop, as with another reactor
    team = getattr(reactor.getThreadPool(), "_team", None) if hasattr(reactor, "getThreadPool") else None
    calls = getattr(getattr(loop, "_default_executor", None), "_work_queue", None)
    return (team is not None and team.statistics().backloggedWorkCount > 0) or (calls is not None and calls.qsize() > 0)


# A WARNING about a handler whose pool may have only CONCURRENT_REQUESTS connections.
LIMITED = "%s: hosts that never answer may keep its connections. Lower REP_FETCH_TIMEOUT, or use another handler"
# The base class of Scrapy's own handlers by other libraries than Twisted, and of those in the package
# scrapy-download-handlers-incubator.
_BASE = "BaseStreamingDownloadHandler"
_HTTPX_OF_2_15 = {"HttpxDownloadHandler", "BaseHttpDownloadHandler"}  # in Scrapy 2.15, it had another base class


def prepare_handlers(crawler: Crawler) -> None:
    """Change the handlers that the crawl uses. Call this before the first request."""
    handlers: Any = getattr(crawler.engine.downloader, "handlers", None)
    settings, limited = crawler.settings.getwithbase("DOWNLOAD_HANDLERS"), set()
    for scheme in ("http", "https"):
        names = _names_of_bases(settings.get(scheme))
        prepare = next((_PREPARE[name] for name in names if name in _PREPARE), None)
        if prepare is not None:
            handler = getattr(handlers, "_get_handler", lambda _scheme: handlers)(scheme)
            if handler is not None:  # if it is None, Scrapy has logged why
                prepare(crawler, handler)
        elif names:
            limited.add(names[0])
    for name in limited:
        logger_of(crawler).warning(LIMITED, name)


def _names_of_bases(handler: Any) -> list[str]:
    """Return the names of a handler's class and its base classes; empty if the class is of another kind, or cannot be
    imported."""
    names: list[str] = []
    with suppress(Exception):  # Scrapy logs the error itself when it needs the handler
        names += [cls.__name__ for cls in load_object(handler).__mro__]
    return names if _BASE in names or _HTTPX_OF_2_15.issubset(names) else []


def _prepare_aiohttp(crawler: Crawler, handler: Any) -> None:
    session: Any = getattr(handler, "_session", None)
    if not hasattr(getattr(session, "connector", None), "_limit"):
        warn_missing(crawler, "AiohttpDownloadHandler._session")
        return
    # yarl comes with aiohttp, so the handler has already imported it.
    from yarl import URL  # noqa: PLC0415

    session.connector._limit = 0  # noqa: SLF001 - 0 means no limit
    send = session.request

    def send_as_judged(method: str, url: str | URL, **options: Any) -> Any:
        return send(method, URL(url, encoded=True) if isinstance(url, str) else url, **options)

    session.request = send_as_judged


def _prepare_httpx(crawler: Crawler, handler: Any) -> None:
    if not all(hasattr(handler, name) for name in ("_limits", "_make_client", "_default_client")):
        warn_missing(crawler, "HttpxDownloadHandler._limits")
        return
    handler._limits.max_connections = None  # noqa: SLF001
    handler._default_client = handler._make_client()  # noqa: SLF001 - the replaced client has no connections yet


def _prepare_curl_cffi(_crawler: Crawler, handler: Any) -> None:
    # Its sessions begin later. There are never as many requests for a robots.txt (`fetching.places`).
    handler._pool_size_total = 2_000 + getattr(handler, "_pool_size_total", 0)  # noqa: SLF001


_PREPARE: Mapping[str, Callable[[Crawler, Any], None]] = {
    "AiohttpDownloadHandler": _prepare_aiohttp,
    "CurlCffiDownloadHandler": _prepare_curl_cffi,
    "HttpxDownloadHandler": _prepare_httpx,
    "WreqDownloadHandler": lambda _crawler, _handler: None,  # its pool has no limit
}
"""A class derived from _BASE -> what removes the limit of its connection pool."""
