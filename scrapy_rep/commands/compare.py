"""`--compare`: whether Scrapy's own middleware and parser would allow a URL, and why they differ from ours."""

from collections.abc import Iterator
from dataclasses import replace

from scrapy_rep.commands.findings import Compared, Finding
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.protocol.robotstxt.syntax import Directive
from scrapy_rep.scrapy_internals.builtin_robotstxt import BuiltinAnswer, parsed

NO_ANSWER = "it allows everything if there is no answer"
UNKNOWN_TO_SCRAPY = {
    VerdictReason.EXEMPT: "it does not know REP_EXEMPT",
    VerdictReason.NOT_SUBJECT: "it obeys robots.txt even for this URL",
    VerdictReason.RESTRICTED: "it does not know REP_STATUS_POLICY",
    VerdictReason.USAGE: "it does not know usage preferences",
}


def skips_builtin(finding: Finding) -> bool:
    """Whether to skip Scrapy's own middleware, because there is no verdict to compare or it would get no robots.txt."""
    verdict, url = finding.verdict, finding.judged_url
    if verdict is None or not (url.startswith("/") or Origin.of(url)):  # it would request `data:///robots.txt`
        return True
    # If we got no HTTP answer, Scrapy's own middleware would get none either, after minutes of retries.
    return verdict.reason is VerdictReason.UNREACHABLE and not verdict.answer.startswith("HTTP ")


def compared(finding: Finding, builtin: BuiltinAnswer | None) -> Finding:
    """Return the finding with the answer of Scrapy's own middleware; `builtin` is None if it gets no robots.txt."""
    verdict = finding.verdict
    if verdict is None:
        return finding
    allowed, why = builtin is None or builtin.allowed, ""
    if verdict.allowed is not allowed:
        why = NO_ANSWER if builtin is None else next(_reasons(finding, verdict, builtin))
    return replace(finding, compared=Compared(allowed, why))


def _reasons(finding: Finding, verdict: Verdict, builtin: BuiltinAnswer) -> Iterator[str]:
    """Yield the reasons why Scrapy's own middleware differs from ours, the most specific reason first."""
    robots, parser = finding.robots, builtin.parser
    if verdict.reason in UNKNOWN_TO_SCRAPY:
        yield UNKNOWN_TO_SCRAPY[verdict.reason]
    if builtin.status is not None and not 200 <= builtin.status < 300:
        yield f"it reads the body of HTTP {builtin.status} as rules"
    if parser is None:
        yield "its request for robots.txt failed or was dropped, so it allows everything"
        return
    if builtin.scheme and not finding.judged_url.lower().startswith(f"{builtin.scheme}:"):
        yield f"it fetched robots.txt with {builtin.scheme}, and uses it for the whole host"
    if parser.allowed(finding.judged_url, verdict.product_token or "*") is verdict.allowed:
        yield f"it searches its whole User-Agent {builtin.user_agent!r} for the names in robots.txt"
    if robots is not None:
        if robots.truncated:
            yield "it reads robots.txt beyond REP_BODY_LIMIT"
        without_delays = parsed(type(parser), _without_delays(robots))
        if without_delays.allowed(finding.judged_url, builtin.user_agent) is verdict.allowed:
            yield "its parser ends a group at a Crawl-delay, against RFC 9309 2.2.4"
    yield f"its parser, {type(parser).__name__}, reads robots.txt differently"


def _without_delays(robots: RobotsTxt) -> bytes:
    records = (record for record in robots.records if record.key != Directive.CRAWL_DELAY.key)
    return b"\n".join(b"%s: %s" % (record.key.encode(), record.octets) for record in records)
