"""A process that crawls again and again keeps nothing of a crawl that has ended."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from crawling import crawl
from pytest_twisted import ensureDeferred
from scrapy.crawler import Crawler
from web import RULES, Web, answer

# In the values, {} stands for the test's folder.
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "kept-on-disk": {"REP_STORAGE": "sqlite://{}/robots.db", "JOBDIR": "{}/job"},
    "all-extensions": {
        "REP_ARCHIVE": "{}/archive.warc.gz",
        "REP_BYPASSED": "drop",
        "REP_CRAWL_DELAY_MAX": 1.0,
        "REP_EVIDENCE": True,
        "REP_PURPOSES": ["train-ai"],
        "REP_REFUSALS": "{}/refusals.jsonl",
        "REP_REPORT": "{}/report.html",
    },
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@ensureDeferred
async def test_a_crawl_that_has_ended_is_forgotten(
    web: Web, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)  # pytest would keep records with the spider
    settings = {name: value.format(tmp_path) if isinstance(value, str) else value for name, value in settings.items()}
    site, down = web.robots(answer(RULES, delay=0.1)), web.robots(answer(status=503))
    urls = [site.url("/"), site.url("/private"), down.url("/")]
    crawlers: list[ref[Crawler]] = []
    result = await crawl(
        *urls,
        settings={"REP_UNREACHABLE_WAIT": 0, **settings},
        prepare=lambda crawler: crawlers.append(ref(crawler)),
    )
    assert (len(result.pages), len(result.refused)) == (1, 2)
    del result
    gc.collect()
    assert [crawler() for crawler in crawlers] == [None]
