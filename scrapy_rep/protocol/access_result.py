"""What fetching a robots.txt came to (RFC 9309 section 2.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from scrapy_rep.protocol.freshness import SILENT, Caching


class AccessResult(Enum):
    """What fetching a robots.txt came to (2.3.1)."""

    SUCCESS = "success"
    """2.3.1.1: the parseable rules are followed."""
    REDIRECT = "redirect"
    """2.3.1.2: followed; never the last word."""
    UNAVAILABLE = "unavailable"
    """2.3.1.3: everything is allowed."""
    RESTRICTED = "restricted"
    """Nothing is allowed, for as long as rules would hold: a policy's answer to 401 and 403, never RFC 9309's."""
    UNREACHABLE = "unreachable"
    """2.3.1.4: nothing is allowed, and robots.txt is asked for again with backoff."""


# In words, and where that is specified unless a row of the status policy says so for the status. What an origin that is
# unreachable means is in `lifecycle.OUTAGE_WORDS`.
ACCESS_WORDS: Mapping[AccessResult, tuple[str, str]] = {
    AccessResult.SUCCESS: ("its rules are obeyed", "RFC 9309 2.3.1.1"),
    AccessResult.REDIRECT: ("it is followed", "RFC 9309 2.3.1.2"),
    AccessResult.UNAVAILABLE: ("everything is allowed", "RFC 9309 2.3.1.3"),
    AccessResult.RESTRICTED: ("nothing is allowed", "REP_STATUS_POLICY"),
}


class FetchEvent(Enum):
    """What a fetch can come to besides an access result."""

    NOT_MODIFIED = "not modified"
    """A 304 to a conditional request of ours. A 304 that nobody asked for is UNREACHABLE: the server's fault."""
    DROPPED = "dropped"
    """Another component of the crawl refused the request, and would refuse it again soon."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request for a robots.txt brought: a status, or none and the reason."""

    status: int | None
    body: bytes = b""
    """Of a success, no more than one octet past the limit; of anything else it is never read."""
    location: str | None = None
    """Where a redirect leads, absolute; None where its Location is missing or malformed."""
    reason: str = ""
    """Why there is no status, for people."""
    dropped: bool = False
    """Another component refused the request: asking again soon would only be refused again."""
    retry_after: float = 0.0
    """Seconds from now before which the server does not want to be asked again (RFC 9110 10.2.3)."""
    caching: Caching = SILENT
    response_delay: float = 0.0
    """Seconds on the wire (RFC 9111 4.2.3)."""
    replayed: bool = False
    """It comes from a cache of the crawl's own, which replays what is older than a robots.txt may be."""
    offline: bool = False
    """And nothing newer is to be had, by the user's wish."""


def is_worth_a_retry(answer: Answer, access: AccessResult) -> bool:
    """Whether the same request may well fare better a moment later: no answer, or a server error (2.3.1.4), but for
    those that name their time."""
    if access is not AccessResult.UNREACHABLE or answer.dropped or answer.retry_after:
        return False
    return answer.status is None or answer.status in range(500, 600)
