"""Small projects as people have them, each crawled with Scrapy's own middleware and with the add-on.

Pages, items and finish reason are the same. docs/migration.md has what differs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from crawling import ADDON, BUILTIN, CrawlSpider, crawl
from processes import run_python
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from web import RULES, Site, Web, answer

COMPRESSION = "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware"


PLAIN, GZIP = answer(RULES), answer(gzip.compress(RULES.encode()), headers={"Content-Encoding": "gzip"})


class Items(CrawlSpider):
    """Yields an item for each page, and one for each request that was ignored."""

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        yield {"page": response.url}

    def failed(self, failure: Any) -> Any:
        super().failed(failure)
        yield {"ignored" if failure.check(IgnoreRequest) else "failed": failure.request.url}


class Guard:
    """Drops requests to a blocked folder."""

    def process_request(self, request: Request) -> None:
        if "/blocked" in request.url:
            raise IgnoreRequest("blocked")


class Filter:
    """Drops requests to a blocked folder when they are scheduled."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Filter:
        self = cls()
        crawler.signals.connect(self.scheduled, signals.request_scheduled)
        return self

    def scheduled(self, request: Request) -> None:
        Guard().process_request(request)


class DropsFiles:
    """Drops responses by their type, to get pages alone. It drops robots.txt, too."""

    def process_response(self, request: Request, response: Response) -> Response:
        if (response.headers.get("Content-Type") or b"").startswith(b"text/plain"):
            raise IgnoreRequest("no page")
        return response


class Browser:
    """Answers a request itself, as a middleware for Selenium does."""

    def process_request(self, request: Request) -> Response | None:
        return Response(request.url, body=b"rendered") if "/rendered" in request.url else None


class Base(Items):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {COMPRESSION: 810}}


class Updates(Base):
    @classmethod
    def update_settings(cls, settings: Any) -> None:
        super().update_settings(settings)
        settings.set("USER_AGENT", "NewsBot/1.0", priority="spider")


class SwitchesOff(Items):
    custom_settings = {"ROBOTSTXT_OBEY": False}


class Monitor:
    """Fails a crawl whose finish reason is not `finished`, as monitors of deployments do."""

    reasons: list[str] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Monitor:
        monitor = cls()
        crawler.signals.connect(monitor.closed, signals.spider_closed)
        return monitor

    def closed(self, reason: str) -> None:
        self.reasons.append(reason)


@dataclass
class Project:
    spider: type[CrawlSpider] = Items
    settings: Mapping[str, Any] = field(default_factory=dict)
    paths: tuple[str, ...] = ("/", "/private", "/page")
    robots: Any = field(
        default_factory=lambda: answer(gzip.compress(RULES.encode()), headers={"Content-Encoding": "gzip"})
    )
    differences: tuple[str, ...] = ()
    """The stats that differ."""


PROJECTS = {
    "plain": Project(),
    "a base class": Project(spider=Base),
    "update_settings": Project(spider=Updates),
    "HttpCompressionMiddleware at 810": Project(settings={"DOWNLOADER_MIDDLEWARES": {COMPRESSION: 810}}),
    "HttpCompressionMiddleware is off": Project(settings={"DOWNLOADER_MIDDLEWARES": {COMPRESSION: None}}, robots=PLAIN),
    "a guard at 50": Project(
        settings={"DOWNLOADER_MIDDLEWARES": {Guard: 50}}, paths=("/", "/blocked", "/private"), robots=PLAIN
    ),
    "a handler of request_scheduled": Project(
        settings={"EXTENSIONS": {Filter: 0}}, paths=("/", "/blocked", "/private"), robots=PLAIN
    ),
    "a browser at 100": Project(
        settings={"DOWNLOADER_MIDDLEWARES": {Browser: 100}},
        paths=("/rendered", "/private/rendered"),
        robots=PLAIN,
    ),
    "a filter of types": Project(
        settings={"DOWNLOADER_MIDDLEWARES": {DropsFiles: 543}},
        paths=("/", "/page"),
        robots=answer(RULES, headers={"Content-Type": "text/plain"}),
    ),
    "a monitor of the finish reason": Project(settings={"EXTENSIONS": {Monitor: 0}}, paths=("/private",)),
    "a spider that switches robots.txt off": Project(spider=SwitchesOff),
    "no robots.txt": Project(robots=answer(status=404)),
    "requests for files": Project(settings={"CONCURRENT_REQUESTS": 1}, paths=("/", "/private", "/1", "/2", "/3")),
}


async def ended(project: Project, site: Site, robots: dict[str, Any]) -> tuple[list[str], list[Any], str]:
    items: list[Any] = []

    def scraped(item: Any) -> None:
        items.append(item)

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(scraped, signals.item_scraped)

    urls = map(site.url, project.paths)
    result = await crawl(*urls, spider=project.spider, robots=robots, settings=dict(project.settings), prepare=prepare)
    assert result.tracebacks == []
    return sorted(result.pages), sorted(items, key=str), result.stats["finish_reason"]


@pytest.mark.parametrize("project", PROJECTS.values(), ids=PROJECTS)
@ensureDeferred
async def test_pages_items_and_finish_reason_are_the_same(web: Web, project: Project) -> None:
    site = web.robots(project.robots)
    builtin, ours = [await ended(project, site, robots) for robots in (BUILTIN, ADDON)]
    assert ours == builtin
    assert ours[2] == "finished"
    assert ours[1], "no project is without items"
    assert set(Monitor.reasons) <= {"finished"}


SETTINGS = """
SPIDER_MODULES = ["news"]
TELNETCONSOLE_ENABLED = False
"""
OBEY = "ROBOTSTXT_OBEY = True\n"
SPIDER = """
import scrapy

class News(scrapy.Spider):
    name = "news"

    async def start(self):
        for path in ("/", "/private", "/page"):
            yield scrapy.Request(self.site + path)

    def parse(self, response):
        yield {"page": response.url}
"""
PROCESS = """
import json, sys
from scrapy.crawler import CrawlerProcess
from news import News

site, settings = sys.argv[1], json.loads(sys.argv[2])
process = CrawlerProcess({**settings, "FEEDS": {"items.jsonl": {"format": "jsonlines"}}})
process.crawl(News, site=site)
process.start()
"""


@pytest.mark.parametrize("way", ["settings.py", "-s", "-s for all settings", "CrawlerProcess"])
def test_each_way_to_switch_the_addon_on(web: Web, tmp_path: Path, way: str) -> None:
    site = web.robots(f"{RULES}\nuser-agent: NewsBot\ndisallow: /$\n")
    found: list[list[str]] = []
    for addons in ({}, ADDON["ADDONS"]):
        folder = tmp_path / f"{len(found)}"
        folder.mkdir()
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = ours\n")
        in_file = {"settings.py": f"{OBEY}ADDONS = {addons!r}\n", "-s": OBEY}
        (folder / "ours.py").write_text(SETTINGS + in_file.get(way, ""))
        (folder / "news.py").write_text(SPIDER)
        (folder / "process.py").write_text(PROCESS)
        if way == "CrawlerProcess":
            arguments = ["process.py", site.origin, json.dumps({"ROBOTSTXT_OBEY": True, "ADDONS": addons})]
        else:
            options = ["-s", f"ADDONS={json.dumps(addons)}"] if way.startswith("-s") else []
            options += ["-s", "ROBOTSTXT_OBEY=True", "-s", "USER_AGENT=NewsBot/1.0"] if way.endswith("settings") else []
            arguments = ["-m", "scrapy", "crawl", "news", "-a", f"site={site.origin}", "-o", "items.jsonl", *options]
        done = run_python(*arguments, cwd=folder)
        assert ("Crawler's name in robots.txt" in done.stderr) is bool(addons)
        assert "(finished)" in done.stderr
        found.append(sorted((folder / "items.jsonl").read_text().splitlines()))
    assert found[0] == found[1]
    allowed = ["/page", "/private"] if way == "-s for all settings" else ["/", "/page"]
    assert [json.loads(line)["page"] for line in found[0]] == [site.url(path) for path in allowed]
