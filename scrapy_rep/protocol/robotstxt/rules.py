"""Rules, verdicts, and the reasons of verdicts in words (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.foreign_text import MAX_RULE, shortened, text_of
from scrapy_rep.protocol.word_enum import WordEnum


@dataclass(frozen=True, slots=True)
class Rule:
    """One allow or disallow line. Its `str` is `Disallow: /private/`, cut to MAX_RULE characters."""

    line: int
    """The line number, counted from 1."""
    allow: bool
    octets: bytes
    """The value as it is in the file."""

    @property
    def pattern(self) -> str:
        """The value as text, decoded as UTF-8, or as Latin-1 if the octets are not UTF-8."""
        return text_of(self.octets)

    def __str__(self) -> str:
        return shortened(f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}", MAX_RULE)


class DecidingLine(Protocol):
    """The line that decided about a URL: a rule or a statement about usage. Its `str` is like `Disallow: /private/`."""

    @property
    def line(self) -> int | None:
        """The line number, counted from 1; None for a header of a response."""


class VerdictReason(WordEnum):
    """Why a URL may or may not be fetched. REASON_WORDS has the words for people."""

    RULE = "rule"
    NO_RULE = "no rule"
    NO_GROUP = "no group"
    UNAVAILABLE = "unavailable"
    RESTRICTED = "restricted"
    UNREACHABLE = "unreachable"
    TOO_COSTLY = "too costly"
    USAGE = "usage"
    EXEMPT = "exempt"
    NOT_SUBJECT = "not subject"
    NO_HOST = "no host"


class ReasonWords(NamedTuple):
    """A reason in words that follow "allowed: " or "refused: ", and where the reason is specified."""

    allowed: str
    """The words if the URL is allowed; empty if this reason never allows."""
    refused: str
    """The words if the URL is refused; empty if this reason never refuses."""
    source: str


REASON_WORDS: Mapping[VerdictReason, ReasonWords] = {
    VerdictReason.RULE: ReasonWords("a rule allows it", "a rule forbids it", "RFC 9309 2.2.2"),
    VerdictReason.NO_RULE: ReasonWords("no rule matches it", "", "RFC 9309 2.2.2"),
    VerdictReason.NO_GROUP: ReasonWords("robots.txt has no rules for this crawler", "", "RFC 9309 2.2.1"),
    VerdictReason.UNAVAILABLE: ReasonWords("the site has no usable robots.txt", "", "RFC 9309 2.3.1.3"),
    VerdictReason.RESTRICTED: ReasonWords("", "access to robots.txt is restricted", "REP_STATUS_POLICY"),
    VerdictReason.UNREACHABLE: ReasonWords(
        "robots.txt has been unreachable for a long time", "robots.txt is unreachable", "RFC 9309 2.3.1.4"
    ),
    VerdictReason.TOO_COSTLY: ReasonWords("", "comparing the URL with the rules would take too long", "RFC 9309 3"),
    VerdictReason.USAGE: ReasonWords(
        "", "the site disallows a purpose of the crawl", "drafts on usage; REP_PURPOSES_REFUSE"
    ),
    VerdictReason.EXEMPT: ReasonWords("the crawl exempts it", "", "REP_EXEMPT, dont_obey_robotstxt"),
    VerdictReason.NOT_SUBJECT: ReasonWords("robots.txt does not apply to it", "", "RFC 9309 2.2.2, 2.3"),
    VerdictReason.NO_HOST: ReasonWords("", "the URL has no valid host", "RFC 9110 4.2.1"),
}


class Received(NamedTuple):
    """The answer for robots.txt that a verdict is based on: its URL, time and hash."""

    url: str
    """The URL of the answer, after all redirects."""
    at: float
    """The time of the answer, or of the last 304 that confirmed it, in seconds since the epoch."""
    sha256: str
    """The SHA-256, in hexadecimal, of the decompressed body, cut to REP_BODY_LIMIT + 1 bytes; empty without rules."""


@dataclass(frozen=True, slots=True)
class Verdict:
    r"""Whether a URL may be fetched, and why.

    >>> from scrapy_rep import RobotsTxt
    >>> robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /private/\n")
    >>> verdict = robots.verdict("https://example.com/private/diary", "ExampleBot")
    >>> verdict.allowed, verdict.words, str(verdict.rule), verdict.rule.line
    (False, 'a rule forbids it', 'Disallow: /private/', 2)
    """

    allowed: bool
    reason: VerdictReason
    rule: Rule | None = None
    """The rule that decided; None unless the reason is RULE."""
    product_token: str | None = None
    """The product token whose groups applied, such as `ExampleBot` or `*`; None if no group applied."""
    access: AccessResult = AccessResult.SUCCESS
    """The access result for robots.txt; SUCCESS if there are rules."""
    robots_url: str | None = None
    """The URL of the origin's robots.txt, before any redirect; None if it is unknown, or no robots.txt applies."""
    answer: str = ""
    """The answer for robots.txt in words, such as `HTTP 200`, or why there was none; empty if it was not fetched."""
    received: Received | None = None
    """The stored answer that decided; None if no stored answer decided."""
    error: Exception | None = field(default=None, compare=False, repr=False)
    """The exception of the last request for robots.txt, if robots.txt is unreachable without a response; else None."""
    read_as: str | None = None
    """Another reading of the URL (`readings`), if only this reading is forbidden; else None."""

    @property
    def words(self) -> str:
        """The reason in words, from REASON_WORDS."""
        words = REASON_WORDS[self.reason]
        return words.allowed if self.allowed else words.refused

    @property
    def source(self) -> str:
        """Where the reason is specified, such as `RFC 9309 2.2.2`."""
        return REASON_WORDS[self.reason].source

    @property
    def decided_by(self) -> DecidingLine | None:
        """The line that decided; None if no line did."""
        return self.rule
