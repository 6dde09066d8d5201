"""What comparing a URL with patterns may cost at most (RFC 9309 section 3).

One stranger's patterns and another's URLs can be made for each other, so that each comparison takes long. Only patterns
with a `*` that is not at their end take longer than the octets that they share with the URL.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

# Octets of a URL times octets of the patterns with `*` that it is compared with; about 20 ms. The number of `*` alone
# says too little: the search for one text may look at the same octets of the URL again and again.
MAX_COMPARED = 2**26
# Octets of a URL of which grams are taken. RFC 9110 4.1 recommends that servers take 8 000.
MAX_TARGET = 16_384

GRAM = 4  # octets of a text by which patterns are looked up: fewer exclude less, more make a larger index
# All that a pattern requires, in grams: every octet of it but `*`, so that few patterns are tried in vain.
REQUIRED = re.compile(rf"[^*]{{1,{GRAM}}}")


class TooCostlyError(Exception):
    """Comparing the URL with the rules would take too long."""


def octets_with_star(patterns: Iterable[str]) -> int:
    """Octets of the patterns that have a `*` before their end; at the end it changes nothing."""
    return sum([len(pattern) for pattern in patterns if "*" in pattern.rstrip("*$")])


def is_costly(spelling: str, octets: int) -> bool:
    """Whether it takes too long to compare a URL's spelling with patterns of so many `octets_with_star`, unless
    `affordable` excludes some of them. Raises TooCostlyError for a spelling that is too long even for that."""
    if len(spelling) * octets <= MAX_COMPARED:
        return False
    if len(spelling) > MAX_TARGET:
        raise TooCostlyError
    return True


def affordable(spelling: str, patterns: Collection[str]) -> Collection[str]:
    """The patterns, different ones, or those of them that may match the spelling: all their grams stand in it.

    Raises TooCostlyError if it takes too long to compare the spelling with the latter. So whether it raises does not
    depend on other patterns, which an index may have excluded before.
    """
    if not is_costly(spelling, octets_with_star(patterns)):
        return patterns
    grams = grams_of(f"{spelling}$")
    patterns = [pattern for pattern in patterns if grams.issuperset(REQUIRED.findall(pattern))]
    if is_costly(spelling, octets_with_star(patterns)):
        raise TooCostlyError
    return patterns


def grams_of(text: str, sizes: Sequence[int] = range(1, GRAM + 1)) -> set[str]:
    """All texts of these sizes that stand in it."""
    return {text[at : at + size] for size in sizes for at in range(len(text) - size + 1)}
