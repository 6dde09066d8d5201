"""HTTP/2: a body that is shorter than its Content-Length is no whole robots.txt (RFC 9113 8.1.1); reset streams."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from crawling import crawl
from h2.connection import H2Connection
from installed_scrapy import CAN
from loopback import serving_http2
from pytest_twisted import ensureDeferred
from scrapy.core.downloader.handlers.http2 import H2DownloadHandler
from web import RULES

WHOLE = len(RULES)


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
    headers = [(":status", status), *([("content-length", str(length))] if length is not None else [])]

    def answer(connection: H2Connection, stream: int, _headers: Mapping[str, str]) -> None:
        connection.send_headers(stream, headers)
        if body:
            connection.send_data(stream, body, end_stream=not trailers)
        if trailers:
            connection.send_headers(stream, [("x-end", "1")], end_stream=True)

    async with serving_http2(answer) as origin:
        result = await crawl(f"{origin}/private", settings={"DOWNLOAD_HANDLERS": {"https": H2DownloadHandler}})
    assert result.stats[f"rep/access/{access}"] == 1


@ensureDeferred
async def test_a_reason_names_the_exception_of_a_reset_stream() -> None:
    def reset(connection: H2Connection, stream: int, _headers: Mapping[str, str]) -> None:
        connection.reset_stream(stream)

    async with serving_http2(reset) as origin:
        result = await crawl(f"{origin}/", settings={"DOWNLOAD_HANDLERS": {"https": H2DownloadHandler}})
    (error,) = result.refused.values()
    assert re.search(r"robots\.txt: [A-Z]\w+: .*RST_STREAM", str(error)), str(error)


if not CAN["send many requests by HTTP/2"]:
    del test_a_body_that_is_shorter_than_its_content_length
    del test_a_reason_names_the_exception_of_a_reset_stream
