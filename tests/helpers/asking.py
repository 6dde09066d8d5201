"""Short functions that parse lines of a robots.txt and ask for verdicts."""

from __future__ import annotations

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import patterns

TOKEN = "ExampleBot"  # RFC 9309 Figure 1
ORIGIN = "https://www.example.com"


def parse(text: str | bytes) -> RobotsTxt:
    """Return the robots.txt with these lines. Text is encoded as UTF-8."""
    return RobotsTxt.parse(text.encode() if isinstance(text, str) else text)


def allows(text: str | bytes, path: str, token: str = TOKEN) -> bool:
    """Whether this robots.txt allows the path of its origin."""
    return answer(parse(text), ORIGIN + path, token)


def answer(robots: RobotsTxt, url: str, token: str) -> bool:
    """Whether robots.txt allows the URL. Asks in several ways, because the first answer, later answers and verdicts use
    different code."""
    answers = [robots.allows(url, token), robots.verdict(url, token).allowed]
    robots.allows(f"{ORIGIN}/other", token)
    answers += [robots.allows(url, token), robots.verdict(url, token).allowed]
    assert len(set(answers)) == 1, answers
    return answers[0]


def matches(rule: str | bytes, path: str) -> bool:
    """Whether a file with only this Disallow line forbids the path."""
    value = rule.encode() if isinstance(rule, str) else rule
    return not allows(b"user-agent: *\ndisallow: " + value + b"\n", path)


def line_token(value: bytes) -> str | None:
    """Return the token of a user-agent line with this value; None if the value names no crawler."""
    return next(iter(parse(b"user-agent:" + value).groups[0].product_tokens), None)


def pattern_of(rule: str | bytes) -> str:
    """The normalised pattern of a rule with this value."""
    value = rule.encode() if isinstance(rule, str) else rule
    return patterns(value.decode("latin-1"))
