"""What a product token is made of, and which of a User-Agent header it is (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re

EVERYONE = "*"

# The standard's grammar has no digits and dots; crawlers have (MJ12bot, 360Spider, archive.org_bot).
IDENTIFIER = r"[A-Za-z0-9_.-]+"
_PRODUCT_TOKEN = re.compile(IDENTIFIER)
_AFTER_COMPATIBLE = re.compile(rf"\bcompatible;\s*({IDENTIFIER})", re.IGNORECASE)
_COMMENT = re.compile(r"\([^()]*\)")
# `Mozilla/5.0 (...) ... Safari/605.1.15 (Applebot/0.1; +http://...)`: browsers have no versions there.
_AT_START_OF_COMMENT = re.compile(rf"\(\s*({IDENTIFIER})/[0-9]")
# A product begins a word and has a letter: `+http` begins with a sign, `5.0` is a version.
_PRODUCT = re.compile(rf"(?<![^\s,;()])(?=[0-9_.-]*[A-Za-z])({IDENTIFIER})")

# Products that browsers name, and crawlers that resemble them: none of these says who the crawler is.
BROWSERS = frozenset(
    """
    mozilla applewebkit khtml gecko like version mobile chrome chromium headlesschrome crios crmo safari firefox fxios
    seamonkey opera opr opios presto msie trident edge edg edga edgios samsungbrowser vivaldi yabrowser brave ucbrowser
    silk duckduckgo konqueror epiphany ubuntu android
    """.split()
)


def is_product_token(text: str) -> bool:
    """Whether this is one product token, or `*`, and nothing else."""
    return text == EVERYONE or _PRODUCT_TOKEN.fullmatch(text) is not None


def product_token(user_agent: str) -> str | None:
    """The product that a crawler calls itself in its User-Agent header: the one after `compatible;` (Figure 1), else
    the first that is no browser's, else one that begins a comment. None where it names no crawler."""
    without_comments = user_agent
    while (shorter := _COMMENT.sub(" ", without_comments)) != without_comments:
        without_comments = shorter
    named = [
        *_AFTER_COMPATIBLE.findall(user_agent),
        *_PRODUCT.findall(without_comments),
        *_AT_START_OF_COMMENT.findall(user_agent),
    ]
    return next((token for token in named if token.lower() not in BROWSERS), None)
