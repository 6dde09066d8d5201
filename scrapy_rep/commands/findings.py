"""The result for a URL (`Finding`), as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from scrapy_rep.commands.listing import listing
from scrapy_rep.commands.urls import check_host, is_without_robots
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.foreign_text import MAX_RULE, printable
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import RobotsPolicy, policy_at
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, Ignored, RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import DecidingLine, Verdict
from scrapy_rep.protocol.status_policy import RFC9309, StatusRow
from scrapy_rep.protocol.words import AccessResult, VerdictReason
from scrapy_rep.usage import POLICY_TOKENS, PREFERENCE_WORDS
from scrapy_rep.usage.preferences import Purposes, Usage, UsageVerdict, usage_in
from scrapy_rep.usage.statements import ignored_statements

MAX_NAMED = 10  # how many sitemaps or ignored lines the text shows; the JSON has all of them
LABEL = 13  # width of the label before each row, in columns
SMALL = 4_096  # size of a small robots.txt, in bytes
NO_ROBOTS_TXT_APPLIES = (VerdictReason.EXEMPT, VerdictReason.NOT_SUBJECT)
GREEN, RED, YELLOW, BOLD = "32", "31", "33", "1"


class CannotTellError(Exception):
    """Raised if there is no verdict for a URL. The message says why."""


@dataclass(frozen=True, slots=True)
class CrawlerProfile:
    """The crawler for which URLs are judged: its names, and the settings that a verdict depends on."""

    tokens: tuple[str, ...] = ()
    """The crawler's product tokens, in order of preference."""
    status_policy: Iterable[StatusRow] = RFC9309
    crawl_delay_max: float = 0.0
    purposes: Purposes = field(default_factory=Purposes)
    not_obeyed: str = ""
    """Why the crawler does not obey the verdicts; empty if it does."""
    file_name: str = ""
    """The name of the file that `--file` gives as the robots.txt for all URLs; empty without `--file`."""

    def verdict(self, policy: RobotsPolicy, url: str) -> Verdict:
        """Return the verdict for a URL or a path. Raises ValueError with the reason if there is no verdict."""
        verdict = policy.verdict(url, self.tokens)
        try:
            return self.purposes.judge(verdict, policy.robots, url, self.tokens)
        except ImportError as exc:  # the extra `usage` is not installed
            if self.purposes.categories:
                raise ValueError(str(exc)) from None
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
    error: str = ""
    """Why there is no verdict; empty if there is one, and after a `--forget` that succeeded."""
    forgotten: bool | None = None
    """True if `--forget` has deleted the entry, False if there was no entry; None in all other cases."""
    verdict: Verdict | None = None
    policy: RobotsPolicy | None = None
    """The policy of the file that `--file` names, or else of the origin's robots.txt. Without `--file`, it is None if
    no robots.txt applies, or if it is not known."""
    answers: tuple[Answer, ...] = ()
    """The answers to the robots.txt requests that this URL caused, in their order, with redirects and retries."""
    now: float = 0.0
    """The time for which the URL was judged, in seconds since the epoch: the present, or with `--archive` the time of
    the request. 0 with `--file`."""
    compared: Compared | None = None
    """The answer of Scrapy's own middleware; None without `--compare`, and if there is no verdict."""
    is_listed: bool = False
    """Whether `--cached`, given no URLs, lists this finding. Then `url` is an origin in the store."""

    @property
    def allowed(self) -> bool | None:
        """Whether the URL may be fetched; None if there is no verdict."""
        return self.verdict.allowed if self.verdict is not None else None

    @property
    def robots(self) -> RobotsTxt | None:
        return self.policy.robots if self.policy is not None else None

    @property
    def info(self) -> OriginInfo | None:
        """What is known about the URL's origin; None if its robots.txt is not known."""
        return OriginInfo(self.policy) if self.policy is not None and self.policy.entry.robots_url else None

    @property
    def crawl_delay(self) -> float | None:
        return self.robots.crawl_delay(self.profile.tokens) if self.robots is not None else None

    @property
    def deciding(self) -> DecidingLine | None:
        """The line of robots.txt, or the header, that decides; None if none does."""
        return self.verdict.decided_by if self.verdict is not None else None

    @property
    def word(self) -> str:
        if self.verdict is not None:
            return "allowed" if self.verdict.allowed else "refused"
        if self.forgotten is not None:
            return "forgotten" if self.forgotten else "not stored"
        return "can't tell"

    @property
    def why(self) -> str:
        """The rule or the reason behind the verdict, with its source; or why there is no verdict."""
        verdict, deciding = self.verdict, self.deciding
        if verdict is None:
            return printable(self.error, MAX_RULE)
        group = f"group of {verdict.product_token!r}" if verdict.product_token is not None else "for every crawler"
        if deciding is None:
            return f"{verdict.words} ({group if verdict.reason is VerdictReason.NO_RULE else verdict.source})"
        purpose = ""
        if isinstance(verdict, UsageVerdict) and verdict.purpose is not None:
            purpose = f"for the purpose {verdict.purpose!r} "
        read_as = f", because the URL can be read as {printable(verdict.read_as)}" if verdict.read_as else ""
        return f"{purpose}by {_line_in_words(deciding)} ({group}){read_as}"


def policy_of_file(body: bytes, limit: int = PARSING_LIMIT) -> RobotsPolicy:
    """Return the policy for a robots.txt that was not fetched. The arguments are those of `RobotsTxt.parse`."""
    robots = RobotsTxt.parse(body, limit)
    return policy_at(Entry("", StoredResponse(AccessResult.SUCCESS, "", robots, 0.0, DAY)), 0.0, DAY)


def judged(url: str, profile: CrawlerProfile, policy: RobotsPolicy) -> Finding:
    """Judge a URL, or a path, by the robots.txt of the policy."""
    if is_without_robots(url):
        return Finding(url, profile, verdict=Verdict(True, VerdictReason.NOT_SUBJECT), policy=policy)
    try:
        check_host(url)
        return Finding(url, profile, verdict=profile.verdict(policy, url), policy=policy)
    except ValueError as exc:
        return Finding(url, profile, str(exc), policy=policy)


def _json_of_file(robots: RobotsTxt) -> dict[str, Any]:
    """Return the part of the JSON that depends only on robots.txt."""
    return {"sitemaps": list(robots.sitemaps), "ignored": [asdict(ignored) for ignored in _ignored(robots)]}


def _ignored(robots: RobotsTxt) -> list[Ignored]:
    """Return all lines that are ignored, including those about usage preferences, sorted by line number."""
    return sorted((*robots.ignored, *ignored_statements(robots.octets)), key=lambda ignored: ignored.line)


# Cached, because this part takes longer than the rest of the JSON. Fewer large files are kept, to save memory.
_json_of_small_file = lru_cache(maxsize=10_000)(_json_of_file)
_json_of_large_file = lru_cache(maxsize=64)(_json_of_file)


def as_json(finding: Finding, *, show: bool = False) -> dict[str, Any]:
    """Return the JSON object for `--json` (docs/command.md), with null for what is unknown. `show` adds the file."""
    verdict, robots, info, deciding = finding.verdict, finding.robots, finding.info, finding.deciding
    usage = usage_in(verdict)
    json_of_file = _json_of_small_file if robots is None or len(robots.octets) < SMALL else _json_of_large_file
    received_at = info.received_at if info is not None else None
    return {
        "url": finding.url,
        "allowed": finding.allowed,
        "reason": verdict.reason.value if verdict is not None else None,
        "obeyed": not finding.profile.not_obeyed,
        "line": deciding.line if deciding is not None else None,
        "rule": str(deciding) if deciding is not None else None,
        "group": verdict.product_token if verdict is not None else None,
        "product_tokens": list(finding.profile.tokens),
        "robots_url": info.robots_url if info is not None else None,
        "hops": [{"url": a.url, "answer": a.reason or "no answer", "location": a.location} for a in finding.answers],
        "answer": info.answer if info is not None else None,
        "access": info.access.value if info is not None else None,
        "source": info.meaning(finding.profile.status_policy)[1] if info is not None else None,
        "age": round(max(finding.now - received_at, 0.0), 3) if received_at is not None else None,
        "good_for": round(max(info.fetch_again_at - finding.now, 0.0), 3) if info is not None else None,
        "crawl_delay": finding.crawl_delay,
        "usage": [_usage_as_json(usage, category) for category in usage],
        **json_of_file(robots or RobotsTxt(b"")),
        "error": finding.error or None,
        **({"scrapy": asdict(finding.compared)} if finding.compared is not None else {}),
        **({"forgotten": finding.forgotten} if finding.forgotten is not None else {}),
        **({"robots_txt": robots.octets.decode("utf-8", "replace") if robots is not None else None} if show else {}),
    }


def _usage_as_json(usage: Usage, category: str) -> dict[str, Any]:
    stated = usage.deciding(category)
    line, directive = (stated.line, stated.directive) if stated is not None else (None, None)
    return {"category": category, "allowed": usage[category], "line": line, "directive": directive}


def as_line(finding: Finding) -> str:
    """Return one line: the answer, the URL and the reason, with a tab between them."""
    verdict, why = finding.verdict, finding.why
    if verdict is not None and verdict.access is not AccessResult.SUCCESS and verdict.answer:
        why = f"{why}: {printable(verdict.answer)}"
    compared = f"\tScrapy's own: {finding.compared.words}" if finding.compared is not None else ""
    return f"{finding.word}\t{printable(finding.url, None)}\t{why}{compared}"


def as_text(finding: Finding, *, colour: bool = False, show: str | None = None) -> str:
    """Return several lines of text. Text of the URL and of the server is escaped.

    `show` adds lines of robots.txt: `lines` adds the ones that matter, `all` adds all.
    """
    lines = [_painted(printable(finding.url, None), BOLD, colour)]
    lines += (f"  {label:<{LABEL}}{words}" for label, words in _rows(finding, colour))
    robots, verdict = finding.robots, finding.verdict
    if show and robots is not None and verdict is not None and verdict.reason not in NO_ROBOTS_TXT_APPLIES:
        line = finding.deciding.line if finding.deciding is not None else None
        shown = listing(robots, verdict.product_token, line, whole=show == "all")
        lines += (_painted(text, {">": YELLOW, "|": BOLD}.get(text[:1], ""), colour) for text in ("", *shown))
    return "\n".join(line.rstrip() for line in lines)


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text


def _rows(finding: Finding, colour: bool) -> Iterator[tuple[str, str]]:
    """Yield the label and the words of each row. The label is empty if the row continues the row above."""
    profile, info = finding.profile, finding.info
    if not finding.is_listed or finding.error:
        code = RED if finding.allowed is False else GREEN if finding.allowed else YELLOW
        yield _painted(f"{finding.word:<{LABEL}}", code, colour), finding.why
    if finding.compared is not None:
        yield "Scrapy's own", finding.compared.words
    is_without = finding.verdict is not None and finding.verdict.reason in NO_ROBOTS_TXT_APPLIES
    if is_without or (finding.verdict is None and info is None):
        return
    if not finding.is_listed:
        if profile.not_obeyed:
            yield "not obeyed", profile.not_obeyed
        yield "crawler", " or ".join(map(printable, profile.tokens)) or "no name, so only the groups of '*' apply"
    if profile.file_name:
        yield "robots.txt", printable(profile.file_name, None)
    if info is not None:
        yield from _origin_rows(finding, info)
    if not finding.is_listed and finding.robots is not None:
        yield from _file_rows(finding, finding.robots)


def _origin_rows(finding: Finding, info: OriginInfo) -> Iterator[tuple[str, str]]:
    yield "robots.txt", printable(info.robots_url)
    for answer in finding.answers:
        if answer.location is not None:
            yield "", f"{printable(answer.reason)} -> {printable(answer.location)}"
    if not finding.answers and info.url not in {"", info.robots_url}:
        yield "", f"-> {printable(info.url)}"
    words, source = info.meaning(finding.profile.status_policy)
    is_none = info.access is AccessResult.UNAVAILABLE and info.failing_since is None
    counts_as = "no robots.txt, so" if is_none else f"{info.access.value},"
    yield "answer", f"{printable(info.answer)}: {counts_as} {words} ({source})"
    left = in_words(info.fetch_again_at - finding.now)
    fetched = "" if info.received_at is None else f"fetched {_ago(finding.now - info.received_at)}"
    if info.failing_since is None:
        yield "valid for", ", ".join(filter(None, (left, fetched)))
    else:
        rules = f"; rules {fetched}" if info.robots is not None else ""
        yield "next fetch", f"in {left}; unreachable for {in_words(finding.now - info.failing_since)}{rules}"


def _file_rows(finding: Finding, robots: RobotsTxt) -> Iterator[tuple[str, str]]:
    delay, longest = finding.crawl_delay, finding.profile.crawl_delay_max
    if delay is not None:
        obeyed = "not obeyed" if not longest else "obeyed" if delay <= longest else f"obeyed up to {longest:g} s"
        yield "crawl-delay", f"{delay:g} s, {obeyed} (REP_CRAWL_DELAY_MAX = {longest:g})"
    yield from _many("usage", _usage_in_words(finding))
    yield from _many("sitemaps", [printable(sitemap) for sitemap in robots.sitemaps])
    ignored = [f"line {each.line}, {each.reason}: {printable(each.text)}".rstrip(" :") for each in _ignored(robots)]
    yield from _many("ignored", ignored)


def _usage_in_words(finding: Finding) -> list[str]:
    """Return one text for each category that robots.txt mentions and each purpose of the crawler.

    The list is empty without a verdict, and for a page that is refused for another reason than a purpose.
    """
    usage = usage_in(finding.verdict)
    asked = finding.profile.purposes.categories if finding.allowed or usage else ()
    texts: list[str] = []
    for category in dict.fromkeys((*usage, *asked)):
        stated = usage.deciding(category)
        by = f" by {_line_in_words(stated)}" if stated is not None else ""
        if stated is not None and stated.product_token in POLICY_TOKENS.values():
            by += f" (group of {stated.product_token!r})"
        texts.append(f"{category}: {PREFERENCE_WORDS[usage.get(category)]}{by}")
    return texts


def _line_in_words(line: DecidingLine) -> str:
    """Return, for example, `line 2, Disallow: /private/`."""
    return f"line {line.line}, {printable(str(line), MAX_RULE)}"


def _many(label: str, items: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, item in enumerate(items[:MAX_NAMED]):
        yield "" if number else label, item
    if len(items) > MAX_NAMED:
        yield "", f"and {len(items) - MAX_NAMED} more; --json prints all"


def _ago(seconds: float) -> str:
    return "just now" if round(seconds) <= 0 else f"{in_words(seconds)} ago"


def in_words(seconds: float) -> str:
    """Return the duration in words: `23 h 59 min`, `5 min`, `30 s`."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return " ".join(f"{number} {unit}" for number, unit in ((hours, "h"), (minutes, "min")) if number)
