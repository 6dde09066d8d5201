"""What origins answer when asked for a robots.txt, each with the row of docs/answers.md that says what it means."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Callable
from typing import NamedTuple

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.httpobj import urlparse_cached
from web import RULES, Route, Site, Web, answer, redirect

# The beginnings of the rows' first cells.
CHALLENGE, SUCCESS, PAGE = "a challenge", "200-299", "the same, with a page of HTML"
REDIRECT, SIXTH, NOT_FOLLOWED = "301, ", "the sixth redirect", "a redirect that is not followed"
CLIENT_ERROR, SERVER_ERROR, OTHER = "400-499", "500-599", "202, "
NO_ANSWER, TIMEOUT, DROPPED = "none: DNS", "none: timeout", "none, because another middleware"


class Answered(NamedTuple):
    name: str
    row: str
    site: Callable[[Web], Site]


def _routes(row: str, routes: dict[str, Route]) -> list[Answered]:
    return [Answered(name, row, lambda web, route=route: web.robots(route)) for name, route in routes.items()]  # type: ignore[misc]


def _statuses(row: str, *statuses: int) -> list[Answered]:
    # All have the same body. Only the body of a success is read as rules.
    return _routes(row, {str(status): answer(RULES, status) for status in statuses})


def _chain(web: Web, redirects: int) -> Site:
    hops = {f"/{n}": redirect(f"/{n + 1}") for n in range(1, redirects)}
    return web.site({"/robots.txt": redirect("/1"), **hops, f"/{redirects}": answer(RULES)})


def _free_port() -> int:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return int(closed.getsockname()[1])


HTML = {"Content-Type": "text/html"}
ANUBIS = f'<!doctype html><html><script id="anubis_challenge">{{}}</script>\n{RULES}</html>'
ANSWERS = (
    *_statuses(SUCCESS, 200, 203, 299),
    *_routes(
        SUCCESS,
        {
            "200, gzip": answer(gzip.compress(RULES.encode()), headers={"Content-Encoding": "gzip"}),
            "200, gzip that no header names": answer(gzip.compress(RULES.encode())),
            "200, Content-Encoding: utf-8": answer(RULES, headers={"Content-Encoding": "utf-8"}),
            "200, Content-Encoding: gzip, but plain text": answer(RULES, headers={"Content-Encoding": "gzip"}),
            "200, UTF-16 without a mark": answer(RULES.encode("utf-16-le")),
            "200, HTML with rules in it": answer(f"<p>\n{RULES}</p>", headers=HTML),
            "200, made by a browser": answer(
                f"<html><head></head><body><pre>{RULES}</pre></body></html>", headers=HTML
            ),
            "200, endless": answer((RULES + "#" * 65_000).encode(), kind="endless"),
        },
    ),
    *_routes(
        PAGE,
        {
            "200, HTML": answer("<!DOCTYPE html>\n<html><p>Welcome</p></html>", headers=HTML),
            "200, HTML with a stray line": answer("<p>\nUser-agent: *\nSitemap: /s.xml\n</p>", headers=HTML),
            "200, HTML with a refresh": answer('<meta http-equiv="refresh" content="0; url=/x">', headers=HTML),
            "203, XML": answer('<?xml version="1.0"?><Error/>', 203, headers={"Content-Type": "text/xml"}),
        },
    ),
    Answered("301 to another origin's", REDIRECT, lambda web: web.robots(redirect(web.robots(RULES).robots_url))),
    *(
        Answered(
            f"{status} to a page",
            REDIRECT,
            lambda web, status=status: web.site({"/robots.txt": redirect("/x", status), "/x": answer(RULES)}),  # type: ignore[misc]
        )
        for status in (301, 302, 303, 307, 308)
    ),
    Answered("five redirects", REDIRECT, lambda web: _chain(web, 5)),
    Answered("six redirects", SIXTH, lambda web: _chain(web, 6)),
    *_routes(SIXTH, {"a redirect loop": redirect("/robots.txt")}),
    *_routes(
        NOT_FOLLOWED,
        {
            "302 without Location": answer(RULES, 302),
            "302 to file:": redirect("file:///robots.txt", 302),
            "302 to ftp:": redirect("ftp://127.0.0.1/robots.txt", 302),
            "302 with a user name": redirect("http://me@127.0.0.1/robots.txt", 302),
        },
    ),
    *_statuses(CLIENT_ERROR, 400, 401, 402, 403, 404, 405, 408, 410, 418, 451, 499),
    *_statuses(SERVER_ERROR, 500, 502, 503, 504, 599),
    *_statuses(OTHER, 202, 206, 300, 304, 305, 407, 429, 600, 999),
    *_routes(
        CHALLENGE,
        {
            "403, Cloudflare": answer(RULES, 403, headers={"CF-Mitigated": "challenge"}),
            "503, Cloudflare": answer(RULES, 503, headers={"cf-mitigated": "challenge"}),
            "202, AWS WAF": answer(status=202, headers={"x-amzn-waf-action": "challenge"}),
            "405, AWS WAF": answer(status=405, headers={"x-amzn-waf-action": "captcha"}),
            "429, Vercel": answer(RULES, 429, headers={"X-Vercel-Mitigated": "challenge"}),
            "200, Anubis": answer(ANUBIS, headers=HTML),
            "200, Imperva": answer('<script src="/_Incapsula_Resource?SWJIYLWA=1"></script>', headers=HTML),
            "403, DataDome": answer('<script src="https://ct.captcha-delivery.com/c.js"></script>', 403, headers=HTML),
            "403, a request for a signature": answer(status=403, headers={"Accept-Signature": 'sig1=("@authority")'}),
            "202, Anubis": answer(ANUBIS, 202, headers=HTML),
            "403, Anubis in gzip": answer(gzip.compress(ANUBIS.encode()), 403, headers={"Content-Encoding": "gzip"}),
        },
    ),
    Answered("connection refused", NO_ANSWER, lambda web: Site(web, _free_port())),
    Answered("TLS failure", NO_ANSWER, lambda web: Site(web, web.robots(RULES).port, "https")),
    *_routes(
        NO_ANSWER,
        {
            "reset": answer(kind="reset"),
            "garbage": answer(kind="garbage"),
            "cut off": answer(RULES, kind="cut"),
            "undecodable": answer(b"\xff" + RULES.encode(), headers={"Content-Encoding": "gzip"}),
            "undecodable, br": answer(b"\xff\xff", headers={"Content-Encoding": "br"}),
            "cut off in gzip": answer(gzip.compress(RULES.encode())[:-9], headers={"Content-Encoding": "gzip"}),
            "cut off in gzip that no header names": answer(gzip.compress(RULES.encode())[:14]),
            "unsupported Content-Encoding": answer(RULES, headers={"Content-Encoding": "compress"}),
        },
    ),
    *_routes(TIMEOUT, {"timeout": answer(kind="hang")}),
    Answered("dropped by a middleware", DROPPED, lambda web: web.site({"/robots.txt": answer(RULES)})),
)


def drops(*ports: int) -> type:
    """A downloader middleware that drops requests for the robots.txt of origins with these ports."""

    class Drops:
        def process_request(self, request: Request) -> None:
            if request.url.endswith("/robots.txt") and urlparse_cached(request).port in ports:
                raise IgnoreRequest("not today")

    return Drops
