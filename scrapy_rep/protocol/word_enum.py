"""A base class for enums whose values are words for people."""

from __future__ import annotations

from enum import Enum


class WordEnum(Enum):
    """An enum whose `str` is its value: `str(AccessResult.SUCCESS)` is `success`."""

    def __str__(self) -> str:
        return str(self.value)
