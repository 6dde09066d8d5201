"""The values `Rule`, `Verdict` and `VerdictReason` (RFC 9309 2.2.2)."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scrapy_rep.protocol.answer import AccessResult
from scrapy_rep.protocol.foreign_text import MAX_RULE, shortened, text_of
from scrapy_rep.protocol.words import REASON_WORDS, WordEnum


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
        """The line number, counted from 1; None for a header of a response, or an element of the page."""


class Received(NamedTuple):
    """The answer for robots.txt that a verdict is based on: its URL, time and hash."""

    url: str
    """The URL of the answer, after all redirects."""
    at: float
    """The time of the answer, in seconds since the epoch."""
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
    read_as: str | None = None
    """Another reading of the URL (`readings`), if only this reading is forbidden; else None."""
    purpose: str | None = None
    """The purpose of the crawl that the site disallows; None unless the reason is USAGE."""

    # What is known of the fetch. `RobotsPolicy.verdict` fills these fields in.

    access: AccessResult = field(default=AccessResult.SUCCESS, compare=False, repr=False)
    """The access result for robots.txt; SUCCESS if robots.txt was not fetched."""
    robots_url: str | None = field(default=None, compare=False, repr=False)
    """The URL of the origin's robots.txt, before any redirect; None if it is unknown, or no robots.txt applies."""
    final_url: str = field(default="", compare=False, repr=False)
    """The URL of the answer that decided, after all redirects; empty if it is unknown."""
    answer: str = field(default="", compare=False, repr=False)
    """The answer for robots.txt in words, such as `HTTP 200`, or why there was none; empty without a fetch."""
    received: Received | None = field(default=None, compare=False, repr=False)
    """The stored answer that decided; None if no stored answer decided."""
    error: Exception | None = field(default=None, compare=False, repr=False)
    """The exception of the last request, if robots.txt is unreachable without a response; else None."""

    @property
    def words(self) -> str:
        """The reason in words, from REASON_WORDS."""
        words = REASON_WORDS[self.reason.value]
        return words.allowed if self.allowed else words.refused

    @property
    def source(self) -> str:
        """Where the reason is specified, such as `RFC 9309 2.2.2`."""
        return REASON_WORDS[self.reason.value].source

    @property
    def decided_by(self) -> DecidingLine | None:
        """The line that decided; None if no line did."""
        return self.rule
