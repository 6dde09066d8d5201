"""What is known of the robots.txt of one origin, and of all origins of a crawl: for signals, log, command, report."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from scrapy.utils.datatypes import LocalCache

from scrapy_rep.protocol import words
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.challenge import VENDORS
from scrapy_rep.protocol.lifecycle import Basis, RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.status_policy import MARKUP, StatusRow, result_of
from scrapy_rep.stats import CHALLENGE, NO_RULES, TRUNCATED

_NO_RULES_BY_CAUSE = {words.NO_GROUPS: "empty", words.REDIRECTS: "redirects"}


class OriginKind(words.WordEnum):
    """The kind of the rules that are obeyed or, without rules, of the last answer. In an outage, an older answer may
    still allow requests. The values follow a number: `12 origins with rules`."""

    WITH_RULES = "with rules"
    """Rules are obeyed; in an outage, the old rules."""
    WITHOUT_RULES = "without rules"
    """Everything is allowed."""
    RESTRICTED = "restricted"
    """Nothing is allowed, by REP_STATUS_POLICY."""
    CHALLENGED = "challenged"
    """Unreachable, because the site answers with a challenge."""
    UNREACHABLE = "unreachable"
    """Unreachable for any other reason."""


@dataclass(frozen=True)
class OriginInfo:
    """What is known of an origin's robots.txt at one moment. Times are seconds since the epoch."""

    policy: RobotsPolicy
    """For this package alone: it may change."""
    pause: float | None = None
    """In an outage, seconds until the next attempt that requests wait for; None if they wait for no attempt."""

    @cached_property
    def last(self) -> Answer:
        """The last answer, which may be a failure."""
        return self.policy.entry.last

    @property
    def robots_url(self) -> str:
        """The URL of the origin's robots.txt, before any redirect."""
        return self.policy.entry.robots_url

    @property
    def robots(self) -> RobotsTxt | None:
        """The rules that are obeyed; None if there are no rules."""
        return self.policy.robots

    @property
    def received_at(self) -> float | None:
        """When the stored answer came; None if no answer is stored."""
        return self.policy.entry.stored.received_at if self.policy.entry.stored is not None else None

    @property
    def address(self) -> str:
        """Where the last answer comes from: `URL`, or `URL, redirected to URL`. It is printable."""
        return words.where_from(self.robots_url, self.last.url)

    @property
    def failing_since(self) -> float | None:
        """When the outage began; None if there is none. After a failure of a proxy, it begins again."""
        return self.policy.entry.outage.since if self.policy.entry.outage is not None else None

    @property
    def fetch_again_at(self) -> float:
        """When the answer expires; in an outage, when the backoff is over."""
        if self.policy.entry.outage is not None:
            return self.policy.entry.outage.fetch_again_at
        return self.policy.entry.stored.fresh_until if self.policy.entry.stored is not None else 0.0

    @cached_property
    def kind(self) -> OriginKind:
        """The kind of this robots.txt, as `OriginKind` explains it."""
        robots, access = self.robots, self.last.access
        if robots is not None:
            return OriginKind.WITH_RULES if robots.has_groups else OriginKind.WITHOUT_RULES
        if access is AccessResult.UNAVAILABLE:
            return OriginKind.WITHOUT_RULES
        if access is AccessResult.RESTRICTED:
            return OriginKind.RESTRICTED
        return OriginKind.CHALLENGED if self.last.sign in VENDORS else OriginKind.UNREACHABLE

    @property
    def cause(self) -> str:
        """Why there are no rules, in words by which origins can be counted: `HTTP 404`, `a page of HTML`, `Cloudflare`,
        `DNS` (a key of `words.FAILURES`). Empty if there are rules, and for most failures."""
        kind = self.kind
        if kind is OriginKind.WITH_RULES or kind is OriginKind.UNREACHABLE:
            return words.failure(self.last.reason) if kind is OriginKind.UNREACHABLE else ""
        if self.last.sign:
            return words.A_PAGE if self.last.sign == MARKUP else self.last.sign
        if self.robots is not None:
            return words.NO_GROUPS
        return words.REDIRECTS if self.last.status is None else f"HTTP {self.last.status}"

    @property
    def why_no_rules(self) -> str:
        """The answer of an origin without rules: `none (HTTP 404)`, `HTTP 200, a file without rules`."""
        if self.cause == words.NO_GROUPS:
            return f"{self.last.reason}, {words.NO_GROUPS}"
        return self.last.reason if self.last.sign or self.cause == words.REDIRECTS else f"none ({self.last.reason})"

    @property
    def stats(self) -> tuple[str, ...]:
        """The names of the stats that count the origin."""
        sign, is_truncated = self.last.sign, self.robots is not None and self.robots.truncated
        stats = (TRUNCATED,) if is_truncated else ()
        if sign in VENDORS:
            return (CHALLENGE.format(sign), *stats)
        if self.kind is OriginKind.WITHOUT_RULES:
            return (NO_RULES.format(sign or _NO_RULES_BY_CAUSE.get(self.cause, "status")), *stats)
        return stats

    def meaning(self, rows: Iterable[StatusRow]) -> tuple[str, str]:
        """What the crawl does, in words, and where that is specified. `rows`: those of the crawl's status policy."""
        _result, row_source = result_of(self.last.status, rows, self.last.sign)
        if self.failing_since is not None:
            outage, basis = words.OUTAGE_WORDS[self.policy.basis.value], self.policy.basis
            text = words.LAST_ANSWER_COUNTS if basis is Basis.STORED and self.robots is None else outage.meaning
            return text, (row_source if basis is Basis.NOTHING_ALLOWED else "") or outage.source
        text, source = words.ACCESS_WORDS[self.last.access.value]
        if self.cause == words.NO_GROUPS:
            text = words.NO_RULES
        if self.cause == words.REDIRECTS:
            source = "RFC 9309 2.3.1.2"
        return text, row_source or source


@dataclass(frozen=True, slots=True)
class LastResult:
    """The last result for an origin's robots.txt, which is the only one that counts."""

    kind: OriginKind
    cause: str
    """As in `OriginInfo.cause`."""
    stats: tuple[str, ...]
    """As in `OriginInfo.stats`."""
    outage: int | None
    """The number of the outage that goes on, counted from 1 in this crawl. 0 if the outage is over; None if there was
    none."""


class KnownOrigins:
    """Remembers as many origins as memory has room for (REP_MEMORY_OCTETS). Its numbers count all origins."""

    def __init__(self, limit: int) -> None:
        self._last: LocalCache[Origin, LastResult] = LocalCache(limit=limit)
        self.by_kind: Counter[tuple[OriginKind, str]] = Counter()
        """The number of origins by kind and cause."""
        self.outages = 0
        """The number of outages, of all origins."""
        self.open_outages = 0
        """The number of outages that go on."""
        self.with_outages = 0
        """The number of origins that had an outage."""

    def note(self, origin: Origin, info: OriginInfo) -> tuple[LastResult | None, LastResult]:
        """Remember what is known of the origin now. Return its result before, if there is one, and its result now."""
        before = self._last.get(origin)
        outage = before.outage if before is not None else None
        if info.failing_since is not None and not outage:
            self.with_outages += outage is None
            self.open_outages += 1
            self.outages += 1
            outage = self.outages
        elif info.failing_since is None and outage:
            self.open_outages -= 1
            outage = 0
        now = self._last[origin] = LastResult(info.kind, info.cause, info.stats, outage)
        self.by_kind[now.kind, now.cause] += 1
        if before is not None:
            self.by_kind[before.kind, before.cause] -= 1
        return before, now
