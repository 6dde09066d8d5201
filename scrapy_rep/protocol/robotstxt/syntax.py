"""The lines and records of a robots.txt as regular expressions (RFC 9309 2.2, 2.2.4 and 2.5)."""

from __future__ import annotations

import codecs
import math
import re
import sys
from enum import Enum

from scrapy_rep.protocol.robotstxt.product_tokens import IDENTIFIER

WHITE_SPACE = " \t"  # WS in 2.2; VT, FF and NBSP are no white space

_MARKS = re.compile(rb"(?:\xef\xbb\xbf)*")
_PADDING = f"{WHITE_SPACE}\0".encode()
# Encoding, byte order mark, and which of the two octets of an ASCII character is 0.
_UTF_16 = (("utf-16-le", codecs.BOM_UTF16_LE, 1), ("utf-16-be", codecs.BOM_UTF16_BE, 0))


def readable(body: bytes, limit: int) -> bytes:
    """Return the part of the body that is parsed, cleaned up:

    - UTF-16 is converted to UTF-8 (2.2.2: "MAY bridge").
    - A byte order mark is removed, and so is NUL at the end of a line.
    - Each line end (CR, LF or CRLF: NL in 2.2) becomes LF.
    - A line that the limit cuts is removed.
    """
    octets = body if len(body) <= limit else body[: limit + 1]
    # A fast check that is enough for nearly all files.
    text = _from_utf_16(octets) if b"\0" in octets[:2] or not octets[:2].isascii() else None
    octets = octets if text is None else text.encode("utf-8", "replace")
    if octets.startswith(codecs.BOM_UTF8):
        # There may be several: some editors add a mark to a file that has one.
        octets = octets[_MARKS.match(octets).end() :]  # type: ignore[union-attr]  # it matches anything
    if b"\r" in octets:
        octets = octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if len(body) > limit:
        # The octet after the limit shows whether the last line is whole.
        octets = octets[: octets.rfind(b"\n") + 1]
    if b"\0" in octets:
        # Some servers pad lines with NUL. If it stayed, their rules would match nothing.
        octets = b"\n".join([line.rstrip(_PADDING) for line in octets.split(b"\n")])
    return octets


def _from_utf_16(octets: bytes) -> str | None:
    """Return the octets decoded as UTF-16; None if they are not UTF-16.

    UTF-16 begins with a byte order mark and an ASCII character. If one of the two is missing, the text must have a
    record.
    """
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
    """Return the text that the expressions below search: one character for each octet, and an LF before each line."""
    return "\n" + octets.decode("latin-1")


class Directive(Enum):
    """The keys that this package reads, each with the misspellings that it also reads (2.2.4: "MAY be lenient")."""

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
# The text after white space never begins with white space, so backtracking is useless here. Possessive quantifiers,
# which prevent it, exist since Python 3.11.
_ANY_WS = f"{_WS}*+" if sys.version_info >= (3, 11) else f"{_WS}*"
# The product token or `*` at the start of a user-agent line's value; empty for other values, such as `*foo` (2.2.1).
_TOKEN = rf"({IDENTIFIER}|\*(?=[\n#{WHITE_SPACE}]|\Z)|)"
TOKEN = re.compile(_TOKEN)
VALUE = "(.*)"
# A missing colon is accepted if the line has exactly two words and the first is a known key.
_ONE_WORD = rf"{_WS}(?={_ANY_WS}[^\n#:{WHITE_SPACE}][^\n#{WHITE_SPACE}]*{_ANY_WS}(?:[\n#]|\Z))"


def key_of(*directives: Directive) -> str:
    """Return the expression for a key and its colon."""
    spellings = [re.escape(spelling) for directive in directives for spelling in directive.spellings]
    words = "|".join(spelling for spelling in spellings if " " not in spelling)
    key = rf"(?:{words})(?:{_ANY_WS}:|{_ONE_WORD})"
    for phrase in (spelling for spelling in spellings if " " in spelling):
        key += rf"|{phrase}{_ANY_WS}:"
    return f"(?i:{key})"


def record_of(key: str, value: str) -> re.Pattern[str]:
    """Return the expression for a line.

    No part of it can match the beginning of the next part. So a search takes time linear in the length of the text.
    """
    return re.compile(rf"\n{_ANY_WS}{key}{_ANY_WS}{value}", re.ASCII)


# The definition of a record, for each directive. A search for one directive skips all other lines.
RECORDS = {
    directive: record_of(key_of(directive), _TOKEN if directive is Directive.USER_AGENT else VALUE)
    for directive in Directive
}
# Lines that end a run of user-agent lines (`segments`).
RULE_LINE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW), "")
RULE_OR_DELAY_LINE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW, Directive.CRAWL_DELAY), "")
PATTERN_STARTS = (b"/", b"*")  # the first octet of a rule's value if the rule can match (2.2, path-pattern; 5.1)
_PATTERN_START = "[/*]"
# RULE_VALUE finds the values of rules that can match. RULE_ALLOWS matches the same lines in the same order. Its result
# is the key for an allow line, and an empty text for a disallow line.
RULE_VALUE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW), rf"({_PATTERN_START}.*)")
RULE_ALLOWS = record_of(f"(?:({key_of(Directive.ALLOW)})|{key_of(Directive.DISALLOW)})", _PATTERN_START)


def has_record(text: str) -> bool:
    """Whether the text has a user-agent line, a sitemap, or a rule that can match. An LF has to stand before each line,
    as in the text of `searchable`."""
    return any(
        record.search(text) for record in (RECORDS[Directive.USER_AGENT], RECORDS[Directive.SITEMAP], RULE_VALUE)
    )


_COMMENT = re.compile("#.*")


def without_comments(lines: str) -> str:
    """Return the values that `RECORDS` found, one on each line, without comments and without white space at the end."""
    if "#" in lines:
        lines = _COMMENT.sub("", lines)
    if " \n" in lines or "\t\n" in lines or lines.endswith((" ", "\t")):
        lines = "\n".join([line.rstrip(WHITE_SPACE) for line in lines.split("\n")])
    return lines


_SECONDS = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def seconds_of(value: str) -> float | None:
    """Return the value of a Crawl-delay in seconds; None if it is negative or no finite number."""
    seconds = float(value) if _SECONDS.fullmatch(value) else math.inf
    return seconds if math.isfinite(seconds) else None
