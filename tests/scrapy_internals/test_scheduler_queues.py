"""`SchedulerQueues` with Scrapy's own scheduler: which queue is next, and where a request goes back to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from in_loop import in_loop
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from unstarted import unstarted

from scrapy_rep.scrapy_internals.scheduler_queues import SchedulerQueues

ONLY_IN_MEMORY = {"unserialisable": lambda: None}
START = {"is_start_request": True}


class OtherScheduler(Scheduler):
    """Gets its requests from another place, too."""

    def next_request(self) -> Request | None:
        return super().next_request()


class NamedLikeRedis:
    """A scheduler with one queue, as that of scrapy-redis."""

    def __init__(self, kind: str) -> None:
        self.queue = type(kind, (), {})()


async def opened(**settings: Any) -> tuple[SchedulerQueues, Scheduler, dict[str, Any]]:
    crawler, scheduler = unstarted(**settings)
    assert crawler.stats is not None
    return SchedulerQueues(crawler, scheduler), scheduler, crawler.stats.get_stats()


@in_loop
async def test_which_queue_is_next(tmp_path: Path) -> None:
    queues, _, _ = await opened()
    assert queues.is_next_from_memory()
    assert queues.on_disk is None
    for number, kind in enumerate(("DownloaderAwarePriorityQueue", "ScrapyPriorityQueue")):
        settings = {"JOBDIR": str(tmp_path / str(number)), "SCHEDULER_PRIORITY_QUEUE": f"scrapy.pqueues.{kind}"}
        queues, scheduler, _ = await opened(**settings)
        scheduler.enqueue_request(Request("http://a/"))
        assert not queues.is_next_from_memory(), "the queue on disk, while that in memory is empty"
        scheduler.enqueue_request(Request("http://b/", meta=ONLY_IN_MEMORY))
        assert queues.is_next_from_memory()
        assert scheduler.next_request().url == "http://b/"  # type: ignore[union-attr]
        assert not queues.is_next_from_memory()


@in_loop
async def test_the_queues_of_a_subclass_that_takes_requests_from_elsewhere_are_left_alone(tmp_path: Path) -> None:
    for more in ({}, {"JOBDIR": str(tmp_path)}):
        queues, _, _ = await opened(SCHEDULER=OtherScheduler, **more)
        assert (queues.in_memory, queues.on_disk, queues.is_next_from_memory()) == (None, None, False)


@pytest.mark.parametrize(
    ("settings", "meta", "is_fifo"),
    [
        pytest.param({}, {}, False, id="links-in-memory"),
        pytest.param({}, START, True, id="start-in-memory"),
        pytest.param({"SCHEDULER_START_MEMORY_QUEUE": None}, START, False, id="start-without-a-queue-of-its-own"),
        pytest.param({"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}, {}, True, id="links-fifo"),
        pytest.param({"JOBDIR": True}, {}, False, id="links-on-disk"),
        pytest.param({"JOBDIR": True}, START, True, id="start-on-disk"),
        pytest.param(
            {"JOBDIR": True, "SCHEDULER_DISK_QUEUE": "scrapy.squeues.MarshalFifoDiskQueue"}, {}, True, id="disk-fifo"
        ),
    ],
)
@in_loop
async def test_which_queue_is_first_in_first_out(
    tmp_path: Path, settings: dict[str, Any], meta: dict[str, Any], is_fifo: bool
) -> None:
    queues, _, _ = await opened(**{**settings, **({"JOBDIR": str(tmp_path)} if "JOBDIR" in settings else {})})
    assert queues.is_fifo(Request("http://a/", meta=meta)) is is_fifo


@pytest.mark.parametrize(
    ("kind", "meta", "is_fifo"),
    [
        pytest.param("FifoQueue", {}, True, id="fifo"),
        pytest.param("LifoQueue", START, False, id="lifo"),
        pytest.param("PriorityQueue", {}, False, id="another-as-scrapys-default-for-links"),
        pytest.param("PriorityQueue", START, True, id="another-as-scrapys-default-for-start"),
    ],
)
@in_loop
async def test_the_name_tells_of_the_queue_of_another_scheduler(kind: str, meta: dict[str, Any], is_fifo: bool) -> None:
    crawler, _ = unstarted()
    assert SchedulerQueues(crawler, NamedLikeRedis(kind)).is_fifo(Request("http://a/", meta=meta)) is is_fifo


@pytest.mark.parametrize(
    ("jobdir", "meta", "where"),
    [
        pytest.param(False, {}, "memory", id="memory"),
        pytest.param(True, {}, "disk", id="disk"),
        pytest.param(True, ONLY_IN_MEMORY, "memory", id="disk-if-it-can-be-written"),
    ],
)
@in_loop
async def test_a_request_goes_back_past_the_duplicate_filter_and_is_counted(
    tmp_path: Path, jobdir: bool, meta: dict[str, Any], where: str
) -> None:
    queues, scheduler, stats = await opened(**({"JOBDIR": str(tmp_path)} if jobdir else {}))
    scheduler.enqueue_request(Request("http://a/", meta=meta))
    request = scheduler.next_request()
    assert request is not None
    assert not scheduler.enqueue_request(request), "the duplicate filter has seen it"
    queues.put_back(request)
    again = scheduler.next_request()
    assert again is not None
    assert again.url == request.url
    assert (stats["scheduler/enqueued"], stats[f"scheduler/enqueued/{where}"]) == (2, 2)


@in_loop
async def test_only_queues_that_look_at_downloads_are_told_which_site_is_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = []
    for kind in ("DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"):
        queues, scheduler, _ = await opened(
            JOBDIR=str(tmp_path / kind), SCHEDULER_PRIORITY_QUEUE=f"scrapy.pqueues.{kind}"
        )
        told.append(queues.choose_sites_by(dict, min) == [scheduler.mqs, scheduler.dqs])
    assert told == [True, False]
    assert [record.getMessage() for record in caplog.records if record.name == "scrapy_rep"] == []
