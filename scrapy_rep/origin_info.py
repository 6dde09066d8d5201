"""What is known of one origin's robots.txt, as plain values: for signal handlers, the command and the report."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_rep.protocol.access_result import AccessResult
from scrapy_rep.protocol.lifecycle import Basis, RobotsPolicy
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt


@dataclass(frozen=True, slots=True)
class OriginInfo:
    """At one moment. Times are seconds since the epoch."""

    robots_url: str
    """The initial authority's."""
    access: AccessResult
    """What the last fetch came to."""
    answer: str
    """In words: `HTTP 404`, or why there was none."""
    basis: Basis
    """What decides about requests."""
    robots: RobotsTxt | None
    """The rules that are obeyed; None where there are none."""
    received_at: float | None
    """When the stored answer came, or was last confirmed; None where there is none."""
    fetch_again_at: float
    """Until then the answer is good, or, in an outage, robots.txt is not fetched again."""
    failing_since: float | None
    """None where there is no outage."""
    url: str
    """Where the redirects led; empty where that is not known."""


def origin_info(policy: RobotsPolicy) -> OriginInfo:
    """The plain values of a policy."""
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
