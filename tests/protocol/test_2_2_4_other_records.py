"""Other records, and the misspellings that are read (RFC 9309 section 2.2.4)."""

from __future__ import annotations

import pytest
from asking import TOKEN, allows, parse

from scrapy_rep.protocol.robotstxt.syntax import Directive

C = "\uff1a"  # a full-width colon
MISSPELLED = {
    Directive.USER_AGENT: ["useragent", "user agent"],
    Directive.ALLOW: [],
    Directive.DISALLOW: ["dissallow", "dissalow", "disalow", "diasllow", "disallaw"],
    Directive.CRAWL_DELAY: ["crawl delay", "crawldelay"],
    Directive.SITEMAP: ["site-map", "sitemaps"],
    Directive.LICENSE: [],
    Directive.CONTENT_USAGE: [],
    Directive.CONTENT_SIGNAL: ["content-signals"],
}


def test_the_misspellings_that_are_read() -> None:
    assert {d: list(d.spellings[1:]) for d in Directive} == MISSPELLED


@pytest.mark.parametrize(
    ("directive", "key"),
    [pytest.param(d, key, id=f"2.2.4-{key.replace(' ', '_')}") for d in Directive for key in [*MISSPELLED[d], d.name]],
)
def test_a_misspelled_key_is_the_key(directive: Directive, key: str) -> None:
    key = key.replace("_", "-")
    values = dict(
        zip(Directive, [TOKEN, "/a", "/b", "3", "/s", "https://l.example/", "search=n", "search=yes"], strict=True)
    )
    keys = {d: d.name.replace("_", "-") for d in Directive} | {directive: key.upper()}
    robots = parse("\n".join(f"{keys[d]} : {values[d]}" for d in Directive))
    assert robots.ignored == ()
    assert [[rule.allow for rule in group.rules] for group in robots.groups] == [[True, False]]
    assert (robots.crawl_delay(TOKEN), robots.sitemaps) == (3.0, ("/s",))


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        pytest.param("disallow /", False, id="2.2.4-two-words"),
        pytest.param("disallow \t /", False, id="2.2.4-two-words-much-white-space"),
        pytest.param("disallow\t/", False, id="2.2.4-two-words-a-tab"),
        pytest.param("DISALLOW / # all", False, id="2.2.4-two-words-and-a-comment"),
        pytest.param("dissallow /", False, id="2.2.4-two-words-misspelled"),
        pytest.param("disallow /:x", True, id="2.2.4-two-words-a-colon-in-the-second"),
        pytest.param("disallow / please", True, id="2.2.4-three-words"),
        pytest.param("disallow / or: not", True, id="2.2.4-three-words-and-a-colon"),
        pytest.param("disallow", True, id="2.2.4-one-word"),
        pytest.param("disallow=/", True, id="2.2.4-another-sign"),
        pytest.param("forbid /", True, id="2.2.4-two-words-unknown"),
    ],
)
def test_a_missing_colon(line: str, allowed: bool) -> None:
    assert allows(f"user-agent: *\n{line}\n", "/a") is allowed


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f"Disallow{C}/img/", id="2.2.4-full-width"),
        pytest.param(f"Disallow{C} /img/", id="2.2.4-full-width-and-a-space"),
        pytest.param(f"DISALLOW\u3000{C}\u3000/img/", id="2.2.4-full-width-between-ideographic-spaces"),
        pytest.param(f"Disalow\u00a0{C}\ufeff/img/", id="2.2.4-full-width-between-other-white-space"),
        pytest.param("Disallow: /img/", id="2.2.4-of-ascii"),
    ],
)
def test_a_full_width_colon_is_a_colon(line: str) -> None:
    robots = parse(f"User-agent{C}*\n{line}\n")
    assert robots.ignored == ()
    assert [rule.octets for group in robots.groups for rule in group.rules] == [b"/img/"]
    assert not allows(f"User-agent{C}*\n{line}\n", "/img/1")


@pytest.mark.parametrize("colons", [f"{C}{C}", f"{C}:", f":{C}", f"\u3000{C}{C}"])
def test_the_first_of_two_colons_counts(colons: str) -> None:
    text = f"User-agent: *\nDisallow{colons}/img/\n"
    assert allows(text, "/img/1")
    assert [each.reason for each in parse(text).ignored] == ["begins with neither / nor *"]


def test_a_full_width_colon_in_every_record() -> None:
    values = [TOKEN, "/a", "/b", "3", "/s", "https://l.example/", "search=n", "search=yes"]
    robots = parse("\n".join(f"{d.key}{C}{value}" for d, value in zip(Directive, values, strict=True)))
    assert robots.ignored == ()
    assert (robots.crawl_delay(TOKEN), robots.sitemaps) == (3.0, ("/s",))
    assert robots.licenses(TOKEN) == ("https://l.example/",)


def test_a_missing_colon_in_every_record() -> None:
    robots = parse("user-agent *\nallow /a\ndisallow /b:c\ncrawl-delay 3\nsitemap https://www.example.com/s.xml\n")
    (group,) = robots.groups
    assert group.product_tokens == ("*",)
    assert [rule.octets for rule in group.rules] == [b"/a", b"/b:c"]
    assert (robots.crawl_delay("*"), robots.sitemaps) == (3.0, ("https://www.example.com/s.xml",))


def test_sitemaps_belong_to_no_group() -> None:
    robots = parse(
        "Sitemap: https://www.example.com/1.xml\n"
        "User-agent: a\n"
        "Sitemap: https://cdn.example/2.xml?x=y\n"
        "Disallow: /\n"
        "sitemap:/3.xml # relative\n"
        "User-agent: b\n"
        "SITEMAP: https://www.example.com/é.xml\n"
    )
    assert robots.sitemaps == (
        "https://www.example.com/1.xml",
        "https://cdn.example/2.xml?x=y",
        "/3.xml",
        "https://www.example.com/é.xml",
    )
    assert len(robots.groups) == 2


@pytest.mark.parametrize(
    ("value", "address"),
    [
        pytest.param('"https://www.example.com/s.xml"', "https://www.example.com/s.xml", id="2.2.4-quotes"),
        pytest.param("'/s.xml' # here", "/s.xml", id="2.2.4-single-quotes"),
        pytest.param("< /s.xml\t>", "/s.xml", id="2.2.4-angle-brackets"),
        pytest.param('"/s.xml', '"/s.xml', id="2.2.4-one-quote"),
        pytest.param("\"/s.xml'", "\"/s.xml'", id="2.2.4-two-kinds-of-quotes"),
        pytest.param('/"s".xml', '/"s".xml', id="2.2.4-quotes-inside"),
    ],
)
def test_a_sitemap_is_read_without_the_quotes_around_it(value: str, address: str) -> None:
    assert parse(f"Sitemap: {value}\nSitemap: {address}\n").sitemaps == (address,)


def test_a_sitemap_is_listed_once_where_it_first_stands() -> None:
    assert parse("Sitemap: /b\nSitemap: /a\nSitemap: /b\n").sitemaps == ("/b", "/a")


def test_an_empty_sitemap_is_none() -> None:
    assert parse("Sitemap:\nSitemap: # none\nSitemap: ''\nSitemap: <>\n").sitemaps == ()


def test_a_sitemap_that_is_no_utf_8_is_read_as_latin_1() -> None:
    assert parse(b"Sitemap: /caf\xe9.xml\n").sitemaps == ("/café.xml",)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("5", 5.0, id="2.2.4-whole"),
        pytest.param("0", 0.0, id="2.2.4-zero"),
        pytest.param("0.5", 0.5, id="2.2.4-fraction"),
        pytest.param(".5", 0.5, id="2.2.4-fraction-alone"),
        pytest.param("5.", 5.0, id="2.2.4-point-at-the-end"),
        pytest.param("+5", 5.0, id="2.2.4-plus"),
        pytest.param("1e2", 100.0, id="2.2.4-exponent"),
        pytest.param("1E-1", 0.1, id="2.2.4-negative-exponent"),
        pytest.param("5 # seconds", 5.0, id="2.2.4-comment"),
        pytest.param("", None, id="2.2.4-empty"),
        pytest.param("-5", None, id="2.2.4-negative"),
        pytest.param("-0", None, id="2.2.4-negative-zero"),
        pytest.param("1e999", None, id="2.2.4-too-large"),
        pytest.param("9" * 400, None, id="2.2.4-too-many-digits"),
        pytest.param("inf", None, id="2.2.4-infinite"),
        pytest.param("Infinity", None, id="2.2.4-infinity"),
        pytest.param("nan", None, id="2.2.4-no-number"),
        pytest.param("5s", None, id="2.2.4-unit"),
        pytest.param("5,5", None, id="2.2.4-comma"),
        pytest.param("1_000", None, id="2.2.4-underscore"),
        pytest.param("0x10", None, id="2.2.4-hexadecimal"),
        pytest.param(".", None, id="2.2.4-point-alone"),
        pytest.param("\u0665", None, id="2.2.4-digit-outside-ascii"),
        pytest.param("soon", None, id="2.2.4-word"),
    ],
)
def test_a_crawl_delay_is_a_finite_number_not_negative(value: str, seconds: float | None) -> None:
    assert parse(f"User-agent: *\nCrawl-delay: {value}\n").crawl_delay(TOKEN) == seconds


@pytest.mark.parametrize(
    ("text", "delays"),
    [
        pytest.param(
            "User-agent: a\nCrawl-delay: 5\nUser-agent: *\nDisallow: /x\n", {"a": 5.0}, id="2.2.4-the-tokens-above-it"
        ),
        pytest.param(
            "User-agent: a\nUser-agent: b\nCrawl-delay: 5\nUser-agent: c\nCrawl-delay: 7\nDisallow: /x\n",
            {"a": 5.0, "b": 5.0, "c": 7.0},
            id="2.2.4-each-its-own",
        ),
        pytest.param(
            "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x\nCrawl-delay: 7\n",
            {"a": 5.0, "b": 7.0},
            id="2.2.4-a-rule-between-changes-nothing",
        ),
        pytest.param(
            "User-agent: a\nCrawl-delay: soon\nUser-agent: b\nCrawl-delay: 7\nDisallow: /x\n",
            {"b": 7.0},
            id="2.2.4-a-delay-that-is-none-ends-the-run-too",
        ),
        pytest.param(
            "User-agent: a\nCrawl-delay: 5\nUser-agent: a\nUser-agent: b\nCrawl-delay: 3\nDisallow: /x\n",
            {"a": 5.0, "b": 3.0},
            id="2.2.4-the-largest-of-a-token-named-twice",
        ),
        pytest.param(
            "User-agent: a\nSitemap: /s\nNoindex: /\n\nUser-agent: b\nCrawl-delay: 5\nDisallow: /x\n",
            {"a": 5.0, "b": 5.0},
            id="2.2.4-other-records-end-nothing",
        ),
        pytest.param(
            "User-agent: a\nCrawl-delay: 5\nCrawl-delay: 9\nUser-agent: /\nCrawl-delay: 7\nDisallow: /x\n",
            {"a": 9.0},
            id="2.2.1-a-line-that-names-nobody-begins-a-run-too",
        ),
    ],
)
def test_a_crawl_delay_belongs_to_the_user_agent_lines_above_it(text: str, delays: dict[str, float]) -> None:
    robots = parse(text)
    (group,) = robots.groups
    for token in group.product_tokens:
        assert robots.crawl_delay(token) == delays.get(token)
        assert not robots.allows("/x", token), "the run of user-agent lines goes on for the rules"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("User-agent: a\nCrawl-delay: 2\n", 2.0, id="2.2.4-its-group"),
        pytest.param("User-agent: *\nCrawl-delay: 2\n", 2.0, id="2.2.4-everyones-group"),
        pytest.param("User-agent: *\nCrawl-delay: 2\nDisallow: /\nUser-agent: a\n", None, id="2.2.4-not-everyones"),
        pytest.param("User-agent: b\nCrawl-delay: 2\n", None, id="2.2.4-another-group"),
        pytest.param("Crawl-delay: 2\nUser-agent: a\n", None, id="2.2.4-before-any-group"),
        pytest.param(
            "User-agent: a\nCrawl-delay: 2\nCrawl-delay: 9\nCrawl-delay: 3", 9.0, id="2.2.4-largest-of-a-group"
        ),
        pytest.param("User-agent: a\nCrawl-delay: 2\nCrawl-delay: x\n", 2.0, id="2.2.4-garbage-behind"),
        pytest.param(
            "User-agent: a\nCrawl-delay: 9\nDisallow: /x\nUser-agent: A\nCrawl-delay: 3\n",
            9.0,
            id="2.2.1-largest-first",
        ),
        pytest.param(
            "User-agent: a\nCrawl-delay: 3\nDisallow: /x\nUser-agent: A\nCrawl-delay: 9\n", 9.0, id="2.2.1-largest-last"
        ),
        pytest.param(
            "User-agent: a\nCrawl-delay: 3\nDisallow: /x\nUser-agent: A\nDisallow:\n", 3.0, id="2.2.1-of-one-of-them"
        ),
        pytest.param("User-agent: a\nUser-agent: b\nDisallow: /\nCrawl-delay: 4\n", 4.0, id="2.2.4-of-several-agents"),
        pytest.param("User-agent: a\nCrawl-delay: 0\n", 0.0, id="2.2.4-zero-is-not-none"),
        pytest.param("User-agent: a\nDisallow: /\n", None, id="2.2.4-none"),
        pytest.param("", None, id="2.2.4-no-groups"),
    ],
)
def test_the_crawl_delay_of_a_crawler(text: str, seconds: float | None) -> None:
    delay = parse(text).crawl_delay("a")
    assert delay == seconds
    assert (delay is None) is (seconds is None)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param("Sitemap: /s.xml", id="2.2.4-sitemap"),
        pytest.param("Crawl-delay: 5", id="2.2.4-crawl-delay"),
        pytest.param("Noindex: /", id="2.2.4-noindex"),
        pytest.param("Host: h", id="2.2.4-host"),
        pytest.param("Clean-param: x /", id="2.2.4-clean-param"),
        pytest.param("Content-Signal: search=yes", id="2.2.4-content-signal"),
        pytest.param("<html>", id="2.3.1.5-not-parseable"),
    ],
)
def test_other_records_do_not_interfere(record: str) -> None:
    lines = ["User-agent: a", "User-agent: b", "Disallow: /x", "Allow: /x/y", "User-agent: *", "Disallow: /"]
    plain = parse("\n".join(lines))
    mixed = parse("\n".join(f"{record}\n{line}\n{record}" for line in lines))
    assert [g.product_tokens for g in mixed.groups] == [g.product_tokens for g in plain.groups]
    assert [[(r.allow, r.octets) for r in g.rules] for g in mixed.groups] == [
        [(r.allow, r.octets) for r in g.rules] for g in plain.groups
    ]
