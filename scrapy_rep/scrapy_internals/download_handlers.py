"""Scrapy's aiohttp and httpx download handlers, prepared for a crawl that fetches robots.txt files beside its pages.

1. Their pools have as many connections as the crawl has places for pages (CONCURRENT_REQUESTS), and time in a pool's
   queue counts against the time-out. The pools get no limit here: the downloader limits the pages, and
   REP_FETCH_CONCURRENCY the fetches.
2. aiohttp rewrites a URL before it is sent: `/%40admin` becomes `/@admin`. It gets the URL as it was judged.
"""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.misc import load_object

from scrapy_rep.scrapy_internals.fallbacks import tell_without

_MODULE = "scrapy.core.downloader.handlers"
AIOHTTP, HTTPX = f"{_MODULE}._aiohttp.AiohttpDownloadHandler", f"{_MODULE}._httpx.HttpxDownloadHandler"


def prepare_handlers(crawler: Crawler) -> None:
    """Before the first request. Other handlers are left as they are, and are not built before they are needed."""
    handlers: Any = getattr(crawler.engine.downloader, "handlers", None)
    settings = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
    for scheme in ("http", "https"):
        names = _names_of_bases(settings.get(scheme))
        for name, prepare in ((AIOHTTP, _prepare_aiohttp), (HTTPX, _prepare_httpx)):
            if name in names:
                get_handler = getattr(handlers, "_get_handler", None)
                handler = get_handler(scheme) if get_handler is not None else handlers
                if handler is not None:  # else Scrapy has logged why it cannot be used
                    prepare(crawler, handler)


def _names_of_bases(handler: Any) -> set[str]:
    """The import paths of a handler's class, from the setting, and of its bases. These classes are not imported here,
    because most crawls do without their libraries."""
    try:
        return {f"{cls.__module__}.{cls.__qualname__}" for cls in load_object(handler).__mro__}
    except Exception:  # noqa: BLE001 - Scrapy logs what is wrong with it when it needs the handler
        return set()


def _prepare_aiohttp(crawler: Crawler, handler: Any) -> None:
    session: Any = getattr(handler, "_session", None)
    if not hasattr(getattr(session, "connector", None), "_limit"):
        tell_without(crawler, "AiohttpDownloadHandler._session")
        return
    # The handler has imported it. Scrapy requires it since 2.19.
    from yarl import URL  # noqa: PLC0415

    session.connector._limit = 0  # noqa: SLF001 - which is none
    send = session.request

    def send_as_judged(method: str, url: str | URL, **options: Any) -> Any:
        return send(method, URL(url, encoded=True) if isinstance(url, str) else url, **options)

    session.request = send_as_judged


def _prepare_httpx(crawler: Crawler, handler: Any) -> None:
    limits = getattr(handler, "_limits", None)
    make_client = getattr(handler, "_make_client", None)
    if limits is None or make_client is None or not hasattr(handler, "_default_client"):
        tell_without(crawler, "HttpxDownloadHandler._limits")
        return
    handler._limits = type(limits)(max_keepalive_connections=limits.max_keepalive_connections)  # noqa: SLF001
    handler._default_client = make_client()  # noqa: SLF001 - the first client has no connections yet
