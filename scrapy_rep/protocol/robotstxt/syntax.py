"""From the octets of a robots.txt to its lines, and what a record is (RFC 9309 2.2, 2.2.4 and 2.5)."""

from __future__ import annotations

import codecs
import math
import re
import sys
from enum import Enum

from scrapy_rep.protocol.robotstxt.product_tokens import IDENTIFIER

WHITE_SPACE = " \t"  # 2.2: WS; VT, FF and NBSP are none

_MARKS = re.compile(rb"(?:\xef\xbb\xbf)*")
_PADDING = f"{WHITE_SPACE}\0".encode()
# Where the 0 of an ASCII character stands, of its two octets.
_UTF_16 = (("utf-16-le", codecs.BOM_UTF16_LE, 1), ("utf-16-be", codecs.BOM_UTF16_BE, 0))


def readable(body: bytes, limit: int) -> bytes:
    """The octets that are read: UTF-16 as UTF-8 (2.2.2: MAY bridge), no byte order mark, no cut line, no NUL at the end
    of a line, and LF for each line end (2.2, NL: CR, LF or CRLF, and nothing else)."""
    octets = body if len(body) <= limit else body[: limit + 1]
    # This check is faster for nearly all files.
    text = _from_utf_16(octets) if b"\0" in octets[:2] or not octets[:2].isascii() else None
    octets = octets if text is None else text.encode("utf-8", "replace")
    if octets.startswith(codecs.BOM_UTF8):
        # Where files are joined, or written by an editor that adds a mark to a mark, there are several.
        octets = octets[_MARKS.match(octets).end() :]  # type: ignore[union-attr]  # it matches anything
    if b"\r" in octets:
        # Both ways make LF of each CRLF and CR. To remove octets is ten times faster than to replace them.
        ends_all = octets.count(b"\r") == octets.count(b"\r\n")
        octets = octets.replace(b"\r", b"") if ends_all else octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if len(body) > limit:
        # The octet after the limit shows whether the last line is whole.
        octets = octets[: octets.rfind(b"\n") + 1]
    if b"\0" in octets:
        # Some servers pad lines with NUL, which would disarm their rules.
        octets = b"\n".join([line.rstrip(_PADDING) for line in octets.split(b"\n")])
    return octets


def _from_utf_16(octets: bytes) -> str | None:
    """The text; None if the octets are no UTF-16. A byte order mark or an ASCII character begins it, or both. With one
    of them alone it also has a record."""
    for encoding, mark, place_of_0 in _UTF_16:
        rest = octets.removeprefix(mark)
        has_mark = len(rest) < len(octets)
        begins_in_ascii = rest[place_of_0 : place_of_0 + 1] == b"\0" != rest[1 - place_of_0 : 2 - place_of_0]
        if has_mark or begins_in_ascii:
            text = rest.decode(encoding, "replace")
            if (has_mark and begins_in_ascii) or has_record("\n" + text.replace("\r", "\n")):
                return text
    return None


def searchable(octets: bytes) -> str:
    """The text that the expressions below search: a character for each octet, and LF before each line."""
    return "\n" + octets.decode("latin-1")


class Directive(Enum):
    """The keys that are read, each with the misspellings that are read as well (2.2.4: MAY be lenient)."""

    def __init__(self, spelling: str, *misspellings: str) -> None:
        self.key = spelling
        self.spellings = (spelling, *misspellings)

    USER_AGENT = "user-agent", "useragent", "user agent"
    ALLOW = ("allow",)
    DISALLOW = "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"
    CRAWL_DELAY = "crawl-delay", "crawl delay", "crawldelay"
    SITEMAP = "sitemap", "site-map", "sitemaps"
    CONTENT_USAGE = ("content-usage",)  # `usage.statements` reads these two
    CONTENT_SIGNAL = ("content-signal",)


_WS = f"[{WHITE_SPACE}]"
# What follows white space never begins with it, so this need not give any back. Python can say that since 3.11.
_ANY_WS = f"{_WS}*+" if sys.version_info >= (3, 11) else f"{_WS}*"
# The token of a user-agent line; empty if its value begins with none: `*foo` names nobody (2.2.1).
_TOKEN = rf"({IDENTIFIER}|\*(?=[\n#{WHITE_SPACE}]|\Z)|)"
TOKEN = re.compile(_TOKEN)
VALUE = "(.*)"
# A missing colon is forgiven if the line is exactly two words, the first a known key.
_ONE_WORD = rf"{_WS}(?={_ANY_WS}[^\n#:{WHITE_SPACE}][^\n#{WHITE_SPACE}]*{_ANY_WS}(?:[\n#]|\Z))"


def key_of(*directives: Directive) -> str:
    """The expression for a key, with its colon."""
    spellings = [re.escape(spelling) for directive in directives for spelling in directive.spellings]
    words = "|".join(spelling for spelling in spellings if " " not in spelling)
    key = rf"(?:{words})(?:{_ANY_WS}:|{_ONE_WORD})"
    for phrase in (spelling for spelling in spellings if " " in spelling):
        key += rf"|{phrase}{_ANY_WS}:"
    return f"(?i:{key})"


def record_of(key: str, value: str) -> re.Pattern[str]:
    """The expression for a line. Linear in the text: no part can match what the next one begins with."""
    return re.compile(rf"\n{_ANY_WS}{key}{_ANY_WS}{value}", re.ASCII)


# These define what a record is, and nothing else does. A search for one kind of record skips all other lines.
RECORDS = {
    directive: record_of(key_of(directive), _TOKEN if directive is Directive.USER_AGENT else VALUE)
    for directive in Directive
}
# Lines after which a user-agent line starts afresh (`segments`).
RULE_LINE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW), "")
RULE_OR_DELAY_LINE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW, Directive.CRAWL_DELAY), "")
PATTERN_STARTS = (b"/", b"*")  # of rules that can match (2.2, path-pattern; 5.1)
_PATTERN_START = "[/*]"
# Of such rules the first finds the values, and the second the keys, empty for a disallow. Both find the same lines in
# the same order, so a rule has the same place in both.
RULE_VALUE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW), rf"({_PATTERN_START}.*)")
RULE_ALLOWS = record_of(f"(?:({key_of(Directive.ALLOW)})|{key_of(Directive.DISALLOW)})", _PATTERN_START)


def has_record(text: str) -> bool:
    """Whether the text, as `searchable` has it, has a user-agent line, a sitemap, or a rule that can match."""
    return any(
        record.search(text) for record in (RECORDS[Directive.USER_AGENT], RECORDS[Directive.SITEMAP], RULE_VALUE)
    )


_COMMENT = re.compile("#.*")


def without_comments(lines: str) -> str:
    """Values that `RECORDS` found, one on each line, without comments and the white space before them."""
    if "#" in lines:
        lines = _COMMENT.sub("", lines)
    if " \n" in lines or "\t\n" in lines or lines.endswith((" ", "\t")):
        lines = "\n".join([line.rstrip(WHITE_SPACE) for line in lines.split("\n")])
    return lines


_SECONDS = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def seconds_of(value: str) -> float | None:
    """A value of Crawl-delay in seconds; None if it is no finite number, or negative."""
    seconds = float(value) if _SECONDS.fullmatch(value) else math.inf
    return seconds if math.isfinite(seconds) else None
