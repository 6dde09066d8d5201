"""One fetch of a robots.txt as steps without I/O: following redirects, retries, further rounds.

`conversation` is a generator. It yields a step, and is sent the result of that step:

| step | is sent | meaning |
|---|---|---|
| `Find` | `Found` | look for an entry of another crawler (REP_STORAGE) |
| `Ask` | `Answer` | request one URL: a robots.txt, or a URL that it redirects to |
| `Round` | the time | the round has ended, with this policy; the next round begins after a pause |

Most conversations have one round: find, ask along redirects (RFC 9309 2.3.1.2), end. If robots.txt is unreachable, and
requests may wait for it, more rounds follow: `Outage.pause_at` says when. The last round decides about all requests
that have waited. The first round, if it requests anything, repeats a URL after RETRY_DELAY if the failure may soon be
over. Any round repeats it in three cases: another proxy is left to try, a time-out says nothing about the site, or the
failure was made up by a middleware or replayed by a cache (`Answer.must_be_repeated`). Each URL of a chain has its own
count.

Two origins may redirect to the same URL. Each of them requests that URL itself, because the answer may depend on
cookies, on the User-Agent, or on a token in the URL that works only once.

Times are seconds since the epoch, by a clock that may be set at any time. So how long requests wait is a sum of
durations: those of the requests, and of the pauses between rounds. Waits for a turn or a lease do not count.
"""

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, without_backoff
from scrapy_rep.protocol.foreign_text import printable
from scrapy_rep.protocol.freshness import LEAST_LIFETIME, MAX_LIFETIME, fresh_until
from scrapy_rep.protocol.lifecycle import Basis, RobotsPolicy, Terms, after_fetch
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import RETRY_DELAY
from scrapy_rep.protocol.redirect_target import is_private, must_be_public, why_not_followed
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.status_policy import with_access

ONE_ROUND = -1.0  # seconds that are left for pauses: less than any pause, so no further round begins
RETRIES_WITHOUT_PROOF = 3  # at most, after time-outs that prove nothing; each may take REP_FETCH_TIMEOUT


@dataclass(frozen=True, slots=True)
class Find:
    """Look for the latest entry that any crawler has, and find out whether this crawler has to fetch."""

    known: Entry | None
    """The entry that this crawl has; None if it has none."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of `Find`."""

    entry: Entry | None
    """The latest entry of any crawler."""
    is_to_fetch: bool
    """Whether this crawler has to fetch robots.txt, because `entry` does not suffice."""
    at: float
    """The time of this result."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Request one URL: a robots.txt, or a URL that it redirects to."""

    url: str
    was_requested_before: bool = False
    """Whether this robots.txt was requested from the site before, in this conversation or earlier. Such a request skips
    HttpCacheMiddleware, except offline."""
    must_be_public: bool = False
    """Whether an answer from a private address is dropped (`redirect_target`)."""
    reason: str = ""
    """Why the URL is requested once more; empty for its first request."""
    pause: float = 0.0
    """Seconds to wait before the request."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round has ended."""

    policy: RobotsPolicy
    """What is known now."""
    pause: float | None
    """Seconds until the next round, if requests wait for the policy; None if no round follows."""
    hops: Sequence[Answer] = ()
    """The answers along the redirects; empty if nothing was requested."""

    @property
    def shared(self) -> Entry | None:
        """What other crawls may know; None if the round says nothing about the site."""
        last = self.hops[-1] if self.hops else None
        if last is None or not last.is_of_site or not all(hop.is_first_hand for hop in self.hops):
            return None
        return self.policy.entry if last.status is not None else without_backoff(self.policy.entry)

    @property
    def for_memory(self) -> Entry:
        """What this crawl remembers. If nothing is allowed because a proxy has failed, there is no backoff: the next
        request may have another proxy."""
        is_refused = self.policy.basis is Basis.NOTHING_ALLOWED
        is_of_proxy = bool(self.hops) and self.hops[-1].is_of_proxy
        return without_backoff(self.policy.entry) if is_refused and is_of_proxy else self.policy.entry


def conversation(
    origin: Origin, known: Entry | None, now: float, terms: Terms
) -> Generator[Find | Ask | Round, Any, None]:
    """Hold the conversation of one fetch. `known`: the entry that this crawl has. `now`: the time of the beginning."""
    retries, left = terms.fetch_retries, terms.unreachable_wait
    while True:
        hops: Sequence[Answer] = ()
        if known is None or terms.policy_at(known, now).is_fetch_due:
            found: Found = yield Find(known)
            known, now = found.entry, found.at
            if known is None or found.is_to_fetch:
                outage = known.outage_at(now) if known is not None else None
                if outage is not None and not outage.has_backoff:
                    left = ONE_ROUND  # requests have waited for it, here or in another crawl: one round only
                # A cache that has replayed it may do so again; a site has not seen a request that was never sent.
                is_known = known is not None and known.last.is_first_hand
                hops = yield from _follow(origin, terms, retries, was_requested_before=is_known)
                known, now = _entry_after(known, hops, terms), hops[-1].ended_at
        policy = terms.policy_at(known, now)
        left -= sum(hop.seconds for hop in hops)
        pause = policy.pause_at(now, left)
        now = yield Round(policy, pause, hops)
        retries, left = 0, left - (pause or 0.0)


def _follow(
    origin: Origin, terms: Terms, retries: int, *, was_requested_before: bool
) -> Generator[Ask, Answer, Sequence[Answer]]:
    """Request robots.txt, and the URLs that it redirects to."""
    url, hops = origin.robots_url, list[Answer]()
    while True:
        is_guarded = bool(hops) and not terms.redirect_private and must_be_public(hops[-1], origin, url)
        answer = yield from _answer(Ask(url, was_requested_before, is_guarded), retries)
        hops.append(answer)
        if answer.access is not AccessResult.REDIRECT or answer.location is None or len(hops) > terms.max_redirects:
            return hops
        url = answer.location


def _answer(ask: Ask, retries: int) -> Generator[Ask, Answer, Answer]:
    """Request the URL: at once through another proxy if one has failed, and up to `retries` times more."""
    answer = yield ask
    # A time-out that says nothing about the site is retried RETRIES_WITHOUT_PROOF times, a replay once.
    left = RETRIES_WITHOUT_PROOF if answer.timed_out_here else 1
    while answer.access is AccessResult.UNREACHABLE:
        # Another proxy helps if the proxy failed or a component dropped the request. It does not help if we dropped a
        # private answer: behind a proxy we could not check its address.
        may_pass = answer.is_of_proxy or (answer.dropped and not ask.must_be_public)
        if may_pass and answer.has_another_proxy:
            pause = 0.0
        elif (left and answer.must_be_repeated) or (retries and answer.is_worth_a_retry):
            left, retries, pause = max(left - 1, 0), max(retries - 1, 0), RETRY_DELAY
        else:
            break
        # The time in which the process was stopped, or look-ups waited, is not time that this site took.
        waited = 0.0 if answer.timed_out_here else answer.seconds + pause
        answer = yield replace(ask, was_requested_before=True, reason=answer.reason, pause=pause)
        answer = replace(answer, seconds=waited + answer.seconds)
    return answer


# What answers mean.


def with_meaning(answer: Answer, ask: Ask, terms: Terms) -> Answer:
    """Return the answer with its meaning. Only a success keeps its body."""
    if ask.must_be_public and answer.address is not None and is_private(answer.address):
        reason = f"a public host redirected to {answer.address}, which is private (REP_REDIRECT_PRIVATE)"
        answer = Answer(ask.url, reason=reason, dropped=True, ended_at=answer.ended_at, seconds=answer.seconds)
    found = with_access(answer, terms.status_policy)
    if found.access is AccessResult.REDIRECT:
        wrong = why_not_followed(ask.url, answer.location or "", private=terms.redirect_private)
        if wrong is not None:
            shown = printable(answer.location or answer.malformed_location)
            reason = f"{found.reason} {wrong}: {shown}".removesuffix(": ")
            found = replace(found, access=AccessResult.UNREACHABLE, reason=reason)
    return found if found.access is AccessResult.SUCCESS else replace(found, body=b"")


def _entry_after(known: Entry | None, hops: Sequence[Answer], terms: Terms) -> Entry:
    """Return the origin's entry after the answers along the redirects."""
    last = hops[-1]
    if last.access is AccessResult.UNREACHABLE:
        return after_fetch(known, hops[0].url, replace(last, seconds=sum(hop.seconds for hop in hops)))
    response, before = _response(hops, terms), known.stored if known is not None else None
    if last.replayed and before is not None and not before.answer.replayed:
        # A replay may be older than the fetched answer. So the fetched answer is kept, until the replay would expire.
        response = replace(response, answer=before.answer, robots=before.robots, sha256=before.sha256)
    return after_fetch(known, hops[0].url, response)


def _response(hops: Sequence[Answer], terms: Terms) -> StoredResponse:
    """Return the response to store. The strictest answer of the chain decides how it may be used and stored."""
    last = hops[-1]
    received_at = min(hop.ended_at for hop in hops)
    until = min(fresh_until(hop.caching, hop.ended_at, terms.lifetime_min, hop.response_delay) for hop in hops)
    # Redirects and retries may have taken longer than LEAST_LIFETIME.
    until = min(max(until, last.ended_at + LEAST_LIFETIME), received_at + MAX_LIFETIME)
    answer, robots, digest = last.remembered, None, ""
    if last.access is AccessResult.SUCCESS:  # nothing else is ever read as rules
        robots, digest = RobotsTxt.parse(last.body, terms.body_limit), hashlib.sha256(last.body).hexdigest()
    elif last.access is AccessResult.REDIRECT:
        # 2.3.1.2: "crawlers MAY assume that the robots.txt file is unavailable".
        words = f"more than {terms.max_redirects} redirects in a row"
        answer = Answer(last.url, access=AccessResult.UNAVAILABLE, reason=words)
    only_for = {hop.caching.only_for for hop in hops} - {""}
    return StoredResponse(
        answer,
        received_at,
        until,
        robots,
        forbids_stale=any(hop.caching.no_cache or hop.caching.must_revalidate for hop in hops),
        only_for=min(only_for, default=""),
        forbids_store=any(hop.caching.no_store for hop in hops) or "*" in only_for or len(only_for) > 1,
        sha256=digest,
    )
