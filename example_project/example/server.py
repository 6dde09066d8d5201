"""The process that serves the sites, until its standard input is closed. Each site has its own port on loopback.

`python -m example.server [PORT]` prints one JSON line, `{site: origin}`, when all sites can be reached. The first site
uses PORT, and each other site the next port. Without PORT, or if a port is taken, a site uses any free port.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Event, Thread

from .sites import SITES, Site

ORIGINS: dict[str, str] = {}


class Handler(BaseHTTPRequestHandler):
    """Answers for one site."""

    site: Site

    def do_GET(self) -> None:
        if self.path == "/robots.txt":
            self._answer_robots()
        else:
            links = "".join(f'<a href="{page}">{page}</a>' for page in self.site.pages)
            body = links if self.path == "/" else "a page"
            self._answer(200, "text/html", body, {"Content-Usage": self.site.content_usage.get(self.path, "")})

    def _answer_robots(self) -> None:
        if self.site.hangs:
            Event().wait()  # never answer
        location = f"{ORIGINS[self.site.location]}/robots.txt" if self.site.location else ""
        self._answer(self.site.status, "text/plain", self.site.robots, {"Location": location})

    def _answer(self, status: int, media_type: str, body: str, headers: Mapping[str, str]) -> None:
        """Send the answer, without the headers whose value is empty."""
        self.send_response(status)
        for name, value in {"Content-Type": media_type, "Content-Length": str(len(body)), **headers}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode("ascii"))

    def log_message(self, *_: object) -> None:
        """Log nothing: the crawl's log is enough."""


class Server(ThreadingTCPServer):
    """A server without the host name lookup of HTTPServer, which can take long without a network."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # so the ports of a crawl that has just ended can be used


def serve(name: str, site: Site, port: int) -> None:
    handler = type(name, (Handler,), {"site": site})
    try:
        server = Server(("127.0.0.1", port), handler)
    except OSError:
        server = Server(("127.0.0.1", 0), handler)
    ORIGINS[name] = f"http://127.0.0.1:{server.server_address[1]}"
    Thread(target=server.serve_forever, daemon=True).start()


if __name__ == "__main__":
    # Ctrl-C also reaches this process, but the crawl needs the sites until it has ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    first_port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for number, (name, site) in enumerate(SITES.items()):
        serve(name, site, first_port and first_port + number)
    print(json.dumps(ORIGINS), flush=True)
    sys.stdin.read()
