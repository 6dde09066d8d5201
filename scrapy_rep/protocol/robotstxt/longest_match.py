"""The rule that decides about a URL: the longest match (RFC 9309 2.2.2).

Many robots.txt files are used for a single URL, so the first URL is compared with each pattern. For the second URL, an
index of the patterns is built.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, repeat

from scrapy_rep.protocol.robotstxt.groups import Segments, starts_of_segments
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, MatchIndex, matching_positions, patterns, spellings
from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.protocol.robotstxt.syntax import RULE_ALLOWS, RULE_VALUE, WHITE_SPACE, searchable, values_of

# Bytes of memory, measured by tests/protocol/test_costs.py.
_FIXED_MEMORY = 600
_MEMORY_OF_RULE = 60


class EffectiveRules:
    """The rules of all groups that name a crawler, combined (2.2.1). The first of these rules has the position 0."""

    __slots__ = ("_allow", "_first", "_in_file", "_index", "_lines", "_order", "_patterns", "own_segments", "size")

    def __init__(self, segments: Segments, own_segments: tuple[int, ...]) -> None:
        self.own_segments = own_segments
        """The numbers of the segments that contain the rules."""
        lines = segments.joined(own_segments)
        self.size = len(lines)
        """The number of octets in these segments."""
        values = values_of(RULE_VALUE, lines)
        self._patterns = patterns(values).split("\n") if values else []
        self._lines = lines
        self._allow = b""
        # For each rule, the number of line ends before it in the file, and the offset of its value in the file.
        self._in_file: tuple[Sequence[int], Sequence[int]] | None = None
        # The spellings of the first URL, and the position of the rule that decides about it.
        self._first: tuple[Sequence[str], int | None] | None = None
        # For all later URLs: the index of the patterns, and `_order`: a rank in the index -> the position of a rule.
        self._index: MatchIndex | None = None
        self._order: Sequence[int] = ()

    @property
    def memory(self) -> int:
        """The approximate bytes of memory that the rules take."""
        index = self._index.memory if self._index is not None else 0
        return _FIXED_MEMORY + self.size + len(self._lines) + _MEMORY_OF_RULE * len(self._patterns) + index

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched. Raises TooCostlyError, and ValueError as `spellings` does."""
        position = self._deciding(url)
        return position is None or self._which_allow()[position] > 0

    def rule(self, url: str, octets: bytes) -> Rule | None:
        """Return the rule that decides about the URL; None if none matches it. Raises the exceptions of `allows`.

        `octets` is the whole file.
        """
        position = self._deciding(url)
        return self._rule_at(position, octets) if position is not None else None

    def first_disallow(self, octets: bytes) -> Rule | None:
        """Return the first rule that disallows anything; None if there is none. `octets` is the whole file."""
        position = self._which_allow().find(0)
        return self._rule_at(position, octets) if position >= 0 else None

    def _rule_at(self, position: int, octets: bytes) -> Rule:
        if self._in_file is None:
            text = searchable(octets)  # it has one more character than `octets`: an LF at its start
            ends = [*starts_of_segments(text), len(text)]
            records = [RULE_VALUE.finditer(text, ends[at], ends[at + 1]) for at in self.own_segments]
            starts = [record.start(1) - 1 for record in chain.from_iterable(records)]
            line_ends = map(octets.count, repeat(b"\n"), [0, *starts], starts)
            self._in_file = array("I", accumulate(line_ends)), array("I", starts)
        numbers, starts_of_values = self._in_file
        start = starts_of_values[position]
        end = octets.find(b"\n", start)
        value = octets[start : None if end < 0 else end].partition(b"#")[0].rstrip(WHITE_SPACE.encode())
        return Rule(numbers[position] + 1, self._which_allow()[position] > 0, value)

    def _deciding(self, url: str) -> int | None:
        """Return the position of the rule that decides about the URL; None if no rule matches it."""
        compared = spellings(url)
        if compared[0] == ROBOTS_PATH:  # 2.2.2: "The /robots.txt URI is implicitly allowed."
            return None
        if self._index is None:
            if self._first is None:
                found = matching_positions(self._patterns, compared)
                self._first = compared, self._by_precedence(found)[0] if found else None
            if self._first[0] == compared:  # after a refusal, the same URL comes again, to find its rule
                return self._first[1]
            self._order = array("I", self._by_precedence(range(len(self._patterns))))
            self._index = MatchIndex([self._patterns[position] for position in self._order])
            self._first = None
        rank = self._index.first_match(compared[0])
        if len(compared) > 1:
            rank = min(rank, self._index.first_match(compared[1]))
        return self._order[rank] if rank != MatchIndex.NO_RANK else None

    def _by_precedence(self, found: Iterable[int]) -> list[int]:
        """Return the positions in the order in which their rules decide (2.2.2).

        The longest pattern comes first, in octets with `*` and `$` counted. If patterns have the same length, allow
        lines come before disallow lines, in the order of the file.
        """
        patterns, allow = self._patterns, self._which_allow()
        return sorted(found, key=lambda position: (-len(patterns[position]), -allow[position], position))

    def _which_allow(self) -> bytes:
        """Return, for each rule, 1 for an allow line and 0 for a disallow line."""
        if self._lines:
            self._allow = bytes(map(bool, RULE_ALLOWS.findall(self._lines)))
            self._lines = ""
        return self._allow
