"""`redis:`: entries on a server that a fleet of crawlers shares, so that it asks an origin once (extra `redis`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy.crawler import Crawler

from scrapy_rep.storage.base import Storage, without_password
from scrapy_rep.storage.threads import Threads

if TYPE_CHECKING:
    from redis import Redis

PREFIX = "scrapy-rep:1:"  # the version is in the keys: an older or newer scrapy-rep finds nothing of ours
ENTRY, LEASE = f"{PREFIX}entry:", f"{PREFIX}lease:"

TIMEOUT = 2.0  # seconds for an answer, or a connection
CALLS_AT_ONCE = 8

# A lease is its holder's alone to hold on to, and to give back.
HOLD = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0"
RELEASE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0"


class RedisStorage(Storage):
    """`redis://host:port/db` or `rediss:`, as redis-py reads them; a bare `redis:` takes scrapy-redis's REDIS_URL."""

    def __init__(self, address: str) -> None:
        self._redis = _client(address)
        self._threads = Threads(CALLS_AT_ONCE)

    @classmethod
    def from_crawler(cls, crawler: Crawler, address: str) -> RedisStorage:
        if address == "redis:":
            address = crawler.settings["REDIS_URL"]
            if not address:
                raise ValueError(
                    "REP_STORAGE is 'redis:', which takes scrapy-redis's REDIS_URL, but there is none;"
                    " set it to 'redis://host:port/db'"
                )
        return cls(address)

    async def get(self, origin: str) -> bytes | None:
        return cast("bytes | None", await self._call(self._redis.get, ENTRY + origin))

    async def put(self, origin: str, octets: bytes, keep_for: float) -> None:
        await self._call(self._redis.set, ENTRY + origin, octets, px=_milliseconds(keep_for))

    async def forget(self, origin: str) -> bool:
        return bool(await self._call(self._redis.delete, ENTRY + origin))

    async def origins(self) -> list[str]:
        return cast("list[str]", await self._call(self._scanned))

    async def hold(self, origin: str, token: str, seconds: float) -> bool:
        key, for_ = LEASE + origin, _milliseconds(seconds)
        if await self._call(self._redis.set, key, token, nx=True, px=for_):
            return True
        return bool(await self._call(self._redis.eval, HOLD, 1, key, token, str(for_)))

    async def release(self, origin: str, token: str) -> None:
        await self._call(self._redis.eval, RELEASE, 1, LEASE + origin, token)

    async def close(self) -> None:
        await self._call(self._redis.close)
        self._threads.close()

    async def _call(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._threads.run(call, *args, **kwargs)

    def _scanned(self) -> list[str]:
        keys = self._redis.scan_iter(match=f"{ENTRY}*", count=1_000)
        # A key may come twice.
        return sorted({key.decode("utf-8", "replace")[len(ENTRY) :] for key in keys})


def _client(address: str) -> Redis:
    """Connects with the first call. Raises ValueError where redis-py is missing, or can't read the address."""
    try:
        from redis import Redis  # noqa: PLC0415 - an extra
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.exceptions import ConnectionError  # noqa: A004, PLC0415
        from redis.retry import Retry  # noqa: PLC0415
    except ImportError as exc:
        raise ValueError(
            f"REP_STORAGE is {without_password(address)!r}, but redis-py can't be imported ({exc});"
            " install it with `pip install scrapy-rep[redis]`, or set REP_STORAGE to another storage"
        ) from exc
    try:
        # One more try, at once, where the server has closed the connection meanwhile; what hangs is left alone.
        return Redis.from_url(
            address,
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            retry=Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
            max_connections=CALLS_AT_ONCE,
        )
    except (ValueError, TypeError) as exc:
        raise ValueError(
            f"REP_STORAGE is {without_password(address)!r} ({exc}); set it to an address such as 'redis://host:port/db'"
        ) from None


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))
