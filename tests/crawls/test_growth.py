"""More sites do not make each site cost more: a small size of `benchmarks/growth.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GROWTH = Path(__file__).parents[1] / "benchmarks" / "growth.py"


@pytest.mark.full_size
@pytest.mark.parametrize("axis", ["sites in the queue", "sites, 1.2 times the memory, 4 pages"])
def test_calls_grow_no_faster_than_with_scrapys_own(axis: str) -> None:
    command = [sys.executable, str(GROWTH), "--small", axis]
    output = subprocess.run(command, capture_output=True, text=True, timeout=1_000, check=False).stdout
    titles, _, cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines())
    row = dict(zip(titles, cells, strict=True))
    assert float(row["growth ours"]) <= float(row["growth built-in"]) + 0.05
    assert float(row["ratio"]) <= 1.15
    assert 1.0 <= float(row["robots.txt ours"]) <= 1.05
