"""Any number of origins on loopback, served by one process. Each address is an origin: `http://127.a.b.c:PORT`."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType

ROBOTS = b"User-agent: *\nDisallow: /private/\nDisallow: /*?session=\nAllow: /private/about\n"
PAGE = b"<html><title>A page</title><p>Text.</p></html>"
KINDS = ("page", "slow", "dead")
"""What robots.txt answers: rules at once; rules after SLOW seconds; 503."""
SLOW = 2.0  # seconds


class NumberedOrigins:
    def __init__(self, robots: Sequence[bytes] = (ROBOTS,), *, latency: float = 0.0, keep_alive: bool = False) -> None:
        """`robots`: each origin has one of them, in turn. `latency`: seconds before each answer. Without `keep_alive`
        connections are closed, so that any number of origins needs few of them."""
        bodies = [base64.b64encode(body).decode() for body in robots]
        self._task = {"robots": bodies, "latency": latency, "keep_alive": keep_alive}

    def __enter__(self) -> NumberedOrigins:
        self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(self._task).encode() + b"\n")
        self._process.stdin.flush()
        self._ports: dict[str, int] = json.loads(self._process.stdout.readline())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def pattern(self, kind: str = "page", path: str = "/page.html") -> str:
        """Return a URL pattern for `url`. `kind` is one of KINDS."""
        return f"http://{{}}:{self._ports[kind]}{path}"

    @staticmethod
    def url(pattern: str, number: int) -> str:
        """Return the address of the origin with that number, which is below 2**22."""
        return pattern.format(f"127.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}")


class _Server(asyncio.Protocol):
    """Answers requests that each come in one piece, one after another."""

    kind = ""
    robots: Sequence[bytes] = ()
    latency = 0.0
    keep_alive = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        _, b, c, d = map(int, transport.get_extra_info("sockname")[0].split("."))
        self.rules = self.robots[((b - 1) << 16 | c << 8 | d) % len(self.robots)]

    def data_received(self, data: bytes) -> None:
        seconds = self.latency
        if not data.startswith(b"GET /robots.txt "):
            answer = 200, b"text/html", PAGE
        else:
            seconds += SLOW if self.kind == "slow" else 0.0
            answer = 503 if self.kind == "dead" else 200, b"text/plain", self.rules
        if seconds:
            asyncio.get_running_loop().call_later(seconds, self.answer, *answer)
        else:
            self.answer(*answer)

    def answer(self, status: int, kind: bytes, body: bytes) -> None:
        close = b"" if self.keep_alive else b"Connection: close\r\n"
        head = b"HTTP/1.1 %d X\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % (status, close, kind, len(body)) + body)
        if not self.keep_alive:
            self.transport.close()


async def _serve() -> None:
    task = json.loads(sys.stdin.readline())
    task["robots"] = [base64.b64decode(body) for body in task["robots"]]
    ports = {}
    for kind in KINDS:
        protocol = type(kind, (_Server,), {**task, "kind": kind})
        server = await asyncio.get_running_loop().create_server(protocol, "0.0.0.0", 0, backlog=4096)
        ports[kind] = server.sockets[0].getsockname()[1]
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the benchmark's process ends


if __name__ == "__main__":
    asyncio.run(_serve())
