"""`redis:` keeps entries on a Redis server (extra `redis`)."""

import re
from typing import Any, cast
from urllib.parse import urlsplit

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.deferreds import OwnThread, settle
from scrapy_rep.storage import Storage

Command = tuple[str | bytes | int, ...]

PREFIX = "scrapy-rep:1:"  # 1 is the version of the format; scrapy-rep ignores keys with another version
ENTRY, LEASE = f"{PREFIX}entry:", f"{PREFIX}lease:"

TIMEOUT = 2.0  # seconds to connect, and seconds to wait for a reply

# `pcall`, because `call` would end the script at an error: the key may have a value of another type, or memory is full.
# Only the holder of a lease may renew or release it.
ACQUIRE = """
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
local holder = redis.pcall('get', KEYS[1])
if type(holder) == 'table' then return 1 end
return holder == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0
"""
RELEASE = "return redis.pcall('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0"


class RedisStorage(Storage):
    """The store of `redis://host:port/db` and `rediss://...`, which redis-py parses.

    `redis:` alone stands for the address in REDIS_URL, a setting of scrapy-redis.
    """

    def __init__(self, address: str) -> None:
        self._redis = _client(address)
        self._thread = OwnThread()
        self._next: list[tuple[Command, Deferred[Any]]] = []
        self._is_sending = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, address: str) -> "RedisStorage":
        if address == "redis:":
            address = crawler.settings["REDIS_URL"]
            if not address:
                raise ValueError("it stands for REDIS_URL, which is not set; set REDIS_URL to 'redis://host:port/db'")
        return cls(address)

    async def get(self, origin: str) -> bytes | None:
        (entry,) = await self._command("MGET", ENTRY + origin)  # GET fails if the value is of another type
        return cast("bytes | None", entry)

    async def put(self, origin: str, entry: bytes, lifetime: float) -> None:
        await self._command("SET", ENTRY + origin, entry, "PX", _milliseconds(lifetime))

    async def acquire_lease(self, origin: str, token: str, seconds: float) -> bool:
        return bool(await self._command("EVAL", ACQUIRE, 1, LEASE + origin, token, _milliseconds(seconds)))

    async def release_lease(self, origin: str, token: str) -> None:
        await self._command("EVAL", RELEASE, 1, LEASE + origin, token)

    async def close(self) -> None:
        await self._thread.run(self._redis.close)
        self._thread.close()

    async def _command(self, *command: str | bytes | int) -> Any:
        """Return the reply of Redis.

        One round trip sends all commands that were called in the same turn of the event loop, or during the last round
        trip. A command that is cancelled before its round trip is not sent.
        """
        waiter: Deferred[Any] = Deferred()
        self._next.append((command, waiter))
        if not self._is_sending:
            self._is_sending = True
            call_later(0, lambda: deferred_from_coro(self._send_all()))
        return await maybe_deferred_to_future(waiter)

    async def _send_all(self) -> None:
        while self._next:
            batch, self._next = [item for item in self._next if not item[1].called], []
            try:
                answers = await self._thread.run(self._sent, [command for command, _ in batch])
            except Exception as exc:  # noqa: BLE001 - raised again in each `_command` of the batch
                answers = [exc for _ in batch]
            for (_, waiter), answer in zip(batch, answers, strict=True):
                settle(waiter, answer)
        self._is_sending = False

    def _sent(self, commands: list[Command]) -> list[Any]:
        """Send the commands and return their replies, in the same order. If one command fails, all count as failed."""
        pipeline = self._redis.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        return list(pipeline.execute())


def _client(address: str) -> Any:
    """Return a client, which connects at its first command. Raises ValueError if redis-py is missing, or the address is
    wrong."""
    try:
        from redis import ConnectionError, Redis  # noqa: A004, PLC0415 - an extra
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415
    except ImportError as exc:
        raise ValueError(
            f'redis-py cannot be imported ({exc}); run pip install "scrapy-rep[redis]", or set another REP_STORAGE'
        ) from exc
    try:
        # Retry once, in case the server has closed an idle connection. Do not retry after a time-out.
        timeouts = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT}
        client = Redis.from_url(address, **timeouts, retry=Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)))
        pool, url = client.connection_pool, urlsplit(address)
        pool.connection_class(**pool.connection_kwargs)  # connects to nothing; raises TypeError for an unknown option
        # Without a number, redis-py would use database 0.
        wrong = url.scheme != "unix" and url.path.strip("/") and "db" not in pool.connection_kwargs
        fault = f"{url.path!r} is no database" if wrong else ""
    except (ValueError, TypeError) as exc:
        fault = re.sub("^Port could not be cast .*", "its port is no number", str(exc))  # it may be part of a password
    if fault:
        raise ValueError(f"redis-py cannot use it ({fault}); set it to an address such as 'redis://host/0'")
    return client


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))
