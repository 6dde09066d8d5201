"""For how long an answer may be used (RFC 9111 sections 4.2, 5.1, 5.2 and 5.3), from its header fields on."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from scrapy.http import Headers

from scrapy_rep.fetching.headers import cache_control, caching_of, delta_seconds, http_date, lines_of
from scrapy_rep.protocol.freshness import (
    MAX_LIFETIME,
    Caching,
    fresh_until,
    freshness_lifetime,
    initial_age,
    refresh_from,
)

NOW = 1_700_000_000.0
DATE = "Tue, 14 Nov 2023 22:13:20 GMT"  # NOW
HOUR, DAY = 3600.0, 24 * 3600.0


def headers(*fields: tuple[str, str]) -> Headers:
    result = Headers()
    for name, value in fields:
        result.appendlist(name, value)
    return result


def fresh_for(*fields: tuple[str, str], least: float = 0.0) -> float:
    return fresh_until(caching_of(lines_of(headers(*fields))), NOW, least) - NOW


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        pytest.param([], DAY, id="4.2.1-nothing-said"),
        pytest.param([("Date", DATE)], DAY, id="4.2.1-a-date-alone-says-nothing"),
        pytest.param([("Cache-Control", "max-age=7200")], 2 * HOUR, id="5.2.2.1-max-age"),
        pytest.param([("Cache-Control", "MAX-AGE=7200")], 2 * HOUR, id="5.2-without-case"),
        pytest.param([("Cache-Control", 'max-age="7200"')], 2 * HOUR, id="5.2-quoted"),
        pytest.param([("Cache-Control", "public, max-age=7200")], 2 * HOUR, id="5.2-a-list"),
        pytest.param([("Cache-Control", 'x="a, max-age=1", max-age=7200')], 2 * HOUR, id="5.2-a-comma-within-quotes"),
        pytest.param([("Cache-Control", 'x="\\", max-age=1", max-age=7200')], 2 * HOUR, id="5.2-a-quote-within-quotes"),
        pytest.param([("Cache-Control", "public"), ("Cache-Control", "max-age=7200")], 2 * HOUR, id="5.2-two-lines"),
        pytest.param([("Cache-Control", "max-age=7200, max-age=1")], 2 * HOUR, id="4.2.1-the-first-of-two"),
        pytest.param([("Cache-Control", "max-age=0")], 0.0, id="5.2.2.1-stale-at-once"),
        pytest.param([("Cache-Control", "max-age=-5")], 0.0, id="4.2.1-invalid-is-stale"),
        pytest.param([("Cache-Control", "max-age=soon")], 0.0, id="4.2.1-no-number-is-stale"),
        pytest.param([("Cache-Control", "max-age")], 0.0, id="4.2.1-no-argument-is-stale"),
        pytest.param([("Cache-Control", "max-age=99999999999999999999")], DAY, id="1.2.2-a-number-without-end"),
        pytest.param([("Cache-Control", "s-maxage=60")], DAY, id="5.2.2.10-for-shared-caches-alone"),
        pytest.param([("Cache-Control", "private")], DAY, id="5.2.2.7-a-crawler-is-a-private-cache"),
        pytest.param([("Cache-Control", "max-age=9, no-cache")], 0.0, id="4.2.1-the-most-restrictive"),
        pytest.param([("Cache-Control", 'no-cache="Set-Cookie"')], DAY, id="5.2.2.4-of-one-field-alone"),
        pytest.param([("Cache-Control", "max-age=3600"), ("Expires", DATE)], HOUR, id="5.3-max-age-beats-expires"),
        pytest.param(
            [("Date", DATE), ("Expires", "Wed, 15 Nov 2023 00:13:20 GMT")], 2 * HOUR, id="5.3-expires-minus-date"
        ),
        pytest.param([("Expires", "Wed, 15 Nov 2023 00:13:20 GMT")], 2 * HOUR, id="5.3-expires-without-date"),
        pytest.param([("Date", DATE), ("Expires", "0")], 0.0, id="5.3-no-date-is-the-past"),
        pytest.param([("Date", DATE), ("Expires", "-1")], 0.0, id="5.3-a-number-is-the-past"),
        pytest.param([("Date", DATE), ("Expires", "")], 0.0, id="5.3-empty-is-the-past"),
        pytest.param([("Cache-Control", "max-age=7200"), ("Age", "3600")], HOUR, id="4.2.3-age"),
        pytest.param([("Cache-Control", "max-age=7200"), ("Age", "-1")], 2 * HOUR, id="5.1-invalid-is-ignored"),
        pytest.param([("Cache-Control", "max-age=7200"), ("Age", "60"), ("Age", "600")], 7140.0, id="5.1-the-first"),
        pytest.param([("Age", "3600")], 23 * HOUR, id="4.2.3-age-of-a-silent-answer"),
        pytest.param(
            [("Cache-Control", "max-age=7200"), ("Date", "Tue, 14 Nov 2023 21:13:20 GMT")], HOUR, id="4.2.3-date"
        ),
        pytest.param(
            [("Cache-Control", "max-age=7200"), ("Date", "Tue, 14 Nov 2023 21:13:20 GMT"), ("Age", "60")],
            HOUR,
            id="4.2.3-the-older-of-the-two",
        ),
        pytest.param(
            [("Cache-Control", "max-age=7200"), ("Date", "Wed, 15 Nov 2023 22:13:20 GMT")],
            2 * HOUR,
            id="4.2.3-a-date-to-come",
        ),
        pytest.param([("Cache-Control", "max-age=604800")], DAY, id="RFC9309-2.4-no-more-than-24-hours"),
    ],
)
def test_how_long_an_answer_is_fresh(fields: list[tuple[str, str]], seconds: float) -> None:
    assert fresh_for(*fields) == seconds


@pytest.mark.parametrize("said", ["no-store", "no-cache", "max-age=0", "max-age=60", "no-store, no-cache, max-age=0"])
def test_never_asked_for_more_often_than_the_least_lifetime(said: str) -> None:
    assert fresh_for(("Cache-Control", said), least=HOUR) == HOUR
    assert fresh_for(("Cache-Control", said), ("Age", "100000"), least=HOUR) == HOUR
    assert fresh_for(("Cache-Control", said), least=DAY) == DAY


def test_4_2_3_the_time_on_the_wire_counts_for_what_a_cache_has_held() -> None:
    assert initial_age(Caching(age=60.0), NOW, response_delay=2.0) == 62.0
    assert initial_age(Caching(date=NOW - 100), NOW, response_delay=2.0) == 100.0
    assert fresh_until(Caching(max_age=100.0), NOW, 0.0, response_delay=2.0) == NOW + 98


caching = st.builds(
    Caching,
    max_age=st.none() | st.floats(0, 2**31),
    expires=st.none() | st.floats(0, 2**40),
    date=st.none() | st.floats(0, 2**40),
    age=st.floats(0, 2**31),
    no_cache=st.booleans(),
    no_store=st.booleans(),
)


@given(caching, st.floats(0, 2**40), st.floats(0, DAY))
def test_a_lifetime_is_between_the_least_one_and_one_day(said: Caching, received_at: float, least: float) -> None:
    until = fresh_until(said, received_at, least)
    assert received_at + least <= until <= received_at + MAX_LIFETIME
    assert freshness_lifetime(said, received_at) >= 0
    assert received_at <= refresh_from(received_at, until) <= until


def test_the_last_tenth_is_for_refreshing() -> None:
    assert refresh_from(NOW, NOW + 100) == NOW + 90


@pytest.mark.parametrize(
    ("said", "stale", "store"),
    [
        pytest.param("max-age=60", True, True, id="nothing-forbidden"),
        pytest.param("no-cache", False, True, id="5.2.2.4-no-cache"),
        pytest.param("must-revalidate", False, True, id="5.2.2.2-must-revalidate"),
        pytest.param("Must-Revalidate, max-age=60", False, True, id="5.2-without-case"),
        pytest.param("no-store", True, False, id="5.2.2.5-no-store"),
        pytest.param('x="no-store, must-revalidate"', True, True, id="5.2-within-quotes-it-is-no-directive"),
        pytest.param("proxy-revalidate", True, True, id="5.2.2.8-for-shared-caches-alone"),
    ],
)
def test_4_2_4_what_may_be_stale_and_what_may_be_stored(said: str, stale: bool, store: bool) -> None:
    result = caching_of(lines_of(headers(("Cache-Control", said))))
    assert (not (result.no_cache or result.must_revalidate), not result.no_store) == (stale, store)


@pytest.mark.parametrize(
    "date",
    [
        pytest.param("Sun, 06 Nov 1994 08:49:37 GMT", id="RFC9110-5.6.7-IMF-fixdate"),
        pytest.param("Sunday, 06-Nov-94 08:49:37 GMT", id="RFC9110-5.6.7-RFC-850"),
        pytest.param("Sun Nov  6 08:49:37 1994", id="RFC9110-5.6.7-asctime"),
    ],
)
def test_the_three_formats_of_a_date(date: str) -> None:
    assert http_date(date) == 784_111_777.0


def test_a_date_before_1970_is_the_first_second_of_1970() -> None:
    # Entries of a store have no negative numbers.
    assert http_date("Thu, 01 Jan 1960 00:00:00 GMT") == 0.0


@pytest.mark.parametrize(
    "date", ["", "0", "tomorrow", "Sun, 31 Feb 2021 10:00:00 GMT", "Thu, 01 Jan 99999 00:00:00 GMT"]
)
def test_a_text_that_is_no_date_is_read_as_none(date: str) -> None:
    assert http_date(date) is None


@given(st.dictionaries(st.sampled_from(["Cache-Control", "Expires", "Date", "Age"]), st.binary(max_size=200)))
def test_reading_never_raises(fields: dict[str, bytes]) -> None:
    until = fresh_until(caching_of(lines_of(Headers(fields))), NOW, HOUR)
    assert NOW + HOUR <= until <= NOW + DAY


@given(st.text(max_size=100))
def test_the_grammar_is_read_without_a_raise(text: str) -> None:
    cache_control(text)
    seconds = delta_seconds(text)
    assert seconds is None or 0 <= seconds <= 2**31
