"""What each answer of robots.txt does to a crawl, ours beside the built-in: `python tests/benchmarks/status_table.py`.

For each row one crawl of two pages of a live origin, `/` and `/private`, under either middleware at its default
settings but for a timeout of one second: which pages were fetched, how often robots.txt was asked for, and the log
lines at WARNING and above.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scrapy.utils.reactor import install_reactor
from twisted.internet.defer import Deferred

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "protocol")]

from crawling import ADDON, BUILTIN, Crawl, crawl
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from web import RULES, Site, Web, answer, redirect

SETTINGS = {"REP_FETCH_TIMEOUT": 1, "DOWNLOAD_TIMEOUT": 1, "REP_FETCH_RETRIES": 1, "RETRY_ENABLED": True}


def chain(web: Web, redirects: int) -> Site:
    hops = {f"/{n}": redirect(f"/{n + 1}") for n in range(1, redirects)}
    return web.site({"/robots.txt": redirect("/1"), **hops, f"/{redirects}": answer(RULES)})


def with_status(web: Web, status: int) -> Site:
    return web.robots(answer(RULES, status))


ROWS: dict[str, Callable[[Web], Site]] = {
    "200": lambda web: web.robots(RULES),
    "301 to another origin's": lambda web: web.robots(redirect(web.robots(RULES).robots_url)),
    "five redirects": lambda web: chain(web, 5),
    "six redirects": lambda web: chain(web, 6),
    "a redirect loop": lambda web: web.robots(redirect("/robots.txt")),
    "302 without Location": lambda web: web.robots(answer(RULES, 302)),
    "302 to file:": lambda web: web.robots(redirect("file:///robots.txt", 302)),
    "304 unasked": lambda web: web.robots(answer(status=304)),
    **{str(status): partial(with_status, status=status) for status in (401, 403, 404, 429, 407, 500, 503, 999)},
    "connection refused": lambda web: Site(web, free_port()),
    "reset": lambda web: web.robots(answer(kind="reset")),
    "TLS failure": lambda web: Site(web, web.robots(RULES).port, "https"),
    "timeout": lambda web: web.robots(answer(kind="hang")),
    "cut off": lambda web: web.robots(answer(RULES, kind="cut")),
    "undecodable": lambda web: web.robots(answer(RULES, headers={"Content-Encoding": "gzip"})),
    "dropped by a middleware": lambda web: web.robots(RULES),
    "200, HTML with a refresh": lambda web: web.robots(
        answer('<meta http-equiv="refresh" content="0; url=/x">', headers={"Content-Type": "text/html"})
    ),
}


class Drops:
    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            raise IgnoreRequest("not today")


def free_port() -> int:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return int(closed.getsockname()[1])


def set_aside(site: Site) -> list[str]:
    return [target for target in site.targets if target not in {"/", "/private"}]


def account(result: Crawl, site: Site) -> str:
    fetched = [path for path in ("/", "/private") if site.url(path) in result.pages]
    warnings = [f"{len(result.messages())} warnings"] * bool(result.messages())
    tracebacks = [f"{len(result.tracebacks)} tracebacks"] * bool(result.tracebacks)
    # Counted at the server, but for the row where there is none.
    refused = result.stats.get("downloader/response_count", 0) == 0
    seen = result.stats.get("robotstxt/request_count", 0) if refused else len(set_aside(site))
    asked = f"{seen} asked"
    return ", ".join([" ".join(fetched) or "nothing", asked, *warnings, *tracebacks])


async def table() -> None:
    web = Web()
    print("| robots.txt | scrapy-rep: fetched, robots.txt requests, log | built-in |\n|---|---|---|")
    for name, make in ROWS.items():
        cells = []
        for robots in (ADDON, BUILTIN):
            site = make(web)
            settings: dict[str, Any] = dict(SETTINGS)
            if "dropped" in name:
                settings["DOWNLOADER_MIDDLEWARES"] = {Drops: 200}
            settings["REP_UNREACHABLE_WAIT"] = 0
            result = await crawl(site.url("/"), site.url("/private"), settings=settings, robots=robots)
            cells.append(account(result, site))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    web.close()


if __name__ == "__main__":
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet.task import react

    react(lambda _reactor: Deferred.fromCoroutine(table()))
