"""A crawl whose start requests are all refused: its close reason, and its log lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crawling import CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response
from web import RULES, Route, Web, answer

NOTHING = "user-agent: *\ndisallow: /\n"


def instead(url: str) -> type[CrawlSpider]:
    """A spider that requests this URL after each refusal."""

    class Instead(CrawlSpider):
        def failed(self, failure: Any) -> Any:
            super().failed(failure)
            yield self.prepared(url)

    return Instead


@ensureDeferred
async def test_denied_if_every_start_request_is_refused(web: Web) -> None:
    site, down = web.robots(NOTHING), web.robots(answer(status=503))
    result = await crawl(site.url("/a"), site.url("/b"), down.url("/"))
    assert result.stats["finish_reason"] == "robotstxt_denied"
    warning, *advice = result.denied
    start = "Nothing was crawled: every start request was refused (3). The first: "
    # The first is the request whose robots.txt was known first.
    assert warning in {f"{start}{error}" for error in result.refused.values()}
    assert all(any(cure in line for line in advice) for cure in ("scrapy robots", "ROBOTSTXT_USER_AGENT", "later"))


@pytest.mark.parametrize(
    ("route", "advice"),
    [
        (answer(NOTHING), "Is the rule for another crawler? Set ROBOTSTXT_USER_AGENT to the product token of yours"),
        (answer(status=503), "Is robots.txt unreachable? Try again later"),
        (
            answer(status=403),
            (
                "Is access to robots.txt restricted? Then REP_STATUS_POLICY refuses everything. Ask the site for"
                " access, or change this setting"
            ),
        ),
    ],
    ids=["rule", "outage", "policy"],
)
@ensureDeferred
async def test_the_advice_depends_on_the_cause(web: Web, route: Route, advice: str) -> None:
    result = await crawl(web.robots(route).url("/"), settings={"REP_STATUS_POLICY": "cautious"})
    for_all = (
        "Is the site yours, or have you permission to crawl it? Set REP_EXEMPT. `scrapy robots URL` explains refusals"
    )
    assert result.denied[1:] == [advice, for_all]


@ensureDeferred
async def test_not_denied_if_the_job_fetched_a_page_before(web: Web, tmp_path: Path) -> None:
    site, job = web.robots(RULES), {"JOBDIR": str(tmp_path)}

    class StopsAfterOne(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            raise CloseSpider("enough")

    begin = await crawl(site.url("/"), spider=StopsAfterOne, settings=job)
    assert (len(begin.pages), begin.stats["finish_reason"]) == (1, "enough")
    result = await crawl(site.url("/private"), settings=job)
    assert (len(result.refused), result.stats["finish_reason"], result.denied) == (1, "finished", [])


@ensureDeferred
async def test_denied_again_if_the_job_never_fetched_a_page(web: Web, tmp_path: Path) -> None:
    for _ in range(2):
        result = await crawl(web.robots(NOTHING).url("/"), settings={"JOBDIR": str(tmp_path)})
        assert result.stats["finish_reason"] == "robotstxt_denied"


@ensureDeferred
async def test_not_denied_if_a_start_request_of_the_job_failed_otherwise(web: Web, tmp_path: Path) -> None:
    gone, job = Request("http://127.0.0.1:1/", meta={"dont_obey_robotstxt": True}), {"JOBDIR": str(tmp_path)}
    await crawl(gone, settings=job)
    result = await crawl(web.robots(NOTHING).url("/"), settings=job)
    assert (len(result.refused), result.stats["finish_reason"], result.denied) == (1, "finished", [])


@ensureDeferred
async def test_not_denied_if_one_start_request_is_allowed(web: Web) -> None:
    site = web.robots(RULES)
    result = await crawl(site.url("/private"), site.url("/"))
    assert (result.stats["finish_reason"], result.denied) == ("finished", [])


@ensureDeferred
async def test_later_requests_do_not_count(web: Web) -> None:
    site = web.robots(RULES)

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            yield self.prepared(site.url("/private"))

    result = await crawl(site.url("/"), spider=Follows)
    assert (len(result.refused), result.stats["finish_reason"]) == (1, "finished")


@ensureDeferred
async def test_not_denied_if_an_errback_requests_another_page(web: Web) -> None:
    site = web.robots(RULES)

    result = await crawl(site.url("/private"), spider=instead(site.url("/instead")))
    assert (list(result.pages), result.stats["finish_reason"]) == ([site.url("/instead")], "finished")


@ensureDeferred
async def test_a_start_request_that_fails_otherwise_was_not_refused(web: Web) -> None:
    site = web.robots(RULES)

    class Drops:
        def process_request(self, request: Request) -> None:
            if request.url.endswith("/dropped"):
                raise IgnoreRequest

    settings = {"DOWNLOADER_MIDDLEWARES": {Drops: 50}}
    result = await crawl(site.url("/private"), site.url("/dropped"), settings=settings)
    assert result.stats["finish_reason"] == "finished"
    gone = Request("http://127.0.0.1:1/", meta={"dont_obey_robotstxt": True})
    result = await crawl(site.url("/private"), gone)
    assert result.stats["finish_reason"] == "finished"


@ensureDeferred
async def test_a_duplicate_start_request_does_not_count(web: Web) -> None:
    site = web.robots(NOTHING)
    result = await crawl(Request(site.url("/")), Request(site.url("/")))
    assert result.stats["finish_reason"] == "robotstxt_denied"


@ensureDeferred
async def test_a_page_from_the_cache_counts_as_allowed(web: Web, tmp_path: Any) -> None:
    site = web.robots(RULES)
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    for _ in range(2):
        result = await crawl(site.url("/private"), spider=instead(site.url("/instead")), settings=settings)
        assert result.stats["finish_reason"] == "finished"
    assert site.targets.count("/instead") == 1


@ensureDeferred
async def test_an_error_of_the_spider_keeps_its_own_close_reason(web: Web) -> None:
    site = web.robots(NOTHING)

    class Fails(CrawlSpider):
        async def start(self) -> Any:
            yield self.prepared(site.url("/"))
            raise ZeroDivisionError

    own = (await crawl(spider=Fails, robots={})).stats["finish_reason"]
    # Before 2.18, Scrapy treats such a spider as finished.
    expected = "robotstxt_denied" if own == "finished" else own
    assert (await crawl(spider=Fails)).stats["finish_reason"] == expected


@pytest.mark.parametrize("requests", [0, 1])
@ensureDeferred
async def test_a_crawl_without_refusals_finishes_as_usual(web: Web, requests: int) -> None:
    result = await crawl(*[web.robots(RULES).url("/")] * requests)
    assert result.stats["finish_reason"] == "finished"
