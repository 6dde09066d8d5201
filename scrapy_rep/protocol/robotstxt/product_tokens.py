"""Product tokens: their characters, and how to find one in a User-Agent header (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re

EVERYONE = "*"

# The standard's grammar allows no digits and no dots, but crawlers have them (MJ12bot, 360Spider, archive.org_bot).
IDENTIFIER = r"[A-Za-z0-9_.-]+"
_PRODUCT_TOKEN = re.compile(IDENTIFIER)
_AFTER_COMPATIBLE = re.compile(rf"\bcompatible;\s*({IDENTIFIER})", re.IGNORECASE)
_COMMENT = re.compile(r"\([^()]*\)")
# `... Safari/605.1.15 (Applebot/0.1; +http://...)`: browsers have no version at the start of a comment.
_AT_START_OF_COMMENT = re.compile(rf"\(\s*({IDENTIFIER})/[0-9]")
# A product is at the start of a word and has a letter. So `+http` is no product (its word begins with `+`), nor `5.0`.
_PRODUCT = re.compile(rf"(?<![^\s,;()])(?=[0-9_.-]*[A-Za-z])({IDENTIFIER})")

# The products of browsers. Crawlers send them, too, so none of these products identifies a crawler.
BROWSERS = frozenset(
    """
    mozilla applewebkit khtml gecko like version mobile chrome chromium headlesschrome crios crmo safari firefox fxios
    seamonkey opera opr opios presto msie trident edge edg edga edgios samsungbrowser vivaldi yabrowser brave ucbrowser
    silk duckduckgo konqueror epiphany ubuntu android
    """.split()
)


def is_product_token(text: str) -> bool:
    """Whether the text is exactly one product token, or `*`."""
    return text == EVERYONE or _PRODUCT_TOKEN.fullmatch(text) is not None


def product_token(user_agent: str) -> str | None:
    """Return the product token in a crawler's User-Agent header; None if the header names no crawler.

    A product after `compatible;` (Figure 1) counts first, then a product outside comments, then a product with a
    version at the start of a comment. The products of browsers are skipped.
    """
    without_comments = user_agent
    while (shorter := _COMMENT.sub(" ", without_comments)) != without_comments:
        without_comments = shorter
    named = [
        *_AFTER_COMPATIBLE.findall(user_agent),
        *_PRODUCT.findall(without_comments),
        *_AT_START_OF_COMMENT.findall(user_agent),
    ]
    return next((token for token in named if token.lower() not in BROWSERS), None)
