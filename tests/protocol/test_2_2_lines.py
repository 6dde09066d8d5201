"""Lines, keys and values (RFC 9309 section 2.2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking import ORIGIN, TOKEN, allows, parse

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt

SPELLED: list[Callable[[str], str]] = [str.lower, str.upper, str.title, str.swapcase]
LINE_ENDS = [
    pytest.param("\n", id="2.2-NL-lf"),
    pytest.param("\r", id="2.2-NL-cr"),
    pytest.param("\r\n", id="2.2-NL-crlf"),
]
# What str.splitlines() takes for a line's end, and the standard does not.
NO_LINE_ENDS = [
    pytest.param("\v", id="2.2-NL-not-vt"),
    pytest.param("\f", id="2.2-NL-not-ff"),
    pytest.param("\x1c", id="2.2-NL-not-fs"),
    pytest.param("\x1d", id="2.2-NL-not-gs"),
    pytest.param("\x1e", id="2.2-NL-not-rs"),
    pytest.param("\0", id="2.2-NL-not-nul"),
    pytest.param("\x85", id="2.2-NL-not-nel"),
    pytest.param("\u2028", id="2.2-NL-not-line-separator"),
    pytest.param("\u2029", id="2.2-NL-not-paragraph-separator"),
]
NO_WHITE_SPACE = [
    pytest.param("\v", id="2.2-WS-not-vt"),
    pytest.param("\f", id="2.2-WS-not-ff"),
    pytest.param("\0", id="2.2-WS-not-nul"),
    pytest.param("\xa0", id="2.2-WS-not-nbsp"),
    pytest.param("\u3000", id="2.2-WS-not-ideographic-space"),
    pytest.param("\u200b", id="2.2-WS-not-zero-width-space"),
]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        pytest.param("\ufeffUser-agent: *\nDisallow: /a\n", ["/a"], id="2.2-mark-first-line"),
        pytest.param("User-agent: *\n\ufeffDisallow: /a\n", ["/a"], id="2.2-mark-a-rule"),
        pytest.param("User-agent: b\nAllow: /\r\ufeffUser-agent: *\nDisallow: /a\n", ["/a"], id="2.2-mark-a-group"),
        pytest.param("User-agent: *\r\n\ufeff\ufeffDisallow: /a", ["/a"], id="2.2-mark-twice"),
        pytest.param("User-agent: *\n\ufeff\nDisallow: /a", ["/a"], id="2.2-mark-alone-in-a-line"),
        pytest.param("User-agent: *\n\ufeff Disallow: /a", ["/a"], id="2.2-mark-then-white-space"),
        pytest.param("User-agent: *\n \ufeffDisallow: /a", [], id="2.2-mark-not-after-white-space"),
        pytest.param("User-agent: *\nDisallow: \ufeff/a", [], id="2.2-mark-not-in-a-line"),
        pytest.param("User-agent: *\nDisallow\ufeff: /a", [], id="2.2-mark-not-behind-a-key"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-16"])
def test_a_byte_order_mark_at_the_beginning_of_a_line_is_skipped(text: str, rules: list[str], encoding: str) -> None:
    robots = parse(text.encode(encoding))
    named = [group.rules for group in robots.groups if "*" in group.product_tokens]
    assert [rule.pattern for rule in named[0]] == rules
    assert allows(text.encode(encoding), "/a") is (not rules)


def test_half_a_byte_order_mark_is_not_skipped() -> None:
    assert allows(b"User-agent: *\n\xef\xbbDisallow: /\n", "/")


@pytest.mark.parametrize("end", LINE_ENDS)
def test_a_line_ends(end: str) -> None:
    robots = parse(end.join(["User-agent: *", "", "Disallow: /a", "Disallow: /b", ""]))
    assert [(rule.line, rule.pattern) for rule in robots.groups[0].rules] == [(3, "/a"), (4, "/b")]


def test_line_ends_may_be_mixed() -> None:
    robots = parse("User-agent: *\rDisallow: /a\r\nDisallow: /b\n\rDisallow: /c")
    assert [(rule.line, rule.pattern) for rule in robots.groups[0].rules] == [(2, "/a"), (3, "/b"), (5, "/c")]


@pytest.mark.parametrize("character", NO_LINE_ENDS)
def test_nothing_else_ends_a_line(character: str) -> None:
    assert allows(f"User-agent: *\n#{character}Disallow: /\n", "/")
    assert allows(f"User-agent: *\nDisallow: /a{character}Disallow: /\n", "/")


def test_the_last_line_needs_no_end() -> None:
    assert not allows("User-agent: *\nDisallow: /", "/")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Disallow:/a", id="2.2-WS-none"),
        pytest.param(" \tDisallow: /a", id="2.2-WS-before-the-key"),
        pytest.param("Disallow \t: /a", id="2.2-WS-before-the-colon"),
        pytest.param("Disallow:\t \t/a", id="2.2-WS-before-the-value"),
        pytest.param("Disallow: /a \t ", id="2.2-WS-after-the-value"),
        pytest.param("Disallow: /a#c", id="2.2-comment-without-space"),
        pytest.param("Disallow: /a \t# c # d", id="2.2-comment-after-space"),
    ],
)
def test_white_space_and_comments_around(line: str) -> None:
    (group,) = parse(f"User-agent: *\n{line}\n").groups
    assert [rule.octets for rule in group.rules] == [b"/a"]


@pytest.mark.parametrize(
    ("line", "token"),
    [
        pytest.param(" \tUser-agent\t: \tfoobot \t", "foobot", id="2.2-startgroupline-WS"),
        pytest.param("User-agent:foobot#c", "foobot", id="2.2-startgroupline-comment"),
        pytest.param("User-agent: *#c", "*", id="2.2-startgroupline-everyone-comment"),
    ],
)
def test_white_space_and_comments_around_a_token(line: str, token: str) -> None:
    (group,) = parse(f"{line}\nDisallow: /\n").groups
    assert group.product_tokens == (token,)


@pytest.mark.parametrize("character", NO_WHITE_SPACE)
def test_nothing_else_is_white_space(character: str) -> None:
    text = f"User-agent: *\n{character}Disallow: /\nDisallow{character}: /\n"
    assert [ignored.reason for ignored in parse(text).ignored] == ["unknown key", "unknown key"]


@pytest.mark.parametrize(
    ("end", "value"),
    [
        pytest.param(b"\0", b"/x", id="2.2-WS-nul"),
        pytest.param(b"\0\0\0", b"/x", id="2.2-WS-several-nuls"),
        pytest.param(b" \0\t\0 ", b"/x", id="2.2-WS-nul-between-white-space"),
        pytest.param(b"\0#c", b"/x\0", id="2.2-WS-not-before-a-comment"),
        pytest.param(b"#c\0", b"/x", id="2.2-WS-nul-after-a-comment"),
        pytest.param(b"\0y", b"/x\0y", id="2.2-WS-not-nul-in-a-value"),
    ],
)
@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n", b""])
def test_nul_at_the_end_of_a_line_is_white_space(end: bytes, value: bytes, line_end: bytes) -> None:
    robots = parse(b"User-agent: *\0\nDisallow: /x" + end + line_end)
    assert [rule.octets for rule in robots.groups[0].rules] == [value]
    assert robots.groups[0].product_tokens == ("*",)
    assert robots.allows(f"{ORIGIN}/x", TOKEN) is (value != b"/x")


def test_nuls_cut_by_the_limit_are_no_end_of_a_line() -> None:
    assert RobotsTxt.parse(b"User-agent: *\nDisallow: /\0\0x\n", 26).groups[0].rules == ()


def test_a_comment_hides_a_record() -> None:
    assert allows("User-agent: *\n# Disallow: /\n#Disallow: /\n", "/")


@pytest.mark.parametrize("spelled", [pytest.param(spell, id=f"2.2-{spell.__name__}") for spell in SPELLED])
def test_keys_have_no_case(spelled: Callable[[str], str]) -> None:
    lines = ("user-agent: *", "allow: /a", "disallow: /b", "crawl-delay: 2", "sitemap: https://www.example.com/s.xml")
    keys_and_values = [line.split(": ") for line in lines]
    robots = parse("\n".join(f"{spelled(key)}: {value}" for key, value in keys_and_values))
    assert robots.groups == parse("\n".join(lines)).groups
    assert [len(group.rules) for group in robots.groups] == [2]
    assert robots.crawl_delay(TOKEN) == 2.0
    assert robots.sitemaps == ("https://www.example.com/s.xml",)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("disallowed", id="2.2-longer"),
        pytest.param("dis", id="2.2-shorter"),
        pytest.param("x-disallow", id="2.2-prefixed"),
        pytest.param("disallow disallow", id="2.2-twice"),
        pytest.param("dis allow", id="2.2-split"),
        pytest.param("", id="2.2-empty"),
    ],
)
def test_keys_match_whole(key: str) -> None:
    text = f"User-agent: *\n{key}: /\n"
    assert allows(text, "/")
    assert [ignored.reason for ignored in parse(text).ignored] == ["unknown key"]


@pytest.mark.parametrize("key", ["user-agents", "user-agent-x", "agent"])
def test_a_user_agent_key_matches_whole(key: str) -> None:
    assert parse(f"{key}: *\nDisallow: /\n").groups == ()


def test_what_follows_the_first_colon_is_the_value() -> None:
    (group,) = parse("User-agent: *\nDisallow: /a:b: c\n").groups
    assert group.rules[0].octets == b"/a:b: c"


def test_nul_is_an_octet_like_others() -> None:
    (group,) = parse(b"User-agent: *\nDisallow: /a\0b\n").groups
    assert group.rules[0].octets == b"/a\0b"
    assert not allows(b"User-agent: *\nDisallow: /a\0b\n", "/a%00b")


def test_a_line_has_no_longest_length() -> None:
    path = "/" + "a" * 100_000
    text = f"User-agent: *\nDisallow: {path}\n"
    assert not allows(text, path)
    assert allows(text, path[:-1])


@pytest.mark.parametrize("number", [1, 99, 100, 101, 1_000])
def test_blank_lines_are_lines_and_nothing_else(number: int) -> None:
    blank = "\n" * number
    robots = parse(f"User-agent: *{blank}Disallow: /a{blank}Allow: /ab\nUser-agent: b\nDisallow: /c\n")
    verdicts = [robots.verdict(f"{ORIGIN}{path}", TOKEN) for path in ("/a", "/ab", "/c")]
    assert [verdict.allowed for verdict in verdicts] == [False, True, True]
    assert [verdict.rule and verdict.rule.line for verdict in verdicts] == [1 + number, 1 + 2 * number, None]
