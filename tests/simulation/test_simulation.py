"""Crawls in virtual time that keep every promise: the kept cases, and four seeds. `simulate.py` runs more.

They run in processes of their own, because the clocks are replaced before Scrapy is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from doc_pages import blocks

SIMULATE = Path(__file__).with_name("simulate.py")
CASES = {path.stem: path for path in sorted(SIMULATE.with_name("cases").glob("*.json"))}
SEEDS = range(4)


@cache
def run(*arguments: str) -> str:
    """What the command prints."""
    command = [sys.executable, str(SIMULATE), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode in {0, 1}, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    ("cases", "number"),
    [
        pytest.param(["cases"], len(CASES), id="kept"),
        pytest.param(["--seeds", f"0-{SEEDS[-1]}"], len(SEEDS), id="random"),
    ],
)
def test_every_promise_is_kept(cases: list[str], number: int) -> None:
    *broken, counts = run(*cases, "--jobs", str(os.cpu_count() or 1)).splitlines()
    assert broken == []
    assert counts.startswith(f"{number} cases, ")


@pytest.mark.full_size
def test_same_case_has_same_events() -> None:
    # `run` caches its results. With one more option, the case runs again.
    assert run("replay", "0") == run("replay", "0", "--jobs", "1")


@pytest.mark.full_size
def test_case_shrinks_to_what_breaks_the_promise(tmp_path: Path) -> None:
    """A fault makes three origins share the one-time token of their hub. `shrink` keeps the hub and one origin."""
    case = json.loads(CASES["one_time_token"].read_text())
    case["settings"] = {"REP_FETCH_RETRIES": 2}
    case["origins"]["http://other.example.com"] = case["origins"]["http://a.example.com"]
    case["crawlers"][0]["requests"].append({"url": "http://other.example.com/page", "at": 9.0, "priority": 5})
    large, small = tmp_path / "large.json", tmp_path / "small.json"
    large.write_text(json.dumps(case))
    small.write_text(run("shrink", str(large), "--fault", "shared_answers"))
    shrunk = json.loads(small.read_text())
    assert shrunk["settings"] == {}
    assert len(shrunk["origins"]) <= 2
    assert "BROKEN" in run("replay", str(small), "--fault", "shared_answers")
    assert "BROKEN" not in run("replay", str(small))


def test_the_help_names_each_documented_command() -> None:
    (block,) = blocks("sh", "simulation-commands")
    usage = run("--help")
    for line in block.text.splitlines():
        command, word = line.split()[1:3]
        assert Path(command).name in usage
        assert word in usage
