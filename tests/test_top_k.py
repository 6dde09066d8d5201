"""`TopK` keeps the largest of many values in bounded memory."""

from __future__ import annotations

import pytest

from scrapy_rep.top_k import TopK


@pytest.mark.parametrize("most", [1, 3, 100])
def test_the_largest_values_stay(most: int) -> None:
    largest: TopK[int, list[int]] = TopK(most, lambda: [0], lambda value: value[0])
    for number in range(1000):
        key = number if number % 3 else 7
        largest[key][0] += 1
        assert len(largest) <= 2 * most
    items = largest.largest()
    assert len(items) == most
    assert items[0] == (7, [335])
    sizes = [value[0] for _key, value in items]
    assert sizes == sorted(sizes, reverse=True)


def test_it_is_exact_up_to_twice_as_many() -> None:
    largest: TopK[int, list[int]] = TopK(5, lambda: [0], lambda value: value[0])
    for number in [*range(10), *range(9, -1, -1)]:
        largest[number][0] += number
    assert dict(largest) == {number: [2 * number] for number in range(10)}
    assert largest.get(11) is None
    assert [key for key, _value in largest.largest()] == [9, 8, 7, 6, 5]
