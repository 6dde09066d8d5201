"""Whatever Scrapy's download handlers send for a URL is a reading of that URL, so it has been judged."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from random import Random

import pytest
from certificate import self_signed
from crawling import crawl
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from installed_scrapy import CAN, HANDLERS, HTTP2
from pytest_twisted import ensureDeferred
from scrapy import Request
from twisted.internet.defer import Deferred

from scrapy_rep.protocol.readings import other_readings
from scrapy_rep.protocol.robotstxt.patterns import spellings

URLS = 1_500
PIECES = [
    *("a", "b", "/", "/", "/", "//", "/./", "/../", "/..", "/.", "..", "/%2e%2E", "%2e/", ";", ";", ";a=b", "?", "&"),
    *("=", "#", "%20", "%3b", "%2F", "%40", "%", "%zz", "@", ":", "+", ",", "'", "!", "*", "$", "(", "[", "]", '"'),
    *("<", "|", "\\", "é", "\u3000", " ", "\t", "\r\n", "\v", "\f"),
]
ENDS = ["", "", ";", "?", "?;", "#", "?#", " ", "\t", "/..", "/%2e", ";a"]


def odd_paths() -> list[str]:
    random = Random(9309)
    return [
        "/" + "".join(random.choices(PIECES, k=random.randint(1, 6))) + random.choice(ENDS) for _ in range(URLS // 2)
    ]


class Server:
    """A server on loopback that notes for each request its header `X-Number` and its target."""

    def __init__(self) -> None:
        self.targets: dict[int, str] = {}

    async def http1(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = dict(field.lower().split(": ", 1) for field in fields if field)
                self.note(headers["x-number"], line[line.index(" ") + 1 : line.rindex(" ")])
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def http2(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
                        self.note(headers["x-number"], headers[":path"])
                        connection.send_headers(event.stream_id, [(":status", "200")], end_stream=True)
        writer.close()

    def note(self, number: str, target: str) -> None:
        self.targets[int(number)] = target


# Older releases of Twisted cannot make a second connection with the TLS context of newer releases of pyOpenSSL.
@pytest.mark.parametrize("handler", [*HANDLERS, *(["h2"] if CAN["send many requests by HTTP/2"] else [])])
@ensureDeferred
async def test_what_a_handler_sends_is_a_reading_of_the_url(handler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("hpack", "httpcore", "scrapy"):  # most of the time would be spent on their logs
        monkeypatch.setattr(logging.getLogger(library), "level", logging.WARNING)
    server, context = Server(), None
    if handler == "h2":
        context = self_signed()
        context.set_alpn_protocols(["h2"])
    serve = server.http2 if context else server.http1
    starting = asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, limit=2**20)
    listening = await Deferred.fromFuture(asyncio.ensure_future(starting))
    origin = f"http{'s' if context else ''}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    requests = [
        Request(f"{origin}{path}", meta={"verbatim_url": verbatim, "dont_obey_robotstxt": True}, dont_filter=True)
        for path in odd_paths()
        for verbatim in (False, True)
    ]
    for number, request in enumerate(requests):
        request.headers["X-Number"] = str(number)
    path = HTTP2 if context else HANDLERS[handler]
    await crawl(*requests, settings={"DOWNLOAD_HANDLERS": {"http": path, "https": path}})
    listening.close()
    received = [(requests[number].url, spellings(origin + target)[0]) for number, target in server.targets.items()]
    assert [
        (url, target)
        for url, target in received
        if target not in {spellings(reading)[0] for reading in (url, *other_readings(url))}
    ] == []
    assert len(server.targets) > URLS / 2, "some handlers refuse to send some of the URLs"
    assert any(target != spellings(url)[0] for url, target in received)
