"""More sites do not make each site cost more: a small size of `benchmarks/growth.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GROWTH = Path(__file__).parents[1] / "benchmarks" / "growth.py"


def rows_of(*arguments: str) -> list[dict[str, str]]:
    """The rows of the benchmark's table: title -> cell."""
    command = [sys.executable, str(GROWTH), *arguments]
    output = subprocess.run(command, capture_output=True, text=True, timeout=1_000, check=False).stdout
    titles, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines())
    return [dict(zip(titles, cells, strict=True)) for cells in rows]


@pytest.mark.full_size
@pytest.mark.parametrize("axis", ["sites in the queue", "sites, 1.2 times the memory, 4 pages"])
def test_calls_grow_no_faster_than_with_scrapys_own(axis: str) -> None:
    [row] = rows_of("--small", axis)
    assert float(row["growth ours"]) <= float(row["growth built-in"]) + 0.05
    assert float(row["ratio"]) <= 1.15
    assert 1.0 <= float(row["robots.txt ours"]) <= 1.05


@pytest.mark.full_size
def test_a_long_crawl_keeps_no_more_objects_at_its_end_than_at_its_beginning() -> None:
    ours = rows_of("--quarters", "5000")[0]
    objects = [int(ours[f"quarter {number}"].replace(",", "")) for number in range(1, 5)]
    assert objects[3] <= 1.05 * max(objects[:2])
