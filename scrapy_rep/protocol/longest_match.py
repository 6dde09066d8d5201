"""Which of many rules is the most specific match: made for asking often (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, compress

from .first_match import GRAM
from .patterns import matches

FEW = 32  # prefixes that are sooner tried one by one than put in order
FEW_OTHERS = 100  # the same of other patterns


class LongestMatch:
    """One crawler's rules by their patterns, put in order, and which of them decides about a URL.

    Patterns are known by their places; of duplicates one is left (2.2.2: MAY be deduplicated).
    """

    __slots__ = ("_by_prefix", "_deciding", "_others", "_prefixes", "_tree")

    def __init__(self, patterns: Sequence[str], allow: Sequence[int]) -> None:
        """Of patterns, and of each of them whether it allows."""
        self._deciding = partial(most_specific, patterns=patterns, allow=allow)
        # The first of them that allows, else the first.
        places = dict(zip(reversed(patterns), reversed(range(len(patterns))), strict=True))
        places |= {patterns[place]: place for place in reversed([*compress(range(len(patterns)), allow)])}
        # Most say no more than how a URL begins; so do those that end in `*`.
        prefixes: dict[str, int] = {}
        others: dict[str, int] = {}
        for pattern, place in places.items():
            prefix = pattern.rstrip("*$") if pattern.endswith(("*", "$")) else pattern
            if "*" in prefix or pattern.startswith("$", len(prefix)):
                others[pattern] = place
            else:
                prefixes[prefix] = self._deciding([place, prefixes[prefix]]) if prefix in prefixes else place
        self._by_prefix = prefixes
        self._prefixes = tuple(prefixes)
        self._tree = _Tree(prefixes, self._deciding) if len(prefixes) > FEW else None
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


def most_specific(places: Sequence[int], patterns: Sequence[str], allow: Sequence[int]) -> int:
    """Of patterns that match the one that decides, by their places: that of the most octets, `*` and `$` counted; of
    equals the first that allows, else the first (2.2.2)."""
    most = max([len(patterns[place]) for place in places])
    longest = [place for place in places if len(patterns[place]) == most]
    return min([place for place in longest if allow[place]] or longest)


class _Tree:
    """Prefixes in order, each with a link to the longest other one that it begins with."""

    __slots__ = ("_most_specific", "_prefixes", "_shorter")

    def __init__(self, places: Mapping[str, int], deciding: Callable[[Sequence[int]], int]) -> None:
        self._prefixes = ordered = sorted(places)
        links: list[int] = []
        most_specific: list[int] = []
        for at, prefix in enumerate(ordered):
            shorter = at - 1
            while shorter >= 0 and not prefix.startswith(ordered[shorter]):
                shorter = links[shorter]
            links.append(shorter)
            place = places[prefix]
            most_specific.append(place if shorter < 0 else deciding([place, most_specific[shorter]]))
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

    __slots__ = ("_anywhere", "_at_end", "_endings", "_index", "_places")

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places
        self._index = _Index(places) if len(places) > FEW_OTHERS else None
        # The text that each pattern requires.
        at_end: dict[str, str] = {}
        anywhere: dict[str, str] = {}
        for pattern in places if self._index is None else ():
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
        if self._index is not None:
            candidates = self._index.candidates(spelling)
        else:
            candidates = [pattern for pattern, text in self._anywhere if text in spelling]
            if spelling.endswith(self._endings):
                candidates += [pattern for pattern, text in self._at_end if spelling.endswith(text)]
        return [self._places[pattern] for pattern in candidates if matches(pattern, spelling)] if candidates else []


class _Index:
    """Many patterns, each by an octet or a few that it requires and that few of the others do."""

    __slots__ = ("_by_gram", "_sizes")

    def __init__(self, patterns: Iterable[str]) -> None:
        grams = {pattern: [text[-GRAM:] for text in pattern.split("*")] for pattern in patterns}
        common = Counter(chain.from_iterable(grams.values()))
        self._by_gram: dict[str, list[str]] = {}
        for pattern, required in grams.items():
            self._by_gram.setdefault(min(required, key=lambda gram: (common[gram], -len(gram))), []).append(pattern)
        self._sizes = sorted(set(map(len, self._by_gram)))

    def candidates(self, spelling: str) -> list[str]:
        target = f"{spelling}$"  # stands where it ends
        found: list[str] = []
        for size in self._sizes:
            grams = {target[at : at + size] for at in range(len(target) - size + 1)}
            for gram in self._by_gram.keys() & grams:
                found += self._by_gram[gram]
        return found
