"""A web of many origins on loopback, each on a port of its own, in a process of its own.

Reads commands as JSON lines from standard input and answers each with a JSON line:
`{"open": {path: [route, ...]}, "tls": false, "limit": null}` -> the port; `{"requests": port}` -> the requests that
this origin got;
`{"release": [port, ...]}`: send the answers that these origins hold back; `{"change": port, "routes": {...}}`: replace
these routes. The process ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from certificate import self_signed

Route = Mapping[str, Any]

MAX_ENDLESS = 64 * 2**20  # octets; nothing here runs for ever
LONGEST_WAIT = 60  # seconds
PIECE = 2**16  # octets


class Origin:
    def __init__(self, routes: Mapping[str, list[Route]], limit: int | None) -> None:
        self.routes = {path: list(sequence) for path, sequence in routes.items()}
        self.requests: list[dict[str, Any]] = []
        self.released = asyncio.Event()
        self.limit = limit
        self.under_way = 0

    def route(self, target: str) -> Route:
        """The next answer for the path. The last answer is repeated."""
        if self.limit is not None and self.under_way > self.limit:
            return {"status": 429}
        sequence = self.routes.get(target) or self.routes.get("*")
        if not sequence:
            return {"status": 404} if target == "/robots.txt" else {"body": base64.b64encode(b"page").decode()}
        return sequence.pop(0) if len(sequence) > 1 else sequence[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first = await reader.readexactly(1)
                if first == b"\x16":  # a TLS handshake, but this origin speaks plain HTTP
                    break
                head = first + await reader.readuntil(b"\r\n\r\n")
                line, *fields = head.decode("latin-1").strip().split("\r\n")
                headers = dict(field.split(": ", 1) for field in fields)
                target = line.split(" ")[1]
                request = {"target": target, "headers": headers, "began": now(), "ended": None, "octets": 0}
                self.requests.append(request)
                self.under_way += 1
                try:
                    if not await self.answer(self.route(target), request, reader, writer):
                        break
                finally:
                    request["ended"] = request["ended"] or now()
                    self.under_way -= 1
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):  # cancelled: the web closes
            pass
        finally:
            writer.close()

    async def answer(
        self, route: Route, request: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send the answer. Return whether the connection stays open."""
        kind = route.get("kind", "answer")
        if kind in {"hang", "hold"} and not await self.held(kind, reader):
            return False
        if kind == "reset":
            writer.transport.abort()
        elif kind == "garbage":
            writer.write(b"\x00\xff this is no HTTP\r\n\r\n")
        else:
            await self.respond(kind, route, request, writer)
        if kind == "half-closed":
            writer.write_eof()
            await gone(reader)
        return kind in {"answer", "hold"}

    async def respond(self, kind: str, route: Route, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        body = base64.b64decode(route.get("body", "")) * route.get("times", 1)
        length = len(body) + (100 if kind == "cut" else 0)
        seconds, before = route.get("before", (0, 0))
        status = before if now() - self.requests[0]["began"] < seconds else route.get("status", 200)
        request["status"] = status
        head = [f"HTTP/1.1 {status} X", *(f"{n}: {v}" for n, v in route.get("headers", []))]
        head += ["Transfer-Encoding: chunked"] if kind == "endless" else [f"Content-Length: {length}"]
        end = "\r\n" if kind == "headers" else "\r\n\r\n"
        writer.write(("\r\n".join(head) + end).encode("latin-1"))
        if kind == "headers":
            await again_and_again(b"X-%s: %s\r\n" % (b"n" * 50, b"v" * 50), request, writer)
        elif kind == "endless":
            await again_and_again(b"%x\r\n%s\r\n" % (len(body), body), request, writer)
        elif kind == "drip":
            await drip(body, request, writer)
        elif kind != "half-closed":
            await asyncio.sleep(route.get("delay", 0))
            for start in range(0, len(body), PIECE):
                if start + PIECE >= len(body):
                    request["ended"] = now()  # before the last piece: the next request may follow it at once
                await send(body[start : start + PIECE], request, writer)

    async def until_released(self) -> None:
        await self.released.wait()

    async def held(self, kind: str, reader: asyncio.StreamReader) -> bool:
        """Wait until the client hangs up, or a "hold" is released. Whether it was released."""
        waits = [asyncio.ensure_future(gone(reader))]
        if kind == "hold":
            waits.append(asyncio.ensure_future(self.until_released()))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return kind == "hold" and self.released.is_set()


async def drip(body: bytes, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    for start in range(min(len(body), 10 * LONGEST_WAIT)):
        await send(body[start : start + 1], request, writer)
        await asyncio.sleep(0.1)


async def again_and_again(octets: bytes, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    pieces = octets * max(1, PIECE // len(octets))
    for _ in range(MAX_ENDLESS // len(pieces)):
        await send(pieces, request, writer)


async def send(octets: bytes, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    writer.write(octets)
    await writer.drain()
    await asyncio.sleep(0)  # under TLS nothing else lets the loop see that the other side has gone
    if writer.transport.is_closing():  # what is written then goes nowhere
        raise ConnectionResetError
    request["octets"] += len(octets)


async def gone(reader: asyncio.StreamReader) -> None:
    """Wait until the client hangs up, at most LONGEST_WAIT."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(reader.read(1), LONGEST_WAIT)


def now() -> float:
    return time.monotonic()


async def main() -> None:
    origins: dict[int, Origin] = {}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        if "open" in command:
            origin = Origin(command["open"], command["limit"])
            context = self_signed() if command["tls"] else None
            server = await asyncio.start_server(origin.serve, "127.0.0.1", 0, ssl=context, limit=2**20)
            port = server.sockets[0].getsockname()[1]
            origins[port] = origin
            reply: Any = port
        elif "release" in command:
            for port in command["release"]:
                origins[port].released.set()
            reply = None
        elif "change" in command:
            origins[command["change"]].routes.update(command["routes"])
            reply = None
        else:
            reply = origins[command["requests"]].requests
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
