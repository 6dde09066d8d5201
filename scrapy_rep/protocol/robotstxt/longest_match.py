"""The rule that decides about a URL: the longest match (RFC 9309 2.2.2).

Many robots.txt files are used for a single URL, so the first URL is compared with each pattern. For the second URL, an
index of the patterns is built.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, repeat

from scrapy_rep.protocol.robotstxt.groups import Segments, starts_of_segments
from scrapy_rep.protocol.robotstxt.patterns import (
    ROBOTS_PATH,
    affordable,
    longest_affordable,
    matches,
    matching_places,
    patterns,
    spellings,
)
from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.protocol.robotstxt.syntax import RULE_ALLOWS, RULE_VALUE, WHITE_SPACE, searchable, values_of

# Bytes of memory, measured by tests/protocol/test_costs.py.
_FIXED_MEMORY = 600
_MEMORY_OF_RULE = 60

_WHITE_SPACE = WHITE_SPACE.encode()

NO_RANK = 2**63  # more than any rank
BEGINNING = 4  # octets at the beginning of a distinctive text; they are searched for first


class EffectiveRules:
    """The rules of all groups that name a crawler, combined (2.2.1). The first of these rules has the place 0."""

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
        # The spellings of the first URL, and the place of the rule that decides about it.
        self._first: tuple[Sequence[str], int | None] | None = None
        # For all later URLs: the index of the patterns, and `_order`, which maps a rank in the index to a rule's place.
        self._index: MatchIndex | None = None
        self._order: Sequence[int] = ()

    @property
    def memory(self) -> int:
        """The approximate bytes of memory that the rules take."""
        index = self._index.memory if self._index is not None else 0
        return _FIXED_MEMORY + self.size + len(self._lines) + _MEMORY_OF_RULE * len(self._patterns) + index

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched. Raises TooCostlyError, and ValueError as `spellings` does."""
        place = self._deciding(url)
        return place is None or self._which_allow()[place] > 0

    def rule(self, url: str, octets: bytes) -> Rule | None:
        """Return the rule that decides about the URL; None if none matches it. Raises the exceptions of `allows`.

        `octets` is the whole file.
        """
        place = self._deciding(url)
        return self._rule_at(place, octets) if place is not None else None

    def first_disallow(self, octets: bytes) -> Rule | None:
        """Return the first rule that disallows anything; None if there is none. `octets` is the whole file."""
        place = self._which_allow().find(0)
        return self._rule_at(place, octets) if place >= 0 else None

    def _rule_at(self, place: int, octets: bytes) -> Rule:
        if self._in_file is None:
            text = searchable(octets)  # it has one more character than `octets`: an LF at its start
            ends = [*starts_of_segments(text), len(text)]
            records = [RULE_VALUE.finditer(text, ends[at], ends[at + 1]) for at in self.own_segments]
            starts = [record.start(1) - 1 for record in chain.from_iterable(records)]
            line_ends = map(octets.count, repeat(b"\n"), [0, *starts], starts)
            self._in_file = array("I", accumulate(line_ends)), array("I", starts)
        numbers, starts_of_values = self._in_file
        start = starts_of_values[place]
        end = octets.find(b"\n", start)
        value = octets[start : None if end < 0 else end].partition(b"#")[0].rstrip(_WHITE_SPACE)
        return Rule(numbers[place] + 1, self._which_allow()[place] > 0, value)

    def _deciding(self, url: str) -> int | None:
        """Return the place of the rule that decides about the URL; None if no rule matches it."""
        compared = spellings(url)
        if compared[0] == ROBOTS_PATH:  # 2.2.2: "The /robots.txt URI is implicitly allowed."
            return None
        if self._index is None:
            if self._first is None:
                found = matching_places(self._patterns, compared)
                self._first = compared, self._by_precedence(found)[0] if found else None
            if self._first[0] == compared:  # after a refusal, the same URL comes again, to find its rule
                return self._first[1]
            self._order = array("I", self._by_precedence(range(len(self._patterns))))
            self._index = MatchIndex([self._patterns[place] for place in self._order])
            self._first = None
        rank = self._index.first_match(compared[0])
        if len(compared) > 1:
            rank = min(rank, self._index.first_match(compared[1]))
        return self._order[rank] if rank != NO_RANK else None

    def _by_precedence(self, found: Iterable[int]) -> list[int]:
        """Return the places in the order in which their rules decide (2.2.2).

        The longest pattern comes first, in octets with `*` and `$` counted. If patterns have the same length, allow
        lines come before disallow lines, in the order of the file.
        """
        patterns, allow = self._patterns, self._which_allow()
        return sorted(found, key=lambda place: (-len(patterns[place]), -allow[place], place))

    def _which_allow(self) -> bytes:
        """Return, for each rule, 1 for an allow line and 0 for a disallow line."""
        if self._lines:
            self._allow = bytes(map(bool, RULE_ALLOWS.findall(self._lines)))
            self._lines = ""
        return self._allow


class MatchIndex:
    """An index of patterns that are ranked by precedence: the first pattern that matches a URL decides.

    Most patterns are prefixes. `/a*` is the prefix `/a`. `/a$` is a prefix, too, because `$` is added to URLs, which
    have no other `$`. The prefixes are sorted, and each links to the longest other prefix that it begins with: `/a/b`
    links to `/a`. A pattern with a `*` before its end is usually compared only with URLs that contain its
    distinctive text.
    """

    __slots__ = ("_by_beginning", "_first", "_longest", "_prefixes", "_shorter", "_starred", "memory")

    def __init__(self, patterns: Sequence[str]) -> None:
        prefixes: dict[str, int] = {}
        self._starred: dict[str, int] = {}
        for rank, pattern in enumerate(patterns):
            prefix = pattern.rstrip("*$") if pattern.endswith(("*", "*$")) else pattern
            if "*" in prefix:
                self._starred.setdefault(pattern, rank)
            else:
                prefixes.setdefault(prefix, rank)
        self._prefixes = sorted(prefixes)
        self._shorter: list[int] = []
        # For each prefix, the best (smallest) rank of the patterns that match every URL with this prefix: its own
        # pattern, and the patterns of shorter prefixes, such as `/a` of `/a/b`. A shorter prefix may have the longer
        # pattern: `/a*****` has the prefix `/a`.
        self._first: list[int] = []
        for number, prefix in enumerate(self._prefixes):
            shorter = number - 1
            while shorter >= 0 and not prefix.startswith(self._prefixes[shorter]):
                shorter = self._shorter[shorter]
            self._shorter.append(shorter)
            self._first.append(min(prefixes[prefix], self._first[shorter]) if shorter >= 0 else prefixes[prefix])
        self._longest = longest_affordable(self._starred)
        # Each pattern and its distinctive text, by the beginning of the text: `/*?size=1` is under `?siz`.
        by_beginning: dict[str, list[tuple[str, str]]] = {}
        for pattern in self._starred:
            text = _distinctive_text(pattern)
            by_beginning.setdefault(text[:BEGINNING], []).append((text, pattern))
        self._by_beginning = list(by_beginning.items())
        self.memory = 45 * len(prefixes) + 310 * len(self._starred)
        """The approximate bytes of memory without the patterns (measured: tests/protocol/test_costs.py)."""

    def first_match(self, spelling: str) -> int:
        """Return the rank of the first pattern that matches this spelling; NO_RANK if none does. Raises
        TooCostlyError."""
        with_end = f"{spelling}$"
        # Begin with the last prefix in the index that is sorted before the spelling. Follow its links to a prefix that
        # the spelling begins with. The first such prefix is the longest.
        number = bisect_right(self._prefixes, with_end) - 1
        while number >= 0 and not with_end.startswith(self._prefixes[number]):
            number = self._shorter[number]
        first = self._first[number] if number >= 0 else NO_RANK
        if len(spelling) > self._longest:
            candidates = affordable(spelling, self._starred)
        else:
            candidates = [
                pattern
                for beginning, patterns in self._by_beginning
                if beginning in with_end
                for text, pattern in patterns
                if text in with_end
            ]
        for pattern in candidates:
            rank = self._starred[pattern]
            if rank < first and matches(pattern, spelling):
                first = rank
        return first


def _distinctive_text(pattern: str) -> str:
    """Return a text that every URL must contain to match the pattern.

    It is the text after the last `*`, because many patterns differ only there: `/*?color=` and `/*?size=`. If that text
    is short, the longest text of the pattern is returned.
    """
    last = pattern.rstrip("*").rpartition("*")[2]
    return last if len(last) >= BEGINNING else max(pattern.split("*"), key=len)
