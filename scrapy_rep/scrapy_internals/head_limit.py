"""Response headers without end: Twisted's HTTP/1.1 client would keep them all, until the request's time is over.

Where Scrapy's or Twisted's insides look different (another download handler, say), that handler's own bounds hold.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from scrapy.crawler import Crawler

MAX_OCTETS = 256 * 1024  # of a response's head: servers and browsers give up at a tenth to all of that
IN_HEAD = {"STATUS", "HEADER"}  # the states of twisted.web._newclient.HTTPParser before the body


def limit_response_heads(crawler: Crawler) -> None:
    """Abort the crawl's HTTP/1.1 connections whose response's head goes on and on.

    No signal of Scrapy's is sent before a head is over, so this is done where the octets come in.
    """
    handler_for = getattr(crawler.engine.downloader.handlers, "_get_handler", None)
    for scheme in ("http", "https"):
        pool = getattr(handler_for(scheme), "_pool", None) if handler_for is not None else None
        factory = getattr(pool, "_factory", None)
        if pool is not None and isinstance(factory, type) and not issubclass(factory, _Bounded):
            pool._factory = type(factory.__name__, (_Bounded, factory), {})  # noqa: SLF001


class _Bounded:
    """Mixed into the class that builds a protocol for each connection."""

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
        protocol: Any = super().buildProtocol(addr)  # type: ignore[misc]
        protocol.dataReceived = partial(_Head().received, protocol, protocol.dataReceived)
        return protocol


class _Head:
    """Octets of the present response's head on one connection."""

    def __init__(self) -> None:
        self._parser: Any = None
        self._octets = 0

    def received(self, protocol: Any, pass_on: Callable[[bytes], Any], data: bytes) -> Any:
        parser = getattr(protocol, "_parser", None)
        if parser is not self._parser:
            self._parser, self._octets = parser, 0
        if getattr(parser, "state", None) in IN_HEAD:
            self._octets += len(data)
            if self._octets > MAX_OCTETS:
                protocol.transport.abortConnection()
                return None
        return pass_on(data)
