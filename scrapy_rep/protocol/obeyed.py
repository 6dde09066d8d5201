"""The rules that a crawler obeys: those of the groups that name it, and of no others (RFC 9309 section 2.2.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from .access import ROBOTS_PATH
from .agents import EVERYONE
from .longest_match import LongestMatch
from .patterns import patterns, spellings
from .records import RECORDS, Directive, without_comments
from .rules import Rule

# Looked up once: an enum member's hash costs as much as a search.
_USER_AGENT = RECORDS[Directive.USER_AGENT]
_ALLOW = RECORDS[Directive.ALLOW]
_DISALLOW = RECORDS[Directive.DISALLOW]

_MANY_LINE_ENDS = "\n" * 100
_BLANK_LINES = re.compile(_MANY_LINE_ENDS + "\n*")
# Between segments, for what is left of a user-agent line.
_LINE_OF_NONE = "\n#"


class Obeyed:
    """All groups of one product token as one (2.2.1: MUST be combined), ready to match."""

    __slots__ = ("_match", "_written", "product_token")

    def __init__(self, text: str, product_tokens: Sequence[str]) -> None:
        """Of the first token that any group names, else of `*`; without that there are no rules."""
        if _MANY_LINE_ENDS in text:  # each costs as much as a record
            text = _BLANK_LINES.sub("\n", text)
        tokens, segments = _user_agents(text)
        self.product_token = ""
        for token in (*product_tokens, EVERYONE):
            if token and token.lower() in tokens:
                self.product_token = token
                break
        lines = _LINE_OF_NONE.join([segments[at] for at in _places(self.product_token, tokens, segments)])
        allowed, disallowed = _ALLOW.findall(lines), _DISALLOW.findall(lines)
        self._match = LongestMatch(patterns(without_comments(allowed + disallowed)), allowing=len(allowed))
        self._written: dict[str, Rule] = {}

    def allows(self, url: str) -> bool:
        """Whether the absolute URL may be fetched."""
        targets = spellings(url)
        pattern = self._match.most_specific(targets[0]) if len(targets) == 1 else self._most_specific(targets)
        # 2.2.2: "The /robots.txt URI is implicitly allowed."
        return pattern is None or self._match.allows(pattern) or targets[0] == ROBOTS_PATH

    def rule(self, url: str, text: str) -> Rule | None:
        """The rule that decides about the URL, as it stands in the text; None where none matches."""
        targets = spellings(url)
        pattern = self._most_specific(targets)
        if pattern is None or targets[0] == ROBOTS_PATH:
            return None
        if pattern not in self._written:  # few rules ever refuse anything
            self._written[pattern] = self._as_written(pattern, text)
        return self._written[pattern]

    def _most_specific(self, targets: Sequence[str]) -> str | None:
        found = [pattern for target in targets if (pattern := self._match.most_specific(target)) is not None]
        return max(found, key=self._match.rank) if found else None

    def _as_written(self, pattern: str, text: str) -> Rule:
        tokens, segments = _user_agents(text)
        mine = set(_places(self.product_token, tokens, segments))
        # Lines of others are emptied, so that mine keep their numbers.
        lines = _LINE_OF_NONE.join(part if at in mine else "\n" * part.count("\n") for at, part in enumerate(segments))
        allow, place = self._match.allows(pattern), self._match.place(pattern)
        records = _ALLOW.finditer(lines) if allow else _DISALLOW.finditer(lines)
        record = next(islice(records, place if allow else place - self._match.allowing, None))
        number = lines.count("\n", 0, record.start() + 1)
        return Rule(number, allow, without_comments([record[1]]).encode("latin-1"))


def _user_agents(text: str) -> tuple[list[str], list[str]]:
    """The user-agent lines' tokens, in lower case, and what follows each of them up to the next; before the first an
    empty token, and what precedes them all."""
    parts = _USER_AGENT.split(text)
    return ["", *map(str.lower, parts[1::2])], parts[::2]


def _places(product_token: str, tokens: Sequence[str], segments: Sequence[str]) -> list[int]:
    """Where the token's groups have their rules: rules follow a run of user-agent lines without any between (2.1)."""
    places: list[int] = []
    key = product_token.lower()
    if key:
        in_run = False
        for at, token in enumerate(tokens):
            in_run = token == key or (in_run and not _has_rule(segments[at - 1]))
            if in_run:
                places.append(at)
    return places


def _has_rule(segment: str) -> bool:
    return _DISALLOW.search(segment) is not None or _ALLOW.search(segment) is not None
