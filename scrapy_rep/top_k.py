"""A dict of the largest of many values, in bounded memory."""

from collections import defaultdict
from collections.abc import Callable, Hashable
from heapq import nlargest
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TopK(defaultdict[K, V]):
    """A dict of the largest of many values, in bounded memory. It creates missing values.

    It holds at most twice `most` values, and is exact up to that number of keys. When more come, it drops the smaller
    half. If a dropped key is used again, its value begins again with `new()`.
    """

    def __init__(self, most: int, new: Callable[[], V], size: Callable[[V], float]) -> None:
        super().__init__(new)
        self._most = most
        self._size = size

    def __missing__(self, key: K) -> V:
        if len(self) >= 2 * self._most:
            largest = self.largest()
            self.clear()
            self.update(largest)
        return super().__missing__(key)

    def largest(self) -> list[tuple[K, V]]:
        """Return the `most` largest items, the largest first. Equal items are in the order in which they were added."""
        return nlargest(self._most, self.items(), key=lambda item: self._size(item[1]))
