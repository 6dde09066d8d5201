"""For how long an answer may be used without asking (RFC 9111 sections 4.2 and 4.3; RFC 9309 section 2.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

DAY = 24 * 3600.0  # seconds
MAX_LIFETIME = DAY  # RFC 9309 2.4: not "for more than 24 hours"
# Seconds for which an answer is good in any case, so that the requests that waited for it still find it.
LEAST_LIFETIME = 60.0
LAST_TENTH = 0.1  # of the time for which an answer is fresh: in this part it is refreshed in advance


@dataclass(frozen=True, slots=True)
class Caching:
    """What an answer says about its use by caches.

    `s-maxage` and `private` are not here: a crawler, or a fleet of one crawler, is a private cache.
    """

    max_age: float | None = None
    """Seconds (5.2.2.1); 0 if the server wrote no number (4.2.1: "consider ... stale")."""
    expires: float | None = None
    """Seconds since the epoch (5.3); 0 if it is no date: "in the past"."""
    date: float | None = None
    """Seconds since the epoch (RFC 9110 6.6.1); None if it is missing, or no date."""
    age: float = 0.0
    """Seconds (5.1)."""
    no_cache: bool = False
    no_store: bool = False
    must_revalidate: bool = False
    etag: str | None = None
    """As sent, quotes and weakness included."""
    last_modified: str | None = None
    """As sent."""

    @property
    def forbids_stale(self) -> bool:
        """Whether it must not be used past its lifetime, not even while the server is unreachable (4.2.4)."""
        return self.no_cache or self.must_revalidate


SILENT = Caching()
"""An answer that says nothing about it."""


def freshness_lifetime(caching: Caching, received_at: float) -> float:
    """Seconds for which the answer is fresh, from when it was made (4.2.1); one day if it does not say."""
    # 4.2.1: "If directives conflict ... the most restrictive directive should be honored."
    if caching.no_cache or caching.no_store:
        return 0.0
    if caching.max_age is not None:
        return caching.max_age
    if caching.expires is not None:
        return max(0.0, caching.expires - (received_at if caching.date is None else caching.date))
    return MAX_LIFETIME


def initial_age(caching: Caching, received_at: float, response_delay: float = 0.0) -> float:
    """Seconds since the answer was made, when it came (4.2.3, corrected_initial_age)."""
    apparent_age = 0.0 if caching.date is None else max(0.0, received_at - caching.date)
    return max(apparent_age, caching.age + response_delay)


def fresh_until(caching: Caching, received_at: float, least: float, response_delay: float = 0.0) -> float:
    """Seconds since the epoch until which the answer may be used without asking.

    At least `least` seconds after it came. This departs from RFC 9111: many servers forbid all caching, and to fetch
    robots.txt with each request would be a burden to them. At most one day after it came (RFC 9309 2.4).
    """
    remaining = freshness_lifetime(caching, received_at) - initial_age(caching, received_at, response_delay)
    return received_at + min(max(remaining, least), MAX_LIFETIME)


def refresh_from(received_at: float, until: float) -> float:
    """Seconds since the epoch from which the answer is refreshed in advance."""
    return until - LAST_TENTH * (until - received_at)


def freshened(stored: Caching, by: Caching) -> Caching:
    """What a stored answer says after the 304 `by` (4.3.4): each field of the 304, and the others as they were."""
    has_cache_control = by.max_age is not None or by.no_cache or by.no_store or by.must_revalidate
    control = by if has_cache_control else stored
    return replace(
        control,
        expires=stored.expires if by.expires is None else by.expires,
        date=by.date,
        age=by.age,
        etag=by.etag or stored.etag,
        last_modified=by.last_modified or stored.last_modified,
    )


def validates(stored: Caching, by: Caching) -> bool:
    """Whether the 304 `by` is about the stored answer, as far as its ETag shows (4.3.4); weak or strong."""
    return by.etag is None or stored.etag is None or by.etag.removeprefix("W/") == stored.etag.removeprefix("W/")
