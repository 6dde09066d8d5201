"""What a product token is made of (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

EVERYONE = "*"

# The standard's grammar has neither digits nor dots; the web's crawlers have (MJ12bot, 360Spider).
IDENTIFIER = r"[A-Za-z0-9_.-]+"


def is_product_token(text: str) -> bool:
    """Whether this is one product token, or `*`, and nothing else."""
    return text == EVERYONE or re.fullmatch(IDENTIFIER, text) is not None


def in_order_of_preference(tokens: str | Sequence[str]) -> tuple[str, ...]:
    """One token, or several of which the first that any group names is obeyed (Google's specification)."""
    return (tokens,) if isinstance(tokens, str) else tuple(tokens)
