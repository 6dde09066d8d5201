"""When requests that wait in another crawler are put back into the queue of scrapy-redis: step by step, with a real
Redis and a clock that the tests set."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from in_loop import in_loop
from redis_server import RedisServer
from scrapy import Request, Spider
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.test import get_crawler

from scrapy_rep.waiting import copies
from scrapy_rep.waiting.copies import ALIVE, PULSE, KeptInRedis

pytestmark = pytest.mark.ecosystem

KEEPERS = "requests:waiting"


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(copies, "monotonic", time)
    monkeypatch.setattr(copies, "look_for_requests", lambda _crawler: None)  # no engine runs
    return time


class Fleet:
    """Crawlers that share a queue. Their beats come when a test says so."""

    def __init__(self, server: RedisServer, time: Time) -> None:
        from redis import Redis  # noqa: PLC0415 - an extra
        from redis.exceptions import ConnectionError  # noqa: A004, PLC0415
        from scrapy_redis.queue import FifoQueue  # noqa: PLC0415 - an extra

        self.distance = 0.0
        """Seconds that each command takes."""
        self.cut_off: set[str] = set()
        """Commands at which the connection breaks."""
        self.hangs: dict[int, float] = {}
        """Number of commands before one that hangs -> the seconds for which it hangs."""
        fleet = self

        class FarAway(Redis):
            def lock(self, name: str, timeout: float | None = None, *, blocking_timeout: float | None = None) -> Any:  # type: ignore[override]
                """Take no argument that redis-py 4.2 lacks: scrapy-redis allows this version."""
                return super().lock(name, timeout, blocking_timeout=blocking_timeout)

            def execute_command(self, *args: Any, **options: Any) -> Any:
                if args[0] in fleet.cut_off:
                    raise ConnectionError
                time.now += fleet.distance + fleet.hangs.pop(0, 0.0)
                fleet.hangs = {left - 1: seconds for left, seconds in fleet.hangs.items()}
                return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

        self.redis = Redis.from_url(server.url)
        self._far = FarAway.from_url(server.url)
        self._queue = FifoQueue
        self._time = time
        self._crawlers: list[KeptInRedis] = []

    def crawler(self) -> KeptInRedis:
        crawler = get_crawler(Spider)
        crawler.spider = Spider("one")
        queue = self._queue(self._far, crawler.spider, "requests")
        kept = KeptInRedis(crawler, SimpleNamespace(queue=queue, flush_on_start=False))
        kept._pulse.stop()
        self._crawlers.append(kept)
        return kept

    def beat(self, crawler: KeptInRedis) -> float:
        """Let the crawler beat, and set the clock to the time of its next beat. Return the seconds that it took."""
        began = self._time.now
        crawler._beat()
        seconds = self._time.now - began
        self._time.now = max(began + PULSE, self._time.now)
        return seconds

    def looks_dead(self, crawler: KeptInRedis) -> None:
        """Its last sign of life has expired."""
        self.redis.delete(crawler._own + b":alive")

    def queued(self) -> list[str]:
        """The URLs in the queue."""
        queue = self._queue(self.redis, Spider("one"), "requests")
        return sorted(queue._decode_request(octets).url for octets in self.redis.lrange("requests", 0, -1))

    def close(self) -> None:
        self.redis.close()
        self._far.close()


@pytest.fixture
def fleet(redis_server: RedisServer, time: Time) -> Iterator[Fleet]:
    fleet = Fleet(redis_server, time)
    yield fleet
    fleet.close()


def waits(crawler: KeptInRedis, number: int) -> list[str]:
    """URLs of requests that wait in the crawler."""
    urls = [f"https://example.com/{n}" for n in range(number)]
    for url in urls:
        crawler.keep(Request(url))
    return sorted(urls)


@in_loop
async def test_a_takeover_takes_many_beats_if_redis_is_far_away(fleet: Fleet) -> None:
    dead, *others = (fleet.crawler() for _ in range(3))
    urls = waits(dead, 600)
    fleet.looks_dead(dead)
    fleet.distance = 0.03
    longest = 0.0
    for beats in range(1, 200):  # noqa: B007 - it is asserted below
        longest = max(longest, *(fleet.beat(crawler) for crawler in others))
        queued = fleet.queued()
        assert len(set(queued)) == len(queued), "no request comes back twice"
        assert fleet.redis.hlen(dead._own) == len(urls) - len(queued)
        if len(queued) == len(urls):
            break
    assert queued == urls
    assert beats > 10
    assert longest < ALIVE / 4, "the crawler shows life in between, and nobody takes its lock"


@in_loop
async def test_a_crawler_that_is_killed_in_a_takeover_doubles_one_request_at_most(fleet: Fleet) -> None:
    dead, killed, other = (fleet.crawler() for _ in range(3))
    urls = waits(dead, 20)
    fleet.looks_dead(dead)
    push, pushed = killed._queue.push, []

    def dies(request: Request) -> None:
        push(request)
        pushed.append(request)
        if len(pushed) == 7:
            raise KeyboardInterrupt

    killed._queue.push = dies
    fleet.beat(killed)
    with pytest.raises(KeyboardInterrupt):
        fleet.beat(killed)
    fleet.redis.delete(f"{KEEPERS}:taking-over")  # which is over after ten seconds
    for _ in range(3):
        fleet.beat(other)
    queued = fleet.queued()
    assert (sorted(set(queued)), len(queued)) == (urls, len(urls) + 1)


@in_loop
async def test_no_crawler_counts_as_dead_while_redis_refuses_writes(fleet: Fleet) -> None:
    waiting, idle = fleet.crawler(), fleet.crawler()
    urls = waits(waiting, 5)
    fleet.looks_dead(waiting)
    fleet.redis.config_set("maxmemory", 1)  # an OOM error for each write; reads are answered
    for _ in range(10):
        for crawler in (waiting, idle):
            fleet.beat(crawler)
    fleet.redis.config_set("maxmemory", 0)
    for _ in range(3):
        for crawler in (idle, waiting):  # the idle one is first
            fleet.beat(crawler)
    assert fleet.queued() == []
    assert fleet.redis.hlen(waiting._own) == len(urls)


@pytest.mark.parametrize("after", range(6))
@in_loop
async def test_after_redis_hung_no_crawler_counts_as_dead_at_the_first_check(fleet: Fleet, after: int) -> None:
    waiting, other = fleet.crawler(), fleet.crawler()
    waits(waiting, 5)
    fleet.looks_dead(waiting)  # by the time that Redis answers
    fleet.hangs = {after: 2 * ALIVE}
    fleet.beat(other)
    for crawler in (waiting, other, other):
        fleet.beat(crawler)
    assert fleet.queued() == []


@in_loop
async def test_while_a_takeover_fails_for_the_connection_the_spider_stays_open(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    dead, other = fleet.crawler(), fleet.crawler()
    urls = waits(dead, 5)
    fleet.looks_dead(dead)
    fleet.cut_off = {"HGETALL"}
    for _ in range(4):
        fleet.beat(other)
    with pytest.raises(DontCloseSpider):
        other._idle()
    fleet.cut_off = set()
    for _ in range(3):
        fleet.beat(other)
    assert fleet.queued() == urls
    assert [line for line in caplog.messages if "cannot be put back" in line] == []


@in_loop
async def test_a_crawler_that_was_too_slow_leaves_the_lock_of_another(fleet: Fleet) -> None:
    dead, slow = fleet.crawler(), fleet.crawler()
    urls = waits(dead, 5)
    fleet.looks_dead(dead)
    lock, push = f"{KEEPERS}:taking-over", slow._queue.push

    def pushes(request: Request) -> None:
        push(request)
        fleet.redis.set(lock, "another's")  # the lock of `slow` has expired in the meantime

    slow._queue.push = pushes
    for _ in range(2):
        fleet.beat(slow)
    assert fleet.queued() == urls
    assert fleet.redis.get(lock) == b"another's"


@pytest.mark.parametrize("name", [b"no-hash", b"\xff\xfe", b""], ids=["no-hash", "not-utf-8", "empty"])
@in_loop
async def test_one_member_that_is_no_hash_stops_no_takeover(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, name: bytes
) -> None:
    dead, other = fleet.crawler(), fleet.crawler()
    urls = waits(dead, 20)
    fleet.looks_dead(dead)
    fleet.redis.sadd(KEEPERS, name)
    fleet.redis.set(name, "no hash")
    for _ in range(4):
        fleet.beat(other)
    assert fleet.queued() == urls
    assert not fleet.redis.exists(dead._own)
    assert not fleet.redis.exists(f"{KEEPERS}:taking-over")
    assert fleet.redis.get(name) == b"no hash"
    other._idle()  # the spider may close
    assert len([line for line in caplog.messages if "cannot be put back" in line]) == 1
