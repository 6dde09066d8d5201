"""The matchers that the benchmarks compare, called as their users call them."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
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


def seconds_of_node(bodies: Iterable[bytes], url: str, rounds: int) -> list[float]:
    """Return the median time for each body with node's robots-parser; nothing if it is not installed (NODE_PATH)."""
    asked = {"url": url, "token": TOKEN, "rounds": rounds, "bodies": [b64encode(body).decode() for body in bodies]}
    try:
        done = subprocess.run(
            ["node", str(Path(__file__).with_name("robots_parser.js"))],
            input=json.dumps(asked),
            capture_output=True,
            check=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return []
    return [float(seconds) for seconds in json.loads(done.stdout)]


def versions() -> str:
    names = ("Protego", "robotspy", "jwm.robotstxt", "Scrapy")
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)
