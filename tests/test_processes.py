"""The processes that the tests start tell of what they leave behind. They end without Python's own clean-up."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import run_python

HEAD = (
    "import asyncio, atexit, sys\nfrom twisted.internet.defer import fail\nasync def wait(): await asyncio.sleep(9)\n"
)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        pytest.param("sys.kept = wait()", "'wait' was never awaited", id="coroutine-that-is-kept"),
        pytest.param("wait()", "'wait' was never awaited", id="coroutine"),
        pytest.param("sys.loop = asyncio.new_event_loop()\nsys.loop.create_task(wait())", "is pending", id="task"),
        pytest.param("sys.kept = fail(ValueError('lost'))", "Unhandled error in Deferred", id="error"),
        pytest.param("atexit.register(print, 'the end', file=sys.stderr)", "the end", id="at-exit"),
    ],
)
def test_what_is_left_is_told(tmp_path: Path, code: str, told: str) -> None:
    (tmp_path / "script.py").write_text(HEAD + code)
    ended = run_python(str(tmp_path / "script.py"))
    assert (told in ended.stderr, ended.returncode) == (True, 0)


STOPPED_AS_IT_CLOSES = """
import os, signal
from scrapy import Spider, signals
from scrapy.crawler import CrawlerProcess

process = CrawlerProcess({"LOG_ENABLED": False})
crawler = process.create_crawler(Spider)
crawler.signals.connect(lambda: os.kill(os.getpid(), signal.SIGINT), signals.spider_closed, weak=False)
process.crawl(crawler, name="stopped")
process.start()
print(crawler.stats.get_value("finish_reason"))
"""


def test_the_task_of_a_crawl_that_is_stopped_while_it_closes_by_itself_is_not_told(tmp_path: Path) -> None:
    """Random crawls are stopped at any time. Scrapy, without us, then ends the process before the task's last step."""
    (tmp_path / "script.py").write_text(STOPPED_AS_IT_CLOSES)
    ended = run_python(str(tmp_path / "script.py"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "finished\n", "")


@pytest.mark.parametrize(
    ("code", "status", "stderr"),
    [
        ("print('said')", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('wrong')", 1, "wrong\n"),
        ("raise KeyError('k')", 1, "KeyError: 'k'\n"),
    ],
)
def test_the_exit_status_is_pythons(tmp_path: Path, code: str, status: int, stderr: str) -> None:
    (tmp_path / "script.py").write_text(HEAD + code)
    ended = run_python(str(tmp_path / "script.py"))
    assert (ended.returncode, ended.stderr[-len(stderr) :] if stderr else ended.stderr) == (status, stderr)
