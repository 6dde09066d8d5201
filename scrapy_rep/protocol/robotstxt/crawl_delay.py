"""Crawl-delay, which is no record of the standard's (RFC 9309 section 2.2.4)."""

from __future__ import annotations

import math
import re

from scrapy_rep.protocol.robotstxt.segments import Segments
from scrapy_rep.protocol.robotstxt.syntax import RECORDS, RULE_OR_DELAY_LINE, Directive, without_comments

_CRAWL_DELAY = RECORDS[Directive.CRAWL_DELAY]
_SECONDS = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def crawl_delay_of(product_token: str | None, segments: Segments) -> float | None:
    """Seconds between requests: the largest that the token's groups ask for; None if they ask for none.

    A delay is for the user-agent lines above it, up to the rule or delay before them, so that no crawler gets the delay
    of another one. Protego, crawler-commons and robots-parser read it so.
    """
    own = segments.joined(segments.of(product_token, RULE_OR_DELAY_LINE))
    values = set(without_comments("\n".join(_CRAWL_DELAY.findall(own))).split("\n"))
    return max([seconds for value in values if (seconds := seconds_of(value)) is not None], default=None)


def seconds_of(value: str) -> float | None:
    """A value of Crawl-delay in seconds; None if it is no finite number, or negative."""
    seconds = float(value) if _SECONDS.fullmatch(value) else math.inf
    return seconds if math.isfinite(seconds) else None
