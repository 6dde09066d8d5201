"""Rules and verdicts, and each verdict's reason in words (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.foreign_text import MAX_RULE, shortened, text_of
from scrapy_rep.protocol.word_enum import WordEnum


@dataclass(frozen=True, slots=True)
class Rule:
    """One allow or disallow line; as text `Disallow: /private/`, cut to MAX_RULE characters."""

    line: int
    """Counted from 1."""
    allow: bool
    octets: bytes
    """Its value, as it stands in the file."""

    @property
    def pattern(self) -> str:
        """Its value as written: UTF-8, or Latin-1 if the octets are no UTF-8."""
        return text_of(self.octets)

    def __str__(self) -> str:
        return shortened(f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}", MAX_RULE)


class Line(Protocol):
    """What a verdict can name as its reason; its text is the line as written."""

    @property
    def line(self) -> int | None:
        """Counted from 1; None if it is no line of robots.txt."""


class VerdictReason(WordEnum):
    """Why a URL may or may not be fetched; REASON_WORDS has the words for people."""

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


class ReasonWords(NamedTuple):
    """A reason in words: half a sentence that follows "allowed: " or "refused: ", and where it is specified."""

    allowed: str
    """Empty if the reason never allows."""
    refused: str
    """Empty if the reason never refuses."""
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
    VerdictReason.TOO_COSTLY: ReasonWords("", "comparing it with the rules would take too long", "RFC 9309 3"),
    VerdictReason.USAGE: ReasonWords(
        "", "the site disallows what the crawl wants it for", "drafts on usage; REP_PURPOSES_REFUSE"
    ),
    VerdictReason.EXEMPT: ReasonWords("the crawl's settings exempt it", "", "REP_EXEMPT, dont_obey_robotstxt"),
    VerdictReason.NOT_SUBJECT: ReasonWords("robots.txt does not apply to it", "", "RFC 9309 2.2.2, 2.3"),
}


class Received(NamedTuple):
    """The answer that a verdict is based on: where it came from, when, and what it was."""

    url: str
    """Where redirects led."""
    at: float
    """Seconds since the epoch when it came, or was last confirmed."""
    sha256: str
    """In hexadecimal, of the bytes of robots.txt as they were received; empty for an answer without rules."""


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
    """The token whose groups were obeyed, as given, or `*`; None if no group applied, or there are no rules."""
    access: AccessResult = AccessResult.SUCCESS
    """How robots.txt counts: SUCCESS if there are rules."""
    robots_url: str | None = None
    """The origin's robots.txt, wherever redirects led; None for a body that was parsed without a URL."""
    answer: str = ""
    """What robots.txt answered, in words: `HTTP 200`, or why there was no answer; empty if nobody fetched it."""
    received: Received | None = None
    """The answer that decided; None if none did: robots.txt is unreachable, or nobody fetched it."""
    read_as: str | None = None
    """The URL without its dot segments, if the crawler may fetch the URL as it is written, but not that one; else
    None."""

    @property
    def words(self) -> str:
        """The reason in words, from REASON_WORDS."""
        words = REASON_WORDS[self.reason]
        return words.allowed if self.allowed else words.refused

    @property
    def source(self) -> str:
        """Where the reason is specified: a section of RFC 9309, a draft, or a setting."""
        return REASON_WORDS[self.reason].source

    @property
    def decided_by(self) -> Line | None:
        """The line that decided; None if none did."""
        return self.rule
