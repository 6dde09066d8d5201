"""The other readings of a URL: what handlers send instead of it, and what servers make of it."""

from __future__ import annotations

import sys
from urllib.parse import urlunparse

import pytest
from asking import TOKEN, parse

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import policy_at
from scrapy_rep.protocol.readings import other_readings
from scrapy_rep.protocol.robotstxt.patterns import spellings
from scrapy_rep.protocol.robotstxt.rules import Rule

NOW = 1_700_000_000.0

READINGS = {
    # Dot segments (RFC 3986 section 5.2.4)
    "/x/../private": ["/private"],
    "/x/%2e%2e/private": ["/private"],
    "/x/%2E./private?a=/../b#/../c": ["/private?a=/../b"],
    "/./a": ["/a"],
    "/../../a": ["/a"],
    "/a//../b": ["/a/b"],
    "/a/b/c/./../../g": ["/a/g"],
    "/a/b/..": ["/a/", "/a"],
    "/a/.": ["/a/", "/a"],
    "/a/%2e?x": ["/a/?x", "/a?x"],
    "/%2e%2e/x/..": ["/", "/%2e%2e/", "/%2e%2e"],
    "/..": ["/"],
    # Parameters
    "/a;": ["/a"],
    "/a/;": ["/a/"],
    "/a;b=1;c": ["/a"],
    "/a;?b;": ["/a?b;"],
    "/a;b/c;#d": ["/a;b/c"],
    "/a/..;": ["/a/..", "/"],
    # An empty query, and what Scrapy sends as it is with `verbatim_url`
    "/a?": ["/a"],
    "/a?#b": ["/a"],
    "/a\tb\r\nc": ["/abc"],
    "/a ": ["/a"],
    "/a\v#b": ["/a"],
    # None of these has another reading.
    "/": [],
    "": [],
    "?x": [],
    "?x;": [],
    "/.well-known/x": [],
    "/...": [],
    "/..;/x": [],
    "/%2f..": [],
    "/..%2fx": [],
    "/%252e/x": [],
    "/a?b=/../c": [],
    "/a?b=c;d": [],
    "/a?b=//c": [],
    "/a#/../c": [],
    "/a#;": [],
    "/a b": [],
    "/%40%2c": [],
}
HOSTS = ["", "http://example.com", "//user@example.com:8080"]


@pytest.mark.parametrize("before", HOSTS)
@pytest.mark.parametrize(("url", "readings"), READINGS.items(), ids=READINGS)
def test_readings(before: str, url: str, readings: list[str]) -> None:
    assert other_readings(before + url) == tuple(before + reading for reading in readings)


@pytest.mark.parametrize(("target", "reading"), [("?a ", "/?a"), ("?a\tb", "/?ab"), ("?", "/")])
def test_readings_without_a_path(target: str, reading: str) -> None:
    assert other_readings(f"https://example.com{target}") == (f"https://example.com{reading}",)


@pytest.mark.parametrize(
    ("path", "is_allowed", "read_as"),
    [
        pytest.param("/x/../private", False, "https://example.com/private", id="a-reading-that-is-forbidden"),
        pytest.param("/private/../x", False, None, id="forbidden-as-it-is-written"),
        pytest.param("/x/../y", True, None, id="every-reading-is-allowed"),
    ],
)
def test_a_policy_allows_a_url_only_if_each_of_its_readings_is_allowed(
    path: str, is_allowed: bool, read_as: str | None
) -> None:
    answer = Answer("https://example.com/robots.txt", 200, AccessResult.SUCCESS)
    robots = parse("User-agent: *\nDisallow: /private\n")
    entry = Entry(answer.url, StoredResponse(answer, NOW, NOW + DAY, robots))
    policy, url = policy_at(entry, NOW, 30 * DAY), f"https://example.com{path}"
    verdict = policy.verdict(url, TOKEN)
    assert policy.allows(url, TOKEN) is verdict.allowed is is_allowed
    assert verdict.read_as == read_as
    assert verdict.rule == (None if is_allowed else Rule(2, False, b"/private"))


@pytest.mark.parametrize("before", HOSTS[1:])
def test_two_slashes_are_doubled_where_this_python_doubles_them(before: str) -> None:
    doubled = () if urlunparse(("", "", "//a", "", "", "")) == "//a" else (f"{before}////a",)
    assert other_readings(f"{before}//a") == doubled
    assert sys.version_info < (3, 13, 0) or doubled


# What Scrapy's FTP handler asks for: the path without escapes, parameters and query. FTP servers read `//` as `/`.
FTP = {
    "/pub/private%2Fa.txt": ["/pub/private/a.txt"],
    "/pub/%28x%29.txt": ["/pub/(x).txt"],
    "/pub/one.txt?x": ["/pub/one.txt"],
    "/pub/one.txt;type=i?x": ["/pub/one.txt?x", "/pub/one.txt"],
    "/pub//a%2F/b": ["/pub/a/b"],
    "/pub%2F..%2Fprivate": ["/pub/../private", "/private"],
    "/a%23b": [],
    "/a%2523b%25": [],
    "/a%3Fb": ["/a?b"],
    "/caf%C3%A9": [],
    "/pub/": [],
    "": [],
}


@pytest.mark.parametrize("scheme", ["ftp", "FTP"])
@pytest.mark.parametrize(("url", "readings"), FTP.items(), ids=FTP)
def test_readings_of_ftp(url: str, readings: list[str], scheme: str) -> None:
    origin = f"{scheme}://example.com"
    found = {spellings(reading) for reading in other_readings(origin + url)} - {spellings(origin + url)}
    assert found == {spellings(reading) for reading in readings}


def test_many_dot_segments_take_linear_time() -> None:
    assert other_readings("/x/.." * 500_000 + "/y") == ("/y",)


@pytest.mark.parametrize("text", ["/", "?", "#", "/a?#", ";", " ", "/..", "/%2e", "a"])
def test_a_long_url_takes_linear_time(text: str) -> None:
    assert len(other_readings(f"https://example.com/{text * 200_000} ")) <= 12
