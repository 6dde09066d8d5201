"""The copies of waiting requests in a JOBDIR, in case the process is killed (`KeptInJobdir`), without a crawl."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from scrapy_rep.waiting.copies import FILE, KeptInJobdir

FIRST, SECOND, THIRD = (Request(f"http://a/{n}", priority=n, meta={"n": n}) for n in range(3))
UNSERIALISABLE = Request("http://a/", meta={"key": lambda: None})


class Finds(Spider):
    name = "finds"

    def found(self, response: Response) -> None: ...


def opened(folder: Path) -> KeptInJobdir:
    crawler = get_crawler(Finds, {"JOBDIR": str(folder)})
    crawler.spider = Finds.from_crawler(crawler)
    return KeptInJobdir(crawler)


def left_over(folder: Path) -> list[tuple[str, int, object]]:
    """The requests that the next run of the job finds, if this one is killed now."""
    copies = opened(folder)
    found = [(request.url, request.priority, request.meta["n"]) for request in copies.left_over()]
    copies._file.close()
    return found


def test_the_next_run_finds_the_requests_that_still_waited_in_their_order(tmp_path: Path) -> None:
    copies = opened(tmp_path)
    assert copies.left_over() == []
    for request in (THIRD, FIRST, SECOND, FIRST):
        copies.keep(request)
    copies.delete(FIRST)
    copies.delete(Request("http://a/1"))  # another request, which has no copy
    assert left_over(tmp_path) == [("http://a/2", 2, 2), ("http://a/1", 1, 1)]
    copies.close()
    again = opened(tmp_path)
    for request in again.left_over():
        again.delete(request)
    assert left_over(tmp_path) == []
    again.close()


def test_a_copy_keeps_the_method_of_the_spider_that_gets_the_page(tmp_path: Path) -> None:
    for _ in range(2):
        copies = opened(tmp_path)
        spider = copies._spider
        assert isinstance(spider, Finds)
        assert all(request.callback == spider.found for request in copies.left_over())
        copies.keep(Request("http://a/", callback=spider.found))
        copies.close()
    copies = opened(tmp_path)
    assert len(copies.left_over()) == 2
    copies._file.close()


def test_a_request_without_a_copy_costs_no_access_to_the_file(tmp_path: Path) -> None:
    copies, statements = opened(tmp_path), list[str]()
    copies._file.set_trace_callback(statements.append)
    copies.delete(FIRST)
    assert statements == []
    copies.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        copies._file.execute("SELECT 1")


def test_the_file_goes_when_no_request_waits_any_more(tmp_path: Path) -> None:
    copies = opened(tmp_path)
    copies.keep(FIRST)
    copies.close()
    assert (tmp_path / FILE).exists()
    copies = opened(tmp_path)
    copies.delete(*copies.left_over())
    copies.close()
    assert not (tmp_path / FILE).exists()


def test_a_copy_that_cannot_be_read_is_reported_once_and_the_others_are_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copies = opened(tmp_path)
    copies.keep(FIRST)
    copies.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as file, file:
        file.execute("INSERT INTO waiting (request) VALUES (?)", (b"no pickle",))
    for _ in range(2):
        assert left_over(tmp_path) == [("http://a/0", 0, 0)]
    (message,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert message == "A copy of a request that waited for robots.txt cannot be read, so the request is lost"


def test_after_a_failure_nothing_more_is_written_and_one_warning_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copies = opened(tmp_path)
    copies.keep(FIRST)
    copies.keep(UNSERIALISABLE)
    copies.keep(SECOND)
    copies.delete(FIRST)
    assert left_over(tmp_path) == [("http://a/0", 0, 0)]
    copies._file.close()
    copies.keep(THIRD)
    copies.close()
    assert not (tmp_path / FILE).exists(), "no request waits, so the copy that is left is not needed"
    copies.close()  # fails, because the file is gone
    (message,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert message.startswith("If this crawler is killed, requests that wait for a robots.txt are lost: ")
