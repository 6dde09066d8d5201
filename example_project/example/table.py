"""What a crawl met at each site, as a table for people, printed when the crawl has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import AccessResult, ForbiddenByRobots, RobotsUnreachable

if TYPE_CHECKING:
    from .spiders import TourSpider

HEADER = ("origin", "robots.txt", "access", "fetched", "refused", "by")


@dataclass
class Visit:
    """What happened at one origin."""

    answer: str = "no answer"
    access: AccessResult | None = None
    fetched: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Page, and what refused it."""

    def lines(self, site: str) -> Iterator[tuple[str, ...]]:
        """The site's lines of the table: as many as pages were refused, and at least one."""
        access = self.access.value if self.access is not None else ""
        of_the_site = (site, self.answer, access, " ".join(sorted(self.fetched)))
        for refused in sorted(self.refused) or [("", "")]:
            yield (*of_the_site, *refused)
            of_the_site = ("",) * 4


class Table:
    """Gathers what Scrapy's signals tell and what the spider's errback received."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._visits: defaultdict[str, Visit] = defaultdict(Visit)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Table:
        table = cls(crawler)
        crawler.signals.connect(table.opened, signal=signals.spider_opened)
        crawler.signals.connect(table.received, signal=signals.response_received)
        crawler.signals.connect(table.parsed, signal=signals.robots_parsed)
        crawler.signals.connect(table.show, signal=signals.engine_stopped)
        return table

    def opened(self, spider: TourSpider) -> None:
        self._spider = spider

    def received(self, response: Response) -> None:
        origin, path = split(response.url)
        visit = self._visits[origin]
        if path != "/robots.txt":
            visit.fetched.append(path)
            # Neither rules nor a refusal: all was allowed, for want of a robots.txt.
            visit.access = visit.access or AccessResult.UNAVAILABLE
        elif location := response.headers.get("Location"):
            visit.answer = f"{response.status} -> {self._site(location.decode())}"
        else:
            visit.answer = f"HTTP {response.status}"

    def parsed(self, request: Request) -> None:
        self._visits[split(request.url)[0]].access = AccessResult.SUCCESS

    def show(self) -> None:
        for url, refusal in self._spider.refusals.items():
            origin, path = split(url)
            self._visits[origin].access = refusal.verdict.access
            self._visits[origin].refused.append((path, reason(refusal)))
        lines: list[tuple[str, ...]] = [HEADER]
        for site, origin in self._spider.origins.items():
            lines += self._visits[origin].lines(site)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print(f"{self._spider.name}, as {self._crawler.settings['USER_AGENT']}\n")
        for line in lines:
            print("  ".join(map(str.ljust, line, widths)).rstrip())
        stats = self._crawler.stats.get_stats()
        asked, refused = stats.get("robotstxt/request_count", 0), stats.get("robotstxt/forbidden", 0)
        print(f"\n{asked} requests for robots.txt, {refused} pages refused")

    def _site(self, url: str) -> str:
        return next(site for site, origin in self._spider.origins.items() if split(url)[0] == origin)


def split(url: str) -> tuple[str, str]:
    """Origin and path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", parts.path


def reason(refusal: ForbiddenByRobots) -> str:
    """The rule and its line, or why there are none: in short, the failure's type."""
    if isinstance(refusal, RobotsUnreachable):
        return refusal.cause.partition(":")[0]
    rule = refusal.verdict.rule
    return f"line {rule.line}, {rule}" if rule is not None else refusal.verdict.access.value
