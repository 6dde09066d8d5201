"""Which pattern decides about a URL, found by an index of the patterns (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from scrapy_rep.protocol.robotstxt.comparison_cost import (
    GRAM,
    MAX_TARGET,
    REQUIRED,
    affordable,
    grams_of,
    longest_affordable,
)
from scrapy_rep.protocol.robotstxt.patterns import matches

# Up to so many patterns that are no prefixes, trying each is faster (measured: tests/benchmarks/speed.py, sizes).
FEW_OTHERS = 100


class MatchIndex:
    """Patterns in an order of precedence: of those that match a URL, the first decides.

    Most patterns are prefixes of URLs, also those with `*` at their end alone. Prefixes are sorted, each with a link to
    the longest other prefix that it begins with: `/a/b` to `/a`.
    """

    __slots__ = ("_first", "_others", "_prefixes", "_shorter", "memory")

    def __init__(self, patterns: Sequence[str]) -> None:
        prefixes: dict[str, int] = {}
        others: dict[str, int] = {}
        for at, pattern in enumerate(patterns):
            prefix = pattern.rstrip("*$") if pattern.endswith(("*", "$")) else pattern
            if "*" in prefix or pattern.startswith("$", len(prefix)):
                others.setdefault(pattern, at)
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
        self._others = _Others(others) if others else None
        self.memory = 45 * len(prefixes) + 230 * len(others)
        """Bytes that it takes beside the patterns, about (measured: tests/protocol/test_costs.py)."""

    def first_match(self, spelling: str) -> int | None:
        """Where the first pattern stands that matches one of a URL's `spellings`; None if none does.

        Raises TooCostlyError.
        """
        # The last prefix that is not sorted after the spelling begins with all prefixes of the spelling, or is the
        # longest of them. So its links lead to the longest.
        number = bisect_right(self._prefixes, spelling) - 1
        while number >= 0 and not spelling.startswith(self._prefixes[number]):
            number = self._shorter[number]
        at = self._first[number] if number >= 0 else None
        if self._others is not None and (matching := self._others.matching(spelling)):
            return min(matching) if at is None else min(at, *matching)
        return at


class _Others:
    """Patterns that are no prefixes, each tried only on a URL that has one of the texts between its `*`."""

    __slots__ = ("_at", "_index", "_longest", "_texts")

    def __init__(self, at: Mapping[str, int]) -> None:
        self._at = at
        self._longest = longest_affordable(at)
        self._index = _Index(at) if len(at) > FEW_OTHERS else None
        self._texts = [(pattern, _telling_text(pattern)) for pattern in at] if self._index is None else []

    def matching(self, spelling: str) -> list[int]:
        """Where those that match stand. Raises TooCostlyError."""
        candidates: Collection[str]
        if len(spelling) > self._longest:
            candidates = affordable(spelling, self._at)
        elif self._index is None:
            with_end = f"{spelling}$"
            candidates = [pattern for pattern, text in self._texts if text in with_end]
        elif len(spelling) <= MAX_TARGET:
            candidates = self._index.candidates(spelling)
        else:
            candidates = self._at
        return [self._at[pattern] for pattern in candidates if matches(pattern, spelling)] if candidates else []


def _telling_text(pattern: str) -> str:
    """The text behind the last `*`, which tells patterns of one kind apart, unless it is short: `/*?a=`, `/*?b=`."""
    last = pattern.rstrip("*").rpartition("*")[2]
    return last if len(last) >= GRAM else max(pattern.split("*"), key=len)


class _Index:
    """Many patterns, each listed under that one of its grams which the fewest other patterns have."""

    __slots__ = ("_by_gram", "_sizes")

    def __init__(self, patterns: Iterable[str]) -> None:
        required = {pattern: REQUIRED.findall(pattern) for pattern in patterns}
        common = Counter(chain.from_iterable(required.values()))
        self._by_gram: dict[str, list[str]] = {}
        for pattern, grams in required.items():
            rarest = min(grams, key=lambda gram: (common[gram], -len(gram)), default="")
            self._by_gram.setdefault(rarest, []).append(pattern)
        self._sizes = sorted(set(map(len, self._by_gram)))

    def candidates(self, spelling: str) -> list[str]:
        """All patterns that may match."""
        grams = self._by_gram.keys() & grams_of(f"{spelling}$", self._sizes)
        return [pattern for gram in grams for pattern in self._by_gram[gram]]
