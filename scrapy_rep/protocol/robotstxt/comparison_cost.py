"""What comparing a URL with patterns may cost at most (RFC 9309 section 3).

Patterns and URLs can be made for each other, so that each comparison takes long. Only patterns with a `*` before their
end can; all others are compared octet by octet, once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

# Octets of a URL times octets of the patterns with `*` that it is compared with; about 20 ms. The number of `*` alone
# says too little: the search for one text may look at the same octets of the URL again and again.
MAX_COMPARED = 2**26
# Octets of a URL that is cut into grams. RFC 9110 4.1 recommends that servers take 8 000.
MAX_TARGET = 16_384

# A gram is a piece of a text. A pattern can match only if each of its grams stands somewhere in the URL.
GRAM = 4  # octets at most: shorter pieces exclude fewer patterns, longer ones make a larger index
# Finds a pattern's grams: `/shop/*/x$` has `/sho`, `p/` and `/x$`.
REQUIRED = re.compile(rf"[^*]{{1,{GRAM}}}")


class TooCostlyError(Exception):
    """Comparing the URL with the rules would take too long."""


def is_affordable(spelling: str, octets: int) -> bool:
    """Whether a URL may be compared with patterns of so many `costly_octets`."""
    return len(spelling) * octets <= MAX_COMPARED


def costly_octets(patterns: Iterable[str]) -> int:
    """Octets of the patterns that have a `*` before their end."""
    return sum([len(pattern) for pattern in patterns if "*" in pattern.rstrip("*$")])


def affordable(spelling: str, patterns: Collection[str]) -> Collection[str]:
    """All of the patterns, each given once, if the spelling may be compared with all of them; else those whose grams
    stand in it. Raises TooCostlyError if even these are too many, or the spelling is too long to be cut into grams."""
    if is_affordable(spelling, costly_octets(patterns)):
        return patterns
    if len(spelling) > MAX_TARGET:
        raise TooCostlyError
    grams = grams_of(f"{spelling}$")
    patterns = [pattern for pattern in patterns if grams.issuperset(REQUIRED.findall(pattern))]
    if not is_affordable(spelling, costly_octets(patterns)):
        raise TooCostlyError
    return patterns


def grams_of(text: str, sizes: Sequence[int] = range(1, GRAM + 1)) -> set[str]:
    """All texts of these sizes that stand in it."""
    return {text[at : at + size] for size in sizes for at in range(len(text) - size + 1)}
