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
    """How one request for a robots.txt has ended: what was answered, and what that means; or why nothing was."""

    url: str
    """The URL that was requested."""
    status: int | None = None
    """The HTTP status; None if there was no answer."""
    access: AccessResult = AccessResult.UNREACHABLE
    """What the answer means (`status_policy.judge`). SUCCESS also of a 304 to validators."""
    reason: str = ""
    """The answer in words, `HTTP 404`, or why there was none."""
    sign: str = ""
    """What decided instead of the status: the vendor of a challenge, or `markup`; empty if the status did."""
    body: bytes = b""
    """The body of a success, up to one octet more than the limit; of any other answer, empty once it is judged."""
    location: str | None = None
    """Where a redirect leads, absolute; None if its Location is missing or malformed."""
    timed_out: bool = False
    """There is no status because REP_FETCH_TIMEOUT was over."""
    dropped: bool = False
    """Another component of the crawl refused the request, and would refuse it again soon."""
    retry_after: float = 0.0
    """Seconds from now that the server asks us to wait (RFC 9110 10.2.3)."""
    caching: Caching = SILENT
    """What the answer says about its use by caches; of a 304, together with what the stored answer says."""
    dated: float = 0.0
    """Seconds since the epoch, when the answer came from its server; 0 of a replay that does not say."""
    response_delay: float = 0.0
    """Seconds on the wire (RFC 9111 4.2.3)."""
    replayed: bool = False
    """It comes from the crawl's HTTP cache, which replays answers that are older than a robots.txt may be."""
    offline: bool = False
    """And the user does not want the network to be asked for anything newer."""
    address: str | None = None
    """The server's IP address; None if it is not known, or behind a proxy."""

    @property
    def is_worth_a_retry(self) -> bool:
        """Whether the same request may well succeed a moment later: if the connection failed, or after a server error
        (2.3.1.4) without a Retry-After that is no challenge. After a time-out, it would cost as much time again."""
        if self.access is not AccessResult.UNREACHABLE or self.dropped or self.retry_after or self.sign:
            return False
        return not self.timed_out if self.status is None else self.status in range(500, 600)
