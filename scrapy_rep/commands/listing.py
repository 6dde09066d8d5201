"""`--show`: the numbered lines of a robots.txt, with marks at the groups that are obeyed and the line that decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scrapy_rep.protocol.foreign_text import printable, text_of
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.syntax import Directive

GROUP_KEYS = {directive.key for directive in Directive} - {Directive.SITEMAP.key}
AROUND = 3  # lines to show before and after the line that decides


def listing(robots: RobotsTxt, product_token: str | None, deciding: int | None, *, whole: bool) -> Iterator[str]:
    """Yield lines of robots.txt, each after a mark: `>` for the line that decides, `|` in a group that is obeyed.

    With `whole`, all lines are shown. Otherwise `...` stands for lines that are left out, and these lines are shown:

    - if a line decides: the lines around it, and the user-agent lines of the groups that are obeyed;
    - if no line decides: the groups that are obeyed.
    """
    lines = robots.octets.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    width = len(str(len(lines)))
    obeyed = obeyed_lines(robots, product_token)
    matter = obeyed
    if deciding is not None:
        user_agents = {record.line for record in robots.records if record.key == "user-agent"}
        matter = user_agents & obeyed | set(range(deciding - AROUND, deciding + AROUND + 1))
    before = 0
    for number, line in enumerate(lines, start=1):
        if whole or number in matter:
            if number > before + 1:
                yield "  ..."
            mark = ">" if number == deciding else "|" if number in obeyed else " "
            yield f"{mark} {number:>{width}}  {printable(text_of(line).expandtabs(4), None)}"
            before = number
    if matter and before < len(lines):
        yield "  ..."


def obeyed_lines(robots: RobotsTxt, product_token: str | None) -> set[int]:
    """Return the numbers of the lines of each group that is obeyed, from the group's first record to its last."""
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
