"""What a refused request's errback receives."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.foreign_text import MAX_RULE
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.text import printable


class ForbiddenByRobots(IgnoreRequest):
    """The request was dropped because of its origin's robots.txt, or the response because of its headers.

    The message names address, line and rule.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(explanation(verdict))
        self.verdict = verdict

    @property
    def cause(self) -> str:
        """robots.txt's answer in words: `HTTP 200`, `HTTP 503`, or why there was none."""
        return self.verdict.answer


class RobotsUnreachable(ForbiddenByRobots):
    """robots.txt could not be had, so nothing is allowed (RFC 9309 2.3.1.4)."""


def refusal(verdict: Verdict) -> ForbiddenByRobots:
    """The exception for a verdict that does not allow."""
    is_unreachable = verdict.access is AccessResult.UNREACHABLE
    return (RobotsUnreachable if is_unreachable else ForbiddenByRobots)(verdict)


def explanation(verdict: Verdict) -> str:
    """Why the verdict refuses, in one line: `Forbidden by robots.txt (URL, line 2, group of '*': Disallow: /x)`."""
    where = printable(verdict.robots_url or "robots.txt")
    if (stated := verdict.statement) is not None:
        begin, text = f"Forbidden for the purpose {verdict.purpose!r} by", printable(str(stated), MAX_RULE)
        if stated.line is None:
            return f"{begin} the header of the response ({text})"
        return f"{begin} robots.txt ({where}, line {stated.line}, group of {verdict.product_token!r}: {text})"
    if verdict.rule is not None:
        rule, token = printable(str(verdict.rule), MAX_RULE), verdict.product_token
        return f"Forbidden by robots.txt ({where}, line {verdict.rule.line}, group of {token!r}: {rule})"
    if verdict.access is AccessResult.UNREACHABLE:
        return f"Forbidden while robots.txt is unreachable ({where}: {printable(verdict.answer)})"
    if verdict.reason is VerdictReason.TOO_COSTLY:
        return f"Forbidden because {verdict.words} ({where})"
    return f"Forbidden by REP_STATUS_POLICY ({where}: {printable(verdict.answer)})"
