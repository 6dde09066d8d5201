"""How a user adds a directive or a status policy without a change to the package."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from crawling import CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.http import Response
from web import Route, Web, answer

from scrapy_rep import RobotsTxt
from scrapy_rep.signals import robots_parsed

# A directive.


def noindex_of(robots: RobotsTxt) -> RobotsTxt:
    """Return the same groups, whose rules are their Noindex lines."""
    # The empty rule separates a group without Noindex from the next group.
    lines = [[*(f"User-agent: {token}" for token in group.product_tokens), "Disallow:"] for group in robots.groups]
    for record in robots.records:
        if record.key == "noindex" and record.group is not None:
            lines[record.group].append(f"Disallow: {record.value}")
    return RobotsTxt.parse("\n".join(chain.from_iterable(lines)).encode())


@pytest.mark.parametrize(
    ("path", "agent", "indexed"),
    [
        ("/drafts/a", "anybot", False),
        ("/private/a", "anybot", True),
        ("/drafts/a", "ownbot", True),
        ("/b", "one", False),
        ("/b", "two", False),
    ],
)
def test_a_new_directive_has_groups_and_patterns_like_any_other(path: str, agent: str, indexed: bool) -> None:
    text = b"""
        noindex: /
        user-agent: *
        disallow: /private
        NoIndex: /draf*s/ # not yet

        user-agent: ownbot
        disallow: /x

        user-agent: one
        noindex: /b
        user-agent: two
        allow: /
    """
    assert noindex_of(RobotsTxt.parse(text)).allows(path, agent) is indexed


class Indexes(CrawlSpider):
    """Yields an item for each page, except for pages that a Noindex line names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.noindex: dict[str, RobotsTxt] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Indexes:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.parsed, signal=robots_parsed)
        return spider

    def parsed(self, robotparser: Any, request: Request) -> None:
        self.noindex[request.url.split("/")[2]] = noindex_of(robotparser.robots)

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        yield {"url": response.url}


class ObeysNoindex:
    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ObeysNoindex:
        return cls(crawler)

    def process_item(self, item: dict[str, str]) -> dict[str, str]:
        spider = self.crawler.spider
        assert isinstance(spider, Indexes)
        if not spider.noindex[item["url"].split("/")[2]].allows(item["url"], "Scrapy"):
            raise DropItem("Noindex")
        return item


@ensureDeferred
async def test_a_directive_in_a_crawl(web: Web) -> None:
    site = web.robots("user-agent: *\nnoindex: /drafts\ndisallow: /private\n")
    urls = [site.url(path) for path in ("/a", "/drafts/b", "/private/c")]
    result = await crawl(*urls, spider=Indexes, settings={"ITEM_PIPELINES": {ObeysNoindex: 100}})
    assert sorted(result.pages) == urls[:2]
    assert list(result.refused) == urls[2:]
    assert (result.stats["item_scraped_count"], result.stats["item_dropped_count"]) == (1, 1)


# A status policy.


@pytest.mark.parametrize(
    ("status", "access", "fetched"),
    [(503, "unavailable", True), (403, "restricted", False), (429, "unreachable", False), (404, "unavailable", True)],
)
@ensureDeferred
async def test_a_new_policy(web: Web, status: int, access: str, fetched: bool) -> None:
    # The CDN of this host answers 503 if robots.txt is missing, and 403 if nothing is allowed.
    policy = {503: "unavailable", 403: "restricted", range(420, 430): "unreachable"}
    site = web.robots(answer(status=status))
    result = await crawl(site.url("/"), settings={"REP_STATUS_POLICY": policy})
    assert bool(result.pages) is fetched
    assert result.stats[f"rep/access/{access}"] == 1


@pytest.mark.parametrize(
    ("route", "access"),
    [
        (answer(status=403), "restricted"),
        (answer("<!DOCTYPE html><p>Welcome</p>"), "restricted"),
        (answer(status=401), "unavailable"),
        (answer(status=404), "unavailable"),
    ],
    ids=["base", "added", "changed", "rfc9309"],
)
@ensureDeferred
async def test_a_policy_with_a_base(web: Web, route: Route, access: str) -> None:
    policy = {"base": "cautious", "markup": "restricted", 401: "unavailable"}
    site = web.robots(route)
    result = await crawl(site.url("/"), settings={"REP_STATUS_POLICY": policy})
    assert bool(result.pages) is (access == "unavailable")
    assert result.stats[f"rep/access/{access}"] == 1
