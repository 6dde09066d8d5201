"""The settings on which the protocol depends: how long, how often and how strictly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import RobotsPolicy, policy_at
from scrapy_rep.protocol.status_policy import StatusRow

RETRY_DELAY = 1.0  # seconds before the same URL is requested again, or the store is asked again


@dataclass(frozen=True, slots=True)
class Terms:
    """Each field is the value of the setting of this name, such as REP_BODY_LIMIT. `settings.RepSettings` is a subclass
    that has the defaults and the checks."""

    status_policy: Sequence[StatusRow]
    max_redirects: int
    redirect_private: bool
    lifetime_min: float
    body_limit: int
    fetch_retries: int
    unreachable_wait: float
    unreachable_days: float

    @property
    def unreachable_for(self) -> float:
        """Seconds after which an outage has lasted too long (RFC 9309 2.3.1.4)."""
        return self.unreachable_days * DAY

    def policy_at(self, entry: Entry, now: float) -> RobotsPolicy:
        """Return what the entry means at `now`."""
        return policy_at(entry, now, self.unreachable_for, self.unreachable_wait)
