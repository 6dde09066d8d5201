"""Requests that waited when the crawl stopped come out of their queue in the order in which they came out before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from processes import crawl_process, crawled, until
from redis_server import RedisServer
from web import RULES, Web, answer

PATHS = [f"/{n}" for n in range(10)]
DISK = "scrapy.squeues.Pickle{}DiskQueue"


def order_after_a_stop(web: Web, settings: dict[str, Any], *, are_start: bool = False) -> list[str]:
    """The order in which the pages are requested by the crawl that resumes."""
    site = web.robots(answer(RULES, kind="hold"))
    settings = {**settings, "CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    requests = [{"url": site.url(path), "meta": {"is_start_request": are_start}} for path in PATHS]
    with crawl_process(requests, settings, ready_after=0.1, waited=10) as process:
        process.until_ready()
        process.interrupt()
        assert process.ended(30).ends == []
    until(lambda: site.requests[-1]["ended"])
    web.release(site)
    assert crawled([], settings, seconds=60).complaints == []
    return [path for path in site.targets if path != "/robots.txt"]


@pytest.mark.parametrize("aware", ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"])
@pytest.mark.parametrize("are_start", [False, True], ids=["links", "start"])
@pytest.mark.parametrize("queues", [("Fifo", None), ("Lifo", None), ("Lifo", "Fifo")])
def test_scrapys_queues(web: Web, tmp_path: Path, queues: tuple[str, str | None], aware: str, are_start: bool) -> None:
    queue, start = queues
    settings = {
        "JOBDIR": str(tmp_path),
        "SCHEDULER_PRIORITY_QUEUE": f"scrapy.pqueues.{aware}",
        "SCHEDULER_DISK_QUEUE": DISK.format(queue),
        "SCHEDULER_START_DISK_QUEUE": start and DISK.format(start),
    }
    assert order_after_a_stop(web, settings, are_start=are_start) == PATHS


@pytest.mark.ecosystem
@pytest.mark.parametrize("queue", ["FifoQueue", "LifoQueue"])
def test_the_queues_of_scrapy_redis(web: Web, redis_server: RedisServer, queue: str) -> None:
    pytest.importorskip("scrapy_redis")
    settings = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_QUEUE_CLASS": f"scrapy_redis.queue.{queue}",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": redis_server.url,
    }
    assert order_after_a_stop(web, settings) == PATHS
