"""Verdicts on requests that are not scheduled yet: `RepMiddleware.verdict`. And requests that are repeated."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from crawling import ADDON, BUILTIN, CrawlSpider, Time, close_spider, crawl, forbidden, is_fetching, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from web import RULES, Web, answer

from scrapy_rep import AccessResult, RepMiddleware, Verdict
from scrapy_rep.scrapy_internals.compat import sleep

FOR_TWO = f"{RULES}\nuser-agent: otherbot\ndisallow: /\n"


def asking(*requests: str | Request) -> type[CrawlSpider]:
    """A spider that asks for the verdicts on these requests, and fetches nothing."""

    class Asks(CrawlSpider):
        async def start(self) -> Any:
            middleware = RepMiddleware.of(self.crawler)
            self.crawl.ends = [await middleware.verdict(request) for request in requests]
            return
            yield

    return Asks


async def verdicts_on(*requests: str | Request, **settings: Any) -> list[Verdict]:
    result = await crawl(spider=asking(*requests), settings=settings)
    assert result.tracebacks == []
    return result.ends


@ensureDeferred
async def test_a_spider_may_ask_for_verdicts(web: Web) -> None:
    site = web.robots(FOR_TWO)
    page, private = await verdicts_on(site.url("/"), site.url("/private/a"))
    assert (page.allowed, private.allowed) == (True, False)
    assert private.rule is not None
    assert (private.rule.line, str(private.rule), private.robots_url) == (2, "Disallow: /private", site.robots_url)
    assert site.targets == ["/robots.txt"], "one request for robots.txt, and no page"


@ensureDeferred
async def test_the_verdict_is_for_the_user_agent_of_the_request(web: Web) -> None:
    site = web.robots(FOR_TWO)
    own_name = Request(site.url("/"), meta={"robotstxt_user_agent": "OtherBot"})
    own_header = Request(site.url("/"), headers={"User-Agent": "OtherBot/1.0"})
    assert [verdict.allowed for verdict in await verdicts_on(own_name, own_header)] == [False, False]


@ensureDeferred
async def test_the_verdict_while_robots_txt_is_unreachable(web: Web) -> None:
    (verdict,) = await verdicts_on(web.robots(answer(status=503)).url("/"))
    assert (verdict.allowed, verdict.access) == (False, AccessResult.UNREACHABLE)


@ensureDeferred
async def test_a_question_after_an_outage_triggers_a_fetch(web: Web) -> None:
    site, time = web.robots([answer(status=503), answer(RULES)]), Time()

    class Asks(CrawlSpider):
        async def start(self) -> Any:
            middleware = RepMiddleware.of(self.crawler)
            for seconds in (0, 6, 0):  # the second question is refused, and triggers a fetch for the third
                time.now += seconds
                self.crawl.ends.append((await middleware.verdict(site.url("/"))).allowed)
                await sleep(0.2)
            return
            yield

    result = await crawl(spider=Asks, settings={**with_clock(time), "REP_UNREACHABLE_WAIT": 0, "REP_FETCH_RETRIES": 0})
    assert result.ends == [False, False, True]


@ensureDeferred
async def test_dry_run_changes_no_verdict(web: Web) -> None:
    (verdict,) = await verdicts_on(web.robots(FOR_TWO).url("/private"), REP_DRY_RUN=True)
    assert not verdict.allowed


@ensureDeferred
async def test_a_verdict_that_is_not_known_when_the_crawl_closes(web: Web) -> None:
    site, start = web.robots(answer(FOR_TWO, kind="hold")), web.site()

    class Asks(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> None:
            middleware = RepMiddleware.of(self.crawler)
            asked = asyncio.ensure_future(middleware.verdict(site.url("/private")))
            await asyncio.sleep(0.1)
            close_spider(self, "test")
            await asyncio.sleep(0.1)
            web.release(site)
            self.crawl.ends.append((middleware, (await asked).allowed))

    result = await crawl(start.url("/"), spider=Asks)
    ((middleware, is_allowed),) = result.ends
    assert is_allowed is False, "the crawl waits for its callbacks"
    with pytest.raises(IgnoreRequest, match="closed"):
        await deferred_from_coro(middleware.verdict(web.site().url("/")))


@ensureDeferred
async def test_a_verdict_that_is_not_known_within_the_timeout(web: Web) -> None:
    site = web.robots(answer(FOR_TWO, kind="hold"))
    ends: list[Any] = []

    class Asks(CrawlSpider):
        async def start(self) -> Any:
            middleware = RepMiddleware.of(self.crawler)
            patient = asyncio.ensure_future(middleware.verdict(site.url("/private")))
            with pytest.raises(TimeoutError, match=r"has not answered within 0\.2 seconds"):
                await middleware.verdict(site.url("/"), timeout=0.2)
            web.release(site)
            ends.extend([await patient, await middleware.verdict(site.url("/"), timeout=0.2)])
            return
            yield

    await crawl(spider=Asks)
    assert [verdict.allowed for verdict in ends] == [False, True]
    assert site.targets == ["/robots.txt"], "the fetch goes on after the timeout"


@ensureDeferred
async def test_after_the_timeout_of_the_only_verdict_no_other_round_follows(web: Web) -> None:
    site, time = web.robots(answer(status=503, kind="hold")), Time()

    class Asks(CrawlSpider):
        async def start(self) -> Any:
            with pytest.raises(TimeoutError):
                await RepMiddleware.of(self.crawler).verdict(site.url("/"), timeout=0.1)
            web.release(site)
            while is_fetching(self.crawler):
                await sleep(0.01)
            return
            yield

    await crawl(spider=Asks, robots=with_clock(time), settings={"REP_UNREACHABLE_WAIT": 30})
    assert site.targets == ["/robots.txt"]
    assert time.slept == []


@pytest.mark.parametrize(
    ("robots", "cure"),
    [
        ({**ADDON, "ROBOTSTXT_OBEY": False}, "because ROBOTSTXT_OBEY is False; set it to True"),
        (BUILTIN, "set ADDONS to {'scrapy_rep.Addon': 500}"),
    ],
    ids=["not-obeyed", "not-there"],
)
@ensureDeferred
async def test_without_the_middleware_the_error_names_the_cure(robots: dict[str, Any], cure: str) -> None:
    ends: list[str] = []

    class Asks(CrawlSpider):
        async def start(self) -> Any:
            with pytest.raises(ValueError, match="scrapy-rep is off") as error:
                RepMiddleware.of(self.crawler)
            ends.append(str(error.value))
            return
            yield

    await crawl(spider=Asks, robots=robots)
    assert [end[-len(cure) :] for end in ends] == [cure]


# Requests that are repeated.


@pytest.mark.parametrize("dont_filter", [False, True])
@ensureDeferred
async def test_a_repeated_request_is_refused_once(web: Web, dont_filter: bool) -> None:
    site = web.robots(FOR_TWO)

    class Repeats(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> Any:
            for _number in range(5):
                yield self.prepared(Request(site.url("/private"), dont_filter=dont_filter))

    start = [Request(site.url("/private")), Request(site.url("/start"))]
    result: Any = await crawl(*start, spider=Repeats)
    refusals = 1 + 5 * dont_filter
    assert result.stats["rep/dropped/rule"] == result.stats["robotstxt/forbidden"] == refusals
    why = forbidden(f"{site.robots_url}, line 2, group of '*': Disallow: /private")
    assert len([m for m in result.messages(logging.DEBUG) if m.startswith(why)]) == refusals
