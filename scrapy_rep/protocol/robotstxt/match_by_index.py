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
    costly_octets,
    grams_of,
    is_affordable,
)
from scrapy_rep.protocol.robotstxt.patterns import matches

# Up to so many patterns that are no prefixes, looking for a text of each is faster than cutting the URL into grams
# (measured: tests/benchmarks/speed.py, sizes).
FEW_OTHERS = 100


class MatchIndex:
    """Patterns in an order of precedence: of those that match a URL, the first decides.

    Most patterns are prefixes of URLs, also those with `*` at their end alone; no URL holds a `$`, so `/a$` is a prefix
    of `/a` and a `$` behind it. Prefixes are sorted, each with a link to the longest other prefix that it begins with:
    `/a/b` to `/a`.
    """

    __slots__ = ("_first", "_others", "_prefixes", "_shorter", "memory")

    def __init__(self, patterns: Sequence[str]) -> None:
        prefixes: dict[str, int] = {}
        others: dict[str, int] = {}
        for at, pattern in enumerate(patterns):
            prefix = pattern.rstrip("*$") if pattern.endswith(("*", "*$")) else pattern
            if "*" in prefix:
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
        with_end = f"{spelling}$"
        # The last prefix that is not sorted after the spelling begins with all prefixes of the spelling, or is the
        # longest of them. So its links lead to the longest.
        number = bisect_right(self._prefixes, with_end) - 1
        while number >= 0 and not with_end.startswith(self._prefixes[number]):
            number = self._shorter[number]
        at = self._first[number] if number >= 0 else None
        if self._others is not None and (matching := self._others.matching(spelling, with_end)):
            return min(matching) if at is None else min(at, *matching)
        return at


class _Others:
    """Patterns with a `*` before their end, each under a text that stands in all URLs which it matches."""

    __slots__ = ("_at", "_by_text", "_octets", "_sizes")

    def __init__(self, at: Mapping[str, int]) -> None:
        self._at = at
        self._octets = costly_octets(at)
        has_many = len(at) > FEW_OTHERS
        self._by_text: dict[str, list[str]] = {}
        for pattern, text in _rarest_grams(at) if has_many else zip(at, map(_telling_text, at), strict=True):
            self._by_text.setdefault(text, []).append(pattern)
        # Of the texts, if they are grams.
        self._sizes = sorted(set(map(len, self._by_text))) if has_many else ()

    def matching(self, spelling: str, with_end: str) -> list[int]:
        """Where those that match stand. `with_end`: the spelling and a `$`. Raises TooCostlyError."""
        by_text = self._by_text
        candidates: Collection[str]
        if not is_affordable(spelling, self._octets):
            candidates = affordable(spelling, self._at)
        elif self._sizes and len(spelling) <= MAX_TARGET:
            grams = by_text.keys() & grams_of(with_end, self._sizes)
            candidates = [pattern for gram in grams for pattern in by_text[gram]]
        else:
            candidates = [pattern for text in by_text if text in with_end for pattern in by_text[text]]
        return [self._at[pattern] for pattern in candidates if matches(pattern, spelling)] if candidates else []


def _telling_text(pattern: str) -> str:
    """The text behind the last `*`, which tells patterns of one kind apart, unless it is short: `/*?a=`, `/*?b=`."""
    last = pattern.rstrip("*").rpartition("*")[2]
    return last if len(last) >= GRAM else max(pattern.split("*"), key=len)


def _rarest_grams(patterns: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Each pattern with that one of its grams which the fewest other patterns have."""
    grams_of_each = {pattern: REQUIRED.findall(pattern) for pattern in patterns}
    common = Counter(chain.from_iterable(grams_of_each.values()))
    for pattern, grams in grams_of_each.items():
        yield pattern, min(grams, key=lambda gram: (common[gram], -len(gram)), default="")
