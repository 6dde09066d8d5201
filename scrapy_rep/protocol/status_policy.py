"""What a status, a challenge or a page of HTML means: a table for 403, 404, 429, 5xx and so on (RFC 9309 2.3.1)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.challenge import MAX_PAGE, VENDORS
from scrapy_rep.protocol.foreign_text import MAX_TEXT, shortened
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.words import A_PAGE

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})

# The keys of a row are HTTP statuses, or one of these two, for answers whose status does not decide.
CHALLENGE = "challenge"
"""A page that demands proof that the client is a browser, sent instead of robots.txt with a status in `challenge`."""
MARKUP = "markup"
"""A success whose body is a page of HTML or XML without a rule in a group."""
SIGN_KEYS = (CHALLENGE, MARKUP)
OFFLINE = "offline"
"""The crawl is offline (HTTPCACHE_IGNORE_MISSING), and its HTTP cache does not have the robots.txt."""

StatusRow = tuple[Collection[int | str], AccessResult, str]

# Each row has its source. The first row that contains a status decides about it.
RFC9309: tuple[StatusRow, ...] = (
    ((CHALLENGE,), AccessResult.UNREACHABLE, "RFC 9309 2.3.1.4"),
    # Nothing is ever sent to the site, so nothing is refused.
    ((OFFLINE,), AccessResult.UNAVAILABLE, "HTTPCACHE_IGNORE_MISSING"),
    ((202,), AccessResult.UNREACHABLE, "RFC 9110 15.3.3: accepted is not answered"),
    ((206,), AccessResult.UNREACHABLE, "RFC 9110 15.3.7: a part, and nobody asked for a part"),
    ((MARKUP,), AccessResult.UNAVAILABLE, "RFC 9309 2.2, 2.3.1.3"),
    (range(200, 300), AccessResult.SUCCESS, "RFC 9309 2.3.1.1"),
    (REDIRECT_STATUSES, AccessResult.REDIRECT, "RFC 9309 2.3.1.2; RFC 9110 15.4"),
    ((407,), AccessResult.UNREACHABLE, "RFC 9110 15.5.8: the proxy's answer, not the server's"),
    # This departs from 2.3.1.3, by which the crawler "MAY access any resources". The server asks it to come back later.
    ((429,), AccessResult.UNREACHABLE, "RFC 6585 4; Google's crawlers take it for a server error"),
    (range(400, 500), AccessResult.UNAVAILABLE, "RFC 9309 2.3.1.3"),
    (range(500, 600), AccessResult.UNREACHABLE, "RFC 9309 2.3.1.4"),
)

CAUTIOUS: tuple[StatusRow, ...] = (
    ((401, 403), AccessResult.RESTRICTED, "the 1996 draft 3.1: access restricted, regard the site as off limits"),
    ((402, 451), AccessResult.RESTRICTED, "RFC 9110 15.5.3, RFC 7725: access takes a payment, or is denied by law"),
    *RFC9309,
)

POLICIES: Mapping[str, tuple[StatusRow, ...]] = {"rfc9309": RFC9309, "cautious": CAUTIOUS}

# The results that REP_STATUS_POLICY can give a status. SUCCESS is not one of them, because the page of an error is
# no robots.txt.
OVERRIDES = {
    result.value: result for result in (AccessResult.UNAVAILABLE, AccessResult.RESTRICTED, AccessResult.UNREACHABLE)
}

SIGNS = frozenset({"", MARKUP, OFFLINE, *VENDORS})
"""All values that `Answer.sign` can have."""


def with_access(answer: Answer, rows: Iterable[StatusRow]) -> Answer:
    """Return the answer with its `access`, `reason` and `sign` by the rows of a policy.

    Before the call, `answer.sign` is the vendor of a challenge, OFFLINE, or empty. `answer.reason` has the words after
    the status.
    """
    if answer.sign == OFFLINE:
        return replace(answer, access=result_of(None, rows, OFFLINE)[0], reason="offline, and not in the HTTP cache")
    by_proxy = f", through the proxy {answer.proxy}" if answer.is_of_proxy and answer.proxy else ""
    if answer.status is None:
        reason = shortened(answer.reason, MAX_TEXT - len(by_proxy)) + by_proxy
        return replace(answer, access=AccessResult.UNREACHABLE, reason=reason)
    words, sign = f"HTTP {answer.status}{answer.reason}{by_proxy}", answer.sign
    access, _source = result_of(answer.status, rows, sign)
    if sign:
        words = f"{words}, a challenge by {sign}"
    elif access is AccessResult.SUCCESS and b"<" in answer.body[:MAX_PAGE]:  # most files have no `<`
        robots = RobotsTxt.parse(answer.body, len(answer.body))
        if robots.is_markup and not robots.has_rules:
            words, sign = f"{words}, {A_PAGE}", MARKUP
            access, _source = result_of(answer.status, rows, sign)
        elif robots.from_browser:
            words = f"{words}, a page that a browser made of the text"
    return replace(answer, access=access, reason=words, sign=sign)


def result_of(status: int | None, rows: Iterable[StatusRow], sign: str = "") -> tuple[AccessResult, str]:
    """Return the access result for a status and an `Answer.sign` by a policy, and where it is specified. For a status
    in no row, the result is UNREACHABLE (2.3.1.4: "undefined", so complete disallow), and the text is empty."""
    key = sign if sign in {MARKUP, OFFLINE} else CHALLENGE if sign else status
    return next(((result, source) for keys, result, source in rows if key in keys), (AccessResult.UNREACHABLE, ""))
