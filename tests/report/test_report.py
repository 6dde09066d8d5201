"""The report on a crawl's robots.txt (REP_REPORT)."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from crawling import Time, crawl, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from web import Web, answer

from scrapy_rep.exceptions import refusal
from scrapy_rep.extensions.report.collector import MAX_ORIGINS, NAMED, Report
from scrapy_rep.extensions.report.html import page
from scrapy_rep.extensions.report.top_k import TopK
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.lifecycle import Basis
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt

RULES = "user-agent: *\ndisallow: /private\ncrawl-delay: 2\n"


def objects(path: Path) -> dict[str, list[dict[str, Any]]]:
    by_type: dict[str, list[dict[str, Any]]] = {"crawl": [], "origin": [], "rule": []}
    for line in path.read_text("utf-8").splitlines():
        found = json.loads(line)
        by_type[found["type"]].append(found)
    return by_type


@ensureDeferred
async def test_what_it_tells(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "made" / "report.jsonl"
    site, gone, down = web.robots(RULES), web.robots(answer(status=404)), web.robots(answer(status=503))
    urls = [site.url("/"), site.url("/private/a"), site.url("/private/b"), gone.url("/"), down.url("/")]
    result = await crawl(*urls, settings={"REP_REPORT": str(path)})
    told = objects(path)
    (of_crawl,) = told["crawl"]
    assert (of_crawl["spider"], of_crawl["reason"]) == ("crawl", "finished")
    assert of_crawl["origins"] == {"success": 1, "unavailable": 1, "unreachable": 1}
    assert of_crawl["refused"] == {"rule": 2, "unreachable": 1}
    assert of_crawl["waited"]["requests"] == sum(of_crawl["waited"]["counts"]) == 5
    assert of_crawl["outages"] == {"began": 1, "not_over": 1}
    assert told["rule"] == [
        {"type": "rule", "robots_url": site.robots_url, "line": 2, "rule": "Disallow: /private", "pages": 2}
    ]
    by_origin = {origin["origin"]: origin for origin in told["origin"]}
    assert (by_origin[site.origin]["delay_asked"], by_origin[site.origin]["delay_obeyed"]) == (2, 0)
    assert (by_origin[site.origin]["refused"], by_origin[gone.origin]["answer"]) == (2, "HTTP 404")
    (outage,) = by_origin[down.origin]["outages"]
    assert (outage["cause"], outage["ended"]) == ("HTTP 503", None)
    assert f"REP_REPORT: written to {path}" in result.messages(0)


@ensureDeferred
async def test_an_outage_and_how_it_ended(web: Web, tmp_path: Path) -> None:
    site, time = web.robots([answer(status=503)] * 2 + [answer(RULES)]), Time()
    path = tmp_path / "report.jsonl"
    settings = {"REP_REPORT": path, "REP_UNREACHABLE_WAIT": 60}
    result = await crawl(site.url("/"), site.url("/private"), robots=with_clock(time), settings=settings)
    assert (len(result.pages), len(result.refused)) == (1, 1)
    ((origin,), (of_crawl,)) = (objects(path)[kind] for kind in ("origin", "crawl"))
    (outage,) = origin["outages"]
    assert outage["ended"] - outage["began"] == 15, "asked again after 5 s, and after 10 s more"
    assert outage["ended_in"] == "success"
    assert (origin["waited"], origin["waited_seconds"]) == (2, 30)
    assert of_crawl["outages"] == {"began": 1, "not_over": 0}
    assert of_crawl["waited"]["longest"] == 15
    assert of_crawl["ended"] - of_crawl["began"] == 15


@ensureDeferred
async def test_delays_obeyed_and_capped(web: Web, tmp_path: Path) -> None:
    sites = [web.robots(f"user-agent: *\ncrawl-delay: {delay}\n") for delay in (0.01, 100)]
    path = tmp_path / "report.jsonl"
    settings = {"REP_REPORT": str(path), "REP_CRAWL_DELAY_MAX": 0.1}
    await crawl(*(site.url("/") for site in sites), settings=settings)
    told = {origin["origin"]: origin["delay_obeyed"] for origin in objects(path)["origin"]}
    assert told == {sites[0].origin: 0.01, sites[1].origin: 0.1}


@ensureDeferred
async def test_names_and_times_in_the_path(web: Web, tmp_path: Path) -> None:
    time = Time(0.0)
    await crawl(settings={"REP_REPORT": f"{tmp_path}/%(name)s-%(time)s.html"}, robots=with_clock(time))
    (name,) = os.listdir(tmp_path)
    assert name == "crawl-1970-01-01T00-00-00.html"


@ensureDeferred
async def test_a_report_that_can_not_be_written_is_an_error_and_no_more(web: Web, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = await crawl(web.robots(RULES).url("/"), settings={"REP_REPORT": f"{tmp_path}/file/report.html"})
    assert len(result.pages) == 1
    (error,) = result.messages()
    assert "could not be written" in error
    assert result.tracebacks == []


@ensureDeferred
async def test_shadow_mode_is_reported_as_what_it_is(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    site = web.robots(RULES)
    await crawl(site.url("/private"), settings={"REP_REPORT": str(path), "REP_SHADOW": True})
    (of_crawl,) = objects(path)["crawl"]
    assert (of_crawl["refused"], of_crawl["shadow"]) == ({"rule": 1}, True)


# The page.


class Reader(HTMLParser):
    """Every tag is closed, and nothing is fetched from anywhere."""

    VOID = ("meta", "br", "rect", "line")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID or (tag == "rect" and self.get_starttag_text()[-2:] != "/>"):  # type: ignore[index]
            self.open.append(tag)
        self.attributes += attrs

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@ensureDeferred
async def test_the_page_is_one_file_that_refers_to_nothing(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    evil = web.robots("user-agent: *\ndisallow: /<script>alert(1)</script>\x1b[2J\n")
    down = web.robots(answer(status=503))
    urls = [evil.url("/<script>alert(1)</script>%1B%5B2J"), evil.url("/"), down.url("/")]
    await crawl(*urls, settings={"REP_REPORT": str(path)})
    html = path.read_text("utf-8")
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert not {"src", "href", "onload", "onerror"} & {name for name, _ in reader.attributes}
    assert "url(" not in html
    assert "@import" not in html
    assert "<script" not in html
    assert "Disallow: /<script>alert(1)</script>\\x1b[2J" in reader.text, "as written, and as text"
    assert '<meta name="viewport"' in html
    assert "prefers-color-scheme: dark" in html


@ensureDeferred
async def test_the_page_of_a_crawl_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    await crawl(settings={"REP_REPORT": str(path)})
    reader = Reader()
    reader.feed(path.read_text("utf-8"))
    assert "None." in reader.text


# Bounds.


def simulated(origins: int) -> Report:
    """The report of a crawl of so many origins: each hundredth refuses ten pages, each thousandth is dead."""
    rules = RobotsTxt.parse(b"user-agent: *\ndisallow: /private\n")
    time = Time()
    gate: Any = SimpleNamespace(now=time, tokens=lambda _request: ("bot",))
    crawler: Any = SimpleNamespace(signals=SimpleNamespace(connect=lambda *_, **__: None))
    settings: Any = SimpleNamespace(report="report.html", crawl_delay_max=0.0, shadow=False)
    report = Report(crawler, settings, gate)
    success, down = AccessResult.SUCCESS, AccessResult.UNREACHABLE
    for number in range(origins):
        origin = Origin("https", f"site{number}.example", None)
        request = Request(f"{origin}/private")
        dead = number % 1000 == 0
        access, robots = (down, None) if dead else (success, rules)
        words = "HTTP 503" if dead else "HTTP 200"
        obey = Basis.NOTHING_ALLOWED if dead else Basis.STORED
        facts = OriginInfo(origin.robots_url, access, words, obey, robots, None, 0.0, time.now if dead else None, "")
        report.asked(origin, facts, request)
        report.waited(origin, 0.2)
        if number % 100 == 1:
            verdict = rules.verdict(request.url, "bot")
            for _ in range(10):
                report.refused(request, refusal(verdict, words))
    return report


def test_a_crawl_of_many_origins_takes_no_more_memory_than_one_of_few() -> None:
    spider: Any = SimpleNamespace(name="broad")
    peaks = []
    for origins in (3 * MAX_ORIGINS, 10 * MAX_ORIGINS):
        tracemalloc.start()
        report = simulated(origins)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
    crawl_line, *others = report.lines(spider, "finished")
    assert crawl_line["origins"] == {"success": 49_950, "unreachable": 50}
    assert crawl_line["refused"] == {"rule": 5_000}
    assert crawl_line["outages"] == {"began": 50, "not_over": 50}
    assert crawl_line["origins_not_named"] == 10 * MAX_ORIGINS - NAMED
    named = [line for line in others if line["type"] == "origin"]
    assert len(named) == NAMED
    assert all(line["refused"] or line["outages"] for line in named), "those of which there is something to tell"
    assert len(page([crawl_line, *others])) < 100_000


@pytest.mark.parametrize("most", [1, 3, 100])
def test_the_largest_and_the_rest_are_all(most: int) -> None:
    rest: list[int] = []
    largest: TopK[int, list[int]] = TopK(most, lambda: [0], lambda v: v[0], lambda v: rest.append(v[0]))
    for number in range(1000):
        key = number if number % 3 else 7
        largest[key][0] += 1
    assert sum(value[0] for _key, value in largest.items()) + sum(rest) == 1000
    assert len(largest) <= 2 * most
    assert len(rest) == largest.put_aside
    assert largest.items()[0][0] == 7
    sizes = [value[0] for _key, value in largest.items()]
    assert sizes == sorted(sizes, reverse=True)


def test_no_colour_stands_for_two_access_results() -> None:
    html = page([simulated_crawl_line()])
    for access in AccessResult:
        if access is not AccessResult.REDIRECT:
            assert re.search(rf"key \w+\"></span>{access.value}<", html)


def simulated_crawl_line() -> dict[str, Any]:
    spider: Any = SimpleNamespace(name="x")
    (line, *_) = simulated(0).lines(spider, "finished")
    return {**line, "origins": {access.value: 1 for access in AccessResult}}
