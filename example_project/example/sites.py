"""The sites of the example: the pages of each site, and the answer of its /robots.txt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Site:
    """One origin: the answer of its /robots.txt, and the pages that its home page links to."""

    pages: tuple[str, ...]
    robots: str = ""
    status: int = 200
    location: str = ""
    """The site to whose robots.txt this one redirects; empty if it does not redirect."""
    hangs: bool = False
    """Whether requests for robots.txt are never answered."""
    content_usage: Mapping[str, str] = field(default_factory=dict)
    """Page -> its Content-Usage header."""


SITES = {
    # TourBot obeys only the group that names it. All other crawlers obey the group of `*`.
    "library": Site(
        ("/archive/", "/desk/", "/members/"),
        robots="User-agent: *\nDisallow: /archive/\nDisallow: /desk/\n\nUser-agent: TourBot\nDisallow: /members/\n"
        # These usage preferences matter only with REP_PURPOSES. The strictest of the two lines and the header counts.
        "Content-Signal: ai-train=yes\nContent-Usage: /archive/ train-ai=n\n",
        content_usage={"/desk/": "train-ai=n"},
    ),
    # The longest match decides, not the order: 14 bytes allow the catalogue, 7 bytes forbid the other file.
    "gallery": Site(
        ("/catalogue.pdf", "/prices.pdf"),
        robots="User-agent: *\nDisallow: /*.pdf$\nAllow: /catalogue.pdf\n",
    ),
    "cafe": Site(("/menu",), status=404),
    # The body of an error response is not read as rules.
    "club": Site(("/events",), status=403, robots="User-agent: *\nDisallow: /\n"),
    "harbour": Site(("/timetable",), status=503),
    # The library's rules apply here as well.
    "annex": Site(("/archive/", "/members/"), status=301, location="library"),
    "maze": Site(("/exit",), status=302, location="maze"),
    "tunnel": Site(("/lights",), hangs=True),
}
