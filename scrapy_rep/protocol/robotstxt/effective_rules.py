"""The rules that a crawler obeys: those of all groups that name it, and no others (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from itertools import accumulate, repeat

from scrapy_rep.protocol.robotstxt.groups import seconds_of
from scrapy_rep.protocol.robotstxt.longest_match import LongestMatch
from scrapy_rep.protocol.robotstxt.longest_match_linear import MAX_COMPARED, matching_places
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, is_normal, patterns, spellings
from scrapy_rep.protocol.robotstxt.product_tokens import EVERYONE
from scrapy_rep.protocol.robotstxt.rules import Rule, most_specific
from scrapy_rep.protocol.robotstxt.syntax import (
    RECORDS,
    RULE_ALLOWS,
    RULE_LINE,
    RULE_OR_DELAY_LINE,
    RULE_VALUE,
    WHITE_SPACE,
    Directive,
    searchable,
    without_comments,
)

# Looked up once: an enum member's hash costs as much as a search.
_USER_AGENT = RECORDS[Directive.USER_AGENT]
_CRAWL_DELAY = RECORDS[Directive.CRAWL_DELAY]

_WHITE_SPACE = WHITE_SPACE.encode()

# So many in a row are worth a pass of their own; few files have them.
_MANY_LINE_ENDS = "\n" * 32
_BLANK_LINES = re.compile(_MANY_LINE_ENDS + "\n*")
# Between segments, for the rest of a user-agent line.
_COMMENT_LINE = "\n#"

# Bytes of memory (measured: tests/protocol/test_costs.py).
_FIXED_MEMORY = 600
_MEMORY_OF_RULE = 70


class Segments:
    """A file's lines, cut at its user-agent lines: each segment follows one of them, up to the next."""

    __slots__ = ("texts", "tokens")

    def __init__(self, octets: bytes) -> None:
        text = searchable(octets)
        if _MANY_LINE_ENDS in text:  # each costs as much as a record
            text = _BLANK_LINES.sub("\n", text)
        parts = _USER_AGENT.split(text)
        self.tokens = [token.lower() for token in parts[1::2]]
        """In lower case; empty for a line that names nobody."""
        self.texts = parts[2::2]

    def obeyed_token(self, product_tokens: Sequence[str]) -> str | None:
        """The first of the tokens, as given, that any group names; else `*`; None if there is no group for it."""
        for token in (*product_tokens, EVERYONE):
            if token.lower() in self.tokens:
                return token
        return None

    def of(self, product_token: str | None, records: re.Pattern[str] = RULE_LINE) -> tuple[int, ...]:
        """The indices of the segments that have such records for the token; the last one may have none.

        Records are for the user-agent lines above them, up to the records before (2.1).
        """
        if product_token is None:
            return ()
        own: list[int] = []
        key = product_token.lower()
        is_named = False
        last = len(self.tokens) - 1
        for at, token in enumerate(self.tokens):
            is_named = is_named or token == key
            if is_named and (at == last or records.search(self.texts[at])):
                own.append(at)
                is_named = False
        return tuple(own)

    def crawl_delay(self, product_token: str | None) -> float | None:
        """Seconds between requests: the largest that the token's groups ask for; None if they ask for none."""
        own = self.joined(self.of(product_token, RULE_OR_DELAY_LINE))
        values = set(without_comments("\n".join(_CRAWL_DELAY.findall(own))).split("\n"))
        return max([seconds for value in values if (seconds := seconds_of(value)) is not None], default=None)

    def joined(self, own: Sequence[int]) -> str:
        """The lines of these segments."""
        return _COMMENT_LINE.join([self.texts[at] for at in own])


class EffectiveRules:
    """All groups of one product token as one (2.2.1: MUST be combined), ready to match."""

    __slots__ = (
        "_allowing",
        "_any_starred",
        "_first",
        "_length",
        "_lines",
        "_match",
        "_never_costly",
        "_patterns",
        "_places",
        "own",
        "size",
    )

    def __init__(self, segments: Segments, own: tuple[int, ...]) -> None:
        self.own = own
        """The segments that hold the rules."""
        self._lines = segments.joined(own)
        self.size = len(self._lines)
        """Octets of these segments."""
        # A rule's place is its index among these.
        values: list[str] = RULE_VALUE.findall(self._lines)
        joined = "\n".join(values)
        if not is_normal(joined):
            joined = patterns(without_comments(joined))
            values = joined.split("\n")
        self._patterns = values
        self._any_starred = "*" in joined
        self._length = len(joined)
        # Octets of a spelling that is compared with all patterns without counting.
        self._never_costly = MAX_COMPARED // max(len(joined), 1)
        # Worked out only once a rule matches, which is seldom.
        self._allowing: bytes | None = None
        self._match: LongestMatch | None = None
        # The first question, and the answer.
        self._first: tuple[Sequence[str], int | None] | None = None
        self._places: _Places | None = None

    @property
    def memory(self) -> int:
        """Bytes that it takes, about."""
        index = self._match.memory if self._match is not None else 0
        return _FIXED_MEMORY + self._length + len(self._lines) + _MEMORY_OF_RULE * len(self._patterns) + index

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched. Raises TooCostlyError, and ValueError as `spellings` does."""
        compared = spellings(url)
        match = self._match
        place = (
            self._most_specific(compared) if match is None or len(compared) > 1 else match.most_specific(compared[0])
        )
        # 2.2.2: "The /robots.txt URI is implicitly allowed."
        return place is None or self._which_allow()[place] > 0 or compared[0] == ROBOTS_PATH

    def rule(self, url: str, octets: bytes) -> Rule | None:
        """The rule that decides about the URL, as it stands in the file's octets; None if no rule matches.

        Raises as `allows` does.
        """
        compared = spellings(url)
        place = self._most_specific(compared)
        if place is None or compared[0] == ROBOTS_PATH:
            return None
        if self._places is None:
            self._places = _Places(octets, self.own)
        line, octets = self._places.line_and_value(place, octets)
        return Rule(line, self._which_allow()[place] > 0, octets)

    def _most_specific(self, compared: Sequence[str]) -> int | None:
        if self._match is None:
            if self._first is None:
                found = matching_places(self._patterns, compared, self._any_starred, self._never_costly)
                self._first = compared, self._deciding(found)
            if self._first[0] == compared:  # after a refusal, by which rule
                return self._first[1]
            self._match = LongestMatch(self._patterns, self._which_allow(), self._never_costly)
        match = self._match
        if len(compared) == 1:
            return match.most_specific(compared[0])
        return self._deciding([place for one in compared if (place := match.most_specific(one)) is not None])

    def _deciding(self, found: Sequence[int]) -> int | None:
        return most_specific(found, self._patterns, self._which_allow()) if found else None

    def _which_allow(self) -> bytes:
        """For each rule whether it allows, 1 or 0."""
        if self._allowing is None:
            self._allowing = bytes(map(bool, RULE_ALLOWS.findall(self._lines)))
            self._lines = ""
        return self._allowing


class _Places:
    """Where a crawler's rules stand in a file."""

    __slots__ = ("_lines", "_starts")

    def __init__(self, octets: bytes, own: Sequence[int]) -> None:
        text = searchable(octets)
        user_agents = list(_USER_AGENT.finditer(text))
        ends = [record.start() for record in user_agents[1:]] + [len(text)]
        # The octets begin one place later in the text.
        self._starts = array(
            "I",
            [
                record.start(1) - 1
                for at in own
                for record in RULE_VALUE.finditer(text, user_agents[at].end(), ends[at])
            ],
        )
        line_ends = map(octets.count, repeat(b"\n"), [0, *self._starts], self._starts)
        self._lines = array("I", accumulate(line_ends))

    def line_and_value(self, place: int, octets: bytes) -> tuple[int, bytes]:
        """The number of a rule's line, and its value as written."""
        start = self._starts[place]
        end = octets.find(b"\n", start)
        value = octets[start:] if end < 0 else octets[start:end]
        return self._lines[place] + 1, value.partition(b"#")[0].rstrip(_WHITE_SPACE)
