"""One fetch of a robots.txt as a conversation: what is requested, when, and what the answers mean together.

Each test is a list of answers. Crawl tests show only that a crawl holds such a conversation (`tests/crawls`).
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import accumulate
from typing import Any

import pytest
from asking import TOKEN, parse

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.conversation import Ask, Find, Found, Round, conversation, with_meaning
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import DAY, LEAST_LIFETIME, Caching
from scrapy_rep.protocol.lifecycle import Refetch, Terms
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import BACKOFFS, Outage
from scrapy_rep.protocol.redirect_target import must_be_public
from scrapy_rep.protocol.status_policy import RFC9309

HOUR = 3_600.0
TERMS = Terms(
    status_policy=RFC9309,
    max_redirects=5,
    redirect_private=False,
    lifetime_min=HOUR,
    body_limit=512_000,
    fetch_retries=0,
    unreachable_wait=30.0,
    unreachable_days=30,
)
RETRIES = replace(TERMS, fetch_retries=1)
ORIGIN = Origin("https", "a.example", None)
ROBOTS = ORIGIN.robots_url
NOW = 1_700_000_000.0
RULES = b"User-agent: *\nDisallow: /private\n"
FIRST, SECOND, THIRD, *_ = BACKOFFS


def rounds_within(wait: float) -> list[float]:
    """Return when the rounds begin while all requests fail at once, in seconds: 0, 5, 15 and 30 within 30 seconds."""
    return [0, *(begins for begins in accumulate(BACKOFFS) if begins <= wait)]


class Talk:
    """Plays the servers and the clock of one conversation.

    Each request takes `took` seconds, after it has waited for its turn for `turn` seconds. `found`: the entry of
    another crawler.
    """

    def __init__(
        self,
        *answers: Answer,
        terms: Terms = TERMS,
        known: Entry | None = None,
        found: Entry | None = None,
        took: float = 0.0,
        turn: float = 0.0,
    ) -> None:
        self.asked: list[Ask] = []
        self.times: list[float] = []
        """When each request was made, in seconds since the beginning."""
        self.rounds: list[Round] = []
        self._answers = [*answers]
        self._now, self._took, self._turn = NOW, took, turn
        self._found = found
        steps = conversation(ORIGIN, known, NOW, terms)
        step: Any = next(steps)
        while not (isinstance(step, Round) and step.pause is None):
            step = steps.send(self._result(step, terms))
        self.rounds.append(step)

    def _result(self, step: Find | Ask | Round, terms: Terms) -> Any:
        if isinstance(step, Find):
            return Found(step.known or self._found, is_to_fetch=True, at=self._now)
        if isinstance(step, Round):
            self.rounds.append(step)
            self._now += step.pause or 0.0
            return self._now
        self._now += step.pause + self._turn
        self.asked.append(step)
        self.times.append(self._now - NOW)
        received = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        self._now += self._took
        received = replace(received, url=step.url, seconds=self._took, ended_at=self._now)
        return replace(with_meaning(received, step, terms), has_another_proxy=received.has_another_proxy)

    @property
    def urls(self) -> list[str]:
        return [ask.url for ask in self.asked]

    @property
    def entry(self) -> Entry:
        return self.rounds[-1].policy.entry

    @property
    def allows(self) -> list[bool]:
        """Whether `/` and `/private` are allowed at the end."""
        policy = self.rounds[-1].policy
        return [policy.allows(f"{ORIGIN}{path}", TOKEN) for path in ("/", "/private")]


def status(code: int, **more: Any) -> Answer:
    return Answer("", code, **more)


def rules(**more: Any) -> Answer:
    return status(200, body=RULES, **more)


def to(location: str, code: int = 301, **more: Any) -> Answer:
    return status(code, location=location, **more)


def broken(**more: Any) -> Answer:
    return Answer("", reason="ConnectionLost", **more)


ALL, NONE, BY_RULES = [True, True], [False, False], [True, False]
MEANINGS = [
    pytest.param(rules(), AccessResult.SUCCESS, BY_RULES, id="2.3.1.1-rules"),
    pytest.param(status(200), AccessResult.SUCCESS, ALL, id="2.3.1.1-an-empty-file"),
    pytest.param(status(200, body=b"<html>"), AccessResult.UNAVAILABLE, ALL, id="2.2-a-page-of-html"),
    pytest.param(status(404), AccessResult.UNAVAILABLE, ALL, id="2.3.1.3-404"),
    pytest.param(status(500), AccessResult.UNREACHABLE, NONE, id="2.3.1.4-500"),
    pytest.param(broken(), AccessResult.UNREACHABLE, NONE, id="2.3.1.4-no-answer"),
    pytest.param(status(200, body=RULES, sign="Cloudflare"), AccessResult.UNREACHABLE, NONE, id="a-challenge"),
]


@pytest.mark.parametrize(("answer", "access", "allows"), MEANINGS)
def test_what_an_answer_means(answer: Answer, access: AccessResult, allows: list[bool]) -> None:
    talk = Talk(answer, terms=replace(TERMS, unreachable_wait=0.0))
    assert (talk.urls, talk.entry.last.access, talk.allows) == ([ROBOTS], access, allows)


# Redirects (RFC 9309 2.3.1.2).


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed_across_authorities(code: int) -> None:
    talk = Talk(to("https://b.example/r.txt", code), rules())
    assert talk.urls == [ROBOTS, "https://b.example/r.txt"]
    assert talk.allows == BY_RULES
    assert talk.entry.robots_url == ROBOTS
    assert talk.entry.stored is not None
    assert talk.entry.stored.answer.url == "https://b.example/r.txt"


@pytest.mark.parametrize(
    ("hops", "asked", "access", "allows"),
    [
        pytest.param(5, 6, AccessResult.SUCCESS, BY_RULES, id="2.3.1.2-five-are-followed"),
        pytest.param(6, 6, AccessResult.UNAVAILABLE, ALL, id="2.3.1.2-a-sixth-is-not"),
    ],
)
def test_how_many_redirects_are_followed(hops: int, asked: int, access: AccessResult, allows: list[bool]) -> None:
    talk = Talk(*(to(f"https://a.example/{hop}") for hop in range(hops)), rules())
    assert (len(talk.asked), talk.entry.last.access, talk.allows) == (asked, access, allows)
    assert talk.entry.last.url == "https://a.example/4", "the URL at the end"


def test_a_loop_ends_as_too_many_redirects() -> None:
    talk = Talk(to(ROBOTS))
    assert talk.urls == [ROBOTS] * 6
    assert talk.entry.last.reason == "more than 5 redirects in a row"
    assert talk.entry.last.status is None


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        pytest.param([status(301)], "HTTP 301 without a Location that can be followed", id="no-location"),
        pytest.param(
            [to("ftp://b.example/")],
            "HTTP 301 to ftp:, which is neither http nor https: ftp://b.example/",
            id="another-scheme",
        ),
        pytest.param(
            [to("https://me@b.example/")],
            "HTTP 301 to an address with user information in it: https://b.example/",
            id="user",
        ),
        pytest.param(
            [to("http://10.0.0.1/")],
            "HTTP 301 from a public host to 10.0.0.1, which is private (REP_REDIRECT_PRIVATE): http://10.0.0.1/",
            id="a-private-host",
        ),
        pytest.param(
            [to("http://b.example/", address="192.0.66.1"), rules(address="10.0.0.1")],
            "a public host redirected to 10.0.0.1, which is private (REP_REDIRECT_PRIVATE)",
            id="a-name-with-a-private-address",
        ),
        pytest.param([to("https://b.example/"), status(503)], "HTTP 503", id="2.3.1.4-an-error-after-a-redirect"),
        pytest.param([to("https://b.example/"), broken()], "ConnectionLost", id="2.3.1.4-no-answer-after-a-redirect"),
    ],
)
def test_redirects_that_end_unreachable(answers: list[Answer], reason: str) -> None:
    talk = Talk(*answers, terms=replace(TERMS, unreachable_wait=0.0))
    assert (talk.entry.last.access, talk.entry.last.reason, talk.allows) == (AccessResult.UNREACHABLE, reason, NONE)
    assert talk.entry.last.status == (503 if reason == "HTTP 503" else None), "a redirect's status is not the reason"
    challenge = Talk(to("https://b.example/", 302, sign="Vercel"), terms=replace(TERMS, unreachable_wait=0.0))
    assert challenge.entry.last.status == 302


def test_a_host_that_redirects_to_itself_is_not_from_public_to_private() -> None:
    elsewhere = [to("http://a.example/robots.txt"), to("https://a.example:8443/r.txt"), rules(address="10.0.0.1")]
    assert Talk(*elsewhere).allows == BY_RULES


def test_a_host_may_redirect_back_to_the_first_host() -> None:
    talk = Talk(to("https://b.example/", address="192.0.66.1"), to(ROBOTS), rules(address="10.0.0.1"))
    assert talk.allows == BY_RULES


TO_B = to("https://b.example/")


@pytest.mark.parametrize(
    ("redirect", "address", "allows"),
    [
        pytest.param(replace(TO_B, address="10.0.0.1"), "10.0.0.2", BY_RULES, id="private-to-private"),
        pytest.param(replace(TO_B, address="192.0.66.1"), "10.0.0.2", NONE, id="public-to-private"),
        pytest.param(replace(TO_B, address="192.0.66.1"), "192.0.66.2", BY_RULES, id="public-to-public"),
        pytest.param(TO_B, "10.0.0.2", NONE, id="unknown-to-private"),
        pytest.param(TO_B, None, BY_RULES, id="no-answer-tells"),
        pytest.param(replace(TO_B, proxy="http://proxy"), None, BY_RULES, id="a-proxy"),
    ],
)
def test_an_answer_must_be_public_after_a_redirect_from_a_public_host(
    redirect: Answer, address: str | None, allows: list[bool]
) -> None:
    talk = Talk(redirect, rules(address=address), terms=replace(TERMS, unreachable_wait=0.0))
    assert (talk.allows, len(talk.asked)) == (allows, 2)


@pytest.mark.parametrize("host", ["10.0.0.1", "intranet"])
def test_an_answer_may_be_private_after_a_redirect_from_a_private_host(host: str) -> None:
    redirect = Answer(f"http://{host}/robots.txt")
    assert not must_be_public(redirect, Origin("http", host, None), "http://b.example/")


def test_an_answer_that_was_dropped_has_no_backoff_of_seconds() -> None:
    outage = Talk(TO_B, rules(address="10.0.0.1")).entry.outage
    assert outage is not None
    assert outage.answer.reason == "a public host redirected to 10.0.0.1, which is private (REP_REDIRECT_PRIVATE)"
    assert outage.fetch_again_at == NOW + HOUR, "as after a request that was dropped"


@pytest.mark.parametrize("end", [status(503), broken(), rules(address="10.0.0.1")], ids=["503", "silent", "dropped"])
def test_an_outage_after_redirects_began_with_the_first_request(end: Answer) -> None:
    outage = Talk(TO_B, end, terms=replace(TERMS, unreachable_wait=0.0), took=5.0).entry.outage
    assert outage is not None
    assert outage.since == NOW


def test_an_answer_from_a_private_address_is_not_asked_for_through_a_proxy() -> None:
    redirect = replace(TO_B, address="192.0.66.1")
    talk = Talk(redirect, rules(address="10.0.0.2", has_another_proxy=True), rules(proxy="http://proxy"), terms=RETRIES)
    assert (len(talk.asked), talk.allows) == (2, NONE)


def test_redirect_private_follows_to_private_hosts() -> None:
    talk = Talk(to("http://10.0.0.1/"), rules(address="10.0.0.1"), terms=replace(TERMS, redirect_private=True))
    assert talk.allows == BY_RULES


def test_the_strictest_terms_of_a_chain_count() -> None:
    talk = Talk(to("https://b.example/", caching=Caching(no_store=True, max_age=7_200.0)), rules(), took=5.0)
    stored = talk.entry.stored
    assert stored is not None
    assert (stored.received_at, stored.fresh_until) == (NOW + 5, NOW + 5 + HOUR), "no-store: REP_LIFETIME_MIN"
    assert (stored.forbids_store, stored.forbids_stale) == (True, False)
    for caching in (Caching(no_cache=True), Caching(must_revalidate=True)):
        stored = Talk(replace(TO_B, caching=caching), rules()).entry.stored
        assert stored is not None
        assert (stored.forbids_store, stored.forbids_stale) == (False, True)


@pytest.mark.parametrize(
    ("took", "lifetime"),
    [
        pytest.param(HOUR, 2 * HOUR + LEAST_LIFETIME, id="it-has-expired-before-the-end-of-the-chain"),
        pytest.param(DAY, 2 * DAY, id="RFC9309-2.4-at-most-a-day-after-the-first-answer"),
    ],
)
def test_an_answer_after_a_slow_redirect_is_fresh_for_a_moment(took: float, lifetime: float) -> None:
    stored = Talk(replace(TO_B, caching=Caching(max_age=0.0)), rules(), took=took).entry.stored
    assert stored is not None
    assert stored.fresh_until == NOW + lifetime


@pytest.mark.parametrize(
    ("redirect_for", "rules_for", "forbids_store"),
    [
        pytest.param("OneBot", "OneBot", False, id="one-user-agent"),
        pytest.param("OneBot", "", False, id="one-user-agent-of-the-redirect"),
        pytest.param("OneBot", "OtherBot", True, id="two-user-agents"),
        pytest.param("*", "", True, id="RFC9111-4.1-anything"),
    ],
)
def test_for_which_user_agent_an_answer_of_a_chain_is_and_whether_it_is_shared(
    redirect_for: str, rules_for: str, forbids_store: bool
) -> None:
    answers = replace(TO_B, caching=Caching(only_for=redirect_for)), rules(caching=Caching(only_for=rules_for))
    stored = Talk(*answers).entry.stored
    assert stored is not None
    assert (stored.only_for, stored.forbids_store) == (redirect_for, forbids_store)


def test_rfc_9111_4_2_3_the_time_until_the_answer_came_counts_for_its_age() -> None:
    stored = Talk(rules(caching=Caching(max_age=2 * HOUR, age=60.0), response_delay=3.0)).entry.stored
    assert stored is not None
    assert stored.fresh_until == NOW + 2 * HOUR - 63


# Retries (REP_FETCH_RETRIES).


def test_how_many_retries_a_request_has() -> None:
    assert Talk(broken(), terms=replace(TERMS, fetch_retries=3, unreachable_wait=0.0)).times == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("failure", "times"),
    [
        pytest.param(broken(), [0, 1], id="no-answer"),
        pytest.param(status(503), [0, 1], id="503"),
        pytest.param(broken(timed_out=True), [0], id="a-time-out"),
        pytest.param(status(503, retry_after=2.0), [0], id="retry-after"),
        pytest.param(status(503, sign="Cloudflare"), [0], id="a-challenge"),
        pytest.param(broken(dropped=True), [0], id="dropped-by-a-middleware"),
        pytest.param(status(404), [0], id="404"),
    ],
)
def test_which_requests_are_repeated_at_once(failure: Answer, times: list[float]) -> None:
    assert Talk(failure, terms=replace(RETRIES, unreachable_wait=0.0)).times == times


def test_each_hop_of_a_redirect_has_its_own_retries_and_later_requests_skip_the_http_cache() -> None:
    talk = Talk(status(500), to("https://b.example/"), status(500), rules(), terms=RETRIES)
    assert talk.times == [0, 1, 1, 2]
    assert [(ask.was_requested_before, ask.reason) for ask in talk.asked] == [
        (False, ""),
        (True, "HTTP 500"),
        (False, ""),
        (True, "HTTP 500"),
    ]
    assert talk.allows == BY_RULES


# A failure through a proxy.


@pytest.mark.parametrize(
    ("failure", "times"),
    [
        pytest.param(broken(proxy="http://proxy"), [0, 0, 0], id="no-answer"),
        pytest.param(broken(proxy="http://proxy", timed_out=True), [0, 0, 0], id="a-time-out"),
        pytest.param(status(407, proxy="http://proxy"), [0, 0, 0], id="407"),
        pytest.param(status(503, proxy="http://proxy"), [0, 1, 1], id="503-is-retried-as-without-a-proxy"),
        pytest.param(status(429, proxy="http://proxy"), [0], id="429-is-the-answer-of-the-site"),
        pytest.param(broken(dropped=True), [0, 0, 0], id="dropped-by-a-middleware-perhaps-because-of-its-proxy"),
        pytest.param(broken(proxy="http://proxy", is_fault=True), [0, 1, 1], id="an-error-of-a-middleware"),
    ],
)
def test_after_a_failure_of_a_proxy_the_next_one_is_used_at_once(failure: Answer, times: list[float]) -> None:
    failure = replace(failure, has_another_proxy=True)
    talk = Talk(failure, broken(proxy="http://proxy", has_another_proxy=True), rules(), terms=RETRIES)
    assert talk.times[: len(times)] == times


def test_the_last_proxy_is_retried_as_often_as_without_a_proxy() -> None:
    talk = Talk(broken(proxy="http://proxy", has_another_proxy=True), broken(proxy="http://proxy"), terms=RETRIES)
    assert talk.times == [0, 0, 1, *rounds_within(30.0)[1:]]


def test_a_time_out_that_timed_out_here_is_followed_by_other_attempts() -> None:
    late = broken(timed_out=True, timed_out_here=True)
    assert Talk(late, rules()).times == [0, 1]
    assert Talk(late).times == [0, 1, 2, 3], "not for ever"


# What other crawls may know (REP_STORAGE).

SINCE = NOW - 3 * DAY
SILENT_SINCE = Entry(ROBOTS, outage=Outage(broken(ended_at=NOW - DAY), SINCE, 0, 0.0))


@pytest.mark.parametrize(
    ("answer", "failures", "backoff"),
    [
        pytest.param(status(503), 1, FIRST, id="503"),
        pytest.param(to("ftp://b.example/"), 1, FIRST, id="a-redirect-that-is-not-followed"),
        pytest.param(broken(), 0, None, id="no-answer"),
        pytest.param(broken(timed_out=True), 0, None, id="a-time-out"),
    ],
)
def test_the_backoff_is_shared_only_if_the_server_has_answered(
    answer: Answer, failures: int, backoff: float | None
) -> None:
    talk = Talk(answer, terms=replace(TERMS, unreachable_wait=0.0))
    shared, own = talk.rounds[-1].shared, talk.entry.outage
    assert shared is not None
    assert shared.outage is not None
    assert own is not None
    assert (shared.outage.failures, shared.outage.since) == (failures, NOW)
    assert shared.outage.fetch_again_at == (0.0 if backoff is None else NOW + backoff)
    assert own.failures == 1, "this crawl has the backoff in any case"


@pytest.mark.parametrize(
    "answer",
    [
        *(
            status(407, proxy="http://proxy"),
            broken(proxy="http://proxy"),
            broken(proxy="http://proxy", timed_out=True),
        ),
        *(broken(is_fault=True), broken(dropped=True)),
    ],
)
def test_a_failure_of_a_proxy_or_a_component_is_not_shared(answer: Answer) -> None:
    talk = Talk(answer, known=KNOWN)
    assert talk.entry.outage is not None
    assert talk.rounds[-1].shared is None


@pytest.mark.parametrize(
    ("failure", "has_backoff"),
    [
        *(
            (status(407, proxy="http://proxy"), False),
            (broken(proxy="http://proxy"), False),
            (broken(proxy="http://proxy", timed_out=True), False),
        ),
        *(
            (status(503, proxy="http://proxy"), True),
            (broken(proxy="http://proxy", dropped=True), True),
            (broken(), True),
        ),
    ],
)
def test_a_failure_of_a_proxy_has_no_backoff_for_the_requests_that_come_later(
    failure: Answer, has_backoff: bool
) -> None:
    talk = Talk(failure, terms=replace(TERMS, unreachable_wait=0.0))
    now = NOW + 0.5
    policy = TERMS.policy_at(talk.rounds[-1].for_memory, now)
    assert policy.refetch is (Refetch.NOT if has_backoff else Refetch.FIRST)
    assert policy.is_fetch_due is not has_backoff
    assert talk.rounds[-1].policy.refetch is Refetch.NOT, "for the requests that have waited"


def test_while_a_proxy_fails_old_rules_are_obeyed_and_fetched_again_after_the_backoff() -> None:
    talk = Talk(broken(proxy="http://proxy"), known=KNOWN)
    assert talk.allows == BY_RULES
    assert talk.rounds[-1].for_memory is talk.entry


def test_an_answer_through_a_proxy_is_shared() -> None:
    talk = Talk(rules(proxy="http://proxy"))
    assert talk.rounds[-1].shared is talk.entry


def test_a_crawl_makes_one_round_if_another_crawl_got_no_answer() -> None:
    assert Talk(rules(), found=SILENT_SINCE).allows == BY_RULES
    talk = Talk(broken(), found=SILENT_SINCE)
    assert (talk.times, talk.allows) == ([0], NONE)
    assert Talk(broken(), found=SILENT_SINCE, terms=RETRIES).times == [0, 1], "a round has its retries"
    assert Talk(status(503), found=SILENT_SINCE, took=8.0).times == [0]
    outage = talk.entry.outage
    assert outage is not None
    assert (outage.since, outage.failures, outage.fetch_again_at) == (SINCE, 1, NOW + FIRST)


@pytest.mark.parametrize(
    ("failure", "is_allowed"),
    [
        *((broken(), True), (status(503, proxy="http://proxy"), True)),
        *((broken(proxy="http://proxy"), False), (broken(dropped=True), False), (broken(is_fault=True), False)),
    ],
)
def test_the_30_days_are_those_in_which_the_site_does_not_answer(failure: Answer, is_allowed: bool) -> None:
    last = replace(failure, ended_at=NOW - DAY).remembered
    known = Entry(ROBOTS, outage=Outage(last, NOW - 31 * DAY, 3, NOW - 1))
    talk = Talk(broken(), known=known, terms=replace(TERMS, unreachable_wait=0.0))
    assert talk.allows == (ALL if is_allowed else NONE)


def test_an_outage_without_answers_counts_for_the_30_days() -> None:
    long_ago = Entry(ROBOTS, outage=Outage(broken(ended_at=NOW - DAY), NOW - 31 * DAY, 0, 0.0))
    assert Talk(broken(), found=long_ago).allows == ALL


# Rounds: how long requests wait (REP_UNREACHABLE_WAIT).

KNOWN_OUTAGE = Entry(ROBOTS, outage=Outage(status(503, ended_at=NOW - HOUR), SINCE, 2, NOW - 1))


@pytest.mark.parametrize(
    ("known", "times"),
    [
        pytest.param(
            None, [begins + 20 * turns for turns, begins in enumerate(rounds_within(30.0), 1)], id="nothing-is-known"
        ),
        pytest.param(KNOWN_OUTAGE, [20, 20 + THIRD + 20], id="an-outage"),
    ],
)
def test_the_wait_begins_with_the_first_request_and_not_with_the_wait_for_its_turn(
    known: Entry | None, times: list[float]
) -> None:
    assert Talk(status(503), known=known, turn=20.0).times == times
    assert Talk(status(503), rules(), turn=40.0).allows == BY_RULES


@pytest.mark.parametrize(
    ("failure", "terms", "took", "times"),
    [
        pytest.param(status(503), TERMS, 0.0, rounds_within(30.0), id="always-503"),
        pytest.param(status(503), RETRIES, 0.0, [0, 1, *rounds_within(30.0)[1:]], id="with-a-retry"),
        pytest.param(status(503), TERMS, 0.4, rounds_within(30.0), id="answers-that-take-0.4-s"),
        pytest.param(status(503), TERMS, 8.0, [0, 9, 9 + SECOND], id="answers-that-take-8-s"),
        pytest.param(broken(), TERMS, 0.0, rounds_within(30.0), id="no-answer"),
        pytest.param(status(202), TERMS, 0.0, rounds_within(30.0), id="RFC9110-15.3.3-not-answered-yet"),
        pytest.param(status(403, sign="Cloudflare"), TERMS, 0.0, rounds_within(30.0), id="a-challenge"),
        pytest.param(status(503), replace(TERMS, unreachable_wait=0.0), 0.0, [0], id="requests-do-not-wait"),
        pytest.param(status(503), replace(TERMS, unreachable_wait=20.0), 0.0, rounds_within(20.0), id="a-shorter"),
        pytest.param(status(503), replace(TERMS, unreachable_wait=60.0), 0.0, rounds_within(60.0), id="a-longer"),
        pytest.param(broken(timed_out=True), TERMS, 30.0, [0], id="no-round-follows-a-time-out"),
        pytest.param(status(503, retry_after=12.0), TERMS, 0.0, [0, 12, 24], id="RFC9110-10.2.3-retry-after"),
        pytest.param(status(503, retry_after=60.0), TERMS, 0.0, [0], id="RFC9110-10.2.3-retry-after-beyond-the-wait"),
        pytest.param(broken(dropped=True), TERMS, 0.0, [0], id="dropped-by-a-middleware"),
        pytest.param(broken(is_fault=True), TERMS, 0.0, [0], id="an-error-of-a-middleware"),
    ],
)
def test_when_robots_txt_is_requested_while_it_is_unreachable(
    failure: Answer, terms: Terms, took: float, times: list[float]
) -> None:
    talk = Talk(failure, terms=terms, took=took)
    assert talk.times == times
    assert talk.allows == NONE


def test_the_last_round_decides() -> None:
    talk = Talk(status(503), status(503), rules())
    assert (talk.times, talk.allows) == ([0, FIRST, FIRST + SECOND], BY_RULES)
    assert [one.pause for one in talk.rounds] == [FIRST, SECOND, None]


def test_a_known_outage_is_waited_for_before_the_first_request() -> None:
    known = Talk(status(503), terms=replace(TERMS, unreachable_wait=0.0)).entry
    talk = Talk(status(503), known=known)
    assert talk.times == rounds_within(30.0)[1:]
    assert talk.rounds[0].hops == (), "nothing was requested in the first round"
    assert (talk.rounds[0].shared, talk.rounds[0].for_memory) == (None, known)


def test_a_short_backoff_of_a_fetch_in_the_background_is_waited_for() -> None:
    """Nobody has waited for that fetch, so the next request does. The answer has expired since."""
    gone = StoredResponse(Answer(ROBOTS, 404, AccessResult.UNAVAILABLE, "HTTP 404"), NOW - DAY, NOW - 1)
    outage = Outage(status(503, ended_at=NOW - 2), NOW - 2, 1, NOW + 3)
    talk = Talk(rules(), known=Entry(ROBOTS, gone, outage))
    assert (talk.times, talk.allows) == ([3], BY_RULES)


def test_the_backoff_of_a_crawler_whose_clock_is_ahead_ends() -> None:
    """Its entry says that the backoff has ended, in the future."""
    outage = Outage(status(503, ended_at=NOW + 100), NOW + 100, 1, NOW + 100)
    talk = Talk(rules(), known=Entry(ROBOTS, outage=outage))
    assert (talk.times, talk.allows) == ([0], BY_RULES)


def test_the_time_for_which_the_process_was_stopped_is_no_wait() -> None:
    talk = Talk(broken(timed_out=True, timed_out_here=True), status(503), rules(), took=600.0)
    assert talk.times == [0, 601]
    talk = Talk(broken(timed_out=True, timed_out_here=True), status(503), rules())
    assert (talk.times, talk.allows) == ([0, 1, 1 + FIRST], BY_RULES)


def test_stale_rules_decide_so_requests_do_not_wait() -> None:
    known = Entry(ROBOTS, copy_of(until=NOW - 1))
    talk = Talk(status(503), known=known)
    assert (talk.times, talk.allows) == ([0], BY_RULES)


# What is known before.


def copy_of(until: float) -> StoredResponse:
    robots = parse(RULES.decode())
    answer = Answer(ROBOTS, 200, AccessResult.SUCCESS, "HTTP 200")
    return StoredResponse(answer, NOW - DAY, until, robots, sha256="1" * 64)


KNOWN = Entry(ROBOTS, copy_of(until=NOW - 1))


@pytest.mark.parametrize("answer", [rules(), status(404), status(503), broken()])
def test_an_entry_keeps_what_an_answer_means_and_not_its_body(answer: Answer) -> None:
    received = replace(answer, body=RULES, address="192.0.2.1", retry_after=60.0)
    talk = Talk(received)
    last, (hop,) = talk.entry.last, talk.rounds[0].hops
    assert (last.status, last.reason, last.ended_at) == (answer.status, answer.reason or f"HTTP {answer.status}", NOW)
    assert (last.body, last.address, last.retry_after) == (b"", None, 0.0)
    assert hop.body == (RULES if answer.status == 200 else b""), "only a success keeps its body"


@pytest.mark.parametrize(("answer", "digest"), [(rules(), sha256(RULES).hexdigest()), (status(404), "")])
def test_a_new_answer_replaces_the_known_one(answer: Answer, digest: str) -> None:
    stored = Talk(answer, known=KNOWN).entry.stored
    assert stored is not None
    assert (stored.answer.status, stored.received_at, stored.sha256) == (answer.status, NOW, digest)


def test_what_another_crawler_has_just_fetched_is_not_requested() -> None:
    fresh = Entry(ROBOTS, replace(copy_of(until=NOW + HOUR), received_at=NOW - HOUR))
    steps, its_round = conversation(ORIGIN, None, NOW, TERMS), Round(TERMS.policy_at(fresh, NOW), None)
    assert next(steps) == Find(None)
    assert steps.send(Found(fresh, is_to_fetch=False, at=NOW)) == its_round
    assert next(conversation(ORIGIN, fresh, NOW, TERMS)) == its_round, "nor what this crawl knows"


# A cache of the crawl.

REPLAY = Caching(no_store=True, date=NOW - 300 * DAY)


def test_a_replay_decides_for_the_least_time_and_is_not_shared() -> None:
    talk = Talk(rules(replayed=True, caching=REPLAY))
    stored = talk.entry.stored
    assert stored is not None
    assert (talk.allows, len(talk.asked), stored.fresh_until) == (BY_RULES, 1, NOW + HOUR)
    assert talk.rounds[-1].shared is None
    assert Talk(to("https://a.example/r", replayed=True), rules()).rounds[-1].shared is None, (
        "after a replayed redirect"
    )


@pytest.mark.parametrize(
    "failure",
    [status(503), status(503, retry_after=60.0), status(403, sign="Cloudflare"), status(301)],
)
def test_a_replayed_failure_is_requested_past_the_cache(failure: Answer) -> None:
    replay = replace(failure, replayed=True, caching=REPLAY)
    talk = Talk(replay, rules(), terms=replace(TERMS, unreachable_wait=0.0))
    assert [ask.was_requested_before for ask in talk.asked] == [False, True]
    assert talk.allows == BY_RULES
    assert len(Talk(replay, terms=replace(TERMS, unreachable_wait=0.0)).asked) == 2, "only once"


@pytest.mark.parametrize(("known", "allows"), [(None, ALL), (Entry(ROBOTS, copy_of(until=NOW - 1)), BY_RULES)])
def test_a_replay_replaces_no_fetched_answer(known: Entry | None, allows: list[bool]) -> None:
    """A cache that knows no `dont_cache` replays an old file without rules."""
    talk = Talk(status(404, replayed=True, caching=REPLAY), known=known)
    assert (talk.allows, len(talk.asked)) == (allows, 1)
    stored = talk.entry.stored
    assert stored is not None
    assert stored.fresh_until == NOW + HOUR
    if known is not None and known.stored is not None:
        assert stored == replace(known.stored, received_at=NOW, fresh_until=NOW + HOUR, forbids_store=True)
    assert Talk(status(404, replayed=True, caching=REPLAY), known=talk.entry).allows == allows, "nor later"


def test_a_replay_replaces_an_earlier_replay() -> None:
    known = Talk(status(404, replayed=True, caching=REPLAY)).entry
    assert known.stored is not None
    known = replace(known, stored=replace(known.stored, fresh_until=NOW - 1))
    talk = Talk(rules(replayed=True, caching=REPLAY), known=known)
    assert talk.allows == BY_RULES
    assert not talk.asked[0].was_requested_before, "the site has not seen the request for the replay"


def test_a_fetched_answer_replaces_a_replay() -> None:
    known = Talk(status(404, replayed=True, caching=REPLAY)).entry
    assert known.stored is not None
    talk = Talk(rules(), known=replace(known, stored=replace(known.stored, fresh_until=NOW - 1)))
    assert talk.allows == BY_RULES
    assert talk.rounds[-1].shared is talk.entry


def test_a_verdict_has_the_time_of_the_answer_that_decided_not_of_the_redirect_before_it() -> None:
    received = Talk(TO_B, rules(), took=1.0).rounds[-1].policy.verdict("https://a.example/x", "bot").received
    assert received is not None
    assert received.at == NOW + 2
