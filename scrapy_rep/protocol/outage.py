"""While robots.txt is unreachable: the backoff, how long requests wait, and when that is too long (RFC 9309 2.3.1.4).

- The backoff. After a failure, robots.txt is fetched again 5 s later, after the second failure 10 s later, and so on:
  doubling, at most an hour. A server may ask for more time (Retry-After), and gets an hour at most.
- The wait (REP_UNREACHABLE_WAIT). Requests wait for fetches that begin within 30 s. If the next fetch by the backoff
  would begin later, there is one last fetch at the end of the wait. Nobody waits for a host that hangs: after a fetch
  that has timed out, and after the wait, requests are refused at once, until a fetch succeeds.
- The 30 days (REP_UNREACHABLE_DAYS). An outage as long as that may count as "there is no robots.txt". It has to have
  been seen, not only begun: failures that are too far apart (MAX_UNSEEN) are two outages.

An outage is stored and shared, so its times are of a wall clock, which may be wrong: it is set back, or the clock of
another crawler is ahead. A wrong time delays a fetch by CLOCK_SKEW at most. How long requests wait is measured by the
monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.status_policy import REDIRECT_STATUSES

BACKOFF_FIRST = 5.0  # seconds
BACKOFF_MAX = 3600.0  # seconds
CLOCK_SKEW = 300.0  # seconds by which two clocks of a fleet may differ, or one clock before and after it was set

# Seconds between two failures of one outage, at most. An outage of 30 days (RFC 9309 2.3.1.4) has to be seen several
# times, so this is a third of 30 days, and one day more for crawls that start some hours late. A weekly crawl is often
# enough.
MAX_UNSEEN = 11 * DAY


@dataclass(frozen=True, slots=True)
class Outage:
    """robots.txt is unreachable (2.3.1.4)."""

    since: float
    """Seconds since the epoch, of the first failure in the row."""
    failures: int
    """Failures in a row."""
    reason: str
    """Why the last fetch failed: `HTTP 503`, or why there was no answer."""
    asked_at: float
    """Seconds since the epoch, of the last failure."""
    retry_after: float = 0.0
    """Seconds from the last failure that the server asked us to wait; more than BACKOFF_MAX counts as that. BACKOFF_MAX
    also if another component of the crawl refused the request."""
    status: int | None = None
    """The HTTP status of the last failure, if there was an answer and it was no redirect."""
    sign: str = ""
    """What decided instead of the status, as of `Answer`."""
    timed_out: bool = False
    """The last fetch took as long as it may (REP_FETCH_TIMEOUT)."""

    @property
    def ask_again_at(self) -> float:
        """Seconds since the epoch, of the next fetch."""
        return self.asked_at + max(backoff(self.failures), min(self.retry_after, BACKOFF_MAX))

    def goes_on_at(self, now: float) -> bool:
        """Whether it is still this outage: not if the last failure is too long ago (MAX_UNSEEN) or in the future,
        because a clock was ahead, or has been set back since."""
        return self.asked_at - CLOCK_SKEW <= now < self.asked_at + MAX_UNSEEN

    def is_backing_off_at(self, now: float) -> bool:
        """Whether it goes on, and robots.txt is not fetched yet."""
        return self.goes_on_at(now) and now < self.ask_again_at

    def is_too_long_at(self, now: float, unreachable_for: float) -> bool:
        """Whether it has lasted for `unreachable_for` seconds (REP_UNREACHABLE_DAYS; "for example, 30 days")."""
        return now - self.since >= unreachable_for

    def pause_at(self, now: float, left: float, *, may_be_last: bool) -> float | None:
        """Seconds until the next fetch that requests wait for; None if they wait for none. They wait for fetches that
        begin within `left` seconds, but not after a fetch that has timed out.

        With `may_be_last`, a fetch that the backoff alone would delay for longer begins at the end of that time.
        """
        # The clock may have been set back since the failure.
        since_failure = max(now - self.asked_at, 0.0)
        backing_off = max(backoff(self.failures) - since_failure, 0.0)
        asked_for = max(min(self.retry_after, BACKOFF_MAX) - since_failure, 0.0)
        if self.timed_out or left <= 0.0 or asked_for > left or (backing_off > left and not may_be_last):
            return None
        return min(max(backing_off, asked_for), left)


def backoff(failures: int, first: float = BACKOFF_FIRST, longest: float = BACKOFF_MAX) -> float:
    """Seconds until the next attempt after that many failures in a row: `first`, then doubling, at most `longest`."""
    # The exponent is bounded before it is used: a float has no 2 ** 1100.
    return min(first * 2.0 ** min(failures - 1, 64), longest)


def outage_after(before: Outage | None, answer: Answer, now: float) -> Outage:
    """The outage that begins with an answer that is UNREACHABLE, or goes on.

    `before`: the outage that goes on at `now`, if there is one.
    """
    since, failures = (before.since, before.failures + 1) if before is not None else (now, 1)
    # If a redirect cannot be followed, its Location is the reason, not its status.
    status = None if answer.status in REDIRECT_STATUSES and not answer.sign else answer.status
    retry_after = BACKOFF_MAX if answer.dropped else answer.retry_after
    reason, sign = shortened(answer.reason), answer.sign
    return Outage(min(since, now), failures, reason, now, retry_after, status, sign, answer.timed_out)
