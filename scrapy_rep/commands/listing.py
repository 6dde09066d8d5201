"""A robots.txt for people: its lines by number, with marks at the groups that are obeyed and the line that decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scrapy_rep.protocol.foreign_text import text_of
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.syntax import Directive
from scrapy_rep.text import printable

GROUP_KEYS = {directive.key for directive in Directive} - {Directive.SITEMAP.key}
AROUND = 3  # lines that are shown before and after the one that decides


def listing(robots: RobotsTxt, product_token: str | None, deciding: int | None, *, whole: bool) -> Iterator[str]:
    """Its lines, each after a mark: `>` for the one that decides, `|` for the groups that are obeyed, else a space.

    Unless `whole`, only those that matter: the user-agent lines of these groups and the lines around the one that
    decides, or the groups if no line decides. `...` stands for lines that are left out.
    """
    lines = robots.octets.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    width = len(str(len(lines)))
    obeyed = obeyed_lines(robots, product_token)
    shown = range(1, len(lines) + 1) if whole else _lines_that_matter(robots, obeyed, deciding)
    before = 0
    for number in (number for number in shown if number <= len(lines)):
        if number > before + 1:
            yield "  ..."
        mark = ">" if number == deciding else "|" if number in obeyed else " "
        yield f"{mark} {number:>{width}}  {printable(text_of(lines[number - 1]).expandtabs(4), None)}"
        before = number
    if shown and before < len(lines):
        yield "  ..."


def _lines_that_matter(robots: RobotsTxt, obeyed: set[int], deciding: int | None) -> list[int]:
    if deciding is None:
        return sorted(obeyed)
    user_agents = {record.line for record in robots.records if record.key == "user-agent"}
    return sorted(user_agents & obeyed | set(range(max(deciding - AROUND, 1), deciding + AROUND + 1)))


def obeyed_lines(robots: RobotsTxt, product_token: str | None) -> set[int]:
    """The numbers of all lines from the first record to the last of each group that is obeyed."""
    obeyed: set[int] = set()
    if product_token is not None:
        lines: defaultdict[int | None, list[int]] = defaultdict(list)
        for record in robots.records:
            if record.key in GROUP_KEYS:
                lines[record.group].append(record.line)
        for number, group in enumerate(robots.groups):
            if product_token.lower() in group.product_tokens:
                obeyed.update(range(lines[number][0], lines[number][-1] + 1))
    return obeyed
