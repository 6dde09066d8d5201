"""Crawls in processes of their own, from a test's side."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from crawling import ADDON, QUIET

SECONDS = 20  # for any of them, on a machine that has much else to do
REACTORS: dict[str, dict[str, Any]] = {
    "asyncio": {},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    "none": {"TWISTED_REACTOR_ENABLED": False},
}


@dataclass
class Ended:
    """What came of a crawl in a process of its own."""

    log: str
    ends: list[dict[str, Any]] = field(default_factory=list)
    """Each request that came to an end: `url`, `end` ("HTTP 200" or an exception's type), `why`, and as it was."""
    stats: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What a spider of the test's own has noted."""

    @property
    def by_url(self) -> dict[str, str]:
        return {end["url"]: end["end"] for end in self.ends}

    @property
    def pages(self) -> list[str]:
        return [end["url"] for end in self.ends if end["end"].startswith("HTTP ")]

    @property
    def refused(self) -> list[str]:
        """By robots.txt."""
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
    def __init__(self, process: subprocess.Popen[str], log: IO[str]) -> None:
        self._process = process
        self._log = log

    def until_ready(self) -> None:
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline()) == {"ready": True}

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def killed(self) -> bool:
        """False where it had come to an end before."""
        was_running = self._process.poll() is None
        self._process.kill()
        self._process.communicate()
        return was_running

    def ended(self, seconds: float = SECONDS) -> Ended:
        """Raises TimeoutExpired if it does not end within so many seconds."""
        out, _ = self._process.communicate(timeout=seconds)
        self._log.seek(0)
        log = self._log.read()
        assert self._process.returncode == 0, log
        return Ended(log, **json.loads(out.splitlines()[-1]))


@contextmanager
def crawl_process(
    urls: Sequence[str | dict[str, Any]],
    settings: dict[str, Any] | None = None,
    *,
    command: Sequence[str] = (str(Path(__file__).with_name("crawl_process.py")),),
    **task: Any,
) -> Iterator[CrawlProcess]:
    """A crawl under way; it does not outlive the block. `task`: see `crawl_process.py`."""
    settings = {**QUIET, **ADDON, **(settings or {})}
    # Not a pipe: nobody reads the log before the end, and a full pipe would stop the crawl.
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log,
        subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdin is not None
        json.dump({"urls": list(urls), "settings": settings, **task}, process.stdin)
        process.stdin.close()
        process.stdin = None
        try:
            yield CrawlProcess(process, log)
        finally:
            process.kill()


def crawled(urls: Sequence[str | dict[str, Any]], settings: dict[str, Any] | None = None, **task: Any) -> Ended:
    with crawl_process(urls, settings, **task) as process:
        return process.ended()
