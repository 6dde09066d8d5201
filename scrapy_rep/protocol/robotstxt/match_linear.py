"""Which of many patterns match a URL: made for asking once (RFC 9309 section 2.2.2).

Of many origins one URL is all that is ever asked about, so nothing is put in order for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from scrapy_rep.protocol.robotstxt.patterns import matches

# Below these many it is faster to try each (measured: tests/benchmarks/speed.py, sizes).
FEW_STARRED = 100

GRAM = 4  # octets of a text by which patterns are looked up; fewer set them less apart, more make a larger index
# All that a pattern requires, in grams: every octet of it but `*`, so that few patterns are tried in vain.
REQUIRED = re.compile(rf"[^*]{{1,{GRAM}}}")


def grams_of(text: str, sizes: Sequence[int] = range(1, GRAM + 1)) -> set[str]:
    """Whatever stands in it, of these sizes."""
    return {text[at : at + size] for size in sizes for at in range(len(text) - size + 1)}


def places_of_matches(patterns: Sequence[str], spellings: Sequence[str], any_starred: bool) -> list[int]:
    """Of patterns the places of those that match a URL's `spellings`; none has a `*` unless `any_starred`."""
    beginnings = tuple(patterns)
    found: list[int] = []
    for spelling in spellings:
        # No spelling holds a `*` or `$`: a pattern without `*` matches if this begins with it, `$` being its end.
        with_end = f"{spelling}$"
        if with_end.startswith(beginnings):
            found += [place for place, pattern in enumerate(patterns) if with_end.startswith(pattern)]
        if any_starred:
            found += _starred_matches(patterns, spelling, with_end)
    return found


def _starred_matches(patterns: Sequence[str], spelling: str, with_end: str) -> list[int]:
    starred = [pattern for pattern in patterns if "*" in pattern]
    if len(starred) <= FEW_STARRED:
        # What stands behind the last `*` sets rules of one kind apart.
        candidates = [pattern for pattern in starred if pattern.rstrip("*").rpartition("*")[2] in with_end]
    else:
        there = grams_of(with_end)
        candidates = [pattern for pattern in dict.fromkeys(starred) if there.issuperset(REQUIRED.findall(pattern))]
    matching = {pattern for pattern in candidates if matches(pattern, spelling)}
    return [place for place, pattern in enumerate(patterns) if pattern in matching] if matching else []
