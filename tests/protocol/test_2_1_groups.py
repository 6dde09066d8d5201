"""Groups and rules (RFC 9309 section 2.1), and the standard's own example (5.1)."""

from __future__ import annotations

import pytest
from asking import ORIGIN, allows, parse

RULES = [
    pytest.param("Allow: /a", id="2.1-allow"),
    pytest.param("Disallow: /a", id="2.1-disallow"),
    pytest.param("Disallow:", id="2.2-an-empty-pattern-is-a-rule"),
    pytest.param("Allow:", id="2.2-an-empty-allow-is-a-rule"),
    pytest.param("Disallow: x", id="2.2-a-rule-that-matches-nothing"),
]
NO_RULES = [
    pytest.param("", id="2.2-emptyline"),
    pytest.param(" \t", id="2.2-white-space"),
    pytest.param("# a comment", id="2.2-comment"),
    pytest.param("Sitemap: https://www.example.com/s.xml", id="2.2.4-sitemap"),
    pytest.param("Sitemap:", id="2.2.4-sitemap-without-address"),
    pytest.param("Crawl-delay: 5", id="2.2.4-crawl-delay"),
    pytest.param("Crawl-delay: soon", id="2.2.4-crawl-delay-that-is-none"),
    pytest.param("Noindex: /x", id="2.2.4-noindex"),
    pytest.param("Host: www.example.com", id="2.2.4-host"),
    pytest.param("Request-rate: 1/5", id="2.2.4-request-rate"),
    pytest.param("Disallowed: /", id="2.2.4-unknown-key"),
    pytest.param("nonsense", id="2.2.4-no-key-at-all"),
]


@pytest.mark.parametrize("line", RULES)
def test_a_user_agent_line_after_a_rule_starts_a_group(line: str) -> None:
    robots = parse(f"User-agent: a\n{line}\nUser-agent: b\nDisallow: /b\n")
    assert [group.product_tokens for group in robots.groups] == [("a",), ("b",)]


@pytest.mark.parametrize("line", NO_RULES)
def test_nothing_but_a_rule_ends_a_run_of_user_agent_lines(line: str) -> None:
    robots = parse(f"User-agent: a\n{line}\nUser-agent: b\nDisallow: /x\n")
    assert [(group.product_tokens, len(group.rules)) for group in robots.groups] == [(("a", "b"), 1)]


@pytest.mark.parametrize("line", NO_RULES)
def test_nothing_but_a_user_agent_line_ends_a_group(line: str) -> None:
    robots = parse(f"User-agent: a\nDisallow: /x\n{line}\nDisallow: /y\n")
    assert [[rule.pattern for rule in group.rules] for group in robots.groups] == [["/x", "/y"]]


def test_a_group_holds_tokens_and_rules_and_has_a_delay() -> None:
    robots = parse("User-Agent: A\nuser-agent: b\nDisallow: /x\nAllow: /x/y\nCrawl-delay: 2\n")
    (group,) = robots.groups
    assert group.product_tokens == ("a", "b")
    assert [(rule.line, rule.allow, rule.octets) for rule in group.rules] == [(3, False, b"/x"), (4, True, b"/x/y")]
    assert [robots.crawl_delay(token) for token in ("a", "b", "c")] == [2.0, 2.0, None]


def test_a_token_is_listed_once_a_group() -> None:
    (group,) = parse("User-agent: b\nUser-agent: a\nUser-agent: B\nDisallow: /\n").groups
    assert group.product_tokens == ("b", "a")


def test_the_last_group_may_have_no_rules() -> None:
    text = "User-agent: *\nDisallow: /\nUser-agent: quxbot\n"
    assert parse(text).groups[-1].rules == ()
    assert allows(text, "/", "quxbot")
    assert not allows(text, "/", "other")


def test_each_user_agent_line_of_a_group_is_held_to_all_its_rules() -> None:
    text = "User-agent: a\nUser-agent: b\nDisallow: /x\nDisallow: /y\n"
    outcomes = {(token, path): allows(text, path, token) for token in "abc" for path in ("/x", "/y")}
    assert outcomes == {(token, path): token == "c" for token in "abc" for path in ("/x", "/y")}


def test_rules_before_the_first_user_agent_line_are_ignored() -> None:
    robots = parse("Disallow: /\nUser-agent: *\nDisallow: /x\n")
    assert [rule.line for group in robots.groups for rule in group.rules] == [3]


def test_a_value_that_matches_nothing_is_no_rule_of_its_group() -> None:
    (group,) = parse("User-agent: *\nDisallow:\nDisallow: x\nAllow: https://www.example.com/\n").groups
    assert group.rules == ()


@pytest.mark.parametrize(
    "text",
    [pytest.param("", id="2.2.1-empty-file"), pytest.param("Disallow: /\n", id="2.2.1-no-groups-at-all")],
)
def test_without_groups_no_rules_apply(text: str) -> None:
    assert parse(text).groups == ()
    assert allows(text, "/")


SIMPLE_EXAMPLE = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("token", "path", "allowed"),
    [
        pytest.param("other", "/publications/x", True, id="5.1-everyone-publications"),
        pytest.param("other", "/example/x", False, id="5.1-everyone-example"),
        pytest.param("other", "/a/b.gif", False, id="5.1-everyone-gif"),
        pytest.param("other", "/a/b.gif?x", True, id="5.1-everyone-gif-not-at-the-end"),
        pytest.param("other", "/publications/a.gif", True, id="5.1-everyone-the-longer-rule"),
        pytest.param("foobot", "/example/page.html", True, id="5.1-foobot-page"),
        pytest.param("foobot", "/example/allowed.gif", True, id="5.1-foobot-allowed-gif"),
        pytest.param("foobot", "/example/", False, id="5.1-foobot-example"),
        pytest.param("foobot", "/publications/", False, id="5.1-foobot-obeys-its-own-group-alone"),
        pytest.param("barbot", "/example/page.html", False, id="5.1-barbot-page"),
        pytest.param("barbot", "/example/x.gif", True, id="5.1-barbot-elsewhere"),
        pytest.param("bazbot", "/example/page.html", False, id="5.1-bazbot-page"),
        pytest.param("bazbot", "/example/x.gif", True, id="5.1-bazbot-elsewhere"),
        pytest.param("quxbot", "/example/page.html", True, id="5.1-quxbot-unrestricted"),
        pytest.param("quxbot", "/a.gif", True, id="5.1-quxbot-not-held-to-everyones-rules"),
    ],
)
def test_the_simple_example(token: str, path: str, allowed: bool) -> None:
    assert allows(SIMPLE_EXAMPLE, path, token) is allowed


def test_two_parsed_alike_are_equal() -> None:
    first, second = parse(SIMPLE_EXAMPLE), parse(SIMPLE_EXAMPLE)
    first.allows(ORIGIN + "/", "foobot")
    assert first == second
    assert first != parse(SIMPLE_EXAMPLE + "Disallow: /\n")
