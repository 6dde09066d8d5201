"""Three random crawls. `tests/benchmarks/chaos.py` runs any number of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.chaos import Crawl
from web import Web


@pytest.mark.parametrize("seed", [18, 1041, 4])
def test_a_random_crawl_keeps_its_promises(web: Web, tmp_path: Path, seed: int) -> None:
    crawl = Crawl(seed, web, str(tmp_path))
    crawl.run()
    assert crawl.faults == []
    assert crawl.asked()
