"""A robots.txt for people: its lines numbered, the groups that are obeyed marked, the rule that decides pointed at."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Rule, text_of
from scrapy_rep.text import printable

GROUP_KEYS = {"user-agent", "allow", "disallow", "crawl-delay"}
_LINE_END = re.compile(rb"\r\n|\r|\n")


def listing(robots: RobotsTxt, product_token: str | None, rule: Rule | None) -> Iterator[tuple[str, str]]:
    """A mark and the line with it: `>` the rule, `|` a line of an obeyed group, else a space."""
    lines = _LINE_END.split(robots.octets)
    if lines[-1] == b"":
        lines.pop()
    width = len(str(len(lines)))
    obeyed = obeyed_lines(robots, product_token)
    for number, line in enumerate(lines, start=1):
        mark = ">" if rule is not None and number == rule.line else "|" if number in obeyed else " "
        yield mark, f"{mark} {number:>{width}}  {printable(text_of(line).expandtabs(4), None)}"


def obeyed_lines(robots: RobotsTxt, product_token: str | None) -> set[int]:
    """The numbers of the lines between the first and the last record of each group that is obeyed."""
    if product_token is None:
        return set()
    obeyed: set[int] = set()
    for group, lines in zip(robots.groups, _lines_of_groups(robots), strict=True):
        if product_token.lower() in group.product_tokens:
            obeyed.update(lines)
    return obeyed


def _lines_of_groups(robots: RobotsTxt) -> list[range]:
    """Of each group, the lines from its first record to its last."""
    lines: list[range] = []
    for record in robots.records:
        if record.group is None or record.key not in GROUP_KEYS:
            continue
        if record.group == len(lines):
            lines.append(range(record.line, record.line))
        lines[-1] = range(lines[-1].start, record.line + 1)
    return lines
