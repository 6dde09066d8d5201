"""What is known of an origin x what just happened -> what to keep, what to do (RFC 9309 2.3.1.4, 2.4; RFC 9111 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from scrapy_rep.protocol.access_result import AccessResult, FetchEvent
from scrapy_rep.protocol.entry import Entry, Outage, StoredResponse
from scrapy_rep.protocol.freshness import MAX_LIFETIME, refresh_from
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason

DAY = 24 * 3600.0  # seconds
BACKOFF_FIRST = 5.0  # seconds
BACKOFF_MAX = 3600.0  # seconds
CLOCK_SKEW = 300.0  # seconds by which the clocks of a fleet, or of a machine before and after, may differ


class State(Enum):
    """What is known of an origin, at a moment."""

    UNKNOWN = "nothing is known"
    FRESH = "the answer is within its lifetime"
    AGEING = "the answer is in the last tenth of its lifetime"
    STALE = "the answer is past its lifetime, and nobody has asked since"
    UNREACHABLE = "robots.txt is unreachable, and no rules are stored"
    UNREACHABLE_EXPIRED = "robots.txt is unreachable, and the stored rules must not be used past their lifetime"
    UNREACHABLE_STALE = "robots.txt is unreachable, and the stored rules are obeyed past their lifetime"
    LONG_UNREACHABLE = "robots.txt has been unreachable for too long, and no rules are stored"


class Basis(Enum):
    """What decides about a request meanwhile."""

    NOTHING_ALLOWED = "nothing is allowed"
    STORED = "the answer that is held"
    EVERYTHING_ALLOWED = "everything is allowed"


# What the crawl does with an origin that is unreachable, and where that is specified.
OUTAGE_WORDS: Mapping[Basis, tuple[str, str]] = {
    Basis.NOTHING_ALLOWED: ("nothing of its origin is fetched", "RFC 9309 2.3.1.4"),
    Basis.STORED: ("its last known rules are still obeyed", "RFC 9309 2.4"),
    Basis.EVERYTHING_ALLOWED: ("after so long, everything is allowed", "RFC 9309 2.3.1.4"),
}


class Refetch(Enum):
    """Whether robots.txt is asked for."""

    FIRST = "before the request is decided"
    MEANWHILE = "while the request goes on"
    AFTER_BACKOFF = "while the request goes on, once the backoff is over"
    NOT = "not yet"


# Before a request is decided: each row with its source.
POLICY_OF_STATE: Mapping[State, tuple[Basis, Refetch, str]] = {
    State.UNKNOWN: (Basis.NOTHING_ALLOWED, Refetch.FIRST, "RFC 9309 2.3"),
    State.FRESH: (Basis.STORED, Refetch.NOT, "RFC 9309 2.4; RFC 9111 4.2"),
    State.AGEING: (Basis.STORED, Refetch.MEANWHILE, "so that nobody waits; RFC 9111 4.2 allows to ask at any time"),
    State.STALE: (Basis.NOTHING_ALLOWED, Refetch.FIRST, "RFC 9111 4.2.4; RFC 9309 2.4"),
    State.UNREACHABLE: (Basis.NOTHING_ALLOWED, Refetch.AFTER_BACKOFF, "RFC 9309 2.3.1.4: complete disallow"),
    State.UNREACHABLE_EXPIRED: (Basis.NOTHING_ALLOWED, Refetch.AFTER_BACKOFF, "RFC 9111 4.2.4; RFC 9309 2.3.1.4"),
    State.UNREACHABLE_STALE: (Basis.STORED, Refetch.AFTER_BACKOFF, "RFC 9309 2.4: 'unless ... unreachable'; 2.3.1.4"),
    State.LONG_UNREACHABLE: (Basis.EVERYTHING_ALLOWED, Refetch.AFTER_BACKOFF, "RFC 9309 2.3.1.4: 'MAY assume'"),
}


class CacheUpdate(Enum):
    """What is known from then on, and when robots.txt is asked for again."""

    ANSWER = "what came, and nothing of before, for its lifetime"
    FRESHENED = "what was held, for a lifetime more"
    OUTAGE = "what was held, and that it is unreachable, for the backoff"
    LONG_OUTAGE = "what was held, and that it is unreachable, for the backoff's longest step"


# What a fetch can come to: never REDIRECT, which is followed.
FETCH_OUTCOMES: tuple[AccessResult | FetchEvent, ...] = (
    AccessResult.SUCCESS,
    FetchEvent.NOT_MODIFIED,
    AccessResult.UNAVAILABLE,
    AccessResult.RESTRICTED,
    AccessResult.UNREACHABLE,
    FetchEvent.DROPPED,
)
_A, _F, _O, _L = CacheUpdate.ANSWER, CacheUpdate.FRESHENED, CacheUpdate.OUTAGE, CacheUpdate.LONG_OUTAGE

# Once robots.txt was asked for; the columns are FETCH_OUTCOMES. A 304 freshens rules alone (RFC 9111
# 4.3.4), so where none are held nobody can have asked for it.
_AFTER_FETCH_ROWS: Mapping[State, tuple[CacheUpdate, ...]] = {
    # after                 SUCCESS, NOT_MODIFIED, UNAVAILABLE, RESTRICTED, UNREACHABLE, DROPPED
    State.UNKNOWN:           (_A, _O, _A, _A, _O, _L),
    State.FRESH:             (_A, _F, _A, _A, _O, _L),
    State.AGEING:            (_A, _F, _A, _A, _O, _L),
    State.STALE:             (_A, _F, _A, _A, _O, _L),
    State.UNREACHABLE:       (_A, _O, _A, _A, _O, _L),
    State.UNREACHABLE_EXPIRED:  (_A, _F, _A, _A, _O, _L),
    State.UNREACHABLE_STALE: (_A, _F, _A, _A, _O, _L),
    State.LONG_UNREACHABLE:  (_A, _O, _A, _A, _O, _L),
}  # fmt: skip
AFTER_FETCH: Mapping[tuple[State, AccessResult | FetchEvent], CacheUpdate] = {
    (state, outcome): update
    for state, row in _AFTER_FETCH_ROWS.items()
    for outcome, update in zip(FETCH_OUTCOMES, row, strict=True)
}


# Where robots.txt answered, and there are no rules.
_REASON_OF_ACCESS = {
    AccessResult.UNAVAILABLE: VerdictReason.UNAVAILABLE,
    AccessResult.RESTRICTED: VerdictReason.RESTRICTED,
    AccessResult.UNREACHABLE: VerdictReason.UNREACHABLE,
}


@dataclass(frozen=True, slots=True)
class RobotsPolicy:
    """What an entry comes to, from a moment on and until another."""

    entry: Entry
    state: State
    basis: Basis
    refetch: Refetch
    """FIRST, MEANWHILE or NOT: the backoff is already reckoned in."""
    until: float
    """Seconds since the epoch until which all of this holds."""

    # Worked out once: they are looked at with each request.
    robots: RobotsTxt | None = field(init=False, repr=False, compare=False)
    """The rules that are obeyed; None where there are none."""
    is_settled: bool = field(init=False, repr=False, compare=False)
    """Nothing is to be asked for."""
    is_stale: bool = field(init=False, repr=False, compare=False)
    """Rules past their time are obeyed."""

    def __post_init__(self) -> None:
        stored = self.entry.stored if self.basis is Basis.STORED else None
        object.__setattr__(self, "robots", stored.robots if stored is not None else None)
        object.__setattr__(self, "is_settled", self.refetch is Refetch.NOT)
        object.__setattr__(self, "is_stale", self.state is State.UNREACHABLE_STALE)

    @property
    def is_current(self) -> bool:
        """Whoever comes by anew need not refetch: what is known is fresh, or was found unreachable just now."""
        return self.is_settled or self.state is State.AGEING

    @property
    def access(self) -> AccessResult:
        """What the origin's robots.txt is taken for."""
        if self.basis is Basis.STORED and self.entry.stored is not None:
            return self.entry.stored.access
        return AccessResult.UNAVAILABLE if self.basis is Basis.EVERYTHING_ALLOWED else AccessResult.UNREACHABLE

    def verdict(self, url: str, product_token: str | Sequence[str]) -> Verdict:
        """Whether a crawler with that product token, or those in order of preference, may fetch the absolute URL."""
        robots = self.robots
        if robots is not None:
            verdict = robots.verdict(url, product_token)
            return Verdict(  # five times as fast as `replace`
                verdict.allowed,
                verdict.reason,
                verdict.rule,
                verdict.product_token,
                robots_url=self.entry.robots_url,
                answer=self.entry.reason,
            )
        return Verdict(
            self._allows_without_rules(url),
            self._reason_without_rules(url),
            access=self.access,
            robots_url=self.entry.robots_url,
            answer=self.entry.reason,
        )

    def allows(self, url: str, product_token: str | Sequence[str]) -> bool:
        """Whether `verdict` allows it."""
        robots = self.robots
        return self._allows_without_rules(url) if robots is None else robots.allows(url, product_token)

    def _allows_without_rules(self, url: str) -> bool:
        return self.access is AccessResult.UNAVAILABLE or is_robots_txt(url)

    def _reason_without_rules(self, url: str) -> VerdictReason:
        if is_robots_txt(url):
            return VerdictReason.NOT_SUBJECT
        # After a long outage everything is allowed, and the outage is still the reason.
        return _REASON_OF_ACCESS[self.access if self.basis is Basis.STORED else AccessResult.UNREACHABLE]


def state_of(entry: Entry | None, now: float, unreachable_for: float) -> State:
    """The state at `now`; `unreachable_for`: seconds of an outage after which it has been too long."""
    if entry is None:
        return State.UNKNOWN
    stored, outage = entry.stored, entry.outage
    # A stored from the future is none: the clock was set back since.
    if stored is not None and now < stored.fresh_until <= now + MAX_LIFETIME + CLOCK_SKEW:
        return State.AGEING if now >= refresh_from(stored.received_at, stored.fresh_until) else State.FRESH
    if outage is None:
        return State.UNKNOWN if stored is None else State.STALE
    too_long = now - outage.since >= unreachable_for
    if stored is None or stored.robots is None:
        return State.LONG_UNREACHABLE if too_long else State.UNREACHABLE
    # 2.3.1.4: after a long time "continue to use a cached copy", whatever forbade it before: the other choice is none.
    return State.UNREACHABLE_EXPIRED if stored.forbids_stale and not too_long else State.UNREACHABLE_STALE


def policy_at(entry: Entry, now: float, unreachable_for: float) -> RobotsPolicy:
    """What the entry comes to at `now`."""
    state = state_of(entry, now, unreachable_for)
    basis, refetch, _source = POLICY_OF_STATE[state]
    if refetch is Refetch.AFTER_BACKOFF:
        refetch = Refetch.NOT if _is_backing_off(entry.outage, now) else Refetch.MEANWHILE
    elif refetch is Refetch.MEANWHILE and _is_backing_off(entry.outage, now):
        refetch = Refetch.NOT
    return RobotsPolicy(entry, state, basis, refetch, min(_turns(entry, now, unreachable_for), default=now))


def policy_after_fetch(entry: Entry, now: float, unreachable_for: float) -> RobotsPolicy:
    """The same for those who waited for the answer: it decides about them, however short its lifetime (RFC 9111 4)."""
    policy = policy_at(entry, now, unreachable_for)
    if policy.refetch is Refetch.FIRST and entry.stored is not None and entry.outage is None:
        return RobotsPolicy(entry, State.FRESH, Basis.STORED, Refetch.NOT, until=now)
    return policy


def _is_backing_off(outage: Outage | None, now: float) -> bool:
    return outage is not None and now < outage.ask_again_at <= now + BACKOFF_MAX + CLOCK_SKEW


def _turns(entry: Entry, now: float, unreachable_for: float) -> Iterable[float]:
    """The moments to come at which the entry may come to something else."""
    moments: list[float] = []
    if entry.stored is not None:
        moments += [entry.stored.fresh_until, refresh_from(entry.stored.received_at, entry.stored.fresh_until)]
    if entry.outage is not None:
        moments += [entry.outage.ask_again_at, entry.outage.since + unreachable_for]
    return (moment for moment in moments if moment > now)


def backoff(failures: int) -> float:
    """Seconds before robots.txt is asked for again after so many failures in a row: doubling, at most an hour."""
    # The exponent is bounded before it is used: a float has no 2 ** 1100.
    return min(BACKOFF_FIRST * 2.0 ** min(failures - 1, 64), BACKOFF_MAX)


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What asking for a robots.txt came to."""

    outcome: AccessResult | FetchEvent
    stored: StoredResponse | None = None
    """The answer, of SUCCESS, UNAVAILABLE and RESTRICTED; the stored freshened, of NOT_MODIFIED."""
    reason: str = ""
    """Of the others, in words."""
    status: int | None = None
    retry_after: float = 0.0
    """Seconds from now before which the server does not want to be asked again; at most an hour of them count."""
    failed_at: float | None = None
    """When the first request of this fetch failed, if that was before."""


@dataclass(frozen=True, slots=True)
class OutageLimits:
    """With an origin that is unreachable."""

    unreachable_for: float
    """Seconds of an outage after which it has been too long (2.3.1.4)."""
    budget: float = 0.0
    """Seconds from its beginning for which requests wait."""


def after_fetch(entry: Entry | None, robots_url: str, result: FetchResult, now: float, limits: OutageLimits) -> Entry:
    """What is remembered from now on, robots.txt having been asked for until `now`."""
    update = AFTER_FETCH[state_of(entry, now, limits.unreachable_for), result.outcome]
    if update is CacheUpdate.ANSWER or update is CacheUpdate.FRESHENED:
        return Entry(robots_url, result.stored)
    before = entry.outage if entry is not None else None
    failures = before.failures + 1 if before is not None else 1
    since = before.since if before is not None else now if result.failed_at is None else result.failed_at
    wait = backoff(failures)
    if now < since + limits.budget < now + wait:
        # Whoever waits is not sent away without a last try.
        wait = since + limits.budget - now
    not_before = BACKOFF_MAX if update is CacheUpdate.LONG_OUTAGE else min(result.retry_after, BACKOFF_MAX)
    outage = Outage(since, failures, result.reason, now, now + max(wait, not_before), result.status)
    return Entry(robots_url, entry.stored if entry is not None else None, outage)


def pause_before_refetch(policy: RobotsPolicy, now: float, budget: float) -> float | None:
    """Seconds that an origin's requests wait before robots.txt is asked for again; None where they wait no longer.

    They wait for `budget` seconds after the first failure, unless something may be obeyed meanwhile; and not in vain:
    only where robots.txt is asked for by then.
    """
    outage = policy.entry.outage
    if outage is None or policy.basis is not Basis.NOTHING_ALLOWED:
        return None
    if budget <= 0 or outage.ask_again_at > outage.since + budget:
        return None
    return max(outage.ask_again_at - now, 0.0)
