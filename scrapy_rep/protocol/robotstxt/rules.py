"""Rules, the longest match of which decides (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from scrapy_rep.protocol.access_result import AccessResult


def text_of(octets: bytes) -> str:
    """Octets of a robots.txt as text for people: UTF-8, or Latin-1 where they are none. Never raises."""
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


@dataclass(frozen=True, slots=True)
class Rule:
    """One allow or disallow line."""

    line: int
    """Counted from 1."""
    allow: bool
    octets: bytes
    """Its value, as it stands in the file."""

    @property
    def pattern(self) -> str:
        """Its value as written, for people: UTF-8, or Latin-1 where the octets are none."""
        return text_of(self.octets)

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}"


class VerdictReason(Enum):
    """Why a URL may or may not be fetched; REASON_WORDS has the words for people."""

    RULE = "rule"
    NO_RULE = "no rule"
    NO_GROUP = "no group"
    UNAVAILABLE = "unavailable"
    RESTRICTED = "restricted"
    UNREACHABLE = "unreachable"
    TOO_COSTLY = "too costly"
    EXEMPT = "exempt"
    NOT_SUBJECT = "not subject"


class ReasonWords(NamedTuple):
    """A reason in words: half a sentence that follows "allowed: " or "refused: ", and where it is specified."""

    allowed: str
    """Empty where the reason never allows."""
    refused: str
    """Empty where the reason never refuses."""
    source: str


REASON_WORDS: Mapping[VerdictReason, ReasonWords] = {
    VerdictReason.RULE: ReasonWords("a rule allows it", "a rule forbids it", "RFC 9309 2.2.2"),
    VerdictReason.NO_RULE: ReasonWords("no rule matches it", "", "RFC 9309 2.2.2"),
    VerdictReason.NO_GROUP: ReasonWords("no group is for this crawler, and none is for '*'", "", "RFC 9309 2.2.1"),
    VerdictReason.UNAVAILABLE: ReasonWords("there is no robots.txt", "", "RFC 9309 2.3.1.3"),
    VerdictReason.RESTRICTED: ReasonWords("", "access to robots.txt is restricted", "REP_STATUS_POLICY"),
    VerdictReason.UNREACHABLE: ReasonWords(
        "robots.txt has been unreachable for a long time", "robots.txt is unreachable", "RFC 9309 2.3.1.4"
    ),
    VerdictReason.TOO_COSTLY: ReasonWords("", "comparing it with the rules would take too long", "RFC 9309 3"),
    VerdictReason.EXEMPT: ReasonWords("the crawl's settings exempt it", "", "REP_EXEMPT, dont_obey_robotstxt"),
    VerdictReason.NOT_SUBJECT: ReasonWords("robots.txt does not apply to it", "", "RFC 9309 2.2.2, 2.3"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be fetched, and why."""

    allowed: bool
    reason: VerdictReason
    rule: Rule | None = None
    """The rule that decided; None where none matched."""
    product_token: str | None = None
    """The crawler's token by which the deciding group was found, as given, or `*`; None where no group applied."""
    access: AccessResult = AccessResult.SUCCESS
    robots_url: str | None = None
    """The address asked for, of the initial authority; None for a body parsed without one."""
    answer: str = ""
    """What robots.txt answered, in words: `HTTP 200`, or why there was no answer; empty where nobody asked."""

    @property
    def words(self) -> str:
        """The reason in words, from REASON_WORDS."""
        words = REASON_WORDS[self.reason]
        return words.allowed if self.allowed else words.refused

    @property
    def source(self) -> str:
        """Where the reason is specified: a section of RFC 9309, or a setting."""
        return REASON_WORDS[self.reason].source


def most_specific(places: Sequence[int], patterns: Sequence[str], allow: Sequence[int]) -> int:
    """Of patterns that match the one that decides, by their places: that of the most octets, `*` and `$` counted; of
    equals the first that allows, else the first (2.2.2)."""
    most = max([len(patterns[place]) for place in places])
    longest = [place for place in places if len(patterns[place]) == most]
    return min([place for place in longest if allow[place]] or longest)
