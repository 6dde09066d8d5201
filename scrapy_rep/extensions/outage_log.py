"""What the log says of robots.txt: never forged by a stranger, never one line an origin for ever."""

from __future__ import annotations

import logging

from scrapy.utils.datatypes import LocalCache

from scrapy_rep.protocol.lifecycle import Basis, RobotsPolicy, pause_before_refetch
from scrapy_rep.settings import RepSettings
from scrapy_rep.text import counted, printable

logger = logging.getLogger("scrapy_rep")

WARNED_ORIGINS = 10

MEANWHILE = {
    Basis.NOTHING_ALLOWED: "nothing of its origin is fetched (RFC 9309 2.3.1.4)",
    Basis.STORED: "the rules that it had go on being obeyed (RFC 9309 2.4)",
    Basis.EVERYTHING_ALLOWED: "after so long, everything is allowed (RFC 9309 2.3.1.4)",
}
IN_SHADOW = {**MEANWHILE, Basis.NOTHING_ALLOWED: "nothing of its origin would be fetched (RFC 9309 2.3.1.4)"}


class Outages:
    """One WARNING an origin for the first ten whose robots.txt fails, DEBUG for the rest, a summary at the end."""

    def __init__(self, settings: RepSettings) -> None:
        self._shadow = settings.shadow  # nothing is refused, and no line is to say that it is
        self._wait = settings.unreachable_wait
        self._told: LocalCache[str, None] = LocalCache(limit=settings.memory_origins)
        self.outages = 0
        self.refused = 0

    def met(self, policy: RobotsPolicy, now: float) -> None:
        """What is known of an origin now that robots.txt was asked for, here or by a crawl before."""
        url, outage = policy.entry.robots_url, policy.entry.outage
        if outage is None:
            self._told.pop(url, None)
            return
        if url in self._told:
            return
        self._told[url] = None
        self.outages += 1
        meanwhile = (IN_SHADOW if self._shadow else MEANWHILE)[policy.basis]
        if pause_before_refetch(policy, now, self._wait) is not None:
            left = max(outage.since + self._wait - now, 0.0)
            meanwhile = f"its requests wait for it, {left:.0f} s at most (REP_UNREACHABLE_WAIT); then {meanwhile}"
        logger.log(
            logging.WARNING if self.outages <= WARNED_ORIGINS else logging.DEBUG,
            "robots.txt is unreachable, so %(meanwhile)s: %(url)s: %(cause)s",
            {"meanwhile": meanwhile, "url": printable(url), "cause": printable(outage.reason)},
        )

    def summed_up(self) -> None:
        """At the end of the crawl; nothing where there is nothing to say."""
        if not self.outages:
            return
        rest = f"; the first {WARNED_ORIGINS} were warned of, the rest are logged at DEBUG"
        logger.log(
            logging.WARNING if self.refused else logging.INFO,
            "robots.txt was unreachable at %(origins)s, and %(requests)s %(dropped)s for it%(rest)s",
            {
                "origins": counted(self.outages, "origin"),
                "requests": counted(self.refused, "request"),
                "dropped": "would have been dropped" if self._shadow else "dropped",
                "rest": rest if self.outages > WARNED_ORIGINS else "",
            },
        )
