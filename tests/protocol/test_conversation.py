"""One fetch of a robots.txt as a conversation: what is requested, when, and what the answers mean together.

Each test is a list of answers. Crawl tests show only that a crawl holds such a conversation (`tests/crawls`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from asking import TOKEN, parse

from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.conversation import RETRY_DELAY, Ask, Find, Found, Round, Terms, conversation, judged
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import DAY, Caching
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.status_policy import RFC9309
from scrapy_rep.protocol.words import AccessResult

HOUR = 3_600.0
TERMS = Terms(
    status_policy=RFC9309,
    redirect_private=False,
    lifetime_min=HOUR,
    body_limit=512_000,
    fetch_retries=0,
    unreachable_wait=30.0,
    unreachable_for=30 * DAY,
)
RETRIES = TERMS._replace(fetch_retries=1)
ORIGIN = Origin("https", "a.example", None)
ROBOTS = ORIGIN.robots_url
NOW = 1_700_000_000.0
RULES = b"User-agent: *\nDisallow: /private\n"
NO_RULES = "everything", "nothing"


class Talk:
    """Plays the servers and the clock of one conversation. Each request takes `took` seconds."""

    def __init__(self, *answers: Answer, terms: Terms = TERMS, known: Entry | None = None, took: float = 0.0) -> None:
        self.asked: list[Ask] = []
        self.times: list[float] = []
        """When each request was made, in seconds since the beginning."""
        self.rounds: list[Round] = []
        self._answers = [*answers]
        self._now, self._took = NOW, took
        steps = conversation(ORIGIN, known, NOW, terms)
        step: Any = next(steps)
        while not (isinstance(step, Round) and step.pause is None):
            step = steps.send(self._result(step, terms))
        self.rounds.append(step)

    def _result(self, step: Find | Ask | Round, terms: Terms) -> Any:
        if isinstance(step, Find):
            return Found(step.known, is_to_fetch=True, at=self._now)
        if isinstance(step, Round):
            self.rounds.append(step)
            self._now += step.pause or 0.0
            return self._now
        self._now += RETRY_DELAY if step.reason else 0.0
        self.asked.append(step)
        self.times.append(self._now - NOW)
        received = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        self._now += self._took
        received = replace(received, url=step.url, seconds=self._took, ended_at=self._now)
        if received.status is not None and not received.replayed:
            received = replace(received, received_at=self._now)
        return judged(received, step, terms)

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
    pytest.param(status(403), AccessResult.UNAVAILABLE, ALL, id="2.3.1.3-403"),
    pytest.param(status(429), AccessResult.UNREACHABLE, NONE, id="RFC6585-4-429"),
    pytest.param(status(407), AccessResult.UNREACHABLE, NONE, id="RFC9110-15.5.8-407"),
    pytest.param(status(202), AccessResult.UNREACHABLE, NONE, id="RFC9110-15.3.3-202"),
    pytest.param(status(206, body=RULES), AccessResult.UNREACHABLE, NONE, id="RFC9110-15.3.7-206"),
    pytest.param(status(500), AccessResult.UNREACHABLE, NONE, id="2.3.1.4-500"),
    pytest.param(status(304), AccessResult.UNREACHABLE, NONE, id="2.3.1.4-304-without-a-condition"),
    pytest.param(status(700), AccessResult.UNREACHABLE, NONE, id="2.3.1.4-no-status-of-http"),
    pytest.param(broken(), AccessResult.UNREACHABLE, NONE, id="2.3.1.4-no-answer"),
    pytest.param(status(200, body=RULES, sign="Cloudflare"), AccessResult.UNREACHABLE, NONE, id="a-challenge"),
]


@pytest.mark.parametrize(("answer", "access", "allows"), MEANINGS)
def test_what_an_answer_means(answer: Answer, access: AccessResult, allows: list[bool]) -> None:
    talk = Talk(answer, terms=TERMS._replace(unreachable_wait=0.0))
    assert (talk.urls, talk.entry.access, talk.allows) == ([ROBOTS], access, allows)


# Redirects (RFC 9309 2.3.1.2).


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed_across_authorities(code: int) -> None:
    talk = Talk(to("https://b.example/r.txt", code), rules())
    assert talk.urls == [ROBOTS, "https://b.example/r.txt"]
    assert talk.allows == BY_RULES
    assert talk.entry.robots_url == ROBOTS
    assert talk.entry.stored is not None
    assert talk.entry.stored.url == "https://b.example/r.txt"


@pytest.mark.parametrize(
    ("hops", "asked", "access", "allows"),
    [
        pytest.param(5, 6, AccessResult.SUCCESS, BY_RULES, id="2.3.1.2-five-are-followed"),
        pytest.param(6, 6, AccessResult.UNAVAILABLE, ALL, id="2.3.1.2-a-sixth-is-not"),
    ],
)
def test_how_many_redirects_are_followed(hops: int, asked: int, access: AccessResult, allows: list[bool]) -> None:
    talk = Talk(*(to(f"https://a.example/{hop}") for hop in range(hops)), rules())
    assert (len(talk.asked), talk.entry.access, talk.allows) == (asked, access, allows)


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
    talk = Talk(*answers, terms=TERMS._replace(unreachable_wait=0.0))
    assert (talk.entry.access, talk.entry.last.reason, talk.allows) == (AccessResult.UNREACHABLE, reason, NONE)


def test_redirect_private_follows_to_private_hosts() -> None:
    talk = Talk(to("http://10.0.0.1/"), rules(address="10.0.0.1"), terms=TERMS._replace(redirect_private=True))
    assert talk.allows == BY_RULES


def test_the_strictest_terms_of_a_chain_count() -> None:
    talk = Talk(to("https://b.example/", caching=Caching(no_store=True, max_age=7_200.0)), rules(), took=5.0)
    stored = talk.entry.stored
    assert stored is not None
    assert (stored.received_at, stored.fresh_until) == (NOW + 5, NOW + 5 + HOUR), "no-store: REP_LIFETIME_MIN"
    assert stored.forbids_store


# Retries (REP_FETCH_RETRIES).


@pytest.mark.parametrize(
    ("failure", "times"),
    [
        pytest.param(broken(), [0, 1], id="no-answer"),
        pytest.param(status(503), [0, 1], id="503"),
        pytest.param(broken(timed_out=True), [0], id="a-time-out"),
        pytest.param(status(503, retry_after=2.0), [0], id="retry-after"),
        pytest.param(status(503, sign="Cloudflare"), [0], id="a-challenge"),
        pytest.param(broken(dropped=True), [0], id="dropped-by-a-middleware"),
        pytest.param(status(429), [0], id="429"),
        pytest.param(status(404), [0], id="404"),
    ],
)
def test_which_requests_are_repeated_at_once(failure: Answer, times: list[float]) -> None:
    assert Talk(failure, terms=RETRIES._replace(unreachable_wait=0.0)).times == times


def test_each_hop_of_a_redirect_has_its_own_retries_and_later_requests_skip_the_http_cache() -> None:
    talk = Talk(status(500), to("https://b.example/"), status(500), rules(), terms=RETRIES)
    assert talk.times == [0, 1, 1, 2]
    assert [(ask.is_repeated, ask.reason) for ask in talk.asked] == [
        (False, ""),
        (True, "HTTP 500"),
        (False, ""),
        (True, "HTTP 500"),
    ]
    assert talk.allows == BY_RULES


# Rounds: how long requests wait (REP_UNREACHABLE_WAIT).


@pytest.mark.parametrize(
    ("failure", "terms", "took", "times"),
    [
        pytest.param(status(503), TERMS, 0.0, [0, 5, 15, 30], id="always-503"),
        pytest.param(status(503), RETRIES, 0.0, [0, 1, 5, 15, 30], id="with-a-retry"),
        pytest.param(status(503), TERMS, 0.4, [0, 5, 15, 30], id="answers-that-take-0.4-s"),
        pytest.param(status(503), TERMS, 8.0, [0, 8, 18], id="answers-that-take-8-s"),
        pytest.param(broken(), TERMS, 0.0, [0, 5, 15, 30], id="no-answer"),
        pytest.param(status(503), TERMS._replace(unreachable_wait=0.0), 0.0, [0], id="requests-do-not-wait"),
        pytest.param(status(503), TERMS._replace(unreachable_wait=20.0), 0.0, [0, 5, 15], id="a-shorter-wait"),
        pytest.param(status(503), TERMS._replace(unreachable_wait=60.0), 0.0, [0, 5, 15, 30, 60], id="a-longer-wait"),
        pytest.param(broken(timed_out=True), TERMS, 30.0, [0], id="no-round-follows-a-time-out"),
        pytest.param(status(503, retry_after=12.0), TERMS, 0.0, [0, 12, 24], id="RFC9110-10.2.3-retry-after"),
        pytest.param(status(503, retry_after=60.0), TERMS, 0.0, [0], id="RFC9110-10.2.3-retry-after-beyond-the-wait"),
        pytest.param(broken(dropped=True), TERMS, 0.0, [0], id="dropped-by-a-middleware"),
        pytest.param(status(429), TERMS, 0.0, [0, 5, 15, 30], id="RFC6585-4-429"),
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
    assert (talk.times, talk.allows) == ([0, 5, 15], BY_RULES)
    assert [one.pause for one in talk.rounds] == [5, 10, None]


def test_a_known_outage_is_waited_for_before_the_first_request() -> None:
    known = Talk(status(503), terms=TERMS._replace(unreachable_wait=0.0)).entry
    talk = Talk(status(503), known=known)
    assert talk.times == [5, 15, 30]
    assert talk.rounds[0].hops == (), "nothing was requested in the first round"


def test_stale_rules_decide_so_requests_do_not_wait() -> None:
    known = Entry(ROBOTS, copy_of(until=NOW - 1))
    talk = Talk(status(503), known=known)
    assert (talk.times, talk.allows) == ([0], BY_RULES)


# Confirmation (RFC 9111 4.3).

ETAG = Caching(etag='"1"')


def copy_of(until: float, caching: Caching = ETAG, url: str = ROBOTS) -> StoredResponse:
    robots = parse(RULES.decode())
    return StoredResponse(
        AccessResult.SUCCESS, "HTTP 200", robots, NOW - DAY, until, 200, url=url, caching=caching, sha256="1" * 64
    )


KNOWN = Entry(ROBOTS, copy_of(until=NOW - 1))


def test_a_stored_answer_is_confirmed() -> None:
    talk = Talk(status(304, caching=Caching(max_age=7_200.0)), known=KNOWN)
    (ask,) = talk.asked
    assert (ask.validators, ask.is_repeated) == (ETAG, True)
    stored, last = talk.entry.stored, talk.rounds[-1]
    assert stored is not None
    assert (last.is_confirmed, stored.robots, stored.sha256) == (True, KNOWN.stored and KNOWN.stored.robots, "1" * 64)
    assert (stored.received_at, stored.fresh_until, stored.caching.etag) == (NOW, NOW + 7_200, '"1"')


@pytest.mark.parametrize(
    ("answers", "known", "validators"),
    [
        pytest.param([status(304, caching=Caching(etag='"2"')), rules()], KNOWN, [ETAG, None], id="another-etag"),
        pytest.param([status(412), rules()], KNOWN, [ETAG, None], id="412"),
        pytest.param([rules()], KNOWN, [ETAG], id="a-new-answer"),
        pytest.param([rules()], Entry(ROBOTS, copy_of(NOW - 1, Caching())), [None], id="no-validators"),
        pytest.param(
            [to("https://b.example/"), rules()],
            Entry(ROBOTS, copy_of(NOW - 1, url="https://b.example/")),
            [None, ETAG],
            id="validators-of-another-url",
        ),
    ],
)
def test_when_the_server_is_asked_for_confirmation(
    answers: Sequence[Answer], known: Entry, validators: list[Caching | None]
) -> None:
    talk = Talk(*answers, known=known)
    assert [ask.validators for ask in talk.asked] == validators
    assert not talk.rounds[-1].is_confirmed
    assert talk.allows == BY_RULES


# The crawl's HTTP cache.


@pytest.mark.parametrize(
    ("replay", "repeated"),
    [
        pytest.param(rules(replayed=True, received_at=NOW - HOUR / 2), [False], id="fresh"),
        pytest.param(rules(replayed=True, received_at=NOW - 2 * DAY), [False, True], id="too-old"),
        pytest.param(status(503, replayed=True, received_at=NOW), [False, True], id="a-failure"),
        pytest.param(rules(replayed=True, offline=True, received_at=NOW), [False], id="offline"),
        pytest.param(
            status(503, replayed=True, offline=True, received_at=NOW), [False], id="a-failure-in-an-offline-crawl"
        ),
    ],
)
def test_a_replay_that_cannot_decide_is_requested_past_the_http_cache(replay: Answer, repeated: list[bool]) -> None:
    talk = Talk(replay, rules(), terms=TERMS._replace(unreachable_wait=0.0))
    assert [ask.is_repeated for ask in talk.asked] == repeated


def test_rules_that_were_replayed_too_late_are_obeyed_if_the_server_is_down() -> None:
    talk = Talk(rules(replayed=True, received_at=NOW - 2 * DAY), status(503))
    assert talk.allows == BY_RULES
