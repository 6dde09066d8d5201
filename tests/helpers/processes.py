"""Start crawls in processes of their own, and read their results."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawling import ADDON, QUIET
from forked import PythonProcess
from installed_scrapy import CAN

SECONDS = 20  # time limit of a process, on a machine that has much else to do
REACTORS: dict[str, dict[str, Any]] = {
    "asyncio": {},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    **({"none": {"TWISTED_REACTOR_ENABLED": False}} if CAN["crawl without a reactor"] else {}),
}


def until(is_so: Callable[[], object], process: CrawlProcess | None = None) -> None:
    """Wait until the condition holds. After a minute, raises TimeoutError with the process's log."""
    give_up_at = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > give_up_at:
            raise TimeoutError(process.log if process is not None else "")
        time.sleep(0.02)


@dataclass
class Ended:
    """The results of a crawl in a process of its own."""

    log: str
    ends: list[dict[str, Any]] = field(default_factory=list)
    """Each request that ended: `url`, `end` ("HTTP 200" or the type of an exception), `why`, and its own attributes."""
    stats: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What the test's own spider has recorded."""

    @property
    def by_url(self) -> dict[str, str]:
        return {end["url"]: end["end"] for end in self.ends}

    @property
    def pages(self) -> list[str]:
        return [end["url"] for end in self.ends if end["end"].startswith("HTTP ")]

    @property
    def refused(self) -> list[str]:
        """The URLs that robots.txt refused."""
        return [end["url"] for end in self.ends if end["end"] in {"ForbiddenByRobots", "RobotsUnreachable"}]

    @property
    def warnings(self) -> list[str]:
        """Lines of the log at WARNING and above."""
        return self._lines(" WARNING: ", " ERROR: ", " CRITICAL: ")

    @property
    def complaints(self) -> list[str]:
        """Lines of the log that no crawl should have."""
        return self._lines("Traceback", "Unhandled", "ERROR", "CRITICAL", "never awaited", "was destroyed")

    def _lines(self, *signs: str) -> list[str]:
        return [line for line in self.log.splitlines() if any(sign in line for sign in signs)]


class CrawlProcess:
    def __init__(self, process: PythonProcess) -> None:
        self._process = process

    def until_ready(self) -> None:
        while not (said := self._process.stdout.splitlines()):
            assert self._process.poll() is None, self.log
            time.sleep(0.01)
        assert json.loads(said[0]) == {"ready": True}

    @property
    def log(self) -> str:
        return self._process.stderr.decode("utf-8")

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def killed(self) -> bool:
        """Kill the process. False if it had ended before."""
        self._process.send_signal(signal.SIGKILL)
        return self._process.wait(SECONDS) == -signal.SIGKILL

    def ended(self, seconds: float = SECONDS) -> Ended:
        """Wait for the result. Raises TimeoutError if the crawl takes longer than this many seconds."""
        assert self._process.wait(seconds) == 0, self.log
        return Ended(self.log, **json.loads(self._process.stdout.splitlines()[-1]))


@contextmanager
def crawl_process(
    urls: Sequence[str | dict[str, Any]],
    settings: dict[str, Any] | None = None,
    *,
    command: Sequence[str] = (str(Path(__file__).with_name("crawl_process.py")),),
    environment: Mapping[str, str] | None = None,
    **task: Any,
) -> Iterator[CrawlProcess]:
    """A running crawl, which is killed at the end of the `with` block. `task`: see `crawl_process.py`."""
    settings = {**QUIET, **ADDON, **(settings or {})}
    stdin = json.dumps({"urls": list(urls), "settings": settings, **task}).encode()
    with PythonProcess(*command, stdin=stdin, environment=environment) as process:
        yield CrawlProcess(process)


def crawled(
    urls: Sequence[str | dict[str, Any]],
    settings: dict[str, Any] | None = None,
    *,
    seconds: float = SECONDS,
    **task: Any,
) -> Ended:
    with crawl_process(urls, settings, **task) as process:
        return process.ended(seconds)
