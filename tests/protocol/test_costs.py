"""What a verdict, a delay and a parsed file cost at most, whatever strangers wrote (RFC 9309 sections 2.5 and 3)."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from random import Random
from string import ascii_letters, digits

import plain
import pytest
from asking import ORIGIN, TOKEN, parse
from benchmarks import bodies
from benchmarks.bodies import LIMIT
from counting import lines_run
from generated import bodies_and_questions

from scrapy_rep.protocol.robotstxt import patterns
from scrapy_rep.protocol.robotstxt.parser import MAX_PARSED_COPIES, RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import MAX_TARGET
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.usage.preferences import Usage
from scrapy_rep.usage.statements import MAX_CACHED, MAX_READ, statements_for


def group(line: Callable[[int], str], octets: int = LIMIT) -> bytes:
    """A group for everyone of so many octets, whose last line has no end."""
    return bodies.group(lambda number: f"{line(number)}\n")(octets).removesuffix(b"\n")


def test_refusals_by_different_rules_cost_little_more_than_plain_verdicts() -> None:
    body = group(lambda n: f"Disallow: /section{n}/page")
    allowed = [f"{ORIGIN}/other{n}/page" for n in range(5_000)]
    refused = [f"{ORIGIN}/section{3 * n}/page" for n in range(5_000)]

    def asked_before() -> RobotsTxt:
        robots = parse(body)
        assert all(robots.allows(url, TOKEN) for url in allowed[:2])
        return robots

    def refuse(robots: RobotsTxt) -> None:
        for url in refused:
            assert not robots.allows(url, TOKEN)
            assert not robots.verdict(url, TOKEN).allowed

    robots, fresh = asked_before(), asked_before()
    plain_verdicts = lines_run(lambda: [robots.allows(url, TOKEN) for url in allowed])
    assert lines_run(lambda: refuse(fresh)) <= 10 * plain_verdicts


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(lambda n: f"Disallow: /section{n}/page", id="rules"),
        pytest.param(lambda n: f"allow:/{n}", id="short-rules"),
        pytest.param(lambda n: "allow:/\xe9", id="octets-to-encode"),
        pytest.param(lambda n: "Crawl-delay:1", id="delays"),
    ],
)
def test_a_delay_costs_no_more_than_reading_the_rules(line: Callable[[int], str]) -> None:
    body = group(line) + b"\nCrawl-delay: 5\n"

    robots = parse(body)
    first_verdict = lines_run(lambda: parse(body).allows(f"{ORIGIN}/a", TOKEN))
    assert lines_run(lambda: robots.crawl_delay(TOKEN)) <= 3 * first_verdict


def test_many_tokens_and_many_delays_are_read_in_linear_time() -> None:
    def file(size: int) -> RobotsTxt:
        tokens = "\n".join(f"user-agent: a{n}" for n in range(size))
        return parse(f"{tokens}\n" + "crawl-delay: 1\n" * size)

    small, large = file(2_000), file(16_000)
    assert lines_run(lambda: large.groups) <= 8 * 1.1 * lines_run(lambda: small.groups)
    assert large.crawl_delay("a7") == 1.0


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(lambda n: "Content-Usage:", id="empty"),
        pytest.param(lambda n: f"Content-Usage:{'#' * 80}", id="comments"),
        pytest.param(lambda n: "Content-Signal: search=no", id="signals"),
        pytest.param(lambda n: "Content-Usage: a=(1 1 1 1 1 1 1 1 1 1)", id="lists"),
        pytest.param(lambda n: f"Content-Usage: {'a=b, ' * 1_000}c=d", id="long-dictionaries"),
        pytest.param(lambda n: f"Content-Usage: /{n} train-ai=n", id="paths"),
        pytest.param(lambda n: f"Content-Usage: /*{n}*b train-ai=n", id="starred-paths"),
        pytest.param(lambda n: "user-agent: *\nContent-Usage: search=n", id="groups"),
        pytest.param(lambda n: "user-agent: other\nContent-Usage: search=n", id="groups-of-others"),
    ],
)
def test_a_file_of_statements_costs_no_more_than_reading_few_of_them(line: Callable[[int], str]) -> None:
    robots = parse(group(line))
    robots.allows(f"{ORIGIN}/a", TOKEN)
    first = lines_run(lambda: Usage.of(robots, f"{ORIGIN}/a", TOKEN))
    assert first <= 25 * MAX_READ
    assert lines_run(lambda: Usage.of(robots, f"{ORIGIN}/b", TOKEN)) <= MAX_READ


@pytest.mark.parametrize("octets", [2_000, 8_000, MAX_TARGET])
def test_a_group_for_a_policy_token_costs_no_more_than_two_verdicts(octets: int) -> None:
    body, url = in_wrong_order(octets)
    body = body.replace(b"User-agent: *", b"user-agent: __usage_ai-training", 1)
    robots = parse(body)
    assert robots.verdict(url, "__usage_ai-training").reason is VerdictReason.TOO_COSTLY
    Usage.of(robots, url, TOKEN)  # the first time, the lines of the rules are numbered
    verdict = lines_run(lambda: robots.verdict(url, "__usage_ai-training"))
    assert lines_run(lambda: Usage.of(robots, url, TOKEN)) < 2 * verdict + 1_000
    assert len(Usage.of(robots, url, TOKEN).statements) == 1


@pytest.mark.parametrize("line", ["Content-Usage:", "Content-Signal:a=no", "Content-Usage:/ search=n"])
def test_cached_statements_take_bounded_memory(line: str) -> None:
    def ask(number: int, lines: int) -> int:
        return len(Usage.of(parse(f"User-agent: *\n#{number}\n" + f"{line}\n" * lines), "/", "a").statements)

    ask(0, lines=1)  # it imports a library
    statements_for.cache_clear()
    gc.collect()
    tracemalloc.start()
    assert 600 < ask(0, MAX_READ) < MAX_READ / len(line)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 500_000 + MAX_READ * len(line)
    for number in range(MAX_CACHED + 10):
        ask(number, lines=1)
    assert statements_for.cache_info().currsize == MAX_CACHED


# Patterns and URLs that are made for each other.


def in_wrong_order(octets: int) -> tuple[bytes, str]:
    """Patterns of two texts that stand in the URL, the second before the first; and the URL."""
    random = Random(octets)
    path = "".join(random.choices(ascii_letters + digits, k=octets))
    half = octets // 2

    def line(_: int) -> str:
        late, early = random.randrange(half, octets - 3), random.randrange(half - 3)
        return f"disallow:*{path[late : late + 3]}*{path[early : early + 3]}"

    return group(line), f"{ORIGIN}/{path}"


def of_one_letter(octets: int) -> tuple[bytes, str]:
    """Patterns whose texts nearly stand at every octet of the URL; and the URL."""

    def line(n: int) -> str:
        return f"disallow: /{'*' * (n % 40 + 1)}{'a' * (30 + n % 11)}b{'a' * (30 + n // 11 % 40)}*a"

    return group(line), f"{ORIGIN}/{'a' * (octets - 21)}b{'a' * 20}"


@pytest.mark.parametrize("octets", [2_000, 8_000, MAX_TARGET - 1, MAX_TARGET, 250_000])
@pytest.mark.parametrize("made", [in_wrong_order, of_one_letter])
def test_a_comparison_that_takes_too_long_is_a_refusal(made: Callable[[int], tuple[bytes, str]], octets: int) -> None:
    body, url = made(octets)
    robots = parse(body)
    verdict = robots.verdict(url, TOKEN)
    assert (verdict.allowed, verdict.reason, verdict.rule) == (False, VerdictReason.TOO_COSTLY, None)
    assert verdict.words
    assert not robots.allows(url, TOKEN)
    assert robots.verdict(f"{ORIGIN}/x", TOKEN).reason is VerdictReason.NO_RULE, "of the file's URLs, this one alone"
    assert robots.allows(f"{ORIGIN}/robots.txt", TOKEN)
    assert robots.allows(f"{ORIGIN}/y", TOKEN), "the second answer, for which the index is made"
    assert lines_run(lambda: robots.allows(url, TOKEN)) < len(body) / 2


def test_long_urls_are_compared_with_the_rules_of_a_site() -> None:
    lines = [f"Disallow: /*/{name}{n}/*?sort={n}" for n in range(500) for name in ("tag", "filter", "page")]
    robots = parse("\n".join(["User-agent: *", *lines]))
    url = f"{ORIGIN}/shop/" + "/".join(f"tag{n}/filter{n}" for n in range(600))
    assert 8_000 < len(url) < MAX_TARGET
    assert robots.allows(url, TOKEN)
    assert not robots.allows(f"{url}/page499/?sort=499", TOKEN)


def test_a_url_of_any_length_is_compared_with_few_rules() -> None:
    robots = parse("User-agent: *\nDisallow: /*a*b$\nDisallow: /c\n")
    long = "/" + "a" * 250_000
    assert [robots.allows(path, TOKEN) for path in (long, f"{long}b", f"/c{long}")] == [True, False, False]


@pytest.mark.parametrize("bound", [10, 20, 40])
def test_what_is_within_the_bounds_is_exact_whatever_was_asked_before(
    bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "MAX_COMPARED", bound)
    reasons = set()
    for body, questions in bodies_and_questions(seed=bound, files=300, questions=5):
        robots, groups = parse(body), plain.groups_of(body)
        for url, tokens in questions:
            verdict = robots.verdict(url, tokens)
            reasons.add(verdict.reason)
            assert robots.allows(url, tokens) is verdict.allowed
            assert parse(body).allows(url, tokens) is verdict.allowed
            if verdict.reason is not VerdictReason.TOO_COSTLY:
                expected = plain.outcome_of_groups(groups, url, tokens)
                assert (verdict.allowed, verdict.rule and verdict.rule.line) == (expected.allowed, expected.line)
    assert VerdictReason.TOO_COSTLY in reasons
    assert VerdictReason.RULE in reasons


# Memory.

FILES = {
    "prefixes": group(lambda n: f"Disallow: /section{n}/page", 50_000),
    "short": group(lambda n: f"allow:/{n}", 50_000),
    "long": group(lambda n: f"disallow:/{'a' * 200}{n}", 50_000),
    "starred": group(lambda n: f"allow:*{n}*b", 50_000),
    "escapes": group(lambda n: f"disallow: /%e9{n}", 50_000),
    "typical": group(lambda n: f"Disallow: /{n}{('/', '/*', '/*/print', '.php', '/*?a=')[n % 5]}", 1_500),
}


def memory_of(body: bytes, tokens: list[str]) -> tuple[float, int]:
    """Bytes that a parsed file takes once these have asked, as measured and as estimated."""
    copies = max(1, 20_000 // len(body))
    gc.collect()
    tracemalloc.start()
    parsed = []
    for _ in range(copies):
        robots = parse(bytes(bytearray(body)))
        for token in tokens:
            for path in ("/q1", "/q2", "/q3"):
                robots.allows(f"{ORIGIN}{path}", token)
        parsed.append(robots)
    gc.collect()
    measured = tracemalloc.get_traced_memory()[0] / copies
    tracemalloc.stop()
    return measured, parsed[0].memory


@pytest.mark.parametrize("tokens", [[], ["a"], [f"a{n}" for n in range(60)]], ids=["none", "one", "60"])
@pytest.mark.parametrize("body", FILES.values(), ids=FILES)
def test_the_memory_of_a_file_is_estimated_well(body: bytes, tokens: list[str]) -> None:
    measured, estimated = memory_of(body, tokens)
    assert 0.9 * measured < estimated < 1.5 * measured


def test_crawlers_that_obey_the_same_lines_share_them() -> None:
    tokens = [f"a{n}" for n in range(60)]
    for named in (["*"], tokens):
        body = "\n".join(f"User-agent: {token}" for token in named).encode() + FILES["prefixes"][13:]
        one, all_of_them = parse(body), parse(body)
        one.allows("/", tokens[0])
        for token in tokens:
            assert all_of_them.verdict("/", token).product_token == (token if named is tokens else "*")
        assert all_of_them.memory < 1.1 * one.memory


def test_crawlers_that_obey_different_lines_take_bounded_memory() -> None:
    # Each obeys all of the file but one group.
    tokens = [f"a{n}" for n in range(60)]
    groups = [
        "".join(f"User-agent: {token}\n" for token in tokens if token != left_out) + f"Disallow: /{left_out}/\n" * 100
        for left_out in tokens
    ]
    robots = parse("\n".join(groups))
    assert not robots.truncated
    for token in tokens:
        for asked in tokens:
            assert robots.allows(f"/{asked}/", token) is (asked == token)
        ready = {crawler.rules for crawler in robots._parsed.values()}
        assert sum(rules.size for rules in ready) <= MAX_PARSED_COPIES * len(robots.octets)
    assert robots.memory < MAX_PARSED_COPIES * 25 * len(robots.octets)
