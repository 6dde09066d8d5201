"""The other readings of URLs with dot segments (RFC 3986 section 5.2.4)."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.dot_segments import other_readings

READINGS = {
    "/x/../private": ["/private"],
    "/x/%2e%2e/private": ["/private"],
    "/x/%2E./private?a=/../b#/../c": ["/private?a=/../b#/../c"],
    "/./a": ["/a"],
    "/../../a": ["/a"],
    "/a//../b": ["/a/b"],
    "/a/b/c/./../../g": ["/a/g"],
    "/a/b/..": ["/a/", "/a"],
    "/a/.": ["/a/", "/a"],
    "/a/%2e?x": ["/a/?x", "/a?x"],
    "/..": ["/"],
    # None of these has a dot segment.
    "/": [],
    "": [],
    "?x": [],
    "/.well-known/x": [],
    "/...": [],
    "/..;/x": [],
    "/%2f..": [],
    "/..%2fx": [],
    "/%252e/x": [],
    "/a?b=/../c": [],
    "/a#/../c": [],
}


@pytest.mark.parametrize("before", ["", "http://example.com", "//user@example.com:8080"])
@pytest.mark.parametrize(("url", "readings"), READINGS.items(), ids=READINGS)
def test_readings(before: str, url: str, readings: list[str]) -> None:
    assert other_readings(before + url) == tuple(before + reading for reading in readings)


def test_many_dot_segments_take_linear_time() -> None:
    assert other_readings("/x/.." * 500_000 + "/y") == ("/y",)
