"""What a page may be used for, by Content-Usage and Content-Signal (the IETF's AIPREF drafts, contentsignals.org)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from asking import ORIGIN, TOKEN, parse
from counting import lines_run
from doc_pages import marked
from generated import bodies_and_questions

from scrapy_rep.protocol.robotstxt import patterns
from scrapy_rep.protocol.robotstxt.parser import Ignored
from scrapy_rep.protocol.robotstxt.patterns import MAX_TARGET
from scrapy_rep.usage import VOCABULARY
from scrapy_rep.usage.preferences import Purposes, Usage
from scrapy_rep.usage.statements import (
    MAX_READ,
    NEEDS_EXTRA,
    Statement,
    ignored_statements,
    preferences_in_tag,
    preferences_of,
    statements_for,
    stricter,
)

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "data" / "usage.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES if "body" in case])
def test_the_examples_of_the_drafts(case: dict[str, Any]) -> None:
    robots = parse(case["body"])
    assert Usage.of(robots, case["url"], case["token"]) == case["usage"], case["source"]
    without = parse("\n".join(line for line in case["body"].split("\n") if "content-" not in line.lower()))
    assert robots.allows(case["url"], case["token"]) is without.allows(case["url"], case["token"])


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES if "header" in case])
def test_the_examples_of_the_drafts_in_headers(case: dict[str, Any]) -> None:
    values = [value.encode() for value in case["header"]]
    assert Usage().with_header("content-usage", values) == case["usage"], case["source"]


def test_every_case_is_there_once() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) == 101
    assert all(set(case) & {"body", "header"} and case["source"] for case in CASES)


def test_every_category_has_its_source() -> None:
    assert [category.name for category in VOCABULARY] == [
        "train-ai",
        "ai-use",
        "search",
        "ai-input",
        "use-reference",
        "use-full",
        "tdm",
    ]
    assert all(category.source and category.spellings for category in VOCABULARY)


@pytest.mark.parametrize(
    ("stated", "usage"),
    [
        # draft-ietf-aipref-vocab-01: AI Training, which includes Generative AI Training
        pytest.param("ai=n", {"train-ai": False}, id="01-ai"),
        pytest.param("ai=y", {"train-ai": True}, id="01-ai-allowed"),
        pytest.param("genai=n", {"train-ai": False}, id="01-genai"),
        pytest.param("ai=y, genai=n", {"train-ai": False}, id="01-the-narrower-one-disallows"),
        pytest.param("tdm=n", {"tdm": False}, id="01-tdm"),
        pytest.param("tdm=y, ai=n, search=y", {"tdm": True, "train-ai": False, "search": True}, id="01-several"),
        # draft-ietf-aipref-vocab-02
        pytest.param("train-genai=n", {"train-ai": False}, id="02-train-genai"),
        pytest.param("train-genai=y, train-ai=n", {"train-ai": False}, id="02-and-the-label-of-today"),
        pytest.param("ai=no, genai=?0", {}, id="no-preference"),
    ],
)
def test_older_labels_in_content_usage(stated: str, usage: dict[str, bool]) -> None:
    assert Usage.of(parse(f"User-agent: *\nContent-Usage: {stated}\n"), "/", TOKEN) == usage
    assert Usage().with_header("content-usage", [stated.encode()]) == usage
    in_signal = parse(f"User-agent: *\nContent-Signal: {stated.replace('=n', '=no')}\n")
    assert Usage.of(in_signal, "/", TOKEN).keys() <= {"search"}, "only Content-Usage had these labels"


@pytest.mark.parametrize("label", ["all", "bots", "inference", "ai-output"])
def test_older_labels_of_categories_that_are_gone_are_reported(label: str) -> None:
    robots = parse(f"User-agent: *\nContent-Usage: {label}=n\n")
    assert Usage.of(robots, "/", TOKEN) == {}
    (ignored,) = ignored_statements(robots.octets)
    assert ignored.reason == f"no known preference: {label}=n"


@pytest.mark.parametrize(
    ("values", "usage"),
    [
        (["1"], {"tdm": False}),
        ([" 1 "], {"tdm": False}),
        (["0"], {"tdm": True}),
        (["0", "1"], {"tdm": False}),
        (["0, 0"], {"tdm": True}),
        (["2"], {}),
        (["yes"], {}),
        ([""], {}),
        (["10"], {}),
    ],
)
def test_the_reservation_of_text_and_data_mining(values: list[str], usage: dict[str, bool]) -> None:
    for directive in ("tdm-reservation", "meta tdm-reservation"):
        assert Usage().with_header(directive, [value.encode() for value in values]) == usage


def test_the_statements_that_decided_are_named() -> None:
    lines = ["Content-Signal: search=yes # all", "Content-Usage: /a train-ai=n", "Content-Usage: search=n", "Allow: /"]
    usage = Usage.of(parse("\n".join(["User-agent: *", *lines])), "/a/b", TOKEN)
    assert usage == {"search": True, "train-ai": False}
    assert usage.statements == (
        Statement(2, "content-signal", b"", "search=yes", {"search": True}, "*"),
        Statement(3, "content-usage", b"/a", "train-ai=n", {"train-ai": False}, "*"),
    )
    assert [statement.pattern for statement in usage.statements] == ["", "/a"]
    assert Usage.of(parse("User-agent: *\n"), "/", TOKEN) == Usage() == {}


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        pytest.param(
            "User-agent: a\nContent-Usage: train-ai=n\nUser-agent: b\nDisallow: /x\n",
            {"a": {"train-ai": False}, "b": {}, "c": {}},
            id="the-tokens-above-it",
        ),
        pytest.param(
            "User-agent: a\nUser-agent: b\nCrawl-delay: 1\nUser-agent: c\nContent-Signal: search=no\n",
            {"a": {"search": False}, "b": {"search": False}, "c": {"search": False}},
            id="a-delay-ends-nothing",
        ),
        pytest.param(
            "User-agent: a\nContent-Usage:search=n\nContent-Signal:ai-train=no\nUser-agent: b\nContent-Usage: search=y",
            {"a": {"search": False, "train-ai": False}, "b": {"search": True}},
            id="each-its-own",
        ),
        pytest.param(
            "User-agent: *\nContent-Usage: search=n\nDisallow: /y\nUser-agent: a\nDisallow: /x\n",
            {"a": {}, "b": {"search": False}},
            id="2.2.1-the-group-that-is-obeyed",
        ),
        pytest.param(
            "User-agent: a\nContent-Usage: search=n\nDisallow: /y\nUser-agent: A\nContent-Usage: search=y\n",
            {"a": {"search": False}},
            id="2.2.1-groups-are-combined",
        ),
    ],
)
def test_a_statement_belongs_to_the_user_agent_lines_above_it(text: str, usage: dict[str, dict[str, bool]]) -> None:
    robots = parse(text)
    assert {token: dict(Usage.of(robots, "/", token)) for token in usage} == usage


def test_a_group_for_a_policy_token_is_about_usage_and_not_about_access() -> None:
    robots = parse(marked("policy-token"))
    assert [dict(Usage.of(robots, path, TOKEN)) for path in ("/private/x", "/press/1", "/x")] == [
        *({}, {"train-ai": True}, {"train-ai": False}),
    ]
    (statement,) = Usage.of(robots, "/press/1", TOKEN).statements
    assert statement == Statement(6, "allow", b"/press/", "", {"train-ai": True}, "__usage_ai-training")
    assert str(statement) == "Allow: /press/"
    assert robots.allows("/x", TOKEN), "it says nothing of what may be fetched"
    assert not robots.allows("/x", "__usage_ai-training"), "a crawler of this name is a crawler like others"


def test_a_group_for_a_policy_token_that_takes_too_long_to_compare_disallows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_COMPARED", 10)
    robots = parse("User-agent: __usage_ai-training\nAllow: /*x*y*x\nDisallow: /*x*y\nDisallow: /*y*x\n")
    usage = Usage.of(robots, "/xyx", TOKEN)
    assert usage == {"train-ai": False}
    assert [statement.line for statement in usage.statements] == [3], "the first of the rules that disallow"
    robots = parse("User-agent: __usage_ai-training\nAllow: /*x*y\n")
    assert Usage.of(robots, "/xyx", TOKEN) == {}


def test_before_the_first_user_agent_line_only_refusals_by_content_signal_count() -> None:
    text = (
        "Content-Signal: ai-train=no, search=yes\nContent-Signal: search=yes\nContent-Usage: search=n\nUser-agent: *\n"
    )
    usage = Usage.of(parse(text), "/", TOKEN)
    assert usage == {"train-ai": False}
    assert usage.statements == (Statement(1, "content-signal", b"", "ai-train=no, search=yes", {"train-ai": False}),)
    assert [(one.line, one.reason) for one in ignored_in(text)] == [
        (2, "before the first user-agent line, only what is disallowed counts"),
        (3, "content-usage before the first user-agent line"),
    ]
    (ignored,) = ignored_in("Content-Signal: train-ai=no\nUser-agent: *\n")
    assert ignored.reason == "no known preference: train-ai=no"


def test_without_the_extra_content_usage_is_not_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "http_sf", None)
    statements_for.cache_clear()
    robots = parse("User-agent: *\nContent-Usage: search=n\n")
    with pytest.raises(ImportError, match=r"pip install \"scrapy-rep\[usage\]\""):
        Usage.of(robots, "/", TOKEN)
    (ignored,) = ignored_statements(robots.octets)
    assert (ignored.line, ignored.reason) == (2, NEEDS_EXTRA)
    assert Usage.of(parse("User-agent: *\nContent-Signal: search=no\n"), "/", TOKEN) == {"search": False}
    with pytest.raises(
        ValueError, match=r"REP_PURPOSES needs the extra `usage`; run pip install \"scrapy-rep\[usage\]\""
    ):
        Purposes(("search",), refuse=False)
    assert Purposes((), refuse=False) == Purposes()


def test_content_signals_is_read_as_content_signal() -> None:
    robots = parse("User-agent: *\nContent-Signals: ai-train=no\n")
    assert Usage.of(robots, "/", TOKEN) == {"train-ai": False}
    assert [record.key for record in robots.records] == ["user-agent", "content-signal"]


def test_a_page_that_may_not_be_fetched_has_no_preferences() -> None:
    robots = parse("User-agent: *\nContent-Usage: search=n\nDisallow: /x\n")
    assert [dict(Usage.of(robots, path, TOKEN)) for path in ("/x", "/y")] == [{}, {"search": False}]
    for wrong in (("example.com", TOKEN), ("/", "a b")):
        with pytest.raises(ValueError, match="is n"):
            Usage.of(robots, *wrong)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Content-Usage: train-ai=n,", "no preferences that can be read"),
        ("Content-Usage: Train-AI=n", "no preferences that can be read"),
        ("Content-Signal: none", "no preferences that can be read"),
        ("Content-Signal:", "no preferences that can be read"),
        ("Content-Usage: ", None),
        ("Content-Usage: train-ai=maybe", "no known preference: train-ai=maybe"),
        ("Content-Usage: train-ai=no", "no known preference: train-ai=no"),
        ("Content-Usage: /a train-ai=n, ai-train=n,search=no ", "no known preference: ai-train=n, search=no"),
        ('Content-Usage: train-ai=n;x="a,b"', None),
        ("Content-Signal: train-ai=no", "no known preference: train-ai=no"),
        ("Content-Signal: search=yes, train-ai=no, use=all", "no known preference: train-ai=no, use=all"),
        ("Content-Signal: search=yes,", None),
        ("Content-Usage: /a", None),
        ("Content-Signal: /a search=no", None),
        ("content-usage search=n", None),
    ],
)
def test_statements_that_cannot_be_read_are_reported(line: str, reason: str | None) -> None:
    text = f"Host: h\nUser-agent: *\n{line}\nnonsense\n"
    ignored = ignored_in(text)
    assert [one.line for one in ignored] == ([1, 3, 4] if reason else [1, 4])
    assert reason is None or ignored[1] == Ignored(3, line.strip(), reason)


def ignored_in(text: str) -> list[Ignored]:
    """As `scrapy robots` shows them."""
    robots = parse(text)
    return sorted((*robots.ignored, *ignored_statements(robots.octets)), key=lambda one: one.line)


def test_of_several_values_of_a_header_the_last_counts_and_of_two_sources_the_stricter() -> None:
    header = preferences_of("content-usage", b"train-ai=n, search=y, train-ai=y")
    assert header == {"train-ai": True, "search": True}
    assert stricter([header, {"train-ai": False}, {}]) == {"train-ai": False, "search": True}


def test_of_a_header_and_a_file_the_stricter_counts_and_is_named() -> None:
    in_file = Usage.of(parse("User-agent: *\nContent-Usage: search=n\n"), "/", TOKEN)
    both = in_file.with_header("content-usage", [b"search=y;x", b"train-ai=y"])
    header = Statement(None, "content-usage", b"", "search=y;x, train-ai=y", {"search": True, "train-ai": True})
    assert both == {"search": False, "train-ai": True}
    assert both.statements == (*in_file.statements, header)
    assert [both.deciding(name) for name in ("search", "train-ai", "use-full")] == [*in_file.statements, header, None]
    assert [str(one) for one in both.statements] == [
        *("Content-Usage: search=n", "Content-Usage: search=y;x, train-ai=y"),
    ]
    for values in ([], [b","], [b"x" * MAX_READ], [b"search=y, " * MAX_READ + b"use=?1"]):
        assert in_file.with_header("content-usage", values) is in_file


@pytest.mark.parametrize(
    ("values", "stated"),
    [
        pytest.param([b"", b"train-ai=n"], {"train-ai": False}, id="before"),
        pytest.param([b"train-ai=n", b" "], {"train-ai": False}, id="behind"),
        pytest.param([b"search=y", b"\t", b"train-ai=n"], {"search": True, "train-ai": False}, id="between"),
        pytest.param([b" ", b""], {}, id="alone"),
    ],
)
def test_an_empty_header_hides_no_other_one(values: list[bytes], stated: dict[str, bool]) -> None:
    assert Usage().with_header("content-usage", values) == stated


def test_the_header_of_a_vendor_has_the_words_of_its_lines() -> None:
    usage = Usage().with_header("content-signal", [b"Search=yes, use=reference", b"ai-train=no", b"ai-train=yes"])
    assert usage == {"search": True, "use-reference": True, "use-full": False, "train-ai": False}
    assert str(usage.statements[0]) == "Content-Signal: Search=yes, use=reference, ai-train=no, ai-train=yes"
    assert Usage().with_header("content-signal", [b"train-ai=n", b"/ search=no"]) == {}


@pytest.mark.parametrize(
    ("value", "disallows"),
    [
        *((word, True) for word in ("noai", "noimageai", "noml", "NoAI", " noindex ,noai", "noai,", "noai, noml")),
        *((word, False) for word in ("", "none", "noindex", "no-ai", "noai: x", "noai=1", "ai", "nonoai")),
        ("ExampleBot: noai", True),
        ("ExampleBot : noindex, noai", True),
        ("other: noindex, noai", False),
        ("other: noindex, ExampleBot: noai", True),
        ("ExampleBot: noindex, other: noai", False),
        ("*: noai", True),
        ("max-snippet:-1, max-image-preview: large, noai", True),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST, noai", True),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, noai", True),
        ("other: unavailable_after: 25 Jun 2010 15:00:00 PST, noai", False),
    ],
)
def test_rules_for_robots_that_disallow_training(value: str, disallows: bool) -> None:
    assert preferences_in_tag(value, ["examplebot"]) == ({"train-ai": False} if disallows else {})


@pytest.mark.parametrize(
    ("refuse", "stated", "purpose"),
    [
        (True, {"search": True, "train-ai": False}, "train-ai"),
        (True, {"search": False, "train-ai": False}, "search"),
        (True, {"search": True, "ai-input": False}, None),
        (True, {}, None),
        (False, {"search": False}, None),
    ],
)
def test_the_purpose_that_is_refused(refuse: bool, stated: dict[str, bool], purpose: str | None) -> None:
    assert Purposes(("search", "train-ai"), refuse).refused_by(stated) == purpose


def test_usage_lines_change_no_verdict_and_no_delay() -> None:
    random = Random(14)
    lines = ["Content-Usage: train-ai=n", "content-signal: search=no", "Content-Usage: /a search=y", "Content-Usage: ,"]
    for body, questions in bodies_and_questions(seed=14, files=300, questions=3):
        rows = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        mixed = [line for row in rows for line in (row, *(one.encode() for one in random.sample(lines, 2)))]
        robots, with_usage = parse(b"\n".join(rows)), parse(b"\n".join(mixed))
        for url, tokens in questions:
            first, second = robots.verdict(url, tokens), with_usage.verdict(url, tokens)
            assert (first.allowed, first.reason, first.product_token) == (
                second.allowed,
                second.reason,
                second.product_token,
            )
            assert (first.rule and first.rule.octets) == (second.rule and second.rule.octets)
            assert robots.crawl_delay(tokens) == with_usage.crawl_delay(tokens)
            assert set(Usage.of(with_usage, url, tokens)) <= {"train-ai", "search"}
            assert Usage.of(robots, url, tokens) == {}


@pytest.mark.parametrize(
    "line",
    [
        "Content-Usage: a=(1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1)",
        "Content-Signal: search=no",
        "Content-Usage: /*a*b*c train-ai=n",
        f"Content-Usage: {'a=b, ' * 10_000}c=d",
    ],
)
def test_hostile_statements_cost_little(line: str) -> None:
    robots = parse("User-agent: *\n" + f"{line}\n" * (480_000 // (len(line) + 1)) + "Content-Usage: search=n\n")
    assert lines_run(lambda: Usage.of(robots, f"{ORIGIN}/{'a' * MAX_TARGET}", TOKEN)) < 5 * len(robots.octets)
    assert lines_run(lambda: Usage.of(robots, f"{ORIGIN}/", TOKEN)) < len(robots.octets)
    assert ignored_statements(robots.octets)[-1].reason == f"beyond {MAX_READ} bytes of such lines"


def test_the_limit_counts_the_lines_for_the_crawler_alone() -> None:
    others = "".join(
        f"User-agent: bot{n}\nContent-Signal: search=yes,ai-train=no,use=reference\nAllow: /\n" for n in range(500)
    )
    own = "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"
    robots = parse(others + own)
    assert len(others) > 2 * MAX_READ
    assert Usage.of(robots, f"{ORIGIN}/", "ExampleBot") == {"train-ai": False}
    assert ignored_statements(robots.octets) == []
    # What stands before all groups counts for every crawler.
    robots = parse("Content-Signal: search=no\n" * 1_000 + own)
    assert Usage.of(robots, f"{ORIGIN}/", "ExampleBot") == {"search": False}
