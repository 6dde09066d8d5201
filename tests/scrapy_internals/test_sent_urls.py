"""Whatever Scrapy's download handlers send for a URL is a reading of that URL, so it has been judged."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

import pytest
from crawling import crawl
from h2.connection import H2Connection
from installed_scrapy import CAN, HANDLERS, HTTP2
from loopback import serving, serving_http2
from pytest_twisted import ensureDeferred
from scrapy import Request

from scrapy_rep.protocol.readings import other_readings
from scrapy_rep.protocol.robotstxt.patterns import spellings

PIECES = [
    *("a", "b", "/", "/", "/", "//", "/./", "/../", "/..", "/.", "..", "/%2e%2E", "%2e/", ";", ";", ";a=b", "?", "&"),
    *("=", "#", "%20", "%3b", "%2F", "%40", "%", "%zz", "@", ":", "+", ",", "'", "!", "*", "$", "(", "[", "]", '"'),
    *("<", "|", "\\", "é", "\u3000", " ", "\t", "\r\n", "\v", "\f"),
]
ENDS = ["", "", ";", "?", "?;", "#", "?#", " ", "\t", "/..", "/%2e", ";a"]


def odd_paths(number: int) -> list[str]:
    random = Random(9309)
    return ["/" + "".join(random.choices(PIECES, k=random.randint(1, 6))) + random.choice(ENDS) for _ in range(number)]


@asynccontextmanager
async def noting(targets: dict[int, str], *, http2: bool) -> AsyncIterator[str]:
    """Serve, and note the target of each request by the number in its header `X-Number`. Yields the origin."""

    async def http1(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = dict(field.lower().split(": ", 1) for field in fields if field)
                targets[int(headers["x-number"])] = line[line.index(" ") + 1 : line.rindex(" ")]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    def answer(connection: H2Connection, stream: int, headers: Mapping[str, str]) -> None:
        targets[int(headers["x-number"])] = headers[":path"]
        connection.send_headers(stream, [(":status", "200")], end_stream=True)

    if http2:
        async with serving_http2(answer) as origin:
            yield origin
    else:
        async with serving(http1) as host:
            yield f"http://{host}"


# Older releases of Twisted cannot make a second connection with the TLS context of newer releases of pyOpenSSL.
@pytest.mark.parametrize("number", [150, pytest.param(750, marks=pytest.mark.full_size)])
@pytest.mark.parametrize("handler", [*HANDLERS, *(["h2"] if CAN["send many requests by HTTP/2"] else [])])
@ensureDeferred
async def test_what_a_handler_sends_is_a_reading_of_the_url(
    handler: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("hpack", "httpcore", "scrapy"):  # most of the time would be spent on their logs
        monkeypatch.setattr(logging.getLogger(library), "level", logging.WARNING)
    targets: dict[int, str] = {}
    async with noting(targets, http2=handler == "h2") as origin:
        requests = [
            Request(f"{origin}{path}", meta={"verbatim_url": verbatim, "dont_obey_robotstxt": True}, dont_filter=True)
            for path in odd_paths(number)
            for verbatim in (False, True)
        ]
        for nth, request in enumerate(requests):
            request.headers["X-Number"] = str(nth)
        path = HTTP2 if handler == "h2" else HANDLERS[handler]
        await crawl(*requests, settings={"DOWNLOAD_HANDLERS": {"http": path, "https": path}})
    received = [(requests[nth].url, spellings(origin + target)[0]) for nth, target in targets.items()]
    assert [
        (url, target)
        for url, target in received
        if target not in {spellings(reading)[0] for reading in (url, *other_readings(url))}
    ] == []
    assert len(targets) > number, "some handlers refuse to send some of the URLs"
    assert any(target != spellings(url)[0] for url, target in received)
