"""What a robots.txt says that pages may be used for: its Content-Usage and Content-Signal lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from scrapy_rep.protocol.foreign_text import shortened, text_of
from scrapy_rep.protocol.robotstxt.groups import Record, Report, read_records, token_of, unreported
from scrapy_rep.protocol.robotstxt.longest_match_linear import MAX_COMPARED, TooCostlyError, matching_places
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
from scrapy_rep.protocol.robotstxt.syntax import Directive


def read_statements(octets: bytes, product_token: str | None, report: Report = unreported) -> Iterator[Statement]:
    """The statements for that product token, in their order; for None those for all tokens.

    A statement is for the user-agent lines above it, up to the statement or rule before them.
    """
    is_mine = is_ended = product_token is None
    left = MAX_READ
    for record in read_records(octets):
        if record.key == Directive.USER_AGENT.key:
            is_named = product_token is None or token_of(record.octets) == product_token.lower()
            is_mine, is_ended = is_named or (is_mine and not is_ended), False
        elif record.key in {Directive.ALLOW.key, Directive.DISALLOW.key}:
            is_ended = True
        elif record.key in {CONTENT_USAGE, CONTENT_SIGNAL} and record.group is not None:
            is_ended = True
            left -= len(record.octets)
            if left < 0:
                report(record.line, f"beyond {MAX_READ} bytes of such lines")
            elif is_mine:
                yield _statement(record, report)


def _statement(record: Record, report: Report) -> Statement:
    path, value = _path_and_rest(record.octets)
    preferences = preferences_of(record.key, value)
    if preferences is None:
        report(record.line, "no preferences that can be read")
    return Statement(record.line, record.key, path, shortened(text_of(value)), preferences or {})


def _path_and_rest(value: bytes) -> tuple[bytes, bytes]:
    """A path begins with `/` and ends before the first white space; empty if there is none."""
    if not value.startswith(b"/"):
        return b"", value
    path = value.replace(b"\t", b" ").partition(b" ")[0]
    return path, value[len(path) :].strip(b" \t")


class UsagePreferences:
    """One crawler's statements, ready to match."""

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
        if not self._statements:  # as for most files
            return Usage()
        compared = spellings(url)
        deciding = [statement for paths in self._by_directive for statement in paths.most_specific(compared)]
        return Usage(
            stricter(statement.preferences for statement in deciding),
            tuple(sorted(deciding, key=lambda statement: statement.line or 0)),
        )


class _Paths:
    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        values = "\n".join(statement.octets.decode("latin-1") for statement in statements)
        self._patterns = patterns(values).split("\n")
        self._never_costly = MAX_COMPARED // max(len(values), 1)
        self._any_starred = "*" in values

    def most_specific(self, compared: Sequence[str]) -> Sequence[Statement]:
        """All statements with the longest path that matches; all there are, if it takes too long to find out."""
        try:
            places = matching_places(self._patterns, compared, self._any_starred, self._never_costly)
        except TooCostlyError:
            return self._statements
        longest = max((len(self._patterns[place]) for place in places), default=0)
        return [self._statements[place] for place in dict.fromkeys(places) if len(self._patterns[place]) == longest]
