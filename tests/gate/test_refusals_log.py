"""Refused pages that are logged at INFO: the first for each rule, and all in a command that fetches one page."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from crawling import Crawl, CrawlSpider, crawl, forbidden, refusal_by
from processes import run_python
from pytest_twisted import ensureDeferred
from scrapy.http import Response
from scrapy.pipelines.files import FilesPipeline
from web import RULES, Web, answer, redirect

from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import REASON_WORDS
from scrapy_rep.refusals import MAX_FIRST_REFUSALS

FORBIDDEN = tuple(words.refusal.partition("{")[0] for words in REASON_WORDS.values() if words.refusal)


def refusals(result: Crawl, level: int = logging.INFO) -> list[str]:
    return [m for m in result.messages(level, "scrapy_rep") if m.startswith(FORBIDDEN)]


@ensureDeferred
async def test_the_first_page_that_a_rule_refuses_is_logged_at_info(web: Web) -> None:
    site = web.robots("User-agent: *\nDisallow: /a\nDisallow: /b\n")
    result = await crawl(*(site.url(path) for path in ("/a/1", "/a/2", "/b/1", "/b/2")))
    line_2, line_3 = refusals(result)
    assert line_2 == (
        f"Forbidden by robots.txt ({site.robots_url}, line 2, group of '*': Disallow: /a): <GET {site.url('/a/1')}>"
    )
    assert ", line 3, " in line_3
    assert len(refusals(result, logging.DEBUG)) == 4


@ensureDeferred
async def test_the_same_rule_of_another_site_is_another_rule(web: Web) -> None:
    sites = [web.robots(RULES), web.robots(RULES)]
    result = await crawl(*(site.url("/private") for site in sites))
    assert len(refusals(result)) == 2


@ensureDeferred
async def test_at_most_ten_such_lines_are_logged(web: Web) -> None:
    number = MAX_FIRST_REFUSALS + 5
    site = web.robots("User-agent: *\n" + "".join(f"Disallow: /{n}/\n" for n in range(number)))
    result = await crawl(*(site.url(f"/{n}/") for n in range(number)))
    assert (len(refusals(result)), len(refusals(result, logging.DEBUG))) == (10, number)
    more = "More than 10 rules refuse pages. The others are DEBUG lines"
    lines = [message for message in result.messages(logging.INFO, "scrapy_rep") if message == more]
    assert len(lines) == 1
    ten = await crawl(*(site.url(f"/{n}/") for n in range(MAX_FIRST_REFUSALS)))
    assert more not in ten.messages(logging.INFO, "scrapy_rep")


@ensureDeferred
async def test_refusals_by_a_status_policy_are_logged_at_info_but_not_those_of_an_outage(web: Web) -> None:
    closed, down = web.robots(answer(status=403)), web.robots(answer(status=503))
    urls = [site.url(path) for site in (closed, down) for path in ("/1", "/2")]
    result = await crawl(*urls, settings={"REP_STATUS_POLICY": "cautious"})
    (line,) = refusals(result)
    message = refusal_by(VerdictReason.RESTRICTED, url=closed.robots_url, answer="HTTP 403")
    assert line.startswith(f"{message}: <GET ")
    assert f"{down.robots_url}: HTTP 503. " in result.messages(logger="scrapy_rep")[0]


@ensureDeferred
async def test_the_last_line_names_the_rules_that_refused_most(web: Web) -> None:
    rules = "".join(f"Disallow: /{n}/\n" for n in range(1, 6))
    site = web.robots(f"User-agent: *\n{rules}")
    result = await crawl(*(site.url(f"/{n}/{page}") for n in range(1, 6) for page in range(n)))
    most = "; ".join(f"{n} x {site.robots_url} line {n + 1} (Disallow: /{n}/)" for n in (5, 4, 3))
    line = f"Most frequent reasons for refusal: {most}. For details, set REP_REPORT"
    assert result.messages(logging.INFO, "scrapy_rep")[-1] == line


@ensureDeferred
async def test_a_refused_file_of_a_pipeline_is_logged(web: Web, tmp_path: Path) -> None:
    files = web.robots(RULES)
    site = web.site({})

    class Files(CrawlSpider):
        def parse(self, response: Response, **kwargs: object) -> object:
            super().parse(response)
            return {"file_urls": [files.url("/private/price.pdf")]}

    settings = {"ITEM_PIPELINES": {FilesPipeline: 1}, "FILES_STORE": str(tmp_path)}
    result = await crawl(site.url("/"), spider=Files, settings=settings)
    (line,) = refusals(result)
    assert line.endswith(f", line 2, group of '*': Disallow: /private): <GET {files.url('/private/price.pdf')}>")


@pytest.mark.parametrize("command", [["fetch"], ["parse", "--spider", "one"], ["shell", "-c", "print(response)"]])
def test_a_command_that_fetches_one_page_logs_why_it_is_refused(web: Web, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = ours\n")
    (tmp_path / "ours.py").write_text(
        'ADDONS = {"scrapy_rep.Addon": 500}\nSPIDER_MODULES = ["spider"]\nLOG_LEVEL = "INFO"\n'
    )
    (tmp_path / "spider.py").write_text("import scrapy\n\nclass One(scrapy.Spider):\n    name = 'one'\n")
    site = web.robots(RULES)
    quick = ["-s", "TELNETCONSOLE_ENABLED=False"]
    done = run_python("-m", "scrapy", *command, *quick, site.url("/private"), cwd=tmp_path)
    why = forbidden(f"{site.robots_url}, line 2, group of '*': Disallow: /private")
    assert f"[scrapy_rep] INFO: {why}: <GET {site.url('/private')}>" in done.stderr


@ensureDeferred
async def test_a_refusal_names_the_address_that_the_rules_came_from(web: Web) -> None:
    site = web.robots(RULES)
    moved = web.robots(redirect(site.robots_url))
    result = await crawl(moved.url("/private"))
    where = f"{moved.robots_url}, redirected to {site.robots_url}"
    message = forbidden(f"{where}, line 2, group of '*': Disallow: /private")
    assert refusals(result) == [f"{message}: <GET {moved.url('/private')}>"]
    assert str(result.refused[moved.url("/private")]) == message
    (most,) = (m for m in result.messages(logging.INFO) if m.startswith("Most frequent reasons for refusal: "))
    assert f": 1 x {where} line 2 (Disallow: /private). " in most


@ensureDeferred
async def test_an_outage_names_the_address_that_does_not_answer(web: Web) -> None:
    down = web.robots(answer(status=503))
    moved = web.robots(redirect(down.robots_url))
    result = await crawl(moved.url("/"))
    where = f"{moved.robots_url}, redirected to {down.robots_url}"
    assert result.messages(logger="scrapy_rep")[0].startswith(f"{where}: HTTP 503. Requests to this site ")
    assert str(result.refused[moved.url("/")]) == refusal_by(VerdictReason.UNREACHABLE, url=where, answer="HTTP 503")


@ensureDeferred
@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("ftp://h.example/x", "to ftp:, which is neither http nor https: ftp://h.example/x"),
        ("https://h:port/\x07", "without a Location that can be followed: https://h:port/\\x07"),
        ("", "without a Location that can be followed"),
    ],
    ids=["not followed", "malformed", "empty"],
)
async def test_a_location_that_is_not_followed_is_shown_with_the_reason(web: Web, location: str, why: str) -> None:
    site = web.robots(redirect(location))
    result = await crawl(site.url("/"))
    assert result.messages(logger="scrapy_rep")[0].startswith(f"{site.robots_url}: HTTP 301 {why}. Requests to this ")
    assert str(result.refused[site.url("/")]).endswith(f"({site.robots_url}: HTTP 301 {why})")
