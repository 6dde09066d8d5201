"""What a robots.txt says that pages may be used for: its Content-Usage and Content-Signal lines."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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


class StatementLine(NamedTuple):
    """A statement, where it stands, and what URLs are compared with."""

    statement: Statement
    segment: int
    pattern: str
    """Its path, normalised; empty if it is about all paths."""


def read_statements(octets: bytes) -> list[StatementLine]:
    """The statements for anybody, in their order."""
    text = searchable(octets)
    if not USAGE_RECORD.search(text):  # as in most files
        return []
    starts = starts_of_segments(text)
    lines = []
    for line, record in lines_of_statements(text):
        directive = CONTENT_USAGE if record[1] else CONTENT_SIGNAL
        value = record[3].partition("#")[0].rstrip(WHITE_SPACE).encode("latin-1")
        path, stated = path_and_rest(value)
        statement = Statement(
            line, directive, path, shortened(text_of(stated)), preferences_of(directive, stated) or {}
        )
        segment = bisect(starts, record.start()) - 1
        lines.append(StatementLine(statement, segment, patterns(path.decode("latin-1"))))
    return lines


def statements_for(product_token: str | None, lines: Sequence[StatementLine], octets: bytes) -> list[StatementLine]:
    """Those of the file's statements that are for that product token; none for None.

    A statement is for the user-agent lines above it, up to the statement or rule before them.
    """
    own = set(Segments(octets).of(product_token, RULE_OR_USAGE_LINE)) if lines else ()
    return [line for line in lines if line.segment in own]


def usage_of(url: str, lines: Sequence[StatementLine]) -> Usage:
    """The preferences for a URL that may be fetched, by the statements for a crawler. Of each directive, those with the
    longest path that matches decide; all statements, if it takes too long to find out.

    May raise ValueError as `spellings` does.
    """
    try:
        places = matching_places([line.pattern for line in lines], spellings(url))
    except TooCostlyError:
        deciding = [line.statement for line in lines]
    else:
        matching = [lines[place] for place in sorted(set(places))]
        longest: dict[str, int] = {}
        for statement, _, pattern in matching:
            longest[statement.directive] = max(len(pattern), longest.get(statement.directive, 0))
        deciding = [line.statement for line in matching if len(line.pattern) == longest[line.statement.directive]]
    return Usage(stricter(statement.preferences for statement in deciding), tuple(deciding))


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
