"""What is not read is reported: its line, its text, and why (RFC 9309 section 2.3.1.5: every line is tried)."""

from __future__ import annotations

import pytest
from asking import parse

from scrapy_rep.protocol.robotstxt.groups import VALUE_FAULTS
from scrapy_rep.protocol.robotstxt.parser import Ignored, RobotsTxt
from scrapy_rep.protocol.robotstxt.syntax import Directive
from scrapy_rep.usage import CONTENT_SIGNAL, CONTENT_USAGE


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("Noindex: /x", "unknown key", id="2.2.4-unknown-key"),
        pytest.param(": /x", "unknown key", id="2.2-no-key"),
        pytest.param("Disallow / or: not", "unknown key", id="2.2-a-known-key-and-more-before-the-colon"),
        pytest.param("<html>", "no colon", id="2.3.1.5-html"),
        pytest.param("Disallow", "no colon", id="2.2-a-key-alone"),
        pytest.param("Disallow / please", "no colon", id="2.2-three-words"),
        pytest.param("Forbid /", "no colon", id="2.2-two-words-unknown"),
        pytest.param("user agent *", "no colon", id="2.2-a-key-of-two-words-and-a-value"),
        pytest.param("crawl delay 5", "no colon", id="2.2.4-a-key-of-two-words-and-a-number"),
        pytest.param("User-agent:", "names no product token", id="2.2.1-empty-token"),
        pytest.param("User-agent: /x", "names no product token", id="2.2.1-no-token"),
        pytest.param("User-agent: *foo", "names no product token", id="2.2.1-not-everyone"),
        pytest.param("User-agent: GPTBot, ClaudeBot", "only 'GPTBot' is read", id="2.2.1-a-comma"),
        pytest.param("User-agent: a;b", "only 'a' is read", id="2.2.1-a-semicolon"),
        pytest.param("User-agent: a | b", "only 'a' is read", id="2.2.1-a-bar"),
        pytest.param("User-agent: Perplexity\u2011User", "only 'Perplexity' is read", id="2.2.1-other-than-ascii"),
        pytest.param("User-agent: * Disallow: /private/", "only '*' is read", id="2.2.1-a-second-key"),
        pytest.param("User-agent: a User agent : b", "only 'a' is read", id="2.2.1-a-second-user-agent"),
        pytest.param("User-agent: * Disallow /", "only '*' is read", id="2.2.1-a-second-key-without-a-colon"),
        pytest.param("Disallow: x", "begins with neither / nor *", id="2.2-disallow-without-slash"),
        pytest.param("Allow: https://www.example.com/", "begins with neither / nor *", id="2.2-allow-an-absolute-url"),
        pytest.param("Crawl-delay: soon", "no valid number of seconds", id="2.2.4-crawl-delay-a-word"),
        pytest.param("Crawl-delay:", "no valid number of seconds", id="2.2.4-crawl-delay-empty"),
        pytest.param("Crawl-delay: -1", "no valid number of seconds", id="2.2.4-crawl-delay-negative"),
        pytest.param("Crawl-delay: 1e999", "no valid number of seconds", id="2.2.4-crawl-delay-infinite"),
        pytest.param("Sitemap:", "no address", id="2.2.4-sitemap-empty"),
        pytest.param('Sitemap: ""', "no address", id="2.2.4-sitemap-empty-in-quotes"),
    ],
)
def test_a_line_that_is_not_read(line: str, reason: str) -> None:
    robots = parse(f"User-agent: *\nDisallow: /a\n\n \t{line} \t# why\nAllow: /b\n")
    assert robots.ignored == (Ignored(4, f"{line} \t# why", reason),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("Disallow: /", "disallow before the first user-agent line", id="2.2.2-disallow"),
        pytest.param("ALLOW : /", "allow before the first user-agent line", id="2.2.2-allow"),
        pytest.param("Disalow: /", "disallow before the first user-agent line", id="2.2.2-misspelled"),
        pytest.param("Disallow:", "disallow before the first user-agent line", id="2.2.2-empty"),
        pytest.param("Crawl delay: 5", "crawl-delay before the first user-agent line", id="2.2.4-crawl-delay"),
    ],
)
def test_a_rule_in_no_group(line: str, reason: str) -> None:
    assert parse(f"{line}\nUser-agent: *\nDisallow: /\n").ignored == (Ignored(1, line, reason),)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("", id="2.2-emptyline"),
        pytest.param(" \t", id="2.2-white-space"),
        pytest.param("# Disallow /", id="2.2-comment"),
        pytest.param("Disallow:", id="2.2-empty-pattern"),
        pytest.param("Allow: # nothing", id="2.2-empty-pattern-with-comment"),
        pytest.param("Disallow /", id="2.2.4-a-missing-colon-forgiven"),
        pytest.param("Dissallow: /", id="2.2.4-a-misspelling-read"),
        pytest.param("Disallow: *.gif$", id="5.1-a-leading-star-read"),
        pytest.param("Sitemap: s.xml", id="2.2.4-sitemap"),
        pytest.param("Crawl-delay: 5", id="2.2.4-crawl-delay"),
        pytest.param("User-agent: FooBot/1.0 (x)", id="2.2.1-a-token-and-more"),
        pytest.param("User-agent: Foo Bot disallowed", id="2.2.1-a-token-and-words"),
        pytest.param("User-agent: Foo https://example.com/", id="2.2.1-a-token-and-an-address"),
        pytest.param("User-agent: * # a, b", id="2.2.1-a-token-and-a-comment"),
    ],
)
def test_a_line_that_is_read_is_not_reported(line: str) -> None:
    assert parse(f"User-agent: *\n{line}\n").ignored == ()


def test_each_directive_says_which_values_it_does_not_read() -> None:
    assert {*VALUE_FAULTS, CONTENT_USAGE, CONTENT_SIGNAL} == {directive.key for directive in Directive}


def test_all_are_reported_in_their_order() -> None:
    robots = parse("Disallow: /\r\nUser-agent: *\rDisallow: x\n\nnonsense\nDisallow: /y\nHost: h")
    assert [(ignored.line, ignored.text) for ignored in robots.ignored] == [
        (1, "Disallow: /"),
        (3, "Disallow: x"),
        (5, "nonsense"),
        (7, "Host: h"),
    ]


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        pytest.param("café".encode(), "café", id="2.2-utf-8"),
        pytest.param(b"caf\xe9", "café", id="2.2-latin-1-where-it-is-no-utf-8"),
        pytest.param(b"a\0b", "a\0b", id="2.2-nul"),
    ],
)
def test_the_text_is_for_people(octets: bytes, text: str) -> None:
    assert parse(octets).ignored == (Ignored(1, text, "no colon"),)


def test_a_long_text_is_cut() -> None:
    (ignored,) = parse(f"{'x' * 100_000}\n").ignored
    assert ignored.text == f"{'x' * 199}…"


def test_lines_are_counted_in_what_was_read() -> None:
    body = "nonsense\nUser-agent: *\n".encode("utf-16")
    assert RobotsTxt.parse(body).ignored == (Ignored(1, "nonsense", "no colon"),)


@pytest.mark.parametrize(
    ("body", "limit", "line"),
    [
        pytest.param(b"User-agent: *\nDisallow: /a\nDisallow: /b\n", 30, 3, id="2.5-a-cut-line"),
        pytest.param(b"User-agent: *\nDisallow: /a\nDisallow: /b\n", 27, 3, id="2.5-a-line-that-begins-there"),
        pytest.param(b"User-agent: * Disallow: /", 10, 1, id="2.5-the-first-line"),
    ],
)
def test_where_reading_ended_is_reported(body: bytes, limit: int, line: int) -> None:
    robots = RobotsTxt.parse(body, limit)
    assert robots.ignored == (Ignored(line, "", "beyond the limit, like all that follows"),)


def test_asking_twice_gives_the_same() -> None:
    robots = parse("nonsense\n")
    assert robots.ignored == robots.ignored != ()
