"""Product tokens, and which records of a robots.txt are for them (RFC 9309 sections 2.1, 2.2.1 and 2.2.4).

A segment is the text from one user-agent line to the next:

    User-agent: a       Segment 0 has a delay and no rule.
    Crawl-delay: 5
    User-agent: b       Segment 1 has a rule for a and b, and a delay for b alone.
    Disallow: /x
    Crawl-delay: 7
    User-agent: c       Segment 2 has no records.

A run is a row of user-agent lines that share the records below it. A rule between two user-agent lines ends a run. For
delays, a delay between them ends it, too; for statements about usage, a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from scrapy_rep.protocol.robotstxt.syntax import IDENTIFIER, RECORDS, RULE_LINE, Directive, searchable

EVERYONE = "*"

_PRODUCT_TOKEN = re.compile(IDENTIFIER)
_COMMENT = re.compile(r"\([^()]*\)")
# `... Safari/605.1.15 (Applebot/0.1; +http://...)`: browsers have no version at the start of a comment.
_AT_START_OF_COMMENT = re.compile(rf"\(\s*({IDENTIFIER})/[0-9]")
# An identifier with a letter. Not the beginning of an address: `bot@...`, `https://...`, `mailto:...`, `+example.com`.
_NAME = rf"(?:\+(?![^\s/;,]*\.))?(?!www\.)(?=[0-9_.-]*[A-Za-z])({IDENTIFIER})(?![A-Za-z0-9_.-]|@|:\S)"
# At the start of a word. So `5.0` is no product, nor is anything within an address.
_PRODUCT = re.compile(rf"(?<![^\s,;()]){_NAME}")
_AFTER_COMPATIBLE = re.compile(r"\bcompatible;", re.IGNORECASE)
_START_OF_PART = re.compile(rf"\s*{_NAME}")

# The products of browsers. Crawlers send them, too, so none of these products identifies a crawler.
BROWSERS = frozenset(
    """
    mozilla applewebkit khtml gecko like version mobile chrome chromium headlesschrome crios crmo safari firefox fxios
    seamonkey opera opr opios presto msie trident edge edg edga edgios samsungbrowser vivaldi yabrowser brave ucbrowser
    silk duckduckgo konqueror epiphany ubuntu android
    """.split()
)


# The first words of a platform, such as `Windows NT 10.0` or `Intel Mac OS X 14_4_1`.
_PLATFORMS = frozenset(
    """
    windows nt win32 win64 wow64 x64 x86 x86_64 amd64 i386 i586 i686 arm arm64 aarch64 armv7l armv8l x11 wayland linux u
    macintosh mac os x intel ppc iphone ipad ipod cpu cros freebsd openbsd netbsd sunos unix tablet desktop en
    """.split()
)
_LANGUAGE = re.compile("[a-z]{2}[-_][A-Z]{2}")


def is_product_token(text: str) -> bool:
    """Whether the text is exactly one product token, or `*`."""
    return text == EVERYONE or _PRODUCT_TOKEN.fullmatch(text) is not None


def product_token(user_agent: str) -> str | None:
    """Return the product token in a crawler's User-Agent header; None if the header names no crawler.

    The token is the first product outside comments, because products are in order of significance (RFC 9110 10.1.5).
    If that product is a browser's, a product after `compatible;` (Figure 1) counts first, then the next products
    outside comments, then a product with a version at the start of a comment.
    """
    without_comments = user_agent
    while (shorter := _COMMENT.sub(" ", without_comments)) != without_comments:
        without_comments = shorter
    named = _names(_PRODUCT.findall(without_comments))
    if not named or named[0].lower() in BROWSERS:
        named = [*_named_compatible(user_agent), *named, *_AT_START_OF_COMMENT.findall(user_agent)]
    return next((token for token in named if token.lower() not in BROWSERS), None)


def is_doubtful(token: str, user_agent: str) -> bool:
    """Whether the header seems to have a name of several words, of which the token is only the first."""
    return re.search(rf"(?<![^\s,;()+]){re.escape(token)}\s+(?!\+|v?[0-9]){_NAME}", user_agent) is not None


def _names(words: Iterable[str]) -> list[str]:
    """Return the words that are neither platforms nor languages."""
    return [word for word in words if word.lower() not in _PLATFORMS and not _LANGUAGE.fullmatch(word)]


def _named_compatible(user_agent: str) -> Iterator[str]:
    """Yield the first name after each `compatible;`, also if it is a browser's."""
    for after in _AFTER_COMPATIBLE.split(user_agent)[1:]:
        parts = map(_START_OF_PART.match, re.split("[()]", after, maxsplit=1)[0].split(";"))
        yield from _names(part[1] for part in parts if part)[:1]


_USER_AGENT = RECORDS[Directive.USER_AGENT]

# This text joins segments. It turns the rest of a user-agent line into a comment.
_COMMENT_LINE = "\n#"


class Segments:
    """The segments of a file."""

    __slots__ = ("texts", "tokens")

    def __init__(self, octets: bytes) -> None:
        parts = _USER_AGENT.split(searchable(octets))
        self.tokens = [token.lower() for token in parts[1::2]]
        """The product token of each segment's user-agent line, in lower case; empty if the line has none."""
        self.texts = parts[2::2]
        """For each segment, the rest of its user-agent line and all lines after it."""

    def obeyed_token(self, product_tokens: Sequence[str]) -> str | None:
        """Return the first of these tokens that a group names; else `*`; None if there is no group of `*` either."""
        for token in (*product_tokens, EVERYONE):
            if token.lower() in self.tokens:
                return token
        return None

    def of(self, product_token: str | None, ends: re.Pattern[str] = RULE_LINE) -> tuple[int, ...]:
        """Return the segments that contain the token's records of one kind. There are none if the token is None.

        `ends` matches the lines that end a run of user-agent lines. The last segment of a run has the records.
        """
        key = product_token and product_token.lower()
        last, end = len(self.tokens) - 1, -1
        own_segments = []
        for start in [at for at, token in enumerate(self.tokens) if token == key]:
            if start <= end:
                continue
            end = start
            while end < last and not ends.search(self.texts[end]):
                end += 1
            own_segments.append(end)
        return tuple(own_segments)

    def joined(self, own_segments: Sequence[int]) -> str:
        """Return the lines of these segments as one text."""
        return _COMMENT_LINE.join([self.texts[at] for at in own_segments])


def starts_of_segments(text: str) -> list[int]:
    """Return the offsets of all user-agent lines in a text that `searchable` returned."""
    return [record.start() for record in _USER_AGENT.finditer(text)]
