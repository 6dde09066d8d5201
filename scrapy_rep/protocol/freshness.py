"""How long an answer may be used before it expires (RFC 9111 4.2 and 4.3; RFC 9309 2.4)."""

from dataclasses import dataclass

DAY = 24 * 3600.0  # seconds
MAX_LIFETIME = DAY  # RFC 9309 2.4: not "for more than 24 hours"
# An answer stays fresh for at least this many seconds after its fetch, even if REP_LIFETIME_MIN is 0, so that the
# requests that waited can use it.
LEAST_LIFETIME = 60.0
LAST_TENTH = 0.1  # the last part of an answer's lifetime, in which it is renewed before it expires


@dataclass(frozen=True, slots=True)
class Caching:
    """The caching headers of an answer.

    `s-maxage` and `private` are ignored, because they concern shared caches. Crawlers that share a store are one
    private cache.
    """

    max_age: float | None = None
    """The max-age in seconds (5.2.2.1); 0 if its value is not a number (4.2.1: "consider ... stale")."""
    expires: float | None = None
    """The Expires header in seconds since the epoch (5.3); 0 if its value is not a date: "in the past"."""
    date: float | None = None
    """The Date header in seconds since the epoch (RFC 9110 6.6.1); None if it is missing or malformed."""
    age: float = 0.0
    """The Age header in seconds (5.1)."""
    no_cache: bool = False
    no_store: bool = False
    must_revalidate: bool = False
    only_for: str = ""
    """The User-Agent that the answer is for, if its Vary names this field; `*` if it names others (4.1); else empty."""


def freshness_lifetime(caching: Caching, received_at: float) -> float:
    """Return how many seconds after its creation the answer expires (4.2.1); one day if its headers do not say."""
    # 4.2.1: "If directives conflict ... the most restrictive directive should be honored."
    if caching.no_cache or caching.no_store:
        return 0.0
    if caching.max_age is not None:
        return caching.max_age
    if caching.expires is not None:
        return max(0.0, caching.expires - (received_at if caching.date is None else caching.date))
    return MAX_LIFETIME


def initial_age(caching: Caching, received_at: float, response_delay: float = 0.0) -> float:
    """Return the answer's age, in seconds, at the time it was received (4.2.3, corrected_initial_age)."""
    apparent_age = 0.0 if caching.date is None else max(0.0, received_at - caching.date)
    return max(apparent_age, caching.age + response_delay)


def fresh_until(caching: Caching, received_at: float, least: float, response_delay: float = 0.0) -> float:
    """Return the time, in seconds since the epoch, when the answer expires.

    This is at least `least` seconds and at most one day (RFC 9309 2.4) after the answer was received. RFC 9111 has no
    lower bound. But many servers forbid all caching, and fetching robots.txt for each request would burden them.
    """
    remaining = freshness_lifetime(caching, received_at) - initial_age(caching, received_at, response_delay)
    return received_at + min(max(remaining, least), MAX_LIFETIME)


def refresh_from(received_at: float, until: float) -> float:
    """Return the time, in seconds since the epoch, from which the answer is renewed before it expires at `until`."""
    return until - LAST_TENTH * (until - received_at)
