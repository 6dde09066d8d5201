"""Schedulers that are not Scrapy's own: no request is lost, and none that waits holds up the others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crawling import Releases, SlotByOrigin, crawl
from processes import crawl_process, crawled
from pytest_twisted import ensureDeferred
from scrapy import Request
from web import RULES, Web, answer

HELD = answer(RULES, kind="hold")
SCHEDULERS = ["own_scheduler.OwnScheduler", "own_scheduler.DerivedScheduler"]


@pytest.fixture(params=SCHEDULERS)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return {"SCHEDULER": request.param, "BACKEND_FILE": str(tmp_path / "backend")}


@ensureDeferred
async def test_waiting_requests_hold_nobody_up(web: Web, own: dict[str, Any]) -> None:
    dead, healthy = [web.robots(HELD) for _ in range(10)], [web.robots(RULES) for _ in range(3)]
    urls = [site.url(f"/{n}") for site in dead + healthy for n in range(3)]
    settings = {**own, "REP_FETCH_TIMEOUT": 20, "DOWNLOADER": SlotByOrigin, "CONCURRENT_REQUESTS": 4}
    result = await crawl(*map(Request, urls), spider=Releases, dead=dead, healthy=9, settings=settings)
    assert result.ends == ["no stall"]
    assert sorted(result.pages) == sorted(urls)
    assert result.tracebacks == []


@pytest.mark.parametrize("most", [3, 1000])
def test_stopped_in_mid_wait_they_go_back_and_a_later_crawl_fetches_them(
    web: Web, own: dict[str, Any], most: int
) -> None:
    site = web.robots(HELD)
    urls = [site.url(f"/{n}") for n in range(12)]
    settings = {**own, "REP_WAITING_MAX": most}
    with crawl_process(urls, settings, ready_after=0.8) as process:
        process.until_ready()
        process.interrupt()
        first = process.ended(15)
    assert first.ends == []
    web.release(site)
    second = crawled([], settings)
    assert Counter(end["url"] for end in second.ends) == Counter(urls)
    assert first.complaints == second.complaints == []
