"""The statements of docs/limits.md about what bypasses scrapy-rep, and about REP_BODY_LIMIT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crawling import CrawlSpider, FollowsByItself, Time, crawl, in_turn, with_clock
from processes import run_python
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.http import HtmlResponse, Response
from web import RULES, Route, Web, answer, redirect

REFRESH = '<html><head><meta http-equiv="refresh" content="0; url=/private"></head></html>'


class AnswersItself:
    """A downloader middleware that answers before scrapy-rep sees the request."""

    def process_request(self, request: Request) -> Response:
        return HtmlResponse(request.url, body=b"mine", request=request)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"DOWNLOAD_HANDLERS": {"http": FollowsByItself}}, id="handler-that-follows-redirects"),
        pytest.param({"DOWNLOADER_MIDDLEWARES": {AnswersItself: 50}}, id="middleware-before-ours"),
    ],
)
@ensureDeferred
async def test_what_bypasses_scrapy_rep(web: Web, settings: dict[str, Any]) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/page": redirect("/private"), "/private": answer("secret")})
    path = "/page" if "DOWNLOAD_HANDLERS" in settings else "/private"
    result = await crawl(site.url(path), settings=settings)
    assert result.pages[site.url(path)].text in {"secret", "mine"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(redirect("/private"), id="redirect"),
        pytest.param(answer(REFRESH, headers={"Content-Type": "text/html"}), id="meta-refresh"),
    ],
)
@ensureDeferred
async def test_redirects_that_scrapy_follows_do_not_bypass_it(web: Web, page: Route) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/page": page})
    result = await crawl(Request(site.url("/page"), meta={"handle_httpstatus_all": False}), spider=AsUsual)
    assert list(result.refused) == [site.url("/page")]
    assert "/private" not in site.targets


class AsUsual(CrawlSpider):
    """Leaves redirects to Scrapy."""

    def prepared(self, request: str | Request) -> Request:
        request = super().prepared(request)
        del request.meta["handle_httpstatus_all"]
        return request


class YieldsFiles(CrawlSpider):
    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        yield {"file_urls": [response.urljoin("/file"), response.urljoin("/private")]}


@ensureDeferred
async def test_media_pipelines_do_not_bypass_it(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    settings = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": str(tmp_path)}
    await crawl(site.url("/"), spider=YieldsFiles, settings=settings)
    assert sorted(site.targets) == ["/", "/file", "/robots.txt"]


@ensureDeferred
async def test_pages_from_scrapys_cache_do_not_bypass_it(web: Web, tmp_path: Path) -> None:
    site = web.robots("")
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    assert (await crawl(site.url("/private"), settings={**settings, "ROBOTSTXT_OBEY": False})).pages
    site.change("/robots.txt", answer(RULES))
    assert list((await crawl(site.url("/private"), settings=settings)).refused) == [site.url("/private")]


SPIDER = "import scrapy\nclass Pages(scrapy.Spider):\n    name = 'pages'\n    def parse(self, response): pass\n"


@pytest.mark.parametrize("command", ["fetch", "shell -c response", "parse --spider pages"])
def test_commands_that_fetch_one_page_do_not_bypass_it(web: Web, tmp_path: Path, command: str) -> None:
    site = web.robots(RULES)
    (tmp_path / "pages.py").write_text(SPIDER)
    (tmp_path / "settings.py").write_text("ADDONS = {'scrapy_rep.Addon': 500}\nSPIDER_MODULES = ['pages']\n")
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
    for path in ("/page", "/private"):
        run_python("-m", "scrapy", *command.split(), site.url(path), cwd=tmp_path)
    assert site.targets == ["/robots.txt", "/page", "/robots.txt"]


class TellsOfWholeBodies(HTTP11DownloadHandler):
    """A handler that does not send `bytes_received`, as handlers of other packages."""

    async def download_request(self, request: Request) -> Response:
        body = RULES.encode() if request.url.endswith("/robots.txt") else b"page"
        return Response(request.url, body=body, request=request)


@ensureDeferred
async def test_a_handler_without_bytes_received_logs_one_warning(web: Web) -> None:
    urls = [f"http://site-{n}.example/private" for n in range(2)]
    result = await crawl(*urls, settings={"DOWNLOAD_HANDLERS": {"http": TellsOfWholeBodies}})
    assert len(result.refused) == 2
    (warning,) = result.messages(logger="scrapy_rep")
    assert "robots.txt: the download handler sends no signal bytes_received, so REP_BODY_LIMIT" in warning
    assert result.tracebacks == []


LONG = RULES + 512_000 * "#" + "\ndisallow: /late\n"


@ensureDeferred
async def test_a_robots_txt_that_a_middleware_answers_logs_no_warning_about_its_handler(web: Web) -> None:
    class Answers:
        def process_request(self, request: Request) -> Response | None:
            is_robots_txt = request.url.endswith("/robots.txt")
            return Response(request.url, body=RULES.encode()) if is_robots_txt else None

    site = web.site()
    settings = {"DOWNLOADER_MIDDLEWARES": {Answers: 543}}
    result = await crawl(site.url("/"), site.url("/private"), settings=settings)
    assert (len(result.pages), len(result.refused), site.targets) == (1, 1, ["/"])
    assert result.messages() == []


@ensureDeferred
async def test_rules_beyond_the_limit_are_not_obeyed_and_a_warning_says_so(web: Web) -> None:
    sites = [web.robots(LONG), web.robots(LONG), web.robots(RULES)]
    urls = [site.url(path) for site in sites for path in ("/late", "/private")]
    result = await crawl(*urls)
    assert result.pages.keys() == set(urls[::2])
    assert result.stats["rep/truncated"] == 2
    (warning,) = result.messages()
    assert "/robots.txt is longer than 512,000 bytes (REP_BODY_LIMIT). Later rules are not read" in warning
    assert "REP_BODY_LIMIT = 5_120_000 reads ten times as much" in warning
    result = await crawl(*urls, settings={"REP_BODY_LIMIT": 600_000})
    assert list(result.pages) == [urls[4]]
    assert len(result.refused) == 5
    assert result.messages() == []
    assert "rep/truncated" not in result.stats


@pytest.mark.parametrize(
    ("bodies", "truncated", "warnings"),
    [([LONG], 1, 1), ([RULES, LONG], 1, 1), ([LONG, RULES], 0, 1), ([RULES], None, 0)],
    ids=["always", "later", "at-first", "never"],
)
@ensureDeferred
async def test_a_file_beyond_the_limit_counts_once_by_its_last_version(
    web: Web, bodies: list[str], truncated: int | None, warnings: int
) -> None:
    site, time = web.robots([answer(body) for body in bodies]), Time()
    result = await crawl(site.url("/"), robots=with_clock(time), spider=in_turn(time, 90_000.0, 90_000.0))
    assert site.targets.count("/robots.txt") == 3
    assert (result.stats.get("rep/truncated"), len(result.messages(logger="scrapy_rep"))) == (truncated, warnings)
