"""Text that strangers wrote, for people: decoded, and cut."""

from __future__ import annotations

MAX_TEXT = 200  # characters in a message, a reason, a report
MAX_RULE = 500  # characters of a rule as written


def text_of(octets: bytes) -> str:
    """Octets of a robots.txt as text: UTF-8, or Latin-1 if they are no UTF-8. Never raises."""
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    """The text, no longer than `limit` characters; if it is cut, the last one is an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
