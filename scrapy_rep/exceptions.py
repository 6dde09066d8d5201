"""The exceptions that the errback of a refused request receives, and their messages."""

from __future__ import annotations

from collections.abc import Mapping

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.foreign_text import MAX_RULE
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.text import printable
from scrapy_rep.usage.statements import Statement
from scrapy_rep.usage.vocabulary import ROBOTS_META


class ForbiddenByRobots(IgnoreRequest):
    """Raised if a request is refused, for example by a rule of robots.txt or by a header of its response.

    The message says what refuses the request, such as the URL of robots.txt with the line and the rule.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(explanation(verdict))
        self.verdict = verdict

    @property
    def cause(self) -> str:
        """The answer for robots.txt in words, such as `HTTP 200` or `HTTP 503`, or why there was no answer."""
        return self.verdict.answer


class RobotsUnreachable(ForbiddenByRobots):
    """Raised if robots.txt is unreachable, so that nothing is allowed (RFC 9309 2.3.1.4).

    If there was no answer, `__cause__` is the exception of the request for robots.txt, such as CannotResolveHostError.
    """


def refusal(verdict: Verdict) -> ForbiddenByRobots:
    """Return the exception for a verdict that refuses a request."""
    is_unreachable = verdict.access is AccessResult.UNREACHABLE
    exception = (RobotsUnreachable if is_unreachable else ForbiddenByRobots)(verdict)
    exception.__cause__ = verdict.error
    return exception


EXPLANATIONS: Mapping[VerdictReason, str] = {
    VerdictReason.RULE: "Forbidden by {place}",
    VerdictReason.USAGE: "Forbidden for the purpose {verdict.purpose!r} by {place}",
    VerdictReason.RESTRICTED: "Forbidden by REP_STATUS_POLICY ({url}: {answer})",
    VerdictReason.UNREACHABLE: "Forbidden while robots.txt is unreachable ({url}: {answer})",
    VerdictReason.TOO_COSTLY: "Forbidden because {words} ({url})",
    VerdictReason.NO_HOST: "Forbidden because {words}, so no robots.txt can apply to it",
}
"""The text of the message for each reason to refuse."""


def explanation(verdict: Verdict) -> str:
    """Return why a verdict refuses, as in `Forbidden by robots.txt (URL, line 2, group of '*': Disallow: /x)`."""
    url, place, decided_by = printable(verdict.robots_url or "robots.txt"), "", verdict.decided_by
    if decided_by is not None:
        rule = printable(str(decided_by), MAX_RULE)
        group = f", group of {verdict.product_token!r}" if verdict.product_token is not None else ""
        place = f"robots.txt ({url}, line {decided_by.line}{group}: {rule})"
        if decided_by.line is None:
            is_element = isinstance(decided_by, Statement) and decided_by.directive == ROBOTS_META
            place = f"{'the page itself' if is_element else 'the header of the response'} ({rule})"
    text = EXPLANATIONS[verdict.reason].format(
        place=place, verdict=verdict, url=url, answer=printable(verdict.answer), words=verdict.words
    )
    if verdict.read_as is None:
        return text
    return f"{text}, because the URL can be read as {printable(verdict.read_as)}"


def refused_by(verdict: Verdict) -> str:
    """Return what refuses the request, as in `https://example.com/robots.txt line 2 (Disallow: /x)`."""
    url, decided_by = printable(verdict.robots_url or "robots.txt"), verdict.decided_by
    if decided_by is None:
        says_nothing = verdict.reason in {VerdictReason.TOO_COSTLY, VerdictReason.NO_HOST}  # its robots.txt
        return f"{url} ({verdict.words if says_nothing else printable(verdict.answer)})"
    where = url if decided_by.line is None else f"{url} line {decided_by.line}"
    return f"{where} ({printable(str(decided_by), MAX_RULE)})"
