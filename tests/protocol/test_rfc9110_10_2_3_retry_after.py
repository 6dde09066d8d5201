"""Retry-After: seconds, or a date in any of HTTP's three formats (RFC 9110 sections 10.2.3 and 5.6.7)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from scrapy.http import Headers

from scrapy_rep.fetching.headers import MAX_DELTA_SECONDS, lines_of, retry_after

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/New_York"], autouse=True)
def timezone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """None of it depends on where the crawler runs."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("120", 120.0, id="10.2.3-seconds"),
        pytest.param("0", 0.0, id="10.2.3-at-once"),
        pytest.param(" 120\t", 120.0, id="5.5-white-space"),
        pytest.param("Sun, 06 Nov 1994 08:51:37 GMT", 120.0, id="5.6.7-imf-fixdate"),
        pytest.param("Sunday, 06-Nov-94 08:51:37 GMT", 120.0, id="5.6.7-rfc850"),
        pytest.param("Sun Nov  6 08:51:37 1994", 120.0, id="5.6.7-asctime"),
        pytest.param("Sun Nov  6 08:47:37 1994", 0.0, id="5.6.7-a-date-in-the-past"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", MAX_DELTA_SECONDS, id="bounded-date"),
        pytest.param("9" * 400, MAX_DELTA_SECONDS, id="bounded-seconds"),
        pytest.param("9" * 100_000, MAX_DELTA_SECONDS, id="bounded-length"),
        pytest.param("1.5", 0.0, id="10.2.3-no-fractions"),
        pytest.param("-5", 0.0, id="10.2.3-no-sign"),
        pytest.param("\u00b2", 0.0, id="10.2.3-ascii-digits-only"),
        pytest.param("soon", 0.0, id="10.2.3-words"),
        pytest.param("", 0.0, id="10.2.3-empty"),
        pytest.param("Sun, 31 Feb 1994 08:51:37 GMT", 0.0, id="5.6.7-no-such-day"),
        pytest.param("Sun, 06 Nov 99999999 08:51:37 GMT", 0.0, id="5.6.7-no-such-year"),
    ],
)
def test_retry_after(value: str, seconds: float) -> None:
    assert retry_after(lines_of(Headers({"Retry-After": value.encode("latin-1")})), NOW) == seconds


def test_there_is_none() -> None:
    assert retry_after(lines_of(Headers()), NOW) == 0.0


def test_the_first_of_several_lines_counts() -> None:
    assert retry_after(lines_of(Headers({"Retry-After": ["5", "7"]})), NOW) == 5.0
