"""Rules and verdicts, and each verdict's reason in words (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.foreign_text import MAX_RULE, shortened, text_of
from scrapy_rep.protocol.robotstxt.preferences import ATTACH_DRAFT, Purposes, Statement, Usage
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
        "", "the site disallows what the crawl wants it for", f"{ATTACH_DRAFT}; REP_PURPOSES_REFUSE"
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
    usage: Usage | None = None
    """What the page may be used for; None without REP_PURPOSES. Empty for a page that may not be fetched."""
    purpose: str | None = None
    """The crawl's purpose that is disallowed; None unless the reason is USAGE."""

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
    def statement(self) -> Statement | None:
        """What disallows the purpose; None unless the reason is USAGE."""
        return self.usage.deciding(self.purpose) if self.usage is not None and self.purpose is not None else None

    @property
    def decided_by(self) -> Rule | Statement | None:
        """The rule or statement that decided; None if neither did."""
        return self.rule or self.statement

    def with_usage(self, usage: Usage, purposes: Purposes) -> Verdict:
        """The same for a crawl with these purposes. What robots.txt does not apply to is never refused for them."""
        is_subject = self.reason is not VerdictReason.EXEMPT and self.reason is not VerdictReason.NOT_SUBJECT
        purpose = purposes.refused_by(usage) if self.allowed and is_subject else None
        if purpose is None:
            return replace(self, usage=usage)
        return replace(self, allowed=False, reason=VerdictReason.USAGE, rule=None, usage=usage, purpose=purpose)
