"""The largest of many values, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TopK(dict[K, V]):
    """Makes the values of keys that are missing; holds at most twice `most`.

    It is exact up to that number. Then it puts the smaller half aside: `fold` is called with each of them, and one of
    them that comes again starts anew.
    """

    def __init__(self, most: int, new: Callable[[], V], size: Callable[[V], float], fold: Callable[[V], object]) -> None:
        super().__init__()
        self._most = most
        self._new = new
        self._size = size
        self._fold = fold
        self.put_aside = 0
        """How many values were put aside."""

    def __missing__(self, key: K) -> V:
        if len(self) >= 2 * self._most:
            self._halve()
        value = self[key] = self._new()
        return value

    def largest_first(self) -> list[tuple[K, V]]:
        """All that are held; of equals, those that came first."""
        return sorted(self.items(), key=lambda item: -self._size(item[1]))

    def _halve(self) -> None:
        items = self.largest_first()
        self.clear()
        self.update(items[: self._most])
        for _key, value in items[self._most :]:
            self._fold(value)
        self.put_aside += len(items) - self._most
