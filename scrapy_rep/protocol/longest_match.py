"""Which of many rules is the most specific match: made for asking often (RFC 9309 section 2.2.2)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from .patterns import matches

FEW = 32  # prefixes that are sooner tried one by one than put in order
FEW_OTHERS = 100  # the same of other patterns
LONG = 1_000  # octets of a URL; to search such a one for each text costs more than an index of them
GRAM = 4  # octets
SHORT = 2  # octets of a text that sets few patterns apart


class LongestMatch:
    """One crawler's rules by their patterns, and which of them decides about a URL."""

    __slots__ = ("_others", "_patterns", "_places", "_prefixes", "_starred", "_text", "_tree", "_was_asked", "allowing")

    _others: _Others | None
    _starred: dict[str, str] | None
    _tree: _Tree | None

    def __init__(self, text: str, allowing: int) -> None:
        """Of patterns, one a line: so many of them allow, and come first; the others disallow. An empty one is no
        rule."""
        self._text = text
        self._patterns = text.split("\n")
        self.allowing = allowing
        self._places: dict[str, int] | None = None
        self._prefixes: tuple[str, ...] | None = None
        self._was_asked = False

    def _first_answer(self, spelling: str) -> str | None:
        """The same as `most_specific`; nothing is put in order for it."""
        # In no spelling stands a `*` or `$`, so what has one matches nothing here.
        prefixes = tuple(filter(None, self._patterns))
        found = [prefix for prefix in prefixes if spelling.startswith(prefix)] if spelling.startswith(prefixes) else []
        if "*" in self._text or "$" in self._text:
            special = [pattern for pattern in prefixes if "*" in pattern or "$" in pattern]
            if len(special) > FEW_OTHERS:
                candidates: Iterable[str] = _candidates(special, spelling)
            else:
                candidates = [one for one in special if one.rstrip("*$").rpartition("*")[2] in spelling]
            found += [pattern for pattern in candidates if matches(pattern, spelling)]
        return max(found, key=self.rank) if found else None

    def _prepare(self) -> tuple[str, ...]:
        # Most say no more than how a URL begins; so do those that end in `*`.
        prefixes = [pattern for pattern in self._patterns if "*" not in pattern and "$" not in pattern and pattern]
        self._starred = self._others = self._tree = None
        if "*" in self._text or "$" in self._text:
            self._sort_out(dict.fromkeys([pattern for pattern in self._patterns if "*" in pattern or "$" in pattern]))
            prefixes += self._starred or ()
        if len(prefixes) > FEW:
            self._tree = _Tree(prefixes, self._starred or {}, self._all_places())
        self._prefixes = tuple(prefixes)
        return self._prefixes

    def _sort_out(self, special: Iterable[str]) -> None:
        starred: dict[str, str] = {}
        at_end: dict[str, str] = {}
        anywhere: dict[str, str] = {}
        for pattern in special:
            text = pattern.rstrip("*$")
            _before, star, last = text.rpartition("*")
            if star or pattern.startswith("$", len(text)):
                # The last of the texts that it requires sets rules of one kind apart, unless it is short.
                if len(last) < GRAM:
                    anywhere[pattern] = max(text.split("*"), key=len)
                else:
                    (at_end if pattern.startswith("$", len(text)) else anywhere)[pattern] = last
            elif text not in starred or self.rank(pattern) > self.rank(starred[text]):
                starred[text] = pattern
        self._starred = starred or None
        self._others = _Others(at_end, anywhere) if at_end or anywhere else None

    def most_specific(self, spelling: str) -> str | None:
        """The pattern that decides about one of a URL's `spellings`; None where none matches."""
        prefixes = self._prefixes
        if prefixes is None:
            # Of many origins one URL is all that is ever asked about.
            if not self._was_asked:
                self._was_asked = True
                return self._first_answer(spelling)
            prefixes = self._prepare()
        if self._tree is not None:
            pattern = self._tree.most_specific(spelling)
        else:
            pattern = self._most_specific_prefix(spelling, prefixes) if spelling.startswith(prefixes) else None
        if self._others is not None and (matching := self._others.matching(spelling)):
            return max(matching if pattern is None else [pattern, *matching], key=self.rank)
        return pattern

    def _most_specific_prefix(self, spelling: str, prefixes: Iterable[str]) -> str:
        found = [prefix for prefix in prefixes if spelling.startswith(prefix)]
        if self._starred is None:
            return max(found, key=len)
        return max([self._starred.get(prefix, prefix) for prefix in found], key=self.rank)

    def allows(self, pattern: str) -> bool:
        return self.place(pattern) < self.allowing

    def rank(self, pattern: str) -> tuple[int, int]:
        """The highest decides: the most octets, `*` and `$` counted; of equals one that allows (2.2.2); of those the
        first in the file."""
        return len(pattern), -self.place(pattern)

    def place(self, pattern: str) -> int:
        """Its place among them all; of duplicates the first's (2.2.2: MAY be deduplicated)."""
        return self._all_places()[pattern]

    def _all_places(self) -> dict[str, int]:
        if self._places is None:  # many files are never asked about a URL that makes them needed
            self._places = dict(zip(reversed(self._patterns), reversed(range(len(self._patterns))), strict=True))
        return self._places


# How the first text begins that a pattern requires and that is not short; else the last.
_REQUIRED = re.compile(rf"\n(?:[^*\n]{{0,{SHORT}}}\*)*([^*\n]{{0,{GRAM}}})")


def _candidates(patterns: Sequence[str], spelling: str) -> set[str]:
    """Those of the patterns, with `*` or `$` in each, that may match."""
    required = _REQUIRED.findall("\n" + "\n".join(patterns))
    text = f"{spelling}$"  # stands where it ends
    there = text if len(text) <= LONG else _grams_of(text, set(map(len, required)))
    return {pattern for pattern, gram in zip(patterns, required, strict=True) if gram in there}


def _grams_of(spelling: str, sizes: Iterable[int]) -> set[str]:
    return {spelling[at : at + size] for size in sizes for at in range(len(spelling) - size + 1)}


class _Tree:
    """Prefixes in order, each with a link to the longest other one that it begins with."""

    __slots__ = ("_most_specific", "_prefixes", "_shorter")

    def __init__(self, prefixes: Iterable[str], starred: Mapping[str, str], places: Mapping[str, int]) -> None:
        self._prefixes = ordered = sorted(set(prefixes))
        links: list[int] = []
        patterns: list[str] = []
        for at, prefix in enumerate(ordered):
            shorter = at - 1
            while shorter >= 0 and not prefix.startswith(ordered[shorter]):
                shorter = links[shorter]
            links.append(shorter)
            pattern = starred.get(prefix, prefix)
            if shorter >= 0 and len(above := patterns[shorter]) >= len(pattern):
                pattern = above if len(above) > len(pattern) or places[above] < places[pattern] else pattern
            patterns.append(pattern)
        self._shorter = links
        # Of the prefix's own pattern and those of all that it begins with.
        self._most_specific = patterns

    def most_specific(self, spelling: str) -> str | None:
        # All that the spelling begins with is in the line of links from its predecessor.
        at = bisect_right(self._prefixes, spelling) - 1
        while at >= 0 and not spelling.startswith(self._prefixes[at]):
            at = self._shorter[at]
        return self._most_specific[at] if at >= 0 else None


class _Others:
    """Patterns that say more than a prefix, each tried where a text stands that it requires."""

    __slots__ = ("_anywhere", "_at_end", "_endings", "_index")

    def __init__(self, at_end: Mapping[str, str], anywhere: Mapping[str, str]) -> None:
        """The text that each pattern requires."""
        self._at_end = at_end
        self._endings = tuple(at_end.values())
        self._anywhere = tuple(anywhere.items())
        self._index = _Index(self._anywhere) if len(self._anywhere) > FEW_OTHERS else None

    def matching(self, spelling: str) -> list[str]:
        if self._index is not None:
            candidates = self._index.candidates(spelling)
        else:
            candidates = [pattern for pattern, text in self._anywhere if text in spelling]
        if spelling.endswith(self._endings):
            candidates += [pattern for pattern, text in self._at_end.items() if spelling.endswith(text)]
        return [pattern for pattern in candidates if matches(pattern, spelling)] if candidates else candidates


class _Index:
    """Patterns by the last few octets of the text that each requires."""

    __slots__ = ("_by_gram", "_sizes")

    def __init__(self, required: Iterable[tuple[str, str]]) -> None:
        self._by_gram: dict[str, list[str]] = {}
        for pattern, text in required:
            self._by_gram.setdefault(text[-GRAM:], []).append(pattern)
        self._sizes = sorted(set(map(len, self._by_gram)))

    def candidates(self, spelling: str) -> list[str]:
        found: list[str] = []
        for size in self._sizes:
            grams = {spelling[at : at + size] for at in range(len(spelling) - size + 1)}
            for gram in self._by_gram.keys() & grams:
                found += self._by_gram[gram]
        return found
