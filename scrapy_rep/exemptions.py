"""Origins whose robots.txt is neither fetched nor obeyed (REP_EXEMPT)."""

from __future__ import annotations

from scrapy_rep.log import Logger
from scrapy_rep.protocol.origin import Origin


class Exemptions:
    """Origins; hosts, with any scheme and port; and subdomains of hosts (`*.example.com`)."""

    def __init__(self, exempt: frozenset[Origin | str]) -> None:
        self._exempt = exempt
        self._domains = tuple(item[1:] for item in exempt if isinstance(item, str) and item.startswith("*."))

    def holds(self, origin: Origin) -> bool:
        """Whether the origin is exempt."""
        return origin in self._exempt or origin.host in self._exempt or origin.host.endswith(self._domains)

    def announce(self, log: Logger) -> None:
        if self._exempt:
            names = ", ".join(sorted(map(str, self._exempt)))
            log.info("REP_EXEMPT: robots.txt is neither fetched nor obeyed for %s", names)
