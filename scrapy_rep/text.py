"""Text for people: strangers' text made printable, numbers with their noun."""

from __future__ import annotations

MAX_CHARACTERS = 200  # of what a stranger wrote, in a message
MAX_RULE = 500  # characters of a rule


def printable(text: str, limit: int | None = MAX_CHARACTERS) -> str:
    """The text with all characters escaped that could forge a log line (control characters, line ends and the like).

    It is cut to `limit` characters, the last of which is an ellipsis then; None cuts nothing.
    """
    shown = text if limit is None else text[: limit + 1]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown)
    return shown if limit is None or len(shown) <= limit else f"{shown[: limit - 1]}…"


def counted(number: int, noun: str) -> str:
    """`1 origin`, `2 origins`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
