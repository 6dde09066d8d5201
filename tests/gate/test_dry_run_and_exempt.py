"""Forbidden pages that are fetched: all of them in a dry run (REP_DRY_RUN), and those of exempt sites (REP_EXEMPT)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from crawling import CrawlSpider, Time, crawl, forbidden, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from web import RULES, Web, answer

from scrapy_rep import RepMiddleware

NOTHING = "user-agent: *\ndisallow: /\n"


# REP_DRY_RUN.


@ensureDeferred
async def test_a_dry_run_counts_what_a_crawl_would_refuse_and_refuses_nothing(web: Web) -> None:
    site, down = web.robots(RULES), web.robots(answer(status=503))
    closed = web.robots(answer(status=403))
    urls = [site.url("/"), site.url("/private/a"), site.url("/private/b"), down.url("/"), closed.url("/")]
    policy = {"REP_STATUS_POLICY": "cautious"}
    real = await crawl(*urls, settings=policy)
    dry = await crawl(*urls, settings={**policy, "REP_DRY_RUN": True})
    assert len(real.refused) == 4
    assert (len(dry.pages), dry.refused, dry.failed) == (5, {}, {})
    for kind, count in {"rule": 2, "unreachable": 1, "restricted": 1}.items():
        assert dry.stats[f"rep/dry_run/{kind}"] == real.stats[f"rep/dropped/{kind}"] == count
    assert dry.stats["rep/dry_run/forbidden"] == real.stats["robotstxt/forbidden"] == 4
    assert not [key for key in dry.stats if key.startswith(("rep/dropped", "robotstxt/forbidden"))]
    assert not [key for key in real.stats if key.startswith("rep/dry_run")]


@ensureDeferred
async def test_a_dry_run_logs_what_would_be_refused_and_why(web: Web) -> None:
    site = web.robots(RULES)
    result = await crawl(site.url("/private"), settings={"REP_DRY_RUN": "1"})
    why = forbidden(f"{site.robots_url}, line 2, group of '*': Disallow: /private")
    assert f"Would be refused: {why}: <GET {site.url('/private')}>" in result.messages(logging.INFO, "scrapy_rep")
    (warning,) = result.messages()
    assert warning.startswith("Dry run (REP_DRY_RUN): requests that robots.txt forbids are sent")
    summary = result.messages(logging.INFO, "scrapy_rep")[-2]
    assert summary == "Requests that would be refused (REP_DRY_RUN): 1 (1 by rules)"
    assert result.stats["finish_reason"] == "finished", "nothing was denied"


@ensureDeferred
async def test_a_dry_run_does_not_log_that_an_outage_refuses_requests(web: Web) -> None:
    result = await crawl(web.robots(answer(status=503)).url("/"), settings={"REP_DRY_RUN": True})
    _on, outage, summary = result.messages()
    assert "Requests to this site would be refused without REP_DRY_RUN (RFC 9309 2.3.1.4)" in outage
    assert "1 request would have been refused" in summary


# REP_EXEMPT.


@ensureDeferred
async def test_robots_txt_of_exempt_origins_is_not_requested(web: Web) -> None:
    mine, other = web.robots(NOTHING), web.robots(NOTHING)
    result = await crawl(mine.url("/a"), mine.url("/b"), other.url("/"), settings={"REP_EXEMPT": [mine.origin]})
    assert sorted(result.pages) == [mine.url("/a"), mine.url("/b")]
    assert list(result.refused) == [other.url("/")], "the same host at another port is another origin"
    assert mine.robots_requests == []
    assert result.stats["rep/exempt/setting"] == 2
    (said,) = (m for m in result.messages(logging.INFO, "scrapy_rep") if m.startswith("REP_EXEMPT"))
    assert said == f"REP_EXEMPT: robots.txt is neither fetched nor obeyed for {mine.origin}"


@pytest.mark.parametrize(
    "exempt",
    [
        ["127.0.0.1"],
        "127.0.0.1, example.com",
        '["127.0.0.1", "example.com"]',
        ["127.1"],
        ["HTTP://127.0.0.1:{port}/"],
    ],
)
@ensureDeferred
async def test_exempt_hosts_and_spellings(web: Web, exempt: Any) -> None:
    site = web.robots(NOTHING)
    exempt = [text.format(port=site.port) for text in exempt] if isinstance(exempt, list) else exempt
    result = await crawl(site.url("/"), settings={"REP_EXEMPT": exempt})
    assert list(result.pages) == [site.url("/")]


@ensureDeferred
async def test_exempt_subdomains(web: Web) -> None:
    proxy = web.site({"*": answer(NOTHING)})
    hosts = ["a.example.com", "b.a.example.com", "example.com", "anexample.com", "a.example.org"]
    requests = [Request(f"http://{host}/page", meta={"proxy": proxy.origin}) for host in hosts]
    result = await crawl(*requests, settings={"REP_EXEMPT": ["*.Example.com"]})
    assert sorted(result.pages) == ["http://a.example.com/page", "http://b.a.example.com/page"]
    assert result.stats["rep/exempt/setting"] == 2


@ensureDeferred
async def test_an_exempt_path(web: Web) -> None:
    site, other = web.robots(NOTHING), web.robots(NOTHING)
    exempt = ["/files/a", "/files/a?x=1", "/files/%61b", "/data"]
    obeyed = ["/", "/file", "/files/", "/Files/a", "/files/a/../../private", "/files/a/%2e%2e/%2e%2e/private", "/other"]
    requests = [Request(site.url(path), meta={"verbatim_url": True}, dont_filter=True) for path in [*exempt, *obeyed]]
    settings = {"REP_EXEMPT": [f"{site.origin}/files/a", f"{site.origin}/data"]}
    result = await crawl(*requests, other.url("/files/a"), settings=settings)
    assert sorted(result.pages) == sorted(map(site.url, exempt))
    assert set(result.refused) == {request.url for request in requests[len(exempt) :]} | {other.url("/files/a")}
    assert result.stats["rep/exempt/setting"] == 4
    (said,) = (m for m in result.messages(logging.INFO, "scrapy_rep") if m.startswith("REP_EXEMPT"))
    assert said.endswith(f" for {site.origin}/data, {site.origin}/files/a")


@ensureDeferred
async def test_robots_txt_is_not_requested_for_an_exempt_path_alone(web: Web) -> None:
    site = web.robots(NOTHING)
    result = await crawl(site.url("/files/a"), settings={"REP_EXEMPT": [site.url("/files/")]})
    assert list(result.pages) == [site.url("/files/a")]
    assert site.robots_requests == []


@ensureDeferred
async def test_an_exempt_site_with_a_permanent_500_is_crawled(web: Web) -> None:
    site, time = web.robots(answer(status=500)), Time()
    settings = {"REP_EXEMPT": [site.origin], "REP_UNREACHABLE_WAIT": 30}
    result = await crawl(site.url("/"), robots=with_clock(time), settings=settings)
    assert list(result.pages) == [site.url("/")]
    assert time.slept == []


@ensureDeferred
async def test_the_verdict_on_a_request_to_which_no_robots_txt_applies(web: Web) -> None:
    site, exempt = web.robots(NOTHING), "exempt.example"
    seen: list[Any] = []

    class Asks(CrawlSpider):
        async def start(self) -> Any:
            middleware = self.crawler.get_downloader_middleware(RepMiddleware)
            assert middleware is not None
            mine = Request(site.url("/"), meta={"dont_obey_robotstxt": True})
            for request in (f"https://{exempt}/", "data:,x", site.robots_url, mine):
                verdict = await middleware.verdict(request)
                seen.append((verdict.allowed, verdict.robots_url))
            return
            yield

    await crawl(spider=Asks, settings={"REP_EXEMPT": [exempt]})
    assert seen == [(True, None)] * 4
    assert site.requests == []
