"""Reads usage preferences: lines of robots.txt, headers such as AIPREF's Content-Usage, and `meta` elements.

The sources are the IETF's drafts `vocab` and `attach` (draft-ietf-aipref-*), contentsignals.org, and TDMRep.
"""

from bisect import bisect
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from typing import cast

from scrapy_rep.protocol.foreign_text import MAX_RULE, printable, shortened, text_of
from scrapy_rep.protocol.robotstxt import syntax
from scrapy_rep.protocol.robotstxt.groups import Segments, starts_of_segments
from scrapy_rep.protocol.robotstxt.parser import Ignored
from scrapy_rep.protocol.robotstxt.patterns import TooCostlyError, matching_positions, patterns, spellings
from scrapy_rep.protocol.robotstxt.syntax import Directive, is_product_token
from scrapy_rep.usage import CONTENT_SIGNAL, CONTENT_USAGE, TDM_META, TDM_RESERVATION, USE_LEVELS, VOCABULARY

# The most octets of statements for a crawler in a file, or in a response's headers of one name. Reading a dictionary of
# structured fields takes a hundred times as long as reading a rule.
MAX_READ = 16_384
MAX_CACHED = 64  # files; each takes at most 0.5 MB in addition to its octets (tests/protocol/test_costs.py)

BEFORE_ALL = -1  # stands for the segment of the lines before the first user-agent line
NEEDS_EXTRA = 'Content-Usage cannot be read without the extra `usage`: pip install "scrapy-rep[usage]"'

# Rules for robots that have a value after a colon. Their value is no rule. (After a crawler's name, what follows the
# colon is one.)
_RULES_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})

# Lines that end a run of user-agent lines (`groups`).
_RULE_OR_STATEMENT = syntax.record_of(
    syntax.key_of(Directive.ALLOW, Directive.DISALLOW, Directive.CONTENT_USAGE, Directive.CONTENT_SIGNAL), ""
)
# The first group is the key of a Content-Usage line. It is empty for a Content-Signal line. The second is the value.
_STATEMENT = syntax.record_of(
    f"(?:({syntax.key_of(Directive.CONTENT_USAGE)})|{syntax.key_of(Directive.CONTENT_SIGNAL)})", syntax.VALUE
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a robots.txt, a header of a response, or a `meta` element of a page, that states preferences.

    Its `str` is `Content-Usage: train-ai=n`, cut to MAX_RULE characters.
    """

    line: int | None
    """The line number, counted from 1; None for a header or an element."""
    directive: str
    """`content-usage`, `content-signal`, `x-robots-tag`, `robots-tag` or `tdm-reservation`; `meta robots` or
    `meta tdm-reservation` for an element. For a rule in a group of a policy token, `allow` or `disallow`."""
    octets: bytes
    """The path that the statement is about, as it is in the file; empty if it is about all paths."""
    text: str
    """The preferences as written, cut to MAX_TEXT characters; empty for a rule."""
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
    """Combine preferences: disallowed beats allowed, and allowed beats unknown (vocab, Combining Preferences)."""
    combined: dict[str, bool] = {}
    for preferences in stated:
        for category, allowed in preferences.items():
            combined[category] = allowed and combined.get(category, True)
    return combined


def preferences_of(directive: str, value: bytes) -> dict[str, bool] | None:
    """Return the preferences in `value`, from which the caller has removed the path.

    The result is None if `value` cannot be parsed, or has more than MAX_READ octets. Raises ImportError for
    `content-usage` if the library that reads structured fields is not installed.
    """
    stated = _READERS[directive](value) if len(value) <= MAX_READ else None
    if stated is None:
        return None
    labels = [(category.name, label) for category in VOCABULARY for label in category.spellings.get(directive, ())]
    return stricter({name: stated[label]} for name, label in labels if label in stated)


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
    """Return the preferences in a text such as `search=yes, ai-train=no, use=reference`, in upper or lower case; None
    if there are none."""
    stated = []
    for pair in value.decode("latin-1").lower().split(","):
        key, word = pair.partition("=")[0].strip(), pair.partition("=")[2].strip()
        if key == "use" and word in USE_LEVELS:
            stated.append({f"use={level}": at <= USE_LEVELS.index(word) for at, level in enumerate(USE_LEVELS)})
        elif word in {"yes", "no"}:
            stated.append({key: word == "yes"})
    return stricter(stated) if stated else None


def _reservation(value: bytes) -> dict[str, bool]:
    """Return whether text and data mining is allowed: it is with the value 0, and is not with 1."""
    return stricter({"tdm": word == b"0"} for word in map(bytes.strip, value.split(b",")) if word in {b"0", b"1"})


_READERS: Mapping[str, Callable[[bytes], dict[str, bool] | None]] = {
    CONTENT_USAGE: _dictionary,
    CONTENT_SIGNAL: _signals,
    TDM_RESERVATION: _reservation,
    TDM_META: _reservation,
}


def preferences_in_tag(value: str, product_tokens: Iterable[str]) -> dict[str, bool]:
    """Return what the value of an X-Robots-Tag or of a `meta` element disallows for a crawler with one of these tokens.

    A rule may follow the name of the crawler that it is for: `examplebot: noai, noindex`.
    """
    own = {token.lower() for token in product_tokens}
    rules, is_own = set(), True
    for part in value.lower().split(","):
        name, colon, rest = (text.strip() for text in part.partition(":"))
        if colon and name not in _RULES_WITH_VALUE and is_product_token(name):
            is_own, name = name in own or name == syntax.EVERYONE, rest
        if is_own:
            rules.add(name)
    return {category.name: False for category in VOCABULARY if not rules.isdisjoint(category.robots_rules)}


# The lines of a robots.txt.


@lru_cache(maxsize=MAX_CACHED)
def statements_for(product_token: str | None, octets: bytes) -> tuple[tuple[Statement, str], ...]:
    """Return the statements in the file for a product token; None stands for a crawler that no group applies to. Each
    comes with the pattern that URLs are compared with: the normalised path, empty if it is about all paths.

    A statement is for the nearest user-agent line above it, and for the user-agent lines above that one, if no rule and
    no other statement is between them. A statement before the first user-agent line is for all crawlers. Raises
    ImportError as `preferences_of` does.
    """
    if _STATEMENT.search(syntax.searchable(octets)) is None:  # most files have none
        return ()
    own = {BEFORE_ALL, *Segments(octets).of(product_token, _RULE_OR_STATEMENT)}
    statements = []
    for line, segment, directive, path, stated, _is_read in takewhile(lambda x: x[-1], _statement_lines(octets, own)):
        preferences, _fault = _preferences_and_fault(segment, directive, stated)
        if preferences or segment != BEFORE_ALL:
            token = product_token if segment != BEFORE_ALL else None
            statement = Statement(line, directive, path, shortened(text_of(stated)), preferences, token)
            statements.append((statement, patterns(path.decode("latin-1"))))
    return tuple(statements)


def deciding_statements(url: str, product_token: str | None, octets: bytes) -> list[Statement]:
    """Return those of `statements_for` that decide about a URL. Raises ValueError as `spellings` does.

    For each directive, the lines with the longest matching path decide. Matching lines before the first user-agent
    line all decide, too. If comparing the URL would take too long, all statements decide.
    """
    lines = statements_for(product_token, octets)
    try:
        positions = matching_positions([pattern for _, pattern in lines], spellings(url)) if lines else []
    except TooCostlyError:
        return [statement for statement, _ in lines]
    matching = [lines[position] for position in positions]
    in_groups = [(len(pattern), found.directive) for found, pattern in matching if found.product_token is not None]
    longest = {directive: length for length, directive in sorted(in_groups)}
    return [
        found for found, pattern in matching if found.product_token is None or len(pattern) == longest[found.directive]
    ]


def ignored_statements(octets: bytes) -> list[Ignored]:
    """Return the lines with statements that are ignored, for any crawler, each with the reason."""
    lines = octets.split(b"\n")
    ignored = []
    for line, segment, directive, _path, stated, is_read in _statement_lines(octets):
        fault = f"beyond {MAX_READ} bytes of such lines"
        if is_read:
            try:
                _preferences, fault = _preferences_and_fault(segment, directive, stated)
                if not fault or (segment == BEFORE_ALL and directive == CONTENT_SIGNAL):
                    fault = _unknown_preferences(directive, stated) or fault
            except ImportError as exc:
                fault = str(exc)
        if fault:
            ignored.append(Ignored(line, shortened(text_of(lines[line - 1].strip(syntax.WHITE_SPACE.encode()))), fault))
    return ignored


def _preferences_and_fault(segment: int, directive: str, stated: bytes) -> tuple[dict[str, bool], str]:
    """Return the preferences that count in a line, and why the line is ignored (empty if it is not ignored).

    Sites write Content-Signal before the first user-agent line and mean their whole origin. Only what it disallows
    counts there. Content-Usage does not count there, because it must be in a group (attach 3).
    """
    is_before_all = segment == BEFORE_ALL
    if is_before_all and directive == CONTENT_USAGE:
        return {}, f"{directive} before the first user-agent line"
    preferences = preferences_of(directive, stated)
    if preferences is None:
        return {}, "no preferences that can be read"
    if not is_before_all:
        return preferences, ""
    disallowed: dict[str, bool] = {category: False for category, allowed in preferences.items() if not allowed}
    return disallowed, "" if disallowed else "before the first user-agent line, only what is disallowed counts"


def _unknown_preferences(directive: str, stated: bytes) -> str:
    """Return which parts of a line that can be read mean nothing, such as `train-ai=no`; empty if there are none."""
    parts = filter(None, (part.strip(b" \t") for part in stated.split(b",")))
    # In Content-Usage, a part that cannot be read (None) is within a text in quotes.
    nothing: tuple[object, ...] = ({}, None) if directive == CONTENT_SIGNAL else ({},)
    unknown = [part for part in parts if preferences_of(directive, part) in nothing]
    return printable(text_of(b"no known preference: " + b", ".join(unknown))) if unknown else ""


def _statement_lines(
    octets: bytes, segments: Container[int] | None = None
) -> Iterator[tuple[int, int, str, bytes, bytes, bool]]:
    """Yield the parts of each line with a statement in these segments, of one crawler; None stands for all segments.

    They are the line number, the segment, the directive, the path, the preferences, and whether the line is read
    (MAX_READ). The path begins with `/` and ends at white space; it may be missing.
    """
    text = syntax.searchable(octets)
    starts = starts_of_segments(text)
    line, counted_to, read = 0, 0, [0] * (len(starts) + 1)
    for record in _STATEMENT.finditer(text):
        segment = bisect(starts, record.start()) - 1
        if segments is not None and segment not in segments:
            continue
        for_whom = segment if segments is None else BEFORE_ALL
        read[for_whom] += len(record[0])
        line += text.count("\n", counted_to, record.start() + 1)
        counted_to = record.start() + 1
        value = record[2].partition("#")[0].rstrip(syntax.WHITE_SPACE).encode("latin-1")
        path = value.replace(b"\t", b" ").partition(b" ")[0] if value.startswith(b"/") else b""
        directive = CONTENT_USAGE if record[1] else CONTENT_SIGNAL
        yield line, segment, directive, path, value[len(path) :].strip(b" \t"), read[for_whom] <= MAX_READ
