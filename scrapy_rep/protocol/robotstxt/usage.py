"""What a robots.txt says that pages may be used for: its Content-Usage and Content-Signal lines."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence

from scrapy_rep.protocol.foreign_text import shortened, text_of
from scrapy_rep.protocol.robotstxt.comparison_cost import TooCostlyError
from scrapy_rep.protocol.robotstxt.longest_match import matching_places
from scrapy_rep.protocol.robotstxt.patterns import patterns, spellings
from scrapy_rep.protocol.robotstxt.preferences import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    MAX_READ,
    Statement,
    Usage,
    preferences_of,
    stricter,
)
from scrapy_rep.protocol.robotstxt.segments import Segments, starts_of_segments
from scrapy_rep.protocol.robotstxt.syntax import RULE_OR_USAGE_LINE, USAGE_RECORD, WHITE_SPACE, searchable


def read_statements(octets: bytes, product_token: str | None) -> Iterator[Statement]:
    """The statements for that product token, in their order; none for None.

    A statement is for the user-agent lines above it, up to the statement or rule before them.
    """
    text = searchable(octets)
    if not USAGE_RECORD.search(text):  # as in most files
        return
    starts = starts_of_segments(text)
    own = set(Segments(octets).of(product_token, RULE_OR_USAGE_LINE))
    for line, record in lines_of_statements(text):
        if bisect(starts, record.start()) - 1 in own:
            directive = CONTENT_USAGE if record[1] else CONTENT_SIGNAL
            value = record[3].partition("#")[0].rstrip(WHITE_SPACE).encode("latin-1")
            path, stated = path_and_rest(value)
            yield Statement(line, directive, path, shortened(text_of(stated)), preferences_of(directive, stated) or {})


def lines_of_statements(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines with statements for anybody, each with its number; no line beyond MAX_READ octets of such lines."""
    line, counted_to, left = 0, 0, MAX_READ
    for record in USAGE_RECORD.finditer(text):
        left -= len(record[0])
        if left < 0:
            return
        line += text.count("\n", counted_to, record.start() + 1)
        counted_to = record.start() + 1
        yield line, record


def path_and_rest(value: bytes) -> tuple[bytes, bytes]:
    """A statement's path, and its preferences. The path begins with `/` and ends before the first white space; empty if
    the statement has none."""
    if not value.startswith(b"/"):
        return b"", value
    path = value.replace(b"\t", b" ").partition(b" ")[0]
    return path, value[len(path) :].strip(b" \t")


class EffectiveStatements:
    """The statements that a crawler obeys, ready to match."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._statements = statements = tuple(statements)
        # The longest path decides among the statements of each directive.
        self._by_directive = [
            _Paths([statement for statement in statements if statement.directive == directive])
            for directive in dict.fromkeys(statement.directive for statement in statements)
        ]

    def __len__(self) -> int:
        return len(self._statements)

    def usage(self, url: str) -> Usage:
        """The preferences for a URL that may be fetched. May raise ValueError as `spellings` does."""
        compared = spellings(url)
        deciding = [statement for paths in self._by_directive for statement in paths.most_specific(compared)]
        return Usage(
            stricter(statement.preferences for statement in deciding),
            tuple(sorted(deciding, key=lambda statement: statement.line or 0)),
        )


class _Paths:
    """The paths of one directive's statements."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        values = "\n".join(statement.octets.decode("latin-1") for statement in statements)
        self._patterns = patterns(values).split("\n")

    def most_specific(self, compared: Sequence[str]) -> Sequence[Statement]:
        """The statements with the longest path that matches; all statements, if it takes too long to find out."""
        try:
            places = matching_places(self._patterns, compared)
        except TooCostlyError:
            return self._statements
        longest = max((len(self._patterns[place]) for place in places), default=0)
        return [self._statements[place] for place in dict.fromkeys(places) if len(self._patterns[place]) == longest]
