"""Which of many rules is the most specific match: made for asking often (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from scrapy_rep.protocol.robotstxt.match_linear import GRAM, REQUIRED, grams_of
from scrapy_rep.protocol.robotstxt.patterns import matches
from scrapy_rep.protocol.robotstxt.rules import most_specific

# Up to these many it is faster to try each (measured: tests/benchmarks/speed.py, sizes).
FEW = 32  # patterns that say how a URL begins, and no more
FEW_OTHERS = 100


class LongestMatch:
    """One crawler's rules by their patterns, put in order, and which of them decides about a URL.

    Patterns are known by their places; of duplicates one is left (2.2.2: MAY be deduplicated).
    """

    __slots__ = ("_by_prefix", "_deciding", "_others", "_prefixes", "_tree")

    def __init__(self, patterns: Sequence[str], allow: Sequence[int]) -> None:
        """Of patterns, and of each of them whether it allows."""
        self._deciding = partial(most_specific, patterns=patterns, allow=allow)
        # Of duplicates the first that allows, else the first: what is written last stays.
        in_reverse = sorted(range(len(patterns) - 1, -1, -1), key=allow.__getitem__)
        place_of = {patterns[place]: place for place in in_reverse}
        # Most say no more than how a URL begins; so do those that end in `*`.
        prefixes: dict[str, int] = {}
        others: dict[str, int] = {}
        for pattern, place in place_of.items():
            prefix = pattern.rstrip("*$") if pattern.endswith(("*", "$")) else pattern
            if "*" in prefix or pattern.startswith("$", len(prefix)):
                others[pattern] = place
            else:
                prefixes[prefix] = self._deciding([place, prefixes[prefix]]) if prefix in prefixes else place
        self._by_prefix = prefixes
        self._prefixes = tuple(prefixes)
        self._tree = _Tree(prefixes, patterns, self._deciding) if len(prefixes) > FEW else None
        self._others = _Others(others) if others else None

    def most_specific(self, spelling: str) -> int | None:
        """The place of the pattern that decides about one of a URL's `spellings`; None where none matches."""
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
    """Prefixes in order, each with a link to the longest other one that it begins with."""

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
            # A pattern of a shorter prefix is as long as this one only by the `*` at its end.
            if shorter >= 0 and len(patterns[most_specific[shorter]]) >= len(patterns[place]):
                place = deciding([place, most_specific[shorter]])
            most_specific.append(place)
        self._shorter = links
        # Of the prefix's own pattern and those of all that it begins with.
        self._most_specific = most_specific

    def most_specific(self, spelling: str) -> int | None:
        # All that the spelling begins with is in the line of links from its predecessor.
        at = bisect_right(self._prefixes, spelling) - 1
        while at >= 0 and not spelling.startswith(self._prefixes[at]):
            at = self._shorter[at]
        return self._most_specific[at] if at >= 0 else None


class _Others:
    """Patterns that say more than a prefix, each tried where a text stands that it requires."""

    __slots__ = ("_anywhere", "_at_end", "_endings", "_index", "_place_of")

    def __init__(self, place_of: Mapping[str, int]) -> None:
        self._place_of = place_of
        self._index = _Index(place_of) if len(place_of) > FEW_OTHERS else None
        at_end: dict[str, str] = {}
        anywhere: dict[str, str] = {}
        for pattern in place_of if self._index is None else ():
            text = pattern.rstrip("*$")
            last = text.rpartition("*")[2]
            # The last of the texts that it requires sets rules of one kind apart, unless it is short.
            if len(last) < GRAM:
                anywhere[pattern] = max(text.split("*"), key=len)
            else:
                (at_end if pattern.startswith("$", len(text)) else anywhere)[pattern] = last
        self._anywhere = tuple(anywhere.items())
        self._at_end = tuple(at_end.items())
        self._endings = tuple(at_end.values())

    def matching(self, spelling: str) -> list[int]:
        """The places of those that match."""
        if self._index is not None:
            candidates = self._index.candidates(spelling)
        else:
            candidates = [pattern for pattern, text in self._anywhere if text in spelling]
            if spelling.endswith(self._endings):
                candidates += [pattern for pattern, text in self._at_end if spelling.endswith(text)]
        return [self._place_of[pattern] for pattern in candidates if matches(pattern, spelling)] if candidates else []


class _Index:
    """Many patterns, each by the gram that it requires and fewest of the others do."""

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
        grams = self._by_gram.keys() & grams_of(f"{spelling}$", self._sizes)
        return [pattern for gram in grams for pattern in self._by_gram[gram]]
