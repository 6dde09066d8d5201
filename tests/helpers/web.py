"""The test web: tests open origins in it, and read which requests these origins received."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

Route = dict[str, Any]

RULES = "user-agent: *\ndisallow: /private\n"
"""What most origins of these tests say in their robots.txt."""


def answer(
    body: str | bytes = "", status: int = 200, headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), **more: Any
) -> Route:
    """Return one answer. The further arguments are:

    - `kind`: "answer", "hang", "hold" (until `Web.release`), "reset", "garbage", "cut" (100 octets short),
      "half-closed" (no octet of the body), "drip" (ten octets a second), "endless" (the body again and again, 64 MiB),
      or "headers" (64 MiB of header fields)
    - `delay`: seconds before the body
    - `times`: how often the body is repeated
    - `before`: a number of seconds from the origin's first request, and the status until then
    """
    octets = body.encode() if isinstance(body, str) else body
    fields = list(headers.items() if isinstance(headers, Mapping) else headers)
    return {"status": status, "body": base64.b64encode(octets).decode(), "headers": fields, **more}


def redirect(location: str, status: int = 301, headers: Mapping[str, str] | None = None) -> Route:
    return answer(status=status, headers={"Location": location, **(headers or {})})


@dataclass(frozen=True)
class Site:
    """One origin of the test web."""

    web: Web
    port: int
    scheme: str = "http"
    host: str = "127.0.0.1"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def robots_url(self) -> str:
        return f"{self.origin}/robots.txt"

    def url(self, path: str = "/") -> str:
        return self.origin + path

    def change(self, path: str, route: Route) -> None:
        """Change the origin's answers from now on."""
        self.web.command({"change": self.port, "routes": {path: [route]}})

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests that the origin received, in their order.

        The keys are `target`, `headers`, `status`, `began` and `ended` (seconds; None while under way), and
        `octets`, the number of octets of the body that were sent.
        """
        return list(self.web.command({"requests": self.port}))

    @property
    def targets(self) -> list[str]:
        return [request["target"] for request in self.requests]

    @property
    def robots_requests(self) -> list[dict[str, Any]]:
        return [request for request in self.requests if request["target"] == "/robots.txt"]


def most_at_once(requests: Iterable[Mapping[str, Any]]) -> int:
    """Return the largest number of these requests that were under way at the same time."""
    never = float("inf")
    # If one request ends at the moment when another begins, the end counts first.
    edges = sorted(
        edge for r in requests for edge in ((r["began"], 1), (never if r["ended"] is None else r["ended"], -1))
    )
    return max(accumulate(step for _, step in edges), default=0)


class Web:
    """The server process; `site` opens origins in it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def site(
        self, routes: Mapping[str, Route | list[Route]] | None = None, *, tls: bool = False, limit: int | None = None
    ) -> Site:
        """Open an origin. `routes`: path and query -> an answer, or a list of answers; the last one is repeated.

        `limit`: how many requests may be under way. The others are answered 429.

        `*` is the route of all other paths. Without a route, a page is "page", and robots.txt is a 404.
        """
        sequences = {path: [route] if isinstance(route, dict) else route for path, route in (routes or {}).items()}
        return Site(self, self.command({"open": sequences, "tls": tls, "limit": limit}), "https" if tls else "http")

    def robots(self, text: str | bytes | Route | list[Route], *, tls: bool = False) -> Site:
        """Open an origin with this robots.txt: its text, its answer, or a list of answers."""
        return self.site({"/robots.txt": answer(text) if isinstance(text, (str, bytes)) else text}, tls=tls)

    def release(self, *sites: Site) -> None:
        """Send the answers that these origins hold back."""
        self.command({"release": [site.port for site in sites]})

    def command(self, command: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
