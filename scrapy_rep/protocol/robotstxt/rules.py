"""Rules, the longest match of which decides (RFC 9309 section 2.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scrapy_rep.protocol.access_result import AccessResult


def text_of(octets: bytes) -> str:
    """Octets of a robots.txt as text for people: UTF-8, or Latin-1 where they are none. Never raises."""
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


@dataclass(frozen=True, slots=True)
class Rule:
    """One allow or disallow line."""

    line: int
    """Counted from 1."""
    allow: bool
    octets: bytes
    """Its value, as it stands in the file."""

    @property
    def pattern(self) -> str:
        """Its value as written, for people: UTF-8, or Latin-1 where the octets are none."""
        return text_of(self.octets)

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be fetched, and why."""

    allowed: bool
    rule: Rule | None = None
    """The rule that decided; None where none matched."""
    product_token: str | None = None
    """The crawler's token by which the deciding group was found, as given, or `*`; None where no group applied."""
    access: AccessResult = AccessResult.SUCCESS
    robots_url: str | None = None
    """The address asked for, of the initial authority; None for a body parsed without one."""


def most_specific(places: Sequence[int], patterns: Sequence[str], allow: Sequence[int]) -> int:
    """Of patterns that match the one that decides, by their places: that of the most octets, `*` and `$` counted; of
    equals the first that allows, else the first (2.2.2)."""
    most = max([len(patterns[place]) for place in places])
    longest = [place for place in places if len(patterns[place]) == most]
    return min([place for place in longest if allow[place]] or longest)
