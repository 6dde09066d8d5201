"""scrapy-rep: crawls that obey robots.txt as RFC 9309 requires.

The way of one request
    1. `waiting.scheduler_door` asks the `gate` whether the origin's robots.txt is known. If not, the request waits at
       the door for the origin's fetch (`cache.resolver`).
    2. `middleware.process_request` passes the request to the `gate`, which finds the origin's `RobotsPolicy` in memory.
    3. The policy gives the `Verdict`. The gate lets the request pass, or raises `ForbiddenByRobots`.

The way of one robots.txt
    1. `cache.rounds` looks for the origin's entry in `cache.shared_store`, if there is a store. Else it fetches.
    2. `fetching.redirects` follows the redirects. `fetching.answers` waits for a turn, makes each request through
       `fetching.fetcher`, and judges the `Answer`.
    3. The last answer becomes a `StoredResponse`, or counts as a failure. `protocol.lifecycle.after_fetch` makes the
       origin's new `Entry`. `cache.memory` and `cache.shared_store` keep it.
    4. `protocol.lifecycle.policy_at` says which `RobotsPolicy` the entry means at a moment.
    5. The policy asks `protocol.robotstxt` for the `Verdict` on a URL.
    The signals (`signals`) and the `extensions` report these steps.

Only the modules in `scrapy_internals` may touch the internals of Scrapy and Twisted.

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

# Loaded on first use, because every `scrapy` command of the project imports this package.
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
