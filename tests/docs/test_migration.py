"""What docs/migration.md says of projects that move from Scrapy's own middleware, with both middlewares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest
from crawling import ADDON, BUILTIN, CrawlSpider, crawl
from doc_pages import PAGES, marked
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from web import RULES, Web, answer, redirect

from scrapy_rep import RobotsUnreachable

EACH = pytest.mark.parametrize("robots", [BUILTIN, ADDON], ids=["built-in", "ours"])
PAGE = PAGES["docs/migration.md"]


class Notes(CrawlSpider):
    """Notes the exception of each request that failed, as an errback of a project would."""

    def failed(self, failure: Any) -> None:
        assert failure.check(IgnoreRequest)
        self.crawl.ends.append(failure.value)


@EACH
@ensureDeferred
async def test_the_type_the_text_and_the_stat_of_a_refusal(web: Web, robots: dict[str, Any]) -> None:
    result = await crawl(web.robots(RULES).url("/private"), spider=Notes, robots=robots)
    (error,) = result.ends
    is_ours = robots is ADDON
    assert (type(error) is IgnoreRequest) is not is_ours
    assert (str(error) == "Forbidden by robots.txt") is not is_ours
    stat = next(stat for stat in result.stats if stat.startswith("downloader/exception_type_count/"))
    name = stat.rpartition("/")[2]
    assert name == ("scrapy_rep.exceptions.ForbiddenByRobots" if is_ours else "scrapy.exceptions.IgnoreRequest")
    assert f"`{name}`" in PAGE or f"`{stat}`" in PAGE
    assert result.stats["robotstxt/forbidden"] == 1
    assert result.stats["finish_reason"] == "finished"


@ensureDeferred
async def test_the_stats_tell_rules_from_outages(web: Web) -> None:
    urls = web.robots(RULES).url("/private"), web.robots(answer(status=503)).url("/")
    stats = (await crawl(*urls, spider=Notes)).stats
    assert [stats[stat] for stat in ("robotstxt/forbidden", "rep/dropped/rule", "rep/dropped/unreachable")] == [2, 1, 1]
    unreachable = "scrapy_rep.exceptions.RobotsUnreachable"
    assert stats[f"downloader/exception_type_count/{unreachable}"] == 1
    assert f"`{unreachable}`" in PAGE


@EACH
@ensureDeferred
async def test_cookies_of_a_robots_txt_are_not_sent_with_pages(web: Web, robots: dict[str, Any]) -> None:
    site = web.robots(answer(RULES, headers={"Set-Cookie": "session=1"}))
    await crawl(site.url("/"), robots=robots)
    page = next(request for request in site.requests if request["target"] == "/")
    assert ("Cookie" in page["headers"]) is (robots is BUILTIN)


class SeesStatuses:
    """Notes the statuses of responses for a robots.txt."""

    statuses: list[int] = []

    def process_response(self, request: Request, response: Response) -> Response:
        if "/private" not in request.url:
            self.statuses.append(response.status)
        return response


@EACH
@ensureDeferred
async def test_middlewares_get_the_redirects_of_a_robots_txt(web: Web, robots: dict[str, Any]) -> None:
    site = web.site({"/robots.txt": redirect("/elsewhere"), "/elsewhere": answer(RULES)})
    SeesStatuses.statuses = []
    await crawl(site.url("/private"), robots=robots, settings={"DOWNLOADER_MIDDLEWARES": {SeesStatuses: 543}})
    assert SeesStatuses.statuses == ([200] if robots is BUILTIN else [301, 200])


@pytest.mark.parametrize("skips", [True, False])
@ensureDeferred
async def test_a_middleware_that_skips_requests_for_a_robots_txt(web: Web, skips: bool) -> None:
    variables: dict[str, Any] = {}
    code = marked("skip")
    exec(code if skips else code.replace("rep_robots_txt", "another key"), variables)
    site = web.robots(RULES)
    request = Request(site.url("/"), meta={"player": "7"})
    result = await crawl(request, settings={"DOWNLOADER_MIDDLEWARES": {variables["PlayerMiddleware"]: 543}})
    assert list(result.pages) == ([site.url("/")] if skips else [])
    assert bool(result.tracebacks) is not skips


@pytest.mark.parametrize("skips", [True, False])
@ensureDeferred
async def test_a_signal_handler_that_skips_requests_for_a_robots_txt(web: Web, skips: bool) -> None:
    variables: dict[str, Any] = {}
    code = marked("skip-in-handler")
    exec(code if skips else code.replace("rep_robots_txt", "another key"), variables)

    def connect(crawler: Crawler) -> None:
        crawler.signals.connect(variables["on_headers_received"], signals.headers_received)

    site = web.robots(RULES)
    result = await crawl(site.url("/"), prepare=connect)
    assert list(result.pages) == ([site.url("/")] if skips else [])
    assert [type(error) for error in result.refused.values()] == ([] if skips else [RobotsUnreachable])


class Guard:
    """Drops requests to blocked hosts, as in a project that has it below order 100."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/blocked"):
            raise IgnoreRequest("blocked")


class DropsWhenScheduled(Notes):
    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Any:
        crawler.signals.connect(cls.scheduled, signals.request_scheduled)
        return super().from_crawler(crawler, *args, **kwargs)

    @staticmethod
    def scheduled(request: Request) -> None:
        Guard().process_request(request)


@pytest.mark.parametrize(
    ("spider", "settings", "asked"),
    [
        (Notes, {"DOWNLOADER_MIDDLEWARES": {Guard: 50}}, 1),
        (Notes, {"DOWNLOADER_MIDDLEWARES": {Guard: 50}, "REP_WAITING_MAX": 0}, 0),
        (DropsWhenScheduled, {}, 0),
    ],
    ids=["below-100", "waits-in-the-downloader", "request_scheduled"],
)
@ensureDeferred
async def test_a_guard_below_order_100(
    web: Web, spider: type[CrawlSpider], settings: dict[str, Any], asked: int
) -> None:
    site = web.robots(RULES)
    result = await crawl(site.url("/blocked"), spider=spider, settings=settings)
    assert len(site.robots_requests) == asked
    assert "/blocked" not in site.targets
    assert result.pages == {}


def settings_on_the_page() -> Iterator[tuple[str, Any]]:
    """Yield each setting of the table about subclasses, with its value."""
    table = PAGE.partition("| what your class does |")[2].partition("\n\n")[0]
    for name, value in re.findall(r"`([A-Z_]+) = ([^`]+)`", table):
        yield name, ast.literal_eval(value)


@pytest.mark.parametrize(("name", "value"), [*settings_on_the_page()], ids=str)
@ensureDeferred
async def test_what_takes_the_place_of_a_subclass(name: str, value: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    result = await crawl(settings={name: value, "USER_AGENT": "NewsBot/1.0"})
    assert result.messages() == []


def test_the_table_about_subclasses_has_settings() -> None:
    assert len({name for name, _ in settings_on_the_page()}) == 6
