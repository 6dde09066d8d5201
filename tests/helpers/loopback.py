"""Servers on loopback in the process of the test: of any protocol, and for HTTP/2."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from certificate import self_signed
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from twisted.internet.defer import Deferred

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Answer = Callable[[H2Connection, int, Mapping[str, str]], None]
"""Answers one request. The arguments are the connection, the number of the stream, and the headers of the request."""


@asynccontextmanager
async def serving(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Call `serve` for each connection. Yields host and port."""
    starting = asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, limit=2**20)
    server = await Deferred.fromFuture(asyncio.ensure_future(starting))
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@asynccontextmanager
async def serving_http2(answer: Answer) -> AsyncIterator[str]:
    """Call `answer` for each request. Yields the origin."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        config = H2Configuration(client_side=False, header_encoding="utf-8", validate_inbound_headers=False)
        connection = H2Connection(config)
        connection.initiate_connection()
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(connection.data_to_send())
                received = await reader.read(2**16)
                if not received:
                    break
                for event in connection.receive_data(received):
                    if isinstance(event, RequestReceived):
                        headers = {str(name): str(value) for name, value in event.headers}
                        answer(connection, event.stream_id, headers)
        writer.close()

    context = self_signed()
    context.set_alpn_protocols(["h2"])
    async with serving(serve, context) as host:
        yield f"https://{host}"
