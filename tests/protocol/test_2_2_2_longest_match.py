"""Which rule decides: the most octets (RFC 9309 section 2.2.2), and the standard's own example (5.2)."""

from __future__ import annotations

import pytest
from asking import ORIGIN, TOKEN, allows, matches, parse


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        pytest.param("Allow: /a\nDisallow: /a/b", "/a/b", False, id="2.2.2-longer-disallow"),
        pytest.param("Disallow: /a\nAllow: /a/b", "/a/b", True, id="2.2.2-longer-allow"),
        pytest.param("Disallow: /a\nAllow: /a/b", "/a/c", False, id="2.2.2-the-longer-does-not-match"),
        pytest.param("Disallow: /a\nAllow: /a", "/a", True, id="2.2.2-equivalent-allow-last"),
        pytest.param("Allow: /a\nDisallow: /a", "/a", True, id="2.2.2-equivalent-allow-first"),
        pytest.param("Allow: /*b\nDisallow: /ab", "/ab", True, id="2.2.2-equally-long-allow"),
        pytest.param("Disallow: /*b\nAllow: /ab", "/ab", True, id="2.2.2-equally-long-allow-last"),
        pytest.param("Allow: /x/page.\nDisallow: /*.html", "/x/page.html", True, id="2.2.2-the-rules-octets"),
        pytest.param("Allow: /*b\nDisallow: /aa", "/aab", True, id="2.2.2-not-the-stretch-matched-tie"),
        pytest.param("Allow: /*\nDisallow: /aaa", "/aaa", False, id="2.2.2-not-the-stretch-matched"),
        pytest.param("Allow: /a\nDisallow: /a*", "/ab", False, id="2.2.2-a-star-counts"),
        pytest.param("Allow: /a*\nDisallow: /a**", "/ab", False, id="2.2.2-each-star-counts"),
        pytest.param("Allow: /ab\nDisallow: /ab$", "/ab", False, id="2.2.2-the-end-mark-counts"),
        pytest.param("Allow: /%61b\nDisallow: /abc", "/abc", False, id="2.2.2-decoded-octets-count-once"),
        pytest.param("Allow: /é\nDisallow: /aé", "/aé", False, id="2.2.2-both-encoded"),
        pytest.param("Allow: /éé\nDisallow: /*%C3%A9", "/éé", True, id="2.2.2-encoded-octets-count"),
        pytest.param("Allow: /a$b\nDisallow: /*24b", "/a$b", True, id="2.2.3-an-inner-dollar-is-three-octets"),
    ],
)
def test_the_most_octets_win(rules: str, path: str, allowed: bool) -> None:
    assert allows(f"User-agent: *\n{rules}\n", path) is allowed


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        pytest.param("/example/page/", True, id="5.2-the-shorter"),
        pytest.param("/example/page/disallowed.gif", False, id="5.2-the-longer"),
        pytest.param("/example/page/disallowed.gif?x", False, id="5.2-the-longer-as-prefix"),
    ],
)
def test_the_longest_match_example(path: str, allowed: bool) -> None:
    text = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    assert allows(text, path, "foobot") is allowed


@pytest.mark.parametrize(
    ("rule", "path", "matched"),
    [
        pytest.param("/", "/", True, id="2.2.2-root"),
        pytest.param("/", "/a/b?c", True, id="2.2.2-root-is-a-prefix-of-all"),
        pytest.param("/a", "/a", True, id="2.2.2-the-same"),
        pytest.param("/a", "/ab", True, id="2.2.2-a-prefix"),
        pytest.param("/a/", "/a", False, id="2.2.2-longer-than-the-path"),
        pytest.param("/b", "/a/b", False, id="2.2.2-from-the-first-octet"),
        pytest.param("/A", "/a", False, id="2.2.2-case-counts"),
        pytest.param("a", "/a", False, id="2.2-no-path-pattern"),
        pytest.param("https://www.example.com/a", "/a", False, id="2.2-an-absolute-url-is-no-path-pattern"),
        pytest.param("?a", "/?a", False, id="2.2-a-query-is-no-path-pattern"),
        pytest.param("%2Fa", "/a", False, id="2.2-an-escape-is-no-path-pattern"),
        pytest.param("//www.example.com/a", "/a", False, id="2.2-an-authority-is-no-path-pattern"),
        pytest.param("/a/index.html", "/a/", False, id="2.2.2-no-index-page"),
        pytest.param("/a/", "/a/index.html", True, id="2.2.2-an-index-page-is-a-page"),
    ],
)
def test_a_rule_matches_from_the_first_octet_of_the_path(rule: str, path: str, matched: bool) -> None:
    assert matches(rule, path) is matched


@pytest.mark.parametrize(
    ("rule", "path", "matched"),
    [
        pytest.param("/a;p", "/a;p=1", True, id="2.2.2-parameters"),
        pytest.param("/a?q", "/a?q=1", True, id="2.2.2-query"),
        pytest.param("/a?", "/a?", True, id="2.2.2-an-empty-query"),
        pytest.param("/a?", "/a", False, id="2.2.2-no-query"),
        pytest.param("/a$", "/a?", False, id="2.2.2-an-empty-query-is-not-none"),
        pytest.param("/a$", "/a#f", True, id="2.2.2-fragment"),
        pytest.param("/a$", "/a#?/x", True, id="2.2.2-fragment-with-delimiters"),
        pytest.param("/?q", "?q", True, id="2.2.2-an-empty-path-before-a-query"),
        pytest.param("/$", "", True, id="2.2.2-an-empty-path"),
        pytest.param("/$", "#f", True, id="2.2.2-an-empty-path-before-a-fragment"),
    ],
)
def test_path_parameters_and_query_are_compared(rule: str, path: str, matched: bool) -> None:
    assert matches(rule, path) is matched


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://www.example.com/a", id="2.2.2-https"),
        pytest.param("HTTP://www.example.com/a", id="2.2.2-scheme-in-capitals"),
        pytest.param("ftp://user:secret@www.example.com:2121/a", id="2.2.2-authority"),
        pytest.param("https://[::1]:8443/a", id="2.2.2-literal-address"),
        pytest.param("//www.example.com/a", id="2.2.2-without-scheme"),
        pytest.param("/a", id="2.2.2-without-authority"),
    ],
)
def test_scheme_and_authority_are_not_compared(url: str) -> None:
    assert not parse("User-agent: *\nDisallow: /a$\n").allows(url, TOKEN)


def test_an_address_in_the_path_is_path() -> None:
    assert matches("/https://", "/https://www.example.com/a")
    assert matches("//a", "//a/b")
    assert not matches("/b", "//a/b")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        pytest.param("/robots.txt", True, id="2.2.2-robots-txt"),
        pytest.param("/robots.txt#f", True, id="2.2.2-robots-txt-fragment"),
        pytest.param("/robots%2Etxt", True, id="2.2.2-robots-txt-escaped"),
        pytest.param("/robots.txt?x", False, id="2.2.2-robots-txt-with-query"),
        pytest.param("/robots.txt?", False, id="2.2.2-robots-txt-with-empty-query"),
        pytest.param("/Robots.txt", False, id="2.2.2-robots-txt-case"),
        pytest.param("/a/robots.txt", False, id="2.2.2-robots-txt-elsewhere"),
        pytest.param("/robots.txt.html", False, id="2.2.2-robots-txt-prefix"),
        pytest.param("//robots.txt", False, id="2.2.2-robots-txt-two-slashes"),
    ],
)
def test_robots_txt_itself_is_always_allowed(path: str, allowed: bool) -> None:
    assert allows("User-agent: *\nDisallow: /\n", path) is allowed


def test_an_empty_disallow_takes_nothing_back() -> None:
    assert not allows("User-agent: *\nDisallow: /a\nDisallow:\nAllow:\n", "/a")
    assert allows("User-agent: *\nDisallow:\n", "/a")


def test_no_match_allows() -> None:
    assert allows("User-agent: *\nAllow: /a\nDisallow: /b\n", "/c")


@pytest.mark.parametrize(
    ("rules", "path", "line"),
    [
        pytest.param("Disallow: /b\nDisallow: /\nDisallow: /a", "/a", 4, id="2.2.2-the-longest"),
        pytest.param("Disallow: /a\nDisallow: /a", "/a", 2, id="2.2.2-of-duplicates-the-first"),
        pytest.param("Disallow: /*b\nDisallow: /ab", "/ab", 2, id="2.2.2-of-equally-long-the-first"),
        pytest.param("Disallow: /a\nAllow: /a", "/a", 3, id="2.2.2-of-equivalent-allow"),
    ],
)
def test_the_rule_that_decides_is_named(rules: str, path: str, line: int) -> None:
    rule = parse(f"User-agent: *\n{rules}\n").verdict(ORIGIN + path, TOKEN).rule
    assert rule is not None
    assert rule.line == line
