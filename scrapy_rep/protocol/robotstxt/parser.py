"""A robots.txt: what it allows whom, and whatever else it says (RFC 9309 section 2).

Nothing is read before it is asked for, and then no more than is needed: most lines of most files are about others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scrapy_rep.protocol.robotstxt.effective_rules import EffectiveRules
from scrapy_rep.protocol.robotstxt.groups import Group, Record, read_groups, read_records
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.protocol.robotstxt.product_tokens import in_order_of_preference, is_product_token
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason, text_of
from scrapy_rep.protocol.robotstxt.syntax import RECORDS, WHITE_SPACE, Directive, readable, searchable, without_comments

PARSING_LIMIT = 512_000  # octets; RFC 9309 2.5: "at least 500 kibibytes"
MAX_READY = 64  # product tokens; a crawl has one, or a few that its requests name


@dataclass(frozen=True, slots=True)
class Ignored:
    """A line that was not read, and why."""

    line: int
    """Counted from 1."""
    text: str
    """As written, for people; without white space around it."""
    reason: str


@dataclass(frozen=True, slots=True)
class RobotsTxt:
    """A robots.txt: what it allows whom."""

    octets: bytes = field(repr=False)
    """What was read of the body, within the limit: without a byte order mark, UTF-16 as UTF-8, each line end LF."""
    truncated: bool = False
    """The body went on beyond the limit."""
    _ready: dict[str | tuple[str, ...], EffectiveRules] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    @classmethod
    def parse(cls, body: bytes, limit: int = PARSING_LIMIT) -> RobotsTxt:
        """Never raises on any octets. What lies beyond `limit` octets is not read, nor is a line that it cuts (2.5).

        Raises TypeError for a str: rules are octets (2.2.2), and which ones a text stood for is not known here.
        """
        if isinstance(body, str):
            raise TypeError("RobotsTxt.parse needs the bytes of a robots.txt, not a str: use response.body")
        return cls(readable(body, limit), len(body) > limit)

    def allows(self, url: str, product_token: str | Sequence[str]) -> bool:
        """Whether `verdict` allows it."""
        return self._obeyed(product_token).allows(url)

    def verdict(self, url: str, product_token: str | Sequence[str]) -> Verdict:
        """Whether a crawler with that product token, or those in order of preference, may fetch the absolute URL."""
        obeyed = self._obeyed(product_token)
        rule = obeyed.rule(url, self.octets)
        if rule is not None:
            return Verdict(rule.allow, VerdictReason.RULE, rule, obeyed.product_token)
        if is_robots_txt(url):
            reason = VerdictReason.NOT_SUBJECT
        else:
            reason = VerdictReason.NO_GROUP if obeyed.product_token is None else VerdictReason.NO_RULE
        return Verdict(True, reason, None, obeyed.product_token)

    def crawl_delay(self, product_token: str | Sequence[str]) -> float | None:
        """Seconds between requests: the largest that the crawler's groups ask for; None where they ask for none."""
        return self._obeyed(product_token).crawl_delay(self.octets)

    @property
    def groups(self) -> tuple[Group, ...]:
        """All of them; worked out anew at each call, as the sitemaps and the ignored lines are."""
        return read_groups(self.octets)

    @property
    def records(self) -> tuple[Record, ...]:
        """Each line with a key and a value, also where the key means nothing here: for directives of one's own."""
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
        ignored: list[Ignored] = []

        def report(line: int, reason: str) -> None:
            ignored.append(Ignored(line, text_of(lines[line - 1].strip(WHITE_SPACE.encode())), reason))

        read_groups(self.octets, report)
        if self.truncated:
            ignored.append(Ignored(len(lines), "", "beyond the limit, like all that follows"))
        return tuple(ignored)

    def _obeyed(self, product_token: str | Sequence[str]) -> EffectiveRules:
        key = product_token if isinstance(product_token, str) else tuple(product_token)
        obeyed = self._ready.get(key)
        if obeyed is None:
            tokens = in_order_of_preference(product_token)
            if wrong := [token for token in tokens if not is_product_token(token)]:
                raise ValueError(
                    f"{wrong[0]!r} is not a product token: use the crawler's name alone, such as 'ExampleBot', or '*'"
                )
            if len(self._ready) >= MAX_READY:
                self._ready.clear()
            obeyed = self._ready[key] = EffectiveRules(searchable(self.octets), tokens)
        return obeyed
