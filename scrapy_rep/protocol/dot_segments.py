"""Dot segments in a URL's path, and how servers and download handlers remove them (RFC 3986 5.2.4)."""

from __future__ import annotations

import re

_BEFORE_PATH = r"(?:[^:/?#]*:)?//[^/?#]*"
_PARTS = re.compile(rf"({_BEFORE_PATH})?([^?#]*)(.*)", re.DOTALL)
_DOT = re.compile("%2e", re.IGNORECASE)
_DOTS = {".", ".."}


def other_readings(url: str) -> tuple[str, ...]:
    """Return the URL's other forms, without dot segments. Nearly all URLs have no other form.

    `/a/../b` is read as `/b`. A path that ends in a dot segment has two readings: `/a/b/..` is read as `/a/` by most
    programs, and as `/a` by httpx.
    """
    if "/." not in url and "/%2" not in url:  # a fast check that is enough for nearly all URLs
        return ()
    before, path, rest = _PARTS.match(url).groups(default="")  # type: ignore[union-attr]  # it matches anything
    segments = [(_DOT.sub(".", segment) if len(segment) <= 6 else segment, segment) for segment in path.split("/")[1:]]
    kept: list[str] = []
    for plain, segment in segments:
        if plain not in _DOTS:
            kept.append(segment)
        elif plain == "..":
            del kept[-1:]
    if len(kept) == len(segments):
        return ()
    resolved = f"{before}/{'/'.join(kept)}"
    if segments[-1][0] in _DOTS and kept:
        return f"{resolved}/{rest}", f"{resolved}{rest}"
    return (f"{resolved}{rest}",)
