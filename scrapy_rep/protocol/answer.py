"""The value `Answer`: the outcome of one request for a robots.txt (RFC 9309 section 2.3.1)."""

from dataclasses import dataclass, field

from scrapy_rep.protocol.foreign_text import shortened
from scrapy_rep.protocol.freshness import Caching
from scrapy_rep.protocol.words import WordEnum


class AccessResult(WordEnum):
    """What the answer to a request for robots.txt means for the crawler (2.3.1)."""

    SUCCESS = "success"
    """The server sent a robots.txt. The crawler obeys its rules (2.3.1.1)."""
    REDIRECT = "redirect"
    """The server sent a redirect. The crawler follows it, so this is never the result of a whole fetch (2.3.1.2)."""
    UNAVAILABLE = "unavailable"
    """The site has no usable robots.txt (a 404, for example), so everything is allowed (2.3.1.3)."""
    RESTRICTED = "restricted"
    """The site restricts access to robots.txt, so nothing is allowed. This result is cached in the same way as rules.
    RFC 9309 does not define this result. Only REP_STATUS_POLICY can give it."""
    UNREACHABLE = "unreachable"
    """The fetch failed (a 503, for example), so usually nothing is allowed. It is retried after a backoff (2.3.1.4)."""


# The fields that entries keep, besides `reason`.
_REMEMBERED = "url status access sign error timed_out replayed made_up proxy dropped is_fault caching ended_at".split()


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one request for a robots.txt: the server's answer and its meaning, or why there is no answer."""

    url: str
    """The URL that was requested."""
    status: int | None = None
    """The HTTP status; None if there is no usable answer."""
    access: AccessResult = AccessResult.UNREACHABLE
    """What the answer means (`status_policy.with_access`)."""
    reason: str = ""
    """The answer in words, such as `HTTP 404`, or why there was no answer."""
    sign: str = ""
    """The sign in the answer that decided instead of its status: the vendor of a challenge, such as `Cloudflare`, or
    `markup` for a page of HTML, or `offline` if the HTTP cache has no robots.txt. Empty if the status decided."""
    body: bytes = b""
    """The body of a success, at most one octet longer than REP_BODY_LIMIT. `conversation.with_meaning` removes the body
    of every other answer."""
    location: str | None = None
    """The absolute URL that a redirect leads to; None if its Location is missing or malformed."""
    malformed_location: str = ""
    """The Location as it was received, if it is malformed; else empty."""
    error: Exception | None = field(default=None, compare=False, repr=False)
    """The exception of the request, without its traceback; None if there was a response."""
    timed_out: bool = False
    """Whether the request took longer than REP_FETCH_TIMEOUT, so that there is no status."""
    timed_out_here: bool = False
    """Whether the time-out says nothing about the site: it was noticed much too late, because the process was stopped
    or busy; or look-ups of names waited for a thread, perhaps this request's, too."""
    replayed: bool = False
    """Whether a cache of the crawl, such as HttpCacheMiddleware, has replayed the answer, which may be old."""
    made_up: bool = False
    """Whether a middleware has answered in place of the site, with a failure."""
    proxy: str = ""
    """The proxy that the request went through, without a user name and password; empty without a proxy."""
    has_another_proxy: bool = False
    """Whether another request that waits has a proxy through which this conversation has not asked yet."""
    dropped: bool = False
    """Whether a component of the crawl dropped the request or its answer."""
    is_fault: bool = False
    """Whether a component of the crawl failed by itself: because of an error in its code, and not while it handled an
    error of the network."""
    retry_after: float = 0.0
    """Seconds from `ended_at` that the server asks the crawler to wait (RFC 9110 10.2.3)."""
    caching: Caching = field(default=Caching())
    """The caching headers of the answer."""
    ended_at: float = 0.0
    """The time when the answer or the failure came, in seconds since the epoch."""
    seconds: float = 0.0
    """Seconds from the moment when the request was sent to `ended_at`, by the monotonic clock. If the request was
    repeated in the same round, they count from the first one, but not from one that `timed_out_here`. If it was never
    sent, they count from the attempt."""
    response_delay: float = 0.0
    """Seconds from the request to the response (RFC 9111 4.2.3)."""
    address: str | None = None
    """The server's IP address; None if it is unknown or a proxy was used."""

    @property
    def remembered(self) -> "Answer":
        """The part of the answer that entries keep: its meaning, without the body and the details of the fetch."""
        return Answer(**{name: getattr(self, name) for name in _REMEMBERED}, reason=shortened(self.reason))

    @property
    def is_worth_a_retry(self) -> bool:
        """Whether the same request may succeed a moment later.

        It may if the connection failed, or after a server error (2.3.1.4) without a Retry-After. A time-out is not
        retried at once, because the retry would take as long again. Nor are challenges and dropped requests.
        """
        if self.access is not AccessResult.UNREACHABLE or self.dropped or self.retry_after or self.sign:
            return False
        return not self.timed_out if self.status is None else self.status in range(500, 600)

    @property
    def is_first_hand(self) -> bool:
        """Whether the site has answered, or failed to: no cache has replayed it, and no middleware has made it up."""
        return not (self.replayed or self.made_up)

    @property
    def must_be_repeated(self) -> bool:
        """Whether a failure says nothing about the site now, so that the request is repeated in any case."""
        return self.timed_out_here or not self.is_first_hand

    @property
    def is_of_site(self) -> bool:
        """Whether the answer, or its lack, says something about the site: not a proxy or a component of the crawl
        failed, and no component dropped the request."""
        return not (self.is_fault or self.is_of_proxy or (self.dropped and self.status is None))

    @property
    def is_of_proxy(self) -> bool:
        """Whether the proxy probably failed, not the site: no answer through a proxy, or a 407."""
        is_silent = self.status is None and self.proxy and not (self.dropped or self.is_fault)
        return bool(is_silent) or self.status == 407
