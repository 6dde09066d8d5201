"""Which of many patterns match a URL, without preparation: for the first question (RFC 9309 section 2.2.2).

Many origins are asked about one URL and never again, so nothing is sorted for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from scrapy_rep.protocol.robotstxt.patterns import matches

# Below these many it is faster to try each (measured: tests/benchmarks/speed.py, sizes).
FEW_STARRED = 100

GRAM = 4  # octets of a text by which patterns are looked up: fewer exclude less, more make a larger index
# All that a pattern requires, in grams: every octet of it but `*`, so that few patterns are tried in vain.
REQUIRED = re.compile(rf"[^*]{{1,{GRAM}}}")

# One stranger's patterns and another's URLs can be made for each other, so that each comparison takes long. No
# robots.txt of the web comes near to these bounds with a URL of less than 16 kB.
MAX_COMPARED = 2**25  # octets that are looked at to compare a URL with all patterns; about 20 ms
MAX_TARGET = 16_384  # octets of a URL that is compared with many patterns; RFC 9110 4.1 recommends 8 000


class TooCostlyError(Exception):
    """Comparing the URL with the rules would take too long."""


def grams_of(text: str, sizes: Sequence[int] = range(1, GRAM + 1)) -> set[str]:
    """All texts of these sizes that stand in it."""
    return {text[at : at + size] for size in sizes for at in range(len(text) - size + 1)}


def is_starred(pattern: str) -> bool:
    """Whether it has a `*` that is not at its end, where it changes nothing."""
    return "*" in pattern.rstrip("*$")


def check_length(spelling: str, patterns: Iterable[str]) -> None:
    """Raises TooCostlyError for a spelling that is too long to be compared with many patterns."""
    if len(spelling) > MAX_TARGET and any(map(is_starred, patterns)):
        raise TooCostlyError


def affordable(patterns: list[str], spelling: str) -> list[str]:
    """Those of the patterns that may match the spelling. Raises TooCostlyError if it would take too long to find out.

    Whether it raises depends on those alone whose texts may stand in the spelling, not on the others.
    """
    octets = len(spelling)
    if 2 * octets * sum(map(len, patterns)) <= MAX_COMPARED:  # more than what is counted below
        return patterns
    grams = grams_of(f"{spelling}$")
    found = [pattern for pattern in dict.fromkeys(patterns) if grams.issuperset(REQUIRED.findall(pattern))]
    starred = list(filter(is_starred, found))
    # A search looks at each octet once, and at more where the spelling goes on as the text begins.
    if octets * sum(pattern.count("*") for pattern in starred) <= MAX_COMPARED:
        counts = Counter(spelling[at : at + GRAM] for at in range(octets))
        texts = chain.from_iterable(pattern.split("*") for pattern in starred)
        if sum(octets + len(text) * counts[text[:GRAM]] for text in texts) <= MAX_COMPARED:
            return found
    raise TooCostlyError


def matching_places(
    patterns: Sequence[str], spellings: Sequence[str], any_starred: bool, never_costly: int
) -> list[int]:
    """The places of the patterns that match one of a URL's `spellings`; none has a `*` unless `any_starred`.

    Raises TooCostlyError, only for spellings with more than `never_costly` octets.
    """
    beginnings = tuple(patterns)
    found: list[int] = []
    for spelling in spellings:
        # No spelling holds a `*` or `$`: a pattern without `*` matches if this begins with it, `$` being its end.
        with_end = f"{spelling}$"
        if with_end.startswith(beginnings):
            found += [place for place, pattern in enumerate(patterns) if with_end.startswith(pattern)]
        if any_starred:
            found += _starred_matches(patterns, spelling, may_be_costly=len(spelling) > never_costly)
    return found


def _starred_matches(patterns: Sequence[str], spelling: str, *, may_be_costly: bool) -> list[int]:
    starred = [pattern for pattern in patterns if "*" in pattern]
    if may_be_costly:
        check_length(spelling, starred)
        candidates = affordable(starred, spelling)
    elif len(starred) <= FEW_STARRED:
        # The text behind the last `*` tells rules of one kind apart.
        with_end = f"{spelling}$"
        candidates = [pattern for pattern in starred if pattern.rstrip("*").rpartition("*")[2] in with_end]
    else:
        grams = grams_of(f"{spelling}$")
        candidates = [pattern for pattern in dict.fromkeys(starred) if grams.issuperset(REQUIRED.findall(pattern))]
    matching = {pattern for pattern in candidates if matches(pattern, spelling)}
    return [place for place, pattern in enumerate(patterns) if pattern in matching] if matching else []
