"""Limits on the time that comparing a URL with patterns may take (RFC 9309 section 3).

An attacker can write patterns and URLs whose comparison takes a long time, if the patterns have a `*` before their end.
All other patterns are compared octet by octet, once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable

# The limit for the octets of a URL times the octets of the patterns with `*`: about 20 ms. The octets count, not only
# the `*`, because the search for one text may read the same octets of the URL many times.
MAX_COMPARED = 2**26
# The most octets of a URL that is cut into grams. RFC 9110 4.1 recommends that servers support 8 000.
MAX_TARGET = 16_384

# A gram is a short piece of a text: the grams of `/shop/*/x$` are `/sho`, `p/` and `/x$`. A URL must contain all grams
# of a pattern to match it, so few patterns have to be compared with a long URL. Without grams, no URL of more than
# 4,000 octets could be compared with a real file whose patterns with `*` have 18,000 octets.
GRAM = 4  # octets, or fewer at the end of a text
_GRAMS = re.compile(rf"[^*]{{1,{GRAM}}}")


class TooCostlyError(Exception):
    """Raised if comparing the URL with the rules would take too long."""


def longest_affordable(patterns: Iterable[str]) -> float:
    """Return how many octets a URL may have to be compared with all of these patterns."""
    octets = sum([len(pattern) for pattern in patterns if "*" in pattern.rstrip("*$")])
    return MAX_COMPARED / octets if octets else math.inf


def affordable(spelling: str, patterns: Collection[str]) -> Collection[str]:
    """Return the patterns that the spelling has to be compared with: all, or only those whose grams it contains.

    Raises TooCostlyError if comparing these takes too long as well, or if the spelling has more than MAX_TARGET octets.
    No pattern may be given twice.
    """
    # The first check counts all patterns, as if each had a `*` before its end. It is the faster one.
    if len(spelling) * sum(map(len, patterns)) <= MAX_COMPARED or len(spelling) <= longest_affordable(patterns):
        return patterns
    if len(spelling) > MAX_TARGET:
        raise TooCostlyError
    with_end = f"{spelling}$"
    grams = {with_end[at : at + size] for size in range(1, GRAM + 1) for at in range(len(with_end) - size + 1)}
    patterns = [pattern for pattern in patterns if grams.issuperset(_GRAMS.findall(pattern))]
    if len(spelling) > longest_affordable(patterns):
        raise TooCostlyError
    return patterns
