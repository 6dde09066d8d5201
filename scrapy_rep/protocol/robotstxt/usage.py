"""What a page may be used for: Content-Usage and Content-Signal (the IETF's AIPREF drafts; contentsignals.org)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import http_sf

from scrapy_rep.protocol.foreign_text import shortened, text_of
from scrapy_rep.protocol.robotstxt.groups import Record, Report, read_records, token_of, unreported
from scrapy_rep.protocol.robotstxt.longest_match_linear import MAX_COMPARED, TooCostlyError, matching_places
from scrapy_rep.protocol.robotstxt.patterns import patterns, spellings
from scrapy_rep.protocol.robotstxt.syntax import Directive

CONTENT_USAGE, CONTENT_SIGNAL = Directive.CONTENT_USAGE.key, Directive.CONTENT_SIGNAL.key

MAX_READ = 65_536  # octets of statements in a file; a dictionary takes a hundred times as long as a rule


class Category(NamedTuple):
    """A category of use."""

    name: str
    spellings: Mapping[str, str]
    """By directive."""
    source: str


VOCABULARY = (
    Category(
        "train-ai",
        {CONTENT_USAGE: "train-ai", CONTENT_SIGNAL: "ai-train"},
        "draft-ietf-aipref-vocab of 2026-08-19, AI Model Training; contentsignals.org",
    ),
    Category(
        "search",
        {CONTENT_USAGE: "search", CONTENT_SIGNAL: "search"},
        "draft-ietf-aipref-vocab of 2026-08-19, Search; contentsignals.org",
    ),
    Category("ai-input", {CONTENT_SIGNAL: "ai-input"}, "contentsignals.org"),
    Category("use", {CONTENT_SIGNAL: "use"}, "contentsignals.org"),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A line that states preferences."""

    line: int
    """Counted from 1."""
    directive: str
    """`content-usage` or `content-signal`."""
    octets: bytes
    """The path that it is about, as it stands in the file; empty if it is about all paths."""
    text: str
    """The preferences as written, for people; cut to MAX_TEXT characters."""
    preferences: Mapping[str, bool]
    """By category, whether that use is allowed; a category without a preference is not in it."""

    @property
    def pattern(self) -> str:
        """The path as written: UTF-8, or Latin-1 if the octets are no UTF-8."""
        return text_of(self.octets)


@dataclass(frozen=True, slots=True, eq=False)
class Usage(Mapping[str, bool]):
    """The preferences for a page: by category of use, whether that is allowed; a category not in it is unknown."""

    preferences: Mapping[str, bool] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    """Those that decided, in their order."""

    def __getitem__(self, category: str) -> bool:
        return self.preferences[category]

    def __iter__(self) -> Iterator[str]:
        return iter(self.preferences)

    def __len__(self) -> int:
        return len(self.preferences)


def stricter(stated: Iterable[Mapping[str, bool]]) -> dict[str, bool]:
    """All preferences as one: disallowed beats allowed beats unknown (vocab, Combining Preferences)."""
    combined: dict[str, bool] = {}
    for preferences in stated:
        for category, allowed in preferences.items():
            combined[category] = allowed and combined.get(category, True)
    return combined


def preferences_of(directive: str, value: bytes) -> dict[str, bool] | None:
    """The preferences in a value without its path; None if it does not parse, so that all of them are unknown."""
    stated = _dictionary(value) if directive == CONTENT_USAGE else _signals(value)
    if stated is None:
        return None
    spelled = {category.name: category.spellings.get(directive, "") for category in VOCABULARY}
    return {name: stated[spelling] for name, spelling in spelled.items() if spelling in stated}


def _dictionary(value: bytes) -> dict[str, bool] | None:
    """A dictionary of RFC 9651; of its members those that are the tokens `y` and `n`."""
    try:
        members = cast("dict[str, tuple[object, object]]", http_sf.parse(value, tltype="dictionary"))
    except http_sf.StructuredFieldError:
        return None
    words = {key: str(item) for key, (item, _) in members.items() if isinstance(item, http_sf.Token)}
    return {key: word == "y" for key, word in words.items() if word in {"y", "n"}}


def _signals(value: bytes) -> dict[str, bool] | None:
    """`search=yes, ai-train=no`, without case; None if there is not one such pair."""
    pairs = [part.partition("=") for part in value.decode("latin-1").lower().split(",")]
    stated = [{key.strip(): word.strip() == "yes"} for key, _, word in pairs if word.strip() in {"yes", "no"}]
    return stricter(stated) if stated else None


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
        """The preferences for a URL that may be fetched. Raises ValueError as `spellings` does."""
        compared = spellings(url)
        deciding = [statement for paths in self._by_directive for statement in paths.most_specific(compared)]
        return Usage(
            stricter(statement.preferences for statement in deciding),
            tuple(sorted(deciding, key=lambda statement: statement.line)),
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
