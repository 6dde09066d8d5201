"""While robots.txt is unreachable: the backoff, how long requests wait, and when that is too long (RFC 9309 2.3.1.4).

- The backoff. After a failure, robots.txt is fetched again 5 s later, after the second failure 10 s later, and so on:
  doubling, at most an hour. A server may ask for more time (Retry-After), and gets an hour at most.
- The budget (REP_UNREACHABLE_WAIT). For 30 s from the first failure, requests wait for robots.txt to come back; then
  there is a last fetch. Afterwards requests are refused at once, until a fetch succeeds.
- The 30 days (REP_UNREACHABLE_DAYS). An outage as long as that may count as "there is no robots.txt". It has to have
  been seen, not only begun: failures that are too far apart (MAX_UNSEEN) are two outages.

All times are of a clock that may be wrong: it is set back, or the clock of another crawler is ahead. A wrong time never
makes a request wait for longer than the budget, or a fetch for longer than the backoff.
"""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.freshness import DAY

BACKOFF_FIRST = 5.0  # seconds
BACKOFF_MAX = 3600.0  # seconds
CLOCK_SKEW = 300.0  # seconds by which two clocks of a fleet may differ, or one clock before and after it was set

# Seconds between two failures of one outage, at most. An outage of 30 days (RFC 9309 2.3.1.4) has to be seen several
# times, so this is a third of 30 days, and one day more for crawls that start some hours late. A weekly crawl is often
# enough.
MAX_UNSEEN = 11 * DAY


@dataclass(frozen=True, slots=True)
class Failure:
    """A fetch that brought no usable answer."""

    reason: str
    """In words: `HTTP 503`, or why there was no answer."""
    status: int | None = None
    """The answer's HTTP status; None if no answer came, or a redirect that was not followed."""
    sign: str = ""
    """What made robots.txt unreachable instead of the status, as of `Judgement`."""
    retry_after: float = 0.0
    """Seconds from `ended_at` that the server asks us to wait, or that another component of the crawl goes on refusing
    the request. More than BACKOFF_MAX counts as that."""
    began_at: float | None = None
    """Seconds since the epoch, when the first request of this fetch failed; None if that is `ended_at`."""
    ended_at: float | None = None
    """Seconds since the epoch, when the last answer came, perhaps to another origin's fetch; None if that is now."""


@dataclass(frozen=True, slots=True)
class Outage:
    """robots.txt is unreachable (2.3.1.4)."""

    since: float
    """Seconds since the epoch, of the first failure in the row."""
    failures: int
    """In a row."""
    reason: str
    """Of the last failure: `HTTP 503`, or why there was no answer."""
    asked_at: float
    """Seconds since the epoch, of the last failure."""
    ask_again_at: float
    """Seconds since the epoch, of the next fetch."""
    status: int | None = None
    """The HTTP status of the last failure, if there was an answer and it was no redirect."""
    sign: str = ""
    """What decided instead of the status, as of `Judgement`."""

    def goes_on_at(self, now: float) -> bool:
        """Whether it is still this outage: not if the last failure is too long ago (MAX_UNSEEN) or in the future,
        because a clock was ahead, or has been set back since."""
        return self.asked_at - CLOCK_SKEW <= now < self.asked_at + MAX_UNSEEN

    def is_backing_off_at(self, now: float) -> bool:
        """Whether it goes on, and robots.txt is not fetched yet."""
        return self.goes_on_at(now) and now < self.ask_again_at <= now + BACKOFF_MAX + CLOCK_SKEW

    def is_too_long_at(self, now: float, unreachable_for: float) -> bool:
        """Whether it has lasted for `unreachable_for` seconds (REP_UNREACHABLE_DAYS; "for example, 30 days")."""
        return now - self.since >= unreachable_for

    def is_waited_for_at(self, now: float, budget: float) -> bool:
        """Whether requests wait for the next fetch: not if the budget is over, or will be over by then."""
        return now < self.since + budget >= self.ask_again_at

    def pause_at(self, now: float) -> float:
        """Seconds until the next fetch; never more than the backoff, even if the clock was set back."""
        return min(max(self.ask_again_at - now, 0.0), self.ask_again_at - self.asked_at)


def backoff(failures: int, first: float = BACKOFF_FIRST, longest: float = BACKOFF_MAX) -> float:
    """Seconds until the next attempt after that many failures in a row: `first`, then doubling, at most `longest`."""
    # The exponent is bounded before it is used: a float has no 2 ** 1100.
    return min(first * 2.0 ** min(failures - 1, 64), longest)


def outage_after(before: Outage | None, failure: Failure, now: float, budget: float) -> Outage:
    """The outage that begins with the failure, or goes on. `before`: the outage that goes on at `now`, if there is one;
    `budget`: seconds from its beginning for which requests wait."""
    ended_at = now if failure.ended_at is None else min(failure.ended_at, now)
    began_at = ended_at if failure.began_at is None else failure.began_at
    failures = before.failures + 1 if before is not None else 1
    since = min(before.since if before is not None else began_at, ended_at)
    wait = backoff(failures)
    if ended_at < since + budget < ended_at + wait:
        # Requests that wait get a last try before they are dropped.
        wait = since + budget - ended_at
    ask_again_at = ended_at + max(wait, min(failure.retry_after, BACKOFF_MAX))
    return Outage(since, failures, shortened(failure.reason), ended_at, ask_again_at, failure.status, failure.sign)
