"""What is true of every robots.txt and every URL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import chain, product

import plain
import pytest
from asking import ORIGIN, TOKEN, line_token, parse, pattern_of
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.redirect_target import is_private, why_not_followed
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt, matches, spellings
from scrapy_rep.protocol.robotstxt.syntax import is_product_token
from scrapy_rep.user_agent import product_token

# The same examples in every run: a failure on one machine is a failure on all.
some = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
many = settings(some, max_examples=400)


# A robots.txt, from its parts.

SPELLED: list[Callable[[str], str]] = [str.lower, str.upper, str.swapcase]
KEYS = ["User-agent", "Allow", "Disallow", "Crawl-delay", "Sitemap", "useragent", "DISALOW", "Noindex", "", "\ufeff"]
VALUES = ["*", "a", "B", "a/1", "* x", "", "/", "/a", "/*a$", "/é", "x", "2", "1e999", "nan", "/a?%2f", "/%", "\0"]
ATOMS = ["/", "a", "A", "b", "*", "$", "?", "=", "é", " ", "[", "%", "%61", "%62", "%2f", "%2F", "%3A", ":", "%C3%A9"]
ATOMS += ["%c3", "%24", "%2A", "%25", "3", "F", "~", "%7E", "+", ";", '"', "@", "%40"]

lines = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(KEYS),
    st.sampled_from([":", ": ", " : ", " ", "\t", ""]),
    st.sampled_from(VALUES),
    st.sampled_from(["", "", " # c", "#"]),
)
bodies = st.one_of(
    st.binary(max_size=200),
    st.lists(st.one_of(lines.map(str.encode), st.binary(max_size=12)), max_size=20).map(b"\n".join),
    st.builds(bytes.__add__, st.sampled_from([b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"]), st.binary(max_size=40)),
)
any_text = st.text(st.one_of(st.characters(), st.sampled_from("/?#%:@[]*$\udc80")), max_size=30)  # surrogates too
urls = st.one_of(
    any_text,
    st.builds("{}{}{}".format, st.sampled_from(["https://h", "http://[::1", "//", "https:", "h"]), any_text, any_text),
    st.lists(st.sampled_from([*ATOMS, "#", "//", "\udc80"]), max_size=8).map(
        lambda atoms: f"{ORIGIN}/{''.join(atoms)}"
    ),
)
tokens = st.sampled_from(["a", "B", "*", "c"])
wrong_tokens = st.sampled_from(["", "\N{KELVIN SIGN}", "a b", "a/1"])  # the second in lower case is ASCII


def is_target(url: str) -> bool:
    """Whether the text is a URL with an authority, or a path."""
    try:
        plain.paths_of(url)
    except ValueError:
        return False
    return True


@some
@given(body=bodies, url=urls, token=tokens, limit=st.sampled_from([1, 7, 20, 60, 512_000]))
def test_a_verdict_fits_the_file_and_only_no_url_raises(body: bytes, url: str, token: str, limit: int) -> None:
    robots = RobotsTxt.parse(body, limit)
    if not is_target(url):
        with pytest.raises(ValueError, match="neither a URL nor a path"):
            robots.verdict(url, token)
        url = f"{ORIGIN}/{url}"
    verdict = robots.verdict(url, token)
    assert robots.allows(url, token) is verdict.allowed
    assert verdict.allowed is (verdict.rule is None or verdict.rule.allow)
    assert verdict.rule is None or verdict.rule in chain.from_iterable(group.rules for group in robots.groups)
    delay = robots.crawl_delay(token)
    assert delay is None or (math.isfinite(delay) and delay >= 0)
    assert robots.truncated is (len(body) > limit)
    assert RobotsTxt.parse(body, limit) == robots


@some
@given(body=bodies, url=urls, token=wrong_tokens)
def test_what_is_no_product_token_is_an_error_whatever_the_file(body: bytes, url: str, token: str) -> None:
    with pytest.raises(ValueError, match="is not a product token"):
        parse(body).allows(url, token)


@some
@given(body=bodies)
def test_each_line_is_read_or_reported_never_both(body: bytes) -> None:
    robots = parse(body)
    reported = [ignored.line for ignored in robots.ignored]
    read = [rule.line for group in robots.groups for rule in group.rules]
    written = len(re.findall(rb"\r\n|\r|\n", robots.octets)) + 1
    assert len({*reported, *read}) == len(reported) + len(read)
    assert all(1 <= line <= written for line in (*reported, *read))
    assert reported == sorted(reported)
    assert read == sorted(read)
    assert all(ignored.reason for ignored in robots.ignored)


@some
@given(body=bodies, limit=st.integers(1, 80))
def test_reading_with_a_limit_is_reading_the_whole_lines_before_it(body: bytes, limit: int) -> None:
    assume(not body.startswith((b"\xff\xfe", b"\xfe\xff")))  # these are decoded first
    assume(len(body) > limit)
    whole = re.match(rb"(?s).*[\r\n]", body[: limit + 1])
    robots = RobotsTxt.parse(body, limit)
    assert robots.groups == parse(whole[0] if whole else b"").groups


@some
@given(url=urls)
def test_reading_any_text_as_a_url_never_raises(url: str) -> None:
    origin = Origin.of(url)
    followed = why_not_followed(ORIGIN, url, private=True) is None
    assert not followed or (origin is not None and origin.scheme in {"http", "https"})
    assert origin is None or isinstance(is_private(origin.host), bool)
    if not is_target(url):
        assert origin is None, "a crawl asks about nothing that a verdict raises for"
        assert not is_robots_txt(url)
        return
    assert list(spellings(url)) == list(dict.fromkeys(plain.paths_of(url)))
    assert not is_robots_txt(url) or spellings(url) == ("/robots.txt",)
    for spelling in spellings(url):
        assert re.fullmatch(r"/(?:[A-Za-z0-9._~:/?@!&'()+,;=-]|%[0-9A-F]{2})*", spelling)


authorities = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "user@", "us@er:p%40ss@"]),
    st.one_of(
        st.lists(st.text("aZ0ü-", min_size=1, max_size=5), min_size=1, max_size=3).map(".".join),
        st.ip_addresses(v=4).map(str),
        st.ip_addresses(v=6).map("[{}]".format),
    ),
    st.sampled_from(["", "."]),
    st.sampled_from(["", ":", ":80", ":443", ":08080", ":0"]),
)


@some
@given(scheme=st.sampled_from(["http", "HTTPS", "ftp"]), authority=authorities)
def test_an_origins_robots_txt_is_of_that_origin(scheme: str, authority: str) -> None:
    assume("]." not in authority)
    origin = Origin.of(f"{scheme}://{authority}/a?b#c")
    assert origin is not None
    assert Origin.of(origin.robots_url) == origin
    assert origin.host == origin.host.lower().rstrip(".")


@some
@given(
    header=st.one_of(any_text, st.lists(st.sampled_from(["(", ")", " ", "compatible;", "a", "/", "1"])).map("".join))
)
def test_what_a_header_names_is_a_product_token_of_it(header: str) -> None:
    token = product_token(header)
    assert token is None or (is_product_token(token) and token in header)


@some
@given(value=st.binary(max_size=20))
def test_a_lines_token_is_everyone_or_a_product_token(value: bytes) -> None:
    token = line_token(value)
    assert token is None or is_product_token(token)
    assert token is None or token.encode() in value.lower()


# What makes no difference.

rule_values = st.lists(st.sampled_from(ATOMS), max_size=6).map("".join)
rules = st.builds(
    "{}: {}{}".format, st.sampled_from(["Allow", "Disallow"]), st.sampled_from(["/", "*", "/a"]), rule_values
)
Group = tuple[list[str], list[str]]
groups = st.tuples(
    st.lists(st.sampled_from(["*", "ExampleBot", "other"]), min_size=1, max_size=2).map(
        lambda agents: [f"User-agent: {agent}" for agent in agents]
    ),
    st.lists(rules, min_size=1, max_size=4),
)
files = st.lists(groups, min_size=1, max_size=3)
paths = st.lists(st.sampled_from(ATOMS), max_size=8).map(lambda atoms: "/" + "".join(atoms))


def allows(lines: list[str], path: str, end: str = "\n", token: str = TOKEN) -> bool:
    return parse(end.join(lines)).allows(ORIGIN + path, token)


def key_and_value(line: str) -> tuple[str, str]:
    key, _, value = line.partition(": ")
    return key, value


def flat(file: list[Group]) -> list[str]:
    return [line for agents, rules in file for line in (*agents, *rules)]


@some
@given(file=files, path=paths, end=st.sampled_from(["\r", "\r\n", "\n\n", "\r\r\n", " \n", "#c\r\n"]))
def test_line_ends_make_no_difference(file: list[Group], path: str, end: str) -> None:
    assert allows(flat(file), path, end) is allows(flat(file), path)


@some
@given(file=files, path=paths, spelled=st.sampled_from(SPELLED))
def test_the_case_of_keys_and_tokens_makes_no_difference(
    file: list[Group], path: str, spelled: Callable[[str], str]
) -> None:
    respelled = [
        ([spelled(line) for line in agents], [spelled(key) + ": " + value for key, value in map(key_and_value, rules)])
        for agents, rules in file
    ]
    assert allows(flat(respelled), path, token=spelled(TOKEN)) is allows(flat(file), path)


@some
@given(file=files, path=paths, data=st.data())
def test_the_order_of_groups_and_of_rules_makes_no_difference(
    file: list[Group], path: str, data: st.DataObject
) -> None:
    shuffled = [(agents, data.draw(st.permutations(rules))) for agents, rules in data.draw(st.permutations(file))]
    assert allows(flat(shuffled), path) is allows(flat(file), path)


@some
@given(
    file=files,
    path=paths,
    record=st.sampled_from(["", "# c", "Sitemap: /s", "Crawl-delay: 5", "Noindex: /", "Host: h", "x", "\ufeff: /"]),
)
def test_other_records_between_all_lines_make_no_difference(file: list[Group], path: str, record: str) -> None:
    mixed = list(chain.from_iterable((record, line, record) for line in flat(file)))
    assert allows(mixed, path) is allows(flat(file), path)


@some
@given(file=files, path=paths)
def test_comments_and_white_space_make_no_difference(file: list[Group], path: str) -> None:
    spaced = [f" \t{line.replace(':', chr(9) + ' :' + chr(9), 1)} \t# c: /" for line in flat(file)]
    assert allows(spaced, path) is allows(flat(file), path)


@some
@given(file=files, path=paths)
def test_a_group_for_each_rule_is_the_same_as_one_group(file: list[Group], path: str) -> None:
    split = [(agents, [rule]) for agents, rules in file for rule in rules]
    assert allows(flat(split), path) is allows(flat(file), path)


@some
@given(file=files, path=paths)
def test_repeating_a_file_makes_no_difference(file: list[Group], path: str) -> None:
    assert allows(flat(file) * 2, path) is allows(flat(file), path)


@some
@given(file=files, path=paths)
def test_a_fragment_makes_no_difference(file: list[Group], path: str) -> None:
    assert allows(flat(file), path + "#/a?b*$%") is allows(flat(file), path)


@some
@given(file=files, path=paths)
def test_a_crawler_without_a_group_is_everyone(file: list[Group], path: str) -> None:
    assert allows(flat(file), path, token="unheard-of") is allows(flat(file), path, token="*")


# Normalisation.


@some
@given(path=st.one_of(paths, any_text.map(lambda text: "/" + text)))
def test_normalising_twice_is_normalising_once(path: str) -> None:
    for spelling in spellings(ORIGIN + path):
        assert spellings(ORIGIN + spelling)[0] == spelling


@some
@given(path=st.one_of(paths, any_text.map(lambda text: "/" + text)))
def test_a_url_is_matched_by_itself_as_a_rule(path: str) -> None:
    for spelling in spellings(ORIGIN + path):
        pattern = pattern_of(f"{spelling}$")
        assert any(matches(pattern, one) for one in spellings(ORIGIN + path))


@some
@given(characters=st.lists(st.tuples(st.sampled_from("abAZ09-._~"), st.booleans()), max_size=8))
def test_escaping_unreserved_characters_makes_no_difference(characters: list[tuple[str, bool]]) -> None:
    path = "/" + "".join(character for character, _ in characters)
    escaped = "/" + "".join(f"%{ord(character):02x}" if escape else character for character, escape in characters)
    assert spellings(ORIGIN + escaped) == spellings(ORIGIN + path)
    assert pattern_of(escaped) == pattern_of(path)


# The plain matcher beside the real one.


def texts(alphabet: str, longest: int) -> Iterator[str]:
    """Every text of these characters up to that length."""
    for length in range(longest + 1):
        yield from map("".join, product(alphabet, repeat=length))


@pytest.mark.parametrize("end", ["", "$"])
@pytest.mark.parametrize("start", ["/", "*"])
def test_the_plain_matcher_agrees_about_every_short_pattern(start: str, end: str) -> None:
    paths = ["/" + path for path in texts("ab", 5)]
    for value in (start + middle + end for middle in texts("ab*", 4)):
        pattern = pattern_of(value)
        wrong = [path for path in paths if matches(pattern, path) is not plain.does_match(value, path)]
        assert wrong == [], value


@many
@given(start=st.sampled_from("/*"), rest=st.text("/a*$?", max_size=6), path=st.text("/a?$*", max_size=6))
def test_the_plain_matcher_agrees_about_special_characters(start: str, rest: str, path: str) -> None:
    pattern = pattern_of(start + rest)
    (spelling,) = spellings(f"{ORIGIN}/{path}")
    assert matches(pattern, spelling) is plain.does_match(plain.rule_of(start + rest), spelling)


@many
@given(rules=st.lists(rules.map(str.strip), min_size=1, max_size=5), path=paths)
def test_the_plain_matcher_agrees_about_a_file(rules: list[str], path: str) -> None:
    body = "\n".join(["User-agent: *", *rules]).encode()
    verdict = parse(body).verdict(ORIGIN + path, TOKEN)
    outcome = plain.outcome(body, ORIGIN + path, [TOKEN])
    assert (verdict.allowed, verdict.rule and verdict.rule.line) == (outcome.allowed, outcome.line)
