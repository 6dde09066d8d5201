"""Freshness, revalidation and stale rules in real crawls (RFC 9111; RFC 9309 2.3.1.4 and 2.4)."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from crawling import ADDON, BUILTIN, Crawl, Time, crawl, in_turn, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Response
from web import RULES, Route, Site, Web, answer, redirect

from scrapy_rep import AccessResult
from scrapy_rep.protocol.outage import BACKOFFS
from scrapy_rep.settings import OCTETS_OF_ORIGIN

HOUR, DAY = 3600.0, 24 * 3600.0
DOWN = answer(status=503)


def http_date(time: Time, ago: float = 0.0) -> str:
    return format_datetime(datetime.fromtimestamp(time.now - ago, timezone.utc), usegmt=True)


async def ends(site: Site, time: Time, *steps: float, path: str = "/private", **settings: Any) -> Crawl:
    """Request the page at once, and again after each of these seconds. `ends` has the result of each request."""
    return await crawl(site.url(path), spider=in_turn(time, *steps), robots=with_clock(time), settings=settings)


def short(result: Crawl) -> str:
    """`-` for each refusal by a rule, `u` for unreachable, `+` for a page."""
    names = {"page": "+", "ForbiddenByRobots": "-", "RobotsUnreachable": "u"}
    return "".join(names[end] for end in result.ends)


# Freshness.


@pytest.mark.parametrize(
    ("headers", "hours"),
    [
        pytest.param({}, 24, id="RFC9309-2.4-nothing-said"),
        pytest.param({"Cache-Control": "max-age=7200"}, 2, id="RFC9111-5.2.2.1"),
        pytest.param({"Cache-Control": "no-store"}, 1, id="REP_LIFETIME_MIN"),
        pytest.param({"Cache-Control": "max-age=9999999"}, 24, id="RFC9309-2.4-at-most-24-hours"),
        pytest.param({"Age": "72000"}, 4, id="RFC9111-4.2.3"),
    ],
)
@ensureDeferred
async def test_when_robots_txt_is_requested_again(web: Web, headers: dict[str, str], hours: int) -> None:
    site, lifetime = web.robots(answer(RULES, headers=headers)), hours * HOUR
    # Before the last tenth of the lifetime, in which robots.txt is fetched in the background.
    assert short(await ends(site, Time(), 0.89 * lifetime, 0.11 * lifetime, 0.89 * lifetime, path="/")) == "++++"
    assert site.targets == ["/robots.txt", "/", "/", "/robots.txt", "/", "/"]


@ensureDeferred
async def test_the_minimum_lifetime_is_a_setting(web: Web) -> None:
    site = web.robots(answer(RULES, headers={"Cache-Control": "no-cache"}))
    await ends(site, Time(), 59.0, 61.0, REP_LIFETIME_MIN=120)
    assert len(site.robots_requests) == 2
    await ends(site, Time(), 53.0, 8.0, REP_LIFETIME_MIN=0)
    assert len(site.robots_requests) == 4, "60 seconds are the minimum"


@pytest.mark.parametrize("control", ["no-cache", "max-age=0", "no-store"])
@ensureDeferred
async def test_an_answer_decides_about_the_requests_that_waited_for_it(web: Web, control: str) -> None:
    site = web.robots(answer(RULES, headers={"Cache-Control": control}))
    urls = [site.url("/"), site.url("/private")]
    result = await crawl(*urls, settings={"REP_LIFETIME_MIN": 0})
    assert list(result.pages) == urls[:1]
    verdict = result.refused[urls[1]].verdict
    assert verdict.access is AccessResult.SUCCESS


@ensureDeferred
async def test_the_minimum_of_60_seconds_begins_with_the_last_answer_of_a_chain(web: Web) -> None:
    class Slow(Time):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(100 * seconds)

    no_store = {"Cache-Control": "no-store"}
    site = web.site({"/robots.txt": redirect("/a", headers=no_store), "/a": [DOWN, answer(RULES, headers=no_store)]})
    settings = {"REP_LIFETIME_MIN": 0, "REP_FETCH_RETRIES": 1}
    result = await crawl(site.url("/"), site.url("/private"), robots=with_clock(Slow()), settings=settings)
    assert (len(result.pages), len(result.refused)) == (1, 1)
    assert site.targets[:3] == ["/robots.txt", "/a", "/a"]
    assert len(site.robots_requests) == 1


@ensureDeferred
async def test_an_expired_404_is_requested_again(web: Web) -> None:
    site, time = web.robots([answer(status=404, headers={"Cache-Control": "max-age=7200"}), answer(RULES)]), Time()
    assert short(await ends(site, time, 1.7 * HOUR, 0.4 * HOUR)) == "++-"


@ensureDeferred
async def test_a_304_is_an_error_of_the_server(web: Web) -> None:
    site = web.robots(answer(status=304))
    result = await ends(site, Time(), path="/")
    assert short(result) == "u"
    assert len(site.robots_requests) == 1


@ensureDeferred
async def test_in_the_last_tenth_of_the_lifetime_a_refresh_delays_no_request(web: Web) -> None:
    site, time = web.robots(RULES), Time()
    result = await ends(site, time, 0.89 * DAY, 0.02 * DAY, 0.5 * DAY, path="/")
    assert short(result) == "++++"
    assert site.targets in (
        ["/robots.txt", "/", "/", "/", "/robots.txt", "/"],
        ["/robots.txt", "/", "/", "/robots.txt", "/", "/"],
    )
    assert (result.stats["rep/waited"], result.stats["rep/cache/hit"], result.stats["rep/refreshed"]) == (1, 3, 1)
    assert result.stats["rep/cache/miss"] == 1


@ensureDeferred
async def test_a_refresh_that_fails_changes_nothing_and_backs_off(web: Web) -> None:
    site, time = web.robots([answer(RULES), DOWN]), Time()
    result = await ends(site, time, 0.91 * DAY, BACKOFFS[0] - 1.0, 2.0, 1.0)
    assert short(result) == "-----"
    assert len(site.robots_requests) == 3
    assert "rep/refreshed" not in result.stats
    assert "rep/cache/stale" not in result.stats
    (warning,) = result.messages(logger="scrapy_rep")
    assert "Requests to this site are decided by its last answer before the outage (RFC 9309 2.4)" in warning


# Stale while unreachable.


@ensureDeferred
async def test_2_4_expired_rules_are_obeyed_while_robots_txt_is_unreachable(web: Web) -> None:
    site, time = web.robots([answer(RULES)] + [DOWN] * 3 + [answer("User-agent: *\nDisallow: /other")]), Time()
    result = await ends(site, time, DAY, BACKOFFS[0] - 0.1, 15.0, 25.0, 60.0, 0.0)
    assert short(result) == "------+"
    assert result.stats["rep/cache/stale"] == 5
    assert result.stats["rep/access/unreachable"] == 3
    pages = await ends(web.robots([answer(RULES), DOWN]), Time(), DAY, DAY, path="/")
    assert short(pages) == "+++"


@pytest.mark.parametrize("said", ["must-revalidate", "no-cache", 'max-age="60", must-revalidate'])
@ensureDeferred
async def test_4_2_4_expired_rules_are_not_obeyed_after_must_revalidate(web: Web, said: str) -> None:
    site = web.robots([answer(RULES, headers={"Cache-Control": said}), DOWN])
    assert short(await ends(site, Time(), DAY, path="/")) == "+u"


@ensureDeferred
async def test_2_3_1_4_after_30_days_of_outage_without_rules_everything_is_allowed(web: Web) -> None:
    month = [DAY, *[10 * DAY] * 3, 0.0]
    assert short(await ends(web.robots([answer(RULES), DOWN]), Time(), *month)) == "------"
    assert short(await ends(web.robots(DOWN), Time(), *month)) == "uuu" + "u++"
    forbids = answer(RULES, headers={"Cache-Control": "no-cache"})
    assert short(await ends(web.robots([forbids, DOWN]), Time(), *month, path="/")) == "+uuu" + "++"


@ensureDeferred
async def test_the_days_after_which_everything_is_allowed_are_a_setting(web: Web) -> None:
    assert short(await ends(web.robots(DOWN), Time(), 3 * DAY, 3 * DAY, REP_UNREACHABLE_DAYS=5)) == "uu+"


@ensureDeferred
async def test_no_request_waits_while_stale_rules_are_obeyed(web: Web) -> None:
    time = Time()
    site = web.robots([answer(RULES), DOWN])
    result = await ends(site, time, DAY, REP_UNREACHABLE_WAIT=30)
    assert short(result) == "--"
    assert time.slept == []


# HttpCacheMiddleware.


def replaying(tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), **more}


CACHED: dict[str, Route] = {
    "200": answer(RULES),
    "404": answer(status=404),
    "403": answer(status=403),
    "410": answer(status=410),
    "HTML": answer("<!doctype html><p>Welcome", headers={"Content-Type": "text/html"}),
    "redirect-loop": redirect("/robots.txt"),
}
LOST = {"200": 1}
"""How many of the two pages the rules forbid."""


class NoNetwork:
    """A download handler for `http`."""

    lazy = False

    async def download_request(self, _request: Request) -> Response:
        raise OSError("no network")

    async def close(self) -> None:
        pass


class OwnCache:
    """A cache of a project: it knows nothing of `dont_cache`."""

    kept: ClassVar[dict[str, Response]] = {}

    def process_request(self, request: Request) -> Response | None:
        found = self.kept.get(request.url)
        return None if found is None else found.replace(flags=["cached"], request=request)

    def process_response(self, request: Request, response: Response) -> Response:
        self.kept.setdefault(request.url, response)
        return response


async def recorded(site: Site, **settings: Any) -> list[str]:
    """Crawl two pages, so that a cache has them and the robots.txt. Return their URLs."""
    urls = [site.url("/"), site.url("/private")]
    result = await crawl(*urls, settings={**settings, "REP_DRY_RUN": True})
    assert len(result.pages) == 2
    return urls


def own_cache(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(OwnCache, "kept", {})
    return {"DOWNLOADER_MIDDLEWARES": {OwnCache: 900}}


@pytest.mark.parametrize("network", ["up", "down", "site-down"])
@pytest.mark.parametrize("robots", [ADDON, BUILTIN], ids=["rep", "builtin"])
@pytest.mark.parametrize("name", CACHED)
@ensureDeferred
async def test_a_cached_robots_txt_of_any_age_decides(
    web: Web, tmp_path: Path, name: str, robots: dict[str, Any], network: str
) -> None:
    site, time = web.robots(CACHED[name]), Time()
    urls = await recorded(site, **replaying(tmp_path))
    site.change("/robots.txt", DOWN)
    requests, time.now = len(site.requests), time.now + 300 * DAY
    settings = replaying(tmp_path, REP_UNREACHABLE_WAIT=30, REP_FETCH_RETRIES=1)
    if network == "down":
        settings["DOWNLOAD_HANDLERS"] = {"http": NoNetwork}
    obeys = {**robots, **with_clock(time)} if robots is ADDON else robots
    result = await crawl(*urls, settings=settings, robots=obeys)
    assert list(result.pages) == urls[: 2 - LOST.get(name, 0)]
    assert len(site.requests) == requests
    assert time.slept == []
    assert result.messages(logger="scrapy_rep") == []


@ensureDeferred
async def test_a_replay_that_has_expired_is_replayed_again(web: Web, tmp_path: Path) -> None:
    site, time = web.robots(answer(status=404)), Time()
    urls = await recorded(site, **replaying(tmp_path))
    site.change("/robots.txt", DOWN)
    spider = in_turn(time, 2 * HOUR)
    robots = {**ADDON, **with_clock(time)}
    result = await crawl(urls[0], spider=spider, settings=replaying(tmp_path), robots=robots)
    assert result.ends == ["page", "page"]


@ensureDeferred
async def test_one_line_says_how_old_the_oldest_replay_is(web: Web, tmp_path: Path) -> None:
    now = Time().now
    ages = {"a": HOUR, "b": 300 * DAY + HOUR}
    sites = [web.robots(answer(RULES, headers={"Date": http_date(Time(), age)})) for age in ages.values()]
    urls = [url for site in sites for url in await recorded(site, **replaying(tmp_path))]
    time = Time()
    assert time.now == now
    result = await crawl(*urls, settings=replaying(tmp_path), robots=with_clock(time))
    lines = [line for line in result.messages(logging.INFO, "scrapy_rep") if "cache" in line]
    assert lines == ["2 robots.txt files came from a cache of the crawl. The oldest is 7,201 h old"]


@ensureDeferred
async def test_a_replay_is_used_for_the_least_time_whatever_its_headers_say(web: Web, tmp_path: Path) -> None:
    site, time = web.robots(answer(RULES, headers={"Cache-Control": "max-age=80000"})), Time()
    await recorded(site, **replaying(tmp_path))
    requests = len(site.robots_requests)
    result = await ends(site, time, 0.9 * HOUR - 1, 0.11 * HOUR + 1, **replaying(tmp_path))
    assert (short(result), result.stats["robotstxt/request_count"]) == ("---", 2)
    assert len(site.robots_requests) == requests, "the cache has replayed it twice"


@ensureDeferred
async def test_a_replay_of_a_body_that_was_cut_at_the_limit_has_its_rules(web: Web, tmp_path: Path) -> None:
    site, time = web.robots(answer(RULES + "#" * 1_000_000)), Time()
    for _ in range(2):
        assert short(await ends(site, time, **replaying(tmp_path))) == "-"
    assert len(site.robots_requests) == 1


@pytest.mark.parametrize(
    "failure",
    [
        answer(status=503),
        answer(status=503, headers={"Retry-After": "3600"}),
        answer(status=403, headers={"cf-mitigated": "challenge"}),
    ],
    ids=["503", "Retry-After", "challenge"],
)
@ensureDeferred
async def test_a_replayed_failure_is_requested_from_the_site(web: Web, tmp_path: Path, failure: Route) -> None:
    site, time = web.robots([failure, failure, answer(RULES)]), Time()
    settings = replaying(tmp_path, REP_FETCH_RETRIES=0)
    assert short(await ends(site, time, **settings)) == "u"
    site.change("/robots.txt", answer(RULES))
    requests = len(site.robots_requests)
    assert short(await ends(site, time, **settings)) == "-"
    assert len(site.robots_requests) == requests + 1


@pytest.mark.parametrize(
    "date", [None, "Sun, 06 Nov 1994 08:49:37 GMT", "yesterday"], ids=["none", "old", "unreadable"]
)
@ensureDeferred
async def test_a_cache_of_the_project_may_replay_robots_txt(
    web: Web, monkeypatch: pytest.MonkeyPatch, date: str | None
) -> None:
    site, settings = web.robots(answer("user-agent: *\ndisallow: /other\n")), own_cache(monkeypatch)
    urls = await recorded(site, **settings)
    robots = OwnCache.kept[site.robots_url]
    robots.headers.pop("Date", None)
    if date is not None:
        robots.headers["Date"] = date
    requests = len(site.requests)
    result = await crawl(*urls, settings=settings)
    assert list(result.pages) == urls
    assert len(site.requests) == requests
    age = " old" if date is not None and "1994" in date else " of unknown age"
    (line,) = [line for line in result.messages(logging.INFO, "scrapy_rep") if "a cache of the crawl" in line]
    assert line.endswith(age)


@ensureDeferred
async def test_a_replay_is_not_stored(web: Web, tmp_path: Path) -> None:
    site, store = web.robots(RULES), {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    urls = await recorded(site, **replaying(tmp_path))
    requests = len(site.robots_requests)
    result = await crawl(*urls, settings={**store, **replaying(tmp_path)})
    assert (len(result.refused), len(site.robots_requests)) == (1, requests)
    await crawl(*urls, settings=store)
    assert len(site.robots_requests) == requests + 1
    await crawl(*urls, settings=store)
    assert len(site.robots_requests) == requests + 1


@ensureDeferred
async def test_a_replay_replaces_no_fetched_answer(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in REP_STORAGE nor in memory, even if it has expired."""
    time, site = Time(), web.robots("user-agent: *\ndisallow: /other\n")
    store, cache = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}, own_cache(monkeypatch)
    await recorded(site, **cache)
    site.change("/robots.txt", answer(RULES))
    assert short(await ends(site, time, **store)) == "-"
    with closing(sqlite3.connect(tmp_path / "rep.sqlite")) as db:
        (before,) = db.execute("SELECT octets FROM entries_1").fetchall()
        time.now += 2 * DAY
        robots = with_clock(time)
        robots["DOWNLOADER_MIDDLEWARES"] |= cache["DOWNLOADER_MIDDLEWARES"]
        result = await crawl(site.url("/private"), spider=in_turn(time, 2 * DAY), robots=robots, settings=store)
        assert short(result) == "--"
        assert len(site.robots_requests) == 2
        assert db.execute("SELECT octets FROM entries_1").fetchall() == [before]


@pytest.mark.parametrize("robots", [ADDON, BUILTIN], ids=["rep", "builtin"])
@ensureDeferred
async def test_an_offline_crawl_without_a_robots_txt_in_the_cache_refuses_nothing(
    web: Web, tmp_path: Path, robots: dict[str, Any]
) -> None:
    unknown, known = web.robots(answer(status=503)), web.robots(RULES)
    pages = [unknown.url(f"/{number}") for number in range(5)]
    paths = ("/", "/private")
    await crawl(*pages, settings=replaying(tmp_path), robots={"ROBOTSTXT_OBEY": False})
    recording = await crawl(*map(known.url, paths), settings=replaying(tmp_path, REP_DRY_RUN=True))
    assert len(recording.pages) == 2
    requests = len(unknown.requests), len(known.requests)
    offline = replaying(tmp_path, HTTPCACHE_IGNORE_MISSING=True, REP_UNREACHABLE_WAIT=30, REP_FETCH_RETRIES=1)
    result = await crawl(*pages, *map(known.url, paths), settings=offline, robots=robots)
    assert set(result.pages) == {*pages, known.url("/")}
    assert [*result.refused, *result.failed] == [known.url("/private")], "a cached robots.txt decides"
    assert (len(unknown.requests), len(known.requests)) == requests
    if robots is ADDON:
        assert result.stats["rep/no_rules/offline"] == 1
        assert result.stats["rep/access/unavailable"] == 1
        assert result.messages(logger="scrapy_rep") == []


@ensureDeferred
async def test_what_an_offline_crawl_does_not_know_is_not_stored(web: Web, tmp_path: Path) -> None:
    site = web.robots("user-agent: *\ndisallow: /")
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    offline = replaying(tmp_path, HTTPCACHE_IGNORE_MISSING=True)
    await crawl(site.url("/"), settings={**settings, **offline})
    result = await crawl(site.url("/"), settings=settings)
    assert list(result.refused) == [site.url("/")]


# Memory does not grow with the length of a crawl.


@ensureDeferred
async def test_memory_for_origins_is_limited(web: Web) -> None:
    sites = [web.robots(RULES) for _ in range(9)]
    result = await crawl(*(site.url("/") for site in sites), settings={"REP_MEMORY_OCTETS": 3 * OCTETS_OF_ORIGIN})
    assert len(result.pages) == 9
    (middleware,) = [m for m in result.crawler.engine.downloader.middleware.middlewares if hasattr(m, "_single_flight")]
    single_flight = middleware._single_flight
    assert len(single_flight._memory) == 3
    assert (single_flight._fetches, len(single_flight._driver._parsed)) == ({}, 3)
