"""`--compare`: what Scrapy's own middleware and parser would answer, and why they differ from ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.commands.findings import Compared, Finding
from scrapy_rep.commands.lookup import Lookup
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.protocol.robotstxt.syntax import Directive
from scrapy_rep.scrapy_internals.builtin_robotstxt import BuiltinAnswer, BuiltinMiddleware, parsed

NO_ANSWER = "it allows everything if robots.txt does not answer"
OURS_ALONE = {
    VerdictReason.EXEMPT: "it does not know REP_EXEMPT",
    VerdictReason.NOT_SUBJECT: "it obeys robots.txt there, too",
    VerdictReason.RESTRICTED: "it does not know REP_STATUS_POLICY",
    VerdictReason.USAGE: "it does not know usage preferences",
}


class ComparingLookup(Lookup):
    """Both middlewares fetch robots.txt, each in its own way."""

    async def run(self, crawler: Crawler) -> None:
        self._builtin = BuiltinMiddleware.from_crawler(crawler)
        await super().run(crawler)

    def _peek(self, request: Request) -> None:  # noqa: ARG002 - what the built-in answers is not known at once
        return None

    async def _look_up(self, url: str, request: Request) -> Finding:
        finding = await super()._look_up(url, request)
        return compared(finding, None if has_no_answer(finding) else await self._builtin.answer(request))


def has_no_answer(finding: Finding) -> bool:
    """Whether Scrapy's own is not asked: it would get no robots.txt."""
    verdict = finding.verdict
    if verdict is None or finding.url.lower().startswith("data:"):  # it would be `data:///robots.txt`
        return True
    # Scrapy's own would retry for minutes, with the same result.
    return verdict.reason is VerdictReason.UNREACHABLE and not verdict.answer.startswith("HTTP ")


def compared(finding: Finding, builtin: BuiltinAnswer | None) -> Finding:
    """The finding, with what Scrapy's own answers; `builtin` is None if it gets no robots.txt."""
    verdict = finding.verdict
    if verdict is None:
        return finding
    allowed, why = builtin is None or builtin.allowed, ""
    if verdict.allowed is not allowed:
        why = NO_ANSWER if builtin is None else next(_reasons(finding, verdict, builtin))
    return replace(finding, compared=Compared(allowed, why))


def _reasons(finding: Finding, verdict: Verdict, builtin: BuiltinAnswer) -> Iterator[str]:
    """Why they differ; the first one is the most specific."""
    robots, parser = finding.robots, builtin.parser
    if verdict.reason in OURS_ALONE:
        yield OURS_ALONE[verdict.reason]
    if builtin.status is not None and not 200 <= builtin.status < 300:
        yield f"it reads the page of HTTP {builtin.status} as rules"
    if parser is None:
        yield "its request for robots.txt failed or was dropped, and then it allows everything"
        return
    if builtin.scheme and not finding.url.lower().startswith(f"{builtin.scheme}:"):
        yield f"it uses the rules of {builtin.scheme}: for the whole host"
    if parser.allowed(finding.url, verdict.product_token or "*") is verdict.allowed:
        yield f"it looks for the names in robots.txt in all of {builtin.user_agent!r}"
    if robots is not None and robots.truncated:
        yield "it reads robots.txt beyond REP_BODY_LIMIT"
    if robots is not None:
        without_delays = parsed(type(parser), _without_delays(robots))
        if without_delays.allowed(finding.url, builtin.user_agent) is verdict.allowed:
            yield "a Crawl-delay ends a group for its parser (RFC 9309 2.2.4)"
    yield f"its parser, {type(parser).__name__}, reads robots.txt differently"


def _without_delays(robots: RobotsTxt) -> bytes:
    records = (record for record in robots.records if record.key != Directive.CRAWL_DELAY.key)
    return b"\n".join(b"%s: %s" % (record.key.encode(), record.octets) for record in records)
