"""Crawls in virtual time that keep every promise: the kept cases, and ten seeds. `simulate.py` runs more.

They run in a process of their own, because the clocks are replaced before Scrapy is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from doc_pages import blocks

HERE = Path(__file__).parent
CASES = sorted(path.stem for path in (HERE / "cases").glob("*.json"))
SEEDS = [str(seed) for seed in range(10)]

# Cases of faults that are known and not mended yet: the promise that each of them breaks. Whoever mends the cause takes
# the line out; the case stays.
KNOWN: dict[str, str] = {}
# The same for seeds, whose cases change with each change of `draw.py`.
SEEDS_WITH_FAULTS: set[str] = set()


@cache
def results() -> dict[str, dict[str, Any]]:
    """What came of each case, all in one process that is started once."""
    command = [sys.executable, str(HERE / "simulate.py"), "--json", "--jobs", str(os.cpu_count() or 1)]
    ended = subprocess.run([*command, "test"], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode in {0, 1}, ended.stderr
    found: dict[str, dict[str, Any]] = json.loads(ended.stdout)
    return found


NOT_MENDED = pytest.mark.xfail(strict=True, reason="its fault is known, and not mended yet")


@pytest.mark.parametrize("name", [name for name in CASES if name not in KNOWN])
def test_kept_case(name: str) -> None:
    assert results()[name]["broken"] == {}


@pytest.mark.parametrize("name", [name for name in CASES if name in KNOWN])
def test_fault_that_is_known(name: str) -> None:
    assert KNOWN[name] in results()[name]["broken"], "mended? Then take its line out of KNOWN"


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=NOT_MENDED if seed in SEEDS_WITH_FAULTS else ()) for seed in SEEDS]
)
def test_seed(seed: str) -> None:
    assert results()[seed]["broken"] == {}


def test_documented_commands() -> None:
    (block,) = blocks("sh", "simulation-commands")
    usage = subprocess.run(
        [sys.executable, str(HERE / "simulate.py"), "--help"], capture_output=True, text=True, check=True
    )
    for line in block.text.splitlines():
        command, word = line.split()[1:3]
        assert Path(command).name in usage.stdout
        assert word in usage.stdout


def test_same_case_has_same_events() -> None:
    assert results()["again"]["digest"] == results()[SEEDS[0]]["digest"]
