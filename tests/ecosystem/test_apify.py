"""With Apify's scheduler and its storage in local files: requests that wait are where it looks for them, and it stores
each request once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from processes import crawl_process, crawled
from web import RULES, Web, answer

pytestmark = pytest.mark.ecosystem

APIFY: dict[str, Any] = {
    "SCHEDULER": "apify.scrapy.scheduler.ApifyScheduler",
    "CONCURRENT_REQUESTS": 32,
    "DOWNLOADER": "crawling.SlotByOrigin",
}
PER_SITE = {"held": 20, "good": 160}


def storage(folder: Path) -> dict[str, str]:
    """Environment variables."""
    folders = dict.fromkeys(("CRAWLEE_STORAGE_DIR", "APIFY_LOCAL_STORAGE_DIR"), str(folder))
    return {**folders, **dict.fromkeys(("CRAWLEE_PURGE_ON_START", "APIFY_PURGE_ON_START"), "0")}


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_no_waiting_request_is_lost(web: Web, tmp_path: Path, is_killed: bool) -> None:
    sites = {"held": web.robots(answer(RULES, kind="hold")), "good": web.robots(RULES)}
    urls = {kind: [site.url(f"/{n}") for n in range(PER_SITE[kind])] for kind, site in sites.items()}
    with crawl_process([*urls["held"], *urls["good"]], APIFY, ready_after=4, environment=storage(tmp_path)) as process:
        process.until_ready()
        if is_killed:
            assert process.killed()
        else:
            process.interrupt()
            assert set(process.ended(30).pages) == set(urls["good"])
        log = process.log
    assert log.count("REP_WAITING_MAX counts as 0 with Apify's scheduler") == 1
    web.release(sites["held"])
    crawled([], APIFY, environment=storage(tmp_path))
    for kind, site in sites.items():
        pages = Counter(target for target in site.targets if target != "/robots.txt")
        assert pages == Counter(f"/{n}" for n in range(PER_SITE[kind])), kind


def test_its_queue_takes_no_more_room_than_without_us(web: Web, tmp_path: Path) -> None:
    site = web.robots(answer(RULES, delay=1))
    urls = [site.url(f"/{n}") for n in range(60)]
    octets = []
    without: dict[str, Any] = {"ADDONS": {}}
    for name, settings in (("with", APIFY), ("without", {**APIFY, **without})):
        folder = tmp_path / name
        ended = crawled(urls, settings, environment=storage(folder))
        assert len(ended.pages) == 60
        octets.append(sum(file.stat().st_size for file in folder.rglob("*.json")))
    assert octets[0] <= 1.05 * octets[1]
