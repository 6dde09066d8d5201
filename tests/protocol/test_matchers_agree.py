"""The fast matcher is held against the plain one, and the parts of the fast one against each other.

`SCRAPY_REP_FILES=1000000 pytest tests/protocol/test_matchers_agree.py` compares on so many generated files instead.
"""

from __future__ import annotations

import os
from itertools import chain, product

import plain
import pytest
from asking import parse
from generated import bodies_and_questions
from hypothesis import HealthCheck, given, settings, strategies as st

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import matching_positions, patterns, spellings

FILES = int(os.environ.get("SCRAPY_REP_FILES", "1000"))
QUESTIONS = 8
TOKENS = st.sampled_from([("a",), ("b",), ("c", "b"), ("*",), ()])


def fast(robots: RobotsTxt, url: str, tokens: tuple[str, ...]) -> plain.Outcome:
    verdict = robots.verdict(url, tokens)
    assert robots.allows(url, tokens) is verdict.allowed
    return plain.Outcome(verdict.allowed, verdict.rule.line if verdict.rule else None, verdict.product_token)


@pytest.mark.parametrize("seed", [0, 1])
def test_both_matchers_agree_on_generated_files(seed: int) -> None:
    for body, questions in bodies_and_questions(seed=seed, files=FILES, questions=QUESTIONS):
        robots, groups = parse(body), plain.groups_of(body)
        for url, tokens in questions:
            expected = plain.outcome_of_groups(groups, url, tokens)
            assert fast(robots, url, tokens) == expected, (body, url, tokens)
            assert robots.crawl_delay(tokens) == plain.delay_of_groups(groups, tokens), (body, tokens)


def test_both_matchers_agree_on_all_short_rules_with_percent_signs() -> None:
    rules = ["/" + "".join(end) for size in range(4) for end in product("%2c*$-", repeat=size)]
    paths = ["/" + "".join(end) for size in range(4) for end in product("%2c-", repeat=size)]
    fast_patterns, plain_rules = patterns("\n".join(rules)).split("\n"), [plain.rule_of(rule) for rule in rules]
    assert fast_patterns == plain_rules
    for path in paths:
        compared = plain.paths_of(path)
        matching = [at for at, rule in enumerate(plain_rules) if any(plain.does_match(rule, one) for one in compared)]
        assert sorted(set(matching_positions(fast_patterns, spellings(path)))) == matching, path


lines = st.builds(
    "{}{}{}".format,
    st.sampled_from(
        ["User-agent:", "Allow:", "Disallow:", "disallow ", "useragent ", "Sitemap:", "x:", "", " Allow :"]
    ),
    st.sampled_from(["a", "*", "b", "/", "/a", "/*a", "/a$", "/?%2F", "/%e9", "/é", "", " /a*b", "/b*b$", "/a**"]),
    st.sampled_from(["", " ", "#", " # x", "*", "$", "%41", "a"]),
)
bodies = st.one_of(
    st.lists(lines, max_size=12).map(lambda text: "\n".join(text).encode()),
    st.lists(st.one_of(lines.map(str.encode), st.binary(max_size=8)), max_size=12).map(b"\r\n".join),
).filter(lambda body: not body.startswith((b"\xff\xfe", b"\xfe\xff")))
urls = st.one_of(
    st.text("/ab?%2Ffé*$#:", max_size=8).map("https://h.example/{}".format),
    st.text(max_size=12).map("https://h.example/{}".format),
    st.text(max_size=12).map("https://{}".format),
    st.text(max_size=12).map("/{}".format),
)


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies, url=urls, tokens=TOKENS)
def test_both_matchers_agree_on_what_hypothesis_draws(body: bytes, url: str, tokens: tuple[str, ...]) -> None:
    robots = parse(body)
    first = fast(robots, url, tokens)
    robots.allows("https://h.example/other", tokens)
    assert first == fast(robots, url, tokens) == plain.outcome(body, url, tokens)


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.one_of(bodies, st.binary(max_size=60)), tokens=TOKENS)
def test_a_verdict_follows_from_the_groups_that_are_reported(body: bytes, tokens: tuple[str, ...]) -> None:
    robots = parse(body)
    named = set(chain.from_iterable(group.product_tokens for group in robots.groups))
    verdict = robots.verdict("https://h.example/a", tokens)
    expected = next((token for token in (*tokens, "*") if token.lower() in named), None)
    assert verdict.product_token == expected
    key = (expected or "").lower()
    mine = [group.rules for group in robots.groups if key in group.product_tokens]
    assert robots.crawl_delay(tokens) == plain.delay_of_groups(plain.groups_of(robots.octets), tokens)
    # A file that holds these rules alone gives the same verdict about the place of each of them.
    rules = list(chain.from_iterable(mine))
    alone = b"user-agent: *\n" + b"".join(
        (b"allow:" if rule.allow else b"disallow:") + rule.octets + b"\n" for rule in rules
    )
    for rule in rules:
        url = "https://h.example" + rule.octets.decode("latin-1").rstrip("$").replace("*", "x")
        assert robots.allows(url, tokens) is parse(alone).allows(url, "*")


@pytest.mark.parametrize(
    ("rule", "path", "matched"),
    [
        ("/a", "/ab", True),
        ("/a$", "/ab", False),
        ("/*b", "/ab", True),
        ("/b", "/ab", False),
        ("/a*b$", "/axb", True),
        ("/a*b$", "/axbx", False),
        ("*", "/", True),
        ("/a**$", "/a", True),
    ],
)
def test_the_plain_matcher_itself(rule: str, path: str, matched: bool) -> None:
    assert plain.does_match(plain.rule_of(rule), path) is matched


def test_the_plain_matcher_is_right_about_the_example_of_the_standard() -> None:
    body = (
        b"User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n"
        b"User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n"
    )  # after RFC 9309 5.1
    asked = {
        path: plain.outcome(body, f"https://h.example{path}", ["foobot"]).line for path in ("/", "/example/page.html")
    }
    assert asked == {"/": 7, "/example/page.html": 8}
    assert not plain.outcome(body, "https://h.example/x.gif", ["barbot"]).allowed
    assert plain.outcome(body, "https://h.example/x.gif?", ["barbot"]).allowed
