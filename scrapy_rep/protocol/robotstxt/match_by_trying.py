"""Which patterns match a URL, found by trying each, without any preparation (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scrapy_rep.protocol.robotstxt.comparison_cost import affordable, is_within_bound
from scrapy_rep.protocol.robotstxt.patterns import matches


def matching_places(patterns: Sequence[str], spellings: Sequence[str], octets: int, *, any_starred: bool) -> list[int]:
    """The places of the patterns that match one of a URL's `spellings`. Raises TooCostlyError.

    `octets`: of all patterns together. `any_starred`: whether any of them has a `*`.
    """
    beginnings = tuple(patterns)
    found: list[int] = []
    for spelling in spellings:
        # No spelling holds a `*` or `$`: a pattern without `*` matches if this begins with it, `$` being its end.
        with_end = f"{spelling}$"
        if with_end.startswith(beginnings):
            found += [place for place, pattern in enumerate(patterns) if with_end.startswith(pattern)]
        if any_starred:
            found += _starred_matches(patterns, spelling, octets)
    return found


def _starred_matches(patterns: Sequence[str], spelling: str, octets: int) -> list[int]:
    candidates: Collection[str] = {pattern for pattern in patterns if "*" in pattern}
    if not is_within_bound(spelling, octets):  # as if each pattern had a `*`, which is faster to say
        candidates = affordable(spelling, candidates)
    # The text behind the last `*` tells rules of one kind apart.
    with_end = f"{spelling}$"
    likely = [pattern for pattern in candidates if pattern.rstrip("*").rpartition("*")[2] in with_end]
    matching = {pattern for pattern in likely if matches(pattern, spelling)}
    return [place for place, pattern in enumerate(patterns) if pattern in matching] if matching else []
