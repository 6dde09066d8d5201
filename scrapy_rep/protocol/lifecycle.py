"""What an origin's entry means for its requests, and what a fetch makes of it (RFC 9309 2.3.1.4, 2.4; RFC 9111 4).

An entry is all that is remembered of an origin: the last usable answer (`stored`), and the failures since (`outage`).
It has no state of its own. What it means follows from it and the time:

    1. `state_of` says in which state the origin is. The stored answer goes first: while it is fresh, it decides,
       whatever failed meanwhile. Else the outage counts, and how long it has lasted.
    2. POLICY_OF_STATE says of the state what decides about requests (`Basis`), and when robots.txt is fetched again
       (`Refetch`): before the request is decided, while it goes on, or not yet.
    3. A fetch ends with an answer or a failure, and `after_fetch` says what becomes of the entry: the answer replaces
       it, or an outage begins or goes on. An outage never deletes the stored answer: its rules may be obeyed past
       their time (2.4).

The table is total, and every row has its source. `RobotsPolicy` is what an entry means for a while: from `at` until
`until`, the first moment at which another row may hold. So a request to a known origin costs two comparisons.

What is not good about it yet: a stored answer from the future (a clock was ahead) is taken for STALE, as if its time
were over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from scrapy_rep.protocol.access_result import AccessResult, Answer
from scrapy_rep.protocol.dot_segments import other_readings
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import MAX_LIFETIME, refresh_from
from scrapy_rep.protocol.outage import CLOCK_SKEW, MAX_UNSEEN, outage_after
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Received, Verdict, VerdictReason


class State(Enum):
    """What is known of an origin's robots.txt at a moment."""

    UNKNOWN = "nothing is known"
    FRESH = "the stored response is within its lifetime"
    AGEING = "the stored response is in the last tenth of its lifetime"
    STALE = "the stored response is past its lifetime, and nobody has tried to fetch since"
    UNREACHABLE = "robots.txt is unreachable, and no rules are stored that may be used past their lifetime"
    UNREACHABLE_STALE = "robots.txt is unreachable, and the stored rules are obeyed past their lifetime"
    LONG_UNREACHABLE = "robots.txt has been unreachable for too long, and no rules are stored"


class Basis(Enum):
    """What decides about a request."""

    NOTHING_ALLOWED = "nothing is allowed"
    STORED = "the stored response"
    EVERYTHING_ALLOWED = "everything is allowed"


# What the crawl does with an origin that is unreachable, and where that is specified.
OUTAGE_WORDS: Mapping[Basis, tuple[str, str]] = {
    Basis.NOTHING_ALLOWED: ("nothing of its origin is fetched", "RFC 9309 2.3.1.4"),
    Basis.STORED: ("its last known rules are still obeyed", "RFC 9309 2.4"),
    Basis.EVERYTHING_ALLOWED: ("after so long, everything is allowed", "RFC 9309 2.3.1.4"),
}


class Refetch(Enum):
    """When robots.txt is fetched again."""

    FIRST = "before the request is decided"
    MEANWHILE = "while the request goes on, once the backoff of an outage is over"
    NOT = "not yet"


# For a request: each row with its source.
POLICY_OF_STATE: Mapping[State, tuple[Basis, Refetch, str]] = {
    State.UNKNOWN: (Basis.NOTHING_ALLOWED, Refetch.FIRST, "RFC 9309 2.3"),
    State.FRESH: (Basis.STORED, Refetch.NOT, "RFC 9309 2.4; RFC 9111 4.2"),
    State.AGEING: (Basis.STORED, Refetch.MEANWHILE, "so that nobody waits; RFC 9111 4.2 allows a fetch at any time"),
    State.STALE: (Basis.NOTHING_ALLOWED, Refetch.FIRST, "RFC 9111 4.2.4; RFC 9309 2.4"),
    State.UNREACHABLE: (Basis.NOTHING_ALLOWED, Refetch.MEANWHILE, "RFC 9309 2.3.1.4: 'disallow'; RFC 9111 4.2.4"),
    State.UNREACHABLE_STALE: (Basis.STORED, Refetch.MEANWHILE, "RFC 9309 2.4: 'unless ... unreachable'; 2.3.1.4"),
    State.LONG_UNREACHABLE: (Basis.EVERYTHING_ALLOWED, Refetch.MEANWHILE, "RFC 9309 2.3.1.4: 'MAY assume'"),
}


@dataclass(frozen=True, slots=True)
class RobotsPolicy:
    """What an entry means from one moment to another."""

    entry: Entry
    state: State
    basis: Basis
    refetch: Refetch
    """By the state; but NOT during the backoff of an outage, unless requests wait for its end (FIRST)."""
    at: float
    """Seconds since the epoch. Before that moment (the clock was set back) the policy does not hold."""
    until: float
    """Seconds since the epoch, the first moment at which it may no longer hold."""
    robots: RobotsTxt | None
    """The rules that are obeyed; None if there are none."""

    @property
    def is_fetch_due(self) -> bool:
        """Whether robots.txt is fetched again, and not only after the backoff of an outage."""
        outage = self.entry.outage
        is_backing_off = outage is not None and outage.is_backing_off_at(self.at)
        return self.refetch is not Refetch.NOT and not is_backing_off

    def pause_at(self, now: float, left: float, *, may_be_last: bool) -> float | None:
        """Seconds until the next fetch that requests wait for, while nothing is allowed because of an outage; None if
        they wait for none. Arguments as of `Outage.pause_at`."""
        outage = self.entry.outage_at(now) if self.basis is Basis.NOTHING_ALLOWED else None
        return outage.pause_at(now, left, may_be_last=may_be_last) if outage is not None else None

    @property
    def access(self) -> AccessResult:
        """What the origin's robots.txt counts as."""
        if self.basis is Basis.STORED and self.entry.stored is not None:
            return self.entry.stored.access
        return AccessResult.UNAVAILABLE if self.basis is Basis.EVERYTHING_ALLOWED else AccessResult.UNREACHABLE

    def verdict(self, url: str, product_token: str | Sequence[str]) -> Verdict:
        """Whether the crawler may fetch the URL, and why; arguments and errors as of `RobotsTxt.verdict`.

        A URL with dot segments may not be fetched if its other readings may not.
        """
        verdict = self._verdict(url, product_token)
        for reading in other_readings(url) if verdict.allowed else ():
            other = self._verdict(reading, product_token)
            if not other.allowed:
                return replace(other, read_as=reading)
        return verdict

    def _verdict(self, url: str, product_token: str | Sequence[str]) -> Verdict:
        """On the URL as it is written."""
        if self.robots is not None:
            found = self.robots.verdict(url, product_token)
        elif is_robots_txt(url):
            found = Verdict(True, VerdictReason.NOT_SUBJECT)
        else:
            # After a long outage everything is allowed, and the outage is still the reason.
            reason = self.access if self.basis is Basis.STORED else AccessResult.UNREACHABLE
            found = Verdict(self.access is AccessResult.UNAVAILABLE, VerdictReason(reason.value))
        return Verdict(  # five times as fast as `replace`
            found.allowed,
            found.reason,
            found.rule,
            found.product_token,
            self.access,
            self.entry.robots_url,
            self.entry.reason,
            self._received,
        )

    def allows(self, url: str, product_token: str | Sequence[str]) -> bool:
        """Whether `verdict` allows it, faster."""
        robots = self.robots
        if robots is not None:
            allowed = robots.allows(url, product_token)
            if not allowed or ("/." not in url and "/%2" not in url):  # for the hot path, as in `other_readings`
                return allowed
            return all(robots.allows(other, product_token) for other in other_readings(url))
        return self.access is AccessResult.UNAVAILABLE or is_robots_txt(url)

    @property
    def _received(self) -> Received | None:
        stored = self.entry.stored
        if stored is None or self.basis is not Basis.STORED:
            return None
        return Received(stored.url, stored.received_at, stored.sha256)


def state_of(entry: Entry | None, now: float, unreachable_for: float) -> State:
    """The state at `now`; `unreachable_for`: seconds of an outage after which it has been too long (2.3.1.4)."""
    if entry is None:
        return State.UNKNOWN
    stored, outage = entry.stored, entry.outage_at(now)
    if stored is not None and now < stored.fresh_until and _is_plausible(stored, now):
        return State.AGEING if now >= refresh_from(stored.received_at, stored.fresh_until) else State.FRESH
    if outage is None:
        return State.UNKNOWN if stored is None else State.STALE
    too_long = outage.is_too_long_at(now, unreachable_for)
    if stored is None or stored.robots is None:
        unreachable = State.LONG_UNREACHABLE if too_long else State.UNREACHABLE
    else:
        # 2.3.1.4: after a long time "continue to use a cached copy", whatever forbade it: the alternative has no rules.
        unreachable = State.UNREACHABLE if stored.forbids_stale and not too_long else State.UNREACHABLE_STALE
    # If the last failure was while the stored response was fresh, no request has waited for a fetch yet.
    is_new = stored is not None and outage.asked_at < stored.fresh_until
    return State.STALE if is_new and unreachable is State.UNREACHABLE else unreachable


def policy_at(entry: Entry, now: float, unreachable_for: float, wait: float = 0.0) -> RobotsPolicy:
    """What the entry means at `now`. `wait`: seconds for which requests wait in an outage (REP_UNREACHABLE_WAIT)."""
    state = state_of(entry, now, unreachable_for)
    basis, refetch, _source = POLICY_OF_STATE[state]
    outage = entry.outage_at(now)
    if outage is not None and outage.is_backing_off_at(now):
        is_awaited = outage.pause_at(now, wait, may_be_last=False) is not None
        refetch = Refetch.FIRST if refetch is Refetch.FIRST and is_awaited else Refetch.NOT
    until = _next_turn(entry, now, unreachable_for, wait)
    robots = entry.stored.robots if entry.stored is not None and basis is Basis.STORED else None
    return RobotsPolicy(entry, state, basis, refetch, now, until, robots)


def _is_plausible(stored: StoredResponse, now: float) -> bool:
    """Whether its times may be true; not if they were written by a clock that was ahead, or before it was set back."""
    return stored.received_at <= now + CLOCK_SKEW and stored.fresh_until <= stored.received_at + MAX_LIFETIME


def _next_turn(entry: Entry, now: float, unreachable_for: float, wait: float) -> float:
    """The first moment after `now` at which the entry may come to mean something else; `now` if there is none."""
    moments: list[float] = []
    if entry.stored is not None:
        received_at, fresh_until = entry.stored.received_at, entry.stored.fresh_until
        moments += [received_at - CLOCK_SKEW, refresh_from(received_at, fresh_until), fresh_until]
    if entry.outage is not None:
        since, asked_at, ask_again_at = entry.outage.since, entry.outage.asked_at, entry.outage.ask_again_at
        moments += [asked_at - CLOCK_SKEW, asked_at + MAX_UNSEEN, since + unreachable_for]
        moments += [ask_again_at - wait, ask_again_at]
    return min([moment for moment in moments if moment > now], default=now)


def after_fetch(entry: Entry | None, robots_url: str, result: StoredResponse | Answer, now: float) -> Entry:
    """The origin's new entry, from the entry before and a fetch that ended at `now`: with a response to be stored, or
    with an answer that is UNREACHABLE.

    A response replaces everything; after a 304 it is the stored one, with another lifetime. A failure leaves the stored
    response, whose rules may be obeyed past their time (2.4).
    """
    if isinstance(result, StoredResponse):
        return Entry(robots_url, result)
    before = entry.outage_at(now) if entry is not None else None
    return Entry(robots_url, entry.stored if entry is not None else None, outage_after(before, result, now))
