"""Which of many rules is the most specific match: made for asking once (RFC 9309 section 2.2.2).

Of many origins one URL is all that is ever asked about, so nothing is put in order for it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

from .patterns import matches

FEW_STARRED = 100  # patterns that are sooner tried one by one than looked up
GRAM = 4  # octets
SHORT = 2  # octets of a text that sets few patterns apart


def places_of_matches(patterns: Sequence[str], spellings: Sequence[str], starred: bool) -> list[int]:
    """Of patterns the places of those that match a URL's `spellings`; none has a `*` unless `starred`."""
    prefixes = tuple(patterns)
    found: list[int] = []
    for spelling in spellings:
        # In no spelling stands a `*` or `$`: what a pattern without `*` says is how this begins, up to its end for `$`.
        target = f"{spelling}$"
        if target.startswith(prefixes):
            found += [place for place, pattern in enumerate(patterns) if target.startswith(pattern)]
        if starred:
            found += _starred_matches(patterns, target, spelling)
    return found


def _starred_matches(patterns: Sequence[str], target: str, spelling: str) -> list[int]:
    starred = [pattern for pattern in patterns if "*" in pattern]
    if len(starred) > FEW_STARRED:
        candidates = _candidates(dict.fromkeys(starred), target)
    else:  # what stands behind the last `*` sets rules of one kind apart
        candidates = [pattern for pattern in starred if pattern.rstrip("*").rpartition("*")[2] in target]
    matching = {pattern for pattern in candidates if matches(pattern, spelling)}
    return [place for place, pattern in enumerate(patterns) if pattern in matching] if matching else []


# How the first text begins that a pattern requires and that is not short; else the last.
_REQUIRED = re.compile(rf"\n(?:[^*\n]{{0,{SHORT}}}\*)*([^*\n]{{0,{GRAM}}})")


def _candidates(starred: Iterable[str], target: str) -> list[str]:
    """Those of the patterns that may match: how each of their texts begins and ends stands somewhere."""
    there = {target[at : at + size] for size in range(GRAM + 1) for at in range(len(target) - size + 1)}
    required = _REQUIRED.findall("\n" + "\n".join(starred))
    candidates = [pattern for pattern, gram in zip(starred, required, strict=True) if gram in there]
    return [pattern for pattern in candidates if _may_match(pattern, there)]


def _may_match(pattern: str, there: Container[str]) -> bool:
    for text in pattern.split("*"):  # noqa: SIM110 - `all` takes half as long again
        if text[-GRAM:] not in there or text[:GRAM] not in there:
            return False
    return True
