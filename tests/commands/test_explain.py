"""The result for a URL in words: the lines of the file with their marks, durations, colours, exit statuses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st
from suite import CONTESTED, cases

from scrapy_rep.commands.findings import CrawlerProfile, Finding, finding_by, policy_of_file
from scrapy_rep.commands.output import Output, as_json, as_text, file_as_json, listing, obeyed_lines
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import policy_at
from scrapy_rep.protocol.outage import Outage
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason


def marks(text: str, token: str = "bot", path: str = "/none") -> str:
    robots = RobotsTxt.parse(text.encode())
    verdict = robots.verdict(path, token)
    line = verdict.rule.line if verdict.rule is not None else None
    return "".join(text[0] for text in listing(robots, verdict.product_token, line, whole=True)).replace(" ", ".")


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        pytest.param("user-agent: bot\ndisallow: /\n", "|>", id="the-rule"),
        pytest.param("user-agent: a\nuser-agent: bot\n\n# x\ndisallow: /x\n\nallow: /y", "|||||||", id="one-group"),
        pytest.param("user-agent: a\ndisallow: /x\nuser-agent: bot\ndisallow:\n", "..||", id="2.1-a-rule-ends-the-run"),
        pytest.param(
            "user-agent: a\ncrawl-delay: 1\nuser-agent: bot\nallow: /\n", "|||>", id="2.2.4-nothing-else-does"
        ),
        pytest.param("user-agent: a\ndisallow: x\nuser-agent: bot\n", "..|", id="a-rule-that-matches-nothing-does"),
        pytest.param("user-agent: bot\ndisallow:\nuser-agent: b\ndisallow:\nUser-Agent: BOT", "||..|", id="2.2.1-all"),
        pytest.param("user-agent: *\ndisallow: /\nuser-agent: bot\nallow: /z\n", "..||", id="2.2.1-not-everyones"),
        pytest.param("user-agent: *\rdisallow: /\r", "|>", id="2.2-cr"),
        pytest.param("sitemap: /x\nuser-agent: *\nsitemap: /y\nallow: /\nsitemap: /z", ".||>.", id="sitemaps-end-none"),
        pytest.param("disallow: /\nuseragent bot # me\ndisalow: /\nnonsense\n", ".|>.", id="misspelt"),
        pytest.param(
            "user-agent: bot\ncontent-usage: search=n\nallow: /\ncontent-signal: search=no", "||>|", id="usage"
        ),
        pytest.param("", "", id="empty"),
        pytest.param("user-agent: other\ndisallow: /\n", "..", id="nobody"),
    ],
)
def test_the_obeyed_groups_are_marked_and_the_rule_pointed_at(text: str, marked: str) -> None:
    path = "/" if ">" in marked else "/none"
    assert marks(text, path=path) == marked


LINES = st.sampled_from(
    """user-agent: a|user-agent: *|User UserAgent b|user-agent:|user-agent: /|disallow: /|disallow:| disallow : /p|
    allow: x|disallow /x y|crawl-delay: 1|crawl-delay: x|sitemap: /s|noindex: /|#|""".replace("\n    ", "").split("|")
)


@given(st.lists(LINES, max_size=12))
def test_the_listing_sees_the_groups_that_the_parser_sees(lines: list[str]) -> None:
    octets = [line.encode() for line in lines]
    robots = RobotsTxt.parse(b"\n".join(octets))
    for group in robots.groups:
        for token in group.product_tokens:
            assert {rule.line for rule in group.rules} < obeyed_lines(robots, token)


ALLOWED = Finding("/a", verdict=Verdict(True, VerdictReason.NOT_SUBJECT))
REFUSED = Finding("/b", verdict=Verdict(False, VerdictReason.RULE))
DOWN = Finding("/c", verdict=Verdict(False, VerdictReason.UNREACHABLE))


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([ALLOWED, ALLOWED], 0),
        ([ALLOWED, REFUSED], 1),
        ([REFUSED, DOWN], 3),
        ([ALLOWED, Finding("/d", error="no")], 3),
    ],
)
def test_exit_statuses(findings: list[Finding], status: int) -> None:
    output = Output()
    for finding in findings:
        output.write(finding)
    output.flush()
    assert output.exit_status == 3, "a crawl that did not come to its end"
    output.finish()
    assert output.exit_status == status


def by_file(url: str, robots: RobotsTxt, token: str = "bot") -> Finding:
    return finding_by(policy_of_file(robots.octets), url, CrawlerProfile((token,), file_name="f"))


def test_colour_is_added_and_nothing_else() -> None:
    robots = RobotsTxt.parse(b"user-agent: *\ndisallow: /\n")
    finding = by_file("/a", robots)
    plain, coloured = (as_text(finding, show="all", colour=colour) for colour in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[31mrefused" in coloured
    for code in ("31", "33", "1", "0"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert [line.rstrip() for line in coloured.splitlines()] == plain.splitlines()


def test_a_backoff_that_is_over_is_shown_as_zero_seconds() -> None:
    url, now = "https://a.example/robots.txt", 1_800_000_000.0
    entry = Entry(url, outage=Outage(Answer(url, reason="no answer", ended_at=now - 60), now - 60, 1, now - 50))
    policy = policy_at(entry, now, DAY)
    finding = Finding("https://a.example/", verdict=policy.verdict("https://a.example/", "bot"), policy=policy, now=now)
    assert "next fetch   in 0 s; unreachable for 1 min" in as_text(finding)


def test_many_lines_are_cut_in_the_text_and_whole_in_the_json() -> None:
    robots = RobotsTxt.parse(b"nonsense\n" * 50)
    finding = by_file("/a", robots)
    assert "and 40 more; see --json" in as_text(finding)
    assert len(file_as_json(finding)["ignored"]) == 50


def test_every_case_of_the_standard_can_be_explained() -> None:
    for case, question in ((one, question) for one in cases() for question in one.questions):
        robots, url, agent = RobotsTxt.parse(case.body), question.url, question.agent
        if case.section == CONTESTED:  # some ask by what is no product token
            continue
        finding = by_file(url, robots, agent)
        assert as_text(finding, show="lines").splitlines()[0] == printable(url, None)
        json.dumps(as_json(finding) | file_as_json(finding, show=True))
