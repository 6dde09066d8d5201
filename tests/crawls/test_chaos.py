"""A random crawl with real servers and kills, so that `tests/benchmarks/chaos.py` stays right, which runs any number of
them. The simulator has such crawls in virtual time."""

from __future__ import annotations

from pathlib import Path

from benchmarks.chaos import Crawl
from web import Web


def test_a_random_crawl_keeps_its_promises(web: Web, tmp_path: Path) -> None:
    crawl = Crawl(1041, web, str(tmp_path))
    crawl.run()
    assert crawl.faults == []
    assert crawl.asked()
