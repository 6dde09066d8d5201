"""The usage preferences for one page, combined from all statements, and the refusal for a purpose."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec

from scrapy_rep.protocol.foreign_text import shortened, text_of
from scrapy_rep.protocol.readings import strictest
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Rule, Verdict, VerdictReason
from scrapy_rep.usage import POLICY_TOKENS, ROBOTS_META, ROBOTS_TAGS, TDM_META, TDM_RESERVATION, USAGE_HEADERS
from scrapy_rep.usage.statements import Statement, deciding_statements, preferences_in_tag, preferences_of, stricter

Elements = Sequence[tuple[str, str]]  # the name, in lower case, and the content of each `meta` element of a page
NEVER_REFUSED = (VerdictReason.EXEMPT, VerdictReason.NOT_SUBJECT)  # robots.txt does not apply to these pages


@dataclass(frozen=True, slots=True, eq=False)
class Usage(Mapping[str, bool]):
    """The usage preferences for a page: category of use -> whether that use is allowed. A missing one is unknown."""

    preferences: Mapping[str, bool] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    """The statements that decided: lines in the order of the file, then rules for policy tokens, then headers, then
    `meta` elements."""
    licenses: tuple[str, ...] = ()
    """`RobotsTxt.licenses` for the crawler."""

    def __getitem__(self, category: str) -> bool:
        return self.preferences[category]

    def __iter__(self) -> Iterator[str]:
        return iter(self.preferences)

    def __len__(self) -> int:
        return len(self.preferences)

    @classmethod
    def of(cls, robots: RobotsTxt, url: str, product_token: str | Sequence[str]) -> "Usage":
        """Return the preferences in robots.txt for the page. The arguments are those of `RobotsTxt.verdict`.

        They are empty for a page that the crawler must not fetch. Raises ValueError as `verdict` does, and ImportError
        if a line cannot be read because the extra `usage` is not installed.
        """
        found = robots.verdict(url, product_token)
        if not found.allowed:
            return cls()
        stated = [*deciding_statements(url, found.product_token, robots.octets), *_by_policy_tokens(robots, url)]
        return cls(stricter(one.preferences for one in stated), tuple(stated), robots.licenses(product_token))

    def deciding(self, category: str) -> Statement | None:
        """Return the first statement that decided about the category; None if its preference is unknown."""
        allowed = self.get(category)
        stated = (one for one in self.statements if category in one.preferences)
        return next((one for one in stated if one.preferences[category] is allowed), None)

    def with_response(
        self, lines_of: Callable[[str], Sequence[bytes]], elements: Elements, product_tokens: Sequence[str]
    ) -> "Usage":
        """Return the preferences, combined with those that a response states in its headers and its `meta` elements.

        `lines_of` returns the lines of a header field. `elements` are the names, in lower case, and the contents.
        """
        usage = self
        for directive in USAGE_HEADERS:
            usage = usage.with_header(directive, lines_of(directive))
        for directive in ROBOTS_TAGS:
            usage = usage.with_tags(directive, [line.decode("latin-1") for line in lines_of(directive)], product_tokens)
        names = {"robots", *map(str.lower, product_tokens)}
        usage = usage.with_tags(ROBOTS_META, [text for name, text in elements if name in names], product_tokens)
        return usage.with_header(TDM_META, [text.encode() for name, text in elements if name == TDM_RESERVATION])

    def with_header(self, directive: str, values: Sequence[bytes]) -> "Usage":
        """Return the preferences, combined with those in the response's headers of the name `directive`.

        All headers of one name are one list (RFC 9110 5.3). If two preferences differ, the stricter counts. A list that
        cannot be read is ignored.
        """
        # Empty headers are left out, because RFC 9651 forbids empty elements.
        value = b", ".join(filter(None, map(bytes.strip, values)))
        preferences = preferences_of(directive, value) if value else None
        return self._with(directive, text_of(value), preferences) if preferences else self

    def with_tags(self, directive: str, values: Iterable[str], product_tokens: Sequence[str]) -> "Usage":
        """Return the preferences, combined with the rules for robots in these headers or `meta` elements of a page."""
        stated = {value: preferences for value in values if (preferences := preferences_in_tag(value, product_tokens))}
        return self._with(directive, ", ".join(stated), stricter(stated.values())) if stated else self

    def _with(self, directive: str, text: str, preferences: Mapping[str, bool]) -> "Usage":
        statement = Statement(None, directive, b"", shortened(text), preferences)
        return Usage(stricter((self.preferences, preferences)), (*self.statements, statement), self.licenses)


def _by_policy_tokens(robots: RobotsTxt, url: str) -> Iterator[Statement]:
    """Yield, as statements, the rules about the URL in groups that name a policy token. Groups of `*` do not count."""
    for category, token in POLICY_TOKENS.items():
        found = robots.verdict(url, token)
        # If finding the rule that decides takes too long, a rule that disallows anything counts.
        rule = robots.first_disallow(token) if found.reason is VerdictReason.TOO_COSTLY else found.rule
        if rule is not None and found.product_token == token:
            directive = "allow" if rule.allow else "disallow"
            yield Statement(rule.line, directive, rule.octets, "", {category: rule.allow}, token)


@dataclass(frozen=True, slots=True)
class UsageVerdict(Verdict):
    """A verdict with the page's usage preferences, for a crawl with REP_PURPOSES."""

    usage: Usage = field(default_factory=Usage)
    """The usage preferences for the page; empty if the page is refused for another reason than USAGE."""

    @property
    def decided_by(self) -> Rule | Statement | None:
        """The rule that decided, or the statement that disallows the purpose; None if there is none."""
        return self.usage.deciding(self.purpose) if self.purpose is not None else self.rule


@dataclass(frozen=True, slots=True)
class Purposes:
    """The purposes of a crawl: the categories of use for its pages."""

    categories: tuple[str, ...] = ()
    refuse: bool = False
    """Whether a page is refused if its site disallows one of the categories (REP_PURPOSES_REFUSE)."""

    def __post_init__(self) -> None:
        """Raises ValueError if the extra `usage` is not installed."""
        if self.categories and find_spec("http_sf") is None:
            raise ValueError('REP_PURPOSES needs the extra `usage`; run pip install "scrapy-rep[usage]"')

    def refused_by(self, preferences: Mapping[str, bool]) -> str | None:
        """Return the first purpose for which a page with these preferences is refused; None if it is not refused."""
        return next((each for each in self.categories if self.refuse and preferences.get(each) is False), None)

    def judge(
        self, verdict: Verdict, robots: RobotsTxt | None, url: str, product_token: str | Sequence[str]
    ) -> Verdict:
        """Return the verdict with the usage preferences in robots.txt for the URL. Raises the exceptions of `Usage.of`.

        A URL is also refused if one of its other readings is refused (`protocol.readings`).
        """
        if robots is None or not verdict.allowed:
            return self.judge_usage(verdict, Usage())
        return strictest(url, lambda reading: self.judge_usage(verdict, Usage.of(robots, reading, product_token)))

    def judge_usage(self, verdict: Verdict, usage: Usage) -> UsageVerdict:
        """Return the verdict for a page with these preferences. Pages with NEVER_REFUSED reasons stay allowed."""
        judged = UsageVerdict(**{field.name: getattr(verdict, field.name) for field in fields(Verdict)}, usage=usage)
        if not verdict.allowed or verdict.reason in NEVER_REFUSED or (purpose := self.refused_by(usage)) is None:
            return judged
        stated = usage.deciding(purpose)
        token = stated.product_token if stated is not None and stated.line is not None else verdict.product_token
        return replace(
            judged, allowed=False, reason=VerdictReason.USAGE, rule=None, purpose=purpose, product_token=token
        )


def usage_in(verdict: Verdict | None) -> Usage:
    """Return the usage preferences in a verdict; empty without REP_PURPOSES."""
    return verdict.usage if isinstance(verdict, UsageVerdict) else Usage()
