"""Limits on the time that comparing a URL with patterns may take (RFC 9309 section 3).

An attacker can write patterns and URLs whose comparison takes a long time, if the patterns have a `*` before their end.
All other patterns are compared octet by octet, once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable

# The limit for the octets of a URL times the octets of the patterns with `*`: about 20 ms. All octets of a pattern
# count, because the search for a text between two `*` may read the same octets of the URL many times.
MAX_COMPARED = 2**26

# A gram is a short piece of a text: the grams of `/shop/*/x$` are `/sho`, `p/` and `/x$`. A URL must contain all grams
# of a pattern to match it, so few patterns have to be compared with a long URL. Without grams, no URL of more than
# 4,000 octets could be compared with a real file whose patterns with `*` have 18,000 octets.
MAX_TARGET = 16_384  # octets of a URL that is cut into grams; RFC 9110 4.1 recommends support for 8 000
GRAM = 4  # octets, or fewer at the end of a text
_GRAMS = re.compile(rf"[^*]{{1,{GRAM}}}")


class TooCostlyError(Exception):
    """Raised if comparing the URL with the rules would take too long."""


def longest_affordable(patterns: Iterable[str]) -> float:
    """Return the most octets of a URL that may be compared with all of these patterns."""
    octets = sum([len(pattern) for pattern in patterns if "*" in pattern.rstrip("*$")])
    return MAX_COMPARED / octets if octets else math.inf


def affordable(spelling: str, patterns: Collection[str]) -> Collection[str]:
    """Return the patterns that a spelling of a URL has to be compared with. No pattern may be given twice.

    If comparing all takes too long, only the patterns whose grams the spelling contains are returned. TooCostlyError is
    then raised if comparing these takes too long, too, or if the spelling has more than MAX_TARGET octets.
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
