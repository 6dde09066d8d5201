"""A crawl process whose download handler, like those of some plugins, does not tell from which address an answer came.

The handler answers by itself. Names are looked up in a table.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from processes import CrawlProcess, crawl_process, run_crawl
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.http import Response, TextResponse

ADDRESSES = {"public.test": "192.0.66.1", "intranet.test": "10.0.0.1", "staging.test": "10.0.0.2"}
HANGS = "hangs.test"
REDIRECTS = {
    "http://public.test/robots.txt": "http://intranet.test/r.txt",
    "http://staging.test/robots.txt": "https://staging.test/robots.txt",
    "https://staging.test/robots.txt": "http://intranet.test/r.txt",
    f"http://{HANGS}/robots.txt": "http://public.test/r.txt",
}


class Handler(BaseDownloadHandler):
    async def download_request(self, request: Request) -> Response:
        if urlsplit(request.url).path != "/":
            sys.stderr.write(f"asked for {request.url}\n")
        location = REDIRECTS.get(request.url)
        if location is not None:
            return Response(request.url, 301, {"Location": location}, request=request)
        return TextResponse(request.url, body=b"user-agent: *\ndisallow: /private", request=request, encoding="utf-8")


def getaddrinfo(host: str, *_: Any) -> list[tuple[Any, ...]]:
    sys.stderr.write(f"looked up {host}\n")
    if host == HANGS:
        time.sleep(60)
    if host not in ADDRESSES:
        raise socket.gaierror
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ADDRESSES[host], 0))]


def process_without_addresses(urls: Sequence[str], settings: dict[str, Any]) -> CrawlProcess:
    handlers = dict.fromkeys(("http", "https"), "no_addresses.Handler")
    return crawl_process(urls, {"DOWNLOAD_HANDLERS": handlers, **settings}, command=(__file__,))


if __name__ == "__main__":
    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
    run_crawl(json.load(sys.stdin))
