"""Octets of a robots.txt -> the text that is searched, and what a record is in it (RFC 9309 2.2, 2.2.4 and 2.5)."""

from __future__ import annotations

import codecs
import re
import sys
from enum import Enum

from scrapy_rep.protocol.robotstxt.product_tokens import IDENTIFIER

WHITE_SPACE = " \t"  # 2.2: WS; VT, FF and NBSP are none

_PADDING = f"{WHITE_SPACE}\0".encode()
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def readable(body: bytes, limit: int) -> bytes:
    """The octets that are read: UTF-16 as UTF-8 (2.2.2: MAY bridge), no byte order mark, no cut line, no NUL at the end
    of a line, and LF for each line end (2.2, NL: CR, LF or CRLF, and nothing else)."""
    octets = body if len(body) <= limit else body[: limit + 1]
    if octets.startswith(_UTF16_MARKS) and _is_utf_16(octets):
        octets = octets.decode("utf-16", "replace").encode("utf-8", "replace")
    else:
        octets = octets.removeprefix(codecs.BOM_UTF8)
    if b"\r" in octets:
        # Either way each CRLF or CR becomes LF; removing octets is ten times faster than replacing them.
        ends_all = octets.count(b"\r") == octets.count(b"\r\n")
        octets = octets.replace(b"\r", b"") if ends_all else octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if len(body) > limit:
        # One octet past the limit is looked at: the line is whole if its end is there.
        octets = octets[: octets.rfind(b"\n") + 1]
    if b"\0" in octets:
        # Some servers pad lines with NUL, which would disarm their rules.
        octets = b"\n".join([line.rstrip(_PADDING) for line in octets.split(b"\n")])
    return octets


def _is_utf_16(octets: bytes) -> bool:
    """Whether text that begins with a mark of UTF-16 really is UTF-16: its first character is ASCII, so one of the two
    octets is 0."""
    low, high = octets[2:3], octets[3:4]
    if octets.startswith(codecs.BOM_UTF16_BE):
        low, high = high, low
    return high == b"\0" != low


def searchable(octets: bytes) -> str:
    """A text in which records are found: an octet a character, and LF before each line."""
    return "\n" + octets.decode("latin-1")


class Directive(Enum):
    """The records that are read, each with its misspellings, which are read as well (2.2.4: MAY be lenient)."""

    def __init__(self, spelling: str, *misspellings: str) -> None:
        self.spellings = (spelling, *misspellings)

    USER_AGENT = "user-agent", "useragent", "user agent"
    ALLOW = ("allow",)
    DISALLOW = "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"
    CRAWL_DELAY = "crawl-delay", "crawl delay", "crawldelay"
    SITEMAP = "sitemap", "site-map", "sitemaps"


_WS = f"[{WHITE_SPACE}]"
# What follows never begins with white space: no need to try less of it. Python can be told so since 3.11.
_ANY_WS = f"{_WS}*+" if sys.version_info >= (3, 11) else f"{_WS}*"
# Of a user-agent line no more than the token, none where the value begins otherwise: `*foo` names nobody (2.2.1).
_TOKEN = rf"({IDENTIFIER}|\*(?=[\n#{WHITE_SPACE}]|\Z)|)"
TOKEN = re.compile(_TOKEN)
_VALUE = "(.*)"
# A missing colon is forgiven where the line is exactly two words, the first a known key.
_ONE_WORD = rf"{_WS}(?={_ANY_WS}[^\n#:{WHITE_SPACE}][^\n#{WHITE_SPACE}]*{_ANY_WS}(?:[\n#]|\Z))"


def _key(*directives: Directive) -> str:
    """A key up to its value."""
    spellings = [re.escape(spelling) for directive in directives for spelling in directive.spellings]
    words = "|".join(spelling for spelling in spellings if " " not in spelling)
    key = rf"(?:{words})(?:{_ANY_WS}:|{_ONE_WORD})"
    for phrase in (spelling for spelling in spellings if " " in spelling):
        key += rf"|{phrase}{_ANY_WS}:"
    return f"(?i:{key})"


def _record(key: str, value: str) -> re.Pattern[str]:
    """Linear in the text: no part can match what the next one begins with."""
    return re.compile(rf"\n{_ANY_WS}{key}{_ANY_WS}{value}", re.ASCII)


# What a record is, is said here and nowhere else: whoever wants one kind alone passes over all other lines.
RECORDS = {
    directive: _record(_key(directive), _TOKEN if directive is Directive.USER_AGENT else _VALUE)
    for directive in Directive
}
RULE_LINE = _record(_key(Directive.ALLOW, Directive.DISALLOW), "")
RULE_OR_DELAY_LINE = _record(_key(Directive.ALLOW, Directive.DISALLOW, Directive.CRAWL_DELAY), "")
# Of rules that may match (2.2, path-pattern; 5.1) the value, and the key where it allows, else nothing. Both find the
# same lines in the same order: a rule's place is its place in either.
PATTERN_STARTS = ("/", "*")
_PATTERN_START = f"[{''.join(PATTERN_STARTS)}]"
RULE_VALUE = _record(_key(Directive.ALLOW, Directive.DISALLOW), rf"({_PATTERN_START}.*)")
RULE_ALLOWS = _record(f"(?:({_key(Directive.ALLOW)})|{_key(Directive.DISALLOW)})", _PATTERN_START)

_COMMENT = re.compile("#.*")


def without_comments(lines: str) -> str:
    """Values that `RECORDS` found, one a line, without comments and white space behind them."""
    if "#" in lines:
        lines = _COMMENT.sub("", lines)
    if " \n" in lines or "\t\n" in lines or lines.endswith((" ", "\t")):
        lines = "\n".join([line.rstrip(WHITE_SPACE) for line in lines.split("\n")])
    return lines
