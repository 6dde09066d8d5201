"""Lines, keys and values (RFC 9309 section 2.2)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from urllib.parse import quote

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
# What is skipped beside a key or a value: white space of Unicode, controls (C0, DEL, C1), U+200B and U+FEFF.
EVERY_CHARACTER = "".join(map(chr, range(sys.maxunicode + 1)))
WHITE_SPACE = {*re.findall(r"[\s\0-\x1f\x7f-\x9f]", EVERY_CHARACTER), "\u200b", "\ufeff"} - {*" \t\r\n"}
NO_WHITE_SPACE = [
    pytest.param("é".encode(), id="2.2-WS-not-a-letter"),
    pytest.param("\u2060".encode(), id="2.2-WS-not-a-word-joiner"),
    pytest.param("\u2014".encode(), id="2.2-WS-not-a-dash"),
    pytest.param(b"\xa0", id="2.2-WS-not-an-octet-that-is-not-utf-8"),
    pytest.param(b"\xc2", id="2.2-WS-not-the-first-octet-of-nbsp"),
    pytest.param(b"\xef\xbb", id="2.2-WS-not-half-a-mark"),
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
        pytest.param("User-agent: *\n \ufeffDisallow: /a", ["/a"], id="2.2-mark-after-white-space"),
        pytest.param("User-agent: *\nDisallow: \ufeff/a", ["/a"], id="2.2-mark-before-a-value"),
        pytest.param("User-agent: *\nDisallow\ufeff: /a", ["/a"], id="2.2-mark-behind-a-key"),
        pytest.param("User-agent: *\nDis\ufeffallow: /a", [], id="2.2-mark-not-in-a-key"),
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


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("_Disallow: /a", id="2.2-WS-before-the-key"),
        pytest.param("Disallow_: /a", id="2.2-WS-before-the-colon"),
        pytest.param("Disallow:_/a", id="2.2-WS-before-the-value"),
        pytest.param("Disallow: /a_", id="2.2-WS-after-the-value"),
        pytest.param("Disallow: /a_#c", id="2.2-WS-before-a-comment"),
        pytest.param("\t_ Disallow _\t: __ /a _ _ # _", id="2.2-WS-everywhere"),
        pytest.param("_Disallow /a_", id="2.2-WS-without-a-colon"),
        pytest.param("Disallow _/a", id="2.2-WS-before-the-value-without-a-colon"),
    ],
)
def test_white_space_beside_a_key_or_a_value_is_skipped(line: str) -> None:
    assert [character for character in sorted(WHITE_SPACE) if not is_skipped(character, line)] == []


def is_skipped(character: str, line: str) -> bool:
    text = f"#\n{character}User-agent{character}:{character}*{character}\n{line.replace('_', character)}"
    for body in (text.encode(), text.encode("utf-16")):
        robots = parse(body)
        (group,) = robots.groups
        read = [(rule.line, rule.octets) for rule in group.rules], group.product_tokens, robots.ignored
        if read != ([(3, b"/a")], ("*",), ()) or allows(body, "/a"):
            return False
    return True


def test_within_a_value_it_counts_like_other_octets() -> None:
    assert [character for character in sorted(WHITE_SPACE - {"\0"}) if not counts_within(character)] == []


def counts_within(character: str) -> bool:
    text = f"User-agent: *\nDisallow: /a:{character}b{character}\nDisallow /c:{character}d\n"
    octets = character.encode()
    read = [rule.octets for rule in parse(text).groups[0].rules]
    is_forbidden = not allows(text, f"/a:{quote(character)}b") and allows(text, "/a:b")
    return is_forbidden and read == [b"/a:" + octets + b"b", b"/c:" + octets + b"d"]


@pytest.mark.parametrize("octets", NO_WHITE_SPACE)
def test_nothing_else_is_white_space(octets: bytes) -> None:
    robots = parse(b"User-agent: *\n_Disallow: /\nDisallow: _/a\nDisallow: /b_\n".replace(b"_", octets))
    assert [(ignored.line, ignored.reason) for ignored in robots.ignored] == [
        (2, "unknown key"),
        (3, "begins with neither / nor *"),
    ]
    assert [rule.octets for rule in robots.groups[0].rules] == [b"/b" + octets]


@pytest.mark.parametrize("octets", [*NO_WHITE_SPACE, b" \xa0\t\xff", b"\xe2\x80"])
def test_all_but_printable_ascii_is_skipped_between_a_key_and_its_colon(octets: bytes) -> None:
    assert not allows(b"User-agent_: *\nDisallow_: /a\n".replace(b"_", octets), "/a")
    assert allows(b"User-agent: *\nDisallow_!: /a\nDis_allow: /a\n".replace(b"_", octets), "/a")


def test_between_words_only_space_and_tab_are_white_space() -> None:
    assert allows("User-agent: *\u00a0foo\nDisallow: /a\n", "/a")
    assert allows("User-agent: *\nDisallow\u00a0/a\n", "/a")


@pytest.mark.parametrize(
    ("end", "value"),
    [
        pytest.param(b"\0", b"/x", id="2.2-WS-nul"),
        pytest.param(b"\0\0\0", b"/x", id="2.2-WS-several-nuls"),
        pytest.param(b" \0\t\0 ", b"/x", id="2.2-WS-nul-between-white-space"),
        pytest.param(b"\0#c", b"/x", id="2.2-WS-before-a-comment"),
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
