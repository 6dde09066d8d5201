"""Every setting of ours: its name, its default and its check, read once (README, Settings)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from scrapy_rep.protocol.freshness import MAX_LIFETIME
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.redirect_target import MAX_REDIRECTS
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT
from scrapy_rep.protocol.status_policy import OVERRIDES, POLICIES, RFC9309, StatusRow

logger = logging.getLogger("scrapy_rep")


@dataclass(frozen=True, slots=True)
class RepSettings:
    """Checked values; each field is the setting `REP_` and its name in capitals."""

    status_policy: tuple[StatusRow, ...]
    storage: str
    """An address; its scheme names the storage."""
    storages: Mapping[str, Any]
    """Scheme -> class or its import path, None for a scheme that is not to be."""
    memory_origins: int
    memory_octets: int
    lifetime_min: float
    """Seconds."""
    unreachable_days: float
    body_limit: int
    """Octets."""
    max_redirects: int
    """In a row."""
    fetch_timeout: float
    """Seconds, a hop, on the wire."""
    fetch_retries: int
    fetch_concurrency: int
    waiting_max: int
    """Requests."""
    unreachable_wait: float
    """Seconds from an origin's first failure."""
    redirect_private: bool
    shadow: bool
    exempt: frozenset[Origin | str]
    """Origins, and hosts as an Origin has them."""
    crawl_delay_max: float
    """Seconds; 0 where no Crawl-delay is obeyed."""
    drop_early: bool
    report: str | None
    """A path; `%(name)s` and `%(time)s` in it stand for the spider's name and the time of its start."""

    @classmethod
    def read(cls, settings: BaseSettings) -> RepSettings:
        """Raises ValueError for a wrong value, naming the setting, the value and the cure."""
        return cls(**{field: _checked(settings, field) for field in SETTINGS})


def _at_least(
    least: float, unit: str, kind: type[int] | type[float], most: float = float("inf")
) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        # `True` is an int, and "nan" a float: neither is a number of anything.
        number = None if isinstance(value, bool) else kind(value)
        if number is None or not least <= number < float("inf") or number > most or number != float(value):
            raise ValueError
        return number

    check.__doc__ = f"a {'whole ' if kind is int else ''}number of {unit}, at least {least:g}"
    if most < float("inf"):
        check.__doc__ += f" and at most {most:g}"
    return check


def _positive_seconds(value: Any) -> float:
    """a number of seconds above 0"""
    seconds = 0.0 if isinstance(value, bool) else float(value)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


def _yes_or_no(value: Any) -> bool:
    """True or False"""
    if value in (True, "True", "true", "1"):
        return True
    if value in (False, "False", "false", "0"):
        return False
    raise ValueError


def _address(value: Any) -> str:
    """an address: 'memory:', 'sqlite:NAME', 'redis://host:port/db' or one with a scheme of REP_STORAGES"""
    if not isinstance(value, str) or ":" not in value:
        raise ValueError
    return value


def _classes(value: Any) -> Mapping[str, Any]:
    """a dict of schemes without their colon, each to a storage class or its import path"""
    if isinstance(value, str):
        value = json.loads(value)  # as Scrapy reads dicts on the command line
    if not isinstance(value, Mapping) or not all(isinstance(s, str) and ":" not in s for s in value):
        raise ValueError
    return dict(value)


def _exempt(value: Any) -> frozenset[Origin | str]:
    """a list of origins such as 'https://example.com:8443' and of hosts such as 'example.com'"""
    values = value.split(",") if isinstance(value, str) else value
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        raise TypeError
    return frozenset(_origin_or_host(text.strip()) for text in values if text)


def _origin_or_host(text: str) -> Origin | str:
    is_origin = "://" in text
    url = text if is_origin else f"https://{text}"
    origin = Origin.of(url)
    # Nothing may stand there that would have no effect: no path, no wildcard, no port of a host.
    if origin is None or set(text) & set("@?#* ") or urlsplit(url).path not in {"", "/"}:
        raise ValueError
    if is_origin:
        return origin
    if origin.port is not None:
        raise ValueError
    return origin.host


def _report(value: Any) -> str | None:
    """a path that ends in .jsonl or .html ('%(name)s' and '%(time)s' in it are filled in), or leave it out"""
    if value is None or value == "":
        return None
    path = os.fspath(value)
    if not isinstance(path, str) or not path.endswith((".jsonl", ".html")):
        raise ValueError
    _ = path % {"name": "", "time": ""}
    return path


def _status_policy(value: Any) -> tuple[StatusRow, ...]:
    if isinstance(value, str):
        if value in POLICIES:
            return POLICIES[value]
        value = json.loads(value)  # as Scrapy reads dicts on the command line
    if not isinstance(value, Mapping):
        raise TypeError
    rows = [(_statuses(key), OVERRIDES[result], "REP_STATUS_POLICY") for key, result in value.items()]
    # Of two rows that hold a status, the one that says more exactly which it means.
    return (*sorted(rows, key=lambda row: len(row[0])), *RFC9309)


_status_policy.__doc__ = (
    f"one of {', '.join(map(repr, POLICIES))}, or a dict of overrides such as"
    f" {{403: 'restricted', range(520, 530): 'unavailable'}} ('520-529' is a range too),"
    f" each to one of {', '.join(map(repr, OVERRIDES))}"
)


def _statuses(key: Any) -> range:
    """The statuses that a key of the policy's dict stands for: an int, a range, or either as text."""
    if isinstance(key, str):
        first, _, last = key.partition("-")
        key = range(int(first), int(last or first) + 1)
    elif isinstance(key, int) and not isinstance(key, bool):
        key = range(key, key + 1)
    if not isinstance(key, range) or not key or key.step != 1 or key[0] < 100 or key[-1] > 999:
        raise ValueError
    return key


# field -> default, check. A check takes the value as set, perhaps as text, and gives it in its type or raises; its
# docstring says what would be right.
SETTINGS: Mapping[str, tuple[Any, Callable[[Any], Any]]] = {
    "status_policy": ("rfc9309", _status_policy),
    "storage": ("memory:", _address),
    "storages": ({}, _classes),
    "memory_origins": (10_000, _at_least(1, "origins", int)),
    "memory_octets": (64 * 2**20, _at_least(2**20, "octets", int)),
    "lifetime_min": (3_600.0, _at_least(0, "seconds", float, most=MAX_LIFETIME)),
    "unreachable_days": (30.0, _at_least(1, "days", float)),
    "body_limit": (PARSING_LIMIT, _at_least(PARSING_LIMIT, "octets", int)),
    "max_redirects": (MAX_REDIRECTS, _at_least(MAX_REDIRECTS, "redirects", int)),
    "fetch_timeout": (30.0, _positive_seconds),
    "fetch_retries": (1, _at_least(0, "retries", int)),
    "fetch_concurrency": (64, _at_least(1, "fetches", int)),
    "waiting_max": (1_000, _at_least(0, "requests", int)),
    "unreachable_wait": (30.0, _at_least(0, "seconds", float)),
    "redirect_private": (False, _yes_or_no),
    "shadow": (False, _yes_or_no),
    "exempt": ([], _exempt),
    "crawl_delay_max": (0.0, _at_least(0, "seconds", float)),
    "drop_early": (False, _yes_or_no),
    "report": (None, _report),
}


def setting_name(field: str) -> str:
    """`REP_BODY_LIMIT` for `body_limit`."""
    return f"REP_{field.upper()}"


def _checked(settings: BaseSettings, field: str) -> Any:
    default, check = SETTINGS[field]
    name = setting_name(field)
    value = settings.get(name, default)
    try:
        return check(value)
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError):
        raise ValueError(f"{name} is {value!r}; set it to {check.__doc__}") from None


def warn_of_unknown_names(settings: BaseSettings) -> None:
    known = [setting_name(field) for field in SETTINGS]
    for name in settings:
        if isinstance(name, str) and name.startswith("REP_") and name not in known:
            near = get_close_matches(name, known, n=1)
            cure = f"; did you mean {near[0]}?" if near else f"; the settings are {', '.join(known)}"
            logger.warning("%s is no setting of scrapy-rep and has no effect%s", name, cure)
