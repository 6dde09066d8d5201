"""The parsers that are compared. Each is called as its users call it."""

from __future__ import annotations

import platform
import re
import subprocess
import tempfile
import urllib.parse
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.robotparser import RobotFileParser

OURS = "scrapy-rep"
CPYTHON = "CPython main"
CPYTHON_COMMIT = "055a953f4ac6"
_PARTS = re.compile(r"(([^:/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?", re.DOTALL)  # RFC 3986, appendix B


class Parser(NamedTuple):
    """A parser of robots.txt."""

    module: str
    """What is imported."""
    parse: Callable[[bytes], Any]
    allows: Callable[[Any, str, str], bool]
    """Called with what `parse` returned, agent and URL."""

    def asked(self, body: bytes, agent: str, url: str) -> bool:
        return bool(self.allows(self.parse(body), agent, url))


def _ours(body: bytes) -> Any:
    from scrapy_rep import RobotsTxt  # noqa: PLC0415 - each parser is imported only if it is asked

    return RobotsTxt.parse(body)


def _protego(body: bytes) -> Any:
    from protego import Protego  # noqa: PLC0415

    return Protego.parse(body.decode("utf-8", "ignore"))  # as Scrapy decodes it


def _urllib(body: bytes) -> Any:
    parser = RobotFileParser()
    parser.parse(body.decode("utf-8", "surrogateescape").splitlines())  # as its `read` does
    return parser


def _cpython(body: bytes) -> Any:
    from cpython_robotparser import RobotFileParser as Next  # noqa: PLC0415

    if not hasattr(urllib.parse, "_urlsplit"):  # functions of the same branch; None stands for a missing part
        vars(urllib.parse)["_urlsplit"] = lambda url, _scheme: _PARTS.fullmatch(url.strip()).group(2, 4, 5, 7, 9)  # type: ignore[union-attr]
        vars(urllib.parse)["_urlunsplit"] = lambda _scheme, _authority, path, query, fragment: (
            path + ("" if query is None else f"?{query}") + ("" if fragment is None else f"#{fragment}")
        )
    parser = Next()
    parser.parse(body.decode("utf-8", "surrogateescape").splitlines())  # as its `read` does
    return parser


def _robotspy(body: bytes) -> Any:
    from robots import RobotsParser  # noqa: PLC0415

    return RobotsParser.from_string(body.decode("utf-8", "replace"))


def _google(body: bytes) -> Any:
    return body


def _google_allows(body: bytes, agent: str, url: str) -> bool:
    from jwm.robotstxt.googlebot import RobotsMatcher  # noqa: PLC0415

    return bool(RobotsMatcher().OneAgentAllowedByRobots(body, agent, url))  # it parses the file for each URL


def _reppy(body: bytes) -> Any:
    from reppy.robots import Robots  # noqa: PLC0415

    return Robots.parse("https://h.example/robots.txt", body)


PARSERS = {
    OURS: Parser("scrapy_rep", _ours, lambda robots, agent, url: robots.allows(url, agent)),
    "Protego": Parser("protego", _protego, lambda robots, agent, url: robots.can_fetch(url, agent)),
    "urllib.robotparser": Parser("urllib", _urllib, lambda robots, agent, url: robots.can_fetch(agent, url)),
    # `cpython_robotparser.py` is a copy of Lib/urllib/robotparser.py. If it is not on the path, the parser is left out.
    CPYTHON: Parser("cpython_robotparser", _cpython, lambda robots, agent, url: robots.can_fetch(agent, url)),
    "robotspy": Parser("robots", _robotspy, lambda robots, agent, url: robots.can_fetch(agent, url)),
    "jwm.robotstxt": Parser("jwm", _google, _google_allows),
    "reppy": Parser("reppy", _reppy, lambda robots, agent, url: robots.allowed(url, agent)),
}


def installed() -> dict[str, Parser]:
    return {name: parser for name, parser in PARSERS.items() if find_spec(parser.module) is not None}


def version_of(name: str) -> str:
    """Return the name and version of a parser; empty if it is not installed."""
    if name == "urllib.robotparser":
        return f"Python {platform.python_version()}"
    if name == CPYTHON:
        return f"commit {CPYTHON_COMMIT}"
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


class Program:
    """A parser in another language: a program that reads one question and prints one word per line."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._folder = tempfile.TemporaryDirectory()
        self._paths: dict[bytes, Path] = {}

    def asked(self, body: bytes, agent: str, url: str) -> bool:
        """Ask one question. Raises ValueError if the program prints another word than `allow` or `disallow`."""
        if body not in self._paths:
            self._paths[body] = Path(self._folder.name) / f"{len(self._paths)}.txt"
            self._paths[body].write_bytes(body)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self._paths[body]}\t{agent}\t{url}\n")
        word = self._process.stdout.readline().strip()
        if word not in {"allow", "disallow"}:
            raise ValueError(word)
        return word == "allow"

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()
