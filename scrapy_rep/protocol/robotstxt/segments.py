"""Which records belong to which crawlers: decided here alone (RFC 9309 sections 2.1, 2.2.1 and 2.2.4).

A file is cut at its user-agent lines: a segment is what follows one of them, up to the next. The records of a segment
are for the user-agent line above it, and for those right before that one, back to the last segment that has such
records:

    User-agent: a       segment 0 has a delay and no rule
    Crawl-delay: 5
    User-agent: b       segment 1 has a rule, which is for a and b, and a delay, which is for b alone
    Disallow: /x
    Crawl-delay: 7
    User-agent: c       segment 2

So rules, delays and statements each come with an expression of the lines after which a user-agent line starts afresh.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from scrapy_rep.protocol.robotstxt.product_tokens import EVERYONE
from scrapy_rep.protocol.robotstxt.syntax import RECORDS, RULE_LINE, Directive, searchable

_USER_AGENT = RECORDS[Directive.USER_AGENT]

# Stands between segments, so that the rest of a user-agent line is a comment.
_COMMENT_LINE = "\n#"


class Segments:
    """The segments of a file."""

    __slots__ = ("texts", "tokens")

    def __init__(self, octets: bytes) -> None:
        parts = _USER_AGENT.split(searchable(octets))
        self.tokens = [token.lower() for token in parts[1::2]]
        """Of each segment's user-agent line, in lower case; empty if it names nobody."""
        self.texts = parts[2::2]
        """The rest of that line, and the lines of the segment."""

    def obeyed_token(self, product_tokens: Sequence[str]) -> str | None:
        """The first of the tokens, as given, that any group names; else `*`; None if there is no group for it."""
        for token in (*product_tokens, EVERYONE):
            if token.lower() in self.tokens:
                return token
        return None

    def runs(self, product_token: str | None = None, ends: re.Pattern[str] = RULE_LINE) -> Iterator[tuple[int, int]]:
        """The first and last segment of each run: from one whose user-agent line names the token (None: names anybody,
        or nobody) up to the first with a line that `ends` the run. Only a run at the end of the file may have none."""
        key = product_token and product_token.lower()
        last, end = len(self.tokens) - 1, -1
        for start in [at for at, token in enumerate(self.tokens) if key is None or token == key]:
            if start <= end:
                continue
            end = start
            while end < last and not ends.search(self.texts[end]):
                end += 1
            yield start, end

    def of(self, product_token: str | None, ends: re.Pattern[str] = RULE_LINE) -> tuple[int, ...]:
        """The segments that have the token's records; none for None."""
        return () if product_token is None else tuple([last for _first, last in self.runs(product_token, ends)])

    def joined(self, own: Sequence[int]) -> str:
        """The lines of these segments."""
        return _COMMENT_LINE.join([self.texts[at] for at in own])


def starts_of_segments(text: str) -> list[int]:
    """Where in the text, as `searchable` has it, the user-agent lines begin."""
    return [record.start() for record in _USER_AGENT.finditer(text)]


def find_records(octets: bytes, own: Sequence[int], records: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The records in these segments of the file, in their order, as they stand in its `searchable` text."""
    text = searchable(octets)
    ends = [*starts_of_segments(text), len(text)]
    for at in own:
        yield from records.finditer(text, ends[at], ends[at + 1])
