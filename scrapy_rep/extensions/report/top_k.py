"""The largest of many, in bounded memory: those are named, and of the rest it is known how much they come to."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TopK(Generic[K, V]):
    """A dict of at most twice `most` values.

    Exact up to that; then the smaller half is put aside, to `fold`, and one of them that comes again begins anew.
    """

    def __init__(self, most: int, new: Callable[[], V], size: Callable[[V], float], fold: Callable[[V], None]) -> None:
        self._most = most
        self._new = new
        self._size = size
        self._fold = fold
        self._values: dict[K, V] = {}
        self.put_aside = 0
        """How many were."""

    def __getitem__(self, key: K) -> V:
        """The key's value, a new one where there is none."""
        if key not in self._values:
            if len(self._values) >= 2 * self._most:
                self._halve()
            self._values[key] = self._new()
        return self._values[key]

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> list[tuple[K, V]]:
        """The largest first; of equals, those that came first."""
        return sorted(self._values.items(), key=lambda item: -self._size(item[1]))

    def _halve(self) -> None:
        items = self.items()
        self._values = dict(items[: self._most])
        for _key, value in items[self._most :]:
            self._fold(value)
        self.put_aside += len(items) - self._most
