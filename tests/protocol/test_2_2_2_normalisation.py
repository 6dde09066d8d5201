"""Octets made comparable (RFC 9309 section 2.2.2, Figure 4), in the rule and in the URL alike."""

from __future__ import annotations

import re

import pytest
from asking import ORIGIN, TOKEN, allows, matches, parse, pattern_of

from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt, spellings

E_ACUTE, KATAKANA_TU = "%C3%A9", "%E3%83%84"

# Pairs that mean the same: each is tried as the rule and as the path.
SAME = [
    pytest.param("/foo/bar?baz=quz", "/foo/bar?baz=quz", id="2.2.2-figure-4-row-1"),
    pytest.param("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", id="2.2.2-figure-4-row-2"),
    pytest.param("/foo/bar/ツ", f"/foo/bar/{KATAKANA_TU}", id="2.2.2-figure-4-row-3"),
    pytest.param(f"/foo/bar/{KATAKANA_TU}", f"/foo/bar/{KATAKANA_TU}", id="2.2.2-figure-4-row-4"),
    pytest.param("/foo/bar/%62%61%7A", "/foo/bar/baz", id="2.2.2-figure-4-row-5"),
    pytest.param("/ツ", "/ツ", id="2.2.2-raw-on-both-sides"),
    pytest.param("/%c3%a9", f"/{E_ACUTE}", id="RFC3986-6.2.2.1-hex-digits"),
    pytest.param("/%2d%2e%5f%7e", "/-._~", id="RFC3986-2.3-unreserved"),
    pytest.param("/%41%5A%61%7A%30%39", "/AZaz09", id="RFC3986-2.3-unreserved-alphanumeric"),
    pytest.param("/a b", "/a%20b", id="2.2.2-space"),
    pytest.param("/a\tb", "/a%09b", id="2.2.2-tab"),
    pytest.param("/a\x01\x7fb", "/a%01%7Fb", id="2.2.2-controls"),
    pytest.param('/"<>\\^`{|}', "/%22%3C%3E%5C%5E%60%7B%7C%7D", id="RFC3986-2-no-uri-may-hold-them"),
    pytest.param("/\\x41%62\\u0041", "/%5Cx41b%5Cu0041", id="2.2.2-a-backslash-escapes-nothing"),
    pytest.param("/[a]?b[]=c", "/%5Ba%5D?b%5B%5D=c", id="RFC3986-3.2.2-brackets"),
    pytest.param("/100%-", "/100%25-", id="2.2.2-a-percent-sign-alone"),
    pytest.param("/100%zz", "/100%25zz", id="2.2.2-a-percent-sign-without-hex-digits"),
    pytest.param("/%4-", "/%254-", id="2.2.2-a-percent-sign-with-one-digit"),
    pytest.param("/%$4", "/%25%244", id="2.2.2-a-percent-sign-before-a-dollar-inside"),
    pytest.param("/%%2D", "/%25-", id="2.2.2-a-percent-sign-before-an-escape"),
    pytest.param("/a?b=%3a%2f%3f%40", "/a?b=:/?@", id="2.2.2-figure-4-row-2-all-four"),
    pytest.param("/a?b=%3A/%3F", "/a?b=:%2F?", id="2.2.2-figure-4-row-2-mixed"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_path_one_in_the_rule(one: str, other: str) -> None:
    assert matches(one + "$", other)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_path_one_in_the_url(one: str, other: str) -> None:
    assert matches(other + "$", one)


# Pairs that do not.
DIFFERENT = [
    pytest.param("/a%2Fb", "/a/b", id="2.2.2-slash-in-the-path"),
    pytest.param("/a%3Fb", "/a?b", id="2.2.2-question-mark"),
    pytest.param("/a%3Ab", "/a:b", id="2.2.2-colon-in-the-path"),
    pytest.param("/a%40b", "/a@b", id="2.2.2-at-in-the-path"),
    pytest.param("/a%3Bb", "/a;b", id="2.2.2-semicolon"),
    pytest.param("/a?b%3Dc", "/a?b=c", id="2.2.2-equals-sign-in-the-query"),
    pytest.param("/a?b%26c", "/a?b&c", id="2.2.2-ampersand-in-the-query"),
    pytest.param("/a?b%23c", "/a?b", id="2.2.2-number-sign-in-the-query"),
    pytest.param("/a?b+c", "/a?b%20c", id="2.2.2-plus-is-no-space"),
    pytest.param("/a//b", "/a/b", id="2.2.2-two-slashes"),
    pytest.param("/a/./b", "/a/b", id="2.2.2-dot-segment"),
    pytest.param("/a/../b", "/b", id="2.2.2-dot-dot-segment"),
    pytest.param("/%2561", "/a", id="2.2.2-decoded-once"),
    pytest.param("/%2561", "/%61", id="2.2.2-an-escaped-percent-sign-stays"),
    pytest.param("/%E9", f"/{E_ACUTE}", id="2.2.2-latin-1-is-not-utf-8"),
    pytest.param("/e\u0301", "/é", id="2.2.2-no-unicode-normalisation"),
    pytest.param("/A", "/a", id="2.2.2-case"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_paths_one_in_the_rule(one: str, other: str) -> None:
    assert not matches(one + "$", other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_paths_one_in_the_url(one: str, other: str) -> None:
    assert not matches(other + "$", one)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("example.com/a", id="RFC3986-4.2-a-host-and-a-path"),
        pytest.param("localhost:8000/a", id="RFC3986-4.2-a-host-and-a-port"),
        pytest.param("mailto:a@example.com", id="RFC3986-3-no-authority"),
        pytest.param("data:,/robots.txt", id="RFC2397-no-authority"),
        pytest.param("a", id="RFC3986-4.2-a-relative-path"),
        pytest.param(" /a", id="RFC3986-2-white-space"),
    ],
)
def test_what_is_neither_a_url_nor_a_path_is_an_error(text: str) -> None:
    robots = parse("User-agent: *\nDisallow: /\n")
    for ask in (robots.verdict, robots.allows):
        with pytest.raises(ValueError, match=re.escape(f"{text!r} is neither a URL nor a path: write it as 'https://")):
            ask(text, TOKEN)
    assert not is_robots_txt(text)


@pytest.mark.parametrize("path", ["/a", "/a?b", "", "?b", "#c", "//www.example.com/a"])
def test_a_path_is_accepted_as_its_url_is(path: str) -> None:
    robots = parse("User-agent: *\nDisallow: /a\n")
    url = f"https:{path}" if path.startswith("//") else ORIGIN + path
    assert robots.verdict(path, TOKEN) == robots.verdict(url, TOKEN)
    assert robots.allows(path, TOKEN) is not ("/a" in path)


def test_octets_that_are_no_utf_8_stay_octets() -> None:
    assert matches(b"/caf\xe9$", "/caf%E9")
    assert not matches(b"/caf\xe9$", "/café")


@pytest.mark.parametrize(
    ("rule", "path", "matched"),
    [
        pytest.param("/*u=https%3A%2F%2Ff", "/p?u=https%3A%2F%2Ff", True, id="2.2.2-as-it-stands"),
        pytest.param("/*u=https://f", "/p?u=https%3A%2F%2Ff", True, id="2.2.2-decoded"),
        pytest.param("/*/feed/", "/x?u=/a/feed/", True, id="2.2.2-wildcards-cross-into-the-query"),
        pytest.param("/*/feed/", "/x?u=%2Fa%2Ffeed%2F", True, id="2.2.2-wildcards-and-an-encoded-query"),
        pytest.param("/*a:b", "/a%3Ab?c", False, id="2.2.2-what-stands-before-the-query-stays"),
        pytest.param("/a%2Fb?c%2Fd", "/a%2Fb?c/d", True, id="2.2.2-path-as-it-stands-query-decoded"),
        pytest.param("/a?b?c%2Fd", "/a?b%3Fc/d", True, id="2.2.2-after-the-first-question-mark"),
    ],
)
def test_a_query_has_two_spellings(rule: str, path: str, matched: bool) -> None:
    assert matches(rule, path) is matched


@pytest.mark.parametrize(
    ("rule", "path", "matched"),
    [
        pytest.param("/*%", "/a%20b", True, id="2.2.2-cut-by-the-end"),
        pytest.param("/*%", "/café", True, id="2.2.2-cut-by-the-end-raw-octets"),
        pytest.param("/*%", "/a%", True, id="2.2.2-cut-by-the-end-a-percent-sign-alone"),
        pytest.param("/*%", "/a%25", True, id="2.2.2-cut-by-the-end-a-percent-sign-encoded"),
        pytest.param("/*%", "/%61", False, id="2.2.2-cut-by-the-end-an-unreserved-character"),
        pytest.param("/a%2", "/a%2F", True, id="2.2.2-cut-after-a-digit"),
        pytest.param("/a%2", "/a%", True, id="2.2.2-cut-after-a-digit-a-percent-sign-alone"),
        pytest.param("/a%2", "/a%3F", False, id="2.2.2-cut-after-a-digit-another-digit"),
        pytest.param("/*%c", "/é", True, id="2.2.2-cut-after-a-digit-in-lower-case"),
        pytest.param("/*%D9%", "/names/%D9%85", True, id="2.2.2-cut-after-an-escape"),
        pytest.param("/*%d9%", "/names/%d9%85", True, id="2.2.2-cut-after-an-escape-in-lower-case"),
        pytest.param("/*?q=%", "/s?q=%D0%B0", True, id="2.2.2-cut-in-a-query"),
        pytest.param("/*?q=%3", "/s?q=%3A", True, id="2.2.2-cut-in-a-query-figure-4"),
        pytest.param("/a%*b", "/a%20b", True, id="2.2.2-cut-by-a-star"),
        pytest.param("/a%2*b", "/a%20b", True, id="2.2.2-cut-by-a-star-after-a-digit"),
        pytest.param("/a%e*b", "/a%E9b", True, id="2.2.2-cut-by-a-star-in-lower-case"),
        pytest.param("/*%*", "/a%20", True, id="2.2.2-cut-by-a-star-at-the-end"),
        pytest.param("/a%$", "/a%25", False, id="2.2.2-cut-by-the-end-of-the-url"),
        pytest.param("/a%$", "/a%20", False, id="2.2.2-cut-by-the-end-of-the-url-an-escape"),
        pytest.param("/a%c", "/a%c-", False, id="2.2.2-cut-after-a-digit-a-percent-sign-alone-is-25"),
        pytest.param("/a%25c", "/a%c-", True, id="2.2.2-a-percent-sign-alone-is-25"),
        pytest.param("/a%g*", "/a%25g", True, id="2.2.2-not-cut-no-digit"),
        pytest.param("/a%g*", "/a%20", False, id="2.2.2-not-cut-no-digit-an-escape"),
        pytest.param("/%%", "/%25%20", True, id="2.2.2-the-second-is-cut"),
        pytest.param("/%%", "/%20%20", False, id="2.2.2-the-first-is-not-cut"),
        pytest.param("/a%#c", "/a%20", True, id="2.2.2-cut-by-a-comment"),
        pytest.param("/a%2 \t", "/a%20", True, id="2.2.2-cut-by-white-space-at-the-end"),
        pytest.param("/a%2 b", "/a%252%20b", True, id="2.2.2-not-cut-by-white-space-inside"),
    ],
)
@pytest.mark.parametrize("others", ["", "disallow: /*y*z\n" * 3])
def test_a_cut_escape_in_a_rule_begins_an_escape(rule: str, path: str, matched: bool, others: str) -> None:
    assert allows(f"user-agent: *\ndisallow: {rule}\n{others}", path) is not matched


def test_a_cut_escape_counts_as_it_is_written() -> None:
    assert pattern_of("/%") == "/%"
    assert pattern_of("/%c*%*%a$") == "/%C*%*%A$"
    assert allows("user-agent: *\ndisallow: /a%2\nallow: /a%20\n", "/a%20")
    assert not allows("user-agent: *\ndisallow: /a%20\nallow: /a%2\n", "/a%20")


def test_a_long_url_is_compared_with_cut_escapes() -> None:
    rules = "user-agent: *\n" + "".join(f"disallow: /*x{number}%2*q\n" for number in range(3_000))
    assert not allows(rules, f"/{'a' * 12_000}x7%20q")
    assert allows(rules, f"/{'a' * 12_000}x7%30q")


def test_the_most_specific_match_of_both_spellings_counts() -> None:
    rules = "User-agent: *\nAllow: /*%2F%2F\nDisallow: /*u=https://f\n"
    assert not allows(rules, "/p?u=https%3A%2F%2Ff")
    rules = "User-agent: *\nAllow: /*u=https%3A%2F%2F\nDisallow: /*u=https://\n"
    assert allows(rules, "/p?u=https%3A%2F%2Ff")


@pytest.mark.parametrize(
    ("url", "compared"),
    [
        pytest.param("https://h/a/b", ("/a/b",), id="2.2.2-one-spelling"),
        pytest.param("https://h/a?u=b", ("/a?u=b",), id="2.2.2-one-spelling-of-a-query"),
        pytest.param("https://h/%3a?%3a", ("/%3A?%3A", "/%3A?:"), id="2.2.2-two-spellings"),
        pytest.param("https://h/%c-%", ("/%25c-%25",), id="2.2.2-a-percent-sign-alone"),
        pytest.param("https://h", ("/",), id="RFC9110-4.2.3-an-empty-path"),
        pytest.param("https://h/*$", ("/%2A%24",), id="2.2.3-neither-is-special-in-a-url"),
        pytest.param("https://h/\udc80", ("/%ED%B2%80",), id="2.2.2-a-surrogate"),
    ],
)
def test_what_of_a_url_is_compared(url: str, compared: tuple[str, ...]) -> None:
    assert spellings(url) == compared
