"""The verdicts are the same with every reactor, and without one."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from processes import REACTORS, Ended, crawled
from web import RULES, Route, Web, answer, redirect


@cache
def bomb(_: Web) -> Route:
    return answer(gzip.compress(RULES.encode() + b"#" * 100_000_000, 1), headers={"Content-Encoding": "gzip"})


SETTINGS = {"REP_FETCH_TIMEOUT": 3, "DOWNLOAD_TIMEOUT": 10}
RULES_HOLD, EVERYTHING, NOTHING = "the rules hold", "everything is allowed", "nothing is allowed"

Robots = Route | Callable[[Web], Route]

TABLE: dict[str, tuple[Robots, str]] = {
    "2.3.1.1-200": (answer(RULES), RULES_HOLD),
    "2.3.1.1-203": (answer(RULES, status=203), RULES_HOLD),
    "2.3.1.1-endless": (answer(RULES + "#" * 65_000, kind="endless"), RULES_HOLD),
    "2.3.1.1-bomb": (bomb, RULES_HOLD),
    "2.3.1.2-elsewhere": (lambda web: redirect(web.robots(RULES).robots_url), RULES_HOLD),
    "2.3.1.2-loop": (redirect("/robots.txt"), EVERYTHING),
    "2.3.1.2-file": (redirect("file:///etc/passwd"), NOTHING),
    "2.3.1.2-nowhere": (answer(status=302), NOTHING),
    "2.3.1.3-401": (answer(RULES, status=401), EVERYTHING),
    "2.3.1.3-404": (answer(RULES, status=404), EVERYTHING),
    "2.3.1.3-markup": (answer("<html>Welcome</html>"), EVERYTHING),
    "2.3.1.4-202": (answer(RULES, status=202), NOTHING),
    "2.3.1.4-challenge": (answer(status=403, headers={"cf-mitigated": "challenge"}), NOTHING),
    "2.3.1.4-407": (answer(RULES, status=407), NOTHING),
    "2.3.1.4-500": (answer(RULES, status=500), NOTHING),
    "2.3.1.4-503": (answer(RULES, status=503), NOTHING),
    "2.3.1.4-300": (answer(RULES, status=300), NOTHING),
    "2.3.1.4-600": (answer(RULES, status=600), NOTHING),
    "2.3.1.4-reset": (answer(kind="reset"), NOTHING),
    "2.3.1.4-garbage": (answer(kind="garbage"), NOTHING),
    "2.3.1.4-cut": (answer(RULES, kind="cut"), NOTHING),
    "2.3.1.4-half-closed": (answer(RULES, kind="half-closed"), NOTHING),
    "2.3.1.4-hang": (answer(kind="hang"), NOTHING),
    "2.3.1.4-undecodable": (answer(b"\xff" + RULES.encode(), headers={"Content-Encoding": "gzip"}), NOTHING),
}
VERDICTS = {
    RULES_HOLD: {"/": "HTTP 200", "/private": "ForbiddenByRobots"},
    EVERYTHING: {"/": "HTTP 200", "/private": "HTTP 200"},
    NOTHING: {"/": "RobotsUnreachable", "/private": "RobotsUnreachable"},
}


def open_origins(web: Web, refused: str) -> dict[str, str]:
    """Open an origin for each row. Return origin -> row. Nobody listens at the origin `refused`."""
    rows = {
        web.robots(robots if isinstance(robots, dict) else robots(web)).origin: row
        for row, (robots, _) in TABLE.items()
    }
    rows[web.robots(RULES).origin.replace("http:", "https:")] = "2.3.1.4-tls-failure"
    rows[web.robots(RULES, tls=True).origin] = "2.3.1.1-https"
    rows[refused] = "2.3.1.4-refused"
    return rows


@pytest.fixture(scope="module")
def crawls(web: Web) -> dict[str, tuple[dict[str, str], Ended]]:
    """For each reactor, the rows of the origins and a crawl. The crawls run side by side, because they mostly wait."""
    with socket.socket() as nobody, ThreadPoolExecutor(len(REACTORS)) as pool:
        nobody.bind(("127.0.0.1", 0))
        rows = [open_origins(web, f"http://127.0.0.1:{nobody.getsockname()[1]}") for _ in REACTORS]
        urls = [[origin + path for origin in each for path in ("/", "/private")] for each in rows]
        ends = pool.map(crawled, urls, [{**SETTINGS, **settings} for settings in REACTORS.values()])
        return dict(zip(REACTORS, zip(rows, ends, strict=True), strict=True))


@pytest.mark.parametrize("reactor", REACTORS)
def test_the_same_verdicts_under_every_reactor(crawls: dict[str, tuple[dict[str, str], Ended]], reactor: str) -> None:
    rows, ended = crawls[reactor]
    expected = {row: meaning for row, (_, meaning) in TABLE.items()}
    expected |= {"2.3.1.1-https": RULES_HOLD, "2.3.1.4-tls-failure": NOTHING, "2.3.1.4-refused": NOTHING}
    verdicts = {row: {path: ended.by_url[origin + path] for path in ("/", "/private")} for origin, row in rows.items()}
    assert verdicts == {row: VERDICTS[meaning] for row, meaning in expected.items()}
    assert ended.complaints == []
