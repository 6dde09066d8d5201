"""A body over HTTP/2 that is shorter than its Content-Length is no whole robots.txt (RFC 9113 8.1.1)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
from certificate import self_signed
from crawling import crawl
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from installed_scrapy import CAN
from pytest_twisted import ensureDeferred
from scrapy.core.downloader.handlers.http2 import H2DownloadHandler
from twisted.internet.defer import Deferred
from web import RULES

WHOLE = len(RULES)


def serve(
    status: str, length: int | None, body: bytes, *, trailers: bool
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Return a server's callback that answers each request so. `length`: the Content-Length."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        headers = [(":status", status), *([("content-length", str(length))] if length is not None else [])]
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(connection.data_to_send())
                received = await reader.read(2**16)
                if not received:
                    break
                for event in connection.receive_data(received):
                    if isinstance(event, RequestReceived):
                        connection.send_headers(event.stream_id, headers)
                        if body:
                            connection.send_data(event.stream_id, body, end_stream=not trailers)
                        if trailers:
                            connection.send_headers(event.stream_id, [("x-end", "1")], end_stream=True)
        writer.close()

    return answer


@pytest.mark.parametrize(
    ("status", "length", "body", "trailers", "access"),
    [
        pytest.param("200", WHOLE, RULES.encode(), False, "success", id="whole"),
        pytest.param("200", WHOLE, RULES.encode(), True, "success", id="whole-with-trailers"),
        pytest.param("200", None, RULES.encode(), True, "success", id="without-a-length"),
        pytest.param("200", WHOLE, RULES.encode()[:-20], True, "unreachable", id="short-with-trailers"),
        pytest.param("200", WHOLE, b"", True, "unreachable", id="missing-with-trailers"),
        pytest.param("200", 0, b"", True, "success", id="empty-with-trailers"),
        pytest.param("404", WHOLE, b"", True, "unavailable", id="of-a-404"),
        pytest.param("204", WHOLE, b"", True, "success", id="of-a-204"),
    ],
)
@ensureDeferred
async def test_a_body_that_is_shorter_than_its_content_length(
    status: str, length: int | None, body: bytes, trailers: bool, access: str
) -> None:
    context = self_signed()
    context.set_alpn_protocols(["h2"])
    callback = serve(status, length, body, trailers=trailers)
    starting = asyncio.start_server(callback, "127.0.0.1", 0, ssl=context)
    server = await Deferred.fromFuture(asyncio.ensure_future(starting))
    try:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/private"
        handlers = {"DOWNLOAD_HANDLERS": {"https": H2DownloadHandler}}
        result = await crawl(url, settings={**handlers, "REP_FETCH_RETRIES": 0, "REP_UNREACHABLE_WAIT": 0})
    finally:
        server.close()
    assert result.stats[f"rep/access/{access}"] == 1


if not CAN["send many requests by HTTP/2"]:
    del test_a_body_that_is_shorter_than_its_content_length
