"""Statements: the lines of robots.txt and the headers of responses that state usage preferences.

The sources are the IETF's AIPREF drafts and contentsignals.org.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

from scrapy_rep.protocol.foreign_text import MAX_RULE, shortened, text_of
from scrapy_rep.protocol.robotstxt.parser import Ignored
from scrapy_rep.protocol.robotstxt.patterns import patterns
from scrapy_rep.protocol.robotstxt.segments import Segments, starts_of_segments
from scrapy_rep.protocol.robotstxt.syntax import VALUE, WHITE_SPACE, Directive, key_of, record_of, searchable
from scrapy_rep.usage.vocabulary import CONTENT_SIGNAL, CONTENT_USAGE, USE_LEVELS, VOCABULARY

# Octets of statements that are read from one file or one response. Reading a dictionary of structured fields takes a
# hundred times as long as reading a rule.
MAX_READ = 16_384

BEFORE_ALL = -1  # stands for the segment of the lines before the first user-agent line
NEEDS_EXTRA = "Content-Usage cannot be read without the extra `usage`: pip install scrapy-rep[usage]"

# Lines that end a run of user-agent lines (`segments`).
_RULE_OR_STATEMENT = record_of(
    key_of(Directive.ALLOW, Directive.DISALLOW, Directive.CONTENT_USAGE, Directive.CONTENT_SIGNAL), ""
)
# The directive is in one of the first two groups, and the value in the third.
_STATEMENT = record_of(f"(?:({key_of(Directive.CONTENT_USAGE)})|({key_of(Directive.CONTENT_SIGNAL)}))", VALUE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a robots.txt, or a header of a response, that states preferences.

    Its `str` is `Content-Usage: train-ai=n`, cut to MAX_RULE characters.
    """

    line: int | None
    """The line number, counted from 1; None for a header."""
    directive: str
    """`content-usage` or `content-signal`. For a rule in a group of a policy token, `allow` or `disallow`."""
    octets: bytes
    """The path that the statement is about, as it is in the file; empty if it is about all paths."""
    text: str
    """The preferences for people, as written, cut to MAX_TEXT characters; empty for a rule."""
    preferences: Mapping[str, bool] = field(hash=False)
    """Category -> whether that use is allowed. A category without a preference is missing."""
    product_token: str | None = None
    """The product token whose group has the line; None for a header or a line before the first user-agent line."""

    @property
    def pattern(self) -> str:
        """The path as text, decoded as UTF-8, or as Latin-1 if the octets are not UTF-8."""
        return text_of(self.octets)

    def __str__(self) -> str:
        return shortened(f"{self.directive.title()}: {' '.join(filter(None, (self.pattern, self.text)))}", MAX_RULE)


def stricter(stated: Iterable[Mapping[str, bool]]) -> dict[str, bool]:
    """Return all preferences combined: disallowed beats allowed, and allowed beats unknown (vocab, Combining
    Preferences)."""
    combined: dict[str, bool] = {}
    for preferences in stated:
        for category, allowed in preferences.items():
            combined[category] = allowed and combined.get(category, True)
    return combined


def preferences_of(directive: str, value: bytes) -> dict[str, bool] | None:
    """Return the preferences in a value without its path; None if the value cannot be parsed.

    Raises ImportError for `content-usage` if the library that reads structured fields is not installed.
    """
    stated = _dictionary(value) if directive == CONTENT_USAGE else _signals(value)
    if stated is None:
        return None
    spelled = {category.name: category.spellings.get(directive, "") for category in VOCABULARY}
    return {name: stated[spelling] for name, spelling in spelled.items() if spelling in stated}


def _dictionary(value: bytes) -> dict[str, bool] | None:
    """Return the members of a dictionary (RFC 9651) whose value is the token `y` or `n`."""
    try:
        import http_sf  # noqa: PLC0415 - an extra, and most crawls read no structured field
    except ImportError:
        raise ImportError(NEEDS_EXTRA) from None
    try:
        members = cast("dict[str, tuple[object, object]]", http_sf.parse(value, tltype="dictionary"))
    except http_sf.StructuredFieldError:
        return None
    words = {key: str(item) for key, (item, _) in members.items() if isinstance(item, http_sf.Token)}
    return {key: word == "y" for key, word in words.items() if word in {"y", "n"}}


def _signals(value: bytes) -> dict[str, bool] | None:
    """Return the preferences in a text such as `search=yes, ai-train=no, use=reference`, in upper or lower case.

    None if the text has no such pair.
    """
    pairs = [part.partition("=") for part in value.decode("latin-1").lower().split(",")]
    stated = [_signal(key.strip(), word.strip()) for key, _, word in pairs]
    return stricter(stated) if any(stated) else None


def _signal(key: str, word: str) -> dict[str, bool]:
    """Return the preferences in one pair: spelling of the category -> allowed. Empty if the pair states none."""
    if key == "use" and word in USE_LEVELS:
        return {f"use={level}": at <= USE_LEVELS.index(word) for at, level in enumerate(USE_LEVELS)}
    return {key: word == "yes"} if word in {"yes", "no"} else {}


# The lines of a robots.txt.


class StatementLine(NamedTuple):
    """A statement in a robots.txt, its segment, and the pattern that URLs are compared with."""

    statement: Statement
    segment: int
    """The number of the line's segment, or BEFORE_ALL."""
    pattern: str
    """The normalised path; empty if the statement is about all paths."""


def read_statements(octets: bytes) -> list[StatementLine]:
    """Return the statements for all crawlers, in the order of the file. Raises ImportError as `preferences_of` does."""
    text = searchable(octets)
    if not _STATEMENT.search(text):  # as in most files
        return []
    starts = starts_of_segments(text)
    lines = []
    for line, directive, value, start in _values(text):
        path, stated = _path_and_rest(value)
        preferences, segment = preferences_of(directive, stated) or {}, bisect(starts, start) - 1
        if segment == BEFORE_ALL:
            preferences = _before_all(directive, preferences)
            if not preferences:
                continue
        statement = Statement(line, directive, path, shortened(text_of(stated)), preferences)
        lines.append(StatementLine(statement, segment, patterns(path.decode("latin-1"))))
    return lines


def statements_for(product_token: str | None, lines: Sequence[StatementLine], octets: bytes) -> list[StatementLine]:
    """Return the statements in the file for a product token; None stands for a crawler that no group applies to.

    A statement is for the user-agent lines before it that follow the last statement or rule. A statement before the
    first user-agent line is for all crawlers.
    """
    own = set(Segments(octets).of(product_token, _RULE_OR_STATEMENT)) if lines else set()
    found = []
    for statement, segment, pattern in lines:
        if segment in own:
            found.append(StatementLine(replace(statement, product_token=product_token), segment, pattern))
        elif segment == BEFORE_ALL:
            found.append(StatementLine(statement, segment, pattern))
    return found


def ignored_statements(octets: bytes) -> list[Ignored]:
    """Return the lines with statements that are ignored, for any crawler, each with the reason."""
    text = searchable(octets)
    starts = starts_of_segments(text)
    read = {line for line, *_ in _values(text)}
    lines = octets.split(b"\n")
    ignored = []
    for line, directive, value, start in _values(text, len(text)):
        is_before_all = bisect(starts, start) - 1 == BEFORE_ALL
        fault = _fault(directive, value, is_before_all=is_before_all)
        reason = fault if line in read else f"beyond {MAX_READ} bytes of such lines"
        if reason:
            ignored.append(Ignored(line, shortened(text_of(lines[line - 1].strip(WHITE_SPACE.encode()))), reason))
    return ignored


def _fault(directive: str, value: bytes, *, is_before_all: bool) -> str:
    """Return why a line with this value is ignored; empty if it is read."""
    if is_before_all and directive == CONTENT_USAGE:
        return f"{directive} before the first user-agent line"
    try:
        preferences = preferences_of(directive, _path_and_rest(value)[1])
    except ImportError as exc:
        return str(exc)
    if preferences is None:
        return "no preferences that can be read"
    is_silent = is_before_all and not _before_all(directive, preferences)
    return "before the first user-agent line, only a `no` counts" if is_silent else ""


def _before_all(directive: str, preferences: Mapping[str, bool]) -> dict[str, bool]:
    """Return the preferences that count in a line before the first user-agent line.

    Sites write Content-Signal there and mean their whole origin. Only its `no` counts. Content-Usage does not count
    there, because it must be in a group (attach, 3).
    """
    if directive != CONTENT_SIGNAL:
        return {}
    return {category: allowed for category, allowed in preferences.items() if not allowed}


def _values(text: str, most: int = MAX_READ) -> Iterator[tuple[int, str, bytes, int]]:
    """Yield the line number, directive, value and offset of each line with a statement, for any crawler.

    It ends when these lines have more than `most` octets.
    """
    line, counted_to, left = 0, 0, most
    for record in _STATEMENT.finditer(text):
        left -= len(record[0])
        if left < 0:
            return
        line += text.count("\n", counted_to, record.start() + 1)
        counted_to = record.start() + 1
        value = record[3].partition("#")[0].rstrip(WHITE_SPACE).encode("latin-1")
        yield line, CONTENT_USAGE if record[1] else CONTENT_SIGNAL, value, record.start()


def _path_and_rest(value: bytes) -> tuple[bytes, bytes]:
    """Return a statement's path, which begins with `/` and ends at white space, and the preferences after it.

    Without a path, the whole value is preferences.
    """
    path = value.replace(b"\t", b" ").partition(b" ")[0] if value.startswith(b"/") else b""
    return path, value[len(path) :].strip(b" \t")
