"""Scrapy's downloader: requests that do not count against CONCURRENT_REQUESTS, and its handlers.

Two changes to Scrapy's aiohttp and httpx handlers (`prepare_handlers`):

1. Remove the limit of their connection pools. A pool has CONCURRENT_REQUESTS connections, and the time that a request
   waits for a connection counts against its time-out. Robots.txt fetches that hang would make pages time out. Pages are
   still limited by the downloader, and fetches by REP_FETCH_CONCURRENCY.
2. Send each URL as it was checked against robots.txt. aiohttp would rewrite it: `/%40admin` becomes `/@admin`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from sys import maxsize
from typing import Any

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.http import Request, Response
from scrapy.utils.misc import load_object

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
    return getattr(crawler.engine.downloader, "total_concurrency", 0) or maxsize  # 0 means no limit


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
        handlers.download_request_async = lambda request, *args, **kwargs: wrap(
            request, partial(download, request, *args, **kwargs)
        )
    return download is not None


_MODULE = "scrapy.core.downloader.handlers"
AIOHTTP, HTTPX = f"{_MODULE}._aiohttp.AiohttpDownloadHandler", f"{_MODULE}._httpx.HttpxDownloadHandler"


def prepare_handlers(crawler: Crawler) -> None:
    """Change the aiohttp and httpx handlers that the crawl uses. Call this before the first request."""
    handlers: Any = getattr(crawler.engine.downloader, "handlers", None)
    settings = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
    for scheme in ("http", "https"):
        names = _names_of_bases(settings.get(scheme))
        for name, prepare in ((AIOHTTP, _prepare_aiohttp), (HTTPX, _prepare_httpx)):
            if name in names:
                get_handler = getattr(handlers, "_get_handler", None)
                handler = get_handler(scheme) if get_handler is not None else handlers
                if handler is not None:  # if it is None, Scrapy has logged why
                    prepare(crawler, handler)


def _names_of_bases(handler: Any) -> set[str]:
    """Return the import paths of a handler's class and its base classes. AIOHTTP and HTTPX may not be importable."""
    try:
        return {f"{cls.__module__}.{cls.__qualname__}" for cls in load_object(handler).__mro__}
    except Exception:  # noqa: BLE001 - Scrapy logs the error itself when it needs the handler
        return set()


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
    limits = getattr(handler, "_limits", None)
    make_client = getattr(handler, "_make_client", None)
    if limits is None or make_client is None or not hasattr(handler, "_default_client"):
        warn_missing(crawler, "HttpxDownloadHandler._limits")
        return
    handler._limits = type(limits)(max_keepalive_connections=limits.max_keepalive_connections)  # noqa: SLF001
    handler._default_client = make_client()  # noqa: SLF001 - the replaced client has no connections yet
