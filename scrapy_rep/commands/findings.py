"""What was found out about a URL, in words for people and as JSON for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scrapy_rep.commands.listing import listing
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.lifecycle import Basis
from scrapy_rep.protocol.robotstxt.parser import Ignored, RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.protocol.status_policy import RFC9309, StatusRow
from scrapy_rep.text import MAX_RULE, printable

ALL_ALLOWED, SOME_REFUSED, COULD_NOT_TELL = 0, 1, 3  # exit statuses; 2 is wrong usage, for every command

MAX_NAMED = 10  # of what may be many, in the text; the JSON has all
LABEL = 13  # columns

# What an access result means to a crawl, and where that is said unless an answer's status says it more exactly.
MEANING: dict[AccessResult, tuple[str, str]] = {
    AccessResult.SUCCESS: ("its rules are obeyed", "RFC 9309 2.3.1.1"),
    AccessResult.REDIRECT: ("followed", "RFC 9309 2.3.1.2"),
    AccessResult.UNAVAILABLE: ("everything is allowed", "RFC 9309 2.3.1.3"),
    AccessResult.RESTRICTED: ("nothing is allowed", "REP_STATUS_POLICY"),
    AccessResult.UNREACHABLE: ("nothing is allowed until it is back", "RFC 9309 2.3.1.4"),
}
# Of one that is unreachable, what goes on meanwhile decides.
MEANWHILE: dict[Basis, tuple[str, str]] = {
    Basis.NOTHING_ALLOWED: MEANING[AccessResult.UNREACHABLE],
    Basis.STORED: ("the rules that it had are obeyed", "RFC 9309 2.4"),
    Basis.EVERYTHING_ALLOWED: ("after so long, everything is allowed", "RFC 9309 2.3.1.4"),
}
_STATUS = re.compile(r"HTTP (\d+)")
GREEN, RED, YELLOW, BOLD, DIM = "32", "31", "33", "1", "2"


@dataclass(frozen=True, slots=True)
class Hop:
    """One request for a robots.txt."""

    url: str
    answer: str
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Of one URL."""

    url: str
    error: str = ""
    """Why nothing was found out."""
    passes: str = ""
    """Why no robots.txt holds for it; empty where one does."""
    unreadable: bool = False
    """What is stored of it is another version's, or torn."""
    forgotten: bool | None = None
    """Whether there was something to forget; None where nothing was to be forgotten."""
    tokens: tuple[str, ...] = ()
    """The product tokens that it is held to, in order of preference."""
    verdict: Verdict | None = None
    info: OriginInfo | None = None
    """Of the robots.txt that was asked for."""
    hops: tuple[Hop, ...] = ()
    """What was asked for; none where it was known."""
    now: float = 0.0
    """Seconds since the epoch."""
    status_policy: Iterable[StatusRow] = RFC9309
    crawl_delay_max: float = 0.0
    file: RobotsTxt | None = None
    """The robots.txt at hand, where none was asked for."""
    file_name: str = ""

    @property
    def allowed(self) -> bool | None:
        """None where nothing is known, or was asked for."""
        return True if self.passes else self.verdict.allowed if self.verdict is not None else None

    @property
    def could_tell(self) -> bool:
        """Whether robots.txt has decided: one that is unreachable forbids, but may say otherwise later."""
        if self.verdict is None:
            return not self.error
        return self.verdict.allowed or self.verdict.access is not AccessResult.UNREACHABLE

    @property
    def robots(self) -> RobotsTxt | None:
        return self.info.robots if self.info is not None else self.file

    @property
    def crawl_delay(self) -> float | None:
        return self.robots.crawl_delay(self.tokens) if self.robots is not None else None

    def source(self, info: OriginInfo) -> str:
        """Where it is said what the answer means."""
        status = _STATUS.fullmatch(info.answer)
        if info.failing_since is not None and info.basis is not Basis.NOTHING_ALLOWED:
            return MEANWHILE[info.basis][1]
        if status is None:
            # Unavailable without a status: more redirects than are followed.
            is_redirects = info.access is AccessResult.UNAVAILABLE
            return MEANING[AccessResult.REDIRECT if is_redirects else info.access][1]
        rows = (source for statuses, _, source in self.status_policy if int(status[1]) in statuses)
        return next(rows, MEANING[info.access][1])


class Findings(list[Finding]):
    """Of the URLs in their order."""

    are_complete = False
    """Whether there is nothing more to come; a crawl that does not come up has none."""
    not_obeyed = ""
    """By which setting a crawl fetches what is refused; empty where it does not."""
    storage = ""
    """The address of what was looked into, without its password."""

    @classmethod
    def of(cls, found: Iterable[Finding]) -> Findings:
        """All of them."""
        findings = cls(found)
        findings.are_complete = True
        return findings

    @property
    def exit_status(self) -> int:
        if not self.are_complete or not all(finding.could_tell for finding in self):
            return COULD_NOT_TELL
        return SOME_REFUSED if any(finding.allowed is False for finding in self) else ALL_ALLOWED


def as_json(finding: Finding, *, show: bool = False, not_obeyed: str = "") -> dict[str, Any]:
    """All of it; the keys are in the README. What is not known is null. `show`: the file is in it, too."""
    verdict, info, robots = finding.verdict, finding.info, finding.robots
    rule = verdict.rule if verdict is not None else None
    received_at = info.received_at if info is not None else None
    return {
        "url": finding.url,
        "allowed": finding.allowed,
        "obeyed": not not_obeyed,
        "line": rule.line if rule is not None else None,
        "rule": str(rule) if rule is not None else None,
        "group": verdict.product_token if verdict is not None else None,
        "product_tokens": list(finding.tokens),
        "robots_url": info.robots_url if info is not None else None,
        "hops": [asdict(hop) for hop in finding.hops],
        "answer": info.answer if info is not None else None,
        "access": info.access.value if info is not None else None,
        "source": finding.source(info) if info is not None else None,
        "age": round(max(finding.now - received_at, 0.0), 3) if received_at is not None else None,
        "good_for": round(max(info.fetch_again_at - finding.now, 0.0), 3) if info is not None else None,
        "crawl_delay": finding.crawl_delay,
        "sitemaps": list(robots.sitemaps) if robots is not None else [],
        "ignored": [asdict(ignored) for ignored in robots.ignored] if robots is not None else [],
        "error": finding.error or None,
        **({"forgotten": finding.forgotten} if finding.forgotten is not None else {}),
        **({"robots_txt": _text_of(robots)} if show else {}),
    }


def as_text(finding: Finding, *, colour: bool = False, show: bool = False, not_obeyed: str = "") -> str:
    """Lines for people; nothing that a stranger wrote is anything but text in them."""
    lines = [_painted(printable(finding.url, None), BOLD, colour)]
    lines += (f"  {label:<{LABEL}}{words}" for label, words in _rows(finding, colour, not_obeyed))
    robots = finding.robots
    if show and robots is not None:
        verdict = finding.verdict
        token = verdict.product_token if verdict is not None else None
        rule = verdict.rule if verdict is not None else None
        lines += ["", *(_shown(mark, text, colour) for mark, text in listing(robots, token, rule))]
    return "\n".join(line.rstrip() for line in lines)


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _shown(mark: str, text: str, colour: bool) -> str:
    code = {">": YELLOW, "|": BOLD}.get(mark)
    return _painted(text, code, colour) if code else text


def _rows(finding: Finding, colour: bool, not_obeyed: str) -> Iterator[tuple[str, str]]:
    """Label and words; no label where the words go on."""
    if finding.verdict is None and finding.info is not None:
        yield from _asked_in_words(finding, finding.info)  # one of a list
        return
    code = RED if finding.allowed is False else GREEN if finding.allowed else YELLOW
    verdict = finding.verdict
    word, why = _unjudged_in_words(finding) if verdict is None else _verdict_in_words(verdict)
    yield _painted(f"{word:<{LABEL}}", code, colour), why
    if verdict is None:
        return
    if not_obeyed:
        yield "not obeyed", f"{not_obeyed} here: a crawl fetches it all the same"
    yield "crawler", " or ".join(map(printable, finding.tokens)) or "none by name: the groups of '*' alone"
    if finding.file is not None:
        yield "robots.txt", printable(finding.file_name, None)
    if finding.info is not None:
        yield from _asked_in_words(finding, finding.info)
    yield from _read_in_words(finding)


def _unjudged_in_words(finding: Finding) -> tuple[str, str]:
    if finding.passes:
        return "allowed", f"no robots.txt holds for it: {finding.passes}"
    if finding.forgotten is not None:
        return ("forgotten", "") if finding.forgotten else ("not known", "nothing was stored of its origin")
    if finding.unreadable:
        return "unreadable", "another version of scrapy-rep has stored it, or it is torn"
    return "can't tell", printable(finding.error)


def _verdict_in_words(verdict: Verdict) -> tuple[str, str]:
    word = "allowed" if verdict.allowed else "refused"
    if verdict.rule is not None:
        rule = printable(str(verdict.rule), MAX_RULE)
        return word, f"by line {verdict.rule.line}, {rule} (group of {verdict.product_token!r})"
    if verdict.access is not AccessResult.SUCCESS:
        return word, f"robots.txt is {verdict.access.value}: {MEANING[verdict.access][0]}"
    if verdict.product_token is None:
        return word, "no group is for this crawler, and there is none for '*'"
    return word, f"no rule of the group of {verdict.product_token!r} forbids it"


def _asked_in_words(finding: Finding, info: OriginInfo) -> Iterator[tuple[str, str]]:
    yield "robots.txt", printable(info.robots_url)
    for hop in finding.hops:
        if hop.location is not None:
            yield "", f"{printable(hop.answer)} -> {printable(hop.location)}"
    if not finding.hops and info.url not in {"", info.robots_url}:
        yield "", f"-> {printable(info.url)}"
    yield (
        "answer",
        f"{printable(info.answer)}: {info.access.value}, {MEANING[info.access][0]} ({finding.source(info)})",
    )
    left = in_words(info.fetch_again_at - finding.now)
    age = "" if info.received_at is None else f"{in_words(finding.now - info.received_at)} old"
    if info.failing_since is None:
        yield "good for", f"{left}; {age}"
    else:
        held = f"; the rules are {age}" if info.robots is not None else ""
        yield "asked again", f"in {left}; failing for {in_words(finding.now - info.failing_since)}{held}"


def _read_in_words(finding: Finding) -> Iterator[tuple[str, str]]:
    robots, delay, most = finding.robots, finding.crawl_delay, finding.crawl_delay_max
    if robots is None:
        return
    if delay is not None:
        obeyed = "not obeyed" if not most else "obeyed" if delay <= most else f"obeyed up to {most:g} s"
        yield "crawl-delay", f"{delay:g} s, {obeyed} (REP_CRAWL_DELAY_MAX = {most:g})"
    yield from _many("sitemaps", [printable(sitemap) for sitemap in robots.sitemaps])
    yield from _many("ignored", [_ignored_in_words(ignored) for ignored in robots.ignored])


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
    minutes = round(whole / 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _text_of(robots: RobotsTxt | None) -> str | None:
    return robots.octets.decode("utf-8", "replace") if robots is not None else None
