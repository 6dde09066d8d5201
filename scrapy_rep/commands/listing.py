"""A robots.txt for people: its lines numbered, the groups that are obeyed marked, the rule that decides pointed at."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Rule, text_of
from scrapy_rep.text import printable

_LINE_END = re.compile(rb"\r\n|\r|\n")


def listing(robots: RobotsTxt, product_token: str | None, rule: Rule | None) -> Iterator[tuple[str, str]]:
    """A mark and the line with it: `>` the rule, `|` a line of an obeyed group, else a space."""
    lines = _LINE_END.split(robots.octets)
    if lines[-1] == b"":
        lines.pop()
    width = len(str(len(lines)))
    obeyed = obeyed_lines(robots, lines, product_token)
    for number, line in enumerate(lines, start=1):
        mark = ">" if rule is not None and number == rule.line else "|" if number in obeyed else " "
        yield mark, f"{mark} {number:>{width}}  {printable(text_of(line).expandtabs(4))}"


def obeyed_lines(robots: RobotsTxt, lines: list[bytes], product_token: str | None) -> set[int]:
    """The numbers of the lines between the first and the last record of each group that is obeyed."""
    obeyed: set[int] = set()
    if product_token is None:
        return obeyed
    spans = list(_spans(lines))
    for group, (first, last) in zip(robots.groups, spans, strict=False):
        if product_token.lower() in group.product_tokens:
            obeyed.update(range(first, last + 1))
    return obeyed


def _spans(lines: list[bytes]) -> Iterator[tuple[int, int]]:
    """First and last line of each group, in their order. What a line is, the parser says: a user-agent line alone makes
    a group; a rule between two of them makes a second one."""
    first = last = 0
    had_rule = False
    for number, line in enumerate(lines, start=1):
        if not line.partition(b"#")[0].strip(b" \t"):
            continue
        if RobotsTxt.parse(line).groups:
            if had_rule:
                yield first, last
                first, had_rule = 0, False
            first, last = first or number, number
        elif first and (is_rule := _is_rule(line)) is not None:
            last, had_rule = number, had_rule or is_rule
    if first:
        yield first, last


def _is_rule(line: bytes) -> bool | None:
    """None for a line that is of no group."""
    parsed = RobotsTxt.parse(b"user-agent: x\n" + line + b"\nuser-agent: y\n")
    if len(parsed.groups) > 1:
        return True
    return False if any(group.crawl_delay is not None for group in parsed.groups) else None
