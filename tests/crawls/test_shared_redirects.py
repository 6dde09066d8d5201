"""A redirect to another origin's robots.txt answers for that origin too (RFC 9309 2.3.1.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, Time, crawl, in_turn, is_fetching, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from web import RULES, Site, Web, answer, redirect

from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import request_forbidden, robots_parsed

DAY = 24 * 3600.0


async def one_by_one(*urls: str, **settings: Any) -> Crawl:
    """One request after the other's end."""
    queue = list(urls)

    class OneByOne(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> AsyncIterator[Request]:
            super().parse(response)
            if queue:
                yield self.prepared(queue.pop(0))

        async def failed(self, failure: Any) -> AsyncIterator[Request]:
            super().failed(failure)
            if queue:
                yield self.prepared(queue.pop(0))

    return await crawl(queue.pop(0), spider=OneByOne, settings=settings)


def counts(*sites: Site) -> list[int]:
    return [len(site.robots_requests) for site in sites]


@pytest.mark.parametrize("first", [0, 1], ids=["from-the-redirect", "from-where-it-leads"])
@ensureDeferred
async def test_one_request_each_one_after_the_other(web: Web, first: int) -> None:
    target = web.robots(RULES)
    sites = [web.robots(redirect(target.robots_url)), target]
    result = await one_by_one(sites[first].url("/private"), sites[1 - first].url("/private"))
    assert len(result.refused) == 2
    assert counts(*sites) == [1, 1]
    assert result.stats["rep/redirects/shared"] == 1 if first else "rep/redirects/shared" not in result.stats


@ensureDeferred
async def test_one_request_each_all_at_once(web: Web) -> None:
    target = web.robots(answer(RULES, delay=0.2))
    sites = [*(web.robots(redirect(target.robots_url)) for _ in range(5)), target]
    result = await crawl(*(site.url(path) for site in sites for path in ("/", "/private")))
    assert (len(result.pages), len(result.refused)) == (6, 6)
    assert counts(*sites) == [1] * 6


@ensureDeferred
async def test_each_origin_is_announced_for_a_request_of_its_own(web: Web) -> None:
    target = web.robots(RULES)
    source = web.robots(redirect(target.robots_url))
    seen: list[str] = []

    def parsed(robotparser: Any, request: Request) -> None:
        seen.append(request.url)

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(parsed, signal=robots_parsed)

    await crawl(source.url("/a"), source.url("/b"), prepare=prepare)
    assert seen in ([source.url("/a")], [source.url("/b")])
    await crawl(source.url("/a"), target.url("/b"), prepare=prepare)
    assert sorted(seen[1:]) == sorted([source.url("/a"), target.url("/b")])


@ensureDeferred
async def test_a_redirect_to_another_file_answers_for_nobody_else(web: Web) -> None:
    target = web.site({"/other.txt": answer(RULES), "/robots.txt": answer("User-agent: *\nDisallow: /a")})
    source = web.robots(redirect(target.url("/other.txt")))
    result = await one_by_one(source.url("/private"), target.url("/private"), target.url("/a"))
    assert set(result.refused) == {source.url("/private"), target.url("/a")}
    assert counts(source, target) == [1, 1]


@ensureDeferred
async def test_an_outage_is_shared_too(web: Web) -> None:
    target = web.robots(answer(status=503))
    source = web.robots(redirect(target.robots_url))
    result = await one_by_one(source.url("/"), target.url("/"))
    assert len(result.refused) == 2
    assert counts(source, target) == [1, 1]
    await one_by_one(target.url("/"), source.url("/"))
    assert counts(source, target) == [2, 2]


def in_a_ring(web: Web, length: int) -> list[Site]:
    """Origins each of which redirects to the next, the last one to the first."""
    sites = [web.site() for _ in range(length)]
    for site, following in zip(sites, [*sites[1:], sites[0]], strict=True):
        site.change("/robots.txt", redirect(following.robots_url))
    return sites


@pytest.mark.parametrize("length", [2, 3, 6, 7])
@ensureDeferred
async def test_origins_that_redirect_to_each_other_do_not_wait_for_each_other(web: Web, length: int) -> None:
    sites = in_a_ring(web, length)
    result = await crawl(*(site.url(path) for site in sites for path in ("/a", "/b")))
    assert len(result.pages) == 2 * length, "2.3.1.2: more than five redirects in a row are unavailable"
    assert sum(counts(*sites)) <= 6 * length


@ensureDeferred
async def test_a_ring_costs_one_alone_no_more_than_any_chain(web: Web) -> None:
    a, b = in_a_ring(web, 2)
    result = await crawl(a.url("/"))
    assert list(result.pages) == [a.url("/")]
    assert counts(a, b) == [3, 3]


@ensureDeferred
async def test_the_sixth_in_a_row_is_not_followed(web: Web) -> None:
    last = web.robots(RULES)
    sites = [last]
    for _ in range(6):
        sites.insert(0, web.robots(redirect(sites[0].robots_url)))
    result = await one_by_one(*(site.url("/private") for site in sites))
    assert list(result.pages) == [sites[0].url("/private")]
    assert len(result.refused) == 6
    first = await crawl(web.robots(redirect(sites[0].robots_url)).url("/private"))
    assert len(first.pages) == 1


@ensureDeferred
async def test_the_redirects_of_what_is_shared_count(web: Web) -> None:
    """Five in a row are followed, however many of them were followed before."""
    far = web.site({"/robots.txt": redirect("/1"), **{f"/{n}": redirect(f"/{n + 1}") for n in range(1, 5)}})
    source = web.robots(redirect(far.robots_url))
    # Six redirects from `source`, five from `far`, whose fifth leads to nothing: a 404, no page's "page".
    result = await one_by_one(far.url("/"), source.url("/"))
    assert len(result.pages) == 2
    rules = web.site(
        {"/robots.txt": redirect("/1"), **{f"/{n}": redirect(f"/{n + 1}") for n in range(1, 5)}, "/5": answer(RULES)}
    )
    source = web.robots(redirect(rules.robots_url))
    result = await one_by_one(rules.url("/private"), source.url("/private"))
    assert set(result.refused) == {rules.url("/private")}, "the sixth in a row is unavailable"


@ensureDeferred
async def test_the_strictest_terms_of_all_hops_hold(web: Web) -> None:
    target, time = web.robots(answer(RULES, headers={"ETag": '"1"'})), Time()
    source = web.robots(redirect(target.robots_url, headers={"Cache-Control": "max-age=7200, must-revalidate"}))
    spider = in_turn(time, 1.7 * 3600, 0.4 * 3600)
    await crawl(source.url("/"), spider=spider, robots=with_clock(time))
    assert counts(source, target) == [2, 1], "the target's own answer holds for a day"


@ensureDeferred
async def test_what_was_shared_is_asked_about_where_it_came_from(web: Web) -> None:
    target, time = web.robots([answer(RULES, headers={"ETag": '"1"'}), answer(status=304)]), Time()
    source = web.robots(redirect(target.robots_url))
    result = await crawl(source.url("/private"), spider=in_turn(time, DAY), robots=with_clock(time))
    assert result.ends == ["ForbiddenByRobots"] * 2
    assert [r["headers"].get("If-None-Match") for r in target.robots_requests] == [None, '"1"']


# What is not shared, or no longer.


@ensureDeferred
async def test_a_redirect_that_sets_a_cookie_is_for_who_got_the_cookie(web: Web) -> None:
    to_itself = redirect("/robots.txt", 302, {"Set-Cookie": "seen=1"})
    target = web.robots([to_itself, answer(RULES), to_itself, answer(RULES)])
    sources = [web.robots(redirect(target.robots_url)) for _ in range(2)]
    result = await one_by_one(*(source.url("/private") for source in sources))
    assert len(result.refused) == 2
    assert [r["headers"].get("Cookie") for r in target.robots_requests] == [None, "seen=1"] * 2


@ensureDeferred
async def test_a_chain_uses_no_answer_twice(web: Web) -> None:
    """Else a redirect to itself that counts would run in a circle, and everything would be allowed."""
    site = web.robots([redirect("/robots.txt"), redirect("/robots.txt"), answer(RULES)])
    result = await crawl(site.url("/private"))
    assert len(result.refused) == 1
    assert len(site.robots_requests) == 3


def at_times(time: Time, *requests: tuple[float, str]) -> type[CrawlSpider]:
    """A spider that asks for each of these pages so many seconds after the one before."""
    left = list(requests)

    class AtTimes(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            yield self.next_request()

        async def parse(self, response: Response, **_: Any) -> AsyncIterator[Request]:
            super().parse(response)
            async for request in self.next_requests():
                yield request

        async def failed(self, failure: Any) -> AsyncIterator[Request]:
            super().failed(failure)
            async for request in self.next_requests():
                yield request

        async def next_requests(self) -> AsyncIterator[Request]:
            while is_fetching(self.crawler):
                await sleep(0.005)
            if left:
                yield self.next_request()

        def next_request(self) -> Request:
            seconds, url = left.pop(0)
            time.now += seconds
            return self.prepared(url)

    return AtTimes


@ensureDeferred
async def test_after_a_failure_no_older_answer_is_used(web: Web) -> None:
    target, time = web.robots(RULES), Time()
    source = web.robots([answer(status=503), redirect(target.robots_url)])
    spider = at_times(time, (0.0, target.url("/private")), (10.0, source.url("/private")))
    result = await crawl(spider=spider, robots=with_clock(time), settings={"REP_UNREACHABLE_WAIT": 30})
    assert len(result.refused) == 2
    assert counts(source, target) == [2, 2]


@ensureDeferred
async def test_a_failure_that_is_shared_counts_from_when_it_came(web: Web) -> None:
    target, time = web.robots(answer(status=503, headers={"Retry-After": "100"})), Time()
    source = web.robots(redirect(target.robots_url))
    steps = [(0.0, target.url("/")), (40.0, source.url("/1")), (59.0, source.url("/2")), (2.0, source.url("/3"))]
    asked: list[list[int]] = []
    spider = at_times(time, *steps)
    prepare = lambda crawler: crawler.signals.connect(  # noqa: E731
        lambda **_: asked.append(counts(source, target)), signal=request_forbidden, weak=False
    )
    result = await crawl(spider=spider, robots=with_clock(time), prepare=prepare)
    assert len(result.refused) == 4
    assert asked == [[0, 1], [1, 1], [1, 1], [1, 1]]
    assert counts(source, target) == [1, 2], "asked again in the background, 100 seconds after the failure"


@ensureDeferred
async def test_a_target_that_fails_is_not_asked_for_each_origin(web: Web) -> None:
    target = web.robots(answer(status=503, delay=0.1))
    sources = [web.robots(redirect(target.robots_url)) for _ in range(20)]
    settings = {"REP_FETCH_RETRIES": 1, "CONCURRENT_REQUESTS": 4}
    result = await crawl(*(source.url("/") for source in sources), settings=settings)
    assert len(result.refused) == 20
    assert len(target.robots_requests) == 2, "once, and once more"


@ensureDeferred
async def test_a_target_in_an_outage_is_asked_once_for_all_who_wait(web: Web) -> None:
    target, time = web.robots([answer(status=503)] * 2 + [answer(RULES)]), Time()
    sources = [web.robots(redirect(target.robots_url)) for _ in range(10)]
    settings = {"REP_UNREACHABLE_WAIT": 30}
    result = await crawl(*(source.url("/") for source in sources), robots=with_clock(time), settings=settings)
    assert len(result.pages) == 10
    assert len(target.robots_requests) <= 4
