"""Consumers of a queue of tasks that keep some tasks under way, and acknowledge a task when its callback has run.

Such a queue hands out no more tasks than its prefetch says. The tasks of a host that is down stay under way during the
whole outage (REP_UNREACHABLE_WAIT). Here, the queue is a list of Redis.
"""

from __future__ import annotations

from typing import Any

import pytest
from crawling import CrawlSpider, Time, crawl, with_clock
from pytest_twisted import ensureDeferred
from redis_server import RedisServer
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.http import Response
from web import RULES, Web, answer

pytestmark = pytest.mark.ecosystem

PREFETCH = 4
BROKERS = "tasks", "unacknowledged"


class Consumes(CrawlSpider):
    """Records in `ends` how many tasks are under way after each one that it takes."""

    redis: Any

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **attributes: Any) -> Consumes:
        spider = super().from_crawler(crawler, *args, **attributes)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    async def start(self) -> Any:
        for request in self.taken():
            yield request

    def taken(self) -> list[Request]:
        requests = []
        while self.redis.llen("unacknowledged") < PREFETCH and (url := self.redis.lmove(*BROKERS)):
            requests.append(self.prepared(url.decode()))
            self.crawl.ends.append(self.redis.llen("unacknowledged"))
        return requests

    def parse(self, response: Response, **more: Any) -> list[Request]:
        super().parse(response, **more)
        return self.acknowledged(response.url)

    def failed(self, failure: Any) -> list[Request]:
        super().failed(failure)
        return self.acknowledged(failure.request.url)

    def acknowledged(self, url: str) -> list[Request]:
        self.redis.lrem("unacknowledged", 1, url)
        return self.taken()

    def idle(self) -> None:
        if self.redis.llen("unacknowledged"):
            raise DontCloseSpider


@pytest.mark.parametrize("wait", [0, 30], ids="REP_UNREACHABLE_WAIT={}".format)
@ensureDeferred
async def test_each_task_is_acknowledged_whatever_hosts_are_down(
    web: Web, redis_server: RedisServer, wait: int
) -> None:
    from redis import Redis  # noqa: PLC0415 - an extra

    sites = [web.robots(answer(status=503) if n % 10 == 0 else answer(RULES)) for n in range(60)]
    time = Time()
    with Redis.from_url(redis_server.url) as redis:
        redis.rpush("tasks", *(site.url() for site in sites))
        spider = type("ConsumesThese", (Consumes,), {"redis": redis})
        result = await crawl(spider=spider, robots=with_clock(time), settings={"REP_UNREACHABLE_WAIT": wait})
        assert [redis.llen(name) for name in BROKERS] == [0, 0]
    assert (len(result.pages), len(result.refused)) == (54, 6)
    assert len(result.ends) == 60
    assert max(result.ends) <= PREFETCH
    assert bool(time.slept) == (wait > 0), "without a wait, no task is held during an outage"
