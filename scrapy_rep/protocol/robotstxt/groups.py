"""All that a robots.txt says, line by line: its groups, and what is ignored (RFC 9309 sections 2.1, 2.2 and 2.2.4)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.protocol.robotstxt.syntax import PATTERN_STARTS, RECORDS, WHITE_SPACE, Directive, searchable

# Each has one group.
_RECORD = re.compile("|".join(expression.pattern for expression in RECORDS.values()), re.ASCII)
_DIRECTIVES = tuple(RECORDS)

_SECONDS = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Group:
    """The rules that follow one run of user-agent lines (2.1)."""

    product_tokens: tuple[str, ...]
    """Lower case, each once, in their order; a line that names nobody has none."""
    rules: tuple[Rule, ...]
    crawl_delay: float | None
    """Seconds, finite, not negative; the largest that the group names."""


# What is told of each line that is ignored: its number and the reason.
Report = Callable[[int, str], None]


def unreported(_line: int, _reason: str) -> None:
    return None


def read_groups(octets: bytes, report: Report = unreported) -> tuple[Group, ...]:
    """All groups, in their order."""
    reader = _Reader(report)
    reader.read(octets)
    return tuple(reader.groups)


def _records(octets: bytes, report: Report) -> Iterator[tuple[int, Directive, str]]:
    """Line number, directive and value of each record; of a user-agent line the token."""
    for number, line in enumerate(searchable(octets)[1:].split("\n"), start=1):
        record = line.partition("#")[0].strip(WHITE_SPACE)
        if not record:
            continue
        if found := _RECORD.match(f"\n{record}"):
            place = found.lastindex or 0  # never that
            yield number, _DIRECTIVES[place - 1], found[place]
        else:
            report(number, "unknown key" if ":" in record else "no colon")


class _Reader:
    def __init__(self, report: Report) -> None:
        self._report = report
        self.groups: list[Group] = []
        self._open = False
        # The group being read; a user-agent line after a rule closes it.
        self._tokens: dict[str, None] = {}
        self._rules: list[Rule] = []
        self._delay: float | None = None
        self._had_rule = False

    def read(self, octets: bytes) -> None:
        for number, directive, value in _records(octets, self._report):
            if directive is Directive.USER_AGENT:
                self._user_agent(number, value)
            elif directive is Directive.SITEMAP:
                if not value:
                    self._report(number, "no address")
            elif not self._open:
                self._report(number, f"{directive.spellings[0]} before the first user-agent line")
            elif directive is Directive.CRAWL_DELAY:
                self._crawl_delay(number, value)
            else:
                self._rule(number, directive is Directive.ALLOW, value)
        self._close()

    def _close(self) -> None:
        if self._open:
            self.groups.append(Group(tuple(self._tokens), tuple(self._rules), self._delay))
        self._tokens, self._rules, self._delay, self._had_rule = {}, [], None, False

    def _user_agent(self, number: int, token: str) -> None:
        if self._had_rule:
            self._close()
        self._open = True
        if token:
            self._tokens[token.lower()] = None
        else:
            self._report(number, "names no product token")

    def _rule(self, number: int, allow: bool, value: str) -> None:
        # Also an empty one, and one that matches nothing, ends the run of user-agent lines.
        self._had_rule = True
        if not value:
            return
        if not value.startswith(PATTERN_STARTS):
            self._report(number, "begins with neither / nor *")
            return
        self._rules.append(Rule(number, allow, value.encode("latin-1")))

    def _crawl_delay(self, number: int, value: str) -> None:
        seconds = float(value) if _SECONDS.fullmatch(value) else math.inf
        if not math.isfinite(seconds):
            self._report(number, "no finite number of seconds")
        elif self._delay is None or seconds > self._delay:
            self._delay = seconds
