"""`--diff`: which rules and preferences came and went for the crawler from one robots.txt to another, and which URLs
change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from scrapy_rep.commands.findings import CannotTellError, Crawl, Finding, judged, line_in_words, policy_of_file
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.stored_lookup import StoredLookup
from scrapy_rep.commands.urls import body_of
from scrapy_rep.protocol.lifecycle import RobotsPolicy, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.text import printable
from scrapy_rep.usage.statements import Statement, read_statements, statements_for


def is_stored(name: str) -> bool:
    """Whether A or B of `--diff` is an origin, of which REP_STORAGE is asked, and not a file."""
    return "://" in name


def write_diff(
    before: RobotsPolicy, after: RobotsPolicy, crawl: Crawl, lists: Iterable[list[str]], output: Output
) -> None:
    """Raises ValueError for a list of URLs that cannot be read."""
    old, new = judged("/", crawl, before), judged("/", crawl, after)
    for sign, change, ours, others in (("-", "removed", old, new), ("+", "added", new, old)):
        # A line that has only moved is the same.
        known = {replace(line, line=0) for line, _token in _lines(others)}
        for line, token in _lines(ours):
            if replace(line, line=0) not in known:
                output.write_change(
                    {"change": change, "line": line.line, "rule": str(line), "group": token},
                    f"{sign} {line_in_words(line)} (group of {token!r})",
                )
    if old.crawl_delay != new.crawl_delay:
        signs = (("-", old.crawl_delay), ("+", new.crawl_delay))
        output.write_change(
            {"change": "crawl-delay", "before": old.crawl_delay, "after": new.crawl_delay},
            "\n".join(f"{sign} Crawl-delay: {delay:g}" for sign, delay in signs if delay is not None),
        )
    output.for_each(lists, lambda url: _write_both(judged(url, crawl, before), judged(url, crawl, after), output))
    output.finish("" if output.is_list else "nothing changes")


def _lines(front: Finding) -> Iterator[tuple[Rule | Statement, str]]:
    """The rules and statements for the crawler, with the token of their group. `front`: what was found of `/`."""
    robots, token = front.robots, front.verdict.product_token if front.verdict is not None else None
    if robots is not None and token is not None:
        groups = (group for group in robots.groups if token.lower() in group.product_tokens)
        yield from ((rule, token) for group in groups for rule in group.rules)
        lines = statements_for(token, read_statements(robots.octets), robots.octets)
        yield from ((line.statement, token) for line in lines)


def _write_both(before: Finding, after: Finding, output: Output) -> None:
    """What was found out of a URL, if it changes or nothing was."""
    url, kind = printable(before.url, None), f"from {before.word} to {after.word}"
    told = [{"allowed": finding.allowed, "why": finding.why} for finding in (before, after)]
    change = {"url": before.url, "before": told[0], "after": told[1]}
    if before.allowed is None:
        kind = "can't tell"
        output.write_change(change, f"can't tell\t{url}\t{before.why}")
    elif before.allowed is after.allowed:
        kind = "the same"
    else:
        output.write_change(change, f"now {after.word}\t{url}\t{after.why}; before, {before.why}")
    output.count(kind)


class StoredDiff(StoredLookup):
    """Between a file and what is stored of an origin, or between two origins."""

    def __init__(self, lists: Iterable[list[str]], output: Output, crawl: Crawl, names: list[str]) -> None:
        """`names`: A and B."""
        super().__init__(lists, output, crawl)
        self._names = names

    async def answer_all(self) -> None:
        """Raises ValueError if a side is not there."""
        before, after = [await self._side(name) for name in self._names]
        write_diff(before, after, self._crawl, self._lists, self._output)

    async def _side(self, name: str) -> RobotsPolicy:
        if not is_stored(name):
            return policy_of_file(body_of("--diff", name), self._settings.body_limit)
        origin = Origin.of(name)
        if origin is None:
            raise ValueError(f"--diff: {name!r} is no origin; write it as in https://example.com")
        try:
            entry = await self._entry(origin)
        except CannotTellError as exc:
            raise ValueError(f"--diff: {exc}") from None
        # A stored robots.txt that is past its lifetime is compared, too.
        at = entry.stored.received_at if entry.stored is not None else self._gate.now()
        return policy_at(entry, at, self._settings.unreachable_for)
