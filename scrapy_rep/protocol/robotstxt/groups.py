"""The groups of a robots.txt: the lines that are for a crawler, and lists of all lines (RFC 9309 2.1, 2.2).

A segment is the text from one user-agent line to the next:

    User-agent: a       Segment 0 has a delay and no rule.
    Crawl-delay: 5
    User-agent: b       Segment 1 has a rule for a and b, and a delay for b alone.
    Disallow: /x
    Crawl-delay: 7
    User-agent: c       Segment 2 has no records.

A run is a row of user-agent lines that share the records below it. A run ends at a rule. When delays are read, it also
ends at a delay; for licenses, at a license; for statements about usage, at a statement.

`Segments` and `starts_of_segments` find a crawler's lines, for verdicts, delays, licenses and usage. All else here is
for reports, and for programs that read other directives.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scrapy_rep.protocol.foreign_text import text_of
from scrapy_rep.protocol.robotstxt import syntax
from scrapy_rep.protocol.robotstxt.rules import Rule
from scrapy_rep.protocol.robotstxt.syntax import Directive


class Segments:
    """The segments of a file."""

    __slots__ = ("texts", "tokens")

    def __init__(self, octets: bytes) -> None:
        parts = syntax.USER_AGENT_LINE.split(syntax.searchable(octets))
        self.tokens = [token.lower() for token in parts[1::2]]
        """The product token of each segment's user-agent line, in lower case; empty if the line has none."""
        self.texts = parts[2::2]
        """For each segment, the rest of its user-agent line and all lines after it."""

    def obeyed_token(self, product_tokens: Sequence[str]) -> str | None:
        """Return the first of these tokens that a group names; else `*`; None if there is no group of `*` either."""
        return next((token for token in (*product_tokens, syntax.EVERYONE) if token.lower() in self.tokens), None)

    def of(self, product_token: str | None, ends: re.Pattern[str] = syntax.RULE_LINE) -> tuple[int, ...]:
        """Return the segments that contain the token's records of one kind. There are none if the token is None.

        `ends` matches the lines that end a run of user-agent lines. The last segment of a run has the records.
        """
        key = product_token and product_token.lower()
        last, end = len(self.tokens) - 1, -1
        own_segments = []
        for start in [at for at, token in enumerate(self.tokens) if token == key]:
            if start > end:
                end = start
                while end < last and not ends.search(self.texts[end]):
                    end += 1
                own_segments.append(end)
        return tuple(own_segments)

    def joined(self, own_segments: Sequence[int]) -> str:
        """Return the lines of these segments as one text."""
        # A `#` makes a comment of what is left of each user-agent line.
        return "\n#".join([self.texts[at] for at in own_segments])


def starts_of_segments(text: str) -> list[int]:
    """Return the offsets of all user-agent lines in a text that `searchable` returned."""
    return [record.start() for record in syntax.USER_AGENT_LINE.finditer(text)]


# Lists of all lines.

# The expression has one regular-expression group for each directive, in the order of `_DIRECTIVES`.
_RECORD = re.compile("|".join(expression.pattern for expression in syntax.RECORDS.values()), re.ASCII)
_DIRECTIVES = tuple(syntax.RECORDS)
_RULE_KEYS = {Directive.ALLOW.key, Directive.DISALLOW.key}


@dataclass(frozen=True, slots=True)
class Record:
    """A line with a key, which may be unknown to this package (2.2.4), and a value, which may be empty."""

    line: int
    """The line number, counted from 1."""
    group: int | None
    """The index of the record's group in `RobotsTxt.groups`. None for a record before the first user-agent line, and
    for a sitemap, which belongs to no group."""
    key: str
    """The key in lower case. Known misspellings are corrected: `disalow` becomes `disallow`."""
    octets: bytes
    """The value as it is in the file, without a comment and without white space around it."""

    @property
    def value(self) -> str:
        """The value as text, decoded as UTF-8, or as Latin-1 if the octets are not UTF-8."""
        return text_of(self.octets)


@dataclass(frozen=True, slots=True)
class Group:
    """One or more user-agent lines and the rules that follow them (2.1).

    A crawler obeys the rules of all groups that name it (2.2.1).
    """

    product_tokens: tuple[str, ...]
    """The product tokens that the group names, in lower case, in the order of the file, without duplicates. `*` stands
    for all crawlers that no group names."""
    rules: tuple[Rule, ...]
    """The rules in the order of the file. Rules that match no URL, such as an empty `Disallow:`, are left out."""


def read_lines(octets: bytes) -> Iterator[Record | int]:
    """Yield each line: a Record if it has a key, else its number. Empty lines and comments are left out."""
    groups, is_after_rule = 0, True  # a user-agent line after a rule begins a group (2.1)
    for number, text in enumerate(syntax.searchable(octets)[1:].split("\n"), start=1):
        line = text.partition("#")[0].strip(syntax.WHITE_SPACE)
        if not line:
            continue
        if found := _RECORD.match(f"\n{line}"):
            alternative = found.lastindex or 0  # never 0, because each directive has a regular-expression group
            key, value = _DIRECTIVES[alternative - 1].key, line[found.start(alternative) - 1 :]
        elif ":" in line:
            name, _, value = (part.strip(syntax.WHITE_SPACE) for part in line.partition(":"))
            key = text_of(name.encode("latin-1")).lower()
        else:
            yield number
            continue
        if key == Directive.USER_AGENT.key:
            groups += is_after_rule
            is_after_rule = False
        elif key in _RULE_KEYS:
            is_after_rule = True
        group = None if key == Directive.SITEMAP.key or not groups else groups - 1
        yield Record(number, group, key, value.encode("latin-1"))


def read_groups(records: Iterable[Record]) -> tuple[Group, ...]:
    """Return the groups that these records form, in the order of the file."""
    groups: list[tuple[dict[str, None], list[Rule]]] = []
    for record in records:
        if record.group is None:
            continue
        if record.group == len(groups):
            groups.append(({}, []))
        tokens, rules = groups[-1]
        if record.key == Directive.USER_AGENT.key and (token := token_of(record.octets)):
            tokens[token.lower()] = None
        elif record.key in _RULE_KEYS and record.octets.startswith(syntax.PATTERN_STARTS):
            rules.append(Rule(record.line, record.key == Directive.ALLOW.key, record.octets))
    return tuple(Group(tuple(tokens), tuple(rules)) for tokens, rules in groups)


def read_ignored(octets: bytes) -> Iterator[tuple[int, str]]:
    """Yield the number of each ignored line and the reason, in the order of the file."""
    for line in read_lines(octets):
        if isinstance(line, int):
            yield line, "no colon"
        elif line.key in {Directive.CONTENT_USAGE.key, Directive.CONTENT_SIGNAL.key}:
            continue  # `usage.statements` reads them
        elif line.key not in VALUE_FAULTS:
            yield line.line, "unknown key"
        elif line.group is None and line.key not in {Directive.SITEMAP.key, Directive.LICENSE.key}:
            yield line.line, f"{line.key} before the first user-agent line"
        elif fault := VALUE_FAULTS[line.key](line.octets):
            yield line.line, fault


def token_of(octets: bytes) -> str:
    """Return the product token of a user-agent line with this value; empty if the line has none."""
    return syntax.TOKEN.match(octets.decode("latin-1"))[0]  # type: ignore[index]  # it matches anything


def _token_fault(octets: bytes) -> str:
    token = token_of(octets)
    if not token:
        return "names no product token"
    return f"only {token!r} is read" if syntax.MORE_NAMES.search(octets.decode("latin-1"), len(token)) else ""


def _pattern_fault(octets: bytes) -> str:
    return "begins with neither / nor *" if octets and not octets.startswith(syntax.PATTERN_STARTS) else ""


# For each directive that is read here, a function that returns what is wrong with a value, or an empty text.
VALUE_FAULTS: Mapping[str, Callable[[bytes], str]] = {
    Directive.USER_AGENT.key: _token_fault,
    Directive.ALLOW.key: _pattern_fault,
    Directive.DISALLOW.key: _pattern_fault,
    Directive.CRAWL_DELAY.key: lambda octets: (
        "no valid number of seconds" if syntax.seconds_of(octets.decode("latin-1")) is None else ""
    ),
    Directive.SITEMAP.key: lambda octets: "" if syntax.address_in(octets) else "no address",
    Directive.LICENSE.key: lambda octets: "" if syntax.URL.fullmatch(syntax.address_in(octets)) else "no whole URL",
}
