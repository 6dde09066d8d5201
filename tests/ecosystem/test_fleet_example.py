"""The example project's fleet: two crawlers with scrapy-redis do what one does alone, and share the work."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest
from redis_server import BINARY, MISSING
from test_example_project import MOST, NOT_IN_GROUPS_OF_ITS_OWN, ROOT, TOUR, Ended

pytestmark = pytest.mark.ecosystem


@pytest.mark.skipif(BINARY is None, reason=MISSING)
def test_two_crawlers_fetch_each_page_and_each_robots_txt_once() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "example.fleet"],
        cwd=ROOT / "example_project",
        capture_output=True,
        text=True,
        check=True,
        timeout=2 * MOST,
    )
    tables = [f"tour{text}" for text in run.stdout.split("tour_in_fleet")[1:]]
    assert len(tables) == 2
    crawls = [Ended(0, text, "").table for text in tables]
    for site, (_, _, fetched, refused) in {**NOT_IN_GROUPS_OF_ITS_OWN, **TOUR}.items():
        assert Counter(page for crawl in crawls for page in crawl[site][2].split()) == Counter(fetched.split())
        assert {page: by for crawl in crawls for page, by in crawl[site][3].items()} == refused
    shares = [sum(len(row[2].split()) for row in crawl.values()) for crawl in crawls]
    assert all(shares), "both did something"
    asked = [int(number) for number in re.findall(r"(\d+) requests for robots.txt", run.stdout)]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"\n{sum(asked)} requests for robots.txt" in readme.partition("<!-- example-output -->")[2], "as one alone"
