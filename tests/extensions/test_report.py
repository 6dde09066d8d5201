"""The report (REP_REPORT): its data, and where it is written."""

from __future__ import annotations

import gc
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from crawling import Time, crawl, with_clock
from dict_storage import DictStorage
from pytest_twisted import ensureDeferred
from reports import HOSTILE, RULES, SimulatedCrawl, broad_crawl, hostile_crawl, lines_of
from scrapy import Request, signals
from scrapy.crawler import Crawler
from web import Web, answer

from scrapy_rep import refusals
from scrapy_rep.extensions import report
from scrapy_rep.extensions.report import WaitingTimes
from scrapy_rep.protocol.foreign_text import MAX_RULE, MAX_TEXT
from scrapy_rep.protocol.outage import BACKOFFS
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import REASON_WORDS

UNREACHABLE = REASON_WORDS[VerdictReason.UNREACHABLE.value].refused


@ensureDeferred
async def test_the_report_of_a_small_crawl(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "made" / "report.jsonl"
    site, gone, down = web.robots(RULES), web.robots(answer(status=404)), web.robots(answer(status=503))
    urls = [site.url("/"), site.url("/private/a"), site.url("/private/b"), gone.url("/"), down.url("/")]
    result = await crawl(*urls, settings={"REP_REPORT": str(path)})
    told = lines_of(path)
    (of_crawl,) = told["crawl"]
    assert (of_crawl["spider"], of_crawl["finish_reason"], of_crawl["dry_run"]) == ("crawl", "finished", False)
    assert (of_crawl["origins"], of_crawl["origins_not_listed"]) == (3, 0)
    assert of_crawl["kinds"] == [
        {"kind": "with rules", "cause": "", "origins": 1},
        {"kind": "without rules", "cause": "HTTP 404", "origins": 1},
        {"kind": "unreachable", "cause": "", "origins": 1},
    ]
    assert (of_crawl["requests"], of_crawl["fetched"], of_crawl["refused"]) == (5, 2, 3)
    assert of_crawl["refused_by"] == {"rule": 2, "unreachable": 1}
    assert of_crawl["waited"]["requests"] == sum(wait["count"] for wait in of_crawl["waited"]["classes"]) == 5
    assert (of_crawl["outages"], of_crawl["outages_not_over"]) == (1, 1)
    examples = [
        {"url": site.url(page), "robots_url": site.robots_url, "final_url": site.robots_url, "line": 2}
        for page in ("/private/a", "/private/b")
    ]
    by_rule, by_outage = told["refused"]
    assert sorted(by_rule.pop("examples"), key=lambda example: str(example["url"])) == examples
    assert by_rule == {
        "type": "refused",
        "reason": "rule",
        "text": "Disallow: /private",
        "pages": 2,
        "share": 0.4,
        "origins": 1,
        "more_origins": False,
    }
    assert (by_outage["reason"], by_outage["text"]) == ("unreachable", f"{UNREACHABLE}: HTTP 503")
    by_origin = {origin["origin"]: origin for origin in told["origin"]}
    of_site = by_origin[site.origin]
    assert (of_site["robots_url"], of_site["crawl_delay"]) == (site.robots_url, 2)
    assert (of_site["fetched"], of_site["refused"], of_site["waited"]) == (1, 2, 3)
    assert 0 <= of_site["waited_median"] <= of_site["waited_longest"]
    of_gone = by_origin[gone.origin]
    assert [of_gone[key] for key in ("kind", "cause", "access", "answer")] == [
        *("without rules", "HTTP 404", "unavailable", "HTTP 404")
    ]
    (outage,) = by_origin[down.origin]["outages"]
    assert (outage["reason"], outage["ended"]) == ("HTTP 503", None)
    assert f"REP_REPORT: written to {path}" in result.messages(0)
    assert result.tracebacks == []


@pytest.mark.parametrize("dry_run", [False, True])
@ensureDeferred
async def test_pages_and_origins_by_purpose_and_preference(web: Web, tmp_path: Path, dry_run: bool) -> None:
    path = tmp_path / "report.jsonl"
    robots = answer("user-agent: *\ndisallow: /private\ncontent-usage: /art train-ai=n\n")
    by_header = answer("page", headers={"Content-Usage": "train-ai=n, search=y"})
    site, silent = web.site({"/robots.txt": robots, "/a": by_header}), web.site()
    urls = [*map(site.url, ("/art/1", "/art/2", "/a", "/b", "/private")), silent.url("/")]
    settings = {"REP_PURPOSES": "train-ai,search", "REP_PURPOSES_REFUSE": True, "REP_DRY_RUN": dry_run}
    await crawl(*urls, settings={**settings, "REP_REPORT": str(path)})
    told = lines_of(path)
    (of_crawl,) = told["crawl"]
    unjudged = 1 if dry_run else 0  # the private page
    assert [tuple(stated.values()) for stated in of_crawl["usage"]] == [
        ("train-ai", "allowed", 0, 0),
        ("train-ai", "disallowed", 3, 1),
        ("train-ai", "unknown", 2 + unjudged, 2),
        ("search", "allowed", 1, 1),
        ("search", "disallowed", 0, 0),
        ("search", "unknown", 4 + unjudged, 2),
    ]
    assert of_crawl["refused_by"] == {"rule": 1, "usage": 3}
    refused = {line["text"]: line for line in told["refused"]}
    by_file, by_response = refused["Content-Usage: /art train-ai=n"], refused["Content-Usage: train-ai=n, search=y"]
    assert (by_file["reason"], by_file["pages"], by_file["examples"][0]["line"]) == ("usage", 2, 3)
    assert (by_response["pages"], by_response["examples"][0]["line"]) == (1, None)


@ensureDeferred
async def test_product_token_and_settings(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    settings = {
        "REP_REPORT": path,
        "USER_AGENT": "NewsBot/1.0",
        "REP_STATUS_POLICY": "cautious",
        "REP_BODY_LIMIT": 512_000,  # the default
        "REP_STORAGE": "other://user:secret@host?password=secret",
        "REP_STORAGES": {"other": DictStorage},
    }
    await crawl(settings=settings)
    assert "secret" not in path.read_text("utf-8")
    ((told,),) = (lines_of(path)["crawl"],)
    assert told["product_tokens"] == ["NewsBot"]
    assert told["product_token_source"] == "the User-Agent in USER_AGENT"
    assert told["status_policy"] == "cautious"
    assert told["settings"]["REP_STORAGE"] == "other://user:...@host?..."
    changed = {"REP_STATUS_POLICY", "REP_STORAGE", "REP_STORAGES", "REP_FETCH_RETRIES", "REP_UNREACHABLE_WAIT"}
    assert set(told["settings"]) == changed, "the settings of this crawl, and those of all crawls in these tests"
    assert set(told["versions"]) == {"scrapy-rep", "Scrapy", "Twisted", "Python"}


@ensureDeferred
async def test_an_outage_and_how_it_ended(web: Web, tmp_path: Path) -> None:
    site, time = web.robots([answer(status=503)] * 2 + [answer(RULES)]), Time()
    path = tmp_path / "report.jsonl"
    settings = {"REP_REPORT": path, "REP_UNREACHABLE_WAIT": 60}
    result = await crawl(site.url("/"), site.url("/private"), robots=with_clock(time), settings=settings)
    assert (len(result.pages), len(result.refused)) == (1, 1)
    ((origin,), (of_crawl,)) = (lines_of(path)[kind] for kind in ("origin", "crawl"))
    (outage,) = origin["outages"]
    seconds = sum(BACKOFFS[:2])
    assert outage["ended"] - outage["began"] == seconds, "requested again after the first backoff and the second"
    assert outage["ended_in"] == "with rules"
    assert (origin["waited"], origin["outage_seconds"]) == (2, seconds)
    assert (of_crawl["outages"], of_crawl["outages_not_over"]) == (1, 0)
    assert of_crawl["ended"] - of_crawl["began"] == seconds


def test_the_first_four_outages_and_the_last_are_listed(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.html")
    for number in range(9):
        crawl.robots("https://a.example", answer=f"HTTP 50{number}")
        crawl.time.now += 1
        if number < 8:
            crawl.robots("https://a.example", body=RULES)
            crawl.time.now += 1
    of_crawl, origin = crawl.lines()
    assert [outage["reason"] for outage in origin["outages"]] == [f"HTTP 50{number}" for number in (0, 1, 2, 3, 8)]
    assert origin["outage_seconds"] == 5
    assert (of_crawl["outages"], of_crawl["outages_not_over"]) == (9, 1)
    assert of_crawl["kinds"] == [{"kind": "unreachable", "cause": "", "origins": 1}]


def test_an_outage_of_a_host_that_hung_counts_from_the_first_request(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.html")
    began = crawl.time.now
    crawl.time.now += 30
    crawl.robots("https://hangs.example", answer="no answer", seconds=30, timed_out=True)
    crawl.time.now += 1
    _of_crawl, origin = crawl.lines()
    assert [outage["began"] for outage in origin["outages"]] == [began]
    assert origin["outage_seconds"] == 31


@ensureDeferred
async def test_a_dry_run_refuses_nothing_and_counts_each_page_once(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    site = web.robots(RULES)
    await crawl(site.url("/"), site.url("/private"), settings={"REP_REPORT": str(path), "REP_DRY_RUN": True})
    (of_crawl,) = lines_of(path)["crawl"]
    assert (of_crawl["dry_run"], of_crawl["refused_by"]) == (True, {"rule": 1})
    assert (of_crawl["requests"], of_crawl["fetched"], of_crawl["refused"]) == (2, 2, 1)


@ensureDeferred
async def test_pages_without_a_robots_txt_are_counted_too(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    exempt, free, site = web.site(), web.site(), web.robots(RULES)
    requests: list[str | Request] = [
        exempt.url("/"),
        Request(free.url("/"), meta={"dont_obey_robotstxt": True}),
        "data:,x",
        site.url("/"),
    ]
    await crawl(*requests, settings={"REP_REPORT": str(path), "REP_EXEMPT": [exempt.origin]})
    told = lines_of(path)
    assert told["crawl"][0]["fetched"] == 4
    assert [(origin["origin"], origin["fetched"]) for origin in told["origin"]] == [(site.origin, 1)]


@ensureDeferred
async def test_rules_are_grouped_across_origins(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    sites = [web.robots("#\n" * line + "user-agent: *\ndisallow: /private\n") for line in range(5)]
    urls = [site.url(f"/private/{page}") for site in sites for page in (1, 1, 2)]
    await crawl(*urls, settings={"REP_REPORT": str(path), "CONCURRENT_REQUESTS": 1})
    (told,) = lines_of(path)["refused"]
    assert (told["pages"], told["share"], told["origins"]) == (15, 1.0, 5)
    assert len({example["url"] for example in told["examples"]}) == 3
    line_of = {site.robots_url: 2 + number for number, site in enumerate(sites)}
    assert all(example["line"] == line_of[example["robots_url"]] for example in told["examples"])


def test_answers_are_grouped_even_if_they_name_the_host(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.html")
    for host in ("a.example", "b.example"):
        crawl.refused_in_outage(f"https://{host}/", f"DNS lookup failed: no results for hostname lookup: {host}")
    _crawl, refused = crawl.lines()
    assert (refused["text"], refused["origins"]) == (f"{UNREACHABLE}: DNS lookup failed", 2)


def test_no_password_in_a_url_is_written(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path / "report.html")
    crawl.page("https://user:secret@a.example:8443/private#part")
    (example,) = crawl.lines()[1]["examples"]
    assert example["url"] == "https://a.example:8443/private#part"
    assert "secret" not in str(crawl.lines())


# Where it is written.


@ensureDeferred
async def test_names_and_times_in_the_path(tmp_path: Path) -> None:
    time = Time(0.0)
    await crawl(settings={"REP_REPORT": f"{tmp_path}/%(name)s/100%%-%(time)s.html"}, robots=with_clock(time))
    assert os.listdir(tmp_path / "crawl") == ["100%-1970-01-01T00-00-00.html"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param("s3://bucket/report.html", "set it to", id="address"),
        pytest.param("file:///tmp/report.html", "set it to", id="file-address"),
        pytest.param("{path}/%(nmae)s.html", "set it to", id="unknown-name"),
        pytest.param("{path}/%s.html", "set it to", id="no-name"),
        pytest.param("{path}/%(name)r.html", "set it to", id="other-conversion"),
        pytest.param("{path}/100%.html", "set it to", id="single-per-cent-sign"),
        pytest.param("{path}/file/report.html", "cannot be written", id="a-file-for-a-directory"),
        pytest.param("{path}/directory.html", "it is a directory", id="a-directory-for-a-file"),
        pytest.param("{path}/" + "n" * 300 + ".html", "cannot be written", id="too-long-a-name"),
        pytest.param("/proc/report.html", "cannot be written", id="no-files-there"),
    ],
)
@ensureDeferred
async def test_a_report_that_cannot_be_written_stops_the_start(web: Web, tmp_path: Path, value: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "directory.html").mkdir()
    value, site = value.replace("{path}", str(tmp_path)), web.site()
    with pytest.raises(ValueError, match=why) as stopped:
        await crawl(site.url("/"), settings={"REP_REPORT": value})
    assert f"REP_REPORT is {value!r}" in str(stopped.value)
    assert "set it to" in str(stopped.value)
    assert site.requests == []
    assert sorted(os.listdir(tmp_path)) == ["directory.html", "file"]


@ensureDeferred
async def test_an_existing_report_stays_until_the_new_one_is_complete(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    before = path.stat().st_ino
    with path.open() as reader:
        await crawl(web.robots(RULES).url("/"), settings={"REP_REPORT": str(path)})
        assert reader.read() == "old", "a reader that has opened the old file reads it to the end"
    assert path.stat().st_ino != before
    assert path.read_text("utf-8").endswith("</html>\n")
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.parametrize("breakage", ["rmdir", "mkdir"])
@ensureDeferred
async def test_a_report_that_cannot_be_written_at_the_end_is_an_error_in_the_log(
    web: Web, tmp_path: Path, breakage: str
) -> None:
    path, site = tmp_path / "reports" / "report.html", web.robots(RULES)

    def prepare(crawler: Crawler) -> None:
        break_it = path.parent.rmdir if breakage == "rmdir" else path.mkdir
        crawler.signals.connect(break_it, signals.spider_opened, weak=False)

    result = await crawl(site.url("/"), settings={"REP_REPORT": path}, prepare=prepare)
    assert len(result.pages) == 1
    (error,) = result.messages()
    assert f"REP_REPORT: {path} could not be written" in error
    assert result.tracebacks == []
    assert [file for _directory, _directories, files in os.walk(tmp_path) for file in files] == []


# Limits.


@pytest.mark.full_size
def test_memory_does_not_grow_with_the_number_of_origins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_ORIGINS", 25)
    octets = []
    for origins in (200, 400):
        tracemalloc.start()
        crawl = broad_crawl(tmp_path / "report.html", origins)
        of_crawl, *others = crawl.lines()
        gc.collect()
        with_crawl, _peak = tracemalloc.get_traced_memory()
        del crawl
        gc.collect()
        octets.append(with_crawl - tracemalloc.get_traced_memory()[0])  # without the memory that other crawls share
        tracemalloc.stop()
    assert 50_000 < octets[1] < 1.3 * octets[0]
    assert (of_crawl["origins"], of_crawl["origins_not_listed"]) == (400, 375)
    assert of_crawl["kinds"] == [
        {"kind": "with rules", "cause": "", "origins": 380},
        {"kind": "unreachable", "cause": "", "origins": 20},
    ]
    assert of_crawl["refused_by"] == {"rule": 80, "unreachable": 40}
    assert (of_crawl["outages"], of_crawl["outages_not_over"]) == (40, 20)
    assert of_crawl["waited"]["requests"] == 400
    listed = [line for line in others if line["type"] == "origin"]
    assert len(listed) == 25
    assert all(line["outages"] for line in listed), "the most significant origins"


def test_only_the_rules_that_refused_most_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MAX_RULES", 10)
    crawl = SimulatedCrawl(tmp_path / "report.html")
    crawl.robots("https://a.example", body=RULES)
    for number in range(100):
        for origin in range(300 if number == 7 else 1):
            crawl.page(f"https://a{origin}.example/{number}", body=f"user-agent: *\ndisallow: /{number}\n".encode())
    of_crawl, _origin, *refused = crawl.lines()
    assert len(refused) == 10
    assert (refused[0]["text"], refused[0]["pages"]) == ("Disallow: /7", 300)
    assert (refused[0]["origins"], refused[0]["more_origins"]) == (100, True)
    assert of_crawl["refused"] == 399
    assert of_crawl["refused_not_listed"] == 399 - sum(line["pages"] for line in refused)


def test_text_of_sites_is_cut(tmp_path: Path) -> None:
    lines = hostile_crawl(tmp_path / "report.html").lines()

    def texts(value: Any) -> list[str]:
        if isinstance(value, str):
            return [value]
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        return [text for part in values for text in texts(part)]

    assert max(len(line["text"]) for line in lines if line["type"] == "refused") == MAX_RULE
    others = [text for line in lines for key, value in line.items() if key != "text" for text in texts(value)]
    assert max(map(len, others)) == MAX_TEXT
    assert any(HOSTILE in text for text in others)


@pytest.mark.parametrize("seconds", [0.0, 0.004, 0.014, 0.104, 0.996, 1.23, 12.34, 123.4, 98_765.4])
def test_waits_are_right_within_five_per_cent_or_five_milliseconds(seconds: float) -> None:
    waits = WaitingTimes()
    waits.add(seconds)
    waits.add(200_000)
    assert abs(waits.quantile(0.5) - seconds) <= max(0.05 * seconds, 0.005)
    assert waits.longest == waits.quantile(1) == 200_000
    assert sum(wait["count"] for wait in waits.as_json()["classes"]) == 2


def test_quantiles() -> None:
    waits = WaitingTimes()
    assert (waits.quantile(0.5), waits.longest) == (0, 0)
    waits.add(0.006)
    assert waits.quantile(0.5) == waits.longest == 0.006, "not more than the longest"
    waits = WaitingTimes()
    for number in range(100):
        waits.add(number)
    assert (waits.quantile(0.5), waits.quantile(0.9), waits.longest) == (49, 89, 99)
    assert [wait["count"] for wait in waits.as_json()["classes"]] == [1, 0, 1, 2, 7, 20, 30, 39, 0]
