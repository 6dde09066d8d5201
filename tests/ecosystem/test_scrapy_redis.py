"""With scrapy-redis and a real Redis: requests that wait for a robots.txt belong to the fleet, whatever becomes of the
crawler that they wait in."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from crawling import CrawlSpider, close_spider, crawl
from processes import CrawlProcess, Ended, crawl_process, crawled, until
from pytest_twisted import ensureDeferred
from redis_server import RedisServer
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from web import RULES, Site, Web, answer

from scrapy_rep.protocol import outage
from scrapy_rep.waiting.copies import ALIVE, PULSE

pytestmark = pytest.mark.ecosystem

HELD = answer(RULES, kind="hold")
WAITED: dict[str, Any] = {"ready_after": 0.8}
QUEUES = ["PriorityQueue", "FifoQueue", "LifoQueue"]
SECONDS = 60  # a dead crawler's requests come back after ten


def settings_for(server: RedisServer, **more: Any) -> dict[str, Any]:
    return {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": server.url,
        "REP_STORAGE": "redis:",
        "LOG_LEVEL": "INFO",
        **more,
    }


def keys(server: RedisServer) -> set[str]:
    from redis import Redis  # noqa: PLC0415 - an extra

    with Redis.from_url(server.url, decode_responses=True) as redis:
        return {key for key in redis.scan_iter("tells-all:*") if key != "tells-all:dupefilter"}


def queued(server: RedisServer) -> int:
    from redis import Redis  # noqa: PLC0415 - an extra

    with Redis.from_url(server.url) as redis:
        kind = redis.type("tells-all:requests")
        return int(redis.zcard("tells-all:requests") if kind == b"zset" else redis.llen("tells-all:requests"))


def pages(*sites: Site) -> list[str]:
    return [site.url(f"/{n}") for n in range(12) for site in sites]


def all_wait(process: CrawlProcess, server: RedisServer) -> None:
    process.until_ready()
    until(lambda: queued(server) == 0, process)


def once_each(sites: list[Site], *crawls: Ended) -> None:
    assert Counter(url for crawl in crawls for url in crawl.by_url) == Counter(pages(*sites))
    for site in sites:
        fetched = Counter(site.targets)
        del fetched["/robots.txt"]
        assert fetched == Counter(f"/{n}" for n in range(12))
    for ended in crawls:
        assert ended.complaints == []


@pytest.mark.parametrize("queue", QUEUES)
def test_waiting_requests_go_on_and_leave_nothing_in_redis(web: Web, redis_server: RedisServer, queue: str) -> None:
    sites = [web.robots(answer(RULES, delay=0.3)) for _ in range(2)]
    settings = settings_for(redis_server, SCHEDULER_QUEUE_CLASS=f"scrapy_redis.queue.{queue}")
    once_each(sites, crawled(pages(*sites), settings))
    assert keys(redis_server) == set()


@pytest.mark.parametrize("queue", QUEUES)
def test_waiting_requests_return_to_the_queue_at_a_stop(web: Web, redis_server: RedisServer, queue: str) -> None:
    sites = [web.robots(HELD) for _ in range(2)]
    settings = settings_for(redis_server, SCHEDULER_QUEUE_CLASS=f"scrapy_redis.queue.{queue}")
    with crawl_process(pages(*sites), settings, **WAITED) as process:
        all_wait(process, redis_server)
        process.interrupt()
        first = process.ended(15)
    assert first.ends == []
    assert keys(redis_server) == {"tells-all:requests"}
    assert queued(redis_server) == len(pages(*sites))
    web.release(*sites)
    once_each(sites, first, crawled([], settings))
    assert keys(redis_server) == set()


def test_another_crawler_gets_the_waiting_requests_of_a_stopped_one(web: Web, redis_server: RedisServer) -> None:
    sites = [web.robots(HELD) for _ in range(2)]
    settings = settings_for(redis_server)
    with crawl_process(pages(*sites), settings, **WAITED) as stopped:
        all_wait(stopped, redis_server)
        with crawl_process([], settings, **WAITED) as other:
            other.until_ready()
            time.sleep(0.5)  # it has nothing to do, and stays
            stopped.interrupt()
            first = stopped.ended(15)
            web.release(*sites)
            once_each(sites, first, other.ended(SECONDS))
    assert keys(redis_server) == set()


@pytest.mark.parametrize("is_other_there", [True, False], ids=["another-crawler", "a-later-crawler"])
def test_waiting_requests_of_a_killed_one_come_back(web: Web, redis_server: RedisServer, is_other_there: bool) -> None:
    sites = [web.robots(HELD) for _ in range(2)]
    settings = settings_for(redis_server)
    with crawl_process(pages(*sites), settings, **WAITED) as killed:
        all_wait(killed, redis_server)
        if not is_other_there:
            assert killed.killed()
            assert queued(redis_server) == 0, "all were in its memory"
        with crawl_process([], settings, **WAITED) as other:
            if is_other_there:
                other.until_ready()
                assert killed.killed()
            web.release(*sites)
            once_each(sites, other.ended(SECONDS))
    assert keys(redis_server) == set()


def test_waiting_requests_survive_two_killed_crawlers(web: Web, redis_server: RedisServer) -> None:
    """scrapy-redis itself loses no request here: no page is fetched before both crawlers are killed, and all requests
    have left the queue."""
    sites = [web.robots(HELD) for _ in range(6)]
    settings = settings_for(redis_server)
    with crawl_process(pages(*sites), settings, **WAITED) as first:
        all_wait(first, redis_server)
        with crawl_process([], settings, **WAITED) as second:
            second.until_ready()
            time.sleep(0.5)
            assert first.killed()
            with crawl_process([], settings, **WAITED) as third:
                third.until_ready()
                time.sleep(0.5)
                assert second.killed()
                web.release(*sites)
                ended = third.ended(SECONDS)
    # One that was being put back when its crawler was killed may come twice.
    assert set(ended.by_url) == set(pages(*sites))
    assert keys(redis_server) == set()
    assert ended.complaints == []


@pytest.mark.parametrize("robots", [{}, {"ADDONS": {}}], ids=["scrapy-rep", "without-robots-txt"])
def test_what_scrapy_redis_itself_loses(web: Web, redis_server: RedisServer, robots: dict[str, Any]) -> None:
    """Requests in the downloader are in the crawler's memory only, with any middleware or none."""
    site = web.site({"/robots.txt": answer(RULES), "*": answer("page", kind="hold")})
    settings = settings_for(redis_server, CONCURRENT_REQUESTS=4, CONCURRENT_REQUESTS_PER_DOMAIN=4, **robots)
    with crawl_process(pages(site), settings, **WAITED) as process:
        process.until_ready()
        until(lambda: len(set(site.targets) - {"/robots.txt"}) == 4, process)
        assert process.killed()
    lost = {site.url(target) for target in site.targets if target != "/robots.txt"}
    web.release(site)
    assert set(crawled([], settings).by_url) == set(pages(site)) - lost


def test_a_warning_says_once_that_waiting_requests_cannot_be_kept(web: Web, redis_server: RedisServer) -> None:
    from redis import Redis  # noqa: PLC0415 - an extra

    sites = [web.robots(answer(RULES, delay=0.3)) for _ in range(2)]
    with Redis.from_url(redis_server.url) as redis:
        redis.set("tells-all:requests:waiting", "somebody else's")
    ended = crawled(pages(*sites), settings_for(redis_server))
    once_each(sites, ended)
    (warning,) = [line for line in ended.warnings if "is killed" in line]
    assert "If this crawler is killed, requests that wait for a robots.txt are lost: WRONGTYPE" in warning


def test_a_clean_start_forgets_waiting_requests(web: Web, redis_server: RedisServer) -> None:
    site, other = web.robots(HELD), web.robots(RULES)
    settings = settings_for(redis_server)
    with crawl_process(pages(site), settings, **WAITED) as process:
        all_wait(process, redis_server)
        assert process.killed()
    ended = crawled(pages(other), {**settings, "SCHEDULER_FLUSH_ON_START": True})
    once_each([other], ended)
    assert keys(redis_server) == set()


def reads(spider: type[CrawlSpider], **attributes: Any) -> type[CrawlSpider]:
    """A spider that reads its URLs from Redis, as RedisSpider does. The others are its attributes."""
    from scrapy_redis.spiders import RedisMixin  # noqa: PLC0415 - an extra

    class Reads(RedisMixin, spider):  # type: ignore[misc, valid-type]
        name = "tells-all"

        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **more: Any) -> Any:
            spider = super().from_crawler(crawler, *args, **more)
            spider.setup_redis(crawler)
            return spider

        def make_request_from_data(self, data: bytes) -> Request:
            request = Request(data.decode(), dont_filter=True, meta=dict(attributes.get("meta", {})))
            prepared: Request = self.prepared(request)
            return prepared

    return type("Reads", (Reads,), attributes)


def push(server: RedisServer, *urls: str) -> None:
    from redis import Redis  # noqa: PLC0415 - an extra

    with Redis.from_url(server.url) as redis:
        redis.rpush("tells-all:start_urls", *urls)


OF_PLUGIN = pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")


@OF_PLUGIN
@ensureDeferred
async def test_a_spider_that_reads_its_urls_from_redis_obeys_robots_txt(web: Web, redis_server: RedisServer) -> None:
    site = web.robots(answer(RULES, delay=0.3))
    push(redis_server, *pages(site), site.url("/private"))
    settings = {**settings_for(redis_server), "MAX_IDLE_TIME_BEFORE_CLOSE": 3, "CONCURRENT_REQUESTS": 4}
    result = await crawl(spider=reads(CrawlSpider), settings=settings)
    assert sorted(result.pages) == sorted(pages(site))
    assert list(result.refused) == [site.url("/private")]


class StopsAtTheFirstRefusal(CrawlSpider):
    server: Any

    def failed(self, failure: Any) -> None:
        super().failed(failure)
        if not self.crawl.ends:
            self.crawl.ends.append(self.server.llen("tells-all:start_urls"))
            close_spider(self, "enough")


@OF_PLUGIN
@pytest.mark.parametrize("has_proxy", [False, True], ids=["direct", "proxy"])
@pytest.mark.parametrize("scheduler", ["scrapy_redis.scheduler.Scheduler", "scrapy.core.scheduler.Scheduler"])
@ensureDeferred
async def test_in_an_outage_a_spider_leaves_its_urls_in_redis(
    web: Web, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, scheduler: str, has_proxy: bool
) -> None:
    """Other crawlers can take them. It keeps about REP_WAITING_MAX of them, and asks for robots.txt through the proxy
    that the spider sets."""
    monkeypatch.setattr(outage, "BACKOFFS", (2.0,))
    site = web.site({"*": answer(status=503)})
    host = "http://down.example" if has_proxy else site.origin
    push(redis_server, *(f"{host}/{n}" for n in range(2_000)))
    spider = reads(StopsAtTheFirstRefusal, meta={"proxy": site.origin} if has_proxy else {})
    settings = {"SCHEDULER": scheduler, "REP_WAITING_MAX": 20, "REP_UNREACHABLE_WAIT": 3, "CONCURRENT_REQUESTS": 4}
    result = await crawl(spider=spider, settings=settings_for(redis_server, **settings))
    (left,) = result.ends
    assert 2_000 - left <= 100, "20, and some batches of 4"
    assert set(site.targets) == {f"{host}/robots.txt" if has_proxy else "/robots.txt"}
    assert len(site.targets) == 2
    assert result.tracebacks == []


class LeadsOn(CrawlSpider):
    """Requests other hosts with the meta of the page of the first one, and stops."""

    def parse(self, response: Response, **more: Any) -> Any:
        super().parse(response, **more)
        if response.url == "http://site.example/":
            for n in range(6):
                yield self.prepared(Request(f"http://other{n}.example/", meta=response.meta))
            raise CloseSpider("enough")


@OF_PLUGIN
@ensureDeferred
async def test_another_crawler_asks_for_robots_txt_through_the_proxy_that_the_spider_has_set(
    web: Web, redis_server: RedisServer
) -> None:
    hosts = ["site.example", *(f"other{n}.example" for n in range(6))]
    proxy = web.site({**{f"http://{host}/robots.txt": answer(RULES) for host in hosts}, "*": answer("page")})
    settings = settings_for(redis_server, MAX_IDLE_TIME_BEFORE_CLOSE=1)
    push(redis_server, "http://site.example/")
    spider = reads(LeadsOn, meta={"proxy": proxy.origin})
    first = await crawl(spider=spider, settings=settings)
    second = await crawl(spider=spider, settings=settings)
    assert second.pages
    assert len(first.pages) + len(second.pages) == 7
    assert sorted(proxy.targets) == sorted(f"http://{host}/{path}" for host in hosts for path in ("", "robots.txt"))
    assert first.tracebacks == second.tracebacks == []


def test_a_redis_that_hangs_makes_no_crawler_take_anothers_requests(web: Web, redis_server: RedisServer) -> None:
    """It hangs for longer than a crawler may be without a sign of life."""
    sites = [web.robots(HELD) for _ in range(2)]
    settings = settings_for(redis_server)
    with crawl_process(pages(*sites), settings, **WAITED) as waits:
        all_wait(waits, redis_server)
        with crawl_process([], settings, **WAITED) as other:
            other.until_ready()
            redis_server.freeze()
            time.sleep(ALIVE + 3)
            redis_server.freeze(False)
            time.sleep(2 * PULSE)
            web.release(*sites)
            first, second = waits.ended(SECONDS), other.ended(SECONDS)
    once_each(sites, first, second)
    assert not any("are gone" in line for line in first.warnings + second.warnings)


def test_stopped_while_redis_hangs_a_crawl_does_not_wait_for_it_with_each_request(
    web: Web, redis_server: RedisServer
) -> None:
    sites = [web.robots(HELD) for _ in range(2)]
    settings = settings_for(redis_server, REDIS_PARAMS={"socket_timeout": 1, "retry_on_timeout": False})
    with crawl_process(pages(*sites), settings, **WAITED) as process:
        all_wait(process, redis_server)
        redis_server.freeze()
        process.interrupt()
        log = process.ended(30).log
        redis_server.freeze(False)
    assert f"has not taken back 24 of {len(pages(*sites))} requests" in log
    assert "Traceback" not in log
    web.release(*sites)
    # What Redis got before it hung it may have done after all, so that some come twice.
    with crawl_process([], settings) as later:
        assert set(later.ended(SECONDS).by_url) == set(pages(*sites))


def test_a_request_that_redis_refused_to_forget_does_not_come_twice(web: Web, redis_server: RedisServer) -> None:
    from redis import Redis  # noqa: PLC0415 - an extra

    sites = [web.robots(HELD) for _ in range(2)]
    with crawl_process(pages(*sites), settings_for(redis_server), **WAITED) as process:
        all_wait(process, redis_server)
        with Redis.from_url(redis_server.url) as redis:
            redis.execute_command("ACL SETUSER default -hdel")
            web.release(sites[0])
            until(lambda: len(sites[0].targets) == 13, process)
            redis.execute_command("ACL SETUSER default +hdel")
        time.sleep(ALIVE + 2 * PULSE)
        web.release(sites[1])
        once_each(sites, process.ended(SECONDS))
    assert keys(redis_server) == set()
