"""`--diff`: which rules and preferences came and went for the crawler from one robots.txt to another, and which URLs
change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from scrapy_rep.commands.findings import CannotTellError, Crawl, Finding, judged
from scrapy_rep.commands.output import SOME_REFUSED, Output
from scrapy_rep.commands.stored_lookup import StoredLookup
from scrapy_rep.commands.urls import Urls, body_of
from scrapy_rep.protocol.foreign_text import MAX_RULE
from scrapy_rep.protocol.lifecycle import policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.preferences import Statement, read_statements, statements_for
from scrapy_rep.protocol.robotstxt.rules import Rule, Verdict
from scrapy_rep.text import printable

Line = Rule | Statement


@dataclass(frozen=True, slots=True)
class Side:
    """A or B: one of the two robots.txt files that are compared."""

    judge: Callable[[str], Verdict]
    """Raises ValueError for what is no URL."""
    robots: RobotsTxt | None
    """None if the site has no robots.txt, or it is unreachable."""

    @classmethod
    def of_file(cls, name: str, crawl: Crawl, body_limit: int) -> Side:
        """Raises ValueError if it cannot be read."""
        robots = RobotsTxt.parse(body_of("--diff", name), body_limit)
        return cls(lambda url: crawl.verdict(robots, url), robots)

    def crawl_delay(self, crawl: Crawl) -> float | None:
        """Seconds."""
        return self.robots.crawl_delay(crawl.tokens) if self.robots is not None else None

    def lines(self) -> dict[Line, str]:
        """The rules and statements that are for the crawler, each with the token of its group."""
        if self.robots is None:
            return {}
        token = self.judge("/").product_token
        if token is None:
            return {}
        groups = (group for group in self.robots.groups if token.lower() in group.product_tokens)
        rules = (rule for group in groups for rule in group.rules)
        octets = self.robots.octets
        statements = (line.statement for line in statements_for(token, read_statements(octets), octets))
        return dict.fromkeys((*rules, *statements), token)


def is_stored(name: str) -> bool:
    """Whether a side of `--diff` is an origin, of which REP_STORAGE is asked, and not a file."""
    return "://" in name


class DiffOutput(Output):
    """Writes only what changes: rules as in a diff, then URLs."""

    counted_words = ("from allowed to refused", "from refused to allowed", "the same", "can't tell")

    def write_change(self, change: dict[str, Any], words: str) -> None:
        self._status = SOME_REFUSED
        self._texts.append(json.dumps(change) if self._as_objects else words)

    def write_both(self, before: Finding, after: Finding) -> None:
        """What was found out of a URL, before and after."""
        self._seen += 1
        url = printable(before.url, None)
        sides = {"before": before, "after": after}
        told = {side: {"allowed": finding.allowed, "why": finding.why} for side, finding in sides.items()}
        change = {"url": before.url, **told}
        if before.allowed is None:
            kind, words = "can't tell", f"can't tell\t{url}\t{before.why}"
            self._texts.append(json.dumps(change) if self._as_objects else words)
        elif before.allowed is after.allowed:
            kind = "the same"
        else:
            kind = f"from {before.word} to {after.word}"
            self.write_change(change, f"now {after.word}\t{url}\t{after.why}; before, {before.why}")
        self._counts[kind] += 1

    def finish(self, if_empty: str = "") -> None:
        has_told = self._status == SOME_REFUSED or self._counts["can't tell"] or self._is_list
        super().finish(if_empty if has_told else "nothing changes")


def write_diff(sides: tuple[Side, Side], crawl: Crawl, urls: Urls, output: DiffOutput) -> None:
    """Raises ValueError for a list of URLs that cannot be read."""
    before, after = sides
    for sign, line, token in _changes(before.lines(), after.lines()):
        change = "added" if sign == "+" else "removed"
        output.write_change(
            {"change": change, "line": line.line, "rule": str(line), "group": token},
            f"{sign} line {line.line}, {printable(str(line), MAX_RULE)} (group of {token!r})",
        )
    delays = {"before": before.crawl_delay(crawl), "after": after.crawl_delay(crawl)}
    if delays["before"] != delays["after"]:
        signs = zip("-+", delays.values(), strict=True)
        words = [f"{sign} Crawl-delay: {delay:g}" for sign, delay in signs if delay is not None]
        output.write_change({"change": "crawl-delay", **delays}, "\n".join(words))
    output.for_each(
        urls, lambda url: output.write_both(judged(url, crawl, before.judge), judged(url, crawl, after.judge))
    )


def _changes(before: dict[Line, str], after: dict[Line, str]) -> Iterator[tuple[str, Line, str]]:
    """`-` or `+`, a rule or statement, the token of its group. A rule that has only moved is the same."""
    for sign, ours, others in (("-", before, after), ("+", after, before)):
        left = Counter(map(_without_number, others))
        for line, token in ours.items():
            key = _without_number(line)
            if left[key]:
                left[key] -= 1
            else:
                yield sign, line, token


def _without_number(line: Line) -> tuple[object, ...]:
    if isinstance(line, Rule):
        return line.allow, line.octets
    return line.directive, line.octets, line.text


class StoredDiff(StoredLookup):
    """Between a file and what is stored of an origin, or between two origins."""

    def __init__(self, urls: Urls, output: DiffOutput, crawl: Crawl, names: list[str]) -> None:
        super().__init__(urls, output, crawl)
        self._diff_output = output
        self._names = names

    async def answer_all(self) -> None:
        """Raises ValueError if a side is not there."""
        before, after = [await self._side(name) for name in self._names]
        write_diff((before, after), self._crawl, self._urls, self._diff_output)

    async def _side(self, name: str) -> Side:
        if not is_stored(name):
            return Side.of_file(name, self._crawl, self._settings.body_limit)
        origin = Origin.of(name)
        if origin is None:
            raise ValueError(f"--diff: {name!r} is no origin; write it as in https://example.com")
        try:
            entry = await self._entry(origin)
        except CannotTellError as exc:
            raise ValueError(f"--diff: {exc}") from None
        # A stored robots.txt that is past its lifetime is compared, too.
        at = entry.stored.received_at if entry.stored is not None else self._gate.now()
        policy = policy_at(entry, at, self._settings.unreachable_for)
        return Side(lambda url: self._verdict(policy, url), policy.robots)
