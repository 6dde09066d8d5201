"""The body of an answer that is not a success is dropped at once, even if the next answer takes long."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

from crawling import CrawlSpider, SlotByOrigin, close_spider, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.utils.defer import deferred_from_coro
from web import Web, answer

from scrapy_rep.scrapy_internals.compat import sleep

BODY = "x" * 500_000
ORIGINS, REDIRECTS = 10, 5


def chain(status: int) -> dict[str, Any]:
    """Five redirects with a large body each, and a last URL that never answers."""
    paths = ["/robots.txt", *(f"/{n}" for n in range(1, REDIRECTS)), "/end"]
    hops = {path: answer(BODY, status, headers={"Location": location}) for path, location in pairwise(paths)}
    return {**hops, "/end": answer(kind="hang")}


@ensureDeferred
async def test_bodies_of_redirects_take_no_memory_while_the_last_answer_is_awaited(web: Web) -> None:
    sites = [web.site(chain(302)) for _ in range(ORIGINS)]

    class Measures(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            deferred_from_coro(self.measure())
            async for request in super().start():
                yield request

        async def measure(self) -> None:
            before = tracemalloc.get_traced_memory()[0]
            while not all("/end" in site.targets for site in sites):
                await sleep(0.05)
            gc.collect()
            self.crawl.ends.append(tracemalloc.get_traced_memory()[0] - before)
            close_spider(self, "enough")

    tracemalloc.start()
    try:
        result = await crawl(*(site.url("/") for site in sites), spider=Measures, settings={"DOWNLOADER": SlotByOrigin})
    finally:
        tracemalloc.stop()
    (octets,) = result.ends
    assert octets < ORIGINS * len(BODY) / 2, "less than half a body for each origin"
