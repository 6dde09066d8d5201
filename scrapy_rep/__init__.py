"""scrapy-rep: crawls that obey robots.txt as RFC 9309 requires. This module has the public names.

`.github/ARCHITECTURE.md` is a map of the folders, and follows one request and one robots.txt through them. Nearly all
code that touches the internals of Scrapy and Twisted is in `scrapy_internals`.

Where to add
    a directive: `protocol.robotstxt.syntax` (`Directive`) and `protocol.robotstxt.groups` (`VALUE_FAULTS`);
    a category of use: a row in `usage` (`VOCABULARY`);
    a status policy: a row in `protocol.status_policy` (`POLICIES`);
    a sign of a challenge: a row in `protocol.challenge` (`BY_HEADER`, `BY_PAGE`);
    a text about a verdict: `protocol.words`;
    a store: a subclass of `storage.Storage`, named in `storage.STORAGES` or in the setting REP_STORAGES;
    a listener: a subclass of `extensions.Extension`, and a row in the table there (`EXTENSIONS`);
    a setting: a field of `settings.RepSettings`.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from .addon import Addon as Addon
    from .exceptions import ForbiddenByRobots as ForbiddenByRobots, RobotsUnreachable as RobotsUnreachable
    from .middleware import RepMiddleware as RepMiddleware
    from .origin_info import LastResult as LastResult, OriginInfo as OriginInfo, OriginKind as OriginKind
    from .protocol.answer import AccessResult as AccessResult, Answer as Answer
    from .protocol.origin import Origin as Origin
    from .protocol.robotstxt.groups import Group as Group, Record as Record
    from .protocol.robotstxt.parser import Ignored as Ignored, RobotsTxt as RobotsTxt
    from .protocol.robotstxt.rules import (
        Received as Received,
        Rule as Rule,
        Verdict as Verdict,
        VerdictReason as VerdictReason,
    )
    from .robotparser import RepRobotParser as RepRobotParser
    from .usage.preferences import Usage as Usage
    from .usage.statements import Statement as Statement

# Loaded on first use, because every `scrapy` command of the project imports this package.
_NAMES = {
    ".addon": ["Addon"],
    ".exceptions": ["ForbiddenByRobots", "RobotsUnreachable"],
    ".middleware": ["RepMiddleware"],
    ".origin_info": ["LastResult", "OriginInfo", "OriginKind"],
    ".protocol.answer": ["AccessResult", "Answer"],
    ".protocol.origin": ["Origin"],
    ".protocol.robotstxt.groups": ["Group", "Record"],
    ".protocol.robotstxt.parser": ["Ignored", "RobotsTxt"],
    ".protocol.robotstxt.rules": ["Received", "Rule", "Verdict", "VerdictReason"],
    ".robotparser": ["RepRobotParser"],
    ".usage.preferences": ["Usage"],
    ".usage.statements": ["Statement"],
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("scrapy-rep")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
