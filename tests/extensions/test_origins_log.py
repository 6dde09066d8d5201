"""The log of origins without rules, and the last lines of a crawl."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, Time, close_spider, crawl, in_turn, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from web import RULES, Route, Web, answer, redirect

from scrapy_rep.protocol.words import CHALLENGE_ADVICE, SIGNATURE_ADVICE
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import robots_known

END = "robots.txt of "
NO_RULES = ", so everything is allowed"
NOTHING = "Refused requests: 0"


def end(result: Crawl) -> list[str]:
    """The last lines, which are about the whole crawl."""
    lines = result.messages(logging.INFO, "scrapy_rep")
    (first,) = (number for number, line in enumerate(lines) if line.startswith(END))
    return lines[first:]


@ensureDeferred
async def test_the_last_lines_count_refusals_and_name_the_rules(web: Web) -> None:
    site, down, closed = web.robots(RULES), web.robots(answer(status=503)), web.robots(answer(status=403))
    urls = [site.url("/"), site.url("/private/a"), site.url("/private/b"), down.url("/"), closed.url("/")]
    result = await crawl(*urls, settings={"REP_STATUS_POLICY": "cautious"})
    origins, refused, rules = end(result)
    assert origins == "robots.txt of 3 origins: 1 with rules, 1 restricted (1 x HTTP 403), 1 unreachable"
    assert refused == "Refused requests: 4 (2 by rules, 1 because robots.txt was unreachable, 1 by REP_STATUS_POLICY)"
    most = f"2 x {site.robots_url} line 2 (Disallow: /private)"
    assert rules.startswith(f"Most frequent reasons for refusal: {most}; 1 x ")
    assert f"; 1 x {down.robots_url} (HTTP 503)" in rules
    assert f"; 1 x {closed.robots_url} (HTTP 403)" in rules
    assert rules.endswith(". For details, set REP_REPORT")


@ensureDeferred
async def test_the_last_lines_if_nothing_was_refused(web: Web) -> None:
    site = web.robots(RULES)
    nothing = await crawl(site.url("/"), site.url("/b"))
    assert end(nothing) == ["robots.txt of 1 origin: 1 with rules", NOTHING]
    assert end(await crawl()) == ["robots.txt of 0 origins: none was needed", NOTHING]


CHALLENGE = answer(status=403, headers={"cf-mitigated": "challenge"})
PAGE = answer("<!DOCTYPE html><p>Welcome</p>")


@ensureDeferred
async def test_the_last_lines_and_the_stats_count_each_origin(web: Web) -> None:
    answers = [answer(RULES)] * 2 + [answer(status=404)] * 4 + [PAGE] * 2 + [answer("")]
    answers += [redirect("/robots.txt"), CHALLENGE, answer(status=405, headers={"x-amzn-waf-action": "captcha"})]
    answers += [answer(status=503), answer(status=500)]
    sites = [web.robots(each) for each in answers]
    # Two pages of each origin, which counts once.
    result = await crawl(*(site.url(path) for site in sites for path in ("/a", "/b")))
    origins, refused, _rules = end(result)
    assert origins == (
        "robots.txt of 14 origins: 2 with rules, 8 without rules (4 x HTTP 404, 2 x a page of HTML,"
        " 1 x a file without rules, 1 x too many redirects), 2 challenged (1 x AWS WAF, 1 x Cloudflare), 2 unreachable"
    )
    assert refused == "Refused requests: 8 (8 because robots.txt was unreachable)"
    told = {stat: n for stat, n in result.stats.items() if stat.startswith(("rep/no_rules/", "rep/challenge/"))}
    no_rules = {"status": 4, "markup": 2, "empty": 1, "redirects": 1}
    challenges = {"rep/challenge/Cloudflare": 1, "rep/challenge/AWS WAF": 1}
    assert told == {**{f"rep/no_rules/{cause}": n for cause, n in no_rules.items()}, **challenges}


@ensureDeferred
async def test_only_the_most_common_causes_are_named(web: Web) -> None:
    sites = [web.robots(answer(status=status)) for status in (404, 404, *range(410, 417))]
    line, _nothing = end(await crawl(*(site.url("/") for site in sites)))
    assert "9 without rules (2 x HTTP 404, 1 x HTTP 410, " in line
    assert line.endswith(", 3 x others)")


@ensureDeferred
async def test_only_the_last_result_of_an_origin_counts(web: Web) -> None:
    site, time = web.robots([CHALLENGE, answer(status=404), PAGE]), Time()
    settings = {"REP_UNREACHABLE_WAIT": 30}
    spider = in_turn(time, 90_000.0)
    result = await crawl(site.url("/"), settings=settings, robots=with_clock(time), spider=spider)
    assert end(result) == ["robots.txt of 1 origin: 1 without rules (1 x a page of HTML)", NOTHING]
    causes = {"rep/challenge/Cloudflare": 0, "rep/no_rules/status": 0, "rep/no_rules/markup": 1}
    assert {stat: result.stats[stat] for stat in causes} == causes


@ensureDeferred
async def test_requests_that_still_wait_when_the_crawl_stops_are_counted(web: Web) -> None:
    down, hangs = web.robots(answer(status=503)), web.robots(answer(kind="hang"))

    class Stops(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            async for request in super().start():
                yield request
            while not self.crawler.stats.get_value("rep/access/unreachable"):
                await sleep(0.005)
            close_spider(self, "enough")

    urls = [site.url(path) for site in (down, hangs) for path in ("/a", "/b", "/c")]
    result = await crawl(*urls, spider=Stops, settings={"REP_UNREACHABLE_WAIT": 600})
    waited = "6 requests still waited for robots.txt when the crawl stopped"
    assert waited in result.messages(logging.INFO, "scrapy_rep")
    assert end(result) == ["robots.txt of 1 origin: 1 unreachable", NOTHING]


@ensureDeferred
async def test_the_first_challenge_is_explained(web: Web) -> None:
    sites = [web.robots(CHALLENGE) for _ in range(2)]
    result = await crawl(*(site.url("/") for site in sites))
    warnings = result.messages(logger="scrapy_rep")
    assert warnings[1] == CHALLENGE_ADVICE
    challenged = "HTTP 403, a challenge by Cloudflare. Requests to this site are refused (RFC 9309 2.3.1.4)"
    assert {warnings[0], warnings[2]} == {f"{site.robots_url}: {challenged}" for site in sites}
    (summary,) = warnings[3:]
    assert summary.startswith("2 requests were refused because robots.txt was unreachable; 2 origins had outages: ")
    ends = [
        f"2 x {each.robots_url} (HTTP 403, a challenge by Cloudflare) or the same on 1 other origin" for each in sites
    ]
    assert summary.endswith(tuple(ends))
    accepted = await crawl(sites[0].url("/"), settings={"REP_STATUS_POLICY": {"challenge": "unavailable"}})
    assert accepted.messages(logger="scrapy_rep") == []


@ensureDeferred
async def test_the_first_request_for_a_signature_is_explained(web: Web) -> None:
    asks = answer(status=403, headers={"Accept-Signature": 'sig1=("@authority");tag="web-bot-auth"'})
    sites = [web.robots(each) for each in (asks, asks, CHALLENGE)]
    result = await crawl(*(site.url("/") for site in sites))
    warnings = result.messages(logger="scrapy_rep")
    advice = [warning for warning in warnings if warning.startswith("With ")]
    assert sorted(advice) == sorted([SIGNATURE_ADVICE, CHALLENGE_ADVICE])  # the sites answer in any order
    asked = "HTTP 403, a challenge by Web Bot Auth. Requests to this site are refused (RFC 9309 2.3.1.4)"
    assert f"{sites[0].robots_url}: {asked}" in warnings


@ensureDeferred
async def test_a_crawl_with_a_report_refers_to_the_report(web: Web, tmp_path: Path) -> None:
    result = await crawl(web.robots(RULES).url("/private"), settings={"REP_REPORT": str(tmp_path / "report.html")})
    assert end(result)[2].endswith(". The report (REP_REPORT) has details")


@pytest.mark.parametrize(
    ("route", "why"),
    [
        (answer(status=404), "none (HTTP 404)"),
        (answer(status=403), "none (HTTP 403)"),
        (redirect("/robots.txt", status=302), "more than 5 redirects in a row"),
        (
            answer("\n<!DOCTYPE html><html><p>Welcome: here</p>", headers={"Content-Type": "text/html"}),
            "HTTP 200, a page of HTML",
        ),
        (answer(f"<!-- made by hand -->\n{RULES}"), None),
        (answer(RULES), None),
        (answer(""), "HTTP 200, a file without rules"),
        (answer(status=503), None),
    ],
    ids=["404", "403", "loop", "html", "rules-in-html", "rules", "empty", "outage"],
)
@ensureDeferred
async def test_each_origin_without_rules_has_one_line(web: Web, route: Route, why: str | None) -> None:
    site = web.robots(route)
    result: Any = await crawl(site.url("/a"), site.url("/b"))
    lines = [m for m in result.messages(logging.DEBUG, "scrapy_rep") if m.endswith(NO_RULES)]
    assert lines == ([f"{site.robots_url}: {why}{NO_RULES}"] if why is not None else [])


@ensureDeferred
async def test_the_first_page_of_html_is_logged_at_info(web: Web) -> None:
    sites = [web.robots(PAGE), web.robots(PAGE), web.robots(answer(status=404))]
    result = await crawl(*(site.url("/") for site in sites))
    (line,) = (m for m in result.messages(logging.INFO, "scrapy_rep") if m.endswith(NO_RULES))
    assert line in {f"{site.robots_url}: HTTP 200, a page of HTML{NO_RULES}" for site in sites[:2]}


@pytest.mark.parametrize("status", [401, 402, 403, 451])
@ensureDeferred
async def test_the_first_site_that_denies_access_to_its_robots_txt_is_logged_at_info(web: Web, status: int) -> None:
    sites = [web.robots(answer(status=each)) for each in (status, status, 404)]
    result = await crawl(*(site.url("/") for site in sites))
    (line,) = (m for m in result.messages(logging.INFO, "scrapy_rep") if m.endswith(NO_RULES))
    assert line in {f"{site.robots_url}: none (HTTP {status}){NO_RULES}" for site in sites[:2]}


@ensureDeferred
async def test_an_error_in_a_listener_refuses_nothing(web: Web) -> None:
    site = web.robots(RULES)

    def fails(*_: Any) -> None:
        raise RuntimeError("a fault of the log's")

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(fails, robots_known, weak=False)

    result = await crawl(site.url("/"), prepare=prepare)
    assert list(result.pages) == [site.url("/")]
    assert end(result)[0] == "robots.txt of 1 origin: 1 with rules"
    assert len(result.tracebacks) == 1
