"""The rules that a crawler obeys: those of the groups that name it, and of no others (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from scrapy_rep.protocol.robotstxt.groups import seconds_of
from scrapy_rep.protocol.robotstxt.match_index import LongestMatch
from scrapy_rep.protocol.robotstxt.match_linear import places_of_matches
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, is_normal, patterns, spellings
from scrapy_rep.protocol.robotstxt.product_tokens import EVERYONE
from scrapy_rep.protocol.robotstxt.rules import Rule, most_specific
from scrapy_rep.protocol.robotstxt.syntax import (
    RECORDS,
    RULE_ALLOWS,
    RULE_LINE,
    RULE_OR_DELAY_LINE,
    RULE_VALUE,
    Directive,
    searchable,
    without_comments,
)

# Looked up once: an enum member's hash costs as much as a search.
_USER_AGENT = RECORDS[Directive.USER_AGENT]
_CRAWL_DELAY = RECORDS[Directive.CRAWL_DELAY]

# So many in a row are worth a pass of their own; few files have them.
_MANY_LINE_ENDS = "\n" * 32
_BLANK_LINES = re.compile(_MANY_LINE_ENDS + "\n*")
# Between segments, for what is left of a user-agent line.
_LINE_OF_NONE = "\n#"


class EffectiveRules:
    """All groups of one product token as one (2.2.1: MUST be combined), ready to match."""

    __slots__ = (
        "_allowing",
        "_any_starred",
        "_delays",
        "_first",
        "_lines",
        "_match",
        "_patterns",
        "_written",
        "product_token",
    )

    def __init__(self, text: str, product_tokens: Sequence[str]) -> None:
        """Of the first token that any group names, else of `*`; without that there are no rules."""
        if _MANY_LINE_ENDS in text:  # each costs as much as a record
            text = _BLANK_LINES.sub("\n", text)
        self.product_token, lines = _named_and_lines(text, product_tokens)
        # Rules are known by their places among these.
        values: list[str] = RULE_VALUE.findall(lines)
        joined = "\n".join(values)
        if not is_normal(joined):
            joined = patterns(without_comments(joined))
            values = joined.split("\n")
        self._patterns = values
        self._any_starred = "*" in joined
        # Which of them allow is asked for only where one matches, which is seldom.
        self._lines = lines
        self._allowing: bytes | None = None
        self._match: LongestMatch | None = None
        # The first question, and the answer.
        self._first: tuple[Sequence[str], int | None] | None = None
        self._written: dict[int, Rule] = {}
        self._delays: list[float] | None = None

    def allows(self, url: str) -> bool:
        """Whether the absolute URL may be fetched."""
        compared = spellings(url)
        match = self._match
        place = (
            self._most_specific(compared) if match is None or len(compared) > 1 else match.most_specific(compared[0])
        )
        # 2.2.2: "The /robots.txt URI is implicitly allowed."
        return place is None or self._which_allow()[place] > 0 or compared[0] == ROBOTS_PATH

    def rule(self, url: str, octets: bytes) -> Rule | None:
        """The rule that decides about the URL, as it stands in the octets; None where none matches."""
        compared = spellings(url)
        place = self._most_specific(compared)
        if place is None or compared[0] == ROBOTS_PATH:
            return None
        if place not in self._written:  # few rules ever refuse anything
            self._written[place] = self._as_written(place, searchable(octets))
        return self._written[place]

    def crawl_delay(self, octets: bytes) -> float | None:
        """Seconds between requests: the largest that the groups, read in the octets, ask for; None where none does."""
        if self._delays is None:
            self._delays = self._delays_in(searchable(octets))
        return max(self._delays, default=None)

    def _delays_in(self, text: str) -> list[float]:
        if self.product_token is None or not _CRAWL_DELAY.search(text):
            return []
        _before, tokens, segments = _user_agents(text)
        own = _own_segments(self.product_token, tokens, segments, ends=RULE_OR_DELAY_LINE)
        values = _CRAWL_DELAY.findall(_LINE_OF_NONE.join([segments[at] for at in own]))
        delays = map(seconds_of, without_comments("\n".join(values)).split("\n"))
        return [delay for delay in delays if delay is not None]

    def _most_specific(self, compared: Sequence[str]) -> int | None:
        if self._match is None:
            if self._first is None:
                found = places_of_matches(self._patterns, compared, self._any_starred)
                self._first = compared, self._deciding(found)
            if self._first[0] == compared:  # whoever is refused asks next by which rule
                return self._first[1]
            self._match = LongestMatch(self._patterns, self._which_allow())
        match = self._match
        return self._deciding([place for one in compared if (place := match.most_specific(one)) is not None])

    def _deciding(self, found: Sequence[int]) -> int | None:
        return most_specific(found, self._patterns, self._which_allow()) if found else None

    def _which_allow(self) -> bytes:
        """Of each rule whether it allows, 1 or 0."""
        if self._allowing is None:
            self._allowing = bytes(map(bool, RULE_ALLOWS.findall(self._lines)))
            self._lines = ""
        return self._allowing

    def _as_written(self, place: int, text: str) -> Rule:
        before, tokens, segments = _user_agents(text)
        mine = set(_own_segments(self.product_token, tokens, segments))
        # Lines of others are emptied, so that mine keep their numbers.
        kept = [part if at in mine else "\n" * part.count("\n") for at, part in enumerate(segments)]
        lines = _LINE_OF_NONE.join(["\n" * before.count("\n"), *kept])
        record = next(islice(RULE_VALUE.finditer(lines), place, None))
        number = lines.count("\n", 0, record.start() + 1)
        return Rule(number, self._which_allow()[place] > 0, without_comments(record[1]).encode("latin-1"))


def _named_and_lines(text: str, product_tokens: Sequence[str]) -> tuple[str | None, str]:
    """The token whose groups are obeyed, and their lines."""
    _before, tokens, segments = _user_agents(text)
    for token in product_tokens:
        if token.lower() in tokens:
            break
    else:
        if EVERYONE not in tokens:
            return None, ""
        token = EVERYONE
    if len(tokens) == 1:
        return token, segments[0]
    return token, _LINE_OF_NONE.join([segments[at] for at in _own_segments(token, tokens, segments)])


def _user_agents(text: str) -> tuple[str, list[str], list[str]]:
    """What precedes all user-agent lines, their tokens, in lower case, and what follows each of them up to the next."""
    parts = _USER_AGENT.split(text)
    if len(parts) == 3:  # as most have
        return parts[0], [parts[1].lower()], [parts[2]]
    return parts[0], [token.lower() for token in parts[1::2]], parts[2::2]


def _own_segments(
    product_token: str | None, tokens: Sequence[str], segments: Sequence[str], ends: re.Pattern[str] = RULE_LINE
) -> list[int]:
    """Indices of the segments that hold the token's records: those of a run of user-agent lines follow its last (2.1).

    `ends`: the records after which a user-agent line begins another run.
    """
    own: list[int] = []
    key = (product_token or "").lower()
    in_run = False
    for at, token in enumerate(tokens):
        in_run = token == key or (in_run and ends.search(segments[at - 1]) is None)
        if in_run:
            own.append(at)
    return own
