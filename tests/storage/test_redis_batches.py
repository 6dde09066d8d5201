"""Commands of one turn of the event loop, and those that come meanwhile, are sent to Redis together, from a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event

import redis
from in_loop import in_loop
from redis_server import RedisServer

from scrapy_rep.deferreds import OwnThread
from scrapy_rep.storage.redis import RedisStorage

ORIGINS = [f"https://{n}.example" for n in range(5)]


@asynccontextmanager
async def connected(server: RedisServer) -> AsyncIterator[RedisStorage]:
    """A store that is connected already, because a new connection sends commands of its own."""
    storage = RedisStorage(server.url)
    await storage.get(ORIGINS[0])
    yield storage
    await storage.close()


class Reads:
    """How often the server has read from its connections: once for each batch."""

    def __init__(self, server: RedisServer) -> None:
        self._client = redis.Redis.from_url(server.url)
        self._client.ping()
        self._before = self._all()

    def _all(self) -> int:
        number: int = self._client.info("stats")["total_reads_processed"]
        return number

    @property
    def number(self) -> int:
        number = self._all() - self._before - 1  # this read itself
        self._client.close()
        return number


@in_loop
async def test_the_commands_of_one_turn_are_one_batch_and_each_gets_its_own_answer(redis_server: RedisServer) -> None:
    async with connected(redis_server) as storage:
        reads = Reads(redis_server)
        await asyncio.gather(*(storage.put(origin, origin.encode(), 60) for origin in ORIGINS))
        assert await asyncio.gather(*(storage.get(origin) for origin in ORIGINS)) == [o.encode() for o in ORIGINS]
        assert await storage.get("https://another.example") is None
        assert reads.number == 3


@in_loop
async def test_a_connection_that_the_server_has_closed_is_opened_again(redis_server: RedisServer) -> None:
    async with connected(redis_server) as storage:
        await storage.put(ORIGINS[0], b"entry", 60)
        with redis.Redis.from_url(redis_server.url) as client:
            assert client.client_kill_filter(_type="normal", skipme=True) == 1
            assert await storage.get(ORIGINS[0]) == b"entry"
            assert "cmdstat_multi" not in client.info("commandstats"), "a batch is no transaction"


@in_loop
async def test_after_the_close_no_thread_and_no_connection_is_left(redis_server: RedisServer) -> None:
    async with connected(redis_server) as storage:
        thread = storage._thread._thread
        assert thread.is_alive()
    thread.join(10)
    assert not thread.is_alive()
    with redis.Redis.from_url(redis_server.url) as client:
        for _ in range(500):
            if len(client.client_list()) == 1:  # this client
                break
            await asyncio.sleep(0.01)
        assert len(client.client_list()) == 1


@in_loop
async def test_a_failed_batch_fails_each_of_its_commands(redis_server: RedisServer) -> None:
    async with connected(redis_server) as storage:
        redis_server.stop()
        failures = await asyncio.gather(*(storage.get(origin) for origin in ORIGINS), return_exceptions=True)
        assert [type(failure) for failure in failures] == [redis.ConnectionError] * len(ORIGINS)


@in_loop
async def test_commands_that_come_meanwhile_are_the_next_batch(redis_server: RedisServer) -> None:
    async with connected(redis_server) as storage:
        reads = Reads(redis_server)
        redis_server.freeze()
        commands = []
        for origin in ORIGINS:  # one in each turn
            commands.append(asyncio.ensure_future(storage.put(origin, b"entry", 60)))
            await asyncio.sleep(0.01)
        commands[2].cancel()
        await asyncio.sleep(0)
        redis_server.freeze(False)
        await asyncio.gather(*commands, return_exceptions=True)
        assert reads.number == 2
        stored = [origin for origin in ORIGINS if await storage.get(origin) is not None]
        assert stored == [origin for origin in ORIGINS if origin != ORIGINS[2]], "not the cancelled one"


@in_loop
async def test_a_cancelled_call_is_not_made() -> None:
    thread = OwnThread()
    made: list[int] = []
    busy = Event()
    before = asyncio.ensure_future(thread.run(busy.wait, 10))
    calls = [asyncio.ensure_future(thread.run(made.append, n)) for n in range(3)]
    await asyncio.sleep(0)
    calls[1].cancel()
    await asyncio.sleep(0)
    busy.set()
    assert await before
    await calls[0]
    await calls[2]
    assert made == [0, 2]
    thread.close()
