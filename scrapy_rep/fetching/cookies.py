"""Cookies along the redirects of one robots.txt. They never mix with the cookies of the crawl."""

from __future__ import annotations

from collections import defaultdict

from scrapy import Request
from scrapy.http import Response
from scrapy.http.cookies import CookieJar

from scrapy_rep.protocol.origin import Origin


class Cookies:
    """The cookies that the origins along the redirects have set. Each origin gets only its own."""

    def __init__(self) -> None:
        self._jars: defaultdict[Origin | None, CookieJar] = defaultdict(CookieJar)

    def add_to(self, request: Request) -> None:
        if self._jars:
            self._jars[Origin.of(request.url)].add_cookie_header(request)
            # A request without a session (`compat.NO_SESSION`): Scrapy replaces the header by these cookies.
            pairs = (request.headers.get("Cookie") or b"").decode("latin-1").split("; ")
            request.cookies = dict(pair.partition("=")[::2] for pair in pairs if pair)

    def keep(self, response: Response, request: Request) -> None:
        if b"Set-Cookie" in response.headers:
            self._jars[Origin.of(request.url)].extract_cookies(response, request)
