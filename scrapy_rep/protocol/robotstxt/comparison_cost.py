"""What comparing a URL with patterns may cost at most (RFC 9309 section 3).

Patterns and URLs can be made for each other, so that each comparison takes long. Only patterns with a `*` before their
end can; all other patterns are compared octet by octet, once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable

# Octets of a URL times octets of the patterns with `*` that it is compared with; about 20 ms. The number of `*` alone
# says too little: the search for one text may look at the same octets of the URL again and again.
MAX_COMPARED = 2**26
# Octets of a URL that is cut into grams. RFC 9110 4.1 recommends that servers take 8 000.
MAX_TARGET = 16_384

# A gram is a piece of a text. A pattern can match only if each of its grams stands somewhere in the URL. Few do,
# so real files with 18,000 octets of patterns with `*` can be compared with URLs of more than 4,000 octets, too.
GRAM = 4  # octets at most; shorter pieces exclude fewer patterns. `/shop/*/x$` has `/sho`, `p/` and `/x$`
_GRAMS = re.compile(rf"[^*]{{1,{GRAM}}}")


class TooCostlyError(Exception):
    """Comparing the URL with the rules would take too long."""


def longest_affordable(patterns: Iterable[str]) -> float:
    """Octets of the longest URL that may be compared with all of these patterns."""
    octets = sum([len(pattern) for pattern in patterns if "*" in pattern.rstrip("*$")])
    return MAX_COMPARED / octets if octets else math.inf


def affordable(spelling: str, patterns: Collection[str]) -> Collection[str]:
    """All of the patterns, each given once, if the spelling may be compared with all of them; else the patterns whose
    grams stand in it. Raises TooCostlyError if even these are too many, or the spelling is too long to be cut into
    grams."""
    # First as if each pattern had a `*` before its end, which is faster to say.
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
