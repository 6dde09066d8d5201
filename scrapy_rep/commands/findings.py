"""The result of the command for a URL (`Finding`), and the crawler for which it holds (`CrawlerProfile`)."""

from contextlib import suppress
from dataclasses import dataclass, field

from scrapy.settings import BaseSettings

from scrapy_rep.commands.urls import check_host, is_without_robots, with_scheme
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.foreign_text import MAX_RULE, printable
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import RobotsPolicy, policy_at
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import DecidingLine, Verdict, VerdictReason
from scrapy_rep.protocol.words import OF_GROUP, READ_AS
from scrapy_rep.settings import MAX_BODY, RepSettings
from scrapy_rep.usage.preferences import Purposes, UsageVerdict


@dataclass(frozen=True, slots=True)
class CrawlerProfile:
    """The crawler for which URLs are judged: its names, and the settings that a verdict depends on."""

    tokens: tuple[str, ...] = ()
    """The crawler's product tokens, in order of preference."""
    settings: RepSettings = field(default_factory=lambda: RepSettings.read(BaseSettings()))
    purposes: Purposes = field(default_factory=Purposes)
    not_obeyed: str = ""
    """Why the crawler does not obey the verdicts; empty if it does."""
    file_name: str = ""
    """The name of the file that `--file` gives as the robots.txt for all URLs; empty without `--file`."""

    def with_usage(self, verdict: Verdict, robots: RobotsTxt | None, url: str) -> Verdict:
        """Return the verdict with the usage preferences in robots.txt. In a crawl with purposes, the gate adds them."""
        if not isinstance(verdict, UsageVerdict):
            with suppress(ImportError):  # without the extra `usage`, a crawl has no purposes
                return self.purposes.judge(verdict, robots, url, self.tokens)
        return verdict


@dataclass(frozen=True, slots=True)
class Compared:
    """With `--compare`: whether Scrapy's own middleware and parser would allow the URL."""

    allowed: bool
    why: str = ""
    """Why this differs from our verdict; empty if it is the same."""

    @property
    def words(self) -> str:
        return f"{'allowed' if self.allowed else 'refused'}: {printable(self.why)}" if self.why else "the same"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one URL."""

    url: str
    """The URL as the user wrote it."""
    profile: CrawlerProfile = CrawlerProfile()
    error: str | None = None
    """Why there is no verdict; None if there is one."""
    verdict: Verdict | None = None
    policy: RobotsPolicy | None = None
    """The policy of the file that `--file` names, or else of the origin's robots.txt. Without `--file`, it is None if
    no robots.txt applies, or if it is not known."""
    answers: tuple[Answer, ...] = ()
    """The answers to the robots.txt requests that this URL caused, in their order, with redirects and retries."""
    now: float = 0.0
    """The time at which the URL was judged, in seconds since the epoch; 0 with `--file`."""
    compared: Compared | None = None
    """The answer of Scrapy's own middleware; None without `--compare`, and if there is no verdict."""

    @property
    def judged_url(self) -> str:
        """The URL that was judged: with a scheme (`with_scheme`) if the user wrote a host."""
        return with_scheme(self.url)

    @property
    def robots(self) -> RobotsTxt | None:
        return self.policy.robots if self.policy is not None else None

    @property
    def not_read(self) -> str:
        """That robots.txt is longer than REP_BODY_LIMIT; empty if all was read."""
        if self.robots is None or not self.robots.truncated:
            return ""
        limit = self.profile.settings.body_limit
        return f"only the first {limit:,} bytes of robots.txt were read; REP_BODY_LIMIT can be up to {MAX_BODY}"

    @property
    def info(self) -> OriginInfo | None:
        """What is known about the URL's origin; None if its robots.txt is not known."""
        return OriginInfo(self.policy) if self.policy is not None and self.policy.entry.robots_url else None

    @property
    def crawl_delay(self) -> float | None:
        return self.robots.crawl_delay(self.profile.tokens) if self.robots is not None else None

    @property
    def word(self) -> str:
        if self.verdict is not None:
            return "allowed" if self.verdict.allowed else "refused"
        return "can't tell"

    @property
    def why(self) -> str:
        """The rule or the reason behind the verdict, with its source; or why there is no verdict."""
        verdict = self.verdict
        if verdict is None:
            return printable(self.error or "", MAX_RULE)
        token, deciding = verdict.product_token, verdict.decided_by
        group = OF_GROUP.format(token=token) if token is not None else "for every crawler"
        taken_for = f"taken for {self.judged_url}: " if self.judged_url != self.url else ""
        if deciding is None:
            by = group if verdict.reason is VerdictReason.NO_RULE else verdict.source
            return f"{taken_for}{verdict.words} ({by})"
        purpose = f"for the purpose {verdict.purpose!r} " if verdict.purpose is not None else ""
        read_as = READ_AS.format(url=printable(verdict.read_as)) if verdict.read_as else ""
        return f"{taken_for}{purpose}by {line_in_words(deciding)} ({group}){read_as}"


def policy_of_file(body: bytes, limit: int = PARSING_LIMIT) -> RobotsPolicy:
    """Return the policy for a robots.txt that was not fetched. The arguments are those of `RobotsTxt.parse`."""
    robots = RobotsTxt.parse(body, limit)
    return policy_at(Entry("", StoredResponse(Answer("", access=AccessResult.SUCCESS), 0.0, DAY, robots)), 0.0, DAY)


def finding_by(policy: RobotsPolicy, url: str, profile: CrawlerProfile) -> Finding:
    """Return the finding for a URL, or for a path, by the robots.txt of the policy. Raises ValueError for any other
    text."""
    if is_without_robots(url):
        return Finding(url, profile, verdict=Verdict(True, VerdictReason.NOT_SUBJECT), policy=policy)
    check_host(url)
    verdict = profile.with_usage(policy.verdict(url, profile.tokens), policy.robots, url)
    return Finding(url, profile, verdict=verdict, policy=policy)


def line_in_words(line: DecidingLine) -> str:
    """Return, for example, `line 2, Disallow: /private/`."""
    return f"line {line.line}, {printable(str(line), MAX_RULE)}"
