"""How fetching a robots.txt can end (RFC 9309 section 2.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scrapy_rep.protocol.freshness import SILENT, Caching
from scrapy_rep.protocol.word_enum import WordEnum


class AccessResult(WordEnum):
    """What an answer means (2.3.1)."""

    SUCCESS = "success"
    """2.3.1.1: the parseable rules are followed."""
    REDIRECT = "redirect"
    """2.3.1.2: it is followed, so no fetch ends with it."""
    UNAVAILABLE = "unavailable"
    """2.3.1.3: everything is allowed."""
    RESTRICTED = "restricted"
    """Nothing is allowed, for as long as rules would be used. Only by a status policy, never by RFC 9309."""
    UNREACHABLE = "unreachable"
    """2.3.1.4: nothing is allowed, and robots.txt is fetched again after a backoff."""


# In words, and where that is specified unless a row of the status policy says so for the status. What an origin that is
# unreachable means is in `lifecycle.OUTAGE_WORDS`.
ACCESS_WORDS: Mapping[AccessResult, tuple[str, str]] = {
    AccessResult.SUCCESS: ("its rules are obeyed", "RFC 9309 2.3.1.1"),
    AccessResult.REDIRECT: ("it is followed", "RFC 9309 2.3.1.2"),
    AccessResult.UNAVAILABLE: ("everything is allowed", "RFC 9309 2.3.1.3"),
    AccessResult.RESTRICTED: ("nothing is allowed", "REP_STATUS_POLICY"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request for a robots.txt brought: a status, or the reason why there is none."""

    status: int | None
    body: bytes = b""
    """Of a success, up to one octet more than the limit. Of anything else nobody reads it."""
    challenge: str = ""
    """The vendor whose challenge it is (`status_policy.VENDORS`); empty if it is none."""
    location: str | None = None
    """Where a redirect leads, absolute; None if its Location is missing or malformed."""
    reason: str = ""
    """Why there is no status, for people."""
    timed_out: bool = False
    """There is no status because REP_FETCH_TIMEOUT was over."""
    dropped: bool = False
    """Another component of the crawl refused the request, and would refuse it again soon."""
    retry_after: float = 0.0
    """Seconds from now that the server asks us to wait (RFC 9110 10.2.3)."""
    caching: Caching = SILENT
    response_delay: float = 0.0
    """Seconds on the wire (RFC 9111 4.2.3)."""
    replayed: bool = False
    """It comes from the crawl's HTTP cache, which replays answers that are older than a robots.txt may be."""
    offline: bool = False
    """And the user does not want the network to be asked for anything newer."""
    address: str | None = None
    """The server's IP address; None if it is not known, or behind a proxy."""


def is_worth_a_retry(answer: Answer, access: AccessResult) -> bool:
    """Whether the same request may well succeed a moment later: if the connection failed, or after a server error
    (2.3.1.4) without a Retry-After that is no challenge. After a time-out, it would cost as much time again."""
    if access is not AccessResult.UNREACHABLE or answer.dropped or answer.retry_after or answer.challenge:
        return False
    return not answer.timed_out if answer.status is None else answer.status in range(500, 600)
