"""scrapy-rep: crawls that obey robots.txt as RFC 9309 says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .addon import Addon
    from .decoding import RepDecodingMiddleware
    from .exceptions import ForbiddenByRobots, RobotsUnreachable
    from .middleware import RepMiddleware
    from .protocol.access import AccessResult
    from .protocol.parser import Ignored, RobotsTxt
    from .protocol.rules import Rule, Verdict
    from .robotparser import RepRobotParser
    from .sitemaps import RobotsSitemapMixin

__all__ = [
    "AccessResult",
    "Addon",
    "ForbiddenByRobots",
    "Ignored",
    "RepDecodingMiddleware",
    "RepMiddleware",
    "RepRobotParser",
    "RobotsSitemapMixin",
    "RobotsTxt",
    "RobotsUnreachable",
    "Rule",
    "Verdict",
]

# Loaded on first use: every `scrapy` command imports this package, whatever it is about to do.
_HOMES = {
    "AccessResult": ".protocol.access",
    "Addon": ".addon",
    "ForbiddenByRobots": ".exceptions",
    "Ignored": ".protocol.parser",
    "RepDecodingMiddleware": ".decoding",
    "RepMiddleware": ".middleware",
    "RepRobotParser": ".robotparser",
    "RobotsSitemapMixin": ".sitemaps",
    "RobotsTxt": ".protocol.parser",
    "RobotsUnreachable": ".exceptions",
    "Rule": ".protocol.rules",
    "Verdict": ".protocol.rules",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
