"""Python processes, and crawls in them. They begin with Scrapy imported already: that would take most of a second.

All of them are forked from one process, which runs this file as a script. At its end, each process tells of coroutines
that were never awaited, of tasks that are left, and of errors that nothing has handled. (The fork server of
`multiprocessing` would not.)

The task of a crawl is JSON on standard input; the result is the last line of the output. The keys of the task:

- `settings`
- `urls`: URLs, or requests as dicts
- `ready_after`: seconds between the last request and the line that says the crawl is ready
- `waited`: how many requests must have waited for a robots.txt before that line
- `stop`: how the crawl then stops itself
- `clock_ahead`: seconds by which our middleware's clock is ahead

The log goes to standard error.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import inspect
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
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NoReturn

import scrapy.commands
from crawling import ADDON, QUIET, Time, close_spider, with_clock
from installed_scrapy import CAN
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.http import Response
from scrapy.settings import default_settings
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import load_object
from twisted.internet.defer import DebugInfo

import scrapy_rep.commands
from scrapy_rep.scrapy_internals.compat import sleep

if TYPE_CHECKING:
    from typing_extensions import Self

SECONDS = 20  # time limit of a process, on a machine that has much else to do
REACTORS: dict[str, dict[str, Any]] = {
    "asyncio": {},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    **({"none": {"TWISTED_REACTOR_ENABLED": False}} if CAN["crawl without a reactor"] else {}),
}
PRELOADED = (
    *("scrapy_rep.addon", "scrapy_rep.commands.robots", "scrapy_rep.storage.sqlite"),
    *("scrapy.cmdline", "scrapy.extensions.feedexport", "scrapy.pqueues", "scrapy.squeues", "scrapy.dupefilters"),
    *("scrapy.core.downloader.handlers.http11", "scrapy.core.downloader.handlers.ftp", "scrapy.statscollectors"),
)
# Meta keys that Scrapy sets.
SCRAPYS = {
    *("depth", "download_latency", "download_slot", "download_timeout", "is_start_request"),
}


# In the tests.


def until(is_so: Callable[[], object], process: CrawlProcess | None = None) -> None:
    """Wait until the condition holds. After a minute, raises TimeoutError with the process's log."""
    give_up_at = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > give_up_at:
            raise TimeoutError(process.log if process is not None else "")
        time.sleep(0.02)


class PythonProcess:
    """`python ARGUMENT ...`, where the first argument is a file or "-m". It does not outlive the `with` block.

    `streams`: standard streams by their numbers that are other files (pipes, terminals), or None: closed."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        streams: Mapping[int, Path | None] | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        files = self._stdin, self._stdout, self._stderr = [Path(self._folder.name, name) for name in ("0", "1", "2")]
        self._stdin.write_bytes(stdin)
        self._status: int | None = None
        opened = dict(enumerate(files)) | dict(streams or {})
        self.pid: int = _forks().command(
            start=arguments,
            cwd=str(cwd or Path.cwd()),
            environment=dict(environment or {}),
            files=[file and str(file) for file in opened.values()],
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
        give_up_at, pause = time.monotonic() + seconds, 0.01
        while (status := self.poll()) is None:
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"it did not end within {seconds} s")
            time.sleep(pause)
            pause = min(pause * 1.1, 0.05)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.send_signal(signal.SIGKILL)
        self.wait(60)
        self._folder.cleanup()


def run_python(
    *arguments: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    streams: Mapping[int, Path | None] | None = None,
    seconds: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a Python process to its end. Raises TimeoutError if it runs longer than `seconds`."""
    with PythonProcess(*arguments, cwd=cwd, environment=environment, stdin=stdin, streams=streams) as process:
        status = process.wait(seconds)
        stdout, stderr = process.stdout.decode("utf-8"), process.stderr.decode("utf-8")
    return subprocess.CompletedProcess(arguments, status, stdout, stderr)


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
        """Lines of the log that no crawl should have. `Nothing was crawled` is an ERROR, but no fault."""
        lines = self._lines("Traceback", "Unhandled", " ERROR: ", " CRITICAL: ", "never awaited", "was destroyed")
        return [line for line in lines if "Nothing was crawled: " not in line]

    def _lines(self, *signs: str) -> list[str]:
        return [line for line in self.log.splitlines() if any(sign in line for sign in signs)]


class CrawlProcess(PythonProcess):
    def until_ready(self) -> None:
        while not (said := self.stdout.splitlines()):
            assert self.poll() is None, self.log
            time.sleep(0.01)
        assert json.loads(said[0]) == {"ready": True}

    @property
    def log(self) -> str:
        return self.stderr.decode("utf-8")

    def interrupt(self) -> None:
        self.send_signal(signal.SIGINT)

    def killed(self) -> bool:
        """Kill the process. False if it had ended before."""
        self.send_signal(signal.SIGKILL)
        return self.wait(SECONDS) == -signal.SIGKILL

    def ended(self, seconds: float = SECONDS) -> Ended:
        """Wait for the result. Raises TimeoutError if the crawl takes longer than this many seconds."""
        assert self.wait(seconds) == 0, self.log
        return Ended(self.log, **json.loads(self.stdout.splitlines()[-1]))


def crawl_process(
    urls: Sequence[str | dict[str, Any]],
    settings: dict[str, Any] | None = None,
    *,
    command: Sequence[str] = (__file__, "--crawl"),
    environment: Mapping[str, str] | None = None,
    **task: Any,
) -> CrawlProcess:
    """Start a crawl, which is killed at the end of the `with` block.

    `task`: further keys of the task. The key `constants` replaces numbers of the package: path -> value.
    """
    settings = {**QUIET, **ADDON, **(settings or {})}
    stdin = json.dumps({"urls": list(urls), "settings": settings, **task}).encode()
    return CrawlProcess(*command, stdin=stdin, environment=environment)


def crawled(
    urls: Sequence[str | dict[str, Any]],
    settings: dict[str, Any] | None = None,
    *,
    seconds: float = SECONDS,
    **task: Any,
) -> Ended:
    with crawl_process(urls, settings, **task) as process:
        return process.ended(seconds)


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


# In the process of a crawl.


def tell(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Ahead(Time):
    """A clock that is ahead by this many seconds."""

    def __call__(self) -> float:
        return time.time() + self.now

    sleep = staticmethod(sleep)  # type: ignore[assignment]


class TellsAll(Spider):
    name = "tells-all"

    def __init__(self, task: dict[str, Any], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.task = task
        self.ends: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.is_ready = False

    async def start(self) -> AsyncIterator[Request]:
        for request in self.task["urls"]:
            yield self.request({"url": request} if isinstance(request, str) else request)
        if self.task.get("ready_after"):
            call_later(self.task["ready_after"], self.ready)
            if self.task.get("stop") == "close_spider":
                await sleep(self.task["ready_after"])
                while not self.is_ready:
                    await sleep(0.01)
                close_spider(self, "enough")

    def request(self, details: dict[str, Any]) -> Request:
        return Request(**details, callback=self.parse, errback=self.failed)

    def ready(self) -> None:
        if self.crawler.stats.get_value("rep/waited", 0) < self.task.get("waited", 0):
            call_later(0.01, self.ready)
            return
        self.is_ready = True
        tell({"ready": True})
        engine = self.crawler.engine
        assert engine is not None
        if self.task.get("stop") == "engine.close":
            deferred_from_coro(engine.close_async())
        elif self.task.get("stop") == "SIGINT":
            os.kill(os.getpid(), signal.SIGINT)
        elif self.task.get("stop") == "crawler.stop":
            deferred_from_coro(self.crawler.stop_async())

    def parse(self, response: Response, **arguments: Any) -> Any:
        assert response.request is not None
        self.end(response.request, f"HTTP {response.status}", arguments)

    def failed(self, failure: Any) -> None:
        self.end(failure.request, type(failure.value).__name__, {}, str(failure.value))

    def end(self, request: Request, end: str, arguments: dict[str, Any], why: str = "") -> None:
        as_it_was = {"dont_filter": request.dont_filter, "priority": request.priority, "mark": request.meta.get("mark")}
        as_it_was["meta"] = sorted(set(request.meta) - SCRAPYS)
        self.ends.append({"url": request.url, "end": end, "why": why, **as_it_was, **arguments})


def run_crawl(task: dict[str, Any], spider_class: type[TellsAll] = TellsAll) -> None:
    settings = task["settings"]
    for path, value in task.get("constants", {}).items():
        module, _, name = path.rpartition(".")
        assert hasattr(importlib.import_module(module), name)
        setattr(sys.modules[module], name, value)
    if "clock_ahead" in task:
        settings.update(with_clock(Ahead(task["clock_ahead"])))
    process_class = CrawlerProcess if settings.get("TWISTED_REACTOR_ENABLED", True) else AsyncCrawlerProcess
    process = process_class(settings)
    crawler = process.create_crawler(spider_class)
    process.crawl(crawler, task=task)
    process.start()
    spider, stats = crawler.spider, crawler.stats
    assert isinstance(spider, TellsAll)
    assert stats is not None
    as_json = {name: value for name, value in stats.get_stats().items() if isinstance(value, int | float | str)}
    tell({"ends": spider.ends, "stats": as_json, "notes": spider.notes})


# `preload` and `serve` run in the process from which the others are forked, `begin` and `run` in each fork.


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
    """Fork processes as commands ask. Return in each new process, with its arguments. Exit at the end of the input.

    Each command and each reply is a line of JSON:

    - `{"start": arguments, "cwd": ..., "environment": ..., "files": [stdin, stdout, stderr]}` -> the new process's id
    - `{"poll": id}` -> its exit status, or null while it runs
    """
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
        if file is None:
            os.close(number)
            continue
        descriptor = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
    stdin, stdout, stderr = (file is not None for file in command["files"])
    # As Python does at its start.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False) if stdin else None
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False) if stdout else None
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False) if stderr else None
    os.chdir(command["cwd"])
    os.environ.update(command["environment"])


def _is_left_by_scrapy(task: asyncio.Task[Any]) -> bool:
    """Whether Scrapy, without us, may end the process before this task of its own:

    - around a download, as it sleeps after a failure
    - of a crawl that was stopped while it already closed by itself: only the task's last step is left
    """
    name, awaited = getattr(task.get_coro(), "__name__", ""), getattr(task, "_fut_waiter", None)
    return name == "_wait_for_download" or (name == "start_async" and awaited is not None and awaited.done())


def run_to_its_end(arguments: Sequence[str]) -> NoReturn:
    """Run, and end as Python ends, but leave the memory to the system: to free every module takes longer than most
    commands run."""
    status = 0
    try:
        run(arguments)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        status = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    # Only what was made since the fork: `gc.freeze` hides everything else.
    for left in gc.get_objects():
        if isinstance(left, CoroutineType) and inspect.getcoroutinestate(left) == inspect.CORO_CREATED:
            print(f"coroutine {left.__qualname__!r} was never awaited", file=sys.stderr)
        elif isinstance(left, asyncio.Task) and not left.done() and not _is_left_by_scrapy(left):
            print(f"{left!r} was destroyed but it is pending", file=sys.stderr)
        elif isinstance(left, DebugInfo) and left.failResult is not None:
            print(f"Unhandled error in Deferred: {left.failResult!r}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)


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
    if sys.argv[1:] == ["--crawl"]:
        run_crawl(json.load(sys.stdin))
    else:
        run_to_its_end(serve())
