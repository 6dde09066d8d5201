"""Crawlers that share nothing but a store, killed at random moments: a bounded size of tests/benchmarks/storage.py."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from fleets import fleet, open_sites, torn_by_killed_writers
from redis_server import RedisServer
from web import Web

from scrapy_rep.protocol.entry import decoded


@pytest.fixture(params=["sqlite", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/robots.db"
    url: str = request.getfixturevalue("redis_server").url
    return url


def test_a_fleet_asks_each_origin_once(web: Web, address: str) -> None:
    sites = open_sites(web, 30)
    account = fleet(sites, {"REP_STORAGE": address}, crawlers=4)
    assert account.is_complete(30)
    assert account.asked == [1] * 30


def test_a_fleet_whose_crawlers_are_killed_answers_all_the_same(web: Web, address: str) -> None:
    sites = open_sites(web, 30, delay=0.3)
    account = fleet(sites, {"REP_STORAGE": address}, crawlers=3, kills=3, between=(0.7, 1.2))
    assert account.kills == 3
    assert account.is_complete(30)
    assert max(account.asked) <= 1 + account.kills


def test_a_redis_that_comes_and_goes_loses_nothing(web: Web, redis_server: RedisServer) -> None:
    sites = open_sites(web, 60, delay=0.3)

    def come_and_go() -> None:
        for _ in range(2):
            time.sleep(0.7)
            redis_server.stop()
            time.sleep(0.7)
            redis_server.start()

    coming_and_going = threading.Thread(target=come_and_go)
    account = fleet(sites, {"REP_STORAGE": redis_server.url}, crawlers=3, meanwhile=coming_and_going.start)
    coming_and_going.join()
    assert account.is_complete(60)
    assert max(account.asked) <= 3


def test_no_writer_that_is_killed_tears_an_entry(tmp_path: Path) -> None:
    file = tmp_path / "robots.db"
    assert torn_by_killed_writers(file, writers=3, kills=6) == (0, 9)
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT origin, octets FROM entries_1").fetchall()
    assert rows
    assert all(decoded(octets, f"{origin}/robots.txt") is not None for origin, octets in rows)
    assert sorted(os.listdir(tmp_path)) == ["robots.db"], "nothing was set aside"
