"""A store that hangs holds up neither the crawl nor the end of its process."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from processes import REACTORS, crawl_process
from redis_server import BINARY, MISSING, RedisServer
from web import Web

from scrapy_rep.storage.sqlite import SqliteStorage

RULES = "user-agent: *\ndisallow: /private\n"
DEADLINE = 1.0  # seconds for one call; the package has five, but the tests wait for them


@contextmanager
def locked(path: Path) -> Iterator[str]:
    """By another connection, which writes for ever."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        yield f"sqlite://{path}"


@contextmanager
def with_foreign_tables(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE entries_1")
        db.execute("CREATE TABLE entries_1 (id INTEGER)")
        db.commit()
    yield f"sqlite://{path}"


@contextmanager
def silent_redis(_path: Path) -> Iterator[str]:
    """Accepts connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@contextmanager
def frozen_redis(_path: Path) -> Iterator[str]:
    with RedisServer() as server:
        server.freeze()
        yield server.url


@contextmanager
def calls_that_never_return(_path: Path) -> Iterator[str]:
    yield "hanging:get,put,acquire_lease,release_lease,close"


@contextmanager
def puts_that_never_return(_path: Path) -> Iterator[str]:
    yield "hanging:put"


@dataclass
class Outcome:
    """What a crawl in a process of its own did."""

    ends: list[str]
    log: str


def outcome_of(urls: list[str], settings: dict[str, Any]) -> Outcome:
    settings = {**settings, "LOG_FORMAT": "%(levelname)s: %(message)s"}
    constants = {"scrapy_rep.storage.circuit_breaker.DEADLINE": DEADLINE}
    with crawl_process(urls, settings, constants=constants) as process:
        ended = process.ended(120)  # otherwise the store has held it up
    return Outcome(sorted(end["end"] for end in ended.ends), ended.log)


async def set_up(path: Path) -> None:
    storage = SqliteStorage(f"sqlite://{path}")
    await storage.put("https://a.example", b"x", 1_000.0)
    await storage.close()


STORES: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "sqlite-locked": (locked, {}),
    "sqlite-with-foreign-tables": (with_foreign_tables, {}),
    "redis-silent": (silent_redis, {}),
    "redis-frozen": (frozen_redis, {}),
    "own": (calls_that_never_return, {}),
    "own-by-another-reactor": (calls_that_never_return, REACTORS["select"]),
    "own-at-the-end": (puts_that_never_return, {}),
}


@pytest.fixture(scope="module")
def outcomes(web: Web, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Outcome]]:
    """A crawl with each of these stores, side by side."""
    own = {"REP_STORAGES": {"hanging": "hanging_storage.HangingStorage"}}
    sites = [web.robots(RULES) for _ in range(20)]
    urls = [site.url(page) for site in sites for page in ("/", "/private")]

    def outcome(name: str) -> Outcome:
        store, settings = STORES[name]
        path = tmp_path_factory.mktemp(name) / "robots.db"
        asyncio.run(set_up(path))
        with store(path) as address:
            return outcome_of(urls, {**own, **settings, "REP_STORAGE": address})

    names = [name for name in STORES if "redis" not in name or (BINARY and find_spec("redis"))]
    with ThreadPoolExecutor(len(names)) as pool:
        return {name: pool.submit(outcome, name) for name in names}


@pytest.mark.parametrize("name", STORES)
def test_the_crawl_goes_on_and_the_process_ends(outcomes: dict[str, Future[Outcome]], name: str) -> None:
    if name not in outcomes:
        pytest.skip(MISSING)
    outcome = outcomes[name].result()
    assert outcome.ends == ["ForbiddenByRobots"] * 20 + ["HTTP 200"] * 20
    assert outcome.log.count("WARNING: REP_STORAGE: ") == 1
    assert outcome.log.count("Traceback") == 0
