"""scrapy-rep: crawls that obey robots.txt as RFC 9309 says.

The way of one request
    `waiting.scheduler_door` asks the `gate` whether the origin's robots.txt is known. If not, the request waits there
    while there is one fetch for the origin (`cache.resolver`). Then it goes on to `middleware.process_request`. The
    `gate` asks `cache.resolver` for the origin's `RobotsPolicy` (`peek`: no fetch, no wait), asks that for a verdict,
    and lets the request pass or raises `ForbiddenByRobots`.

The way of one robots.txt
    `cache.rounds` looks into `cache.shared_store`, if there is one; else it has the robots.txt fetched.
    `fetching.redirects` follows the redirects and requests each URL through `fetching.answers`, which waits for a turn
    and calls `fetching.fetcher` for one HTTP request. The result is an `Answer`, and of the last one a
    `StoredResponse`, if it is usable. `protocol.lifecycle.after_fetch` makes the origin's new `Entry` from it, which
    `cache.memory` and `cache.shared_store` keep. `protocol.lifecycle.policy_at` makes from an entry the `RobotsPolicy`
    of a moment, and `protocol.robotstxt` gives the `Verdict` on one URL. `extensions` and signals (`signals`) report
    each step.

Who may touch the internals of Scrapy and Twisted
    The modules in `scrapy_internals`, and no other.

Where to add
    a directive: `protocol.robotstxt.syntax` (`Directive`) and `protocol.robotstxt.groups` (`VALUE_FAULTS`);
    a category of use: a row in `usage.vocabulary` (`VOCABULARY`);
    a status policy: a row in `protocol.status_policy` (`POLICIES`);
    a sign of a challenge: a row in `protocol.status_policy` (`BY_HEADER`, `BY_PAGE`);
    a store: a subclass of `storage.Storage`, named in `storage.STORAGES` or in the setting REP_STORAGES;
    a listener: a class in `extensions`, connected to `signals`, and a row in the table there (`EXTENSIONS`);
    a setting: a field of `settings.RepSettings`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from .addon import Addon
    from .exceptions import ForbiddenByRobots, RobotsUnreachable
    from .fetching.content_decoding import RepDecodingMiddleware
    from .middleware import RepMiddleware
    from .protocol.access_result import AccessResult
    from .protocol.robotstxt.parser import Ignored, RobotsTxt
    from .protocol.robotstxt.rules import Received, Rule, Verdict, VerdictReason
    from .robotparser import RepRobotParser
    from .sitemap_spider import RobotsSitemapSpider
    from .usage.preferences import Usage

__all__ = [
    "AccessResult",
    "Addon",
    "ForbiddenByRobots",
    "Ignored",
    "Received",
    "RepDecodingMiddleware",
    "RepMiddleware",
    "RepRobotParser",
    "RobotsSitemapSpider",
    "RobotsTxt",
    "RobotsUnreachable",
    "Rule",
    "Usage",
    "Verdict",
    "VerdictReason",
]

# Loaded on first use: every `scrapy` command imports this package, whatever it is about to do.
_HOMES = {
    "AccessResult": ".protocol.access_result",
    "Addon": ".addon",
    "ForbiddenByRobots": ".exceptions",
    "Ignored": ".protocol.robotstxt.parser",
    "Received": ".protocol.robotstxt.rules",
    "RepDecodingMiddleware": ".fetching.content_decoding",
    "RepMiddleware": ".middleware",
    "RepRobotParser": ".robotparser",
    "RobotsSitemapSpider": ".sitemap_spider",
    "RobotsTxt": ".protocol.robotstxt.parser",
    "RobotsUnreachable": ".exceptions",
    "Rule": ".protocol.robotstxt.rules",
    "Usage": ".usage.preferences",
    "Verdict": ".protocol.robotstxt.rules",
    "VerdictReason": ".protocol.robotstxt.rules",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("scrapy-rep")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
