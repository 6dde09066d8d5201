"""The matchers that are compared, each as its users call it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.robotparser import RobotFileParser

from protego import Protego

from scrapy_rep import RobotsTxt

TOKEN = "examplebot"

Parse = Callable[[bytes], Any]
Allows = Callable[[Any, str], bool]


def _urllib(body: bytes) -> RobotFileParser:
    parser = RobotFileParser()
    parser.parse(body.decode("utf-8", "replace").splitlines())
    return parser


OURS = "scrapy-rep"
MATCHERS: dict[str, tuple[Parse, Allows]] = {
    OURS: (RobotsTxt.parse, lambda robots, url: robots.allows(url, TOKEN)),
    "Protego": (
        lambda body: Protego.parse(body.decode("utf-8", "ignore")),
        lambda robots, url: robots.can_fetch(url, TOKEN),
    ),
    "urllib": (_urllib, lambda robots, url: robots.can_fetch(TOKEN, url)),
}
try:
    from robots import RobotsParser
except ImportError:
    pass
else:
    MATCHERS["robotspy"] = (
        lambda body: RobotsParser.from_string(body.decode("utf-8", "replace")),
        lambda robots, url: robots.can_fetch(TOKEN, url),
    )


def first_verdict(name: str, body: bytes, url: str) -> Callable[[], bool]:
    """Parsing and answering once."""
    parse, allows = MATCHERS[name]
    return lambda: allows(parse(body), url)


def later_verdict(name: str, body: bytes, url: str) -> Callable[[], bool]:
    """Answering what has been asked for before."""
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
