"""RobotsTxt: a parsed file, cut at 500 KiB or more (RFC 9309 2.5): verdicts, Crawl-delay, sitemaps, licenses.

`syntax` defines what a record is. `groups` finds the records of a crawler. `patterns` normalises rules and URLs
for comparison. `longest_match` finds the rule that decides. Lines are parsed only when a method needs them, because
most lines of most files are about other crawlers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from scrapy_rep.protocol.foreign_text import shortened, text_of
from scrapy_rep.protocol.robotstxt import syntax
from scrapy_rep.protocol.robotstxt.groups import Group, Record, Segments, read_groups, read_ignored, read_lines
from scrapy_rep.protocol.robotstxt.longest_match import EffectiveRules
from scrapy_rep.protocol.robotstxt.patterns import TooCostlyError, is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Rule, Verdict, VerdictReason
from scrapy_rep.protocol.words import counted

PARSING_LIMIT = 512_000  # octets; RFC 9309 2.5: "at least 500 kibibytes"

MAX_LICENSES = 20  # for a crawler; `response.meta` has them

# Parsed rules are kept for each crawler. When a limit is reached, all parsed rules are deleted, and parsed again when
# they are needed. Few crawls reach a limit, because most have one product token.
MAX_PARSED = 64  # crawlers
MAX_PARSED_COPIES = 4  # the parsed lines of all crawlers together may be this many times as long as the file

# Bytes of memory besides the octets and the rules, measured by tests/protocol/test_costs.py.
_FIXED_MEMORY = 350
_MEMORY_OF_CRAWLER = 150

_NOT_READ = -1.0  # stands for a Crawl-delay that has not been read yet; a delay is never negative


@dataclass(frozen=True, slots=True)
class Ignored:
    """A line that is ignored, and the reason."""

    line: int
    """The line number, counted from 1."""
    text: str
    """The line as text, without white space around it, cut to MAX_TEXT characters."""
    reason: str


@dataclass(slots=True)
class _Crawler:
    """The parsed rules of one crawler."""

    token: str | None
    """As in Verdict.product_token."""
    rules: EffectiveRules
    delay: float | None = _NOT_READ
    licenses: tuple[str, ...] | None = None
    """None if they have not been read yet."""


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

    `url` is a URL with a host, or a path. `product_token` is the crawler's name without a version, or a sequence of
    such names. The crawler obeys the groups of the first of these names that the file contains. If the file contains
    none of them, the crawler obeys the groups of `*`. The methods raise ValueError for a name that is not a product
    token, and for a text that is neither a URL nor a path, such as `mailto:a@b.example`.
    """

    octets: bytes
    """The body that was read, up to the limit: as UTF-8 if it was UTF-16, without a byte order mark, and with LF as
    line end."""
    truncated: bool = False
    """Whether the body is longer than the limit."""
    from_browser: bool = False
    """Whether the body was the page that a browser makes of a text file. Then the text in this page was read."""
    _parsed: dict[tuple[str, ...], _Crawler] = field(init=False, compare=False, default_factory=dict)

    @classmethod
    def parse(cls, body: bytes, limit: int = PARSING_LIMIT) -> "RobotsTxt":
        """Return the robots.txt with this body. All bytes are accepted.

        `limit` is how many bytes are read (2.5). A line that the limit cuts is not read. Raises TypeError for text.
        """
        if not isinstance(body, (bytes, bytearray, memoryview)):
            kind = type(body).__name__
            raise TypeError(f"RobotsTxt.parse needs the bytes of a robots.txt, not {kind}: use response.body")
        body = bytes(body)
        text = syntax.text_in_browser_page(body)
        body = body if text is None else text
        return cls(syntax.readable(body, limit), len(body) > limit, text is not None)

    def allows(self, url: str, product_token: str | Sequence[str]) -> bool:
        """Whether the crawler may fetch the URL. This is faster than `verdict`. Raises ValueError."""
        try:
            return self._crawler(product_token).rules.allows(url)
        except TooCostlyError:
            return False

    def verdict(self, url: str, product_token: str | Sequence[str]) -> Verdict:
        """Return whether the crawler may fetch the URL, and why. Raises ValueError."""
        crawler = self._crawler(product_token)
        try:
            rule = crawler.rules.rule(url, self.octets)
        except TooCostlyError:
            return Verdict(False, VerdictReason.TOO_COSTLY, None, crawler.token)
        if rule is not None:
            return Verdict(rule.allow, VerdictReason.RULE, rule, crawler.token)
        reason = VerdictReason.NO_GROUP if crawler.token is None else VerdictReason.NO_RULE
        reason = VerdictReason.NOT_SUBJECT if is_robots_txt(url) else reason
        return Verdict(True, reason, None, crawler.token)

    def first_disallow(self, product_token: str | Sequence[str]) -> Rule | None:
        """Return the first rule for the crawler that disallows any URL; None if there is none. Raises ValueError."""
        return self._crawler(product_token).rules.first_disallow(self.octets)

    def crawl_delay(self, product_token: str | Sequence[str]) -> float | None:
        """Return the seconds between requests that the crawler's groups ask for; None if they ask for none.

        If the groups have several delays, the longest counts. A delay is for the nearest user-agent line above it, and
        for the user-agent lines above that one, if no rule and no other delay is between them. (Protego,
        crawler-commons and robots-parser read it in this way.) Raises ValueError.
        """
        crawler = self._crawler(product_token)
        if crawler.delay == _NOT_READ:
            segments = Segments(self.octets)
            lines = segments.joined(segments.of(crawler.token, syntax.RULE_OR_DELAY_LINE))
            values = set(syntax.values_of(syntax.RECORDS[syntax.Directive.CRAWL_DELAY], lines).split("\n"))
            delays = map(syntax.seconds_of, values)
            crawler.delay = max([delay for delay in delays if delay is not None], default=None)
        return crawler.delay

    @property
    def has_groups(self) -> bool:
        """Whether the file has a user-agent line. A file without one has no rules that apply."""
        return syntax.USER_AGENT_LINE.search(syntax.searchable(self.octets)) is not None

    @property
    def has_rules(self) -> bool:
        """Whether a group has a rule that can match."""
        text = syntax.searchable(self.octets)
        group = syntax.USER_AGENT_LINE.search(text)
        return group is not None and syntax.RULE_VALUE.search(text, group.end()) is not None

    @property
    def is_markup(self) -> bool:
        """Whether the file begins with `<`, as a page of HTML or XML does."""
        return self.octets.lstrip(b" \t\n").startswith(b"<")

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups in the order of the file. This property parses the file at each call, as do `records`, `sitemaps`
        and `ignored`."""
        return read_groups(self.records)

    @property
    def records(self) -> tuple[Record, ...]:
        """All lines with a key, known or not, in the order of the file."""
        return tuple(line for line in read_lines(self.octets) if isinstance(line, Record))

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The URLs of the sitemaps as written, in the order of the file, without duplicates and without quotes or `<>`
        around them (2.2.4)."""
        return tuple(map(text_of, _addresses(syntax.Directive.SITEMAP, syntax.searchable(self.octets))))

    def licenses(self, product_token: str | Sequence[str]) -> tuple[str, ...]:
        """Return the URLs in License lines (RSL 1.0), as written, in the order of the file, without duplicates, and at
        most MAX_LICENSES. Raises ValueError.

        They are those of the crawler's groups; if there are none, those before the first user-agent line; else all. A
        line is for the user-agent lines above it, as a Crawl-delay is. A content network may put its groups before a
        site's file. Then the lines at the top of that file are in the last of these groups.
        """
        crawler = self._crawler(product_token)
        if crawler.licenses is None:
            text = syntax.searchable(self.octets)
            if syntax.RECORDS[syntax.Directive.LICENSE].search(text) is None:  # most files have none
                crawler.licenses = ()
                return ()
            segments = Segments(self.octets)
            own = segments.of(crawler.token, syntax.RULE_OR_LICENSE_LINE)
            parts = segments.joined(own), syntax.USER_AGENT_LINE.split(text, 1)[0], text
            found = (list(filter(syntax.URL.fullmatch, _addresses(syntax.Directive.LICENSE, part))) for part in parts)
            crawler.licenses = tuple(map(text_of, next(filter(None, found), [])[:MAX_LICENSES]))
        return crawler.licenses

    @property
    def ignored(self) -> tuple[Ignored, ...]:
        """All lines that are ignored, each with the reason, except those that `usage.statements` reads."""
        lines = self.octets.split(b"\n")
        ignored = [Ignored(1, "", "the page around this text, which a browser made")] if self.from_browser else []
        ignored += [
            Ignored(line, shortened(text_of(lines[line - 1].strip(syntax.WHITE_SPACE.encode()))), reason)
            for line, reason in read_ignored(self.octets)
        ]
        if self.truncated:
            ignored.append(Ignored(len(lines), "", "beyond the limit, like all that follows"))
        return tuple(ignored)

    @property
    def memory(self) -> int:
        """The estimated bytes of memory. They grow with each crawler that is asked about, up to a limit."""
        rules = {crawler.rules for crawler in self._parsed.values()}
        rest = _FIXED_MEMORY + sum(_MEMORY_OF_CRAWLER + sum(map(len, c.licenses or ())) for c in self._parsed.values())
        return len(self.octets) + sum(one.memory for one in rules) + rest

    def __repr__(self) -> str:
        groups = self.groups
        rules = sum(len(group.rules) for group in groups)
        truncated = ", truncated" if self.truncated else ""
        return f"RobotsTxt({counted(len(groups), 'group')}, {counted(rules, 'rule')}{truncated})"

    def _crawler(self, product_token: str | Sequence[str]) -> _Crawler:
        tokens = (product_token,) if isinstance(product_token, str) else tuple(product_token)
        return self._parsed.get(tokens) or self._prepare(tokens)

    def _prepare(self, tokens: tuple[str, ...]) -> _Crawler:
        for token in tokens:
            if not syntax.is_product_token(token):
                raise ValueError(
                    f"{token!r} is not a product token: use the crawler's name alone, such as 'ExampleBot', or '*'"
                )
        segments = Segments(self.octets)
        obeyed = segments.obeyed_token(tokens)
        own_segments = segments.of(obeyed)
        # Crawlers that obey the same lines share their parsed rules.
        parsed = {crawler.rules.own_segments: crawler.rules for crawler in self._parsed.values()}
        rules = parsed[own_segments] = parsed.get(own_segments) or EffectiveRules(segments, own_segments)
        size = sum(rules.size for rules in parsed.values())
        if len(self._parsed) >= MAX_PARSED or size > MAX_PARSED_COPIES * len(self.octets):
            self._parsed.clear()
        self._parsed[tokens] = crawler = _Crawler(obeyed, rules)
        return crawler


def _addresses(directive: syntax.Directive, text: str) -> list[bytes]:
    values = syntax.values_of(syntax.RECORDS[directive], text).encode("latin-1").split(b"\n")
    return [address for address in dict.fromkeys(map(syntax.address_in, values)) if address]
