"""What is known of one origin's robots.txt, as plain values for whoever tells of it: the command and the report."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.lifecycle import Basis, RobotsPolicy
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt


@dataclass(frozen=True, slots=True)
class OriginInfo:
    """At a moment."""

    robots_url: str
    """The initial authority's."""
    access: AccessResult
    """What asking for it came to, last time."""
    answer: str
    """In words: `HTTP 404`, or why there was none."""
    basis: Basis
    """What decides about a request."""
    robots: RobotsTxt | None
    """The rules that are obeyed; None where there are none."""
    received_at: float | None
    """Seconds since the epoch, of what is held; None where nothing is."""
    ask_again_at: float
    """Seconds since the epoch: until then it is good, or not asked for again."""
    failing_since: float | None
    """Seconds since the epoch; None where there is no outage."""
    url: str
    """Where the redirects led; empty where that is not known."""


def origin_info(policy: RobotsPolicy) -> OriginInfo:
    entry = policy.entry
    stored, outage = entry.stored, entry.outage
    fresh_until = stored.fresh_until if stored is not None else 0.0
    return OriginInfo(
        entry.robots_url,
        entry.access,
        entry.reason,
        policy.basis,
        policy.robots,
        stored.received_at if stored is not None else None,
        outage.ask_again_at if outage is not None else fresh_until,
        outage.since if outage is not None else None,
        stored.url if stored is not None else "",
    )
