"""What is known of an origin x what happens: every cell, and 40 days of outage (RFC 9309 2.3.1.4, 2.4; RFC 9111 4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asking import ORIGIN, TOKEN, parse

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import (
    Entry,
    StoredResponse,
    entry_from_bytes,
    entry_to_bytes,
)
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import POLICY_OF_STATE, Basis, Refetch, State, after_fetch, policy_at, state_of
from scrapy_rep.protocol.outage import BACKOFF_MAX, MAX_UNSEEN, Outage, backoff
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.status_policy import CAUTIOUS, CHALLENGE, MARKUP, OFFLINE, RFC9309, SIGNS

ROBOTS_URL = f"{ORIGIN}/robots.txt"
NOW = 1_700_000_000.0
HOUR = 3600.0
LONG = 30 * DAY
RULES, NEWER_RULES = parse("User-agent: *\nDisallow: /x\n"), parse("User-agent: *\nDisallow: /y\n")


def copy(
    access: AccessResult = AccessResult.SUCCESS, *, since: float = NOW, lifetime: float = DAY, **more: bool
) -> StoredResponse:
    robots = RULES if access is AccessResult.SUCCESS else None
    return replace(StoredResponse(Answer("", access=access, reason="words"), since, since + lifetime, robots), **more)  # type: ignore[arg-type]


def outage(since: float, asked: float, wait: float = HOUR, failures: int = 3) -> Outage:
    return Outage(Answer("", 503, reason="HTTP 503", ended_at=asked), since, failures, wait)


OLD = copy(since=NOW - 2 * DAY)
FORBIDDEN = copy(since=NOW - 2 * DAY, forbids_stale=True)
JUST_NOW, LONG_AGO = outage(NOW - HOUR, NOW), outage(NOW - LONG, NOW)

# Each state, and the entries that are in it at NOW.
IN_STATE: dict[State, list[Entry | None]] = {
    State.UNKNOWN: [
        None,
        Entry(ROBOTS_URL, None, outage(NOW - LONG, NOW - MAX_UNSEEN)),  # nobody has looked since
        Entry(ROBOTS_URL, None, outage(NOW + HOUR, NOW + HOUR)),  # by a clock that was set back since
    ],
    State.FRESH: [
        Entry(ROBOTS_URL, copy()),
        Entry(ROBOTS_URL, copy(AccessResult.UNAVAILABLE)),
        Entry(ROBOTS_URL, copy(since=NOW - 0.899 * DAY)),
        Entry(ROBOTS_URL, copy(since=NOW + 60)),  # by a clock that is a minute ahead
        Entry(ROBOTS_URL, copy(), JUST_NOW),
    ],
    State.AGEING: [
        Entry(ROBOTS_URL, copy(since=NOW - 0.9 * DAY)),
        Entry(ROBOTS_URL, copy(AccessResult.RESTRICTED, since=NOW - DAY + 1)),
        Entry(ROBOTS_URL, copy(since=NOW - 0.95 * DAY), JUST_NOW),
    ],
    State.STALE: [
        Entry(ROBOTS_URL, OLD),
        Entry(ROBOTS_URL, copy(since=NOW - DAY)),
        Entry(ROBOTS_URL, FORBIDDEN),
        Entry(ROBOTS_URL, copy(AccessResult.UNAVAILABLE, since=NOW - 2 * DAY)),
        Entry(ROBOTS_URL, copy(since=NOW + DAY)),  # by a clock that was set back since
        Entry(ROBOTS_URL, copy(since=NOW + HOUR, lifetime=HOUR)),
        Entry(ROBOTS_URL, copy(lifetime=DAY + 1)),
        Entry(ROBOTS_URL, OLD, outage(NOW - LONG, NOW - MAX_UNSEEN - 1)),
        Entry(ROBOTS_URL, OLD, outage(NOW - HOUR, NOW + HOUR)),
        # It was fresh when a fetch failed last.
        Entry(
            ROBOTS_URL,
            copy(AccessResult.UNAVAILABLE, since=NOW - DAY),
            outage(NOW - HOUR, NOW - 1, wait=0.0, failures=1),
        ),
        Entry(ROBOTS_URL, copy(since=NOW - DAY, forbids_stale=True), outage(NOW - HOUR, NOW - 1)),
    ],
    State.UNREACHABLE: [
        Entry(ROBOTS_URL, None, JUST_NOW),
        Entry(ROBOTS_URL, None, outage(NOW - LONG + 1, NOW - 1)),
        Entry(ROBOTS_URL, None, outage(NOW - HOUR, NOW - MAX_UNSEEN + 1)),
        Entry(ROBOTS_URL, None, outage(NOW, NOW + 60)),  # by a clock that is a minute ahead
        Entry(ROBOTS_URL, copy(AccessResult.UNAVAILABLE, since=NOW - 2 * DAY), JUST_NOW),
        Entry(ROBOTS_URL, copy(AccessResult.RESTRICTED, since=NOW - 2 * DAY), JUST_NOW),
        Entry(ROBOTS_URL, FORBIDDEN, JUST_NOW),
    ],
    State.UNREACHABLE_STALE: [
        Entry(ROBOTS_URL, OLD, JUST_NOW),
        Entry(ROBOTS_URL, OLD, LONG_AGO),
        Entry(ROBOTS_URL, FORBIDDEN, LONG_AGO),
        Entry(ROBOTS_URL, copy(since=NOW - DAY), outage(NOW - HOUR, NOW - 1)),
    ],
    State.LONG_UNREACHABLE: [
        Entry(ROBOTS_URL, None, LONG_AGO),
        Entry(ROBOTS_URL, None, outage(NOW - LONG, NOW - MAX_UNSEEN + 1)),
        Entry(ROBOTS_URL, copy(AccessResult.UNAVAILABLE, since=NOW - 40 * DAY), LONG_AGO),
    ],
}

ENTRIES = [
    pytest.param(state, entry, id=f"{state.name}-{i}") for state, es in IN_STATE.items() for i, entry in enumerate(es)
]


def test_each_state_has_a_row_in_the_table() -> None:
    assert set(POLICY_OF_STATE) == set(State) == set(IN_STATE)
    assert {obey for obey, _, _ in POLICY_OF_STATE.values()} == set(Basis)
    assert {ask for _, ask, _ in POLICY_OF_STATE.values()} == set(Refetch)
    assert all(source for _, _, source in POLICY_OF_STATE.values())


def failure(now: float, retry_after: float = 0.0) -> Answer:
    return Answer(ROBOTS_URL, 503, reason="words", retry_after=retry_after, ended_at=now)


@pytest.mark.parametrize(("state", "entry"), ENTRIES)
def test_which_state_an_entry_is_in(state: State, entry: Entry | None) -> None:
    assert state_of(entry, NOW, LONG) is state


# What is done in each state, and what is allowed of `/` and `/x` meanwhile. The rules disallow `/x`.
EVERYTHING, NOTHING, BY_RULES = [True, True], [False, False], [True, False]


@pytest.mark.parametrize(("state", "entry"), [p for p in ENTRIES if p.values[1] is not None])
def test_what_is_done_in_each_state(state: State, entry: Entry) -> None:
    policy = policy_at(entry, NOW, LONG, 2 * HOUR)
    allowed = [policy.allows(f"{ORIGIN}{path}", TOKEN) for path in ("/", "/x")]
    assert [policy.verdict(f"{ORIGIN}{path}", TOKEN).allowed for path in ("/", "/x")] == allowed
    held = entry.stored.answer.access if entry.stored is not None else None
    by_copy = {AccessResult.SUCCESS: BY_RULES, AccessResult.UNAVAILABLE: EVERYTHING, AccessResult.RESTRICTED: NOTHING}
    assert (
        allowed
        == {
            Basis.STORED: by_copy.get(held) if held is not None else None,
            Basis.NOTHING_ALLOWED: NOTHING,
            Basis.EVERYTHING_ALLOWED: EVERYTHING,
        }[POLICY_OF_STATE[state][0]]
    )
    expected = POLICY_OF_STATE[state][1]
    outage = entry.outage_at(NOW)
    if expected is not Refetch.FIRST and outage is not None and outage.fetch_again_at > NOW:
        expected = Refetch.NOT
    assert policy.refetch is expected


@pytest.mark.parametrize(("state", "entry"), ENTRIES)
def test_an_answer_replaces_everything(state: State, entry: Entry | None) -> None:
    for access in (AccessResult.SUCCESS, AccessResult.UNAVAILABLE, AccessResult.RESTRICTED):
        newer = replace(copy(access), robots=NEWER_RULES if access is AccessResult.SUCCESS else None)
        assert after_fetch(entry, ROBOTS_URL, newer) == Entry(ROBOTS_URL, newer), access


@pytest.mark.parametrize(("state", "entry"), ENTRIES)
@pytest.mark.parametrize("retry_after", [0.0, 2 * BACKOFF_MAX])
def test_a_failure_leaves_what_was_stored(state: State, entry: Entry | None, retry_after: float) -> None:
    after = after_fetch(entry, ROBOTS_URL, failure(NOW, retry_after))
    before = entry.outage_at(NOW) if entry is not None else None
    assert after.stored == (entry.stored if entry is not None else None), "what was held stays"
    assert after.outage is not None
    assert after.outage.since == (before.since if before is not None else NOW), "an outage begins once"
    assert after.outage.failures == (before.failures + 1 if before is not None else 1)
    wait = BACKOFF_MAX if retry_after else backoff(after.outage.failures)
    assert (after.outage.answer.ended_at, after.outage.fetch_again_at) == (NOW, NOW + wait)
    assert after.last.access is AccessResult.UNREACHABLE


# 40 days of outage, hour by hour.


def forty_days(held: StoredResponse | None) -> list[tuple[bool, bool]]:
    """Whether `/` and `/x` are allowed, day by day, once the stored response is stale and nothing answers."""
    entry = Entry(ROBOTS_URL, held) if held is not None else None
    begin = NOW + DAY if held is not None else NOW
    allowed, now = [], begin
    while now < begin + 40 * DAY:
        if entry is None or policy_at(entry, now, LONG).refetch is not Refetch.NOT:
            entry = after_fetch(entry, ROBOTS_URL, failure(now))
        if (now - begin) % DAY == 0:
            policy = policy_at(entry, now, LONG)
            allowed.append((policy.allows(f"{ORIGIN}/", TOKEN), policy.allows(f"{ORIGIN}/x", TOKEN)))
        now += HOUR
    return allowed


@pytest.mark.parametrize(
    ("held", "before", "after"),
    [
        pytest.param(None, (False, False), (True, True), id="2.3.1.4-without-a-copy"),
        pytest.param(copy(), (True, False), (True, False), id="2.3.1.4-with-rules"),
        pytest.param(copy(forbids_stale=True), (False, False), (True, False), id="RFC9111-4.2.4-rules-not-to-be-stale"),
        pytest.param(copy(AccessResult.UNAVAILABLE), (False, False), (True, True), id="2.3.1.4-with-a-404"),
    ],
)
def test_forty_days_of_outage(held: StoredResponse | None, before: tuple[bool, bool], after: tuple[bool, bool]) -> None:
    assert forty_days(held) == [before] * 30 + [after] * 10


@pytest.mark.parametrize("entry", [entry for entries in IN_STATE.values() for entry in entries if entry is not None])
def test_a_policy_holds_until_its_entry_means_something_else(entry: Entry) -> None:
    wait = 2 * HOUR
    policy = policy_at(entry, NOW, LONG, wait)
    assert policy.at == NOW
    turns = 0
    while policy.until > policy.at:
        turns += 1
        for now in (policy.until - 0.001, policy.until):
            later = policy_at(entry, now, LONG, wait)
            same = (later.state, later.basis, later.refetch) == (policy.state, policy.basis, policy.refetch)
            assert same or now == policy.until
        policy = later
    assert turns <= 9
    for days in (0.5, 1.5, 12, 40):
        later = policy_at(entry, policy.at + days * DAY, LONG, wait)
        assert (later.state, later.refetch) == (policy.state, policy.refetch), "nothing changes after the last turn"


def test_a_refresh_that_fails_leaves_what_is_fresh_and_backs_off() -> None:
    ageing = Entry(ROBOTS_URL, copy(since=NOW - 0.95 * DAY))
    after = after_fetch(ageing, ROBOTS_URL, failure(NOW))
    assert policy_at(after, NOW, LONG).refetch is Refetch.NOT
    assert policy_at(after, NOW + backoff(1), LONG).refetch is Refetch.MEANWHILE
    assert policy_at(after, NOW + backoff(1), LONG).robots is RULES


def test_no_backoff_is_longer_than_an_hour() -> None:
    entry = after_fetch(None, ROBOTS_URL, failure(NOW, 2 * HOUR))
    assert policy_at(entry, NOW + HOUR - 1, LONG).refetch is Refetch.NOT
    assert policy_at(entry, NOW + HOUR, LONG).refetch is Refetch.MEANWHILE


# What may be stored, and for how long.


def test_rfc9111_5_2_2_5_with_no_store_only_the_outage_is_stored() -> None:
    secret, kept = copy(forbids_store=True), copy()
    assert Entry(ROBOTS_URL, secret).storable is None
    assert Entry(ROBOTS_URL, secret, JUST_NOW).storable == Entry(ROBOTS_URL, None, JUST_NOW)
    assert Entry(ROBOTS_URL, kept, JUST_NOW).storable == Entry(ROBOTS_URL, kept, JUST_NOW)


def test_answers_that_depend_on_this_crawls_limits_are_not_stored() -> None:
    """Another crawl may read a longer file (REP_BODY_LIMIT), or follow more redirects (REP_MAX_REDIRECTS)."""
    whole = RobotsTxt.parse(b"User-agent: *\nDisallow: /private\n")
    success = StoredResponse(Answer("", 200, AccessResult.SUCCESS, "HTTP 200"), 0.0, DAY, whole)
    redirects = StoredResponse(
        Answer("", access=AccessResult.UNAVAILABLE, reason="more than 5 redirects in a row"), 0.0, DAY
    )
    assert Entry(ROBOTS_URL, success).storable == Entry(ROBOTS_URL, success)
    assert Entry(ROBOTS_URL, replace(success, robots=replace(whole, truncated=True))).storable is None
    assert Entry(ROBOTS_URL, redirects).storable is None


@pytest.mark.parametrize(
    ("entry", "until"),
    [
        pytest.param(Entry(ROBOTS_URL, copy()), NOW + DAY + 2 * LONG, id="2.3.1.4-rules-may-be-needed-in-an-outage"),
        pytest.param(Entry(ROBOTS_URL, copy(AccessResult.UNAVAILABLE)), NOW + DAY, id="2.3.1.3-nothing-else-to-keep"),
        pytest.param(Entry(ROBOTS_URL, None, JUST_NOW), NOW + MAX_UNSEEN, id="2.3.1.4-while-it-may-go-on"),
    ],
)
def test_until_when_an_entry_is_useful(entry: Entry, until: float) -> None:
    assert entry.useful_until(LONG) == until


def test_an_entry_was_last_fetched_at_its_last_answer_or_failure() -> None:
    assert Entry(ROBOTS_URL, copy()).last_fetched_at == NOW
    assert Entry(ROBOTS_URL, OLD, JUST_NOW).last_fetched_at == NOW


def test_another_policys_judgement_is_not_taken_over() -> None:
    restricted = Entry(ROBOTS_URL, StoredResponse(Answer("", 403, AccessResult.RESTRICTED, "HTTP 403"), NOW, NOW + DAY))
    assert restricted.is_judged_by(CAUTIOUS)
    assert not restricted.is_judged_by(RFC9309)
    denied = Entry(ROBOTS_URL, None, Outage(Answer("", 403, reason="HTTP 403", ended_at=NOW), NOW, 1, 0.0))
    assert not denied.is_judged_by(RFC9309)
    assert denied.is_judged_by((((403,), AccessResult.UNREACHABLE, "REP_STATUS_POLICY"), *RFC9309))
    redirected = StoredResponse(Answer("", access=AccessResult.UNAVAILABLE), NOW, NOW + DAY)
    assert Entry(ROBOTS_URL, redirected).is_judged_by(RFC9309)
    answer = Answer("", access=AccessResult.UNAVAILABLE, sign=OFFLINE)
    offline = Entry(ROBOTS_URL, StoredResponse(answer, NOW, NOW + DAY))
    assert offline.is_judged_by(RFC9309)
    assert not offline.is_judged_by((((OFFLINE,), AccessResult.RESTRICTED, "REP_STATUS_POLICY"), *RFC9309))


CHALLENGED = Entry(ROBOTS_URL, None, Outage(Answer("", 403, sign="Vercel", ended_at=NOW), NOW, 1, 0.0))
PAGE = Entry(ROBOTS_URL, StoredResponse(Answer("", 200, AccessResult.UNAVAILABLE, sign=MARKUP), NOW, NOW + DAY))


@pytest.mark.parametrize(
    ("entry", "key"), [pytest.param(CHALLENGED, CHALLENGE, id="challenge"), pytest.param(PAGE, MARKUP, id="markup")]
)
def test_a_challenge_and_a_page_are_judged_by_their_own_rows(entry: Entry, key: str) -> None:
    assert entry.is_judged_by(RFC9309)
    assert entry.is_judged_by(CAUTIOUS)
    assert not entry.is_judged_by((((key,), AccessResult.RESTRICTED, "REP_STATUS_POLICY"), *RFC9309))
    # Its status alone would be judged otherwise.
    plain = replace(
        entry,
        stored=entry.stored and replace(entry.stored, answer=replace(entry.stored.answer, sign="")),
        outage=entry.outage and replace(entry.outage, answer=replace(entry.outage.answer, sign="")),
    )
    assert not plain.is_judged_by(RFC9309)


@pytest.mark.parametrize("entry", [CHALLENGED, PAGE], ids=["challenge", "markup"])
def test_an_entry_keeps_the_sign_of_a_challenge_or_a_page(entry: Entry) -> None:
    assert entry_from_bytes(entry_to_bytes(entry), ROBOTS_URL) == entry
    assert entry.last.sign in SIGNS - {""}


def test_an_entry_with_an_unknown_sign_is_a_miss() -> None:
    octets = entry_to_bytes(Entry(ROBOTS_URL, None, replace(JUST_NOW, answer=Answer("", sign="x" * 1_000))))
    assert entry_from_bytes(octets, ROBOTS_URL) is None
