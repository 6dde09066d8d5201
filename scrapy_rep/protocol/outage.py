"""An outage is the time in which an origin's robots.txt is unreachable (RFC 9309 2.3.1.4).

After each failure, robots.txt is fetched again when the backoff and the server's Retry-After are over. At the beginning
of an outage, requests wait for these fetches (`cache.rounds`, step 4). After an outage of REP_UNREACHABLE_DAYS, the
crawler may assume that there is no robots.txt (`protocol.lifecycle`).

An outage is stored and shared, so it has wall-clock times. If a clock is wrong, a fetch is delayed by at most
CLOCK_SKEW. How long requests wait is measured with the monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.status_policy import REDIRECT_STATUSES

BACKOFF_FIRST = 5.0  # seconds from the first failure to the next fetch
BACKOFF_MAX = 3600.0  # seconds
# The most seconds by which the clocks of two crawlers may differ, or by which one clock may be set back.
CLOCK_SKEW = 300.0

# The most seconds between two failures of one outage. An outage of 30 days (RFC 9309 2.3.1.4) must be seen several
# times. So this is a third of 30 days, plus one day for crawls that start late. A weekly crawl sees it often enough.
MAX_UNSEEN = 11 * DAY


@dataclass(frozen=True, slots=True)
class Outage:
    """An unbroken row of failed fetches of one robots.txt (2.3.1.4)."""

    since: float
    """The time of the first failure, in seconds since the epoch."""
    failures: int
    """The number of failures so far."""
    reason: str
    """Why the last fetch failed, such as `HTTP 503`, or why there was no answer."""
    asked_at: float
    """The time of the last failure, in seconds since the epoch."""
    retry_after: float = 0.0
    """Seconds that the server asked the crawler to wait after the last failure; the crawler waits at most BACKOFF_MAX.
    If the request or its answer was dropped, this is BACKOFF_MAX."""
    status: int | None = None
    """The HTTP status of the last failure; None if there was no answer, or a redirect that cannot be followed."""
    sign: str = ""
    """The vendor of a challenge or `markup`, as in `Answer.sign`."""
    timed_out: bool = False
    """Whether the last request took longer than REP_FETCH_TIMEOUT."""

    @property
    def ask_again_at(self) -> float:
        """The time when the backoff ends, in seconds since the epoch."""
        return self.asked_at + max(backoff(self.failures), min(self.retry_after, BACKOFF_MAX))

    def goes_on_at(self, now: float) -> bool:
        """Whether the outage continues at `now`: its last failure is neither too long ago nor in the future."""
        return self.asked_at - CLOCK_SKEW <= now < self.asked_at + MAX_UNSEEN

    def pause_at(self, now: float, left: float, *, may_be_last: bool) -> float | None:
        """Return the seconds until the next fetch that requests wait for; None if they do not wait.

        Requests wait for a fetch that begins within `left` seconds, unless the last fetch timed out. If the backoff is
        longer than `left` and `may_be_last` is True, the fetch begins after `left` seconds. A Retry-After is never cut
        short in this way.
        """
        # The clock may have been set back since the failure.
        since_failure = max(now - self.asked_at, 0.0)
        backing_off = max(backoff(self.failures) - since_failure, 0.0)
        asked_for = max(min(self.retry_after, BACKOFF_MAX) - since_failure, 0.0)
        if self.timed_out or left <= 0.0 or asked_for > left or (backing_off > left and not may_be_last):
            return None
        return min(max(backing_off, asked_for), left)


def backoff(failures: int, first: float = BACKOFF_FIRST, longest: float = BACKOFF_MAX) -> float:
    """Return the seconds until the next attempt: `first` after one failure, then twice as many, up to `longest`."""
    # The exponent is bounded, because 2.0 ** 1100 overflows.
    return min(first * 2.0 ** min(failures - 1, 64), longest)


def outage_after(before: Outage | None, answer: Answer, now: float) -> Outage:
    """Return the outage after an UNREACHABLE answer: a new one, or `before` with one more failure.

    `before` is the outage that continues at `now`, if there is one.
    """
    since, failures = (before.since, before.failures + 1) if before is not None else (now, 1)
    # A redirect that cannot be followed failed because of its Location. Its status is not the reason.
    status = None if answer.status in REDIRECT_STATUSES and not answer.sign else answer.status
    retry_after = BACKOFF_MAX if answer.dropped else answer.retry_after
    return Outage(
        min(since, now), failures, shortened(answer.reason), now, retry_after, status, answer.sign, answer.timed_out
    )
