"""Text for people: strangers' text made printable, numbers with their noun."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with whatever could forge a log line (control characters, line ends, terminal escapes) escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def counted(number: int, noun: str) -> str:
    """`1 origin`, `2 origins`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
