"""What is known of one origin's robots.txt, as plain values for whoever tells of it: the command and the report."""

from __future__ import annotations

from dataclasses import dataclass

from .protocol.access import AccessResult
from .protocol.lifecycle import Obey, Standing
from .protocol.parser import RobotsTxt


@dataclass(frozen=True, slots=True)
class Facts:
    """At a moment."""

    robots_url: str
    """The initial authority's."""
    access: AccessResult
    """What asking for it came to, last time."""
    answer: str
    """In words: `HTTP 404`, or why there was none."""
    obey: Obey
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


def facts_of(standing: Standing) -> Facts:
    entry = standing.entry
    copy, outage = entry.copy, entry.outage
    fresh_until = copy.fresh_until if copy is not None else 0.0
    return Facts(
        entry.robots_url,
        entry.access,
        entry.cause,
        standing.obey,
        standing.robots,
        copy.received_at if copy is not None else None,
        outage.ask_again_at if outage is not None else fresh_until,
        outage.since if outage is not None else None,
        copy.url if copy is not None else "",
    )
