"""Which HTTP status leads to which access result (RFC 9309 section 2.3.1): one table a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scrapy_rep.protocol.access_result import AccessResult, Answer
from scrapy_rep.protocol.foreign_text import shortened

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})

StatusRow = tuple[Iterable[int], AccessResult, str]

# Each row with its source; the first row with a status decides about it.
RFC9309: tuple[StatusRow, ...] = (
    (range(200, 300), AccessResult.SUCCESS, "RFC 9309 2.3.1.1"),
    (REDIRECT_STATUSES, AccessResult.REDIRECT, "RFC 9309 2.3.1.2; RFC 9110 15.4"),
    ((407,), AccessResult.UNREACHABLE, "RFC 9110 15.5.8: the proxy's answer, not the server's"),
    (range(400, 500), AccessResult.UNAVAILABLE, "RFC 9309 2.3.1.3"),
    (range(500, 600), AccessResult.UNREACHABLE, "RFC 9309 2.3.1.4"),
)
OTHER_STATUS = AccessResult.UNREACHABLE  # RFC 9309 2.3.1.4: undefined, so complete disallow

CAUTIOUS: tuple[StatusRow, ...] = (
    ((401, 403), AccessResult.RESTRICTED, "the 1996 draft 3.1: access restricted, regard the site as off limits"),
    ((429,), AccessResult.UNREACHABLE, "Google's crawlers: a server that is overloaded"),
    *RFC9309,
)

POLICIES: Mapping[str, tuple[StatusRow, ...]] = {"rfc9309": RFC9309, "cautious": CAUTIOUS}

# What a user's policy can make of a status. Only a success is ever read as rules.
OVERRIDES = {
    result.value: result for result in (AccessResult.UNAVAILABLE, AccessResult.RESTRICTED, AccessResult.UNREACHABLE)
}


def result_of(status: int, rows: Iterable[StatusRow]) -> AccessResult:
    """The access result of a status, by a policy's rows. Total: a status in no row is unreachable."""
    return next((result for statuses, result, _source in rows if status in statuses), OTHER_STATUS)


def judge(answer: Answer, rows: Iterable[StatusRow]) -> tuple[AccessResult, str]:
    """What an answer means, and the answer in words, cut to MAX_TEXT characters."""
    if answer.status is None:
        return AccessResult.UNREACHABLE, shortened(answer.reason)
    return result_of(answer.status, rows), f"HTTP {answer.status}"
