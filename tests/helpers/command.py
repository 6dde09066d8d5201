"""`scrapy robots` in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from processes import run_python

NO_PROXY = {"http_proxy": "", "HTTP_PROXY": ""}


class Ended:
    """A command that has ended: its exit status and its output."""

    def __init__(self, *arguments: str, cwd: Path, stdin: bytes | None = None) -> None:
        command = ["-m", "scrapy", "robots", *arguments]
        done = run_python(*command, cwd=cwd, environment=NO_PROXY, stdin=stdin or b"")
        self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.splitlines()]

    def row(self, label: str) -> str:
        """The words beside the first such label."""
        (line, *_) = (line for line in self.stdout.splitlines() if line.startswith(f"  {label}"))
        return line[2 + len(label) :].strip()


def in_shell(command: str, cwd: Path) -> Any:
    """The status and the output of `scrapy robots` with these arguments and redirections of a shell."""
    line = f"exec '{sys.executable}' -m scrapy robots {command}"
    done = subprocess.run(line, shell=True, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    return SimpleNamespace(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def assert_wrong_usage(done: Ended, message: str) -> None:
    """Assert that the command prints this error, in one line, below the usage."""
    assert done.status == 2
    assert done.stdout == ""
    usage, _, error = done.stderr.partition("error: ")
    assert usage.startswith("Usage")
    assert "Traceback" not in usage
    assert error.startswith(message)
    assert error.count("\n") == 1
