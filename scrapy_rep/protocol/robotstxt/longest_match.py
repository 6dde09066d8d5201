"""The longest match: which of a crawler's rules decides about a URL (RFC 9309 section 2.2.2).

Many origins are asked about one URL and never again, so the first question is answered by trying each pattern, which
needs no preparation. The second question makes an index of the patterns, which answers that one and all later ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_rep.protocol.robotstxt.match_by_index import MatchIndex
from scrapy_rep.protocol.robotstxt.match_by_trying import matching_places
from scrapy_rep.protocol.robotstxt.patterns import is_normal, most_specific, patterns
from scrapy_rep.protocol.robotstxt.syntax import RULE_ALLOWS, RULE_VALUE, without_comments

_MEMORY_OF_RULE = 70  # bytes (measured: tests/protocol/test_costs.py)


class LongestMatch:
    """The rules in a crawler's lines. A rule is known by its place: 0 is the first of them."""

    __slots__ = ("_any_starred", "_first", "_index", "_lines", "_octets", "_patterns", "_which_allow")

    def __init__(self, lines: str) -> None:
        values: list[str] = RULE_VALUE.findall(lines)
        joined = "\n".join(values)
        if not is_normal(joined):
            joined = patterns(without_comments(joined))
            values = joined.split("\n")
        self._patterns = values
        self._any_starred = "*" in joined
        self._octets = len(joined)
        # Worked out only once a rule matches, which is seldom.
        self._lines = lines
        self._which_allow: bytes | None = None
        # The first question and its answer; what answers all other questions.
        self._first: tuple[Sequence[str], int | None] | None = None
        self._index: MatchIndex | None = None

    @property
    def memory(self) -> int:
        """Bytes that it takes, about."""
        index = self._index.memory if self._index is not None else 0
        return self._octets + len(self._lines) + _MEMORY_OF_RULE * len(self._patterns) + index

    def most_specific(self, compared: Sequence[str]) -> int | None:
        """The place of the rule that decides about a URL with these `spellings`; None if none matches.

        Raises TooCostlyError.
        """
        index = self._index
        if index is None:
            if self._first is None:
                found = matching_places(self._patterns, compared, self._octets, any_starred=self._any_starred)
                self._first = compared, self._deciding(found)
            if self._first[0] == compared:  # asked again, for the rule behind a refusal
                return self._first[1]
            self._index = index = MatchIndex(self._patterns, self.which_allow())
            self._first = None
        if len(compared) == 1:
            return index.most_specific(compared[0])
        return self._deciding([place for each in compared if (place := index.most_specific(each)) is not None])

    def which_allow(self) -> bytes:
        """For each rule whether it allows, 1 or 0."""
        if self._which_allow is None:
            self._which_allow = bytes(map(bool, RULE_ALLOWS.findall(self._lines)))
            self._lines = ""
        return self._which_allow

    def _deciding(self, found: Sequence[int]) -> int | None:
        return most_specific(found, self._patterns, self.which_allow()) if found else None
