from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import installed_scrapy
import pytest
import scrapy
from hypothesis import settings
from redis_server import BINARY, MISSING, RedisServer
from web import Web

# The garbage collection would take a tenth of the time. `pytest_collection_finish` switches it on.
gc.disable()
gc.set_threshold(10_000)

# No test fails because the machine is busy.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# The simulation needs `fork`, and a Scrapy that crawls without a reactor.
collect_ignore = ["simulation"] if sys.platform == "win32" or scrapy.version_info < (2, 19) else []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="fail if a test is skipped")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With `--no-skips`, a run fails that has skipped a test. `-rs` names it."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("no_skips") and reporter and reporter.stats.get("skipped") and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in installed_scrapy.not_tested():
        terminalreporter.write_line(line)


def pytest_collection_finish() -> None:
    """Keep the collected tests out of each later garbage collection: some tests call `gc.collect` again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """The workers of `-n auto`: more than there are processors, because tests wait for most of their time."""
    return 2 * (os.cpu_count() or 2) + 2


@pytest.fixture(scope="session")
def web() -> Iterator[Web]:
    """A web of origins on loopback, in a process of its own."""
    web = Web()
    yield web
    web.close()


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """An empty Redis server for this test alone."""
    pytest.importorskip("redis", reason="redis-py is not installed: pip install scrapy-rep[redis]")
    if BINARY is None:
        pytest.skip(MISSING)
    with RedisServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that keeps entries after a crawl."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/robots.db"
    url: str = request.getfixturevalue("redis_server").url
    return url
