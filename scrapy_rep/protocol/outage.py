"""An outage of robots.txt: the backoff, how long a Retry-After is obeyed, how long it has lasted (RFC 9309 2.3.1.4).

An outage is the time in which an origin's robots.txt is unreachable. After each failure, robots.txt is fetched again
when the backoff and the server's Retry-After are over. At the beginning of an outage, requests wait for these fetches
(`Outage.pause_at`). After an outage of REP_UNREACHABLE_DAYS, the crawler may assume that there is no robots.txt
(`lifecycle.state_of`).

An outage is stored and shared, so it has wall-clock times. If a clock is wrong, a fetch is delayed by at most
CLOCK_SKEW.
"""

from dataclasses import dataclass, replace

from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.status_policy import REDIRECT_STATUSES

RETRY_DELAY = 1.0  # seconds before the first round requests the same URL again (REP_FETCH_RETRIES)
# Seconds from one fetch to the next: after one failure, after two, and so on. After more, the last number holds.
BACKOFFS = (5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0)
BACKOFF_MAX = BACKOFFS[-1]
LEAST_REST = 1.0  # seconds from a failure to the next fetch, also if the request took longer than the backoff
ROUNDING = 0.001  # seconds; `left` is a difference of many numbers
# The clocks of two crawlers may differ by at most this many seconds. One clock may be set back by as much.
CLOCK_SKEW = 300.0

# The most seconds between two failures of one outage. A long outage must be seen several times. So this is a third of
# 30 days (REP_UNREACHABLE_DAYS), plus one day for crawls that start late. A weekly crawl sees it often enough. With a
# REP_UNREACHABLE_DAYS of 11 or less, one failure may be the only one.
MAX_UNSEEN = 11 * DAY


@dataclass(frozen=True, slots=True)
class Outage:
    """An unbroken row of failed fetches of one robots.txt (2.3.1.4)."""

    answer: Answer
    """The last failure (`Answer.remembered`). It has no status if a redirect cannot be followed."""
    since: float
    """The beginning of the first failed fetch, or of the first one after a failure that was not the site's, in seconds
    since the epoch."""
    failures: int
    """The number of failures so far; 0 if the outage has no backoff."""
    fetch_again_at: float
    """The time when the backoff ends, in seconds since the epoch."""

    @property
    def has_backoff(self) -> bool:
        """Whether there is a backoff. There is none after a failure of a proxy, nor in an outage from the store, if the
        server gave that crawl no answer (`entry.without_backoff`)."""
        return self.failures > 0

    def goes_on_at(self, now: float) -> bool:
        """Whether the outage continues at `now`: its last failure is neither too long ago nor in the future."""
        return self.answer.ended_at - CLOCK_SKEW <= now < self.answer.ended_at + MAX_UNSEEN

    def rest_at(self, now: float) -> float:
        """Return how many seconds of the backoff are left. If the clock has been set back since the failure, or the
        clock of another crawler is ahead, the result is at most the rest at the time of the failure."""
        return max(self.fetch_again_at - max(now, self.answer.ended_at), 0.0)

    def pause_at(self, now: float, left: float) -> float | None:
        """Return the seconds until the next fetch that requests wait for; None if they are refused instead.

        Requests wait as long as the next fetch begins within REP_UNREACHABLE_WAIT of the first one. `left` is the part
        of this time that is left. Requests do not wait after a time-out: the next fetch would probably take as long.
        Nor do they wait for a component of the crawl that has failed by itself: it would probably fail again.
        """
        pause = self.rest_at(now)
        return None if self.answer.timed_out or self.answer.is_fault or pause > left + ROUNDING else pause


def backoff(failures: int) -> float:
    """Return the seconds from the last fetch to the next, after a number of failures (at least 1)."""
    return BACKOFFS[min(failures, len(BACKOFFS)) - 1]


def outage_after(before: Outage | None, answer: Answer) -> Outage:
    """Return the outage after an UNREACHABLE answer: a new one, or `before` with one more failure.

    `before` is the outage that has continued until the answer, if there is one.
    """
    now = answer.ended_at
    failures = before.failures + 1 if before is not None else 1
    # A failure that is not the site's (a proxy's) does not count towards the 30 days: the failure after it begins the
    # count again.
    since = min(before.since, now) if before is not None and before.answer.is_of_site else now - answer.seconds
    # A redirect that cannot be followed failed because of its Location. Its status is not the reason.
    status = None if answer.status in REDIRECT_STATUSES and not answer.sign else answer.status
    # A request that was dropped will probably be dropped again.
    retry_after = BACKOFF_MAX if answer.dropped else min(answer.retry_after, BACKOFF_MAX)
    # The backoff begins with the request. But a host that has timed out is not asked again at once.
    backs_off_from = now if answer.timed_out else now - answer.seconds
    fetch_again_at = max(backs_off_from + backoff(failures), now + max(retry_after, LEAST_REST))
    return Outage(replace(answer.remembered, status=status), since, failures, fetch_again_at)
