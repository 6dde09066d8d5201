"""The rules that a crawler obeys: those of all groups that name it, and no others (RFC 9309 section 2.2.1)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, repeat

from scrapy_rep.protocol.robotstxt.longest_match import LongestMatch
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, spellings
from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.protocol.robotstxt.segments import Segments, find_records
from scrapy_rep.protocol.robotstxt.syntax import RULE_VALUE, WHITE_SPACE

_FIXED_MEMORY = 600  # bytes (measured: tests/protocol/test_costs.py)
_WHITE_SPACE = WHITE_SPACE.encode()


class EffectiveRules:
    """All groups of one product token as one (2.2.1: MUST be combined), ready to match."""

    __slots__ = ("_match", "_places", "own", "size")

    def __init__(self, segments: Segments, own: tuple[int, ...]) -> None:
        self.own = own
        """The segments that hold the rules."""
        lines = segments.joined(own)
        self.size = len(lines)
        """Octets of these segments."""
        self._match = LongestMatch(lines)
        self._places: _Places | None = None

    @property
    def memory(self) -> int:
        """Bytes that it takes, about."""
        return _FIXED_MEMORY + self._match.memory

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched. Raises TooCostlyError, and ValueError as `spellings` does."""
        compared = spellings(url)
        place = self._match.most_specific(compared)
        # 2.2.2: "The /robots.txt URI is implicitly allowed."
        return place is None or self._match.which_allow()[place] > 0 or compared[0] == ROBOTS_PATH

    def rule(self, url: str, octets: bytes) -> Rule | None:
        """The rule that decides about the URL, as it stands in the file's octets; None if no rule matches.

        Raises as `allows` does.
        """
        compared = spellings(url)
        place = self._match.most_specific(compared)
        if place is None or compared[0] == ROBOTS_PATH:
            return None
        if self._places is None:
            self._places = _Places(octets, self.own)
        line, value = self._places.line_and_value(place, octets)
        return Rule(line, self._match.which_allow()[place] > 0, value)


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
