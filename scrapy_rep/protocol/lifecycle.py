"""The states of an origin (fresh, stale, unreachable, unreachable for 30 days): what each means, what changes it.

The sources are RFC 9309 2.3.1.4 and 2.4, and RFC 9111 4. An entry has the last usable answer (`stored`) and the
failures after it (`outage`).

    1. `state_of` returns the state at a moment. While the stored answer is fresh, it decides, even if a later fetch
       failed. After it expires, the state depends on the length of the outage and on what is stored.
    2. POLICY_OF_STATE has, for each state, what decides about requests (`Basis`), and when robots.txt is fetched again
       (`Refetch`).
    3. `policy_at` returns the RobotsPolicy of an entry: its row of the table, and the times between which the row
       applies. So a request only has to compare times.
    4. `after_fetch` returns the new entry after a fetch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import DAY, MAX_LIFETIME, refresh_from
from scrapy_rep.protocol.outage import CLOCK_SKEW, MAX_UNSEEN, outage_after
from scrapy_rep.protocol.readings import other_readings, strictest
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Received, Verdict, VerdictReason
from scrapy_rep.protocol.status_policy import StatusRow


class State(Enum):
    """What the crawler knows about an origin's robots.txt at a moment."""

    UNKNOWN = "nothing is known that decides"
    FRESH = "the stored response has not expired"
    AGEING = "the stored response is in the last tenth of its lifetime"
    STALE = "the stored response has expired, and no failure since then has a backoff"
    UNREACHABLE = "robots.txt is unreachable, and there are no stored rules that may be used after they expire"
    UNREACHABLE_STALE = "robots.txt is unreachable, and the stored rules are obeyed although they have expired"
    LONG_UNREACHABLE = "robots.txt has been unreachable for too long, and no rules are stored"


class Basis(Enum):
    """What decides about a request."""

    NOTHING_ALLOWED = "nothing is allowed"
    STORED = "the stored response"
    EVERYTHING_ALLOWED = "everything is allowed"


class Refetch(Enum):
    """When robots.txt is fetched again."""

    FIRST = "before the request is decided"
    MEANWHILE = "in the background; in an outage, after the backoff"
    NOT = "not yet"


# What each state means for a request, and where that is specified.
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
    """What an entry means for requests from the time `at` to the time `until`, in seconds since the epoch."""

    entry: Entry
    state: State
    basis: Basis
    refetch: Refetch
    """When robots.txt is fetched again: the value in POLICY_OF_STATE. During a backoff, it is NOT. There is one
    exception: it is still FIRST if the backoff is so short that requests wait for its end (`Outage.pause_at`)."""
    at: float
    until: float
    robots: RobotsTxt | None
    """The rules that are obeyed; None if there are no rules."""

    @property
    def is_fetch_due(self) -> bool:
        """Whether robots.txt is to be fetched now, not after a backoff."""
        outage = self.entry.outage_at(self.at)
        return self.refetch is not Refetch.NOT and (outage is None or not outage.rest_at(self.at))

    def pause_at(self, now: float, left: float) -> float | None:
        """Return `Outage.pause_at` if the basis is NOTHING_ALLOWED; else None, because requests need not wait."""
        outage = self.entry.outage_at(now) if self.basis is Basis.NOTHING_ALLOWED else None
        return outage.pause_at(now, left) if outage is not None else None

    @property
    def access(self) -> AccessResult:
        """The access result by which the crawler treats the origin."""
        if self.basis is Basis.STORED and self.entry.stored is not None:
            return self.entry.stored.answer.access
        return AccessResult.UNAVAILABLE if self.basis is Basis.EVERYTHING_ALLOWED else AccessResult.UNREACHABLE

    def verdict(self, url: str, product_token: str | Sequence[str]) -> Verdict:
        """Return whether the crawler may fetch the URL, and why. The arguments are those of `RobotsTxt.verdict`.

        A URL is allowed only if its other readings are allowed, too (`readings`).
        """
        verdict = strictest(url, lambda reading: self._verdict(reading, product_token))
        entry = self.entry
        stored = entry.stored if self.basis is Basis.STORED else None
        return replace(
            verdict,
            access=self.access,
            robots_url=entry.robots_url,
            final_url=stored.answer.url if stored is not None else entry.last.url,
            answer=entry.last.reason,
            received=Received(stored.answer.url, stored.answer.ended_at, stored.sha256) if stored is not None else None,
            error=entry.last.error if self.basis is Basis.NOTHING_ALLOWED else None,
        )

    def _verdict(self, url: str, product_token: str | Sequence[str]) -> Verdict:
        """Return the verdict on the URL as it is written, without its other readings."""
        if self.robots is not None:
            return self.robots.verdict(url, product_token)
        if is_robots_txt(url):
            return Verdict(True, VerdictReason.NOT_SUBJECT)
        # After a long outage everything is allowed, but the reason is still UNREACHABLE.
        reason = self.access if self.basis is Basis.STORED else AccessResult.UNREACHABLE
        return Verdict(self.access is AccessResult.UNAVAILABLE, VerdictReason(reason.value))

    def allows(self, url: str, product_token: str | Sequence[str]) -> bool:
        """Whether `verdict` allows the URL. This is faster than `verdict`."""
        if self.robots is None:
            return self.access is AccessResult.UNAVAILABLE or is_robots_txt(url)
        allowed = self.robots.allows(url, product_token)
        others = other_readings(url) if allowed else ()
        return all(self.robots.allows(other, product_token) for other in others) if others else allowed


def state_of(entry: Entry | None, now: float, unreachable_for: float) -> State:
    """Return the state at `now`. `unreachable_for` is REP_UNREACHABLE_DAYS in seconds."""
    stored, outage = (entry.stored, entry.outage_at(now)) if entry is not None else (None, None)
    state = _state_without_outage(stored, now)
    if outage is None or state in {State.FRESH, State.AGEING}:
        return state
    is_long = now - outage.since >= unreachable_for
    # 2.3.1.4: after a long time, "continue to use a cached copy". This applies even to rules that must not be used
    # after they expire, because otherwise everything would be allowed.
    if stored is not None and stored.robots is not None and (is_long or not stored.forbids_stale):
        return State.UNREACHABLE_STALE
    if is_long:
        return State.LONG_UNREACHABLE
    # Requests are refused at once only if some request has waited for the fetch that failed. After two kinds of
    # failure, the next request waits for a new fetch instead: after one that came while the stored response was fresh
    # (the fetch was in the background, so nobody waited), and after one without a backoff (a proxy has failed, and this
    # request may have another proxy). The state is then the same as if there were no outage. (Until a backoff ends,
    # `policy_at` refuses the request if the failure was a time-out, or the backoff ends after REP_UNREACHABLE_WAIT.)
    if outage.has_backoff and (stored is None or outage.answer.ended_at >= stored.fresh_until):
        return State.UNREACHABLE
    return state


def _state_without_outage(stored: StoredResponse | None, now: float) -> State:
    if stored is None:
        return State.UNKNOWN
    # If a clock was ahead or was set back, the times may be impossible. Then the response counts as expired.
    if not stored.received_at - CLOCK_SKEW <= now < stored.fresh_until <= stored.received_at + MAX_LIFETIME:
        return State.STALE
    return State.AGEING if now >= refresh_from(stored.received_at, stored.fresh_until) else State.FRESH


def policy_at(entry: Entry, now: float, unreachable_for: float, wait: float = 0.0) -> RobotsPolicy:
    """Return what the entry means at `now`. `unreachable_for` is as in `state_of`; `wait` is REP_UNREACHABLE_WAIT."""
    state = state_of(entry, now, unreachable_for)
    basis, refetch, _source = POLICY_OF_STATE[state]
    outage = entry.outage_at(now)
    is_awaited = refetch is Refetch.FIRST and outage is not None and outage.pause_at(now, wait) is not None
    if outage is not None and outage.rest_at(now) and not is_awaited:
        refetch = Refetch.NOT
    until = _next_change(entry, now, unreachable_for, wait)
    robots = entry.stored.robots if entry.stored is not None and basis is Basis.STORED else None
    return RobotsPolicy(entry, state, basis, refetch, now, until, robots)


def _next_change(entry: Entry, now: float, unreachable_for: float, wait: float) -> float:
    """Return the first time after `now` at which the entry may mean something else; `now` if there is none."""
    moments: list[float] = []
    if entry.stored is not None:
        received_at, fresh_until = entry.stored.received_at, entry.stored.fresh_until
        moments += [received_at - CLOCK_SKEW, refresh_from(received_at, fresh_until), fresh_until]
    if entry.outage is not None:
        failed_at, fetch_again_at = entry.outage.answer.ended_at, entry.outage.fetch_again_at
        moments += [failed_at - CLOCK_SKEW, failed_at + MAX_UNSEEN, entry.outage.since + unreachable_for]
        moments += [fetch_again_at - wait, fetch_again_at]
    return min([moment for moment in moments if moment > now], default=now)


def after_fetch(entry: Entry | None, robots_url: str, result: StoredResponse | Answer) -> Entry:
    """Return the origin's entry after a fetch.

    `entry` is the entry before the fetch. `result` is a response to store, or an answer that is UNREACHABLE. A response
    replaces the whole entry. A failure begins or continues an outage, and keeps the stored response, because expired
    rules are obeyed during an outage (2.4).
    """
    if isinstance(result, StoredResponse):
        return Entry(robots_url, result)
    before = entry.outage_at(result.ended_at) if entry is not None else None
    return Entry(robots_url, entry.stored if entry is not None else None, outage_after(before, result))


@dataclass(frozen=True, slots=True)
class Terms:
    """Each field is the value of the setting of this name, such as REP_BODY_LIMIT. `settings.RepSettings` is a subclass
    that has the defaults and the checks."""

    status_policy: Sequence[StatusRow]
    max_redirects: int
    redirect_private: bool
    lifetime_min: float
    body_limit: int
    fetch_retries: int
    unreachable_wait: float
    unreachable_days: float

    @property
    def unreachable_for(self) -> float:
        """Seconds after which an outage has lasted too long (RFC 9309 2.3.1.4)."""
        return self.unreachable_days * DAY

    def policy_at(self, entry: Entry, now: float) -> RobotsPolicy:
        """Return what the entry means at `now`."""
        return policy_at(entry, now, self.unreachable_for, self.unreachable_wait)
