"""What a refused request's errback receives."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.text import printable


class ForbiddenByRobots(IgnoreRequest):
    """The request was dropped because of its origin's robots.txt; the message names address, line and rule."""

    def __init__(self, verdict: Verdict, cause: str) -> None:
        super().__init__(_explanation(verdict, printable(cause)))
        self.verdict = verdict
        self.cause = cause
        """robots.txt's answer in words: `HTTP 200`, `HTTP 503`, or why there was none."""


class RobotsUnreachable(ForbiddenByRobots):
    """robots.txt could not be had, so that nothing is allowed (RFC 9309 2.3.1.4)."""


def refusal(verdict: Verdict, cause: str) -> ForbiddenByRobots:
    """The exception for a verdict that does not allow; `cause` is robots.txt's answer in words."""
    kind = RobotsUnreachable if verdict.access is AccessResult.UNREACHABLE else ForbiddenByRobots
    return kind(verdict, cause)


def _explanation(verdict: Verdict, cause: str) -> str:
    where = printable(verdict.robots_url or "robots.txt")
    if verdict.rule is not None:
        rule, token = printable(str(verdict.rule)), verdict.product_token
        return f"Forbidden by robots.txt ({where}, line {verdict.rule.line}, group of {token!r}: {rule})"
    if verdict.access is AccessResult.UNREACHABLE:
        return f"Forbidden while robots.txt is unreachable ({where}: {cause})"
    return f"Forbidden by REP_STATUS_POLICY ({where}: {cause})"
