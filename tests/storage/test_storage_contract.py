"""What every store of entries has to do, whichever REP_STORAGE names."""

from __future__ import annotations

import asyncio
import gc
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from crawling import ADDON
from dict_storage import DictStorage, shared_store
from in_loop import in_loop
from redis_server import RedisServer
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.test import get_crawler
from twisted.internet.defer import CancelledError, DeferredList

from scrapy_rep.crawl import Clock, Crawl
from scrapy_rep.log import logger_of
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import outage_after
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage import STORAGES, Storage, storage_of
from scrapy_rep.storage.circuit_breaker import RETRY_FIRST, CircuitBreaker
from scrapy_rep.storage.sqlite import BUSY, SqliteStorage, path_of

A, B = "https://a.example", "http://b.example:8080"
LOG = logger_of(get_crawler(Spider))
FOR_LONG = 1_000.0  # seconds


class OwnStorage(DictStorage):
    @classmethod
    def from_crawler(cls, crawler: Crawler, address: str) -> OwnStorage:
        return cls(address)


SHARED = [scheme for scheme in STORAGES if scheme != "rediss"]  # that one is Redis with TLS
BACKENDS = [*SHARED, "own"]

Opened = Callable[[], Storage]


def store_of(**settings: Any) -> Storage:
    crawler = get_crawler(Spider, {**ADDON, **settings})
    storage = storage_of(crawler, RepSettings.read(crawler.settings))
    assert storage is not None
    return storage


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens the store that the test is about, the same one each time as far as it is shared."""
    addresses: dict[str, Callable[[], str]] = {
        "sqlite": lambda: f"sqlite://{tmp_path}/deeper/still/robots.db",
        "redis": lambda: str(request.getfixturevalue("redis_server").url),
        "own": lambda: "own:x",
    }
    address = addresses[request.param]()
    return lambda: store_of(REP_STORAGE=address, REP_STORAGES={"own": OwnStorage})


def over(backends: list[str]) -> Any:
    return pytest.mark.parametrize("opened", backends, indirect=True)


@asynccontextmanager
async def used(opened: Opened) -> AsyncIterator[Storage]:
    storage = opened()
    try:
        yield storage
    finally:
        await storage.close()


@over(BACKENDS)
@in_loop
async def test_an_entry_that_was_put_is_found(opened: Opened) -> None:
    async with used(opened) as storage:
        assert await storage.get(A) is None
        await storage.put(A, b"\x00\xff\r\n'\"", FOR_LONG)
        await storage.put(B, b"", FOR_LONG)
        assert (await storage.get(A), await storage.get(B)) == (b"\x00\xff\r\n'\"", b"")


@over(BACKENDS)
@in_loop
async def test_the_last_one_put_counts(opened: Opened) -> None:
    async with used(opened) as storage:
        for octets in (b"1", b"2" * 700_000, b"3"):
            await storage.put(A, octets, FOR_LONG)
            assert await storage.get(A) == octets


@over(BACKENDS)
@in_loop
async def test_many_calls_at_once_find_their_entries(opened: Opened) -> None:
    origins = [f"https://{n}.example" for n in range(200)]
    async with used(opened) as storage:
        await asyncio.gather(*(storage.put(origin, origin.encode(), FOR_LONG) for origin in origins))
        assert await asyncio.gather(*(storage.get(origin) for origin in origins)) == [o.encode() for o in origins]


@over(BACKENDS)
@in_loop
async def test_a_lease_of_ones_own_can_be_held_on_to_and_given_back(opened: Opened) -> None:
    async with used(opened) as storage:
        assert await storage.acquire_lease(A, "me", 10)
        assert await storage.acquire_lease(A, "me", 10)
        await storage.release_lease(A, "me")
        assert await storage.acquire_lease(A, "you", 10)
        assert await storage.get(A) is None, "a lease is no entry"


@over(SHARED)
@in_loop
async def test_a_lease_is_one_crawlers_alone(opened: Opened) -> None:
    async with used(opened) as mine, used(opened) as yours:
        assert await mine.acquire_lease(A, "me", 10)
        assert not await yours.acquire_lease(A, "you", 10)
        assert await yours.acquire_lease(B, "you", 10), "another origin's is another lease"
        await yours.release_lease(A, "you")
        assert not await yours.acquire_lease(A, "you", 10), "nobody gives back another's"
        await mine.release_lease(A, "me")
        assert await yours.acquire_lease(A, "you", 10)


@over(SHARED)
@in_loop
async def test_a_lease_whose_holder_died_is_taken_over(opened: Opened) -> None:
    async with used(opened) as mine, used(opened) as yours:
        assert await mine.acquire_lease(A, "me", 0.05)
        deadline = time.monotonic() + 5
        while not await yours.acquire_lease(A, "you", 10):  # the store's own clock, which takes no other
            assert time.monotonic() < deadline
        assert not await mine.acquire_lease(A, "me", 10), "and is no longer its first holder's"


@over(SHARED)
@in_loop
async def test_an_entry_that_one_crawler_puts_another_gets(opened: Opened) -> None:
    async with used(opened) as mine, used(opened) as yours:
        await mine.put(A, b"x", FOR_LONG)
        assert await yours.get(A) == b"x"


@over(SHARED)
@in_loop
async def test_expired_entries_are_not_returned(opened: Opened) -> None:
    async with used(opened) as storage:
        await storage.put(A, b"x", 0.001)
        await storage.put(B, b"x", FOR_LONG)
        await storage.acquire_lease(A, "me", 0.001)
        await asyncio.sleep(0.01)
    async with used(opened) as storage:
        assert (await storage.get(A), await storage.get(B)) == (None, b"x")


@over(SHARED)
@in_loop
async def test_an_entry_outlives_the_crawl(opened: Opened) -> None:
    async with used(opened) as storage:
        await storage.put(A, b"x", FOR_LONG)
    async with used(opened) as storage:
        assert await storage.get(A) == b"x"


async def blocks_no_event_loop(work: Any, end: Callable[[], object]) -> None:
    """Assert that `work` waits for `end` and does not block the event loop. (If it did, `end` would not be called.)"""
    working = asyncio.ensure_future(work)
    for _ in range(30):
        await asyncio.sleep(0.001)
    assert not working.done()
    end()
    await working


@in_loop
async def test_a_file_that_another_writes_to_holds_the_event_loop_up_for_a_moment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: list[float] = []
    connect = sqlite3.connect

    def noted(path: Path, *, timeout: float, **more: Any) -> Any:
        timeouts.append(timeout)
        return connect(path, timeout=timeout, **more)

    monkeypatch.setattr(sqlite3, "connect", noted)
    storage = store_of(REP_STORAGE=f"sqlite://{tmp_path}/robots.db")
    await storage.put(A, b"x", FOR_LONG)
    with closing(connect(tmp_path / "robots.db", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            await storage.put(A, b"y", FOR_LONG)
        db.execute("COMMIT")
    assert timeouts == [BUSY]
    await storage.put(A, b"y", FOR_LONG)
    assert await storage.get(A) == b"y"
    await storage.close()


@in_loop
async def test_two_crawlers_may_create_the_file_at_once(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "robots.db", isolation_level=None, check_same_thread=False)) as db:
        db.execute("BEGIN EXCLUSIVE")
        db.execute("PRAGMA user_version = 1")  # another process has begun to write to the file
        Timer(5 * BUSY, db.execute, ("COMMIT",)).start()
        async with used(partial(store_of, REP_STORAGE=f"sqlite://{tmp_path}/robots.db")) as storage:
            await storage.put(A, b"y", FOR_LONG)
            assert await storage.get(A) == b"y"


@in_loop
async def test_a_file_that_is_locked_at_the_start_is_set_up_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.storage.sqlite.ATTEMPTS", 1)
    with closing(sqlite3.connect(tmp_path / "robots.db", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        storage = store_of(REP_STORAGE=f"sqlite://{tmp_path}/robots.db")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            await storage.get(A)
        db.execute("COMMIT")
    await storage.put(A, b"x", FOR_LONG)
    assert await storage.get(A) == b"x"
    await storage.close()


@in_loop
async def test_a_call_of_sqlite_is_one_statement_and_the_file_is_closed_at_the_end(tmp_path: Path) -> None:
    storage = store_of(REP_STORAGE=f"sqlite://{tmp_path}/robots.db")
    assert isinstance(storage, SqliteStorage)
    statements: list[str] = []
    storage._db.set_trace_callback(statements.append)
    await storage.put(A, b"x", FOR_LONG)
    await storage.get(A)
    await storage.acquire_lease(A, "me", 10)
    await storage.release_lease(A, "me")
    assert len(statements) == 4
    await storage.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        await storage.get(A)


@in_loop
async def test_a_redis_that_hangs_blocks_no_event_loop(redis_server: RedisServer) -> None:
    storage = store_of(REP_STORAGE=redis_server.url)
    await storage.put(A, b"x", FOR_LONG)
    redis_server.freeze()
    await blocks_no_event_loop(storage.put(A, b"y", FOR_LONG), lambda: redis_server.freeze(False))
    assert await storage.get(A) == b"y"
    await storage.close()


# A store that may be down.


class Hangs(OwnStorage):
    async def get(self, origin: str) -> bytes | None:
        await asyncio.Event().wait()
        return None


def breaker_of(count: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic) -> CircuitBreaker:
    crawler = get_crawler(Spider)
    clock = Clock(time.time, monotonic, asyncio.sleep)
    return CircuitBreaker(Crawl(crawler, RepSettings.read(crawler.settings), clock, LOG, count))


@in_loop
async def test_a_store_that_hangs_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.storage.circuit_breaker.DEADLINE", 0.05)
    counted: list[str] = []
    breaker, storage = breaker_of(counted.append), Hangs("own:")
    assert await breaker.call(storage.get, A, otherwise=None) is None
    assert await breaker.call(storage.get, A, otherwise=None) is None, "and is left alone"
    assert counted == ["rep/storage/error"]


class Cancelled(OwnStorage):
    async def get(self, origin: str) -> bytes | None:
        raise CancelledError


@in_loop
async def test_a_call_that_is_cancelled_is_not_the_stores_failure() -> None:
    counted: list[str] = []
    breaker = breaker_of(counted.append)
    with pytest.raises(CancelledError):
        await breaker.call(Cancelled("own:").get, A, otherwise=None)
    assert counted == []


class ClosesAtOnce(OwnStorage):
    def close(self) -> None:  # type: ignore[override]
        pass


@in_loop
async def test_a_close_that_is_no_coroutine_function_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("scrapy_rep.storage.circuit_breaker.DEADLINE", 0.05)
    await shared_store(ClosesAtOnce("own:"), []).close()
    await asyncio.sleep(0.1)
    gc.collect()
    (message,) = [record.getMessage() for record in caplog.records if record.name == "scrapy_rep"]
    assert "can't be used in 'await' expression" in message


@in_loop
async def test_a_store_that_works_again_is_used_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "scrapy_rep")
    now, storage = [0.0], OwnStorage("own:")
    counted: list[str] = []
    breaker = breaker_of(counted.append, lambda: now[0])
    otherwise: bytes | None = b"otherwise"
    get = partial(breaker.call, storage.get, A, otherwise=otherwise)
    await storage.put(A, b"x", FOR_LONG)
    assert await get() == b"x"
    working, storage.entries = storage.entries, None  # type: ignore[assignment]
    waits = []
    for _ in range(9):
        assert await get() == otherwise
        assert await get() == otherwise, "not asked"
        waits.append(breaker._down_until - now[0])
        now[0] = breaker._down_until
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert counted == ["rep/storage/error"] * 9
    assert await breaker.call(storage.acquire_lease, A, "me", 1.0, otherwise=False)
    storage.entries = working
    assert await get() == b"x"
    levels = [record.levelname for record in caplog.records if record.name == "scrapy_rep" and record.levelno > 10]
    assert levels == ["WARNING", "INFO"], "the first failure, and that the store can be used again"
    storage.entries = None  # type: ignore[assignment]
    await get()
    assert breaker._down_until - now[0] == RETRY_FIRST, "as after the first failure"


@in_loop
async def test_calls_that_fail_together_count_as_one_failure() -> None:
    now, asked, may_fail = [0.0], [], asyncio.Event()

    async def fails() -> None:
        asked.append(now[0])
        await may_fail.wait()
        raise OSError

    breaker = breaker_of(lambda stat: None, lambda: now[0])
    together = asyncio.gather(*(breaker.call(fails, otherwise=None) for _ in range(3)))
    await asyncio.sleep(0)
    may_fail.set()
    await together
    now[0] = RETRY_FIRST
    await asyncio.gather(*(breaker.call(fails, otherwise=None) for _ in range(3)))
    assert asked == [0.0] * 3 + [RETRY_FIRST], "one call finds out whether the store works again"


class GivesText(OwnStorage):
    """As a Redis client with `decode_responses` does."""

    async def get(self, origin: str) -> Any:
        octets = await super().get(origin)
        return octets and octets.decode("latin-1")


@in_loop
async def test_a_store_that_returns_str_counts_as_failing() -> None:
    storage, counted = GivesText("own:"), list[str]()
    await storage.put(A, b"x", FOR_LONG)
    store, origin = shared_store(storage, counted), Origin.of(A)
    assert origin is not None
    entry, lease = await store.find_or_claim(origin, None)
    assert (entry, counted) == (None, ["rep/storage/error"])
    assert lease is not None
    store.give_back(lease)
    await store.close()


@in_loop
async def test_an_entry_that_cannot_be_stored_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    counted = list[str]()
    store, origin = shared_store(OwnStorage("own:"), counted), Origin.of(A)
    assert origin is not None
    _, lease = await store.find_or_claim(origin, None)
    assert lease is not None
    unstorable = Answer(origin.robots_url, reason=b"reset")  # type: ignore[arg-type]  # JSON has no bytes
    store.give_back(lease, Entry(origin.robots_url, outage=outage_after(None, unstorable)))
    await store.close()
    (message,) = [record.getMessage() for record in caplog.records if record.name == "scrapy_rep"]
    assert message.startswith("REP_STORAGE: the store cannot be used (TypeError: Object of type bytes is not JSON")
    assert counted == ["rep/storage/error"]


async def give_back_an_entry(storage: Storage, before: Callable[[], object]) -> list[str]:
    """Take the lease, do what comes `before`, and give the lease back with an entry. Return what was counted."""
    counted, origin = list[str](), Origin.of(A)
    assert origin is not None
    store = shared_store(storage, counted)
    _, lease = await store.find_or_claim(origin, None)
    assert lease is not None
    before()
    failure = Answer(origin.robots_url, 503, reason="HTTP 503", ended_at=time.time())
    store.give_back(lease, Entry(origin.robots_url, outage=outage_after(None, failure)))
    await maybe_deferred_to_future(DeferredList(list(store._under_way)))
    assert not store._under_way, "nothing is kept for the rest of the crawl"
    return counted


@over(["sqlite"])
@in_loop
async def test_a_lease_is_given_back_if_the_entry_cannot_be_put(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def put(*_: object) -> None:
        raise OSError("full")

    async with used(opened) as mine, used(opened) as yours:
        assert await give_back_an_entry(mine, partial(monkeypatch.setattr, mine, "put", put)) == ["rep/storage/error"]
        assert await yours.acquire_lease(A, "you", 10)


@in_loop
async def test_a_full_redis_gives_a_lease_back(redis_server: RedisServer) -> None:
    from redis import Redis  # noqa: PLC0415 - an extra

    store = store_of(REP_STORAGE=redis_server.url)
    with Redis.from_url(redis_server.url) as redis:
        counted = await give_back_an_entry(store, partial(redis.config_set, "maxmemory", "1"))
        redis.config_set("maxmemory", "0")
    assert counted == ["rep/storage/error"]
    assert await store.acquire_lease(A, "you", 10)
    await store.close()


# One bad key.


@in_loop
async def test_a_redis_key_of_another_type_is_that_keys_failure_alone(redis_server: RedisServer) -> None:
    from redis import Redis  # noqa: PLC0415 - an extra

    store = store_of(REP_STORAGE=redis_server.url)
    with Redis.from_url(redis_server.url) as redis:
        for kind in ("entry", "lease"):
            redis.rpush(f"scrapy-rep:1:{kind}:{A}", "somebody else's")
    assert await store.get(A) is None
    assert await store.acquire_lease(A, "me", 10)
    await store.release_lease(A, "me")
    await store.put(B, b"x", FOR_LONG)
    assert await store.get(B) == b"x"
    await store.put(A, b"x", FOR_LONG)
    assert await store.get(A) == b"x", "what is put takes its place"
    await store.close()


@in_loop
async def test_a_value_of_another_type_in_sqlite_is_a_miss(tmp_path: Path) -> None:
    storage = store_of(REP_STORAGE=f"sqlite://{tmp_path}/robots.db")
    await storage.put(A, b"x", FOR_LONG)
    for value in (10**12, "text", 1.5):
        with closing(sqlite3.connect(tmp_path / "robots.db", isolation_level=None)) as db:
            db.execute("UPDATE entries_1 SET octets = ?", (value,))
        assert await storage.get(A) is None
    await storage.close()


# A file that does not stay what it was.


@in_loop
async def test_a_file_that_is_removed_is_created_again_by_the_next_crawl(tmp_path: Path) -> None:
    opened = partial(store_of, REP_STORAGE=f"sqlite://{tmp_path}/robots.db")
    async with used(opened) as storage:
        await storage.put(A, b"x", FOR_LONG)
        (tmp_path / "robots.db").unlink()
        await storage.put(B, b"x", FOR_LONG)
        assert await storage.get(B) == b"x", "the crawl goes on with what it has open"
    async with used(opened) as storage:
        assert await storage.get(A) is None
        await storage.put(A, b"x", FOR_LONG)


# Which store an address names.


def test_a_class_of_ones_own_gets_the_address() -> None:
    path = f"{OwnStorage.__module__}.{OwnStorage.__qualname__}"
    for storage_class in (OwnStorage, path):
        storage = store_of(REP_STORAGE="own://x?y", REP_STORAGES={"own": storage_class})
        assert isinstance(storage, OwnStorage)
        assert storage.address == "own://x?y"


def test_a_class_without_from_crawler_gets_the_address_alone(tmp_path: Path) -> None:
    class Plain(Storage):
        def __init__(self, address: str) -> None:
            self.address = address

        async def get(self, origin: str) -> bytes | None: ...
        async def put(self, origin: str, entry: bytes, lifetime: float) -> None: ...

    storage = store_of(REP_STORAGE="plain:x", REP_STORAGES={"plain": Plain})
    assert isinstance(storage, Plain)
    assert storage.address == "plain:x"


@pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="needs a folder whose rights lie: nobody can create files in /proc"
)
def test_a_file_that_cannot_be_created_stops_the_start() -> None:
    with pytest.raises(
        ValueError, match=r"REP_STORAGE is .*/proc/robots\.db cannot be opened and written.*; set it to another path"
    ):
        store_of(REP_STORAGE="sqlite:///proc/robots.db")


@pytest.mark.parametrize("address", ["sqlite:", "sqlite:/robots.db", "sqlite://robots.db", "sqlite:.", "sqlite:.."])
def test_an_address_of_sqlite_that_names_no_file_stops_the_start(address: str) -> None:
    with pytest.raises(ValueError, match=r"^REP_STORAGE is 'sqlite:.*, but it names no file; set it to 'sqlite:NAME'"):
        store_of(REP_STORAGE=address)


@pytest.mark.parametrize(
    ("address", "path"),
    [("sqlite:///folder/robots.db", "/folder/robots.db"), ("sqlite:///C:/folder/robots.db", "C:/folder/robots.db")],
)
def test_an_absolute_path_of_unix_or_of_windows(address: str, path: str) -> None:
    assert path_of(address) == Path(path)


def test_a_scheme_can_be_taken_away() -> None:
    with pytest.raises(
        ValueError,
        match=r"^REP_STORAGE is 'sqlite:x'; set it to 'memory:' or an address that",
    ):
        store_of(REP_STORAGE="sqlite:x", REP_STORAGES={"sqlite": None})


@pytest.mark.parametrize(
    "address",
    [
        "postgres://me:secret@host/db",
        "redis://me:secret@host:port/db",
        "redis://:secret@host:port/db",
        "redis://host:port/0?password=secret",
        "redis://host:port/0?password=a@secret",
        "redis://me:secret?x@host/0",
        "redis://me:a?secret@host/0",
        "redis://me:secret@host:port/0?password=secret",
    ],
)
def test_a_password_is_never_shown(address: str) -> None:
    with pytest.raises(ValueError, match=r"^REP_STORAGE is ") as error:
        store_of(REP_STORAGE=address)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        ("redis://host:6379/robots", "'/robots' is no database"),
        ("redis://host/0?timeout=5", "unexpected keyword argument 'timeout'"),
        ("redis://host/0?db=robots", "Invalid value for"),  # redis-py quotes the name differently in each release
    ],
)
def test_an_address_of_redis_with_a_mistake_stops_the_start(address: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=r"^REP_STORAGE is 'redis.*; set it to an address such as") as error:
        store_of(REP_STORAGE=address)
    assert wrong in str(error.value)


@in_loop
async def test_every_address_that_redis_py_accepts_can_be_used(redis_server: RedisServer) -> None:
    server = redis_server.url.rpartition("/")[0]
    for number, end in enumerate(
        ("", "/", "/1", "/1/", "/%31", "/x?db=1", "?db=1", "/1?max_connections=1", "/1?client_name=crawl")
    ):
        async with used(partial(store_of, REP_STORAGE=server + end)) as storage:
            await storage.put(A, b"%d" % number, FOR_LONG)
            assert await storage.get(A) == b"%d" % number
    for address in ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock"):
        store_of(REP_STORAGE="redis:", REDIS_URL=address)


@in_loop
async def test_a_bare_redis_takes_scrapy_redis_s_address(redis_server: RedisServer) -> None:
    storage = store_of(REP_STORAGE="redis:", REDIS_URL=redis_server.url)
    await storage.put(A, b"x", FOR_LONG)
    assert await storage.get(A) == b"x"
    await storage.close()


def test_a_bare_redis_without_scrapy_redis_s_address_stops_the_start() -> None:
    with pytest.raises(ValueError, match="it stands for REDIS_URL, which is not set; set REDIS_URL to"):
        store_of(REP_STORAGE="redis:")


@in_loop
async def test_redis_keys_are_prefixed_and_expire(redis_server: RedisServer) -> None:
    from redis import Redis  # noqa: PLC0415 - an extra

    storage = store_of(REP_STORAGE=redis_server.url)
    await storage.put(A, b"x", 100.0)
    await storage.acquire_lease(A, "me", 100.0)
    await storage.close()
    with Redis.from_url(redis_server.url) as redis:
        keys = {key: redis.pttl(key) for key in redis.scan_iter()}
    assert set(keys) == {b"scrapy-rep:1:entry:https://a.example", b"scrapy-rep:1:lease:https://a.example"}
    assert all(90_000 < milliseconds <= 100_000 for milliseconds in keys.values())
