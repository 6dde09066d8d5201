"""The rules that a crawler obeys: those of all groups that name it, and no others (RFC 9309 section 2.2.1)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, repeat

from scrapy_rep.protocol.robotstxt.longest_match import LongestMatch
from scrapy_rep.protocol.robotstxt.longest_match_linear import MAX_COMPARED, matching_places
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, is_normal, patterns, spellings
from scrapy_rep.protocol.robotstxt.rules import Rule, most_specific
from scrapy_rep.protocol.robotstxt.segments import Segments, find_records
from scrapy_rep.protocol.robotstxt.syntax import RULE_ALLOWS, RULE_VALUE, WHITE_SPACE, without_comments

_WHITE_SPACE = WHITE_SPACE.encode()

# Bytes of memory (measured: tests/protocol/test_costs.py).
_FIXED_MEMORY = 600
_MEMORY_OF_RULE = 70


class EffectiveRules:
    """All groups of one product token as one (2.2.1: MUST be combined), ready to match."""

    __slots__ = (
        "_allowing",
        "_any_starred",
        "_first",
        "_length",
        "_lines",
        "_match",
        "_never_costly",
        "_patterns",
        "_places",
        "own",
        "size",
    )

    def __init__(self, segments: Segments, own: tuple[int, ...]) -> None:
        self.own = own
        """The segments that hold the rules."""
        self._lines = segments.joined(own)
        self.size = len(self._lines)
        """Octets of these segments."""
        # A rule's place is its index among these.
        values: list[str] = RULE_VALUE.findall(self._lines)
        joined = "\n".join(values)
        if not is_normal(joined):
            joined = patterns(without_comments(joined))
            values = joined.split("\n")
        self._patterns = values
        self._any_starred = "*" in joined
        self._length = len(joined)
        # Octets of a spelling that is compared with all patterns without counting.
        self._never_costly = MAX_COMPARED // max(len(joined), 1)
        # Worked out only once a rule matches, which is seldom.
        self._allowing: bytes | None = None
        self._match: LongestMatch | None = None
        # The first question, and the answer.
        self._first: tuple[Sequence[str], int | None] | None = None
        self._places: _Places | None = None

    @property
    def memory(self) -> int:
        """Bytes that it takes, about."""
        index = self._match.memory if self._match is not None else 0
        return _FIXED_MEMORY + self._length + len(self._lines) + _MEMORY_OF_RULE * len(self._patterns) + index

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched. Raises TooCostlyError, and ValueError as `spellings` does."""
        compared = spellings(url)
        match = self._match
        place = (
            self._most_specific(compared) if match is None or len(compared) > 1 else match.most_specific(compared[0])
        )
        # 2.2.2: "The /robots.txt URI is implicitly allowed."
        return place is None or self._which_allow()[place] > 0 or compared[0] == ROBOTS_PATH

    def rule(self, url: str, octets: bytes) -> Rule | None:
        """The rule that decides about the URL, as it stands in the file's octets; None if no rule matches.

        Raises as `allows` does.
        """
        compared = spellings(url)
        place = self._most_specific(compared)
        if place is None or compared[0] == ROBOTS_PATH:
            return None
        if self._places is None:
            self._places = _Places(octets, self.own)
        line, octets = self._places.line_and_value(place, octets)
        return Rule(line, self._which_allow()[place] > 0, octets)

    def _most_specific(self, compared: Sequence[str]) -> int | None:
        if self._match is None:
            if self._first is None:
                found = matching_places(self._patterns, compared, self._any_starred, self._never_costly)
                self._first = compared, self._deciding(found)
            if self._first[0] == compared:  # after a refusal, by which rule
                return self._first[1]
            self._match = LongestMatch(self._patterns, self._which_allow(), self._never_costly)
        match = self._match
        if len(compared) == 1:
            return match.most_specific(compared[0])
        return self._deciding([place for one in compared if (place := match.most_specific(one)) is not None])

    def _deciding(self, found: Sequence[int]) -> int | None:
        return most_specific(found, self._patterns, self._which_allow()) if found else None

    def _which_allow(self) -> bytes:
        """For each rule whether it allows, 1 or 0."""
        if self._allowing is None:
            self._allowing = bytes(map(bool, RULE_ALLOWS.findall(self._lines)))
            self._lines = ""
        return self._allowing


class _Places:
    """Where a crawler's rules stand in a file."""

    __slots__ = ("_lines", "_starts")

    def __init__(self, octets: bytes, own: Sequence[int]) -> None:
        # The text has one LF before the octets.
        self._starts = array("I", [record.start(1) - 1 for record in find_records(octets, own, RULE_VALUE)])
        line_ends = map(octets.count, repeat(b"\n"), [0, *self._starts], self._starts)
        self._lines = array("I", accumulate(line_ends))

    def line_and_value(self, place: int, octets: bytes) -> tuple[int, bytes]:
        """The number of a rule's line, and its value as written."""
        start = self._starts[place]
        end = octets.find(b"\n", start)
        value = octets[start:] if end < 0 else octets[start:end]
        return self._lines[place] + 1, value.partition(b"#")[0].rstrip(_WHITE_SPACE)
