"""The log at the end of a crawl whose start requests were all refused. The finish reason is Scrapy's own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from crawling import BUILTIN, CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from web import RULES, Route, Web, answer

from scrapy_rep.protocol import words
from scrapy_rep.protocol.words import VerdictReason

NOTHING = "user-agent: *\ndisallow: /\n"


def instead(url: str) -> type[CrawlSpider]:
    """A spider that requests this URL after each refusal."""

    class Instead(CrawlSpider):
        def failed(self, failure: Any) -> Any:
            super().failed(failure)
            yield self.prepared(url)

    return Instead


@ensureDeferred
async def test_the_log_says_that_every_start_request_was_refused(web: Web) -> None:
    site, down = web.robots(NOTHING), web.robots(answer(status=503))
    result = await crawl(site.url("/a"), site.url("/b"), down.url("/"))
    warning, *advice = result.denied
    start = "Nothing was crawled: every start request was refused (3). The first: "
    # The first is the request whose robots.txt was known first.
    assert warning in {f"{start}{error}" for error in result.refused.values()}
    assert all(any(cure in line for line in advice) for cure in ("scrapy robots", "all crawlers", "later"))
    (record,) = (record for record in result.log if record.levelno == logging.ERROR)
    assert record.getMessage() == warning


@pytest.mark.parametrize(
    ("route", "advice"),
    [
        (answer(NOTHING), ["The rule is for all crawlers that robots.txt does not name. Ask the site for access"]),
        (
            answer("user-agent: scrapy\ndisallow: /\n"),
            ["The rule is for 'Scrapy'. If your crawler has another name, set ROBOTSTXT_USER_AGENT to that name"],
        ),
        (
            answer(status=503),
            [words.REASON_WORDS[VerdictReason.UNREACHABLE].advice],
        ),
        (
            answer(status=403),
            ["The site restricts access to robots.txt. Ask it for access, or change REP_STATUS_POLICY"],
        ),
    ],
    ids=["rule-for-all", "rule", "outage", "policy"],
)
@ensureDeferred
async def test_the_advice_depends_on_the_cause(web: Web, route: Route, advice: list[str]) -> None:
    result = await crawl(web.robots(route).url("/"), settings={"REP_STATUS_POLICY": "cautious"})
    for_all = (
        "Is the site yours, or have you permission to crawl it? Set REP_EXEMPT. `scrapy robots URL` explains refusals"
    )
    assert result.denied[1:] == [*advice, for_all]


@pytest.mark.parametrize("robots", [None, BUILTIN], ids=["ours", "built-in"])
@ensureDeferred
async def test_the_finish_reason_is_that_of_the_built_in(web: Web, tmp_path: Path, robots: Any) -> None:
    """Monitors and deployments count every other reason as a failure."""
    for _ in range(2):
        site = web.robots(NOTHING)
        result = await crawl(Request(site.url("/")), Request(site.url("/")), robots=robots)
        assert result.stats["finish_reason"] == "finished"
        assert bool(result.denied) is (robots is None)
    result = await crawl(site.url("/"), robots=robots, settings={"JOBDIR": str(tmp_path)})
    assert result.stats["finish_reason"] == "finished"
    assert getattr(result.crawler.spider, "state", {}) == {}


@pytest.mark.parametrize("where", ["start", "callback", "errback", "cache", "exempt"])
@ensureDeferred
async def test_a_page_that_came_is_a_crawl(web: Web, tmp_path: Path, where: str) -> None:
    site = web.robots(RULES)

    class Follows(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            if not response.url.endswith("/private"):
                yield self.prepared(site.url("/private"))

    spiders = {"start": CrawlSpider, "callback": Follows, "exempt": CrawlSpider}
    urls = {"start": ["/private", "/"], "callback": ["/"], "exempt": ["/private", "/own"]}.get(where, ["/private"])
    cached = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)} if where == "cache" else {}
    for _ in range(1 + (where == "cache")):
        result = await crawl(
            *(Request(site.url(url), meta={"dont_obey_robotstxt": url == "/own"}) for url in urls),
            spider=spiders.get(where, instead(site.url("/instead"))),
            settings=cached,
        )
        assert result.refused
        assert result.denied == []


@ensureDeferred
async def test_a_request_that_fails_otherwise_was_not_refused(web: Web) -> None:
    site = web.site({"/robots.txt": answer(RULES), "/gone": answer(kind="reset")})

    class Again(CrawlSpider):
        def failed(self, failure: Any) -> Any:
            super().failed(failure)
            if failure.request.url.endswith("/gone"):
                yield from (self.prepared(site.url(f"/private/{n}")) for n in range(3))

    result = await crawl(site.url("/private"), site.url("/gone"), spider=Again)
    assert list(result.failed) == [site.url("/gone")]
    assert result.denied == []


@ensureDeferred
async def test_a_crawl_that_was_stopped_or_asked_for_nothing_says_nothing(web: Web) -> None:
    class Stops(CrawlSpider):
        def failed(self, failure: Any) -> Any:
            raise CloseSpider("enough")

    assert (await crawl(web.robots(NOTHING).url("/"), spider=Stops)).denied == []
    assert (await crawl()).denied == []
    assert (await crawl(web.robots(NOTHING).url("/"), settings={"REP_DRY_RUN": True})).denied == []
