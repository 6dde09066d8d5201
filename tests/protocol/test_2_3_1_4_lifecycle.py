"""An outage: how long it lasts, when robots.txt is asked for again, who waits for that (RFC 9309 section 2.3.1.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asking import ORIGIN, TOKEN, parse

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import Refetch, after_fetch, policy_at
from scrapy_rep.protocol.outage import BACKOFF_MAX, BACKOFFS, LEAST_REST, MAX_UNSEEN, backoff
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt

ROBOTS_URL = f"{ORIGIN}/robots.txt"
NOW = 1_700_000_000.0
HOUR, LONG, WAIT = 3600.0, 30 * DAY, 30.0
FIRST, SECOND, *_ = BACKOFFS
RULES = "User-agent: *\nDisallow: /x\n"
ANSWERS = [AccessResult.SUCCESS, AccessResult.UNAVAILABLE, AccessResult.RESTRICTED]


def copy_of(
    access: AccessResult, lifetime: float = DAY, *, at: float = NOW, forbids_stale: bool = False
) -> StoredResponse:
    answer = Answer(ROBOTS_URL, access=access, reason="words")
    robots = parse(RULES) if access is AccessResult.SUCCESS else None
    return StoredResponse(answer, at, at + lifetime, robots, forbids_stale=forbids_stale)


def answered(access: AccessResult = AccessResult.SUCCESS, known: Entry | None = None) -> Entry:
    return after_fetch(known, ROBOTS_URL, copy_of(access))


def failed(known: Entry | None = None, *, now: float = NOW, retry_after: float = 0.0) -> Entry:
    """The entry after a fetch that fails at once."""
    answer = Answer(ROBOTS_URL, reason="words", retry_after=retry_after, ended_at=now)
    return after_fetch(known, ROBOTS_URL, answer)


def since(entry: Entry) -> float:
    assert entry.outage is not None
    return entry.outage.since


def fetch_again_at(entry: Entry) -> float:
    assert entry.outage is not None
    return entry.outage.fetch_again_at


def pause(entry: Entry, now: float = NOW, left: float = WAIT) -> float | None:
    return policy_at(entry, now, LONG).pause_at(now, left)


def test_failures_in_a_row_are_counted_until_an_answer() -> None:
    entry, waits = None, []
    for _ in range(len(BACKOFFS) + 1):
        entry = failed(entry)
        waits.append(fetch_again_at(entry) - NOW)
    assert waits == [*BACKOFFS, BACKOFF_MAX]
    again = failed(answered(known=entry))
    assert again.outage is not None
    assert again.outage.failures == 1


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        pytest.param(1, 5.0, id="2.3.1.4-first"),
        pytest.param(2, 10.0, id="2.3.1.4-second"),
        pytest.param(3, 15.0, id="2.3.1.4-third"),
        pytest.param(4, 30.0, id="2.3.1.4-doubling"),
        pytest.param(10, 1920.0, id="2.3.1.4-last-below-the-longest"),
        pytest.param(11, BACKOFF_MAX, id="2.3.1.4-longest"),
        pytest.param(64, BACKOFF_MAX, id="2.3.1.4-many"),
        pytest.param(100_000, BACKOFF_MAX, id="2.3.1.4-more-than-a-float-has-powers-of-two"),
    ],
)
def test_the_backoff_doubles_up_to_an_hour(failures: int, seconds: float) -> None:
    assert backoff(failures) == seconds
    assert seconds <= HOUR


def test_an_outage_begins_with_its_first_failure_and_ends_with_an_answer() -> None:
    first = failed()
    assert since(first) == NOW
    second = failed(first, now=NOW + 60)
    assert since(second) == NOW
    over = answered(known=second)
    assert over.outage is None
    assert since(failed(over, now=NOW + 180)) == NOW + 180
    hung = Answer(ROBOTS_URL, reason="words", timed_out=True, seconds=30, ended_at=NOW)
    assert since(after_fetch(None, ROBOTS_URL, hung)) == NOW - 30, "counted from the first request"


def test_a_long_reason_is_cut() -> None:
    assert after_fetch(None, ROBOTS_URL, Answer(ROBOTS_URL, reason="x" * 100_000)).last.reason == f"{'x' * 199}…"


def everything_allowed(entry: Entry, now: float) -> bool:
    return policy_at(entry, now, LONG).allows(f"{ORIGIN}/", TOKEN)


@pytest.mark.parametrize("every", [DAY, 7 * DAY, 10 * DAY, MAX_UNSEEN - 1])
def test_an_outage_that_was_seen_throughout_is_long_after_30_days(every: float) -> None:
    entry, now = failed(), NOW
    while now < NOW + LONG:
        assert not everything_allowed(entry, now)
        now += every
        entry = failed(entry, now=now)
        assert since(entry) == NOW
    assert everything_allowed(entry, now)


@pytest.mark.parametrize(
    ("failures_at", "begins"),
    [
        pytest.param([0.0, 31.0], 31.0, id="2.3.1.4-two-failures-31-days-apart"),
        pytest.param([0.0, 0.001, 0.002, 31.0], 31.0, id="2.3.1.4-a-clock-set-forward-by-31-days"),
        pytest.param([0.0, 1.0, 2.0, 14.0, 20.0, 31.0, 42.0], 42.0, id="2.3.1.4-a-crawl-now-and-then"),
        pytest.param([*range(16), *range(27, 56)], 27.0, id="2.3.1.4-unseen-for-some-days"),
    ],
)
def test_failures_eleven_days_apart_are_two_outages(failures_at: list[float], begins: float) -> None:
    entry = None
    for days in failures_at:
        entry = failed(entry, now=NOW + days * DAY)
        assert not everything_allowed(entry, NOW + days * DAY)
    assert entry is not None
    assert since(entry) == NOW + begins * DAY


def test_time_alone_makes_no_outage_long() -> None:
    entry = failed(failed(), now=NOW + DAY)
    for days in (2, 11.9, 12, 29, 30, 31, 365):
        policy = policy_at(entry, NOW + days * DAY, LONG)
        assert not policy.allows(f"{ORIGIN}/", TOKEN)
        assert policy.refetch is (Refetch.MEANWHILE if days < 12 else Refetch.FIRST)


@pytest.mark.parametrize("back", [1.0, 60.0, HOUR, DAY, 400 * DAY])
def test_a_clock_set_back_during_an_outage_keeps_nobody_waiting(back: float) -> None:
    entry, now = failed(failed(), now=NOW + 5), NOW + 5 - back
    left = WAIT - 5
    while (seconds := pause(entry, now, left)) is not None:
        assert 0.0 < seconds <= left
        left, now = left - seconds, now + seconds
        entry = failed(entry, now=now)
        assert since(entry) <= now
        assert fetch_again_at(entry) <= now + HOUR
    assert left in {0.0, WAIT - 5}, "to the end, or not at all where it is no outage of that time"


@pytest.mark.parametrize("ahead", [HOUR, DAY, 400 * DAY])
def test_an_entry_from_the_future_is_not_used(ahead: float) -> None:
    stored = copy_of(AccessResult.SUCCESS, at=NOW + ahead)
    for entry in (
        Entry(ROBOTS_URL, stored),
        failed(now=NOW + ahead),
        failed(Entry(ROBOTS_URL, stored), now=NOW + ahead),
    ):
        assert policy_at(entry, NOW, LONG).refetch is Refetch.FIRST
        assert pause(entry) is None
        assert failed(entry).outage == failed().outage


@pytest.mark.parametrize(
    ("seconds", "waits"),
    [
        pytest.param(0.0, FIRST, id="2.3.1.4-nothing-said"),
        pytest.param(FIRST - 1, FIRST, id="2.3.1.4-less-than-the-backoff"),
        pytest.param(FIRST + 1, FIRST + 1, id="RFC9110-10.2.3-retry-after"),
        pytest.param(HOUR, HOUR, id="RFC9110-10.2.3-an-hour"),
        pytest.param(10 * HOUR, HOUR, id="RFC9110-10.2.3-at-most-an-hour"),
    ],
)
def test_a_server_may_ask_for_time(seconds: float, waits: float) -> None:
    assert fetch_again_at(failed(retry_after=seconds)) == NOW + waits


@pytest.mark.parametrize("access", ANSWERS, ids=lambda access: access.value)
def test_after_an_outage_an_answer_is_stored_as_without_one(access: AccessResult) -> None:
    before = failed(answered(), now=NOW + DAY)
    assert answered(access, before) == answered(access, answered())


STALE = Entry(ROBOTS_URL, copy_of(AccessResult.SUCCESS, 0.0))
FORBIDDEN = Entry(ROBOTS_URL, copy_of(AccessResult.SUCCESS, 0.0, forbids_stale=True))


@pytest.mark.parametrize(
    ("entry", "now", "left", "seconds"),
    [
        pytest.param(failed(), NOW, WAIT, FIRST, id="until-the-backoff-is-over"),
        pytest.param(failed(), NOW + 3, WAIT, FIRST - 3, id="what-is-left-of-it"),
        pytest.param(failed(), NOW + 9, WAIT, 0.0, id="overdue"),
        pytest.param(failed(), NOW, FIRST, FIRST, id="the-backoff-ends-with-the-wait"),
        pytest.param(failed(), NOW, FIRST - 0.1, None, id="the-backoff-ends-after-the-wait"),
        pytest.param(failed(), NOW, 0.0, None, id="the-wait-is-over"),
        pytest.param(failed(), NOW + 9, -4.0, None, id="the-wait-is-over-and-the-backoff-too"),
        pytest.param(failed(retry_after=20), NOW, WAIT, 20.0, id="RFC9110-10.2.3-retry-after-within-the-wait"),
        pytest.param(failed(retry_after=20), NOW + 5, 15.0, 15.0, id="RFC9110-10.2.3-retry-after-as-the-wait-ends"),
        pytest.param(failed(retry_after=20), NOW, 19.0, None, id="RFC9110-10.2.3-retry-after-beyond-the-wait"),
        pytest.param(failed(retry_after=60), NOW, WAIT, None, id="not-in-vain"),
        pytest.param(failed(FORBIDDEN), NOW, WAIT, FIRST, id="rules-that-must-not-be-stale"),
        pytest.param(failed(STALE), NOW, WAIT, None, id="stale-rules-decide-meanwhile"),
        pytest.param(failed(answered()), NOW, WAIT, None, id="what-is-fresh-decides-meanwhile"),
        pytest.param(answered(), NOW, WAIT, None, id="no-outage"),
        pytest.param(answered(AccessResult.UNAVAILABLE), NOW, WAIT, None, id="unavailable-is-no-outage"),
    ],
)
def test_how_long_requests_wait_before_robots_txt_is_fetched_again(
    entry: Entry, now: float, left: float, seconds: float | None
) -> None:
    assert pause(entry, now, left) == seconds


@pytest.mark.parametrize(
    ("seconds", "waits"),
    [
        pytest.param(0.0, FIRST, id="a-fast-failure"),
        pytest.param(3.0, FIRST - 3, id="the-backoff-begins-with-the-request"),
        pytest.param(FIRST + 3, LEAST_REST, id="a-failure-that-took-longer-than-the-backoff"),
    ],
)
def test_the_backoff_begins_with_the_request(seconds: float, waits: float) -> None:
    answer = Answer(ROBOTS_URL, reason="words", seconds=seconds, ended_at=NOW)
    assert pause(after_fetch(None, ROBOTS_URL, answer)) == waits


def test_requests_wait_for_a_fetch_that_begins_just_when_their_time_ends() -> None:
    """The default, 30 s, is the sum of three backoffs. But times since the epoch are rounded: no pause is exact."""
    is_longer = []
    for seconds in (number / 70 for number in range(100)):
        entry = after_fetch(None, ROBOTS_URL, Answer(ROBOTS_URL, reason="words", seconds=seconds, ended_at=NOW))
        left = FIRST - seconds
        rest = pause(entry, left=left)
        assert rest is not None
        is_longer.append(rest > left)
        assert pause(entry, left=left - 0.01) is None
    assert any(is_longer)


def test_requests_do_not_wait_for_a_host_that_hangs() -> None:
    timed_out = Answer(ROBOTS_URL, reason="words", timed_out=True, seconds=30, ended_at=NOW)
    entry = after_fetch(None, ROBOTS_URL, timed_out)
    assert pause(entry) is None
    assert fetch_again_at(entry) == NOW + FIRST, "the backoff begins with the time-out"
    assert pause(failed(entry), left=WAIT) == SECOND, "it no longer hangs"
    # After a refresh that has timed out, the backoff ends 2 s after the 404's time is over.
    unavailable = Entry(ROBOTS_URL, copy_of(AccessResult.UNAVAILABLE, DAY))
    entry = after_fetch(unavailable, ROBOTS_URL, replace(timed_out, ended_at=NOW + DAY + 2 - FIRST))
    when = {after: policy_at(entry, NOW + DAY + after, LONG, WAIT).refetch for after in (-1, 0, 1, 2)}
    assert when == {-1: Refetch.NOT, 0: Refetch.NOT, 1: Refetch.NOT, 2: Refetch.FIRST}


def test_requests_wait_also_if_the_last_failure_was_while_an_answer_was_fresh() -> None:
    # After a refresh that has failed, the backoff ends 2 s after the 404's time is over.
    unavailable = Entry(ROBOTS_URL, copy_of(AccessResult.UNAVAILABLE, DAY))
    entry = failed(unavailable, now=NOW + DAY + 2 - FIRST)
    when = {after: policy_at(entry, NOW + DAY + after, LONG, WAIT).refetch for after in (-1, 0, 1, 2, 100)}
    assert when == {-1: Refetch.NOT, 0: Refetch.FIRST, 1: Refetch.FIRST, 2: Refetch.FIRST, 100: Refetch.FIRST}
    assert pause(entry, NOW + DAY) == 2
    # They have waited, in vain.
    entry = failed(entry, now=NOW + DAY + 2)
    assert policy_at(entry, NOW + DAY + 2, LONG, WAIT).refetch is Refetch.NOT
    assert policy_at(entry, NOW + DAY + 2 + SECOND, LONG, WAIT).refetch is Refetch.MEANWHILE


def test_nobody_waits_for_a_retry_after_beyond_the_wait_that_came_while_an_answer_was_fresh() -> None:
    unavailable = Entry(ROBOTS_URL, copy_of(AccessResult.UNAVAILABLE, DAY))
    entry = failed(unavailable, now=NOW + DAY - 3, retry_after=100)
    when = {after: policy_at(entry, NOW + DAY + after, LONG, WAIT).refetch for after in (0, 66, 67, 97, 100)}
    assert when == {0: Refetch.NOT, 66: Refetch.NOT, 67: Refetch.FIRST, 97: Refetch.FIRST, 100: Refetch.FIRST}


PAGES = [f"{ORIGIN}/", f"{ORIGIN}/x", ROBOTS_URL]


@pytest.mark.parametrize(
    ("entry", "access", "allowed"),
    [
        pytest.param(answered(), AccessResult.SUCCESS, [True, False, True], id="2.3.1.1-success"),
        pytest.param(
            answered(AccessResult.UNAVAILABLE), AccessResult.UNAVAILABLE, [True] * 3, id="2.3.1.3-unavailable"
        ),
        pytest.param(failed(), AccessResult.UNREACHABLE, [False, False, True], id="2.3.1.4-unreachable"),
        pytest.param(answered(AccessResult.RESTRICTED), AccessResult.RESTRICTED, [False, False, True], id="restricted"),
    ],
)
def test_what_each_answer_allows(entry: Entry, access: AccessResult, allowed: list[bool]) -> None:
    policy = policy_at(entry, NOW, LONG)
    verdicts = [policy.verdict(page, TOKEN) for page in PAGES]
    assert [verdict.allowed for verdict in verdicts] == allowed
    assert [policy.allows(page, TOKEN) for page in PAGES] == allowed
    assert {(verdict.access, verdict.robots_url) for verdict in verdicts} == {(access, ROBOTS_URL)}


def test_robots_txt_itself_is_always_allowed_and_no_page_like_it() -> None:
    policy = policy_at(failed(), NOW, LONG)
    assert policy.allows(ROBOTS_URL, TOKEN)
    assert not policy.allows(f"{ROBOTS_URL}?x", TOKEN)


def test_rules_are_asked_with_the_tokens_in_order_of_preference() -> None:
    robots = RobotsTxt.parse(b"User-agent: b\nDisallow: /\nUser-agent: *\nDisallow:\n")
    entry = Entry(ROBOTS_URL, replace(copy_of(AccessResult.SUCCESS), robots=robots))
    policy = policy_at(entry, NOW, LONG)
    assert not policy.allows(f"{ORIGIN}/", ["a", "b"])
    assert policy.verdict(f"{ORIGIN}/", ["a", "b"]).rule == robots.verdict(f"{ORIGIN}/", "b").rule
