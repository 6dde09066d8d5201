"""Product tokens: their characters, and how to find one in a User-Agent header (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

EVERYONE = "*"

# The standard's grammar allows no digits and no dots, but crawlers have them (MJ12bot, 360Spider, archive.org_bot).
IDENTIFIER = r"[A-Za-z0-9_.-]+"
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
