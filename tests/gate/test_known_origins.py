"""Requests to origins that are known already, as most requests of a crawl are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from random import Random
from typing import Any

import pytest
from crawling import CrawlSpider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Response
from web import Web

from scrapy_rep.protocol.origin import Origin, parsed_origin

PARTS = [
    "http",
    "HTTPS",
    "verylongscheme",
    "data",
    ":",
    "//",
    "/",
    "h.example",
    ":80",
    "@",
    "?",
    "#",
    "[::1]",
    "\\",
    " ",
]
CHARACTERS = [
    *map(chr, range(0x20, 0x7F)),
    "\t",
    "\n",
    "\0",
    "\x7f",
    "\x85",
    "\xa0",
    "é",
    "\u0130",
    "\u2028",
    "\uff0f",
    "\ud800",
]


def test_the_fast_way_to_find_an_origin_agrees_with_the_parser() -> None:
    chance = Random(1)
    for alphabet in (PARTS, CHARACTERS, PARTS + CHARACTERS):
        for _ in range(5_000):
            url = "".join(chance.choices(alphabet, k=chance.randrange(12)))
            assert Origin.of(url) == parsed_origin(url), url


@pytest.mark.parametrize(
    "url", ["verylongscheme://h.example/a", "https://h.example?a=/b", "https://h.example#/b", "a:b://h.example/c"]
)
def test_unusual_urls_have_the_same_origin_as_in_the_parser(url: str) -> None:
    assert Origin.of(url) == parsed_origin(url)


class OneThenTheOthers(CrawlSpider):
    """Requests the first URL, and the others after its response."""

    async def start(self) -> AsyncIterator[Request]:
        yield self.prepared(self.requests.pop(0))

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        super().parse(response)
        while self.requests:
            yield self.prepared(self.requests.pop())


@ensureDeferred
async def test_requests_that_need_not_wait_are_counted(web: Web) -> None:
    site = web.robots("user-agent: *\ndisallow: /private\n")
    urls = [site.url(path) for path in ("/", "/a", "/private", "/private/b")]
    result = await crawl(*urls, spider=OneThenTheOthers)
    assert set(result.pages) == set(urls[:2])
    assert set(result.refused) == set(urls[2:])
    assert result.stats["rep/waited"] == 1
    assert result.stats["rep/cache/hit"] == 3
