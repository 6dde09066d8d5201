"""Ends a robots.txt response whose header fields go on and on.

Twisted's HTTP/1.1 client would keep them all until the request times out, and Scrapy sends no signal before they are
complete. Only connections with a robots.txt request are watched, until its header fields are complete. With another
download handler, that handler's own bounds apply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlunparse
from weakref import ref

from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.scrapy_internals.fallbacks import tell_without

MAX_OCTETS = 256 * 1024  # servers and browsers give up at a tenth to all of that
IN_HEAD = {"STATUS", "HEADER"}  # states of twisted.web._newclient.HTTPParser before the body


class HeadLimit:
    """Bounds the responses to the requests that it is told of."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        # What is asked for: of each URL the path and query, as servers are asked, and all of it, as proxies are.
        self._targets: Counter[bytes] = Counter()

    @contextmanager
    def watching(self, request: Request) -> Iterator[None]:
        """For this long the response to the request is bounded."""
        scheme, authority, *path_and_query, _fragment = urlparse_cached(request)
        self._watch_connections(scheme)
        targets = [
            urlunparse((*parts, *path_and_query, "")).encode() or b"/" for parts in ((scheme, authority), ("", ""))
        ]
        for target in targets:
            self._targets[target] += 1
        try:
            yield
        finally:
            for target in targets:
                self._targets[target] -= 1
                if not self._targets[target]:
                    del self._targets[target]

    def _watch_connections(self, scheme: str) -> None:
        handler_for = getattr(self._crawler.engine.downloader.handlers, "_get_handler", None)
        handler = handler_for(scheme) if handler_for is not None else None
        pool = getattr(handler, "_pool", None)
        make_factory = getattr(pool, "_factory", None)
        if pool is not None and make_factory is not None:
            if not isinstance(make_factory, partial):
                pool._factory = partial(self._factory, make_factory)  # noqa: SLF001
        elif handler_for is None or isinstance(handler, HTTP11DownloadHandler):
            tell_without(self._crawler, "HTTP11DownloadHandler._pool")

    # Weak references: a connection that refers to itself would stay in memory until Python looks for cycles.

    def _factory(self, make_factory: Callable[..., Any], *args: Any) -> Any:
        factory = make_factory(*args)
        factory.buildProtocol = partial(self._build_protocol, ref(factory))
        return factory

    def _build_protocol(self, factory_ref: Callable[[], Any], addr: Any) -> Any:
        factory = factory_ref()
        protocol = type(factory).buildProtocol(factory, addr)
        protocol.request = partial(self._send, ref(protocol))
        return protocol

    def _send(self, protocol_ref: Callable[[], Any], request: Any) -> Any:
        protocol = protocol_ref()
        vars(protocol).pop("dataReceived", None)
        # The first is at hand; the second has to be put together.
        if getattr(request, "uri", None) in self._targets and getattr(request, "absoluteURI", None) in self._targets:
            protocol.dataReceived = _Head(protocol).received
        return type(protocol).request(protocol, request)


class _Head:
    """Counts the octets of one response until its header fields are complete."""

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self._pass_on = protocol.dataReceived
        self._octets = 0

    def received(self, data: bytes) -> None:
        self._octets += len(data)
        if self._octets > MAX_OCTETS:
            self._protocol.transport.abortConnection()
            return
        self._pass_on(data)
        if getattr(getattr(self._protocol, "_parser", None), "state", None) not in IN_HEAD:
            vars(self._protocol).pop("dataReceived", None)
