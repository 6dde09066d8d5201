"""What a verdict says: the rule, its line, as written, and by which token it was found (RFC 9309 section 2.2)."""

from __future__ import annotations

import copy
import dataclasses
import doctest
import pickle
from types import ModuleType

import pytest
from asking import ORIGIN, TOKEN, parse

from scrapy_rep.exceptions import explanation, refusal
from scrapy_rep.protocol.answer import AccessResult
from scrapy_rep.protocol.lifecycle import Basis
from scrapy_rep.protocol.robotstxt import parser, rules
from scrapy_rep.protocol.robotstxt.parser import MAX_PARSED, RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Rule, Verdict, VerdictReason
from scrapy_rep.protocol.words import ACCESS_WORDS, OUTAGE_WORDS, REASON_WORDS

ROBOTS = parse(
    """\
# For everyone.
User-agent: *
Disallow: /private/ # not for you

User-agent: examplebot
 Disallow :\t/Café/*?q=%c3%a9$  # as written
Allow: /ex
"""
)


@pytest.mark.parametrize(
    ("path", "token", "verdict"),
    [
        pytest.param(
            "/private/x",
            "other",
            Verdict(False, VerdictReason.RULE, Rule(3, False, b"/private/"), "*"),
            id="2.2.2-disallow-by-everyones",
        ),
        pytest.param("/", "other", Verdict(True, VerdictReason.NO_RULE, None, "*"), id="2.2.2-no-rule-matched"),
        pytest.param(
            "/Café/1?q=é",
            "examplebot",
            Verdict(False, VerdictReason.RULE, Rule(6, False, "/Café/*?q=%c3%a9$".encode()), "examplebot"),
            id="2.2.2-disallow-as-written",
        ),
        pytest.param(
            "/example",
            "examplebot",
            Verdict(True, VerdictReason.RULE, Rule(7, True, b"/ex"), "examplebot"),
            id="2.2.2-allow-by-a-rule",
        ),
        pytest.param(
            "/private/x",
            "examplebot",
            Verdict(True, VerdictReason.NO_RULE, None, "examplebot"),
            id="2.2.1-its-own-group",
        ),
        pytest.param(
            "/robots.txt",
            "other",
            Verdict(True, VerdictReason.NOT_SUBJECT, None, "*"),
            id="2.2.2-robots-txt-by-no-rule",
        ),
    ],
)
def test_what_a_verdict_names(path: str, token: str, verdict: Verdict) -> None:
    assert ROBOTS.verdict(ORIGIN + path, token) == verdict
    assert ROBOTS.allows(ORIGIN + path, token) is verdict.allowed


def test_without_a_group_a_verdict_names_nothing() -> None:
    verdict = parse("User-agent: other\nDisallow: /\n").verdict(f"{ORIGIN}/", TOKEN)
    assert verdict == Verdict(True, VerdictReason.NO_GROUP)


def test_no_rule_forbids_robots_txt() -> None:
    robots = parse("User-agent: *\nDisallow: /\nDisallow: /*.txt$\n")
    assert robots.verdict(f"{ORIGIN}/robots.txt", TOKEN) == Verdict(True, VerdictReason.NOT_SUBJECT, None, "*")
    assert robots.allows(f"{ORIGIN}/robots.txt", TOKEN)
    assert not robots.allows(f"{ORIGIN}/robots.txt?", TOKEN)


def test_crawlers_by_many_names_take_bounded_memory() -> None:
    robots = parse("User-agent: a7\nDisallow: /\n")
    for number in range(3 * MAX_PARSED):
        assert robots.allows(f"{ORIGIN}/", f"a{number}") is (number != 7)
    assert len(robots._parsed) <= MAX_PARSED


def test_a_body_parsed_without_an_address_has_none() -> None:
    verdict = ROBOTS.verdict(f"{ORIGIN}/private/", TOKEN)
    assert verdict.robots_url is None
    assert verdict.access is AccessResult.SUCCESS


@pytest.mark.parametrize(
    ("rule", "pattern", "text"),
    [
        pytest.param(Rule(1, False, b"/a*$"), "/a*$", "Disallow: /a*$", id="2.2.2-disallow"),
        pytest.param(Rule(1, True, b"/%c3%a9"), "/%c3%a9", "Allow: /%c3%a9", id="2.2.2-allow-not-normalised"),
        pytest.param(Rule(1, False, "/é".encode()), "/é", "Disallow: /é", id="2.2.2-utf-8"),
        pytest.param(Rule(1, False, b"/\xe9"), "/é", "Disallow: /é", id="2.2.2-latin-1-where-it-is-no-utf-8"),
    ],
)
def test_a_rule_as_written(rule: Rule, pattern: str, text: str) -> None:
    assert rule.pattern == pattern
    assert str(rule) == text


def test_a_rule_of_any_length_is_exact_and_its_text_is_cut() -> None:
    path = f"/{'x' * 100_000}"
    robots = parse(f"User-agent: *\nDisallow: {path}$\n")
    verdict = robots.verdict(path, TOKEN)
    assert verdict.rule is not None
    assert (verdict.rule.pattern, verdict.rule.octets) == (f"{path}$", f"{path}$".encode())
    assert robots.allows(f"{path}x", TOKEN)
    text = str(verdict.rule)
    assert (len(text), text[:12], text[-2:]) == (500, "Disallow: /x", "x…")


@pytest.mark.parametrize("module", [parser, rules])
def test_the_examples_are_right(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "RobotsTxt(0 groups, 0 rules)"),
        ("User-agent: a\nDisallow: /\n", "RobotsTxt(1 group, 1 rule)"),
        ("User-agent: a\nDisallow: /\nUser-agent: *\nAllow: /x\nAllow: /y\n", "RobotsTxt(2 groups, 3 rules)"),
    ],
)
def test_a_file_says_how_much_is_in_it(text: str, words: str) -> None:
    assert repr(parse(text)) == words
    assert repr(RobotsTxt.parse(f"{text}#{text}".encode(), len(text))) == f"{words[:-1]}, truncated)"


def test_every_reason_has_its_words_and_its_source() -> None:
    assert REASON_WORDS.keys() == {reason.value for reason in VerdictReason}
    for reason in VerdictReason:
        words = REASON_WORDS[reason.value]
        assert words.source
        assert words.allowed or words.refused
        for allowed in (True, False):
            verdict = Verdict(allowed, reason)
            assert (verdict.words, verdict.source) == (words.allowed if allowed else words.refused, words.source)


def test_what_decides_in_an_outage_and_what_is_stored_have_words() -> None:
    assert OUTAGE_WORDS.keys() == {basis.value for basis in Basis}
    unstored = {AccessResult.REDIRECT, AccessResult.UNREACHABLE}
    assert ACCESS_WORDS.keys() == {access.value for access in AccessResult if access not in unstored}


def test_every_reason_to_refuse_has_its_message_and_can_be_counted() -> None:
    for words in REASON_WORDS.values():
        assert bool(words.refused) is bool(words.refusal) is bool(words.counted)


def test_a_message_can_be_written_without_a_fetch() -> None:
    for reason in VerdictReason:
        words = REASON_WORDS[reason.value]
        if words.refused:
            assert explanation(Verdict(False, reason)).startswith(words.refusal.partition("{")[0])


@pytest.mark.parametrize("reason", [VerdictReason.RULE, VerdictReason.UNREACHABLE])
def test_an_exception_can_be_copied_and_pickled(reason: VerdictReason) -> None:
    error = refusal(dataclasses.replace(ROBOTS.verdict(f"{ORIGIN}/private/", TOKEN), reason=reason))
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(other), str(other), other.verdict) == (type(error), str(error), error.verdict)


def test_values_are_frozen() -> None:
    verdict = ROBOTS.verdict(f"{ORIGIN}/private/", TOKEN)
    for value in (verdict, Rule(1, True, b"/"), ROBOTS, ROBOTS.groups[0]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, dataclasses.fields(value)[0].name, None)
