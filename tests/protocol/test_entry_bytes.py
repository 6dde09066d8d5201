"""Entries are read back from their versioned bytes unchanged. All other bytes are read as None."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import (
    VERSION,
    Entry,
    StoredResponse,
    entry_from_bytes,
    entry_to_bytes,
    latest,
    plain_values,
    without_backoff,
)
from scrapy_rep.protocol.freshness import Caching
from scrapy_rep.protocol.outage import BACKOFF_MAX, Outage
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt

URL = "https://example.com/robots.txt"
CACHING = Caching(max_age=60.0, expires=5.0, date=1.0, age=2.0, no_cache=True)
OUTAGE = Outage(Answer(URL, 503, reason="HTTP 503", ended_at=2.0), since=1.0, failures=2, fetch_again_at=7.5)

octets = st.binary(max_size=300)
robots = st.builds(
    RobotsTxt.parse,
    octets
    | st.builds(
        lambda mark, body: mark + body, st.sampled_from([b"\xef\xbb\xbf" * 2, b"\xef\xbb\xbf\xff\xfe"]), octets
    ),
)
times = st.floats(0, 2e9)
copies = st.builds(
    lambda answer, robots, **more: StoredResponse(
        answer if robots is None else replace(answer, access=AccessResult.SUCCESS), robots=robots, **more
    ),
    answer=st.builds(
        Answer,
        url=st.text(max_size=20),
        status=st.none() | st.integers(100, 599),
        access=st.sampled_from([AccessResult.UNAVAILABLE, AccessResult.RESTRICTED]),
        reason=st.text(max_size=20),
        caching=st.sampled_from([CACHING, Caching()]),
        replayed=st.booleans(),
    ),
    robots=st.none() | robots,
    received_at=times,
    fresh_until=times,
    forbids_stale=st.booleans(),
    forbids_store=st.booleans(),
)
outages = st.builds(
    lambda answer, pause, **more: Outage(answer, fetch_again_at=answer.ended_at + pause, **more),
    answer=st.builds(
        Answer,
        url=st.text(max_size=20),
        status=st.none() | st.just(503),
        reason=st.text(max_size=20),
        timed_out=st.booleans(),
        ended_at=times,
    ),
    pause=st.floats(0, BACKOFF_MAX - 1),
    since=times,
    failures=st.integers(1, 1000),
)


@given(st.none() | copies, st.none() | outages)
def test_an_entry_with_answer_or_outage_is_read_back(stored: StoredResponse | None, outage: Outage | None) -> None:
    entry = Entry(URL, stored, outage)
    if stored is None and outage is None:
        assert entry_from_bytes(entry_to_bytes(entry), URL) is None
    else:
        assert entry_from_bytes(entry_to_bytes(entry), URL) == entry


def entry_of(body: bytes) -> Entry:
    parsed = RobotsTxt.parse(body)
    answer = Answer(URL, 200, AccessResult.SUCCESS, "HTTP 200", caching=CACHING)
    return Entry(URL, StoredResponse(answer, 1.0, 2.0, parsed), OUTAGE)


ENTRY = entry_of(b"User-agent: *\nDisallow: /x\n")


def test_rules_beyond_the_limit_are_still_beyond_it() -> None:
    entry = entry_of(b"User-agent: *\nDisallow: /x\n" * 20_000)
    assert entry.stored is not None
    assert entry.stored.robots is not None
    assert entry.stored.robots.truncated
    assert entry_from_bytes(entry_to_bytes(entry), URL) == entry


def test_a_file_from_a_browser_is_still_one() -> None:
    entry = entry_of(b"<html><head></head><body><pre>User-agent: *\nDisallow: /x\n</pre></body></html>")
    assert entry.stored is not None
    assert entry.stored.robots is not None
    assert entry.stored.robots.from_browser
    assert entry_from_bytes(entry_to_bytes(entry), URL) == entry


def test_a_larger_limit_is_read_with_that_limit() -> None:
    parsed = RobotsTxt.parse(b"#" * 3_000_000, 4_000_000)
    entry = Entry(URL, StoredResponse(Answer(URL, 200, AccessResult.SUCCESS), 1.0, 2.0, parsed))
    assert entry_from_bytes(entry_to_bytes(entry), URL, 4_000_000) == entry
    assert entry_from_bytes(entry_to_bytes(entry), URL) is None


def test_a_file_in_utf_16_that_is_longer_in_utf_8_is_read_back() -> None:
    entry = entry_of(("User-agent: *\nDisallow: /x\n#" + "€" * 250_000).encode("utf-16"))
    assert entry.stored is not None
    assert entry.stored.robots is not None
    assert not entry.stored.robots.truncated
    assert entry_from_bytes(entry_to_bytes(entry), URL) == entry


def test_a_typical_entry_is_small() -> None:
    body = "User-agent: *\n" + "".join(f"Disallow: /section-{n}/{n * 7919 % 1000}/\n" for n in range(60))
    assert len(body) > 1_500
    assert len(entry_to_bytes(entry_of(body.encode()))) < 1_000


def forged(header: object, body: bytes = b"") -> bytes:
    return VERSION + zlib.compress(json.dumps(header).encode() + b"\n" + body)


def stored_with(**values: object) -> dict[str, object]:
    """The plain values of an answer without rules, some of them changed."""
    entry = Entry(URL, StoredResponse(Answer(URL, 404, AccessResult.UNAVAILABLE), 1.0, 2.0))
    return {"stored": {**plain_values(entry)["stored"], **values}}


ANSWER = {"url": URL, "ended_at": 2.0}
OUTAGE_FIELDS = {"answer": ANSWER, "since": 1.0, "failures": 2, "fetch_again_at": 7.5}


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(VERSION, id="a-version-alone"),
        pytest.param(b"\x00" + entry_to_bytes(ENTRY)[1:], id="another-version"),
        pytest.param(b"\xff" + entry_to_bytes(ENTRY)[1:], id="a-later-version"),
        pytest.param(entry_to_bytes(ENTRY)[:-1], id="torn"),
        pytest.param(entry_to_bytes(ENTRY)[: len(entry_to_bytes(ENTRY)) // 2], id="torn-in-the-middle"),
        pytest.param(entry_to_bytes(ENTRY) + b"x", id="something-after-it"),
        pytest.param(VERSION + b"\x80\x04]\x94.", id="a-pickle"),
        pytest.param(forged([]), id="a-list"),
        pytest.param(forged({}), id="nothing-said"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "since": "x"}}), id="no-number"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "since": float("nan")}}), id="not-a-number"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "since": 1e15}}), id="a-time-out-of-range"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "since": -1.0}}), id="a-time-before-1970"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "fetch_again_at": float("inf")}}), id="the-end-of-time"),
        pytest.param(
            forged({"outage": {**OUTAGE_FIELDS, "answer": {**ANSWER, "ended_at": 10**400}}}),
            id="a-number-that-no-float-is",
        ),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "fetch_again_at": 3_603.0}}), id="a-backoff-beyond-an-hour"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "failures": 10**400}}), id="more-failures-than-seconds"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "failures": True}}), id="a-boolean-for-a-number"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "more": 1}}), id="a-field-that-is-not-there"),
        pytest.param(forged({"outage": {"since": 1.0}}), id="a-field-missing"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "answer": {}}}), id="an-answer-without-a-url"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "answer": {"url": 1}}}), id="a-number-for-a-text"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "answer": {"url": URL, "sign": "x"}}}), id="an-unknown-sign"),
        pytest.param(forged({"outage": {**OUTAGE_FIELDS, "answer": {"url": URL, "error": "x"}}}), id="an-exception"),
        pytest.param(forged(stored_with(answer={"url": URL, "access": "success"})), id="a-success-without-rules"),
        pytest.param(forged(stored_with(robots={})), id="rules-without-a-success"),
        pytest.param(forged(stored_with(answer={"url": URL, "access": "x"})), id="an-unknown-result"),
        pytest.param(forged(stored_with(sha256="abc")), id="a-hash-of-another-length"),
        pytest.param(VERSION + zlib.compress(b"[" * 100_000), id="nested-without-end"),
    ],
)
def test_bytes_that_are_no_entry_are_a_miss(octets: bytes) -> None:
    assert entry_from_bytes(octets, URL) is None


def test_a_bomb_is_a_miss() -> None:
    assert entry_from_bytes(VERSION + zlib.compress(bytes(50_000_000), 1), URL) is None


def test_forged_bytes_are_read_if_their_values_are_right() -> None:
    assert entry_from_bytes(forged({"outage": OUTAGE_FIELDS}), URL) == Entry(
        URL, None, replace(OUTAGE, answer=Answer(URL, ended_at=2.0))
    )


def test_a_hash_is_kept() -> None:
    assert ENTRY.stored is not None
    entry = replace(ENTRY, stored=replace(ENTRY.stored, sha256="0" * 64))
    assert entry_from_bytes(entry_to_bytes(entry), URL) == entry


def test_an_exception_is_not_stored() -> None:
    entry = Entry(URL, None, replace(OUTAGE, answer=replace(OUTAGE.answer, error=OSError("reset"))))
    read = entry_from_bytes(entry_to_bytes(entry), URL)
    assert read == entry, "comparisons leave it out"
    assert read.last.error is None


@given(st.integers(0, len(entry_to_bytes(ENTRY)) - 1), st.integers(1, 255))
def test_no_octet_can_change_unnoticed(position: int, change: int) -> None:
    octets = bytearray(entry_to_bytes(ENTRY))
    octets[position] ^= change
    assert entry_from_bytes(bytes(octets), URL) in (None, ENTRY)


@given(st.binary(max_size=100))
def test_reading_never_raises(octets: bytes) -> None:
    assert entry_from_bytes(octets, URL) is None
    assert entry_from_bytes(VERSION + octets, URL) is None


def test_an_outage_without_its_backoff_keeps_its_times() -> None:
    entry = without_backoff(Entry(URL, outage=replace(OUTAGE, since=0.5, failures=7)))
    read = entry_from_bytes(entry_to_bytes(entry), URL)
    assert read == entry
    assert read.outage == replace(OUTAGE, since=0.5, failures=0, fetch_again_at=0.0)


def test_an_outage_keeps_the_answer_from_before_it_whichever_crawl_has_it() -> None:
    assert ENTRY.stored is not None
    rules, outage = Entry(URL, ENTRY.stored), Entry(URL, outage=replace(OUTAGE, answer=Answer(URL, ended_at=9e9)))
    both = Entry(URL, ENTRY.stored, outage.outage)
    assert latest(rules, outage) == latest(outage, rules) == both
    own = Entry(URL, outage=OUTAGE)
    assert latest(own, without_backoff(replace(outage, stored=ENTRY.stored))) == Entry(URL, ENTRY.stored, OUTAGE)
    assert latest(rules, without_backoff(outage)) == without_backoff(both), "no outage of this crawl replaces it"


def test_of_two_fetched_answers_the_later_one_counts() -> None:
    assert ENTRY.stored is not None
    earlier, later = (Entry(URL, replace(ENTRY.stored, received_at=at)) for at in (1.0, 2.0))
    assert latest(earlier, later) == latest(later, earlier) == later


def test_an_outage_without_an_answer_before_it_may_be_shared() -> None:
    entry = Entry(URL, outage=OUTAGE)
    assert entry.storable == entry


def test_an_own_outage_with_its_backoff_counts_more_than_a_stored_one_without() -> None:
    own, later = Entry(URL, outage=OUTAGE), Entry(URL, outage=replace(OUTAGE, answer=Answer(URL, ended_at=3.0)))
    assert latest(own, without_backoff(later)) == own
    assert latest(own, later) == later
    assert latest(None, later) == later
    assert latest(own, None) == own


def test_a_stored_answer_counts_more_than_a_replay() -> None:
    assert ENTRY.stored is not None
    replayed = replace(ENTRY.stored, answer=replace(ENTRY.stored.answer, replayed=True), received_at=9.0)
    own, stored = Entry(URL, replayed), Entry(URL, ENTRY.stored)
    assert latest(own, stored) == stored
    assert latest(own, None) == own
    assert latest(replace(own, outage=OUTAGE), stored) == stored
    outage = Entry(URL, outage=replace(OUTAGE, answer=Answer(URL, ended_at=20.0)))
    assert latest(own, outage) == replace(outage, stored=replayed)
