"""A robots.txt: which URLs it allows to whom, and what else it says (RFC 9309 section 2).

The way to a verdict: `syntax` says what a record is, `segments` for which crawlers, `patterns` makes rules and URLs
comparable, and `longest_match` says which rule decides. Nothing is read before somebody asks, and then no more than the
answer needs: most lines of most files are about other crawlers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scrapy_rep.protocol.foreign_text import shortened, text_of
from scrapy_rep.protocol.robotstxt.comparison_cost import TooCostlyError
from scrapy_rep.protocol.robotstxt.groups import Group, Record, read_groups, read_ignored, read_records
from scrapy_rep.protocol.robotstxt.longest_match import EffectiveRules
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.robotstxt.product_tokens import is_product_token
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.protocol.robotstxt.segments import Segments
from scrapy_rep.protocol.robotstxt.syntax import (
    RECORDS,
    RULE_OR_DELAY_LINE,
    WHITE_SPACE,
    Directive,
    has_record,
    readable,
    searchable,
    seconds_of,
    without_comments,
)

PARSING_LIMIT = 512_000  # octets; RFC 9309 2.5: "at least 500 kibibytes"

# What is kept for crawlers that have asked: a crawl has one product token, or a few that its requests name.
MAX_READY = 64  # crawlers
MAX_READY_COPIES = 4  # octets of the lines that they obey, in multiples of the file's: 1 if no two obey the same line

# Bytes of memory besides the octets and the rules (measured: tests/protocol/test_costs.py).
_FIXED_MEMORY = 420
_MEMORY_OF_CRAWLER = 150

_NOT_READ = -1.0  # seconds; no delay is negative


@dataclass(frozen=True, slots=True)
class Ignored:
    """A line that was not read, and why."""

    line: int
    """Counted from 1."""
    text: str
    """As written, for people, without white space around it; cut to MAX_TEXT characters."""
    reason: str


@dataclass(slots=True)
class _Crawler:
    """What is kept for a crawler that has asked."""

    token: str | None
    """The token that is obeyed, as given or `*`; None if no group applies."""
    rules: EffectiveRules
    delay: float | None = _NOT_READ


@dataclass(frozen=True, slots=True, repr=False)
class RobotsTxt:
    r"""A parsed robots.txt.

    >>> robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /private/\nCrawl-delay: 2.5\n")
    >>> robots
    RobotsTxt(1 group, 1 rule)
    >>> robots.allows("https://example.com/private/diary", "ExampleBot")
    False
    >>> robots.crawl_delay("ExampleBot")
    2.5

    `url` is a URL with a host, or a path; `product_token` is the crawler's name without version, or several names in
    order of preference, the first of which that any group names is obeyed. If no group names the crawler, it obeys the
    groups of `*`; an empty sequence obeys those alone.

    All methods raise ValueError for anything else.
    """

    octets: bytes
    """What was read of the body, within the limit: without a byte order mark, UTF-16 as UTF-8, each line end LF."""
    truncated: bool = False
    """The body went on beyond the limit."""
    _ready: dict[str | tuple[str, ...], _Crawler] = field(init=False, compare=False, default_factory=dict)
    kept: dict[object, tuple[Any, int]] = field(init=False, compare=False, repr=False, default_factory=dict)
    """What other readers of the file keep with it, by keys of their own: a value, and the bytes of memory of it. All of
    it is forgotten when many crawlers have asked."""

    @classmethod
    def parse(cls, body: bytes, limit: int = PARSING_LIMIT) -> RobotsTxt:
        """The robots.txt with this body. Never raises on any bytes.

        `limit`: bytes that are read. What follows is not, nor is a line that the limit cuts (2.5).
        Raises TypeError for anything but bytes: rules are bytes (2.2.2), and nothing says which ones a str stood for.
        """
        if not isinstance(body, (bytes, bytearray, memoryview)):
            kind = type(body).__name__
            raise TypeError(f"RobotsTxt.parse needs the bytes of a robots.txt, not {kind}: use response.body")
        return cls(readable(body, limit), len(body) > limit)

    def allows(self, url: str, product_token: str | Sequence[str]) -> bool:
        """Whether the crawler may fetch the URL; faster than `verdict`, which says why. Raises ValueError."""
        try:
            return self._crawler(product_token).rules.allows(url)
        except TooCostlyError:
            return False

    def verdict(self, url: str, product_token: str | Sequence[str]) -> Verdict:
        """Whether the crawler may fetch the URL, and why; without `robots_url` and `answer`. Raises ValueError."""
        crawler = self._crawler(product_token)
        try:
            rule = crawler.rules.rule(url, self.octets)
        except TooCostlyError:
            return Verdict(False, VerdictReason.TOO_COSTLY, None, crawler.token)
        if rule is not None:
            return Verdict(rule.allow, VerdictReason.RULE, rule, crawler.token)
        reason = VerdictReason.NO_GROUP if crawler.token is None else VerdictReason.NO_RULE
        return Verdict(True, VerdictReason.NOT_SUBJECT if is_robots_txt(url) else reason, None, crawler.token)

    def crawl_delay(self, product_token: str | Sequence[str]) -> float | None:
        """Seconds between requests: the largest that the crawler's groups ask for; None if they ask for none.

        A delay is for the user-agent lines above it, up to the rule or delay before them, so that no crawler gets the
        delay of another one. Protego, crawler-commons and robots-parser read it so. Raises ValueError.
        """
        crawler = self._crawler(product_token)
        if crawler.delay == _NOT_READ:
            segments = Segments(self.octets)
            own = segments.joined(segments.of(crawler.token, RULE_OR_DELAY_LINE))
            values = set(without_comments("\n".join(RECORDS[Directive.CRAWL_DELAY].findall(own))).split("\n"))
            crawler.delay = max([delay for value in values if (delay := seconds_of(value)) is not None], default=None)
        return crawler.delay

    @property
    def has_groups(self) -> bool:
        """Whether any line is a user-agent line; without one it has no rules."""
        return RECORDS[Directive.USER_AGENT].search(searchable(self.octets)) is not None

    @property
    def is_markup_without_records(self) -> bool:
        """Whether this is a page of HTML or XML instead of a robots.txt: it begins with `<`, and no line of it is a
        user-agent line, a sitemap or a rule."""
        return self.octets.lstrip(b" \t\n").startswith(b"<") and not has_record(searchable(self.octets))

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in their order. Read again at each call, as are the records, sitemaps and ignored lines."""
        return read_groups(read_records(self.octets))

    @property
    def records(self) -> tuple[Record, ...]:
        """Each line with a key and a value, in their order, also of keys that this package does not know."""
        return tuple(read_records(self.octets))

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps' addresses as written, each once, in their order; they belong to no group (2.2.4)."""
        values = RECORDS[Directive.SITEMAP].findall(searchable(self.octets))
        addresses = dict.fromkeys(without_comments("\n".join(values)).split("\n"))
        return tuple(text_of(address.encode("latin-1")) for address in addresses if address)

    @property
    def ignored(self) -> tuple[Ignored, ...]:
        """Every line that was not read, with the reason."""
        lines = self.octets.split(b"\n")
        ignored = [
            Ignored(line, shortened(text_of(lines[line - 1].strip(WHITE_SPACE.encode()))), reason)
            for line, reason in read_ignored(self.octets)
        ]
        if self.truncated:
            ignored.append(Ignored(len(lines), "", "beyond the limit, like all that follows"))
        return tuple(ignored)

    @property
    def memory(self) -> int:
        """Bytes of memory that it takes, estimated; grows as more crawlers ask, within MAX_READY_COPIES."""
        rules = {crawler.rules for crawler in self._ready.values()}
        kept = sum(size for _value, size in self.kept.values())
        rest = _FIXED_MEMORY + _MEMORY_OF_CRAWLER * len(self._ready) + kept
        return len(self.octets) + sum(one.memory for one in rules) + rest

    def __repr__(self) -> str:
        groups = self.groups
        rules = sum(len(group.rules) for group in groups)
        return (
            f"RobotsTxt({len(groups)} group{'' if len(groups) == 1 else 's'}, {rules} rule{'' if rules == 1 else 's'}"
            f"{', truncated' if self.truncated else ''})"
        )

    def _crawler(self, product_token: str | Sequence[str]) -> _Crawler:
        key = product_token if isinstance(product_token, str) else tuple(product_token)
        return self._ready.get(key) or self._prepare(key)

    def _prepare(self, key: str | tuple[str, ...]) -> _Crawler:
        tokens = (key,) if isinstance(key, str) else key
        for token in tokens:
            if not is_product_token(token):
                raise ValueError(
                    f"{token!r} is not a product token: use the crawler's name alone, such as 'ExampleBot', or '*'"
                )
        segments = Segments(self.octets)
        obeyed = segments.obeyed_token(tokens)
        own = segments.of(obeyed)
        if not self._ready:
            rules = EffectiveRules(segments, own)
        else:
            # Crawlers that obey the same lines share them.
            ready = {crawler.rules.own: crawler.rules for crawler in self._ready.values()}
            rules = ready.setdefault(own, ready.get(own) or EffectiveRules(segments, own))
            size = sum(rules.size for rules in ready.values())
            if len(self._ready) >= MAX_READY or size > MAX_READY_COPIES * len(self.octets):
                self._ready.clear()
                self.kept.clear()
        self._ready[key] = crawler = _Crawler(obeyed, rules)
        return crawler
