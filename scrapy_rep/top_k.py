"""The largest of many values, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import nlargest
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TopK(dict[K, V]):
    """The largest of many values, in bounded memory: it creates missing values, and holds at most twice `most`.

    It is exact up to that number. Then it drops the smaller half; a key that was dropped and comes again starts anew.
    """

    def __init__(self, most: int, new: Callable[[], V], size: Callable[[V], float]) -> None:
        super().__init__()
        self._most = most
        self._new = new
        self._size = size

    def __missing__(self, key: K) -> V:
        if len(self) >= 2 * self._most:
            largest = self.largest()
            self.clear()
            self.update(largest)
        value = self[key] = self._new()
        return value

    def largest(self) -> list[tuple[K, V]]:
        """The `most` largest, in that order; of equals, those that came first."""
        return nlargest(self._most, self.items(), key=lambda item: self._size(item[1]))
