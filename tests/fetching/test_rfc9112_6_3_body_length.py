"""Where a body ends (RFC 9112 section 6.3): Transfer-Encoding overrides Content-Length, with each download handler."""

from __future__ import annotations

import asyncio

import pytest
from crawling import crawl
from installed_scrapy import HANDLERS
from loopback import serving
from pytest_twisted import ensureDeferred
from web import RULES

CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(RULES), RULES.encode())


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize(
    ("length", "body", "access"),
    [
        pytest.param(len(RULES), CHUNKS, "success", id="the-right-Content-Length"),
        pytest.param(1_000, CHUNKS, "success", id="a-Content-Length-that-is-too-large"),
        pytest.param(3, CHUNKS, "success", id="a-Content-Length-that-is-too-small"),
        pytest.param(1_000, b"0\r\n\r\n", "success", id="an-empty-body"),
        pytest.param(len(RULES), CHUNKS[:-5], "unreachable", id="no-last-chunk"),
    ],
)
@ensureDeferred
async def test_a_chunked_body_with_a_content_length(length: int, body: bytes, access: str, handler: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % length + body)
        writer.close()

    async with serving(serve) as host:
        result = await crawl(
            f"http://{host}/private",
            settings={"DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]}, "REP_UNREACHABLE_WAIT": 0},
        )
    # aiohttp takes a response with both fields for an error, as this section permits.
    assert result.stats[f"rep/access/{'unreachable' if handler == 'aiohttp' else access}"] == 1
