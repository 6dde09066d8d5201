"""The exceptions that the errback of a refused request receives; and the text of a refusal, for them and the log."""

from typing import Any

from scrapy.exceptions import IgnoreRequest

from scrapy_rep.protocol import words
from scrapy_rep.protocol.foreign_text import MAX_RULE, printable
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.protocol.robotstxt.syntax import EVERYONE
from scrapy_rep.usage import ROBOTS_META, TDM_META
from scrapy_rep.usage.statements import Statement


class ForbiddenByRobots(IgnoreRequest):
    """Raised if a request is refused, for example by a rule of robots.txt or by a header of its response.

    The message says what refuses the request, such as the URL of robots.txt with the line and the rule.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(explanation(verdict))
        self.verdict = verdict

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and pickles with the verdict. By default, Python would pass the message in its place."""
        return type(self), (self.verdict,), self.__dict__

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
    is_unreachable = verdict.reason is VerdictReason.UNREACHABLE
    exception = (RobotsUnreachable if is_unreachable else ForbiddenByRobots)(verdict)
    exception.__cause__ = verdict.error
    return exception


def explanation(verdict: Verdict) -> str:
    """Return why a verdict refuses, as in `Forbidden by robots.txt (URL, line 2, group of '*': Disallow: /x)`."""
    url, decided_by = words.where_from(verdict.robots_url, verdict.final_url), verdict.decided_by
    where = ""
    if decided_by is not None:
        is_element = isinstance(decided_by, Statement) and decided_by.directive in {ROBOTS_META, TDM_META}
        form = words.IN_PAGE if is_element else words.IN_HEADER if decided_by.line is None else words.IN_ROBOTS_TXT
        group = f", {words.OF_GROUP.format(token=verdict.product_token)}" if verdict.product_token else ""
        where = form.format(url=url, line=decided_by.line, group=group, rule=printable(str(decided_by), MAX_RULE))
    text = words.REASON_WORDS[verdict.reason.value].refusal.format(
        where=where, url=url, answer=printable(verdict.answer), words=verdict.words, purpose=verdict.purpose
    )
    return text if verdict.read_as is None else text + words.READ_AS.format(url=printable(verdict.read_as))


def advice(verdict: Verdict) -> str:
    """Return what to do if all start requests are refused for this reason; empty if there is no advice."""
    if verdict.reason is VerdictReason.RULE and verdict.product_token == EVERYONE:
        return words.ADVICE_FOR_ALL_CRAWLERS
    cure = words.FAILURES[words.failure(verdict.answer)][1]
    return words.REASON_WORDS[verdict.reason.value].advice.format(token=verdict.product_token, cure=cure)


def refused_by(verdict: Verdict) -> str:
    """Return what refuses the request, as in `https://example.com/robots.txt line 2 (Disallow: /x)`."""
    url, decided_by = words.where_from(verdict.robots_url, verdict.final_url), verdict.decided_by
    if decided_by is None:
        says_nothing = verdict.reason in {VerdictReason.TOO_COSTLY, VerdictReason.NO_HOST}  # its robots.txt
        return f"{url} ({verdict.words if says_nothing else printable(verdict.answer)})"
    where = url if decided_by.line is None else f"{url} line {decided_by.line}"
    return f"{where} ({printable(str(decided_by), MAX_RULE)})"
