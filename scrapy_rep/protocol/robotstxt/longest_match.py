"""The rules that a crawler obeys, and which of them decides about a URL: the longest match (RFC 9309 section 2.2.2).

Many origins are asked about one URL and never again, so the first question is answered by trying each pattern, which
needs no preparation. The second question makes an index of the patterns, which answers that one and all later ones.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, repeat

from scrapy_rep.protocol.robotstxt.comparison_cost import affordable, longest_affordable
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, matches, matching_places, patterns, spellings
from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.protocol.robotstxt.segments import Segments, find_records
from scrapy_rep.protocol.robotstxt.syntax import RULE_ALLOWS, RULE_VALUE, WHITE_SPACE, without_comments

# Bytes (measured: tests/protocol/test_costs.py).
_FIXED_MEMORY = 600
_MEMORY_OF_RULE = 60

_WHITE_SPACE = WHITE_SPACE.encode()

BEGINNING = 4  # octets of a text that are looked for first


class EffectiveRules:
    """The rules of all groups that name a crawler (2.2.1: MUST be combined), known by their places: 0 is the first."""

    __slots__ = ("_allow", "_first", "_in_file", "_index", "_lines", "_order", "_patterns", "own", "size")

    def __init__(self, segments: Segments, own: tuple[int, ...]) -> None:
        self.own = own
        """The segments that hold the rules."""
        lines = segments.joined(own)
        self.size = len(lines)
        """Octets of these segments."""
        values: list[str] = RULE_VALUE.findall(lines)
        as_written = "\n".join(values)
        normalised = patterns(without_comments(as_written)) if values else ""
        self._patterns = values if normalised == as_written else normalised.split("\n")
        self._lines = lines
        self._allow = b""
        # Where the rules stand in the file: the line ends before each, and where its value starts.
        self._in_file: tuple[Sequence[int], Sequence[int]] | None = None
        # The first question and its answer; what answers all other questions.
        self._first: tuple[Sequence[str], int | None] | None = None
        self._index: MatchIndex | None = None
        self._order: Sequence[int] = ()

    @property
    def memory(self) -> int:
        """Bytes that it takes, about."""
        index = self._index.memory if self._index is not None else 0
        return _FIXED_MEMORY + self.size + len(self._lines) + _MEMORY_OF_RULE * len(self._patterns) + index

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched. Raises TooCostlyError, and ValueError as `spellings` does."""
        place = self._deciding(url)
        return place is None or self._which_allow()[place] > 0

    def rule(self, url: str, octets: bytes) -> Rule | None:
        """The rule that decides about the URL, as it stands in the file's octets; None if none does.

        Raises as `allows` does.
        """
        place = self._deciding(url)
        if place is None:
            return None
        if self._in_file is None:
            # The text that is searched has one LF before the octets.
            starts = [record.start(1) - 1 for record in find_records(octets, self.own, RULE_VALUE)]
            line_ends = map(octets.count, repeat(b"\n"), [0, *starts], starts)
            self._in_file = array("I", accumulate(line_ends)), array("I", starts)
        numbers, starts_of_values = self._in_file
        start = starts_of_values[place]
        end = octets.find(b"\n", start)
        value = octets[start : None if end < 0 else end].partition(b"#")[0].rstrip(_WHITE_SPACE)
        return Rule(numbers[place] + 1, self._which_allow()[place] > 0, value)

    def _deciding(self, url: str) -> int | None:
        """The place of the rule that decides about the URL; None if none does. Raises as `allows` does."""
        compared = spellings(url)
        if compared[0] == ROBOTS_PATH:  # 2.2.2: "The /robots.txt URI is implicitly allowed."
            return None
        if self._index is None:
            if self._first is None:
                found = matching_places(self._patterns, compared)
                self._first = compared, self._by_precedence(found)[0] if found else None
            if self._first[0] == compared:  # asked again, for the rule behind a refusal
                return self._first[1]
            self._order = array("I", self._by_precedence(range(len(self._patterns))))
            self._index = MatchIndex([self._patterns[place] for place in self._order])
            self._first = None
        if len(compared) == 1:
            at = self._index.first_match(compared[0])
        else:
            at = min([at for each in compared if (at := self._index.first_match(each)) is not None], default=None)
        return self._order[at] if at is not None else None

    def _by_precedence(self, found: Iterable[int]) -> list[int]:
        """These rules, the one that decides first: the pattern with the most octets, `*` and `$` counted; of equally
        long ones the first rule that allows, else the first (2.2.2)."""
        patterns = self._patterns
        ordered = sorted(found)
        ordered.sort(key=self._which_allow().__getitem__, reverse=True)
        ordered.sort(key=lambda place: len(patterns[place]), reverse=True)
        return ordered

    def _which_allow(self) -> bytes:
        """For each rule whether it is an allow line, 1 or 0. Worked out once a rule matches, which is seldom."""
        if self._lines:
            self._allow = bytes(map(bool, RULE_ALLOWS.findall(self._lines)))
            self._lines = ""
        return self._allow


class MatchIndex:
    """Patterns in an order of precedence: of those that match a URL, the first decides.

    Most patterns are prefixes of URLs, also those with `*` at their end alone; no URL holds a `$`, so `/a$` is a prefix
    of `/a` and a `$` behind it. Prefixes are sorted, each with a link to the longest other prefix that it begins with:
    `/a/b` to `/a`. Patterns with a `*` before their end each have a text that stands in all URLs which they match.
    """

    __slots__ = ("_by_beginning", "_first", "_longest", "_prefixes", "_shorter", "_starred", "memory")

    def __init__(self, patterns: Sequence[str]) -> None:
        prefixes: dict[str, int] = {}
        self._starred: dict[str, int] = {}
        for at, pattern in enumerate(patterns):
            prefix = pattern.rstrip("*$") if pattern.endswith(("*", "*$")) else pattern
            if "*" in prefix:
                self._starred.setdefault(pattern, at)
            else:
                prefixes.setdefault(prefix, at)
        self._prefixes = sorted(prefixes)
        self._shorter: list[int] = []
        # For each prefix, the first of its own pattern and those of all prefixes that it begins with. A shorter prefix
        # may have the longer pattern: `/a*****` of `/a`, beside `/a/b`.
        self._first: list[int] = []
        for number, prefix in enumerate(self._prefixes):
            shorter = number - 1
            while shorter >= 0 and not prefix.startswith(self._prefixes[shorter]):
                shorter = self._shorter[shorter]
            self._shorter.append(shorter)
            self._first.append(min(prefixes[prefix], self._first[shorter]) if shorter >= 0 else prefixes[prefix])
        self._longest = longest_affordable(self._starred)
        # Each pattern with its text, by the beginning of that: `/*?size=1` is under `?siz`.
        by_beginning: dict[str, list[tuple[str, str]]] = {}
        for pattern in self._starred:
            text = _telling_text(pattern)
            by_beginning.setdefault(text[:BEGINNING], []).append((text, pattern))
        self._by_beginning = list(by_beginning.items())
        self.memory = 45 * len(prefixes) + 310 * len(self._starred)
        """Bytes that it takes beside the patterns, about (measured: tests/protocol/test_costs.py)."""

    def first_match(self, spelling: str) -> int | None:
        """Where the first pattern stands that matches one of a URL's `spellings`; None if none does.

        Raises TooCostlyError.
        """
        with_end = f"{spelling}$"
        # The last prefix that is not sorted after the spelling begins with all prefixes of the spelling, or is the
        # longest of them. So its links lead to the longest.
        number = bisect_right(self._prefixes, with_end) - 1
        while number >= 0 and not with_end.startswith(self._prefixes[number]):
            number = self._shorter[number]
        at = self._first[number] if number >= 0 else None
        candidates: Collection[str]
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
            place = self._starred[pattern]
            if (at is None or place < at) and matches(pattern, spelling):
                at = place
        return at


def _telling_text(pattern: str) -> str:
    """The text behind the last `*`, which tells patterns of one kind apart, unless it is short: `/*?a=`, `/*?b=`."""
    last = pattern.rstrip("*").rpartition("*")[2]
    return last if len(last) >= BEGINNING else max(pattern.split("*"), key=len)
