"""A crawl with a JOBDIR is killed (SIGKILL) while requests wait, and loses none of them."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crawling import CrawlSpider, SlotByOrigin, crawl
from job_folder import KEPT, kept_urls, queued_urls
from processes import crawl_process, crawled
from pytest_twisted import ensureDeferred
from scrapy.crawler import Crawler
from scrapy.http import Response
from web import RULES, Web, answer

from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import request_waited

HELD = answer(RULES, kind="hold")


@pytest.mark.parametrize("most", [5, 1000])
def test_a_crawl_that_is_killed_again_and_again_loses_no_waiting_request(web: Web, tmp_path: Path, most: int) -> None:
    sites = [web.robots(HELD) for _ in range(20)]
    urls = [site.url(f"/{n}") for n in range(3) for site in sites]
    job = tmp_path / "job"
    settings = {"JOBDIR": str(job), "DOWNLOADER": "crawling.SlotByOrigin"}
    with crawl_process(urls, settings, ready_after=0.1, waited=len(urls)) as process:
        process.until_ready()
        assert process.killed()
    # With few fetches at a time, most requests have not begun to wait again.
    few = {**settings, "REP_FETCH_CONCURRENCY": 1, "REP_WAITING_MAX": most}
    for seconds in (0.01, 0.3):
        with crawl_process([], few, ready_after=seconds, waited=1) as process:
            process.until_ready()
            assert process.killed()
        assert sorted(kept_urls(job)) == sorted(urls)
    assert list(queued_urls(job)) == []
    web.release(*sites)
    last = crawled([], settings)
    assert Counter(end["url"] for end in last.ends) == Counter(urls)
    assert last.complaints == []
    assert not (job / KEPT).exists()


def test_a_copy_is_deleted_when_its_request_goes_on_and_the_others_stay(web: Web, tmp_path: Path) -> None:
    good, dead = web.robots([HELD, answer(RULES)]), web.robots(HELD)
    of_good, of_dead = ([site.url(f"/{n}") for n in range(4)] for site in (good, dead))
    settings = {"JOBDIR": str(tmp_path), "DOWNLOADER": "crawling.SlotByOrigin"}
    requests = [{"url": url, "priority": n} for urls in (of_good, of_dead) for n, url in enumerate(urls)]
    with crawl_process(requests, settings, ready_after=0.1, waited=8) as process:
        process.until_ready()
        assert process.killed()
    with crawl_process([], settings, ready_after=0.1, waited=8) as process:
        process.until_ready()
        for _ in range(500):
            if len(good.targets) == 2 + 4:
                break
            time.sleep(0.01)
        assert process.killed()
    assert good.targets[2:] == of_good_paths_by_priority(4)
    assert sorted(kept_urls(tmp_path)) == of_dead


@ensureDeferred
async def test_a_request_of_a_killed_crawl_that_needs_no_robots_txt_does_not_count_as_waiting(
    web: Web, tmp_path: Path
) -> None:
    """The crawl that was killed had a copy of it, for example because its robots.txt was not exempt then."""
    exempt, other = web.robots([HELD, answer(RULES)]), web.robots([HELD, answer(RULES)])
    settings = {"JOBDIR": str(tmp_path), "REP_FETCH_RETRIES": 0}
    with crawl_process([exempt.url("/"), other.url("/")], settings, ready_after=0.1, waited=2) as process:
        process.until_ready()
        assert process.killed()
    waited = list[str]()

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(lambda request: waited.append(request.url), request_waited, weak=False)

    result = await crawl(settings={**settings, "REP_EXEMPT": [exempt.origin]}, prepare=prepare)
    assert (exempt.targets[1:], other.targets[1:]) == (["/"], ["/robots.txt", "/"])
    assert waited == [other.url("/")]
    assert result.stats["rep/waited"] == 1


def of_good_paths_by_priority(number: int) -> list[str]:
    return [f"/{n}" for n in reversed(range(number))]


@pytest.mark.parametrize("queue", ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"])
def test_a_crawl_that_is_killed_while_no_more_may_wait_loses_no_request(web: Web, tmp_path: Path, queue: str) -> None:
    site = web.robots(HELD)
    urls = [site.url(f"/{n}") for n in range(12)]
    settings = {
        "JOBDIR": str(tmp_path),
        "REP_WAITING_MAX": 3,
        "SCHEDULER_PRIORITY_QUEUE": f"scrapy.pqueues.{queue}",
        "SCHEDULER_START_DISK_QUEUE": None,
    }
    with crawl_process(urls, settings, ready_after=0.1, waited=4) as process:
        process.until_ready()
        process.interrupt()
        process.ended(15)
    assert sorted(queued_urls(tmp_path)) == sorted(urls)
    with crawl_process([], settings, ready_after=0.3, waited=4) as process:
        process.until_ready()
        assert process.killed()
    assert sorted([*kept_urls(tmp_path), *queued_urls(tmp_path)]) == sorted(urls)


@pytest.mark.parametrize("kept", [0, 10])
@ensureDeferred
async def test_a_locked_file_does_not_stall_the_crawl(web: Web, tmp_path: Path, kept: int) -> None:
    """After the first failure, nothing more is written, even if the file is no longer locked. Copies that were kept
    before the lock are deleted at the end."""
    site = web.robots(HELD)
    locks = sqlite3.connect(tmp_path / KEPT, isolation_level=None)

    class Locked(CrawlSpider):
        async def start(self) -> Any:
            for url in self.requests[:kept]:
                yield self.prepared(url)
            while len(kept_urls(tmp_path)) < kept:
                await sleep(0.02)
            locks.execute("BEGIN IMMEDIATE")
            for url in self.requests[kept:-1]:
                yield self.prepared(url)
            while self.crawler.stats.get_value("rep/waited", 0) < 19:
                await sleep(0.02)
            locks.execute("COMMIT")
            yield self.prepared(self.requests[-1])
            while self.crawler.stats.get_value("rep/waited", 0) < 20:
                await sleep(0.02)
            web.release(site)
            while len(self.crawl.pages) < 20:
                await sleep(0.02)
            self.crawl.ends = list(kept_urls(tmp_path))

    urls = [site.url(f"/{n}") for n in range(20)]
    with closing(locks):
        result = await crawl(*urls, spider=Locked, settings={"JOBDIR": str(tmp_path), "CLOSESPIDER_TIMEOUT": 20})
    assert sorted(result.pages) == sorted(urls)
    assert result.tracebacks == []
    assert sorted(result.ends) == sorted(urls[:kept]), "no copy was written or deleted"
    assert not (tmp_path / KEPT).exists()
    lost = "If this crawler is killed, requests that wait for a robots.txt are lost: database is locked"
    assert result.messages() == [lost]


@ensureDeferred
async def test_while_no_more_may_wait_requests_to_other_origins_go_on(web: Web, tmp_path: Path) -> None:
    """Neither a known origin nor a new origin waits for the timeout of a dead one."""
    dead, known = web.robots(HELD), web.robots(RULES)
    new = [web.robots(answer(RULES, delay=0.05)) for _ in range(5)]

    class AsksOnceItIsFull(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            if response.url == known.url("/0"):
                for n in range(30):
                    yield self.prepared(dead.url(f"/{n}"))
                yield self.prepared(known.url("/1"))
            if response.url == known.url("/1"):
                while self.crawler.stats.get_value("rep/waited", 0) < 1 + 1 + 3:
                    await sleep(0.01)
                for site in [known, *new]:
                    for n in range(2, 5):
                        yield self.prepared(site.url(f"/{n}"))
            if len(self.crawl.pages) == 2 + 3 * 6:
                self.crawl.ends.append("no stall")
                web.release(dead)

    settings = {"JOBDIR": str(tmp_path), "REP_WAITING_MAX": 3, "DOWNLOADER": SlotByOrigin, "REP_FETCH_TIMEOUT": 20}
    result = await crawl(known.url("/0"), spider=AsksOnceItIsFull, settings=settings)
    assert result.ends == ["no stall"]
    assert len(result.pages) == 2 + 3 * 6 + 30
    assert result.tracebacks == []
