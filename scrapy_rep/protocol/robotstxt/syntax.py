"""Lines and records of a robots.txt as regular expressions; byte order marks, UTF-16, line ends (RFC 9309 2.2)."""

import codecs
import html
import math
import re
import sys
from enum import Enum

# The standard's grammar allows no digits and no dots, but crawlers have them (MJ12bot, 360Spider, archive.org_bot).
IDENTIFIER = r"[A-Za-z0-9_.-]+"
EVERYONE = "*"
"""Stands in a user-agent line for all crawlers that no other group names (2.2.1)."""

WHITE_SPACE = " \t"  # WS in 2.2
# What is skipped beside a key or a value, too: controls, white space of Unicode, U+200B and U+FEFF. The owner means the
# line: `Disallow :` with a no-break space is French typography, scripts join files that begin with a byte order mark
# (U+FEFF), and servers pad lines with NUL.
_IN_UNICODE = (0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF)
_SKIPPED = "".join(map(chr, (*range(0x21), *range(0x7F, 0xA1), *_IN_UNICODE)))
_USUAL = bytes([*b"\t\r", *range(0x20, 0x7F)])
# What a browser makes of a text file: a page with nothing but a `<pre>`. Chromium also adds an empty `<div>`.
_MAX_END = 200  # octets from the `</pre>` to the end of such a page
_BROWSER_PAGE = re.compile(
    rb"\s*(?:<!doctype[^>]*>\s*)?(?:<html[^>]*>\s*)?(?:<head[^>]*>.*?</head>\s*)?(?:<body[^>]*>\s*)?"
    rb"<pre[^>]*>([^<]*)</pre>\s*(?:<div[^>]*></div>\s*)?(?:</body>\s*)?(?:</html>\s*)?",
    re.IGNORECASE | re.DOTALL,
)
# Encoding, byte order mark, and which of the two octets of an ASCII character is 0.
_UTF_16 = (("utf-16-le", codecs.BOM_UTF16_LE, 1), ("utf-16-be", codecs.BOM_UTF16_BE, 0))


def is_product_token(text: str) -> bool:
    """Whether the text is exactly one product token, or `*`."""
    return bool(text) and TOKEN.fullmatch(text) is not None


def readable(body: bytes, limit: int) -> bytes:
    """Return the part of the body that is parsed, cleaned up:

    - A byte order mark is removed. UTF-16 is converted to UTF-8 (2.2.2: "MAY bridge").
    - Each line end (CR, LF or CRLF: NL in 2.2) becomes LF.
    - In lines with unusual white space, the white space before a key, before a value and after a value is removed.
    - A line that the limit cuts is removed.
    """
    octets = (body if len(body) <= limit else body[: limit + 1]).removeprefix(codecs.BOM_UTF8)
    # Few files have other octets, and most of these octets are printable characters.
    is_usual = octets.translate(None, _USUAL + b"\n").decode("utf-8", "ignore").isprintable()
    if not is_usual and (text := _from_utf_16(octets)) is not None:
        octets = text.encode("utf-8", "replace")
    if b"\r" in octets:
        octets = octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if len(body) > limit:
        # The octet after the limit shows whether the last line is whole.
        octets = octets[: octets.rfind(b"\n") + 1]
    return octets if is_usual else _tidied(octets)


def _tidied(octets: bytes) -> bytes:
    """Return the text without unusual white space before a key, before a value and after a value."""
    lines = zip(octets.split(b"\n"), octets.translate(None, _USUAL).split(b"\n"), strict=True)
    return b"\n".join([_tidied_line(line) if unusual else line for line, unusual in lines])


def _tidied_line(line: bytes) -> bytes:
    text, mark, comment = line.decode("utf-8", "surrogateescape").partition("#")
    text = text.strip(_SKIPPED)
    if not text.isprintable() and (key := _KEY.match(text)):
        text = f"{key[0]} {text[key.end() :].lstrip(_SKIPPED)}"
    return f"{text}{mark}{comment}".encode("utf-8", "surrogateescape")


def text_in_browser_page(body: bytes) -> bytes | None:
    """Return the robots.txt of which a browser made a page, with its entities decoded; None for any other body.

    The text must have a record: the page of an error may also be nothing but a `<pre>`.
    """
    # The search for an end is fast, and enough for nearly all bodies.
    page = _BROWSER_PAGE.fullmatch(body) if b"</pre>" in body[-_MAX_END:].lower() else None
    if page is None:
        return None
    try:
        text = html.unescape(page[1].decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    except ValueError:  # a number of more than 4,300 digits after `&#`, which no browser writes
        return None
    return text if has_record(searchable(readable(text, len(text)))) else None


def _from_utf_16(octets: bytes) -> str | None:
    """Return the octets decoded as UTF-16; None if they are not UTF-16.

    UTF-16 begins with a byte order mark and an ASCII character. If one of the two is missing, the text must have a
    record.
    """
    for encoding, mark, index_of_0 in _UTF_16:
        rest = octets.removeprefix(mark)
        has_mark = len(rest) < len(octets)
        begins_in_ascii = rest[index_of_0 : index_of_0 + 1] == b"\0" != rest[1 - index_of_0 : 2 - index_of_0]
        if has_mark or begins_in_ascii:
            text = rest.decode(encoding, "replace")
            if (has_mark and begins_in_ascii) or has_record("\n" + text.lstrip("\ufeff").replace("\r", "\n")):
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
    LICENSE = ("license",)  # RSL 1.0 (Really Simple Licensing)
    CONTENT_USAGE = ("content-usage",)  # `usage.statements` reads these two
    CONTENT_SIGNAL = "content-signal", "content-signals"


_WS = f"[{WHITE_SPACE}]"
# The text after white space never begins with white space, so backtracking is useless here. Possessive quantifiers,
# which prevent it, exist since Python 3.11.
_ANY_WS = f"{_WS}*+" if sys.version_info >= (3, 11) else f"{_WS}*"
# The product token or `*` at the start of a user-agent line's value; empty for other values, such as `*foo` (2.2.1).
_TOKEN = rf"({IDENTIFIER}|\*(?=[\n#{WHITE_SPACE}]|\Z)|)"
TOKEN = re.compile(_TOKEN)
VALUE = "(.*)"
# Between a key and its colon, all octets are skipped that are not printable ASCII. The colon may be full-width: three
# octets or, for `_KEY`, a character. The first colon counts.
_COLON = "(?:(?!\xef\xbc\x9a|\uff1a)[^!-~\n])*(?::|\xef\xbc\x9a|\uff1a)"
# A missing colon is accepted if the line has exactly two words and the first is a known key.
_ONE_WORD = rf"{_WS}(?={_ANY_WS}[^\n#:{WHITE_SPACE}][^\n#{WHITE_SPACE}]*{_ANY_WS}(?:[\n#]|\Z))"


def key_of(*directives: Directive) -> str:
    """Return the expression for a key and its colon."""
    spellings = [re.escape(spelling) for directive in directives for spelling in directive.spellings]
    words = [spelling for spelling in spellings if " " not in spelling]
    return f"(?i:(?:{'|'.join(spellings)}){_COLON}|(?:{'|'.join(words)}){_ONE_WORD})"


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
_KEY = re.compile(key_of(*Directive), re.ASCII)
# What shows that the rest of a user-agent line was meant to be read: `GPTBot, ClaudeBot` or `* Disallow: /private/`.
MORE_NAMES = re.compile(rf"[,;|\x80-\xff]|{_WS}{key_of(*Directive)}")
USER_AGENT_LINE = RECORDS[Directive.USER_AGENT]
# Lines that end a run of user-agent lines (`groups`).
RULE_LINE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW), "")
RULE_OR_DELAY_LINE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW, Directive.CRAWL_DELAY), "")
RULE_OR_LICENSE_LINE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW, Directive.LICENSE), "")
# What a License line must have (RSL 1.0: "a fully qualified URL"). Its length is limited, because pages carry it.
URL = re.compile(rb"(?i:https?)://[^\x00-\x20\x7f/?#][^\x00-\x20\x7f]{0,2000}")
PATTERN_STARTS = (b"/", b"*")  # the first octet of a rule's value if the rule can match (2.2, path-pattern; 5.1)
_PATTERN_START = "[/*]"
# RULE_VALUE finds the values of rules that can match. RULE_ALLOWS matches the same lines in the same order. Its result
# is the key for an allow line, and an empty text for a disallow line.
RULE_VALUE = record_of(key_of(Directive.ALLOW, Directive.DISALLOW), rf"({_PATTERN_START}.*)")
RULE_ALLOWS = record_of(f"(?:({key_of(Directive.ALLOW)})|{key_of(Directive.DISALLOW)})", _PATTERN_START)


def has_record(text: str) -> bool:
    """Whether the text has a user-agent line, a sitemap, or a rule that can match. An LF has to stand before each line,
    as in the text of `searchable`."""
    return any(record.search(text) for record in (USER_AGENT_LINE, RECORDS[Directive.SITEMAP], RULE_VALUE))


_COMMENT = re.compile("#.*")


def values_of(records: re.Pattern[str], text: str) -> str:
    """Return the values of these records, one on each line, without comments and without white space at the end."""
    values = "\n".join(records.findall(text))
    if "#" in values:
        values = _COMMENT.sub("", values)
    if " " in values or "\t" in values:
        values = "\n".join([value.rstrip(WHITE_SPACE) for value in values.split("\n")])
    return values


_QUOTED = re.compile(rb"""(["'])(.*)\1|<(.*)>""", re.DOTALL)


def address_in(value: bytes) -> bytes:
    """Return the address in the value of a Sitemap or License line, without the quotes or `<>` around it."""
    quoted = _QUOTED.fullmatch(value)
    return (quoted[2] or quoted[3] or b"").strip(WHITE_SPACE.encode()) if quoted else value


_SECONDS = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def seconds_of(value: str) -> float | None:
    """Return the value of a Crawl-delay in seconds; None if it is negative or no finite number."""
    seconds = float(value) if _SECONDS.fullmatch(value) else math.inf
    return seconds if math.isfinite(seconds) else None
