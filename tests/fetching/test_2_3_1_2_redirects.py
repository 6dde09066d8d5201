"""Each origin follows its redirects itself and shares no answer with other origins (RFC 9309 2.3.1.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, Time, crawl, in_turn, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from web import RULES, Site, Web, answer, redirect

from scrapy_rep.signals import robots_parsed

DAY = 24 * 3600.0


async def one_by_one(*urls: str, robots: dict[str, Any] | None = None, **settings: Any) -> Crawl:
    """Crawl these URLs one after the other."""
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

    return await crawl(queue.pop(0), spider=OneByOne, robots=robots, settings=settings)


def counts(*sites: Site) -> list[int]:
    return [len(site.robots_requests) for site in sites]


@ensureDeferred
async def test_each_origin_follows_its_redirects_itself(web: Web) -> None:
    target = web.robots(RULES)
    sites = [*(web.robots(redirect(target.robots_url)) for _ in range(3)), target]
    result = await crawl(*(site.url(path) for site in sites for path in ("/", "/private")))
    assert (len(result.pages), len(result.refused)) == (4, 4)
    assert counts(*sites) == [1, 1, 1, 4]


@ensureDeferred
async def test_each_origin_gets_a_one_time_token_of_its_own(web: Web) -> None:
    shared = web.site(
        {
            "/robots.txt": [redirect(f"/gate?token={n}", 302, {"Set-Cookie": f"token={n}"}) for n in (1, 2)],
            **{f"/gate?token={n}": [answer(RULES), answer(status=403)] for n in (1, 2)},
        }
    )
    sources = [web.robots(redirect(shared.robots_url)) for _ in range(2)]
    result = await one_by_one(*(source.url("/private") for source in sources))
    assert len(result.refused) == 2
    assert result.pages == {}


@ensureDeferred
async def test_rfc9110_15_1_a_302_without_caching_headers_is_requested_again(web: Web) -> None:
    nodes = [web.robots([answer(RULES), answer(status=404)]), web.robots(RULES)]
    shared = web.robots([redirect(node.robots_url, 302) for node in nodes])
    sources = [web.robots(redirect(shared.robots_url)) for _ in range(2)]
    result = await one_by_one(*(source.url("/private") for source in sources))
    assert len(result.refused) == 2
    assert counts(*nodes) == [1, 1]


@ensureDeferred
async def test_each_robots_txt_is_requested_with_the_user_agent_of_its_own_request(web: Web) -> None:
    target = web.robots(answer(RULES, headers={"Vary": "User-Agent"}))
    sources = [web.robots(redirect(target.robots_url)) for _ in range(2)]
    agents = ["ABot/1.0", "BBot/1.0"]
    pairs = zip(sources, agents, strict=True)
    await crawl(*(Request(source.url("/"), headers={"User-Agent": agent}) for source, agent in pairs))
    assert sorted(request["headers"]["User-Agent"] for request in target.robots_requests) == agents


@ensureDeferred
async def test_the_outage_of_another_origin_does_not_shorten_the_wait(web: Web) -> None:
    target, time = web.robots([answer(status=503)] * 4 + [answer(RULES)]), Time()
    sources = [web.robots(redirect(target.robots_url)) for _ in range(2)]
    settings = {"REP_UNREACHABLE_WAIT": 12}
    # The first origin is asked after 0, 5 and 12 seconds. Then its wait ends, and the second origin's wait begins.
    result = await one_by_one(*(source.url("/") for source in sources), robots=with_clock(time), **settings)
    assert [type(error).__name__ for error in result.refused.values()] == ["RobotsUnreachable"]
    assert list(result.pages) == [sources[1].url("/")]


@ensureDeferred
async def test_robots_parsed_names_a_request_of_the_same_origin(web: Web) -> None:
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


def in_a_ring(web: Web, length: int) -> list[Site]:
    """Origins in a ring: each redirects to the next, and the last to the first."""
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
async def test_a_ring_costs_a_single_origin_no_more_than_a_chain(web: Web) -> None:
    a, b = in_a_ring(web, 2)
    result = await crawl(a.url("/"))
    assert list(result.pages) == [a.url("/")]
    assert counts(a, b) == [3, 3]


@ensureDeferred
async def test_the_sixth_redirect_in_a_row_is_not_followed(web: Web) -> None:
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
async def test_the_strictest_caching_headers_of_all_redirects_count(web: Web) -> None:
    target, time = web.robots(answer(RULES, headers={"ETag": '"1"'})), Time()
    source = web.robots(redirect(target.robots_url, headers={"Cache-Control": "max-age=7200, must-revalidate"}))
    spider = in_turn(time, 1.7 * 3600, 0.4 * 3600)
    await crawl(source.url("/"), spider=spider, robots=with_clock(time))
    assert counts(source, target) == [2, 2]


@ensureDeferred
async def test_a_stored_answer_is_revalidated_at_the_url_that_it_came_from(web: Web) -> None:
    target, time = web.robots([answer(RULES, headers={"ETag": '"1"'}), answer(status=304)]), Time()
    source = web.robots(redirect(target.robots_url))
    result = await crawl(source.url("/private"), spider=in_turn(time, DAY), robots=with_clock(time))
    assert result.ends == ["ForbiddenByRobots"] * 2
    assert [r["headers"].get("If-None-Match") for r in target.robots_requests] == [None, '"1"']


@ensureDeferred
async def test_a_cookie_of_a_redirect_is_sent_in_the_same_chain_only(web: Web) -> None:
    to_itself = redirect("/robots.txt", 302, {"Set-Cookie": "seen=1"})
    target = web.robots([to_itself, answer(RULES), to_itself, answer(RULES)])
    sources = [web.robots(redirect(target.robots_url)) for _ in range(2)]
    result = await one_by_one(*(source.url("/private") for source in sources))
    assert len(result.refused) == 2
    assert [r["headers"].get("Cookie") for r in target.robots_requests] == [None, "seen=1"] * 2


@ensureDeferred
async def test_a_url_that_redirects_to_itself_twice_is_followed(web: Web) -> None:
    site = web.robots([redirect("/robots.txt"), redirect("/robots.txt"), answer(RULES)])
    result = await crawl(site.url("/private"))
    assert len(result.refused) == 1
    assert len(site.robots_requests) == 3
