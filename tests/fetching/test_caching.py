"""Freshness, revalidation and stale rules in real crawls (RFC 9111; RFC 9309 2.3.1.4 and 2.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from crawling import ADDON, BUILTIN, Crawl, CrawlSpider, Time, crawl, in_turn, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from web import RULES, Route, Site, Web, answer, redirect

from scrapy_rep import AccessResult
from scrapy_rep.settings import OCTETS_OF_ORIGIN

ETAG = {"ETag": '"1"'}
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


# Revalidation.


@ensureDeferred
async def test_4_3_1_validators_are_sent_and_a_304_freshens(web: Web) -> None:
    validators = {**ETAG, "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"}
    site, time = web.robots([answer(RULES, headers=validators), answer(status=304)]), Time()
    result = await ends(site, time, DAY, 0.5 * DAY, DAY)
    assert short(result) == "----"
    first, second, third = (request["headers"] for request in site.robots_requests)
    assert not {"If-None-Match", "If-Modified-Since"} & set(first)
    for headers in (second, third):
        assert (headers["If-None-Match"], headers["If-Modified-Since"]) == ('"1"', "Sun, 06 Nov 1994 08:49:37 GMT")
    assert result.stats["rep/revalidated"] == 2
    assert result.stats["rep/access/success"] == 3


@ensureDeferred
async def test_4_3_4_a_304_has_its_own_lifetime(web: Web) -> None:
    freshens = answer(status=304, headers={"Cache-Control": "max-age=7200", "ETag": '"2"'})
    site, time = web.robots([answer(RULES, headers={"Last-Modified": "x"}), freshens, DOWN]), Time()
    await ends(site, time, DAY, 1.7 * HOUR, 0.4 * HOUR)
    assert [request["headers"].get("If-None-Match") for request in site.robots_requests] == [None, None, '"2"']


@ensureDeferred
async def test_4_3_3_a_success_replaces_the_stored_answer(web: Web) -> None:
    site, time = web.robots([answer(RULES, headers=ETAG), answer("User-agent: *\nDisallow: /other")]), Time()
    assert short(await ends(site, time, DAY)) == "-+"


@ensureDeferred
async def test_an_unrequested_304_is_an_error_of_the_server(web: Web) -> None:
    site = web.robots(answer(status=304))
    result = await ends(site, Time(), path="/")
    assert short(result) == "u"
    assert len(site.robots_requests) == 1


@pytest.mark.parametrize(
    "confused", [answer(status=304, headers={"ETag": '"2"'}), answer(status=412)], ids=["4.3.4-another-etag", "412"]
)
@ensureDeferred
async def test_a_server_that_confuses_its_validators_is_asked_without_them(web: Web, confused: Route) -> None:
    site = web.robots([answer(RULES, headers=ETAG), confused, answer("User-agent: *\nDisallow: /other")])
    assert short(await ends(site, Time(), DAY)) == "-+"
    assert [request["headers"].get("If-None-Match") for request in site.robots_requests] == [None, '"1"', None]


@ensureDeferred
async def test_validators_are_sent_to_the_url_that_they_came_from(web: Web) -> None:
    """If the redirect leads to another URL later, the validators of the first URL are not sent to it."""
    routes: dict[str, Route | list[Route]] = {
        "/robots.txt": [answer(status=302, headers={"Location": f"/{to}"}) for to in ("a", "a", "b")],
        "/a": [answer(RULES, headers=ETAG), answer(status=304)],
        "/b": answer(RULES, headers=ETAG),
    }
    site = web.site(routes)
    assert short(await ends(site, Time(), DAY, DAY)) == "---"
    asked = [(r["target"], r["headers"].get("If-None-Match")) for r in site.requests]
    plain = ("/robots.txt", None)
    assert asked == [plain, ("/a", None), plain, ("/a", '"1"'), plain, ("/b", None)]


@ensureDeferred
async def test_in_the_last_tenth_of_the_lifetime_a_refresh_delays_no_request(web: Web) -> None:
    site, time = web.robots([answer(RULES, headers=ETAG), answer(status=304)]), Time()
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
    result = await ends(site, time, 0.91 * DAY, 4.0, 2.0, 1.0)
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
    result = await ends(site, time, DAY, 4.9, 15.0, 25.0, 60.0, 0.0)
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


async def recorded(web: Web, tmp_path: Path, time: Time, then: list[Route], **headers: str) -> Site:
    """An origin whose rules are in HttpCacheMiddleware's cache. `then` has its later answers."""
    said = {"Date": http_date(time), **{name.replace("_", "-"): value for name, value in headers.items()}}
    site = web.robots([answer(RULES, headers=said), *then])
    assert short(await ends(site, time, **replaying(tmp_path))) == "-"
    return site


@ensureDeferred
async def test_the_age_of_a_replay_begins_at_its_date(web: Web, tmp_path: Path) -> None:
    time = Time()
    site = await recorded(web, tmp_path, time, [answer("User-agent: *\nDisallow: /other")])
    time.now += 10 * HOUR
    assert short(await ends(site, time, 11 * HOUR, **replaying(tmp_path))) == "--"
    assert len(site.robots_requests) == 1
    time.now = Time().now + 10 * HOUR
    assert short(await ends(site, time, 14 * HOUR, **replaying(tmp_path))) == "-+"
    assert len(site.robots_requests) == 2


@ensureDeferred
async def test_a_replay_of_a_body_that_was_cut_at_the_limit_has_its_rules(web: Web, tmp_path: Path) -> None:
    site, time = web.robots(answer(RULES + "#" * 1_000_000, headers={"Date": http_date(Time())})), Time()
    for _ in range(2):
        assert short(await ends(site, time, **replaying(tmp_path))) == "-"
    assert len(site.robots_requests) == 1


@ensureDeferred
async def test_a_replay_over_24_hours_old_is_fetched_again_once(web: Web, tmp_path: Path) -> None:
    time = Time()
    site = await recorded(web, tmp_path, time, [answer("User-agent: *\nDisallow: /other")])
    time.now += 25 * HOUR
    assert short(await ends(site, time, HOUR, HOUR, **replaying(tmp_path))) == "+++"
    assert len(site.robots_requests) == 2


@ensureDeferred
async def test_an_old_replay_is_revalidated_and_no_304_gets_into_the_http_cache(web: Web, tmp_path: Path) -> None:
    time = Time()
    site = await recorded(web, tmp_path, time, [answer(status=304)], ETag='"1"')
    for _ in range(2):
        time.now += 25 * HOUR
        assert short(await ends(site, time, **replaying(tmp_path))) == "-"
    assert [request["headers"].get("If-None-Match") for request in site.robots_requests] == [None, '"1"', '"1"']


@ensureDeferred
async def test_every_conditional_request_bypasses_the_http_cache(web: Web, tmp_path: Path) -> None:
    """This includes the request for a robots.txt of another origin, to which a redirect leads."""
    target, time = web.robots([answer(RULES, headers=ETAG), answer(status=304)]), Time()
    source = web.robots(redirect(target.robots_url))
    past: list[bool] = []

    def reached(request: Request) -> None:
        if "If-None-Match" in request.headers:
            past.append(request.meta.get("dont_cache", False))

    class ThenTheOther(CrawlSpider):
        async def failed(self, failure: Any) -> AsyncIterator[Request]:
            super().failed(failure)
            if len(self.crawl.refused) == 1:
                time.now += DAY
                yield self.prepared(source.url("/private"))

    result = await crawl(
        target.url("/private"),
        spider=ThenTheOther,
        robots=with_clock(time),
        settings=replaying(tmp_path),
        prepare=lambda crawler: crawler.signals.connect(reached, signal=signals.request_reached_downloader),
    )
    assert len(result.refused) == 2
    assert past == [True]


@ensureDeferred
async def test_an_old_replay_is_obeyed_as_stale_rules_in_an_outage(web: Web, tmp_path: Path) -> None:
    time = Time()
    site = await recorded(web, tmp_path, time, [DOWN])
    time.now += 25 * HOUR
    result = await ends(site, time, **replaying(tmp_path))
    assert short(result) == "-"
    assert result.stats["rep/cache/stale"] == 1


@ensureDeferred
async def test_a_replayed_failure_does_not_count_as_an_outage(web: Web, tmp_path: Path) -> None:
    site, time = web.robots([DOWN, answer(RULES)]), Time()
    assert short(await ends(site, time, **replaying(tmp_path))) == "u"
    time.now += HOUR
    assert short(await ends(site, time, **replaying(tmp_path))) == "-"


@ensureDeferred
async def test_with_httpcache_ignore_missing_a_replay_of_any_age_is_used(web: Web, tmp_path: Path) -> None:
    time = Time()
    site = await recorded(web, tmp_path, time, [DOWN], ETag='"1"', Cache_Control="max-age=60")
    time.now += 300 * DAY
    offline = replaying(tmp_path, HTTPCACHE_IGNORE_MISSING=True)
    result = await ends(site, time, 23 * HOUR, 3 * DAY, **offline)
    assert short(result) == "---"
    assert len(site.robots_requests) == 1
    assert "rep/cache/stale" not in result.stats


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
