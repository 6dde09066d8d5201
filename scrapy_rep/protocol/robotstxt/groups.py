"""What a robots.txt says, line by line: its records, its groups, and what is ignored (RFC 9309 2.1, 2.2 and 2.2.4).

For people, and for who reads other directives; a verdict needs none of this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat

from scrapy_rep.protocol.foreign_text import text_of
from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.protocol.robotstxt.segments import Segments
from scrapy_rep.protocol.robotstxt.syntax import (
    PATTERN_STARTS,
    RECORDS,
    TOKEN,
    WHITE_SPACE,
    Directive,
    searchable,
    seconds_of,
)

# Each directive has one group in it, in their order.
_RECORD = re.compile("|".join(expression.pattern for expression in RECORDS.values()), re.ASCII)
_DIRECTIVES = tuple(RECORDS)
_RULE_KEYS = {Directive.ALLOW.key, Directive.DISALLOW.key}
# By `usage.statements`.
_READ_ELSEWHERE = {Directive.CONTENT_USAGE.key, Directive.CONTENT_SIGNAL.key}


@dataclass(frozen=True, slots=True)
class Record:
    """A line with a key and a value, whether this package reads the key or not (2.2.4)."""

    line: int
    """Counted from 1."""
    group: int | None
    """The index of its group in `RobotsTxt.groups`; None before the first user-agent line, and for a sitemap, which
    belongs to no group."""
    key: str
    """In lower case. Known misspellings are corrected: `disalow` is `disallow`."""
    octets: bytes
    """The value as it stands in the file, without white space and comment."""

    @property
    def value(self) -> str:
        """The value as text: UTF-8, or Latin-1 where the octets are no UTF-8."""
        return text_of(self.octets)


@dataclass(frozen=True, slots=True)
class Group:
    """The rules that follow one run of user-agent lines (2.1).

    A crawler obeys all groups that name it as if they were one (2.2.1), so one group alone decides nothing.
    """

    product_tokens: tuple[str, ...]
    """The crawlers that it names, in lower case, each once, in their order; `*` is everyone without a group. Empty if
    no user-agent line names a product token."""
    rules: tuple[Rule, ...]
    """In their order; without empty rules and those that can match nothing."""


def read_lines(octets: bytes) -> Iterator[Record | int]:
    """Each line with a key and a value as a record, of each other one that is not empty its number; in their order."""
    group_of_each_segment = chain.from_iterable(
        repeat(number, last - first + 1) for number, (first, last) in enumerate(Segments(octets).runs())
    )
    group: int | None = None
    for number, text in enumerate(searchable(octets)[1:].split("\n"), start=1):
        line = text.partition("#")[0].strip(WHITE_SPACE)
        if not line:
            continue
        if found := _RECORD.match(f"\n{line}"):
            place = found.lastindex or 0  # a directive has one: never 0
            key, value = _DIRECTIVES[place - 1].key, line[found.start(place) - 1 :]
        elif ":" in line:
            key, _, value = line.partition(":")
            key, value = text_of(key.rstrip(WHITE_SPACE).encode("latin-1")).lower(), value.lstrip(WHITE_SPACE)
        else:
            yield number
            continue
        if key == Directive.USER_AGENT.key:
            group = next(group_of_each_segment)
        yield Record(number, None if key == Directive.SITEMAP.key else group, key, value.encode("latin-1"))


def read_records(octets: bytes) -> Iterator[Record]:
    """All lines with a key and a value, in their order."""
    return (line for line in read_lines(octets) if isinstance(line, Record))


def read_groups(records: Iterable[Record]) -> tuple[Group, ...]:
    """The groups that these records make, in their order."""
    groups: list[tuple[dict[str, None], list[Rule]]] = []
    for record in records:
        if record.group is None:
            continue
        if record.group == len(groups):
            groups.append(({}, []))
        tokens, rules = groups[-1]
        if record.key == Directive.USER_AGENT.key and (token := token_of(record.octets)):
            tokens[token] = None
        elif record.key in _RULE_KEYS and record.octets.startswith(PATTERN_STARTS):
            rules.append(Rule(record.line, record.key == Directive.ALLOW.key, record.octets))
    return tuple(Group(tuple(tokens), tuple(rules)) for tokens, rules in groups)


def read_ignored(octets: bytes) -> Iterator[tuple[int, str]]:
    """The number of each line that is ignored, and why, in their order."""
    for line in read_lines(octets):
        if isinstance(line, int):
            yield line, "no colon"
        elif line.key in _READ_ELSEWHERE:
            continue
        elif line.key not in VALUE_FAULTS:
            yield line.line, "unknown key"
        elif line.group is None and line.key != Directive.SITEMAP.key:
            yield line.line, f"{line.key} before the first user-agent line"
        elif fault := VALUE_FAULTS[line.key](line.octets):
            yield line.line, fault


def token_of(octets: bytes) -> str:
    """The product token of a user-agent line with that value, in lower case; empty if it names nobody."""
    return TOKEN.match(octets.decode("latin-1"))[0].lower()  # type: ignore[index]  # it matches anything


def _pattern_fault(octets: bytes) -> str:
    return "begins with neither / nor *" if octets and not octets.startswith(PATTERN_STARTS) else ""


# What is wrong with a value, by directive; empty if it can be read.
VALUE_FAULTS: Mapping[str, Callable[[bytes], str]] = {
    Directive.USER_AGENT.key: lambda octets: "" if token_of(octets) else "names no product token",
    Directive.ALLOW.key: _pattern_fault,
    Directive.DISALLOW.key: _pattern_fault,
    Directive.CRAWL_DELAY.key: lambda octets: (
        "no finite number of seconds" if seconds_of(octets.decode("latin-1")) is None else ""
    ),
    Directive.SITEMAP.key: lambda octets: "" if octets else "no address",
}
