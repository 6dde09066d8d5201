"""Enums whose values are words for people."""

from __future__ import annotations

from enum import Enum


class WordEnum(Enum):
    """Its `str` is the word: `str(AccessResult.SUCCESS)` is `success`."""

    def __str__(self) -> str:
        return str(self.value)
