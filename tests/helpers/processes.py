"""Crawls in processes of their own, from a test's side."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawling import QUIET

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

    @property
    def by_url(self) -> dict[str, str]:
        return {end["url"]: end["end"] for end in self.ends}

    @property
    def complaints(self) -> list[str]:
        """Lines of the log that no crawl should have."""
        signs = ("Traceback", "Unhandled", "ERROR", "CRITICAL", "never awaited", "was destroyed")
        return [line for line in self.log.splitlines() if any(sign in line for sign in signs)]


class CrawlProcess:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def until_ready(self) -> None:
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline()) == {"ready": True}

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def ended(self, seconds: float = SECONDS) -> Ended:
        """Raises TimeoutExpired where it doesn't end within these."""
        out, log = self._process.communicate(timeout=seconds)
        assert self._process.returncode == 0, log
        return Ended(log, **json.loads(out.splitlines()[-1]))


@contextmanager
def crawl_process(
    urls: Sequence[str | dict[str, Any]], settings: dict[str, Any] | None = None, **task: Any
) -> Iterator[CrawlProcess]:
    """A crawl under way; whatever happens, it does not outlive the block."""
    settings = {**QUIET, "ADDONS": {"scrapy_rep.Addon": 500}, **(settings or {})}
    argument = json.dumps({"urls": list(urls), "settings": settings, **task})
    script = str(Path(__file__).with_name("crawl_process.py"))
    process = subprocess.Popen(
        [sys.executable, script, argument],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield CrawlProcess(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def crawled(urls: Sequence[str | dict[str, Any]], settings: dict[str, Any] | None = None, **task: Any) -> Ended:
    with crawl_process(urls, settings, **task) as process:
        return process.ended()
