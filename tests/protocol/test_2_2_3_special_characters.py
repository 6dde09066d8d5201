"""Special characters: `#`, `$` and `*` (RFC 9309 section 2.2.3, Figures 5 and 6)."""

from __future__ import annotations

import pytest
from asking import allows, matches, pattern_of


@pytest.mark.parametrize(
    ("line", "path", "allowed"),
    [
        pytest.param("allow: / # comment in line", "/a", True, id="2.2.3-figure-5-comment-in-line"),
        pytest.param("disallow: /a # comment in line", "/a", False, id="2.2.3-the-value-before-a-comment"),
        pytest.param("# disallow: /a", "/a", True, id="2.2.3-figure-5-comment-on-its-own-line"),
        pytest.param("disallow: /#a", "/b", False, id="2.2.3-comment-inside-a-value"),
        pytest.param("disallow: /%23a", "/%23a", False, id="2.2.3-an-escaped-number-sign-is-none"),
        pytest.param("disallow #: /a", "/a", True, id="2.2.3-comment-before-the-colon"),
        pytest.param("disallow: # /a", "/a", True, id="2.2.3-comment-instead-of-a-value"),
    ],
)
def test_number_sign_begins_a_comment(line: str, path: str, allowed: bool) -> None:
    assert allows(f"user-agent: *\n{line}\n", path) is allowed


@pytest.mark.parametrize(
    ("rule", "path", "matched"),
    [
        pytest.param("/this/path/exactly$", "/this/path/exactly", True, id="2.2.3-figure-5-end"),
        pytest.param("/this/path/exactly$", "/this/path/exactly/", False, id="2.2.3-figure-5-not-the-end"),
        pytest.param("/this/path/exactly$", "/this/path/exactly?a", False, id="2.2.3-a-query-before-the-end"),
        pytest.param("/a$", "/a$", False, id="2.2.3-end-is-no-character"),
        pytest.param("/a$$", "/a$", True, id="2.2.3-a-dollar-before-the-end-mark"),
        pytest.param("/a$$", "/a", False, id="2.2.3-a-dollar-before-the-end-mark-is-not-none"),
        pytest.param("/a$b", "/a$b", True, id="2.2.3-inside-an-ordinary-character"),
        pytest.param("/a$b", "/a%24b", True, id="2.2.3-inside-encoded-in-the-url"),
        pytest.param("/a$b", "/a", False, id="2.2.3-inside-no-end-mark"),
        pytest.param("/a$*", "/a$", True, id="2.2.3-before-a-star-an-ordinary-character"),
        pytest.param("/a$*", "/a", False, id="2.2.3-before-a-star-no-end-mark"),
        pytest.param("/$", "/", True, id="2.2.3-the-root-alone"),
        pytest.param("/$", "/a", False, id="2.2.3-the-root-alone-nothing-else"),
        pytest.param("$", "/", False, id="2.2.3-an-end-mark-is-no-path-pattern"),
    ],
)
def test_dollar_is_the_end(rule: str, path: str, matched: bool) -> None:
    assert matches(rule, path) is matched


@pytest.mark.parametrize(
    ("rule", "path", "matched"),
    [
        pytest.param("/this/*/exactly", "/this/x/exactly", True, id="2.2.3-figure-5-any"),
        pytest.param("/this/*/exactly", "/this//exactly", True, id="2.2.3-figure-5-none"),
        pytest.param("/this/*/exactly", "/this/x/y/exactly/z", True, id="2.2.3-figure-5-slashes-too"),
        pytest.param("/this/*/exactly", "/this/exactly", False, id="2.2.3-figure-5-both-slashes"),
        pytest.param("*", "/", True, id="2.2.3-alone"),
        pytest.param("*", "/a/b?c", True, id="2.2.3-alone-matches-all"),
        pytest.param("*.gif$", "/x/a.gif", True, id="5.1-at-the-start"),
        pytest.param("*.gif$", "/x/a.gifs", False, id="5.1-at-the-start-to-the-end"),
        pytest.param("*/*a", "/a", True, id="2.2.3-at-the-start-nothing"),
        pytest.param("/a*", "/a", True, id="2.2.3-at-the-end-nothing"),
        pytest.param("/a*$", "/abc", True, id="2.2.3-at-the-end-before-the-mark"),
        pytest.param("/a**b", "/ab", True, id="2.2.3-two"),
        pytest.param("/*a*b*c$", "/xaybzc", True, id="2.2.3-several"),
        pytest.param("/*a*b*c$", "/xbyazc", False, id="2.2.3-several-in-their-order"),
        pytest.param("/*a*a$", "/a", False, id="2.2.3-pieces-do-not-overlap"),
        pytest.param("/a*a$", "/a", False, id="2.2.3-first-and-last-do-not-overlap"),
        pytest.param("/ab*ba$", "/aba", False, id="2.2.3-first-and-last-share-no-octet"),
        pytest.param("/*ab$", "/abxab", True, id="2.2.3-the-last-of-several-ends-the-url"),
        pytest.param("/*ab*$", "/ab", True, id="2.2.3-a-star-before-the-end-takes-nothing"),
        pytest.param("/*b*c", "/cb", False, id="2.2.3-the-last-piece-after-the-others"),
        pytest.param("/*?", "/a?b", True, id="2.2.3-a-question-mark-is-itself"),
        pytest.param("/*?", "/ab", False, id="2.2.3-a-question-mark-is-no-wildcard"),
        pytest.param("/a.c", "/abc", False, id="2.2.3-a-dot-is-itself"),
        pytest.param("/(a|b)+[c-d]", "/aac", False, id="2.2.3-no-regular-expression"),
    ],
)
def test_star_is_any_number_of_any_octets(rule: str, path: str, matched: bool) -> None:
    assert matches(rule, path) is matched


@pytest.mark.parametrize(
    ("rule", "path", "matched"),
    [
        pytest.param("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True, id="2.2.3-figure-6-star"),
        pytest.param(
            "/path/file-with-a-%2a.html", "/path/file-with-a-%2A.html", True, id="2.2.3-figure-6-star-escaped"
        ),
        pytest.param("/path/file-with-a-%2A.html", "/path/file-with-a-x.html", False, id="2.2.3-figure-6-no-wildcard"),
        pytest.param("/path/foo-%24", "/path/foo-$", True, id="2.2.3-figure-6-dollar"),
        pytest.param("/path/foo-%24", "/path/foo-%24/bar", True, id="2.2.3-figure-6-dollar-is-no-end"),
        pytest.param("/path/foo-%24", "/path/foo-", False, id="2.2.3-figure-6-dollar-is-a-character"),
        pytest.param("/a*b", "/a*b", True, id="2.2.3-a-wildcard-matches-a-star-too"),
        pytest.param("/a*b", "/a%2Ab", True, id="2.2.3-a-wildcard-matches-an-escaped-star-too"),
    ],
)
def test_escaped_special_characters_match_themselves(rule: str, path: str, matched: bool) -> None:
    assert matches(rule, path) is matched


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        pytest.param(b"/", 1, id="2.2.2-one"),
        pytest.param(b"/a*", 3, id="2.2.2-a-star"),
        pytest.param(b"/a**", 4, id="2.2.2-two-stars"),
        pytest.param(b"/a$", 3, id="2.2.2-an-end-mark"),
        pytest.param(b"/a$b", 6, id="2.2.2-an-inner-dollar-encoded"),
        pytest.param("/é".encode(), 7, id="2.2.2-encoded"),
        pytest.param(b"/%61", 2, id="2.2.2-decoded"),
        pytest.param(b"/a?%2F", 4, id="2.2.2-decoded-in-the-query"),
        pytest.param(b"*", 1, id="2.2.2-a-star-alone"),
        pytest.param(b"*$", 2, id="2.2.2-a-star-and-an-end-mark"),
    ],
)
def test_how_specific_a_pattern_is(value: bytes, octets: int) -> None:
    assert len(pattern_of(value)) == octets


@pytest.mark.parametrize("value", [b"", b"a", b"$", b"?", b"%2F", b"https://www.example.com/"])
def test_no_path_pattern_matches_nothing(value: bytes) -> None:
    assert not any(matches(value, path) for path in ("", "/", "/a", "/%2F", "/https://www.example.com/", "/?"))
