"""What the log says of origins without rules, and at the end of a crawl."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from crawling import Crawl, crawl
from pytest_twisted import ensureDeferred
from web import RULES, Route, Web, answer, redirect

END = "robots.txt of "
NO_RULES = "robots.txt has no rules, so everything is allowed: "


def last_line(result: Crawl) -> str:
    """The one line about the whole crawl."""
    (line,) = (m for m in result.messages(logging.INFO, "scrapy_rep") if m.startswith(END))
    return line


@ensureDeferred
async def test_one_line_at_the_end_says_what_was_refused_and_where_to_look(web: Web) -> None:
    site, down, closed = web.robots(RULES), web.robots(answer(status=503)), web.robots(answer(status=403))
    urls = [site.url("/"), site.url("/private/a"), site.url("/private/b"), down.url("/"), closed.url("/")]
    result = await crawl(*urls, settings={"REP_STATUS_POLICY": "cautious"})
    assert last_line(result) == (
        "robots.txt of 3 origins: 4 requests refused, 2 by rules, 1 by outages, 1 by policy;"
        " to see why, run `scrapy robots URL` or set REP_REPORT"
    )


@ensureDeferred
async def test_where_nothing_is_refused_there_is_nothing_to_look_for(web: Web) -> None:
    site = web.robots(RULES)
    assert last_line(await crawl(site.url("/"), site.url("/b"))) == "robots.txt of 1 origin: 0 requests refused"
    assert last_line(await crawl()) == "robots.txt of 0 origins: 0 requests refused"


@ensureDeferred
async def test_a_crawl_with_a_report_names_the_command_alone(web: Web, tmp_path: Path) -> None:
    result = await crawl(web.robots(RULES).url("/private"), settings={"REP_REPORT": str(tmp_path / "report.html")})
    assert last_line(result).endswith("1 by rules; to see why, run `scrapy robots URL`")


@pytest.mark.parametrize(
    ("route", "why"),
    [
        (answer(status=404), "HTTP 404"),
        (answer(status=403), "HTTP 403"),
        (redirect("/robots.txt", status=302), "more than 5 redirects in a row"),
        (
            answer("\n<!DOCTYPE html><html><p>Welcome: here</p>", headers={"Content-Type": "text/html"}),
            "HTTP 200, a page of HTML",
        ),
        (answer(f"<!-- made by hand -->\n{RULES}"), None),
        (answer(RULES), None),
        (answer(""), None),
        (answer(status=503), None),
    ],
    ids=["404", "403", "loop", "html", "rules-in-html", "rules", "empty", "outage"],
)
@ensureDeferred
async def test_one_line_for_each_origin_that_allows_everything_without_rules(
    web: Web, route: Route, why: str | None
) -> None:
    site = web.robots(route)
    result: Any = await crawl(site.url("/a"), site.url("/b"))
    lines = [m for m in result.messages(logging.DEBUG, "scrapy_rep") if m.startswith(NO_RULES)]
    assert len(lines) == (why is not None)
    assert all(line.startswith(f"{NO_RULES}{site.robots_url}: {why}") for line in lines)
