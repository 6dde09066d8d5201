"""Origins of any number on loopback, served by one process: `http://127.a.b.c:PORT`, each address an origin."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from types import TracebackType

ROBOTS = b"User-agent: *\nDisallow: /private/\nDisallow: /*?session=\nAllow: /private/about\n"
KINDS = ("page", "slow", "dead")
"""What robots.txt answers: rules at once; rules after SLOW seconds; 503."""
SLOW = 2.0  # seconds


class NumberedOrigins:
    def __enter__(self) -> NumberedOrigins:
        self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._ports: dict[str, int] = json.loads(self._process.stdout.readline())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def pattern(self, kind: str) -> str:
        """For `url`; `kind`: one of KINDS."""
        return f"http://{{}}:{self._ports[kind]}/page.html"

    @staticmethod
    def url(pattern: str, number: int) -> str:
        """Of the origin with that number, below 2**22."""
        return pattern.format(f"127.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}")


class _Server(asyncio.Protocol):
    kind = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.received.endswith(b"\r\n\r\n"):
            return
        if not self.received.startswith(b"GET /robots.txt "):
            self.answer(200, b"<html><title>A page</title><p>Text.</p></html>", b"text/html")
        elif self.kind == "slow":
            asyncio.get_running_loop().call_later(SLOW, self.answer, 200, ROBOTS)
        else:
            self.answer(503 if self.kind == "dead" else 200, ROBOTS)

    def answer(self, status: int, body: bytes, kind: bytes = b"text/plain") -> None:
        head = b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % (status, kind, len(body)) + body)
        self.transport.close()


async def _serve() -> None:
    ports = {}
    for kind in KINDS:
        protocol = type(kind, (_Server,), {"kind": kind})
        server = await asyncio.get_running_loop().create_server(protocol, "0.0.0.0", 0, backlog=4096)
        ports[kind] = server.sockets[0].getsockname()[1]
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the benchmark's process ends


if __name__ == "__main__":
    asyncio.run(_serve())
