"""What RFC 9309 and the package's docs require of a crawl, written from these texts and not from the package's code.

1. `rounds_of` puts the requests for robots.txt together to rounds: an origin's /robots.txt, and where it redirected to.
2. `judge` says what a round means (RFC 9309 2.3.1; the first table of docs/answers.md).
3. `view` says what an origin's rounds mean for its pages at some moment (RFC 9309 2.3.1.4 and 2.4).
4. `helpers/plain.py` matches a URL with the rules (RFC 9309 2.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urljoin

from network import Exchange, origin_of
from virtual_time import NEVER

DAY = 86_400.0
REDIRECTS = {301, 302, 303, 307, 308}
MAX_REDIRECTS = 5  # 2.3.1.2
UNSEEN = 11 * DAY  # failures that are further apart are two outages (docs/origin.svg)
LEAST_LIFETIME = 60.0  # seconds for which an answer is used in any case (docs/settings.md, REP_LIFETIME_MIN)
BACKOFFS, BACKOFF_MAX = (5.0, 10.0, 15.0), 3_600.0  # seconds (docs/answers.md)
LATE = 5.0  # seconds after the time limit from which a time-out is no proof (docs/answers.md)
AT_ONCE = 0.1  # seconds after which another proxy is tried, at most
RETRY_GAP = 4.5  # seconds after a failure: a request within this time is a retry (1 s), a later one a new round (5 s)

Key = tuple[str, str]  # a run and an origin


class Access(Enum):
    RULES = "the rules of the body apply"
    EVERYTHING = "unavailable: everything is allowed"
    NOTHING = "unreachable: nothing is allowed"
    UNKNOWN = "the crawl was closed or killed before the round had ended"


@dataclass(eq=False)
class Round:
    """One round of a fetch: requests for an origin's robots.txt, along redirects."""

    run: str
    origin: str
    fetch: str
    """Which fetch of the run it is. All rounds of one fetch have the same mark."""
    began: float
    hops: list[Exchange]
    """The requests along the redirects. If a request was retried, only the last try is in the list."""
    is_first: bool
    """Whether the run knew nothing of the origin before. With a store always False: another crawler may know."""
    retries: int = 0
    # What the round means.
    access: Access = Access.UNKNOWN
    failures: int = 0
    """How many failures in a row the run has had with this origin. 0 if this round brought an answer."""
    body: str = ""
    fresh_until: float = 0.0
    must_revalidate: bool = False
    retry_after: float = 0.0

    @property
    def key(self) -> Key:
        return self.run, self.origin

    @property
    def ended(self) -> float:
        return self.hops[-1].ended

    @property
    def due(self) -> float:
        """When the next round may begin: 5, 10, 15, 30 s after this one began, and so on up to an hour; not before the
        end of a Retry-After. After a time-out, the seconds count from its end."""
        doubled = min(BACKOFFS[-1] * 2.0 ** min(max(self.failures - len(BACKOFFS), 0), 20), BACKOFF_MAX)
        pause = [*BACKOFFS, doubled][min(self.failures, len(BACKOFFS) + 1) - 1]
        return max((self.ended if self.has_timed_out else self.began) + pause, self.ended + max(self.retry_after, 1.0))

    @property
    def is_private(self) -> bool:
        """Whether other crawlers must not get the answer (no-store)."""
        return any("no-store" in hop.headers.get("Cache-Control", "") for hop in self.hops)

    @property
    def has_timed_out(self) -> bool:
        return "Timeout" in self.hops[-1].failure

    @property
    def is_unanswered(self) -> bool:
        """Whether no server has answered, but at most a proxy. So other crawls do not count this as a failure."""
        return bool(self.hops[-1].failure) or self.hops[-1].status == 407

    @property
    def is_of_proxy(self) -> bool:
        """Whether the proxy has failed, not the site."""
        return bool(self.hops[-1].proxy) and self.is_unanswered

    @property
    def is_worth_a_retry(self) -> bool:
        """docs/answers.md: a 5xx without Retry-After or challenge, or no answer, but not after a time-out."""
        last = self.hops[-1]
        is_error = last.status >= 500 and not {"Retry-After", "cf-mitigated"} & set(last.headers)
        return not self.has_timed_out if last.failure else is_error


def rounds_of(exchanges: Iterable[Exchange], max_retries: int, *, has_store: bool) -> list[Round]:
    """All rounds, in the order in which they ended."""
    of_fetch: dict[tuple[str, str], tuple[list[Round], set[str]]] = {}
    fetched: set[Key] = set()
    for exchange in exchanges:
        rounds, proxies = of_fetch.setdefault((exchange.run, exchange.mark), ([], set()))
        is_new_way = exchange.proxy not in proxies
        proxies.add(exchange.proxy)
        if rounds and rounds[-1].ended < NEVER:
            this, last = rounds[-1], rounds[-1].hops[-1]
            location = last.headers.get("Location")
            if last.status in REDIRECTS and location and exchange.url == urljoin(last.url, location):
                this.hops.append(exchange)
                continue
            # Only the first round of a fetch has retries. A fetch that begins in an outage may have none.
            gap, is_due = exchange.began - this.ended, len(rounds) == 1 and this.is_worth_a_retry
            is_due &= this.retries < max_retries * len(this.hops) and (this.is_first or gap < RETRY_GAP)
            is_by_another = is_new_way and bool(last.proxy) and this.is_unanswered and gap < AT_ONCE
            was_late = this.has_timed_out and last.ended - last.began > last.timeout + LATE
            was_late |= this.has_timed_out and last.has_looked_up
            if exchange.url == last.url and (is_due or is_by_another or was_late):
                this.hops[-1] = exchange
                this.retries += not is_by_another
                continue
        key = exchange.run, origin_of(exchange.url)
        is_first = key not in fetched and not has_store
        rounds.append(Round(*key, exchange.mark, exchange.began, [exchange], is_first))
        fetched.add(key)
    return sorted((each for rounds, _ in of_fetch.values() for each in rounds), key=lambda each: each.ended)


def judge(this: Round, least_lifetime: float, own: list[Round]) -> None:
    """RFC 9309 2.3.1 and docs/answers.md. `own`: the earlier rounds of this run for the origin."""
    last = this.hops[-1]
    status, is_too_long = last.status, len(this.hops) > MAX_REDIRECTS
    is_on_the_way = status in REDIRECTS and "Location" in last.headers and not is_too_long
    if last.ended == NEVER or last.failure == "CancelledError" or is_on_the_way:
        return
    this.access = Access.NOTHING
    if last.failure or "cf-mitigated" in last.headers or status in {202, 407, 429} or status >= 500:
        this.retry_after = min(float(last.headers.get("Retry-After", 0)), 3_600.0)
    elif 200 <= status < 300:
        this.access, this.body = Access.EVERYTHING if last.body.startswith("<") else Access.RULES, last.body
    elif 400 <= status < 500 or is_too_long:
        this.access = Access.EVERYTHING
    if this.access is Access.NOTHING:
        this.failures = own[-1].failures + 1 if own else 1
    controls = [hop.headers.get("Cache-Control", "") for hop in this.hops]
    this.must_revalidate = any(re.search("must-revalidate|no-cache", control) for control in controls)
    ends = [hop.ended + lifetime(hop, least_lifetime) for hop in this.hops]
    this.fresh_until = max(min(ends), last.ended + LEAST_LIFETIME)


def lifetime(hop: Exchange, least: float) -> float:
    """Seconds for which the answer lasts by its headers (RFC 9111): a day at most (RFC 9309 2.4)."""
    control = hop.headers.get("Cache-Control", "")
    found = re.search(r"max-age=(\d+)", control)
    seconds = 0.0 if re.search("no-cache|no-store", control) else float(found[1]) if found else DAY
    return min(max(seconds, least, LEAST_LIFETIME), DAY)


def view(rounds: list[Round], now: float, days: float) -> tuple[Access, str] | None:
    """Access at `now` after these rounds, and the body with the rules; None if robots.txt has to be fetched first."""
    answer: Round | None = None
    since = last_failure = -NEVER
    for each in rounds:
        if not each.failures:
            answer, since, last_failure = each, -NEVER, -NEVER
        else:
            since, last_failure = since if each.ended - last_failure < UNSEEN else each.began, each.ended
    if answer is not None and now < answer.fresh_until:
        return answer.access, answer.body
    if now - last_failure >= UNSEEN:
        return None
    is_too_long = now - since >= days * DAY  # 2.3.1.4: "for example, 30 days"
    if answer is not None and answer.access is Access.RULES and (not answer.must_revalidate or is_too_long):
        return Access.RULES, answer.body  # 2.4: "unless the robots.txt file is unreachable"
    return Access.EVERYTHING if is_too_long else Access.NOTHING, ""
