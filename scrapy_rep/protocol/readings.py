"""The other ways to read a URL: what download handlers send instead of it, what servers make of it."""

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import unquote, urlparse, urlsplit, urlunparse

from scrapy_rep.protocol.robotstxt.rules import Verdict

_TARGET = re.compile(r"((?:[^:/?#]*:)?//[^/?#]*)?([^#]*)")
_DOT = re.compile("%2e", re.IGNORECASE)
_WHITE_SPACE = " \t\n\r\v\f"


def strictest(url: str, verdict_on: Callable[[str], Verdict]) -> Verdict:
    """Return the first verdict that refuses the URL: as it is written, or as it can be read (`Verdict.read_as`). If no
    verdict refuses it, return the verdict on the URL as it is written."""
    verdict = verdict_on(url)
    for reading in other_readings(url) if verdict.allowed else ():
        other = verdict_on(reading)
        if not other.allowed:
            return replace(other, read_as=reading)
    return verdict


def other_readings(url: str) -> tuple[str, ...]:
    """Return the URL's other forms, without a fragment. Nearly all URLs have no other form.

    Servers read `/a/../b;c` as `/b;c`. Scrapy's H2 handler sends `/a/../b` for it, which servers read as `/b`.
    """
    if _is_plain(url):
        return ()
    before, target = _TARGET.match(url).groups(default="")  # type: ignore[union-attr]  # it matches anything
    if not target.startswith("/"):  # `https://example.com?a`
        target = f"/{target}"
    file = (_as_file(target),) if before[:4].lower() == "ftp:" else ()
    sent = dict.fromkeys((target, *_as_sent(target), *file))
    readings = dict.fromkeys(reading for each in sent for reading in (each, *_without_dot_segments(each)))
    return tuple(f"{before}{reading}" for reading in readings if reading != target)


def _is_plain(url: str) -> bool:
    """Whether a fast check is enough, as for nearly all URLs: the URL has no other reading."""
    return not (
        ";" in url
        or "/." in url
        or "/%2" in url
        or url.find("//", 7) >= 0  # after the scheme; `_as_sent` changes only an empty first segment
        or url[-1:] == "?"
        or "?#" in url
        or url[:1] in "fF"  # ftp
        or " " in url
        or not url.isprintable()
    )


def _as_sent(target: str) -> tuple[str, ...]:
    """Return what Scrapy's handlers send for a path and query. Any of these forms may be equal to `target`.

    All handlers but httpx use these functions of the standard library, which drop TAB, CR, LF and an empty query.
    """
    parts = urlparse(f"http://host{target}")
    query = parts.query and f"?{parts.query}"
    return (
        # Twisted: `/a;` becomes `/a`. From Python 3.13 on, `//a` becomes `////a`.
        urlunparse(("", "", *urlparse(parts.geturl().strip(_WHITE_SPACE))[2:5], "")),
        # Scrapy's handler for HTTP/2: `/a;b` becomes `/a`.
        f"{parts.path}{query}".strip(_WHITE_SPACE),
        # aiohttp, with `verbatim_url`
        urlsplit(f"http://host{target}").geturl().removeprefix("http://host"),
    )


def _as_file(target: str) -> str:
    """Return the path that Scrapy's FTP handler asks for, as a path of a URL: unquoted, without parameters and query.

    FTP servers read `//` as `/`.
    """
    path = unquote(urlparse(f"ftp://host{target}").path)
    return re.sub("/+", "/", path.replace("%", "%25").replace("#", "%23"))


def _without_dot_segments(target: str) -> tuple[str, ...]:
    """Return the path and query without dot segments (RFC 3986 5.2.4). Without a dot segment, the result is empty.

    httpx differs from most programs: it does not read `/%2e` as `/.`, and it reads `/a/b/..` as `/a`, not as `/a/`.
    """
    path, mark, query = target.partition("?")
    if "/." not in path and "/%2" not in path:
        return ()
    segments = path.split("/")[1:]
    as_dots = [_DOT.sub(".", segment) if len(segment) <= 6 else segment for segment in segments]
    return tuple(
        f"{resolved}{mark}{query}"
        for plain in ((as_dots, segments) if as_dots != segments else (segments,))
        for resolved in _resolved(plain, segments)
    )


def _resolved(plain: list[str], segments: list[str]) -> tuple[str, ...]:
    """Return the path of these segments without those that are `.` and `..` in `plain`."""
    kept: list[str] = []
    for dots, segment in zip(plain, segments, strict=True):
        if dots not in {".", ".."}:
            kept.append(segment)
        elif dots == "..":
            del kept[-1:]
    if len(kept) == len(segments):
        return ()
    resolved = f"/{'/'.join(kept)}"
    return (f"{resolved}/", resolved) if plain[-1] in {".", ".."} and kept else (resolved,)
