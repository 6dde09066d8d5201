"""`scrapy robots --compare`: what Scrapy's own middleware and parser would answer, and why their answer differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import Ended
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.settings import Settings
from web import Web, answer, redirect

from scrapy_rep.commands.compare import compared
from scrapy_rep.commands.findings import CrawlerProfile, finding_by, policy_of_file
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import OF_GROUP, REASON_WORDS
from scrapy_rep.scrapy_internals.builtin_robotstxt import BuiltinAnswer, BuiltinParser

RULES = "User-agent: *\nDisallow: /private/\n\nUser-agent: NewsBot\nDisallow: /drafts/\n"
QUICK = ["-s", "REP_FETCH_RETRIES=0", "-s", "RETRY_ENABLED=False", "--compare"]
OURS = "Scrapy's own"


@pytest.mark.parametrize(
    ("route", "options", "said"),
    [
        (answer(RULES), [], "the same"),
        (answer(status=404), [], "the same"),
        (answer(status=503), [], "allowed: it reads the body of HTTP 503 as rules"),
        (answer(RULES, status=404), [], "refused: it reads the body of HTTP 404 as rules"),
        (answer(kind="reset"), [], "allowed: it allows everything if there is no answer"),
        (answer(RULES), ["-s", "REP_EXEMPT=127.0.0.1"], "refused: it does not know REP_EXEMPT"),
        (answer(status=403), ["-s", "REP_STATUS_POLICY=cautious"], "allowed: it does not know REP_STATUS_POLICY"),
        (
            answer("User-agent: *\nContent-Usage: search=n\n"),
            ["--purpose=search"],
            "allowed: it does not know usage preferences",
        ),
    ],
    ids=["rules", "404", "503", "error-page", "no-answer", "exempt", "policy", "usage"],
)
def test_a_fetched_file_is_compared(web: Web, tmp_path: Path, route: Any, options: list[str], said: str) -> None:
    done = Ended(*QUICK, *options, web.robots(route).url("/private/a"), cwd=tmp_path)
    assert done.row(OURS) == said


def test_a_redirect_to_another_site_than_the_spiders(web: Web, tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = ours\n")
    (tmp_path / "ours.py").write_text('SPIDER_MODULES = ["spider"]\n')
    spider = "import scrapy\nclass One(scrapy.Spider):\n    name = 'one'\n    allowed_domains = ['127.0.0.1']\n"
    (tmp_path / "spider.py").write_text(spider)
    other = web.robots(RULES)
    site = web.robots(redirect(f"http://localhost:{other.port}/robots.txt"))
    done = Ended(*QUICK, "--spider", "one", site.url("/private/a"), cwd=tmp_path)
    assert done.status == 1
    assert done.row(OURS).startswith("allowed: its request for robots.txt failed or was dropped")


@pytest.mark.parametrize(
    ("robots", "agent", "url", "said"),
    [
        (RULES, "NewsBot/1.0", "/drafts/a", None),
        (
            RULES,
            "Foo/1.0 (like NewsBot)",
            "/drafts/a",
            "it searches its whole User-Agent 'Foo/1.0 (like NewsBot)' for the names in robots.txt",
        ),
        (
            "User-agent: NewsBot\nCrawl-delay: 1\nUser-agent: Foo\nDisallow: /\n",
            "NewsBot/1.0",
            "/",
            "its parser ends a group at a Crawl-delay, against RFC 9309 2.2.4",
        ),
        (
            f"User-agent: *\nDisallow: /x\n{'#' * 512_000}\nDisallow: /private/\n",
            "NewsBot/1.0",
            "/private/",
            "it reads robots.txt beyond REP_BODY_LIMIT",
        ),
        (
            "User-agent: *\nDisallow: /a%2Fb\n",
            "NewsBot/1.0",
            "/a%2fb",
            None,
        ),
        (RULES, "NewsBot/1.0", "/robots.txt", None),
    ],
    ids=["same", "user-agent", "crawl-delay", "limit", "escapes", "robots.txt"],
)
def test_a_given_file_is_compared(robots: str, agent: str, url: str, said: str | None) -> None:
    settings = Settings({"USER_AGENT": agent})
    tokens = (agent.partition("/")[0],)
    finding = finding_by(policy_of_file(robots.encode()), url, CrawlerProfile(tokens))
    found = compared(finding, BuiltinParser(settings, robots.encode()).answer(url)).compared
    assert found is not None
    assert found.why == (said or "")
    assert finding.verdict is not None
    assert (found.allowed is finding.verdict.allowed) is (said is None)


def test_http_and_https_of_one_host() -> None:
    settings, url = Settings({"USER_AGENT": "NewsBot/1.0"}), "https://example.com/drafts/a"
    finding = finding_by(policy_of_file(b""), url, CrawlerProfile(("NewsBot",)))
    parser = ProtegoRobotParser(RULES.encode(), None)
    theirs = BuiltinAnswer(False, settings["USER_AGENT"], parser, 200, "http")
    found = compared(finding, theirs).compared
    assert found is not None
    assert found.why == "it fetched robots.txt with http, and uses it for the whole host"


def test_a_list_and_json(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(RULES)
    file = ["--file", "robots.txt", "--compare", "-s", "USER_AGENT=Foo/1.0 (like NewsBot)"]
    done = Ended(*file, "-", cwd=tmp_path, stdin=b"/drafts/a\n/b\n")
    why = "it searches its whole User-Agent 'Foo/1.0 (like NewsBot)' for the names in robots.txt"
    no_rule = f"{REASON_WORDS[VerdictReason.NO_RULE.value].allowed} ({OF_GROUP.format(token='*')})"
    assert done.stdout.splitlines() == [
        f"allowed\t/drafts/a\t{no_rule}\tScrapy's own: refused: {why}",
        f"allowed\t/b\t{no_rule}\tScrapy's own: the same",
    ]
    assert "2 URLs: 2 allowed; Scrapy's own middleware would answer 1 differently; " in done.stderr
    objects = Ended(*file, "--json", "/drafts/a", "/b", cwd=tmp_path).objects
    assert [found["scrapy"] for found in objects] == [{"allowed": False, "why": why}, {"allowed": True, "why": ""}]


def test_several_tokens_which_scrapys_own_does_not_know(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    done = Ended(*QUICK, "--agent", "NewsBot", "--agent", "Other", site.url("/drafts/a"), cwd=tmp_path)
    assert done.row(OURS) == "the same"
    assert len(site.robots_requests) == 2, "each middleware asks for it"


@pytest.mark.parametrize("url", ["data:,x", "s3://bucket/x", "file:///x"])
def test_a_url_that_has_no_robots_txt_has_none_for_either(tmp_path: Path, url: str) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /\n")
    for options in ([], ["--file", "robots.txt"]):
        done = Ended("--compare", *options, url, cwd=tmp_path)
        assert (done.status, done.row(OURS), done.stderr) == (0, "the same", "")


def test_scrapys_own_is_not_asked_about_a_url_without_an_origin(tmp_path: Path) -> None:
    done = Ended("--compare", "about:blank", cwd=tmp_path)
    assert (done.status, done.row(OURS), done.stderr) == (0, "the same", "")


def test_a_url_that_scrapys_parser_cannot_read_is_cant_tell(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(RULES)
    (tmp_path / "urls").write_bytes(b"https://example.com/\xff\nhttps://example.com/private/\n")
    done = Ended("--input", "urls", "--file", "robots.txt", "--compare", cwd=tmp_path)
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == ["can't tell", "refused"]
