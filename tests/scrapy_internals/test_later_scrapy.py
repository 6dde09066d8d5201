"""What open pull requests of Scrapy change, in small. `docs/internals.md` lists them."""

from __future__ import annotations

from typing import Any

import pytest
from crawling import CrawlSpider, Releases, SlotByOrigin, crawl
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.http import Response
from web import RULES, Web, answer

# 6430: the downloader backs out for one more reason, the size of all responses in memory.


@ensureDeferred
async def test_each_reason_of_the_downloader_to_back_out_counts(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str] = []
    by_concurrency = Downloader.needs_backout
    monkeypatch.setattr(Downloader, "needs_backout", lambda self: by_concurrency(self) or bool(reasons))

    class Asks(CrawlSpider):
        def parse(self, response: Response, **_: Any) -> None:
            for self_made in ([], ["another reason"]):
                reasons[:] = self_made
                self.crawl.ends.append(self.crawler.engine.needs_backout())
            reasons.clear()

    result = await crawl(web.robots(RULES).url("/a"), spider=Asks)
    assert result.ends == [False, True]


@pytest.fixture
def weighing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Scrapy reckon with a size of 1 for each request under way, and back out at 4 times CONCURRENT_REQUESTS."""
    fetch, by_concurrency = Downloader.fetch, Downloader.needs_backout

    def fetch_and_weigh(self: Any, request: Request) -> Any:
        sizes = vars(self.middleware).setdefault("_rough_sizes", {})
        sizes.setdefault(request, 1)

        def discount(result: Any) -> Any:
            sizes.pop(request, None)
            return result

        return fetch(self, request).addBoth(discount)

    def needs_backout(self: Any) -> bool:
        weight = sum(getattr(self.middleware, "_rough_sizes", {}).values())
        return by_concurrency(self) or weight >= 4 * self.settings.getint("CONCURRENT_REQUESTS")

    monkeypatch.setattr(Downloader, "fetch", fetch_and_weigh)
    monkeypatch.setattr(Downloader, "needs_backout", needs_backout)


@pytest.mark.usefixtures("weighing")
@ensureDeferred
async def test_requests_for_a_robots_txt_weigh_nothing(web: Web) -> None:
    dead = [web.robots(answer(RULES, kind="hold")) for _ in range(20)]
    healthy = [web.robots(RULES) for _ in range(5)]
    urls = [site.url(f"/{n}") for site in dead + healthy for n in range(3)]
    settings = {"DOWNLOADER": SlotByOrigin, "CONCURRENT_REQUESTS": 4, "REP_FETCH_TIMEOUT": 20}
    result = await crawl(*urls, spider=Releases, dead=dead, healthy=15, settings=settings)
    assert (result.ends, len(result.pages), result.tracebacks) == (["no stall"], 75, [])
