"""A table of what happened at each site, printed when the crawl has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import Verdict, VerdictReason
from scrapy_rep.signals import request_forbidden, robots_known

if TYPE_CHECKING:
    from scrapy_rep.origin_info import OriginInfo

    from .spiders import TourSpider

PREFERENCES = {True: "allowed", False: "disallowed", None: "unknown"}
EFFECTS = {"success": "rules obeyed", "unavailable": "all allowed"}
"""What the crawl may fetch after an access result; after the other results, nothing."""


@dataclass
class Visit:
    """What happened at one origin."""

    answer: str = "no answer"
    access: str = ""
    """The access result and its effect; empty without scrapy-rep."""
    fetched: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Column -> the pages in that column."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """For each refused page: the page, and what refused it."""

    def lines(self, site: str, columns: list[str]) -> Iterator[tuple[str, ...]]:
        """Yield the site's lines of the table: one for each refused page, and at least one."""
        fetched = (" ".join(sorted(self.fetched[column])) for column in columns)
        of_the_site: tuple[str, ...] = (site, self.answer, self.access, *fetched)
        for refused in sorted(self.refused) or [("", "")]:
            yield (*of_the_site, *refused)
            of_the_site = ("",) * len(of_the_site)


class Table:
    """Collects the data of the signals and of the spider's errback, and prints them as a table."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._visits: defaultdict[str, Visit] = defaultdict(Visit)
        self._purpose = next(iter(crawler.settings.getlist("REP_PURPOSES")), "")
        self._is_dry_run = crawler.settings.getbool("REP_DRY_RUN")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Table:
        table = cls(crawler)
        crawler.signals.connect(table.opened, signal=signals.spider_opened)
        crawler.signals.connect(table.received, signal=signals.response_received)
        crawler.signals.connect(table.robots_known, signal=robots_known)
        crawler.signals.connect(table.forbidden, signal=request_forbidden)
        crawler.signals.connect(table.show, signal=signals.engine_stopped)
        return table

    def opened(self, spider: TourSpider) -> None:
        self._spider = spider

    def received(self, response: Response) -> None:
        # Scrapy's own middleware follows redirects before this signal. The first URL is the one that was asked.
        origin, path = split(response.meta.get("redirect_urls", [response.url])[0])
        visit = self._visits[origin]
        if path != "/robots.txt":
            visit.fetched[self._column(response)].append(path)
        elif location := response.headers.get("Location"):
            visit.answer = f"{response.status} -> {self._site(location.decode())}"
        else:
            visit.answer = f"HTTP {response.status}"

    def robots_known(self, info: OriginInfo, fetched: bool) -> None:
        visit = self._visits[split(info.robots_url)[0]]
        visit.access = f"{info.last.access.value} ({EFFECTS.get(info.last.access.value, 'none allowed')})"
        if not fetched:
            visit.answer = "shared"  # another crawler has fetched it

    def forbidden(self, request: Request, verdict: Verdict) -> None:
        # In a dry run, the request is sent nevertheless.
        self._refuse(request.url, reason(verdict))

    def _refuse(self, url: str, by: str) -> None:
        origin, path = split(url)
        self._visits[origin].refused.append((path, by))

    def show(self) -> None:
        if not self._crawler.settings["ADDONS"]:  # Scrapy's own middleware sends no such signal
            for url, refusal in self._spider.refusals.items():
                self._refuse(url, str(refusal))
        columns = [f"{self._purpose} {word}" for word in PREFERENCES.values()] if self._purpose else ["fetched"]
        refused = "would be refused" if self._is_dry_run else "refused"
        lines: list[tuple[str, ...]] = [("origin", "robots.txt", "access", *columns, refused, "by")]
        for site, origin in self._spider.origins.items():
            lines += self._visits.get(origin, Visit(answer="")).lines(site, columns)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print(f"{self._spider.name}, as {self._crawler.settings['USER_AGENT']}\n")
        for line in lines:
            print("  ".join(map(str.ljust, line, widths)).rstrip())
        stats = self._crawler.stats.get_stats()
        asked = stats.get("robotstxt/request_count", 0)
        number = stats.get("rep/dry_run/forbidden" if self._is_dry_run else "robotstxt/forbidden", 0)
        print(f"\n{asked} requests for robots.txt, {number} pages {refused}")

    def _column(self, response: Response) -> str:
        """Return the column of the page. With REP_PURPOSES, there are three columns: one for each preference."""
        if not self._purpose:
            return "fetched"
        return f"{self._purpose} {PREFERENCES[response.meta['robots_usage'].get(self._purpose)]}"

    def _site(self, url: str) -> str:
        return next(site for site, origin in self._spider.origins.items() if split(url)[0] == origin)


def split(url: str) -> tuple[str, str]:
    """Return the URL's origin and path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", parts.path


def reason(verdict: Verdict) -> str:
    """Return the line of robots.txt, or the header, that refuses the page; without one, why nothing is allowed."""
    if verdict.reason is VerdictReason.UNREACHABLE:
        return verdict.answer.partition(":")[0]
    decided_by = verdict.decided_by
    if decided_by is None:
        return verdict.access.value
    return f"line {decided_by.line}, {decided_by}" if decided_by.line else f"header, {decided_by}"
