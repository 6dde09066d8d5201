"""Python processes that begin with Scrapy already imported. The import would take most of a second.

They are forked from a process that runs this file as a script. It reads commands as JSON lines, and answers each with a
JSON line:

- `{"start": arguments, "cwd": ..., "environment": ..., "files": [stdin, stdout, stderr]}` -> the new process's id
- `{"poll": id}` -> its exit status, or null while it runs

It ends at the end of its standard input.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import scrapy.commands
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

import scrapy_rep.commands

PRELOADED = (
    *("crawling", "scrapy_rep.addon", "scrapy_rep.commands.robots", "scrapy_rep.storage.sqlite"),
    *("scrapy.cmdline", "scrapy.extensions.feedexport", "scrapy.pqueues", "scrapy.squeues", "scrapy.dupefilters"),
    *("scrapy.core.downloader.handlers.http11", "scrapy.core.downloader.handlers.ftp", "scrapy.statscollectors"),
)


class PythonProcess:
    """`python ARGUMENT ...`, where the first argument is a file or "-m". It does not outlive the `with` block."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        files = self._stdin, self._stdout, self._stderr = [Path(self._folder.name, name) for name in ("0", "1", "2")]
        self._stdin.write_bytes(stdin)
        self._status: int | None = None
        self.pid: int = _forks().command(
            start=arguments,
            cwd=str(cwd or Path.cwd()),
            environment=dict(environment or {}),
            files=[str(file) for file in files],
        )

    @property
    def stdout(self) -> bytes:
        """What the process has written so far."""
        return self._stdout.read_bytes() if self._stdout.exists() else b""

    @property
    def stderr(self) -> bytes:
        return self._stderr.read_bytes() if self._stderr.exists() else b""

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs, like `subprocess.Popen.poll`."""
        if self._status is None:
            self._status = _forks().command(poll=self.pid)
        return self._status

    def wait(self, seconds: float) -> int:
        """Wait for the end of the process, and return its exit status. Raises TimeoutError."""
        give_up_at = time.monotonic() + seconds
        while (status := self.poll()) is None:
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"it did not end within {seconds} s")
            time.sleep(0.01)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def __enter__(self) -> PythonProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.send_signal(signal.SIGKILL)
        self.wait(60)
        self._folder.cleanup()


def run_python(
    *arguments: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    seconds: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a Python process to its end. Raises TimeoutError if it runs longer than `seconds`."""
    with PythonProcess(*arguments, cwd=cwd, environment=environment, stdin=stdin) as process:
        status = process.wait(seconds)
        stdout, stderr = process.stdout.decode("utf-8"), process.stderr.decode("utf-8")
    return subprocess.CompletedProcess(arguments, status, stdout, stderr)


class _Forks:
    """Sends commands to the process from which the others are forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._process.communicate)

    def command(self, **command: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())


_STARTING = threading.Lock()


def _forks() -> _Forks:
    with _STARTING:
        return _started()


@cache
def _started() -> _Forks:
    return _Forks()


# `preload` and `serve` run in the parent, `begin` and `run` in each fork.


def preload() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    # Each `scrapy COMMAND` loads all of them.
    for folder in (scrapy.commands, scrapy_rep.commands):
        for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
            importlib.import_module(module.name)
    # Every crawl loads these, and releases of Scrapy differ in them.
    for kind in ("EXTENSIONS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"):
        for path in getattr(default_settings, f"{kind}_BASE"):
            load_object(path)


def serve() -> Sequence[str]:
    """Fork processes as commands ask. Return in each new process, with its arguments. Exit at the end of the input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload()
    assert "twisted.internet.reactor" not in sys.modules, "each forked process chooses its reactor"
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        command = json.loads(line)
        if "poll" in command:
            pid, status = os.waitpid(command["poll"], os.WNOHANG)
            reply = os.waitstatus_to_exitcode(status) if pid else None
        else:
            reply = os.fork()
            if reply == 0:
                begin(command)
                return list(command["start"])
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
    sys.exit()


def begin(command: Mapping[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(command["files"]):
        descriptor = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(command["cwd"])
    os.environ.update(command["environment"])


def run(arguments: Sequence[str]) -> None:
    if arguments[0] == "-m":
        sys.path[0] = os.getcwd()
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(arguments[0]).parent)
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    run(serve())
