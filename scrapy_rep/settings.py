"""All settings whose names begin with REP_, each with its default and its check."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from scrapy_rep.protocol.freshness import MAX_LIFETIME
from scrapy_rep.protocol.lifecycle import Terms
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT
from scrapy_rep.protocol.status_policy import OVERRIDES, POLICIES, SIGN_KEYS, StatusRow
from scrapy_rep.usage import VOCABULARY

LEAST_REDIRECTS = 5  # RFC 9309 2.3.1.2: "at least five"
MAX_BODY = 64 * 2**20  # bytes of a robots.txt; 131 times what RFC 9309 2.5 requires
OCTETS_OF_ORIGIN = 1_738  # bytes of memory for an origin: the average of 2,111 real sites (tests/benchmarks/speed.py)


class Setting(NamedTuple):
    """The default and the check of one setting."""

    default: Any
    check: Callable[[Any], Any]
    """A function that converts a value, which may be text, to its type. It raises an exception for a wrong value."""
    cure: str
    """The end of the error message: what to set the setting to."""


class _WrongPartError(ValueError):
    """Raised with a message about the part of a value that is wrong."""


def _setting(default: Any, check: Callable[[Any], Any], cure: str) -> Any:
    return field(metadata={"setting": Setting(default, check, cure)})


def _number(default: float, unit: str, at_least: float = 0, at_most: float = math.inf, bounds: str = "") -> Any:
    """Return a field for a number, which has to be whole if the default is an int. `bounds`: the bounds in words."""
    kind = type(default)

    def check(value: Any) -> float:
        number = kind(value)
        # Python takes True for a 1, and "inf" and "nan" for numbers.
        is_number = not isinstance(value, bool) and math.isfinite(number) and number == float(value)
        if not is_number or not at_least <= number <= at_most:
            raise ValueError
        return number

    bounds = bounds or f", at least {at_least:,}" + (f" and at most {at_most:,.0f}" if at_most < math.inf else "")
    return _setting(default, check, f"a {'whole ' if kind is int else ''}number of {unit}{bounds}")


def _switch() -> Any:
    values = {"true": True, "1": True, "false": False, "0": False}
    return _setting(False, lambda value: values[str(value).lower()], "True or False")


def _address(value: Any) -> str:
    if not isinstance(value, str) or ":" not in value:
        raise ValueError
    return value


def _classes(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        value = _from_json(value, '{"own": "package.module.OwnStorage"}')
    if not isinstance(value, Mapping) or not all(isinstance(s, str) and ":" not in s for s in value):
        raise ValueError
    return dict(value)


def _from_json(text: str, example: str) -> Any:
    """Return the value of JSON text, which the command line passes. (Scrapy's `getdict` reads JSON, too.)"""
    try:
        return json.loads(text)
    except ValueError:
        raise _WrongPartError(f"text has to be JSON, such as '{example}'") from None


def _texts(value: Any) -> list[str]:
    """Return the items of a list, or of text from the command line: JSON, or items with commas between them."""
    if isinstance(value, str):
        value = _from_json(value, '["one", "two"]') if value.startswith("[") else value.split(",")
    if isinstance(value, Mapping):
        raise TypeError
    for item in (items := list(value)):
        if not isinstance(item, str):
            raise _WrongPartError(f"{item!r} is no text")
    return [item.strip() for item in items if item]


class ExemptPath(NamedTuple):
    """An item of REP_EXEMPT that exempts only the URLs with this beginning."""

    origin: Origin
    path: str

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


def _exempt_item(text: str) -> Origin | ExemptPath | str:
    """Return an item of REP_EXEMPT: an origin, an origin and a path, a host, or `*.` and a host."""
    if text.startswith("."):
        raise _WrongPartError(f"{text!r}: for subdomains write '*{text}'")
    is_origin, is_wildcard, host = "://" in text, text.startswith("*."), text.removeprefix("*.")
    url = text if is_origin else f"https://{host}"
    origin = Origin.of(url)
    path = urlsplit(url).path.removeprefix("/")
    # Refuse what would have no effect: another wildcard, a host with a port or a path but without a scheme.
    if origin is None or set(url) & set("@?#*$ ") or not (is_origin or (not path and origin.port is None)):
        raise _WrongPartError(f"{text!r} is not an origin (with a path or without), a host, or '*.' and a host")
    if path:
        return ExemptPath(origin, f"/{path}")
    return origin if is_origin else f"*.{origin.host}" if is_wildcard else origin.host


def _purposes(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_category, _texts(value))))


def _category(name: str) -> str:
    # Content-Signal spells `train-ai` as `ai-train`. The error for such a spelling names the right one.
    spellings = {text: one.name for one in VOCABULARY for text in (one.name, *(s[0] for s in one.spellings.values()))}
    if name in spellings.values():
        return name
    near = nearest(name.lower(), spellings)
    meant = f"; did you mean {spellings[near]!r}?" if near else ""
    raise _WrongPartError(f"{name!r} is no category of use{meant}")


def _path(*endings: str) -> Any:
    """Return a field for a setting that is the path of a file; None stands for no file."""

    def check(value: Any) -> str | None:
        if value is None or value == "":
            return None
        path = str(os.fspath(value))
        has_other_percents = "%" in re.sub(r"%%|%\((?:name|time)\)s", "", path)
        if not path.endswith(endings) or "://" in path or has_other_percents:
            raise ValueError
        return path

    cure = (
        f"a path that ends in {' or '.join(endings)}; in the path, %(name)s stands for the spider's name, %(time)s for"
        " the start of the crawl, and %% for a single %"
    )
    return _setting(None, check, cure)


def _status_policy(value: Any) -> tuple[StatusRow, ...]:
    if isinstance(value, str):
        if value in POLICIES:
            return POLICIES[value]
        if not value.startswith("{"):
            raise _WrongPartError("there is no such policy")
        value = _from_json(value, '{"403": "restricted", "520-529": "unavailable"}')
    if not isinstance(value, Mapping):
        raise TypeError
    results = {"base": "rfc9309", **value}
    for key, result in results.items():
        names = POLICIES if key == "base" else OVERRIDES
        if result not in names:
            raise _WrongPartError(f"{key!r}: {result!r} is none of {', '.join(map(repr, names))}")
    base = POLICIES[results.pop("base")]
    rows = [(_statuses(key), OVERRIDES[result], "REP_STATUS_POLICY") for key, result in results.items()]
    # If two ranges contain a status, the narrower range decides about it.
    return (*sorted(rows, key=lambda row: len(row[0])), *base)


def _statuses(key: Any) -> Sequence[int | str]:
    """Return the statuses that a key of REP_STATUS_POLICY stands for; `(key,)` for `challenge` and `markup`."""
    if key in SIGN_KEYS:
        return (key,)
    statuses = key
    if re.fullmatch(r"\d+(-\d+)?", str(key)):
        first, _, last = str(key).partition("-")
        statuses = range(int(first), int(last or first) + 1)
    is_range = isinstance(statuses, range) and statuses and statuses.step == 1
    if not is_range or not 100 <= statuses[0] <= statuses[-1] <= 999:
        signs = " or ".join(map(repr, SIGN_KEYS))
        raise _WrongPartError(f"{key!r} is not a status such as 403, a range such as '400-499', {signs}")
    for least, most, what in ((200, 200, "a success"), (300, 399, "a redirect")):
        if statuses[0] <= most and statuses[-1] >= least:
            raise _WrongPartError(f"{statuses[0]}-{statuses[-1]}: {what} cannot be overridden")
    return cast("range", statuses)


@dataclass(frozen=True, slots=True)
class RepSettings(Terms):
    """The checked values of all settings. `body_limit` is the value of REP_BODY_LIMIT, and so on."""

    status_policy: tuple[StatusRow, ...] = _setting(
        "rfc9309",
        _status_policy,
        f"one of {', '.join(map(repr, POLICIES))}, or a dict such as {{403: 'restricted', '520-529': 'unavailable'}}"
        f" (keys: statuses, ranges, {' and '.join(map(repr, SIGN_KEYS))}; values: {', '.join(map(repr, OVERRIDES))};"
        " the key 'base' has the name of the policy that decides about the rest)",
    )
    storage: str = _setting(
        "memory:",
        _address,
        "an address: 'memory:', 'sqlite:NAME', 'redis://host:port/db' or one with a scheme of REP_STORAGES",
    )
    """The address of the storage. Its scheme says which storage class is used."""
    storages: Mapping[str, Any] = _setting(
        {}, _classes, "a dict from schemes, such as 'own', to storage classes or their import paths"
    )
    """Scheme -> storage class or its import path. None removes a built-in scheme."""
    memory_octets: int = _number(64 * 2**20, "bytes", OCTETS_OF_ORIGIN)
    lifetime_min: float = _number(3_600.0, "seconds", at_most=MAX_LIFETIME)
    unreachable_days: float = _number(30.0, "days", 1, 3_650)  # RFC 9309 2.3.1.4: "for example, 30 days"
    body_limit: int = _number(PARSING_LIMIT, "bytes", PARSING_LIMIT, MAX_BODY)
    max_redirects: int = _number(LEAST_REDIRECTS, "redirects", LEAST_REDIRECTS)
    fetch_timeout: float = _number(30.0, "seconds", math.ulp(0.0), bounds=" above 0")
    """The time limit of each request for a robots.txt, in seconds. If it is not set, a shorter DOWNLOAD_TIMEOUT
    replaces the default. The time begins when the download handler gets the request."""
    fetch_retries: int = _number(1, "retries", 0)
    fetch_concurrency: int = _number(64, "fetches", 0)
    """The requests for robots.txt that come on top of CONCURRENT_REQUESTS. If it is 0, CONCURRENT_REQUESTS holds for
    pages and robots.txt together. If it is not set, it is 0 in a project that sets CONCURRENT_REQUESTS. It is never 0
    while CONCURRENT_REQUESTS is 0 (no limit)."""
    waiting_max: int = _number(1_000, "requests", 0)
    unreachable_wait: float = _number(30.0, "seconds")
    """Seconds that requests wait for an unreachable robots.txt, counted from the start of its first fetch."""
    redirect_private: bool = _switch()
    dry_run: bool = _switch()
    exempt: frozenset[Origin | ExemptPath | str] = _setting(
        [],
        lambda value: frozenset(map(_exempt_item, _texts(value))),
        "a list of origins such as 'https://example.com:8443', origins with a path such as 'https://example.com/files/',"
        " hosts such as 'example.com', and '*.example.com' for the subdomains of a host",
    )
    """Origins, beginnings of URLs, hosts as `Origin.host` spells them, and such hosts with `*.` before them."""
    crawl_delay_max: float = _number(0.0, "seconds")
    """The longest Crawl-delay that is obeyed, in seconds; 0 obeys none."""
    bypassed: Literal["count", "drop"] = _setting(
        "count", {"count": "count", "drop": "drop"}.__getitem__, "'count' or 'drop'"
    )
    purposes: tuple[str, ...] = _setting(
        [], _purposes, f"a list of some of {', '.join(repr(category.name) for category in VOCABULARY)}"
    )
    """The names of categories of use, without duplicates."""
    purposes_refuse: bool = _switch()
    report: str | None = _path(".jsonl", ".html")
    archive: str | None = _path(".warc.gz")
    """A unique part is added to the file's name."""
    refusals: str | None = _path(".jsonl", ".jsonl.gz")
    evidence: bool = _switch()

    @property
    def memory_origins(self) -> int:
        """The largest number of origins that the crawl remembers, for example in the cache and for the log; never 0."""
        return self.memory_octets // OCTETS_OF_ORIGIN

    @classmethod
    def read(cls, settings: BaseSettings, spider: object = None) -> "RepSettings":
        """Return the checked values. Raises ValueError for a wrong value, with the setting, the value and the cure."""
        checked = {name: _checked(name, settings.get(name), setting) for name, setting in SETTINGS.items()}
        values = {name.removeprefix("REP_").lower(): value for name, value in checked.items()}
        if not settings.getint("CONCURRENT_REQUESTS"):
            values["fetch_concurrency"] = values["fetch_concurrency"] or SETTINGS["REP_FETCH_CONCURRENCY"].default
        elif "REP_FETCH_CONCURRENCY" not in settings and settings.getpriority("CONCURRENT_REQUESTS"):
            values["fetch_concurrency"] = 0
        # Scrapy's DownloadTimeoutMiddleware reads this attribute, too. 0: no limit.
        own = getattr(spider, "download_timeout", None)
        name = "the spider's download_timeout" if own else "DOWNLOAD_TIMEOUT"
        timeout = _checked(name, own or settings[name], Setting(0.0, float, "a number of seconds"))
        if "REP_FETCH_TIMEOUT" not in settings and timeout > 0:
            values["fetch_timeout"] = min(values["fetch_timeout"], timeout)
        return cls(**values)


SETTINGS: Mapping[str, Setting] = {
    f"REP_{field.name.upper()}": field.metadata["setting"] for field in fields(RepSettings)
}
"""All settings by their names, such as `REP_STORAGE`."""

FILES = sorted(name for name, setting in SETTINGS.items() if setting.default is None)
"""The names of the settings whose value is the path of a file that the crawl writes, or None (the default)."""


def _checked(name: str, value: Any, setting: Setting) -> Any:
    """Return the checked value, or the default for None."""
    try:
        return setting.check(setting.default if value is None else value)
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError) as exc:
        wrong_part = f" ({exc})" if isinstance(exc, _WrongPartError) else ""
        raise ValueError(f"{name} is {value!r}{wrong_part}; set it to {setting.cure}") from None


def is_obeying(settings: BaseSettings) -> bool:
    """Return ROBOTSTXT_OBEY as a bool. Its ValueError for a wrong value names the setting, unlike that of `getbool`."""
    try:
        return settings.getbool("ROBOTSTXT_OBEY")
    except ValueError:
        raise ValueError(f"ROBOTSTXT_OBEY is {settings['ROBOTSTXT_OBEY']!r}; set it to True or False") from None


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like a misspelt name; None if no name is similar."""
    from difflib import get_close_matches  # only mistakes need it  # noqa: PLC0415

    return next(iter(get_close_matches(name, names, n=1, cutoff=0.75)), None)
