"""What the log says of robots.txt: never forged by a stranger, never one line an origin for ever."""

from __future__ import annotations

import logging

from .protocol.lifecycle import Obey, Standing

logger = logging.getLogger("scrapy_rep")

WARNED_ORIGINS = 10

MEANWHILE = {
    Obey.NOTHING_ALLOWED: "nothing of its origin is fetched (RFC 9309 2.3.1.4)",
    Obey.COPY: "the rules that it had go on being obeyed (RFC 9309 2.4)",
    Obey.EVERYTHING_ALLOWED: "after so long, everything is allowed (RFC 9309 2.3.1.4)",
}

IN_SHADOW = {**MEANWHILE, Obey.NOTHING_ALLOWED: "nothing of its origin would be fetched (RFC 9309 2.3.1.4)"}


def printable(text: str) -> str:
    """The text with whatever could forge a log line (control characters, line ends, terminal escapes) escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


class Outages:
    """One WARNING an origin for the first ten whose robots.txt fails, DEBUG for the rest, a summary at the end."""

    def __init__(self, *, shadow: bool = False) -> None:
        """`shadow`: nothing is refused, and no line is to say that it is."""
        self._shadow = shadow
        self.outages = 0
        self.refused = 0

    def asked(self, standing: Standing) -> None:
        """robots.txt was asked for, and this is what is known now."""
        outage = standing.entry.outage
        if outage is None or outage.failures > 1:
            return
        self.outages += 1
        logger.log(
            logging.WARNING if self.outages <= WARNED_ORIGINS else logging.DEBUG,
            "robots.txt is unreachable, so %(meanwhile)s: %(url)s: %(cause)s",
            {
                "meanwhile": (IN_SHADOW if self._shadow else MEANWHILE)[standing.obey],
                "url": printable(standing.entry.robots_url),
                "cause": printable(outage.cause),
            },
        )

    def told(self) -> None:
        """The summary, at the end of the crawl; nothing where there is nothing to say."""
        if self.outages:
            logger.warning(
                "robots.txt was unreachable at %(outages)d origin(s), and %(refused)d request(s) %(were)s dropped for"
                " it; the first %(most)d were warned of, the rest are logged at DEBUG",
                {
                    "outages": self.outages,
                    "were": "would have been" if self._shadow else "were",
                    "refused": self.refused,
                    "most": WARNED_ORIGINS,
                },
            )
