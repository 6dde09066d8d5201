"""What a site states that a page may be used for: categories of use, the lines and headers that state it, and several
of them as one (the IETF's AIPREF drafts; contentsignals.org)."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from scrapy_rep.protocol.foreign_text import MAX_RULE, shortened, text_of
from scrapy_rep.protocol.robotstxt.comparison_cost import TooCostlyError
from scrapy_rep.protocol.robotstxt.patterns import matching_places, patterns, spellings
from scrapy_rep.protocol.robotstxt.segments import Segments, starts_of_segments
from scrapy_rep.protocol.robotstxt.syntax import RULE_OR_USAGE_LINE, USAGE_RECORD, WHITE_SPACE, Directive, searchable

CONTENT_USAGE, CONTENT_SIGNAL = Directive.CONTENT_USAGE.key, Directive.CONTENT_SIGNAL.key
USAGE_DIRECTIVES = (CONTENT_USAGE, CONTENT_SIGNAL)  # of robots.txt, and names of headers

MAX_READ = 16_384  # octets of statements in a file or an answer; a dictionary takes a hundred times as long as a rule

ATTACH_DRAFT = "draft-ietf-aipref-attach of 2026-08-19"


class Category(NamedTuple):
    """A category of use."""

    name: str
    spellings: Mapping[str, str]
    """By directive; `use=full` is a value of `use`."""
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
    Category("use-reference", {CONTENT_SIGNAL: "use=reference"}, "contentsignals.org, extended on 2026-07-01"),
    Category("use-full", {CONTENT_SIGNAL: "use=full"}, "contentsignals.org, extended on 2026-07-01"),
)

# The draft's words for a preference (vocab, Statements of Preference).
PREFERENCE_WORDS: Mapping[bool | None, str] = {True: "allowed", False: "disallowed", None: "unknown"}

# How much a crawler may keep and show again, by the vendor's `use`: each level allows those before it.
USE_LEVELS = ("immediate", "reference", "full")


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a robots.txt that states preferences, or a header of a response; as text `Content-Usage: train-ai=n`,
    cut to MAX_RULE characters."""

    line: int | None
    """Counted from 1; None for a header."""
    directive: str
    """`content-usage` or `content-signal`."""
    octets: bytes
    """The path that it is about, as it stands in the file; empty if it is about all paths."""
    text: str
    """The preferences as written, for people; cut to MAX_TEXT characters."""
    preferences: Mapping[str, bool] = field(hash=False)
    """By category, whether that use is allowed; a category without a preference is not in it."""

    @property
    def pattern(self) -> str:
        """The path as written: UTF-8, or Latin-1 if the octets are no UTF-8."""
        return text_of(self.octets)

    def __str__(self) -> str:
        return shortened(f"{self.directive.title()}: {' '.join(filter(None, (self.pattern, self.text)))}", MAX_RULE)


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

    def deciding(self, category: str) -> Statement | None:
        """The first statement that has the preference that counts; None if it is unknown."""
        allowed = self.preferences.get(category)
        stated = [one for one in self.statements if one.preferences.get(category) is allowed]
        return stated[0] if allowed is not None and stated else None

    def with_header(self, directive: str, values: Sequence[bytes]) -> Usage:
        """With what the headers of this name of the page's response say, which are one list (RFC 9110 5.3): the
        stricter counts. A list that can't be read says nothing."""
        # An empty header adds no element to the list, and RFC 9651 has no empty elements.
        value = b", ".join(filter(None, map(bytes.strip, values)))
        preferences = preferences_of(directive, value) if len(value) <= MAX_READ else None
        if not preferences:
            return self
        header = Statement(None, directive, b"", shortened(text_of(value)), preferences)
        return Usage(stricter((self.preferences, preferences)), (*self.statements, header))


@dataclass(frozen=True, slots=True)
class Purposes:
    """What a crawl gathers pages for."""

    categories: tuple[str, ...] = ()
    refuse: bool = False
    """A page is refused if one of them is disallowed."""

    def refused_by(self, preferences: Mapping[str, bool]) -> str | None:
        """The first purpose for which a page with these preferences is refused; None if it is not."""
        refused = self.categories if self.refuse else ()
        return next((category for category in refused if preferences.get(category) is False), None)


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
    import http_sf  # noqa: PLC0415 - most crawls read no structured field

    try:
        members = cast("dict[str, tuple[object, object]]", http_sf.parse(value, tltype="dictionary"))
    except http_sf.StructuredFieldError:
        return None
    words = {key: str(item) for key, (item, _) in members.items() if isinstance(item, http_sf.Token)}
    return {key: word == "y" for key, word in words.items() if word in {"y", "n"}}


def _signals(value: bytes) -> dict[str, bool] | None:
    """`search=yes, ai-train=no, use=reference`, without case; None if there is not one such pair."""
    pairs = [part.partition("=") for part in value.decode("latin-1").lower().split(",")]
    stated = [_signal(key.strip(), word.strip()) for key, _, word in pairs]
    return stricter(stated) if any(stated) else None


def _signal(key: str, word: str) -> dict[str, bool]:
    """A pair's preferences by spelling; empty if it has none."""
    if key == "use" and word in USE_LEVELS:
        return {f"use={level}": at <= USE_LEVELS.index(word) for at, level in enumerate(USE_LEVELS)}
    return {key: word == "yes"} if word in {"yes", "no"} else {}


# The lines of a robots.txt.


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
        by_length = sorted(matching, key=lambda line: len(line.pattern))
        longest = {line.statement.directive: len(line.pattern) for line in by_length}
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
    """A statement's path, which begins with `/`, and its preferences after the first white space. Without a path, all
    of it is preferences."""
    path = value.replace(b"\t", b" ").partition(b" ")[0] if value.startswith(b"/") else b""
    return path, value[len(path) :].strip(b" \t")
