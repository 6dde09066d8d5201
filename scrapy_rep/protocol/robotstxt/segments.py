"""Which records of a robots.txt are for a crawler: those of its groups (RFC 9309 2.1, 2.2.1, 2.2.4).

A segment is the text from one user-agent line to the next:

    User-agent: a       Segment 0 has a delay and no rule.
    Crawl-delay: 5
    User-agent: b       Segment 1 has a rule for a and b, and a delay for b alone.
    Disallow: /x
    Crawl-delay: 7
    User-agent: c       Segment 2 has no records.

A run is a row of user-agent lines that share the records below it. A rule between two user-agent lines ends a run. For
delays, a delay between them ends it, too; for statements about usage, a statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from scrapy_rep.protocol.robotstxt.syntax import EVERYONE, RECORDS, RULE_LINE, Directive, searchable

_USER_AGENT = RECORDS[Directive.USER_AGENT]

# This text joins segments. It turns the rest of a user-agent line into a comment.
_COMMENT_LINE = "\n#"


class Segments:
    """The segments of a file."""

    __slots__ = ("texts", "tokens")

    def __init__(self, octets: bytes) -> None:
        parts = _USER_AGENT.split(searchable(octets))
        self.tokens = [token.lower() for token in parts[1::2]]
        """The product token of each segment's user-agent line, in lower case; empty if the line has none."""
        self.texts = parts[2::2]
        """For each segment, the rest of its user-agent line and all lines after it."""

    def obeyed_token(self, product_tokens: Sequence[str]) -> str | None:
        """Return the first of these tokens that a group names; else `*`; None if there is no group of `*` either."""
        for token in (*product_tokens, EVERYONE):
            if token.lower() in self.tokens:
                return token
        return None

    def of(self, product_token: str | None, ends: re.Pattern[str] = RULE_LINE) -> tuple[int, ...]:
        """Return the segments that contain the token's records of one kind. There are none if the token is None.

        `ends` matches the lines that end a run of user-agent lines. The last segment of a run has the records.
        """
        key = product_token and product_token.lower()
        last, end = len(self.tokens) - 1, -1
        own_segments = []
        for start in [at for at, token in enumerate(self.tokens) if token == key]:
            if start <= end:
                continue
            end = start
            while end < last and not ends.search(self.texts[end]):
                end += 1
            own_segments.append(end)
        return tuple(own_segments)

    def joined(self, own_segments: Sequence[int]) -> str:
        """Return the lines of these segments as one text."""
        return _COMMENT_LINE.join([self.texts[at] for at in own_segments])


def starts_of_segments(text: str) -> list[int]:
    """Return the offsets of all user-agent lines in a text that `searchable` returned."""
    return [record.start() for record in _USER_AGENT.finditer(text)]
