"""What a robots.txt says, line by line: its records, its groups, and what is ignored (RFC 9309 2.1, 2.2 and 2.2.4)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from scrapy_rep.protocol.foreign_text import text_of
from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.protocol.robotstxt.syntax import (
    PATTERN_STARTS,
    RECORDS,
    TOKEN,
    WHITE_SPACE,
    Directive,
    searchable,
)

# Each has one group.
_RECORD = re.compile("|".join(expression.pattern for expression in RECORDS.values()), re.ASCII)
_DIRECTIVES = tuple(RECORDS)
_USER_AGENT, _ALLOW, _DISALLOW, _CRAWL_DELAY, _SITEMAP, *_USAGE = (directive.key for directive in Directive)
_KNOWN = {directive.key for directive in Directive}

_SECONDS = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
    crawl_delays: Mapping[str, float]
    """Seconds between requests by product token, finite and not negative; a token without a delay is not in it. A delay
    belongs to the user-agent lines above it, up to the delay before it."""


# What is told of each line that is ignored: its number and the reason.
Report = Callable[[int, str], None]


def unreported(_line: int, _reason: str) -> None:
    return None


def read_records(octets: bytes, report: Report = unreported) -> Iterator[Record]:
    """All lines with a key and a value, in their order."""
    group, had_rule = -1, True
    for number, text in enumerate(searchable(octets)[1:].split("\n"), start=1):
        line = text.partition("#")[0].strip(WHITE_SPACE)
        if not line:
            continue
        if found := _RECORD.match(f"\n{line}"):
            place = found.lastindex or 0  # never that
            key, value = _DIRECTIVES[place - 1].key, line[found.start(place) - 1 :]
        elif ":" in line:
            key, _, value = line.partition(":")
            key, value = text_of(key.rstrip(WHITE_SPACE).encode("latin-1")).lower(), value.lstrip(WHITE_SPACE)
        else:
            report(number, "no colon")
            continue
        if key == _USER_AGENT and had_rule:
            group, had_rule = group + 1, False
        # An empty rule, and one that can match nothing, ends the run of user-agent lines as well.
        had_rule = had_rule or key in {_ALLOW, _DISALLOW}
        yield Record(number, None if group < 0 or key == _SITEMAP else group, key, value.encode("latin-1"))


def read_groups(octets: bytes, report: Report = unreported) -> tuple[Group, ...]:
    """All groups, in their order."""
    groups: list[_GroupReader] = []
    for record in read_records(octets, report):
        if record.group == len(groups):
            groups.append(_GroupReader())
        if record.key == _SITEMAP:
            reason = "" if record.octets else "no address"
        elif record.key not in _KNOWN:
            reason = "unknown key"
        elif record.group is None:
            reason = f"{record.key} before the first user-agent line"
        else:
            reason = groups[-1].read(record)
        if reason:
            report(record.line, reason)
    return tuple(group.read_group() for group in groups)


def token_of(octets: bytes) -> str:
    """The product token of a user-agent line with that value, in lower case; empty if it names nobody."""
    return TOKEN.match(octets.decode("latin-1"))[0].lower()  # type: ignore[index]  # it matches anything


def seconds_of(delay: str) -> float | None:
    """The value of a Crawl-delay in seconds; None if it is no finite number, or negative."""
    seconds = float(delay) if _SECONDS.fullmatch(delay) else math.inf
    return seconds if math.isfinite(seconds) else None


@dataclass(slots=True)
class _GroupReader:
    tokens: dict[str, None] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    delays: dict[str, float] = field(default_factory=dict)
    # The tokens that the next delay belongs to, and the largest delay that they have so far.
    delayed: list[str] = field(default_factory=list)
    delay: float | None = None
    had_delay: bool = False

    def read(self, record: Record) -> str:
        """The reason why the record is ignored; empty if it is not."""
        value = record.octets.decode("latin-1")
        if record.key == _USER_AGENT:
            return self._user_agent(token_of(record.octets))
        if record.key == _CRAWL_DELAY:
            return self._crawl_delay(value)
        if record.key in _USAGE:  # read elsewhere
            return ""
        if value.startswith(PATTERN_STARTS):
            self.rules.append(Rule(record.line, record.key == _ALLOW, record.octets))
        elif value:
            return "begins with neither / nor *"
        return ""

    def _user_agent(self, token: str) -> str:
        if self.had_delay:
            self._assign_delay()
        if not token:
            return "names no product token"
        self.tokens[token] = None
        self.delayed.append(token)
        return ""

    def _crawl_delay(self, value: str) -> str:
        self.had_delay = True
        seconds = seconds_of(value)
        if seconds is None:
            return "no finite number of seconds"
        self.delay = seconds if self.delay is None else max(self.delay, seconds)
        return ""

    def _assign_delay(self) -> None:
        if self.delay is not None:
            for token in self.delayed:
                self.delays[token] = max(self.delay, self.delays.get(token, self.delay))
        self.delayed, self.delay, self.had_delay = [], None, False

    def read_group(self) -> Group:
        self._assign_delay()
        return Group(tuple(self.tokens), tuple(self.rules), self.delays)
