"""License lines of RSL 1.0 (Really Simple Licensing): which ones are for a crawler."""

from __future__ import annotations

import json

import pytest
from asking import TOKEN, parse

from scrapy_rep.protocol.robotstxt.parser import MAX_LICENSES

A, B, C = (f"https://{name}.example/license.xml" for name in "abc")


@pytest.mark.parametrize(
    ("text", "licenses"),
    [
        pytest.param(f"License: {A}\nUser-agent: *\nAllow: /\n", [A], id="before-all-groups"),
        pytest.param(f"User-agent: *\nLicense: {A}\nAllow: /\n", [A], id="in-the-group-of-everyone"),
        pytest.param(f"License: {A}\nUser-agent: {TOKEN}\nLicense: {B}\n", [B], id="the-own-group-comes-first"),
        pytest.param(f"License: {A}\nUser-agent: Other\nLicense: {B}\n", [A], id="then-what-is-before-all-groups"),
        pytest.param(
            f"User-agent: *\nAllow: /\nUser-agent: GPTBot\nDisallow: /\n# the site's file\nLicense: {A}\n"
            "User-agent: *\nDisallow: /x\n",
            [A],
            id="then-all-others-such-as-below-the-groups-of-a-content-network",
        ),
        pytest.param(
            f"User-agent: *\nLicense: {A}\nUser-agent: {TOKEN}\nLicense: {B}\n", [B], id="a-license-ends-a-run"
        ),
        pytest.param(f"User-agent: *\nUser-agent: {TOKEN}\nLicense: {B}\n", [B], id="several-user-agent-lines"),
        pytest.param(
            f"User-agent: {TOKEN}\nLicense: {A}\nDisallow: /x\nUser-agent: *\nLicense: {C}\n"
            f"User-agent: {TOKEN}\nLicense: {B}\nlicense: {A}\n",
            [A, B],
            id="several-groups-without-duplicates",
        ),
        pytest.param(f"LICENSE : '{A}' # terms\n", [A], id="no-groups"),
        pytest.param(f"License {A}\n", [A], id="without-a-colon"),
        pytest.param(f"License: <{A}>\n", [A], id="in-angle-brackets"),
        pytest.param("License: HTTPS://A.example/ü?x=y\n", ["HTTPS://A.example/ü?x=y"], id="as-written"),
        pytest.param(f"License:\nUser-agent: {TOKEN}\nLicense: /l.xml\n", [], id="none"),
        pytest.param(f"License: {A}\nUser-agent: {TOKEN}\nLicense: /l.xml\n", [A], id="an-ignored-line-is-none"),
        pytest.param("", [], id="empty"),
    ],
)
def test_the_licenses_of_a_crawler(text: str, licenses: list[str]) -> None:
    robots = parse(text)
    assert robots.licenses(TOKEN) == robots.licenses(TOKEN) == tuple(licenses)


def test_the_first_name_that_has_a_group_counts() -> None:
    robots = parse(f"User-agent: *\nLicense: {A}\nDisallow:\nUser-agent: b\nLicense: {B}\n")
    assert robots.licenses(["a", "b"]) == (B,)
    assert robots.licenses(["a"]) == robots.licenses("*") == robots.licenses([]) == (A,)
    with pytest.raises(ValueError, match="not a product token"):
        robots.licenses("a b")


@pytest.mark.parametrize(
    "value",
    [
        *("", "#", "/license.xml", "license.xml", "//a.example/l.xml", "https://", "https:///l.xml", "see the terms"),
        *("ftp://a.example/l.xml", f"{A} {B}", "https://a.example/\x1b[2J", f"https://a.example/{2_001 * 'x'}"),
    ],
)
def test_a_line_without_a_whole_url_is_ignored(value: str) -> None:
    robots = parse(f"License: {value}\n")
    assert robots.licenses(TOKEN) == ()
    assert [(each.line, each.reason) for each in robots.ignored] == [(1, "no whole URL")]


def test_a_license_line_is_not_ignored_and_ends_no_group() -> None:
    robots = parse(f"License: {A}\nUser-agent: a\nLicense: {B}\nUser-agent: b\nDisallow: /\n")
    assert robots.ignored == ()
    assert [group.product_tokens for group in robots.groups] == [("a", "b")]
    assert not robots.allows("/", "a")


def test_the_number_of_licenses_is_limited() -> None:
    robots = parse("".join(f"License: https://a.example/{n}\n" for n in range(15_000)))
    assert robots.licenses(TOKEN) == tuple(f"https://a.example/{n}" for n in range(MAX_LICENSES))
    assert json.loads(json.dumps(robots.licenses(TOKEN))) == list(robots.licenses(TOKEN))


def test_the_memory_includes_the_licenses() -> None:
    robots = parse("".join(f"License: https://a.example/{n:x>1980}\n" for n in range(MAX_LICENSES)))
    robots.allows("/", TOKEN)
    before = robots.memory
    robots.licenses(TOKEN)
    assert robots.memory - before > 39_000
