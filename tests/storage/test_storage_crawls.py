"""What one crawl knows, another knows: across runs by SQLite, across a fleet by Redis, and when either is down."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import time as seconds_since_the_epoch
from typing import Any

import pytest
from crawling import ADDON, Crawl, Time, crawl, in_turn, with_clock
from dict_storage import DictStorage
from processes import REACTORS, crawled
from pytest_twisted import ensureDeferred
from redis_server import RedisServer
from scrapy import Spider
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred
from web import RULES, Web, answer, redirect

from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse, entry_from_bytes, entry_to_bytes
from scrapy_rep.protocol.outage import BACKOFFS
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_parsed
from scrapy_rep.storage import Storage, storage_of
from scrapy_rep.storage.shared_store import NOT_SHARED

DOWN = answer(status=503)
DAY = 24 * 3600.0

Address = Callable[[], str]


# Wraps coroutines that await asyncio's futures, because these tests are run as Twisted's coroutines.
task = deferred_from_coro


def opened(address: str) -> Storage:
    crawler = get_crawler(Spider, {**ADDON, "REP_STORAGE": address})
    storage = storage_of(crawler, RepSettings.read(crawler.settings))
    assert storage is not None
    return storage


def everything_in(address: str) -> dict[str, bytes]:
    """The entries by origin."""
    if address.startswith("sqlite:"):
        with closing(sqlite3.connect(address.removeprefix("sqlite://"))) as db:
            return dict(db.execute("SELECT origin, octets FROM entries_1"))
    from redis import Redis  # noqa: PLC0415 - an extra

    prefix = b"scrapy-rep:1:entry:"
    with Redis.from_url(address) as redis:
        return {key.removeprefix(prefix).decode(): redis.get(key) for key in redis.scan_iter(prefix + b"*")}


# One crawl after another.


@ensureDeferred
async def test_the_next_crawl_fetches_nothing_while_the_answer_is_fresh(web: Web, address: str) -> None:
    sites = [web.robots(RULES), web.robots(answer(status=404)), web.robots("User-agent: *\nDisallow:")]
    urls = [site.url("/private") for site in sites]
    first = await crawl(*urls, settings={"REP_STORAGE": address})
    second = await crawl(*urls, settings={"REP_STORAGE": address})
    assert list(first.refused) == list(second.refused) == urls[:1]
    assert str(second.refused[urls[0]]) == str(first.refused[urls[0]]), "the same reason, line and rule"
    assert [len(site.robots_requests) for site in sites] == [1, 1, 1]
    assert (first.stats["rep/storage/miss"], second.stats["rep/storage/hit"]) == (3, 3)
    assert "robotstxt/request_count" not in second.stats


@ensureDeferred
async def test_robots_parsed_is_sent_for_what_was_stored(web: Web, address: str) -> None:
    site, seen = web.robots(RULES), []

    def parsed(robotparser: Any, request: Any) -> None:
        seen.append(robotparser.allowed(site.url("/private"), "x"))

    for _ in range(2):
        await crawl(
            site.url("/a"),
            site.url("/b"),
            settings={"REP_STORAGE": address},
            prepare=lambda crawler: crawler.signals.connect(parsed, signal=robots_parsed),
        )
    assert seen == [False, False]


@ensureDeferred
async def test_the_backoff_and_the_outages_beginning_outlive_the_crawl(web: Web, address: str) -> None:
    site, time = web.robots(DOWN), Time()
    settings = {"REP_STORAGE": address}
    asked, allowed = [], []
    first, second = BACKOFFS[:2]
    for seconds in (0.0, first - 0.1, 0.1, second - 0.1, 0.1, 10 * DAY, 10 * DAY, 10 * DAY):
        time.now += seconds
        result = await crawl(site.url("/"), settings=settings, robots=with_clock(time))
        asked.append(len(site.robots_requests))
        allowed.append(bool(result.pages))
    assert asked == [1, 1, 2, 2, 3, 4, 5, 6]
    assert allowed == [False] * 7 + [True]


@ensureDeferred
async def test_failures_31_days_apart_are_several_outages(web: Web, address: str) -> None:
    site, time = web.robots(DOWN), Time()
    for days in (0, 31, 31):
        time.now += days * DAY
        result = await crawl(site.url("/"), settings={"REP_STORAGE": address}, robots=with_clock(time))
        assert not result.pages
    assert len(site.robots_requests) == 3


@ensureDeferred
async def test_an_outage_found_in_the_store_is_logged(web: Web, address: str) -> None:
    site, time = web.robots(DOWN), Time()
    for _ in range(2):
        result = await crawl(site.url("/"), settings={"REP_STORAGE": address}, robots=with_clock(time))
        assert len(site.robots_requests) == 1, "the second one takes the store's word for it"
        warning, summary = result.messages(logger="scrapy_rep")
        assert warning.endswith("Requests to this site are refused (RFC 9309 2.3.1.4)")
        assert warning.startswith(f"{site.robots_url}: HTTP 503. ")
        assert summary == (
            "1 request was refused because robots.txt was unreachable; 1 origin had outages:"
            f" 1 x {site.robots_url} (HTTP 503)"
        )


@ensureDeferred
async def test_rules_of_a_crawl_before_are_obeyed_while_robots_txt_is_unreachable(web: Web, address: str) -> None:
    site, time = web.robots([answer(RULES), DOWN]), Time()
    for days in (0, 1, 20, 20):
        time.now += days * DAY
        result = await crawl(
            site.url("/"), site.url("/private"), settings={"REP_STORAGE": address}, robots=with_clock(time)
        )
        assert (list(result.pages), list(result.refused)) == ([site.url("/")], [site.url("/private")])


@ensureDeferred
async def test_5_2_2_5_no_store_is_for_memory_alone(web: Web, address: str) -> None:
    site = web.robots(answer(RULES, headers={"Cache-Control": "no-store"}))
    for asked in (1, 2):
        result = await crawl(site.url("/private"), site.url("/"), settings={"REP_STORAGE": address})
        assert len(result.refused) == 1
        assert len(site.robots_requests) == asked
    assert everything_in(address) == {site.origin: NOT_SHARED}


@ensureDeferred
async def test_5_2_2_5_an_outage_is_stored_all_the_same(web: Web, address: str) -> None:
    site, time = web.robots([answer(RULES, headers={"Cache-Control": "no-store"}), DOWN]), Time()
    result = await crawl(
        site.url("/private"), spider=in_turn(time, DAY), settings={"REP_STORAGE": address}, robots=with_clock(time)
    )
    assert result.ends == ["ForbiddenByRobots"] * 2, "from memory, as stale rules"
    (octets,) = everything_in(address).values()
    entry = entry_from_bytes(octets, site.robots_url)
    assert entry is not None
    assert entry.stored is None
    assert entry.outage is not None


@ensureDeferred
async def test_answers_judged_by_another_policy_are_fetched_again(web: Web, address: str) -> None:
    site = web.robots(answer(status=403))
    stores = {"REP_STORAGE": address}
    assert len((await crawl(site.url("/"), settings={**stores, "REP_STATUS_POLICY": "cautious"})).refused) == 1
    assert len((await crawl(site.url("/"), settings=stores)).pages) == 1
    assert len(site.robots_requests) == 2


@ensureDeferred
async def test_the_target_of_a_redirect_is_stored_for_each_crawled_origin(web: Web, address: str) -> None:
    target = web.robots(RULES)
    source = web.robots(redirect(target.robots_url))
    await crawl(source.url("/"), settings={"REP_STORAGE": address})
    assert set(everything_in(address)) == {source.origin}
    await crawl(source.url("/"), target.url("/"), settings={"REP_STORAGE": address})
    assert set(everything_in(address)) == {source.origin, target.origin}
    result = await crawl(source.url("/private"), target.url("/private"), settings={"REP_STORAGE": address})
    assert len(result.refused) == 2
    assert (len(source.robots_requests), len(target.robots_requests)) == (1, 2)


# A fleet.


@ensureDeferred
async def test_crawlers_at_the_same_time_fetch_robots_txt_once(web: Web, address: str) -> None:
    sites = [web.robots(answer(RULES, delay=0.2)) for _ in range(5)]
    urls = [site.url(path) for site in sites for path in ("/", "/private")]
    begun = [Deferred.fromCoroutine(crawl(*urls, settings={"REP_STORAGE": address})) for _ in range(4)]
    results: list[Crawl] = [await crawling for crawling in begun]
    assert [(len(r.pages), len(r.refused)) for r in results] == [(5, 5)] * 4
    assert [len(site.robots_requests) for site in sites] == [1] * 5


@ensureDeferred
async def test_no_crawler_waits_for_an_answer_with_no_store(web: Web, address: str) -> None:
    site = web.robots(answer(RULES, headers={"Cache-Control": "no-store"}))
    await crawl(site.url("/"), settings={"REP_STORAGE": address})
    time = Time()  # to wait for a lease would be to sleep
    result = await crawl(site.url("/"), settings={"REP_STORAGE": address}, robots=with_clock(time))
    assert (len(result.pages), time.slept) == (1, [])


@ensureDeferred
async def test_a_crawler_without_the_lease_waits_for_the_entry(web: Web, address: str) -> None:
    site = web.robots("User-agent: *\nDisallow: /other\n")
    storage = opened(address)
    assert await task(storage.acquire_lease(site.origin, "another", 60))
    crawling = Deferred.fromCoroutine(crawl(site.url("/private"), settings={"REP_STORAGE": address}))
    await task(sleep(0.3))
    assert site.requests == []
    now = seconds_since_the_epoch()
    stored = StoredResponse(
        Answer("", 200, AccessResult.SUCCESS, "HTTP 200"), now, now + DAY, RobotsTxt.parse(RULES.encode())
    )
    await task(storage.put(site.origin, entry_to_bytes(Entry(site.robots_url, stored)), DAY))
    result: Crawl = await crawling
    assert list(result.refused) == [site.url("/private")]
    assert site.requests == []
    await task(storage.close())


@ensureDeferred
async def test_a_crawler_waits_for_a_lease_only_until_it_expires(web: Web, address: str) -> None:
    site = web.robots(RULES)
    storage = opened(address)
    assert await task(storage.acquire_lease(site.origin, "the dead", 0.5))
    result = await crawl(site.url("/private"), settings={"REP_STORAGE": address})
    assert len(result.refused) == 1
    assert len(site.robots_requests) == 1
    await task(storage.close())


@ensureDeferred
async def test_a_crawler_waits_for_a_lease_as_long_as_a_fetch_may_take(web: Web, address: str) -> None:
    site, time = web.robots(RULES), Time()
    storage, began = opened(address), time.now
    assert await task(storage.acquire_lease(site.origin, "one that never ends", 600))
    settings = {"REP_STORAGE": address, "REP_FETCH_TIMEOUT": 30, "REP_FETCH_RETRIES": 1}
    result = await crawl(site.url("/private"), settings=settings, robots=with_clock(time))
    assert len(result.refused) == 1
    longest_fetch = 30 * (1 + 1)
    assert longest_fetch < time.now - began < 1.5 * longest_fetch, "the other crawler may be at it for as long"
    await task(storage.close())


@ensureDeferred
async def test_leases_are_given_back(web: Web, address: str) -> None:
    sites = [web.robots(RULES), web.robots(DOWN), web.robots(redirect("ftp://example.com/"))]
    await crawl(*(site.url("/") for site in sites), settings={"REP_STORAGE": address})
    storage = opened(address)
    for site in sites:
        assert await task(storage.acquire_lease(site.origin, "another", 60))
    await task(storage.close())


# A store that is down.


class Broken(DictStorage):
    async def get(self, origin: str) -> bytes | None:
        raise ConnectionError("it is\x1b[31m down")

    acquire_lease = put = release_lease = close = get  # type: ignore[assignment]


@ensureDeferred
async def test_a_store_that_is_down_is_a_miss_a_stat_and_one_warning(web: Web) -> None:
    sites = [web.robots(RULES) for _ in range(20)]
    settings = {"REP_STORAGE": "broken:", "REP_STORAGES": {"broken": Broken}}
    result = await crawl(*(s.url(path) for s in sites for path in ("/", "/private")), settings=settings)
    assert (len(result.pages), len(result.refused)) == (20, 20)
    (warning,) = result.messages(logger="scrapy_rep")
    assert warning == (
        "REP_STORAGE: the store cannot be used (ConnectionError: it is\\x1b[31m down); the crawl goes on without it"
        " and retries"
    )
    assert result.stats["rep/storage/error"] >= 1
    assert result.tracebacks == []


class BrokenButCloses(Broken):
    async def close(self) -> None:  # type: ignore[override]  # the other's is its `get`
        """As a client that never got a connection."""


@ensureDeferred
async def test_a_store_that_is_closed_is_not_logged_as_used_again(web: Web) -> None:
    settings = {"REP_STORAGE": "broken:", "REP_STORAGES": {"broken": BrokenButCloses}}
    result = await crawl(web.robots(RULES).url("/"), settings=settings)
    assert not [m for m in result.messages(logging.INFO, "scrapy_rep") if "used again" in m]


@ensureDeferred
async def test_a_store_that_is_down_is_tried_again_with_backoff(web: Web) -> None:
    site, time = web.robots(answer(RULES, headers={"Cache-Control": "no-store"})), Time()
    settings = {"REP_STORAGE": "broken:", "REP_STORAGES": {"broken": Broken}}
    # A day apart: each fetch finds it down once and leaves it alone from then on.
    result = await crawl(site.url("/"), spider=in_turn(time, DAY, DAY), settings=settings, robots=with_clock(time))
    assert result.stats["rep/storage/error"] == 4, "three fetches, and the closing"
    assert len(result.messages(logger="scrapy_rep")) == 1


@ensureDeferred
async def test_while_redis_is_stopped_crawls_decide_without_it(web: Web, redis_server: RedisServer) -> None:
    site, time = web.robots(answer(RULES)), Time()
    settings = {"REP_STORAGE": redis_server.url}
    await crawl(site.url("/"), settings=settings)
    redis_server.stop()
    others = [web.robots(RULES) for _ in range(5)]
    urls = [s.url(path) for s in others for path in ("/", "/private")]
    result = await crawl(*urls, settings=settings)
    assert (len(result.pages), len(result.refused)) == (5, 5)
    assert len(result.messages(logger="scrapy_rep")) == 1
    redis_server.start()
    result = await crawl(*urls, settings=settings, robots=with_clock(time))
    assert (len(result.pages), len(result.refused)) == (5, 5)
    assert result.messages(logger="scrapy_rep") == []
    assert "rep/storage/error" not in result.stats


# SQLite's file.


def garble(file: Path, begin: int) -> bytes:
    """Overwrite it from that octet on. Returns what is in it then."""
    octets = file.read_bytes()[:begin] + os.urandom(20_000)
    file.write_bytes(octets)
    return octets


@pytest.mark.parametrize("begin", [0, 100, 5_000], ids=["all", "all-but-the-header", "a-later-page"])
@ensureDeferred
async def test_a_damaged_file_is_a_store_that_fails(web: Web, tmp_path: Path, begin: int) -> None:
    site, file = web.robots(RULES), tmp_path / "robots.db"
    settings = {"REP_STORAGE": f"sqlite://{file}"}
    await crawl(site.url("/"), settings=settings)
    octets = garble(file, begin)
    result = await crawl(site.url("/private"), site.url("/"), settings=settings)
    assert (len(result.pages), len(result.refused), len(site.robots_requests)) == (1, 1, 2)
    (warning,) = result.messages(logger="scrapy_rep")
    assert warning.startswith("REP_STORAGE: the store cannot be used (DatabaseError: ")
    assert str(file) in warning
    assert result.stats["rep/storage/error"] >= 1
    assert result.tracebacks == []
    if begin == 0:
        assert file.read_bytes() == octets


@ensureDeferred
async def test_a_locked_file_is_a_store_that_fails(web: Web, tmp_path: Path) -> None:
    site, file = web.robots(RULES), tmp_path / "robots.db"
    settings = {"REP_STORAGE": f"sqlite://{file}"}
    await crawl(site.url("/"), settings=settings)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        result = await crawl(site.url("/private"), site.url("/"), settings=settings)
    assert (len(result.pages), len(result.refused)) == (1, 1)
    (warning,) = result.messages(logger="scrapy_rep")
    assert warning.startswith(f"REP_STORAGE: the store cannot be used (OperationalError: {file}: database is locked)")


@ensureDeferred
async def test_a_file_that_is_damaged_while_open_fails_by_its_name(web: Web, tmp_path: Path) -> None:
    file = tmp_path / "robots.db"
    await crawl(web.robots(RULES).url("/"), settings={"REP_STORAGE": f"sqlite://{file}"})
    storage = opened(f"sqlite://{file}")
    garble(file, 0)
    with pytest.raises(sqlite3.DatabaseError, match=f"^{file}: "):
        await task(storage.put("https://a.example", b"x", DAY))
    await task(storage.close())


def everything_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def file_instead_of_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("x")


UNUSABLE: dict[str, Callable[[Path], object]] = {
    "a-folder": lambda path: path.mkdir(),
    "a-pipe": os.mkfifo,
    "below-a-file": file_instead_of_folder,
}


@pytest.mark.parametrize("make", UNUSABLE.values(), ids=UNUSABLE)
@ensureDeferred
async def test_a_path_that_cannot_be_a_file_stops_the_start(tmp_path: Path, make: Callable[[Path], object]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "robots.db"
    make(path)
    before = everything_below(tmp_path)
    with pytest.raises(ValueError, match=r"^REP_STORAGE is ") as error:
        await crawl(settings={"REP_STORAGE": f"sqlite://{path}"})
    assert f", but {path} " in str(error.value)
    assert "; set it to " in str(error.value)
    assert everything_below(tmp_path) == before


def database_with_a_table_of_this_name(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE entries_1 (id INTEGER)")


FOREIGN: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("Remember the milk.\n" * 100),
    "noise": lambda path: path.write_bytes(os.urandom(100_000)),
    "another-database": database_with_a_table_of_this_name,
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
@ensureDeferred
async def test_the_crawl_goes_on_without_a_file_that_is_no_store(
    web: Web, tmp_path: Path, make: Callable[[Path], object]
) -> None:
    site, path = web.robots(RULES), tmp_path / "robots.db"
    make(path)
    before = everything_below(tmp_path)[path]
    result = await crawl(site.url("/private"), site.url("/"), settings={"REP_STORAGE": f"sqlite://{path}"})
    assert (len(result.pages), len(result.refused)) == (1, 1)
    (warning,) = result.messages(logger="scrapy_rep")
    assert str(path) in warning
    if make is not database_with_a_table_of_this_name:  # SQLite notes in this file that it has a write-ahead log
        assert everything_below(tmp_path)[path] == before


@pytest.mark.parametrize("where", ["project", "nowhere", "settings-module"])
@ensureDeferred
async def test_a_name_is_a_file_in_the_projects_data_directory_or_the_working_directory(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if where == "project":
        (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    elif where == "settings-module":  # as under scrapyd, or in a container
        monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "scrapy.settings.default_settings")
    site = web.robots(RULES)
    result = await crawl(site.url("/"), site.url("/private"), settings={"REP_STORAGE": "sqlite:robots.db"})
    assert (list(result.pages), list(result.refused)) == ([site.url("/")], [site.url("/private")])
    file = tmp_path / ("robots.db" if where != "project" else ".scrapy/robots.db")
    assert file.is_file()
    said = [m for m in result.messages(logging.INFO, "scrapy_rep") if m.startswith("REP_STORAGE: ")]
    assert said == (
        []
        if where == "project"
        else [f"REP_STORAGE: 'sqlite:robots.db' is {file}, in the working directory, because there is no scrapy.cfg"]
    )


# A store that cannot be built.


def fails(error: Exception) -> type[Storage]:
    def init(self: Storage, address: str) -> None:
        raise error

    return type(
        "Fails", (DictStorage,), {"__init__": init, "from_crawler": classmethod(lambda cls, _, address: cls(address))}
    )


@pytest.mark.parametrize(
    "error", [NotConfigured("no licence"), OSError("no licence"), ValueError("no licence"), KeyError("no licence")]
)
@ensureDeferred
async def test_any_exception_of_a_store_that_is_built_stops_the_start(web: Web, error: Exception) -> None:
    site = web.robots(RULES)
    settings = {"REP_STORAGE": "own://me:secret@x", "REP_STORAGES": {"own": fails(error)}}
    with pytest.raises(ValueError, match=r"^REP_STORAGE is 'own://me:\.\.\.@x'.*no licence"):
        await crawl(site.url("/private"), settings=settings)
    assert site.requests == []


# Every reactor.


@pytest.mark.parametrize("reactor", REACTORS)
def test_every_reactor(web: Web, address: str, reactor: str) -> None:
    site = web.robots(RULES)
    settings = {**REACTORS[reactor], "REP_STORAGE": address}
    for _ in range(2):
        ended = crawled([site.url("/"), site.url("/private")], settings)
        assert (ended.pages, ended.refused) == ([site.url("/")], [site.url("/private")])
        assert [message for message in ended.warnings if "REP_" in message or "robots.txt" in message] == []
    assert len(site.robots_requests) == 1


@pytest.mark.parametrize(
    ("vary", "same", "other"),
    [
        pytest.param("Accept-Encoding", "+", "+", id="nothing"),
        pytest.param("Accept-Encoding, user-agent", "+", "-", id="user-agent"),
        pytest.param("Cookie", "-", "-", id="another-field"),
        pytest.param("*", "-", "-", id="everything"),
    ],
)
@ensureDeferred
async def test_rfc9111_4_1_an_answer_is_used_only_for_requests_that_its_vary_matches(
    web: Web, tmp_path: Path, vary: str, same: str, other: str
) -> None:
    """The site first allows and later forbids everything. `+`: the first answer is used."""
    store = {"REP_STORAGE": f"sqlite://{tmp_path / 'robots.db'}"}
    site = web.robots(answer("user-agent: *\ndisallow:\n", headers={"Vary": vary}))
    await crawl(site.url("/a"), settings={**store, "USER_AGENT": "OpenBot/1.0"})
    site.change("/robots.txt", answer("user-agent: *\ndisallow: /\n", headers={"Vary": vary}))
    for name, expected in (("OtherBot/1.0", other), ("OpenBot/1.0", same)):
        copied = tmp_path / f"{name.partition('/')[0]}.db"
        copied.write_bytes((tmp_path / "robots.db").read_bytes())
        settings = {"REP_STORAGE": f"sqlite://{copied}", "USER_AGENT": name}
        result = await crawl(site.url("/b"), settings=settings)
        assert ("+" if result.pages else "-") == expected
