"""Ends a robots.txt response whose header fields go on and on.

Twisted's HTTP/1.1 client would keep them all until the request times out, and Scrapy sends no signal before they are
complete. Only connections with a robots.txt request are watched, until its header fields are complete. With another
download handler, that handler's own bounds apply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.scrapy_internals.fallbacks import tell_without

MAX_OCTETS = 256 * 1024  # servers and browsers give up at a tenth to all of that
IN_HEAD = {"STATUS", "HEADER"}  # states of twisted.web._newclient.HTTPParser before the body


class HeadLimit:
    """Bounds the responses to the requests that it is told of."""

    def __init__(self, crawler: Crawler) -> None:
        self.watched_class: Callable[[type], type] = cache(
            lambda protocol_class: type("WatchedProtocol", (_WatchedProtocol, protocol_class), {"limit": self})
        )
        """The class of connections that look whether a request is watched."""
        self._crawler = crawler
        self._urls: Counter[bytes] = Counter()

    @contextmanager
    def watching(self, request: Request) -> Iterator[None]:
        """For this long the response to the request is bounded."""
        parts = urlparse_cached(request)._replace(fragment="")  # which is not sent
        self._watch_connections(parts.scheme)
        url = parts.geturl().encode()  # as twisted.web.client.URI spells it
        self._urls[url] += 1
        try:
            yield
        finally:
            self._urls[url] -= 1
            if not self._urls[url]:
                del self._urls[url]

    def is_watched(self, request: Any) -> bool:
        """`request`: Twisted's."""
        return bool(self._urls) and getattr(request, "absoluteURI", None) in self._urls

    def _watch_connections(self, scheme: str) -> None:
        handler_for = getattr(self._crawler.engine.downloader.handlers, "_get_handler", None)
        handler = handler_for(scheme) if handler_for is not None else None
        pool = getattr(handler, "_pool", None)
        factory = getattr(pool, "_factory", None)
        if pool is not None and isinstance(factory, type):
            if not issubclass(factory, _WatchedFactory):
                pool._factory = type("WatchedFactory", (_WatchedFactory, factory), {"limit": self})  # noqa: SLF001
        elif handler_for is None or _is_scrapys(handler):
            tell_without(self._crawler, "HTTP11DownloadHandler._pool")


def _is_scrapys(handler: object) -> bool:
    # To import it makes classes that look at the whole stack: the crawl has done so, and from a lower one.
    from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler  # noqa: PLC0415

    return isinstance(handler, HTTP11DownloadHandler)


# Subclasses, because attributes of each connection took megabytes in a broad crawl.


class _WatchedFactory:
    limit: HeadLimit

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's
        protocol = super().buildProtocol(addr)  # type: ignore[misc]
        protocol.__class__ = self.limit.watched_class(type(protocol))
        return protocol


class _WatchedProtocol:
    limit: HeadLimit

    def request(self, request: Any) -> Any:
        vars(self).pop("dataReceived", None)
        if self.limit.is_watched(request):
            OctetLimit(self, MAX_OCTETS, self._has_head)
        return super().request(request)  # type: ignore[misc]

    def _has_head(self) -> bool:
        return getattr(getattr(self, "_parser", None), "state", None) not in IN_HEAD


class OctetLimit:
    """Aborts a connection of Twisted's that receives more than `most` octets from now on, before it `has_enough`."""

    def __init__(self, protocol: Any, most: int, has_enough: Callable[[], bool] = lambda: False) -> None:
        self._protocol = protocol
        self._most = most
        self._has_enough = has_enough
        self._pass_on = protocol.dataReceived
        self._octets = 0
        protocol.dataReceived = self.received

    def received(self, data: bytes) -> None:
        self._octets += len(data)
        if self._octets > self._most:
            self._protocol.transport.abortConnection()
            return
        self._pass_on(data)
        if self._has_enough():
            vars(self._protocol).pop("dataReceived", None)
