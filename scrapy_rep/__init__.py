"""scrapy-rep: crawls that obey robots.txt as RFC 9309 says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .addon import Addon
    from .exceptions import ForbiddenByRobots, RobotsUnreachable
    from .fetching.content_decoding import RepDecodingMiddleware
    from .middleware import RepMiddleware
    from .protocol.access_result import AccessResult
    from .protocol.robotstxt.parser import Ignored, RobotsTxt
    from .protocol.robotstxt.rules import Rule, Verdict
    from .robotparser import RepRobotParser
    from .sitemap_spider import RobotsSitemapSpider

__all__ = [
    "AccessResult",
    "Addon",
    "ForbiddenByRobots",
    "Ignored",
    "RepDecodingMiddleware",
    "RepMiddleware",
    "RepRobotParser",
    "RobotsSitemapSpider",
    "RobotsTxt",
    "RobotsUnreachable",
    "Rule",
    "Verdict",
]

# Loaded on first use: every `scrapy` command imports this package, whatever it is about to do.
_HOMES = {
    "AccessResult": ".protocol.access_result",
    "Addon": ".addon",
    "ForbiddenByRobots": ".exceptions",
    "Ignored": ".protocol.robotstxt.parser",
    "RepDecodingMiddleware": ".fetching.content_decoding",
    "RepMiddleware": ".middleware",
    "RepRobotParser": ".robotparser",
    "RobotsSitemapSpider": ".sitemap_spider",
    "RobotsTxt": ".protocol.robotstxt.parser",
    "RobotsUnreachable": ".exceptions",
    "Rule": ".protocol.robotstxt.rules",
    "Verdict": ".protocol.robotstxt.rules",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
