"""What a product token is made of (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

EVERYONE = "*"

# The standard's grammar has no digits and dots; crawlers have (MJ12bot, 360Spider, archive.org_bot).
IDENTIFIER = r"[A-Za-z0-9_.-]+"
_PRODUCT_TOKEN = re.compile(IDENTIFIER)


def is_product_token(text: str) -> bool:
    """Whether this is one product token, or `*`, and nothing else."""
    return text == EVERYONE or _PRODUCT_TOKEN.fullmatch(text) is not None


def in_order_of_preference(tokens: str | Sequence[str]) -> tuple[str, ...]:
    """One token, or several: the first that any group names is obeyed (Google's specification)."""
    return (tokens,) if isinstance(tokens, str) else tuple(tokens)
