"""`scrapy robots` in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from processes import run_python

ROBOTS = ("-m", "scrapy", "robots")
NO_PROXY = {"http_proxy": "", "HTTP_PROXY": ""}


class Ended:
    """A command that has ended: its exit status and its output."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        stdin: bytes = b"",
        streams: Mapping[int, Path | None] | None = None,
    ) -> None:
        done = run_python(*ROBOTS, *arguments, cwd=cwd, environment=NO_PROXY, stdin=stdin, streams=streams)
        self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.splitlines()]

    def row(self, label: str) -> str:
        """The words beside the first such label."""
        (line, *_) = (line for line in self.stdout.splitlines() if line.startswith(f"  {label}"))
        return line[2 + len(label) :].strip()


def assert_wrong_usage(done: Ended, message: str) -> None:
    """Assert that the command prints this error, in one line, below the usage."""
    assert done.status == 2
    assert done.stdout == ""
    usage, _, error = done.stderr.partition("error: ")
    assert usage.startswith("Usage")
    assert "Traceback" not in usage
    assert error.startswith(message)
    assert error.count("\n") == 1
