"""The example project's fleet: two crawlers with scrapy-redis do what one does alone, and share the work."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from doc_pages import README, ROOT, marked
from processes import crawled
from redis_server import BINARY, MISSING, RedisServer
from test_example_project import MOST, NOT_IN_GROUPS_OF_ITS_OWN, TOUR, Ended
from web import RULES, Web

pytestmark = pytest.mark.ecosystem

LOOP = 6
"""The number of requests for the robots.txt of the maze: a crawler follows five redirects."""


def check(printed: str) -> bool:
    """Return whether both crawlers have done something, and have shared the files.

    On a busy machine, a crawler may wait too long for the other's answer, and then fetches by itself.

    Both tables together have each page once. The crawlers share each robots.txt, with two exceptions:

    - The annex redirects to the library's robots.txt. So there is one more request if one crawler looks up the annex,
      and the other crawler the library.
    - What the loop of the maze means depends on a crawler's own REP_MAX_REDIRECTS, so each crawler that has a page of
      the maze runs through the loop.
    """
    tables = [f"tour{text}" for text in printed.split("tour_in_fleet")[1:]]
    assert len(tables) == 2
    crawls = [Ended(0, text, "").table for text in tables]
    for site, (_, _, fetched, refused) in {**NOT_IN_GROUPS_OF_ITS_OWN, **TOUR}.items():
        assert Counter(page for crawl in crawls for page in crawl[site][2].split()) == Counter(fetched.split())
        assert {page: by for crawl in crawls for page, by in crawl[site][3].items()} == refused
    by_both = [site for site in crawls[0] if all(crawl[site][0] not in {"", "shared"} for crawl in crawls)]
    if not set(by_both) <= {"maze"}:
        return False
    asked = [int(number) for number in re.findall(r"(\d+) requests for robots.txt", printed)]
    alone = re.search(r"\n(\d+) requests for robots.txt", README.partition("<!-- example-output -->")[2])
    assert alone is not None
    assert sum(asked) - LOOP * len(by_both) in {int(alone[1]), int(alone[1]) + 1}
    return all(any(row[2] or row[3] for row in crawl.values()) for crawl in crawls)


@pytest.mark.skipif(BINARY is None, reason=MISSING)
def test_two_crawlers_fetch_each_page_once_and_share_robots_txt() -> None:
    command = [sys.executable, "-m", "example.fleet"]
    folder = ROOT / "example_project"
    for _ in range(4):  # on a busy machine, one crawler may have done everything before the other has started
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=2 * MOST)
        assert "Traceback" not in run.stderr
        assert "REP_STORAGE" not in run.stderr, "each answer of Redis has come in time"
        if check(run.stdout):
            return
    pytest.fail("each time, one crawler did everything, or the crawlers shared too little")


def test_the_command_in_the_docs() -> None:
    assert marked("fleet-command").endswith("&& (cd example_project && ../.venv/bin/python -m example.fleet)\n")
    assert "pip install -q . scrapy-redis " in marked("fleet-command")


def test_the_settings_in_the_docs(web: Web, redis_server: RedisServer) -> None:
    settings: dict[str, Any] = {}
    exec(marked("fleet-settings"), {}, settings)
    settings["REDIS_URL"] = redis_server.url
    site = web.robots(RULES)
    for end in ("HTTP 200", "ForbiddenByRobots"):
        path = "/" if end == "HTTP 200" else "/private"
        assert crawled([site.url(path)], settings).by_url == {site.url(path): end}
    assert len(site.robots_requests) == 1, "the second crawl has it from Redis"
