"""The matchers that the benchmarks compare, called as their users call them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from parsers import Parser, installed

TOKEN = "examplebot"

Parse = Callable[[bytes], Any]
Allows = Callable[[Any, str], bool]


def _asked_by_token(parser: Parser) -> tuple[Parse, Allows]:
    return parser.parse, lambda robots, url: bool(parser.allows(robots, TOKEN, url))


MATCHERS = {name: _asked_by_token(parser) for name, parser in installed().items()}


def first_verdict(name: str, body: bytes, url: str) -> Callable[[], bool]:
    """Return a function that parses the file and answers one question."""
    parse, allows = MATCHERS[name]
    return lambda: allows(parse(body), url)


def later_verdict(name: str, body: bytes, url: str) -> Callable[[], bool]:
    """Return a function that repeats a question asked before."""
    parse, allows = MATCHERS[name]
    robots = parse(body)
    for other in (f"{url}/other", url):  # ours makes an index of the rules when asked about a second URL
        allows(robots, other)
    return lambda: allows(robots, url)


def versions() -> str:
    names = ("Protego", "robotspy", "Scrapy")
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)
