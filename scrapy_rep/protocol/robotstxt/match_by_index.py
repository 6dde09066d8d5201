"""Which pattern decides about a URL, found by an index of the patterns (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from scrapy_rep.protocol.robotstxt.comparison_cost import (
    GRAM,
    MAX_TARGET,
    REQUIRED,
    affordable,
    grams_of,
    must_exclude,
    octets_with_star,
)
from scrapy_rep.protocol.robotstxt.patterns import matches, most_specific

# Up to so many patterns of a kind, trying each is faster (measured: tests/benchmarks/speed.py, sizes).
FEW_PREFIXES = 32
FEW_OTHERS = 100


class MatchIndex:
    """One crawler's patterns: prefixes in a sorted list, all others by texts that a URL must have."""

    __slots__ = ("_by_prefix", "_deciding", "_others", "_prefixes", "_tree", "memory")

    def __init__(self, patterns: Sequence[str], allow: Sequence[int]) -> None:
        """`allow`: for each of the patterns whether its rule allows."""
        self._deciding = partial(most_specific, patterns=patterns, allow=allow)
        # Of rules with the same pattern, the first that allows stays, else the first (2.2.2: MAY be deduplicated). A
        # dict keeps what is written last.
        in_reverse = sorted(range(len(patterns) - 1, -1, -1), key=allow.__getitem__)
        place_of = {patterns[place]: place for place in in_reverse}
        # Most patterns are prefixes of URLs, also those with `*` at their end alone.
        prefixes: dict[str, int] = {}
        others: dict[str, int] = {}
        for pattern, place in place_of.items():
            prefix = pattern.rstrip("*$") if pattern.endswith(("*", "$")) else pattern
            if "*" in prefix or pattern.startswith("$", len(prefix)):
                others[pattern] = place
            else:
                prefixes[prefix] = self._deciding([place, prefixes[prefix]]) if prefix in prefixes else place
        is_tree = len(prefixes) > FEW_PREFIXES
        self._tree = _Tree(prefixes, patterns, self._deciding) if is_tree else None
        self._by_prefix = {} if is_tree else prefixes
        self._prefixes = tuple(self._by_prefix)
        self._others = _Others(others) if others else None
        self.memory = 60 * len(prefixes) + 230 * len(others)
        """Bytes that it takes beside the patterns, about (measured: tests/protocol/test_costs.py)."""

    def most_specific(self, spelling: str) -> int | None:
        """The place of the pattern that decides about one of a URL's `spellings`; None if none matches.

        Raises TooCostlyError.
        """
        if self._tree is not None:
            place = self._tree.most_specific(spelling)
        else:
            place = self._most_specific_prefix(spelling) if spelling.startswith(self._prefixes) else None
        if self._others is not None and (matching := self._others.matching(spelling)):
            return self._deciding(matching if place is None else [place, *matching])
        return place

    def _most_specific_prefix(self, spelling: str) -> int:
        return self._deciding([place for prefix, place in self._by_prefix.items() if spelling.startswith(prefix)])


class _Tree:
    """Sorted prefixes, each with a link to the longest other prefix that it begins with: `/a/b` to `/a`."""

    __slots__ = ("_most_specific", "_prefixes", "_shorter")

    def __init__(
        self, place_of: Mapping[str, int], patterns: Sequence[str], deciding: Callable[[Sequence[int]], int]
    ) -> None:
        self._prefixes = ordered = sorted(place_of)
        links: list[int] = []
        most_specific: list[int] = []
        for at, prefix in enumerate(ordered):
            shorter = at - 1
            while shorter >= 0 and not prefix.startswith(ordered[shorter]):
                shorter = links[shorter]
            links.append(shorter)
            place = place_of[prefix]
            # The pattern of a shorter prefix may be the longer pattern: `/a*****` of `/a`, beside `/a/b`.
            if shorter >= 0 and len(patterns[most_specific[shorter]]) >= len(patterns[place]):
                place = deciding([place, most_specific[shorter]])
            most_specific.append(place)
        self._shorter = links
        # For each prefix, the place that decides among its pattern and those of all prefixes that it begins with.
        self._most_specific = most_specific

    def most_specific(self, spelling: str) -> int | None:
        # The last prefix that is not sorted after the spelling begins with all prefixes of the spelling, or is the
        # longest of them. So its links lead to the longest.
        at = bisect_right(self._prefixes, spelling) - 1
        while at >= 0 and not spelling.startswith(self._prefixes[at]):
            at = self._shorter[at]
        return self._most_specific[at] if at >= 0 else None


class _Others:
    """Patterns that are no prefixes, each tried only on a URL that has one of the texts between its `*`."""

    __slots__ = ("_anywhere", "_at_end", "_endings", "_index", "_octets_with_star", "_place_of")

    def __init__(self, place_of: Mapping[str, int]) -> None:
        self._place_of = place_of
        self._octets_with_star = octets_with_star(place_of)
        self._index = _Index(place_of) if len(place_of) > FEW_OTHERS else None
        at_end: dict[str, str] = {}
        anywhere: dict[str, str] = {}
        for pattern in place_of if self._index is None else ():
            text = pattern.rstrip("*$")
            last = text.rpartition("*")[2]
            # The last text tells rules of one kind apart, unless it is short: `/*?sort=`, `/*?page=`.
            if len(last) < GRAM:
                anywhere[pattern] = max(text.split("*"), key=len)
            else:
                (at_end if pattern.startswith("$", len(text)) else anywhere)[pattern] = last
        self._anywhere = tuple(anywhere.items())
        self._at_end = tuple(at_end.items())
        self._endings = tuple(at_end.values())

    def matching(self, spelling: str) -> list[int]:
        """The places of those that match. Raises TooCostlyError."""
        must_be_fewer = must_exclude(spelling, self._octets_with_star)
        candidates: Collection[str]
        if self._index is None:
            candidates = [pattern for pattern, text in self._anywhere if text in spelling]
            if spelling.endswith(self._endings):
                candidates += [pattern for pattern, text in self._at_end if spelling.endswith(text)]
        elif len(spelling) <= MAX_TARGET:
            candidates = self._index.candidates(spelling)
        else:
            candidates = self._place_of
        if must_be_fewer:
            candidates = affordable(spelling, candidates)
        return [self._place_of[pattern] for pattern in candidates if matches(pattern, spelling)] if candidates else []


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
