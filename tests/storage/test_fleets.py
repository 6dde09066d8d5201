"""Crawlers that share nothing but a store, killed at random moments."""

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

from scrapy_rep.protocol.entry import entry_from_bytes

SIZES = pytest.mark.parametrize(
    ("origins", "crawlers", "kills"), [(20, 3, 2), pytest.param(500, 8, 20, marks=pytest.mark.full_size)]
)


@SIZES
def test_a_fleet_asks_each_origin_once(web: Web, address: str, origins: int, crawlers: int, kills: int) -> None:
    sites = open_sites(web, origins)
    account = fleet(sites, {"REP_STORAGE": address}, crawlers=crawlers)
    assert account.is_complete(origins)
    assert account.asked == [1] * origins


@SIZES
def test_a_fleet_whose_crawlers_are_killed_ends_each_request(
    web: Web, address: str, origins: int, crawlers: int, kills: int
) -> None:
    sites = open_sites(web, origins, delay=0.3)
    # The leases of a crawler that was killed are free for others sooner than they would be.
    constants = {f"scrapy_rep.storage.shared_store.{name}": n for name, n in (("LEASE_SECONDS", 4), ("RENEW_EVERY", 1))}
    settings = {"REP_STORAGE": address}
    account = fleet(sites, settings, crawlers=crawlers, kills=kills, between=(0.2, 0.7), constants=constants)
    assert account.kills == kills
    assert account.is_complete(origins)
    assert max(account.asked) <= 1 + account.kills


def test_pages_are_judged_although_redis_comes_and_goes(web: Web, redis_server: RedisServer) -> None:
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


@pytest.mark.parametrize("kills", [6, pytest.param(50, marks=pytest.mark.full_size)])
def test_no_writer_that_is_killed_tears_an_entry(tmp_path: Path, kills: int) -> None:
    file = tmp_path / "robots.db"
    assert torn_by_killed_writers(file, writers=3, kills=kills) == (0, kills + 3)
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT origin, octets FROM entries_1").fetchall()
    assert rows
    assert all(entry_from_bytes(octets, f"{origin}/robots.txt") is not None for origin, octets in rows)
    assert sorted(os.listdir(tmp_path)) == ["robots.db"], "nothing else is left"
