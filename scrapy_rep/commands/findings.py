"""What was found out about a URL: in words for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from scrapy_rep.commands.listing import listing
from scrapy_rep.commands.urls import check_host, is_without_robots
from scrapy_rep.origin_info import OriginInfo, origin_info
from scrapy_rep.protocol.access_result import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.foreign_text import MAX_RULE
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import RobotsPolicy, policy_at
from scrapy_rep.protocol.robotstxt.parser import PARSING_LIMIT, Ignored, RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Line, Verdict, VerdictReason
from scrapy_rep.protocol.status_policy import RFC9309, StatusRow
from scrapy_rep.text import printable
from scrapy_rep.usage.preferences import Purposes, Usage, UsageVerdict, usage_in
from scrapy_rep.usage.statements import ignored_statements
from scrapy_rep.usage.vocabulary import POLICY_TOKENS, PREFERENCE_WORDS

MAX_NAMED = 10  # sitemaps or ignored lines in the text; the JSON has all
LABEL = 13  # columns
SMALL = 4_096  # bytes of a robots.txt
NO_ROBOTS_TXT_APPLIES = (VerdictReason.EXEMPT, VerdictReason.NOT_SUBJECT)
GREEN, RED, YELLOW, BOLD = "32", "31", "33", "1"


class CannotTellError(Exception):
    """There is no verdict for a URL. The message says why."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """The crawl that the answers are for."""

    tokens: tuple[str, ...] = ()
    """Its product tokens, in order of preference."""
    status_policy: Iterable[StatusRow] = RFC9309
    crawl_delay_max: float = 0.0
    purposes: Purposes = field(default_factory=Purposes)
    not_obeyed: str = ""
    """Why it does not act by the answers, in words; empty if it does."""
    file_name: str = ""
    """Of the robots.txt of `--file`, which is for all URLs."""

    def verdict(self, policy: RobotsPolicy, url: str) -> Verdict:
        """Raises ValueError for what is no URL."""
        verdict = policy.verdict(url, self.tokens)
        try:
            judged = self.purposes.judge(verdict, policy.robots, url, self.tokens)
        except ImportError as exc:  # without the extra `usage`
            if self.purposes.categories:
                raise ValueError(str(exc)) from None
            return verdict
        return judged if judged.usage else verdict  # most files say nothing of it


@dataclass(frozen=True, slots=True)
class Compared:
    """With `--compare`: what Scrapy's own middleware and parser would answer."""

    allowed: bool
    why: str = ""
    """Why the answer differs; empty if it does not."""

    @property
    def words(self) -> str:
        return f"{'allowed' if self.allowed else 'refused'}: {printable(self.why)}" if self.why else "the same"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one URL."""

    url: str
    """As the user gave it."""
    crawl: Crawl = Crawl()
    error: str = ""
    """Why there is no verdict."""
    forgotten: bool | None = None
    """With `--forget`: whether an entry was stored; else None."""
    verdict: Verdict | None = None
    policy: RobotsPolicy | None = None
    """Of the URL's origin, or of the file; None if no robots.txt applies or is known."""
    answers: tuple[Answer, ...] = ()
    """To the requests for robots.txt that were made for this URL, in their order; each with the request's URL."""
    now: float = 0.0
    """When the URL was judged, in seconds since the epoch."""
    compared: Compared | None = None
    """None without `--compare`, and if there is no verdict."""
    is_listed: bool = False
    """Nobody asked about the URL: it is an origin in a list of what is stored."""

    @property
    def allowed(self) -> bool | None:
        """Whether the URL may be fetched; None if there is no verdict."""
        return self.verdict.allowed if self.verdict is not None else None

    @property
    def robots(self) -> RobotsTxt | None:
        return self.policy.robots if self.policy is not None else None

    @property
    def info(self) -> OriginInfo | None:
        """About the URL's origin; None if no robots.txt of it is known."""
        return origin_info(self.policy) if self.policy is not None and self.policy.entry.robots_url else None

    @property
    def crawl_delay(self) -> float | None:
        return self.robots.crawl_delay(self.crawl.tokens) if self.robots is not None else None

    @property
    def deciding(self) -> Line | None:
        """What decides about the URL in the robots.txt."""
        return self.verdict.decided_by if self.verdict is not None else None

    @property
    def usage(self) -> Usage:
        """What the page may be used for."""
        return usage_in(self.verdict)

    @property
    def purpose(self) -> str | None:
        """The crawl's purpose that refuses the URL; None if none does."""
        return self.verdict.purpose if isinstance(self.verdict, UsageVerdict) else None

    @property
    def word(self) -> str:
        if self.verdict is not None:
            return "allowed" if self.verdict.allowed else "refused"
        if self.forgotten is not None:
            return "forgotten" if self.forgotten else "not stored"
        return "can't tell"

    @property
    def why(self) -> str:
        """The rule or the reason, with its source; or why there is no verdict."""
        verdict, deciding = self.verdict, self.deciding
        if verdict is None:
            return printable(self.error, MAX_RULE)
        group = f"group of {verdict.product_token!r}" if verdict.product_token is not None else "for every crawler"
        if deciding is not None:
            purpose = f"for the purpose {self.purpose!r} " if self.purpose is not None else ""
            read_as = f", because servers read the URL as {printable(verdict.read_as)}" if verdict.read_as else ""
            return f"{purpose}by {_line_in_words(deciding)} ({group}){read_as}"
        return f"{verdict.words} ({group if verdict.reason is VerdictReason.NO_RULE else verdict.source})"


def policy_of_file(body: bytes, limit: int = PARSING_LIMIT) -> RobotsPolicy:
    """Of a robots.txt that nobody has fetched; arguments as of `RobotsTxt.parse`."""
    robots = RobotsTxt.parse(body, limit)
    return policy_at(Entry("", StoredResponse(AccessResult.SUCCESS, "", robots, 0.0, DAY)), 0.0, DAY)


def judged(url: str, crawl: Crawl, policy: RobotsPolicy) -> Finding:
    """The URL, or a path alone, by a robots.txt that is there."""
    if is_without_robots(url):
        return Finding(url, crawl, verdict=Verdict(True, VerdictReason.NOT_SUBJECT), policy=policy)
    try:
        check_host(url)
        return Finding(url, crawl, verdict=crawl.verdict(policy, url), policy=policy)
    except ValueError as exc:
        return Finding(url, crawl, str(exc), policy=policy)


def _said(robots: RobotsTxt) -> dict[str, Any]:
    """What the file says to all crawlers."""
    return {"sitemaps": list(robots.sitemaps), "ignored": [asdict(ignored) for ignored in _ignored(robots)]}


def _ignored(robots: RobotsTxt) -> list[Ignored]:
    """Every line that says nothing, in their order."""
    return sorted((*robots.ignored, *ignored_statements(robots.octets)), key=lambda ignored: ignored.line)


# It is the same for all URLs of an origin, and takes longer than the rest of the JSON. Large files may have much of it,
# so fewer of them are kept.
_said_by_small, _said_by_large = lru_cache(maxsize=10_000)(_said), lru_cache(maxsize=64)(_said)


def as_json(finding: Finding, *, show: bool = False) -> dict[str, Any]:
    """All that was found out, null where nothing is known; `docs/command.md` has the keys. `show` adds the file."""
    verdict, robots, info, deciding = finding.verdict, finding.robots, finding.info, finding.deciding
    said = _said_by_small if robots is None or len(robots.octets) < SMALL else _said_by_large
    received_at = info.received_at if info is not None else None
    return {
        "url": finding.url,
        "allowed": finding.allowed,
        "reason": verdict.reason.value if verdict is not None else None,
        "obeyed": not finding.crawl.not_obeyed,
        "line": deciding.line if deciding is not None else None,
        "rule": str(deciding) if deciding is not None else None,
        "group": verdict.product_token if verdict is not None else None,
        "product_tokens": list(finding.crawl.tokens),
        "robots_url": info.robots_url if info is not None else None,
        "hops": [_hop_as_json(answer) for answer in finding.answers],
        "answer": info.answer if info is not None else None,
        "access": info.access.value if info is not None else None,
        "source": info.meaning(finding.crawl.status_policy)[1] if info is not None else None,
        "age": round(max(finding.now - received_at, 0.0), 3) if received_at is not None else None,
        "good_for": round(max(info.fetch_again_at - finding.now, 0.0), 3) if info is not None else None,
        "crawl_delay": finding.crawl_delay,
        "usage": [_usage_as_json(finding.usage, category) for category in finding.usage],
        **said(robots or RobotsTxt(b"")),
        "error": finding.error or None,
        **({"scrapy": asdict(finding.compared)} if finding.compared is not None else {}),
        **({"forgotten": finding.forgotten} if finding.forgotten is not None else {}),
        **({"robots_txt": robots.octets.decode("utf-8", "replace") if robots is not None else None} if show else {}),
    }


def _hop_as_json(answer: Answer) -> dict[str, Any]:
    return {"url": answer.url, "answer": answer.reason or "no answer", "location": answer.location}


def _usage_as_json(usage: Usage, category: str) -> dict[str, Any]:
    stated = usage.deciding(category)
    line, directive = (stated.line, stated.directive) if stated is not None else (None, None)
    return {"category": category, "allowed": usage[category], "line": line, "directive": directive}


def as_line(finding: Finding) -> str:
    """One line: the answer, the URL and the reason, with a tab between them."""
    verdict, told = finding.verdict, finding.why
    if verdict is not None and verdict.access is not AccessResult.SUCCESS and verdict.answer:
        told = f"{told}: {printable(verdict.answer)}"
    compared = f"\tScrapy's own: {finding.compared.words}" if finding.compared is not None else ""
    return f"{finding.word}\t{printable(finding.url, None)}\t{told}{compared}"


def as_text(finding: Finding, *, colour: bool = False, show: str | None = None) -> str:
    """Lines for people. All that strangers wrote is escaped. `show`: the lines of the file that matter, or `all`."""
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
    """Label and words; an empty label where the words of the row above go on."""
    crawl, info = finding.crawl, finding.info
    if not finding.is_listed or finding.error:
        code = RED if finding.allowed is False else GREEN if finding.allowed else YELLOW
        yield _painted(f"{finding.word:<{LABEL}}", code, colour), finding.why
    if finding.compared is not None:
        yield "Scrapy's own", finding.compared.words
    is_without = finding.verdict is not None and finding.verdict.reason in NO_ROBOTS_TXT_APPLIES
    if is_without or (finding.verdict is None and info is None):
        return
    if not finding.is_listed:
        if crawl.not_obeyed:
            yield "not obeyed", crawl.not_obeyed
        yield "crawler", " or ".join(map(printable, crawl.tokens)) or "no name, so only the groups of '*' apply"
    if crawl.file_name:
        yield "robots.txt", printable(crawl.file_name, None)
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
    words, source = info.meaning(finding.crawl.status_policy)
    is_none = info.access is AccessResult.UNAVAILABLE and info.failing_since is None
    counts_as = "none, so" if is_none else f"{info.access.value},"
    yield "answer", f"{printable(info.answer)}: {counts_as} {words} ({source})"
    left = in_words(info.fetch_again_at - finding.now)
    age = "" if info.received_at is None else f"{in_words(finding.now - info.received_at)} old"
    if info.failing_since is None:
        yield "good for", f"{left}; {age}"
    else:
        rules = f"; its rules are {age}" if info.robots is not None else ""
        yield "asked again", f"in {left}; failing for {in_words(finding.now - info.failing_since)}{rules}"


def _file_rows(finding: Finding, robots: RobotsTxt) -> Iterator[tuple[str, str]]:
    delay, longest = finding.crawl_delay, finding.crawl.crawl_delay_max
    if delay is not None:
        obeyed = "not obeyed" if not longest else "obeyed" if delay <= longest else f"obeyed up to {longest:g} s"
        yield "crawl-delay", f"{delay:g} s, {obeyed} (REP_CRAWL_DELAY_MAX = {longest:g})"
    yield from _many("usage", _usage_in_words(finding))
    yield from _many("sitemaps", [printable(sitemap) for sitemap in robots.sitemaps])
    yield from _many("ignored", [_ignored_in_words(ignored) for ignored in _ignored(robots)])


def _usage_in_words(finding: Finding) -> list[str]:
    """A text for each category that is known, and each purpose; none for a page that may not be fetched."""
    usage = finding.usage
    asked = finding.crawl.purposes.categories if finding.allowed or usage else ()
    texts: list[str] = []
    for category in dict.fromkeys((*usage, *asked)):
        stated = usage.deciding(category)
        by = f" by {_line_in_words(stated)}" if stated is not None else ""
        is_policy = stated is not None and stated.product_token in POLICY_TOKENS.values()
        group = f" (group of {stated.product_token!r})" if stated is not None and is_policy else ""
        texts.append(f"{category}: {PREFERENCE_WORDS[usage.get(category)]}{by}{group}")
    return texts


def _line_in_words(line: Line) -> str:
    """`line 2, Disallow: /private/`."""
    return f"line {line.line}, {printable(str(line), MAX_RULE)}"


def _ignored_in_words(ignored: Ignored) -> str:
    return f"line {ignored.line}, {ignored.reason}: {printable(ignored.text)}".rstrip(" :")


def _many(label: str, items: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, item in enumerate(items[:MAX_NAMED]):
        yield "" if number else label, item
    if len(items) > MAX_NAMED:
        yield "", f"and {len(items) - MAX_NAMED} more; --json has all"


def in_words(seconds: float) -> str:
    """`23 h 59 min`, `5 min`, `30 s`."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return " ".join(f"{number} {unit}" for number, unit in ((hours, "h"), (minutes, "min")) if number)
