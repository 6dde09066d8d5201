"""Changes to Scrapy's aiohttp and httpx download handlers: no limit of their pools, and URLs as they are.

1. Remove the limit of their connection pools. A pool has CONCURRENT_REQUESTS connections, and the time that a request
   waits for a connection counts against its time-out. Robots.txt fetches that hang would make pages time out. Pages are
   still limited by the downloader, and fetches by REP_FETCH_CONCURRENCY.
2. Send each URL as it was checked against robots.txt. aiohttp would rewrite it: `/%40admin` becomes `/@admin`.
"""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.misc import load_object

from scrapy_rep.scrapy_internals import warn_missing

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
