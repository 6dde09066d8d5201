"""The process that serves the sites until its standard input ends. Each site has its own port on loopback.

`python -m example.server [PORT]` prints one JSON line, `{site: origin}`, once they can be reached. The first site has
this port, and each other site the next one. Without a port, or in place of a port that is taken, any free port serves.
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
            Event().wait()  # no robots.txt, ever
        location = f"{ORIGINS[self.site.location]}/robots.txt" if self.site.location else ""
        self._answer(self.site.status, "text/plain", self.site.robots, {"Location": location})

    def _answer(self, status: int, media_type: str, body: str, headers: Mapping[str, str]) -> None:
        """Those of the headers that have a value."""
        self.send_response(status)
        for name, value in {"Content-Type": media_type, "Content-Length": str(len(body)), **headers}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode("ascii"))

    def log_message(self, *_: object) -> None:
        """Log nothing: the crawl's log is enough."""


class Server(ThreadingTCPServer):
    """HTTPServer would look up its own host name, which can take long without a network."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # just after another crawl


def serve(name: str, site: Site, port: int) -> None:
    handler = type(name, (Handler,), {"site": site})
    try:
        server = Server(("127.0.0.1", port), handler)
    except OSError:
        server = Server(("127.0.0.1", 0), handler)
    ORIGINS[name] = f"http://127.0.0.1:{server.server_address[1]}"
    Thread(target=server.serve_forever, daemon=True).start()


if __name__ == "__main__":
    # Ctrl-C reaches this process too, but the crawl ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    first_port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for number, (name, site) in enumerate(SITES.items()):
        serve(name, site, first_port and first_port + number)
    print(json.dumps(ORIGINS), flush=True)
    sys.stdin.read()
