"""Redirects of robots.txt (RFC 9309 section 2.3.1.2). Those to private hosts: test_2_3_1_2_private_redirects.py."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, SlotByOrigin, Time, close_spider, crawl, in_turn, outcome, with_clock
from installed_scrapy import CAN
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from web import RULES, Site, Web, answer, redirect

from scrapy_rep import AccessResult
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import LEAST_REDIRECTS
from scrapy_rep.signals import robots_parsed

DISALLOW_ALL = "user-agent: *\ndisallow: /\n"
BODY = "x" * 500_000
ORIGINS, REDIRECTS = 10, 5

# How far, and where.


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@ensureDeferred
async def test_redirects_are_followed_across_authorities(web: Web, status: int) -> None:
    elsewhere = web.robots(RULES)
    site = web.robots(redirect(elsewhere.robots_url, status))
    result, access = await outcome(site)
    assert access is AccessResult.SUCCESS
    # The rules apply to the initial authority, and the refusal names its URL.
    verdict = result.refused[site.url("/private")].verdict
    assert verdict.robots_url == site.robots_url
    assert elsewhere.targets == ["/robots.txt"]


@pytest.mark.parametrize(
    "location", ["/elsewhere", "elsewhere?x=1", "//{authority}/elsewhere", "HTTP://{authority}/elsewhere"]
)
@ensureDeferred
async def test_a_relative_location_is_resolved_against_the_requested_url(web: Web, location: str) -> None:
    elsewhere = web.site({"/elsewhere": answer(RULES)})
    routes = {"/robots.txt": redirect(location.format(authority=f"127.0.0.1:{elsewhere.port}"))}
    site = web.site({**routes, "/elsewhere": answer(RULES), "/elsewhere?x=1": answer(RULES)})
    _, access = await outcome(site)
    assert access is AccessResult.SUCCESS
    assert len(elsewhere.requests) == location.count("authority")


@pytest.mark.parametrize(
    ("redirects", "access"),
    [
        pytest.param(LEAST_REDIRECTS, AccessResult.SUCCESS, id="2.3.1.2-five"),
        pytest.param(LEAST_REDIRECTS + 1, AccessResult.UNAVAILABLE, id="2.3.1.2-six"),
    ],
)
@ensureDeferred
async def test_five_redirects_in_a_row_are_followed(web: Web, redirects: int, access: AccessResult) -> None:
    hops = {f"/{n}": redirect(f"/{n + 1}") for n in range(1, redirects)}
    site = web.site({"/robots.txt": redirect("/1"), **hops, f"/{redirects}": answer(RULES)})
    _, found = await outcome(site)
    assert found is access
    asked = [target for target in site.targets if target not in {"/", "/private"}]
    assert asked == ["/robots.txt", *(f"/{n}" for n in range(1, LEAST_REDIRECTS + 1))]


@ensureDeferred
async def test_a_loop_ends_at_the_sixth_redirect(web: Web) -> None:
    site = web.robots(redirect("/robots.txt"))
    _, access = await outcome(site)
    assert access is AccessResult.UNAVAILABLE
    assert len(site.robots_requests) == LEAST_REDIRECTS + 1


@ensureDeferred
async def test_rep_max_redirects_allows_more_redirects(web: Web) -> None:
    number = LEAST_REDIRECTS + 3
    hops = {f"/{n}": redirect(f"/{n + 1}") for n in range(1, number)}
    site = web.site({"/robots.txt": redirect("/1"), **hops, f"/{number}": answer(RULES)})
    _, access = await outcome(site, settings={"REP_MAX_REDIRECTS": number})
    assert access is AccessResult.SUCCESS


@ensureDeferred
async def test_a_redirect_without_a_location_is_unreachable(web: Web) -> None:
    site = web.robots(answer(RULES, status=302))
    _, access = await outcome(site)
    assert access is AccessResult.UNREACHABLE


@pytest.mark.parametrize(
    "location",
    [
        "",
        " ",
        "http:",
        "http://",
        "http:///",
        "http:///user@{}/robots.txt",
        "http:///127.0.0%2E1/robots.txt",
        "http://[::1/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:port/",
        "http://127.0.0%2E1/robots.txt",
        "http://user:password@{}/robots.txt",
        "//user:password@{}/robots.txt",
        "ftp://{}/robots.txt",
        "file:///etc/passwd",
        "data:text/plain,user-agent:*%0Adisallow:",
        "javascript:alert(1)",
        "s3://bucket/robots.txt",
    ],
)
@ensureDeferred
async def test_a_location_that_is_not_followed_is_unreachable(web: Web, location: str) -> None:
    target = web.robots(RULES)
    site = web.robots(redirect(location.format(f"127.0.0.1:{target.port}")))
    result = await crawl(site.url("/"))
    assert list(result.refused) == [site.url("/")]
    assert result.stats["robotstxt/request_count"] == 1
    assert target.requests == []
    assert result.tracebacks == []


@pytest.mark.parametrize("location", ["http:/rules", "http:///rules", "HTTP:/rules", "http:\\rules", "/rules"])
@ensureDeferred
async def test_a_location_without_a_host_leads_to_the_same_host(web: Web, location: str) -> None:
    # As with Scrapy's own middleware and, but for the second, with browsers.
    site = web.site({"/robots.txt": redirect(location), "/rules": answer(RULES), "*": answer()})
    result = await crawl(site.url("/"), site.url("/private"))
    assert (list(result.pages), list(result.refused)) == ([site.url("/")], [site.url("/private")])


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("http:rules", "/a/rules"),
        ("HTTP:rules", "/a/rules"),
        ("hTTp:./rules", "/a/rules"),
        ("http:../rules", "/rules"),
        ("http:.\\rules#part", "/a/rules"),
        (" http:b/../rules", "/a/b/../rules"),
        ("http:rules?x=1", "/a/rules?x=1"),
        ("http:?x=1", "/a/robots?x=1"),
        ("http:https://elsewhere.example/rules", "/a/https:/elsewhere.example/rules"),
        ("http:localhost:80/rules", "/a/localhost:80/rules"),
    ],
)
@ensureDeferred
async def test_a_location_of_the_same_scheme_without_a_slash_is_relative(web: Web, location: str, target: str) -> None:
    # RFC 3986 5.2.2, for backward compatibility; URL Standard 4.4
    site = web.site({"/robots.txt": redirect("/a/robots"), "/a/robots": redirect(location), "*": answer(RULES)})
    result = await crawl(site.url("/private"))
    assert list(result.refused) == [site.url("/private")]
    assert [resolved(path) for path in site.targets] == ["/robots.txt", "/a/robots", resolved(target)]


def resolved(target: str) -> str:
    return target.replace("/b/..", "")


@pytest.mark.parametrize("location", ["https:rules", "https:../rules", "http:", "ftp:rules"])
@ensureDeferred
async def test_a_location_of_another_scheme_without_a_slash_is_not_followed(web: Web, location: str) -> None:
    site = web.robots(redirect(location))
    result = await crawl(site.url("/"))
    assert list(result.refused) == [site.url("/")]
    assert site.targets == ["/robots.txt"]


@pytest.mark.parametrize("location", ["http:///{}/rules", "http:////{}/rules", "http:\\\\\\{}/rules"])
@ensureDeferred
async def test_slashes_before_the_host_of_a_location_do_not_count(web: Web, location: str) -> None:
    target = web.site({"/rules": answer(RULES)})
    site = web.robots(redirect(location.format(f"127.0.0.1:{target.port}")))
    result = await crawl(site.url("/private"))
    assert list(result.refused) == [site.url("/private")]
    assert target.targets == ["/rules"]


@pytest.mark.parametrize("location", ["http:///10.0.0.1/", "https:/10.0.0.1/robots.txt", "https:///10.0.0.1"])
@ensureDeferred
async def test_a_host_after_other_slashes_is_judged_too(web: Web, location: str) -> None:
    proxy = web.site({"*": redirect(location)})
    result = await crawl(Request("http://origin.example/", meta={"proxy": proxy.origin}))
    (error,) = result.refused.values()
    assert "REP_REDIRECT_PRIVATE" in str(error)
    assert proxy.targets == ["http://origin.example/robots.txt"]


@ensureDeferred
async def test_a_challenge_behind_a_redirect_is_unreachable(web: Web) -> None:
    elsewhere = web.robots(answer(RULES, status=403, headers={"CF-Mitigated": "challenge"}))
    _, access = await outcome(web.robots(redirect(elsewhere.robots_url)))
    assert access is AccessResult.UNREACHABLE


@ensureDeferred
async def test_a_redirect_from_https_to_http_is_followed_and_logged_at_debug(web: Web) -> None:
    plain = web.robots(RULES)
    secure = web.robots(redirect(plain.robots_url), tls=True)
    result, _ = await outcome(secure)
    told = [r for r in result.log if "from https to http" in r.getMessage()]
    assert [(r.levelno, r.name) for r in told] == [(logging.DEBUG, "scrapy_rep")]
    assert secure.robots_url in told[0].getMessage()
    assert plain.robots_url in told[0].getMessage()


@ensureDeferred
async def test_redirects_pass_the_offsite_middleware(web: Web) -> None:
    # OffsiteMiddleware would drop the target's request by Scrapy's own middleware, which then fetches the pages.
    elsewhere = web.robots("user-agent: *\ndisallow: /\n")
    target = elsewhere.robots_url.replace("127.0.0.1", "localhost")
    site = web.robots(redirect(target))
    page = Request(site.url("/"))
    result = await crawl(page, allowed_domains=["127.0.0.1"])
    assert list(result.refused) == [site.url("/")]


@ensureDeferred
async def test_redirects_are_followed_without_scrapys_redirect_middleware(web: Web) -> None:
    elsewhere = web.robots(RULES)
    site = web.robots(redirect(elsewhere.robots_url))
    _, access = await outcome(site, settings={"REDIRECT_ENABLED": False})
    assert access is AccessResult.SUCCESS


# Each origin follows its redirects itself, and shares no answer with other origins.


async def one_by_one(*urls: str, robots: dict[str, Any] | None = None, **settings: Any) -> Crawl:
    """Crawl these URLs one after the other."""
    queue = list(urls)

    class OneByOne(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> AsyncIterator[Request]:
            super().parse(response)
            if queue:
                yield self.prepared(queue.pop(0))

        async def failed(self, failure: Any) -> AsyncIterator[Request]:
            super().failed(failure)
            if queue:
                yield self.prepared(queue.pop(0))

    return await crawl(queue.pop(0), spider=OneByOne, robots=robots, settings=settings)


def counts(*sites: Site) -> list[int]:
    return [len(site.robots_requests) for site in sites]


@ensureDeferred
async def test_each_origin_follows_its_redirects_itself(web: Web) -> None:
    target = web.robots(RULES)
    sites = [*(web.robots(redirect(target.robots_url)) for _ in range(3)), target]
    result = await crawl(*(site.url(path) for site in sites for path in ("/", "/private")))
    assert (len(result.pages), len(result.refused)) == (4, 4)
    assert counts(*sites) == [1, 1, 1, 4]


@ensureDeferred
async def test_each_origin_gets_a_one_time_token_of_its_own(web: Web) -> None:
    shared = web.site(
        {
            "/robots.txt": [redirect(f"/gate?token={n}", 302, {"Set-Cookie": f"token={n}"}) for n in (1, 2)],
            **{f"/gate?token={n}": [answer(RULES), answer(status=403)] for n in (1, 2)},
        }
    )
    sources = [web.robots(redirect(shared.robots_url)) for _ in range(2)]
    result = await one_by_one(*(source.url("/private") for source in sources))
    assert len(result.refused) == 2
    assert result.pages == {}


@ensureDeferred
async def test_each_robots_txt_is_requested_with_the_user_agent_of_its_own_request(web: Web) -> None:
    target = web.robots(answer(RULES, headers={"Vary": "User-Agent"}))
    sources = [web.robots(redirect(target.robots_url)) for _ in range(2)]
    agents = ["ABot/1.0", "BBot/1.0"]
    pairs = zip(sources, agents, strict=True)
    await crawl(*(Request(source.url("/"), headers={"User-Agent": agent}) for source, agent in pairs))
    assert sorted(request["headers"]["User-Agent"] for request in target.robots_requests) == agents


@ensureDeferred
async def test_the_outage_of_another_origin_does_not_shorten_the_wait(web: Web) -> None:
    target, time = web.robots([answer(status=503)] * 3 + [answer(RULES)]), Time()
    sources = [web.robots(redirect(target.robots_url)) for _ in range(2)]
    settings = {"REP_UNREACHABLE_WAIT": 12}
    # The first origin is asked after 0 and 5 seconds. Then its wait ends, and the second origin's wait begins.
    result = await one_by_one(*(source.url("/") for source in sources), robots=with_clock(time), **settings)
    assert [type(error).__name__ for error in result.refused.values()] == ["RobotsUnreachable"]
    assert list(result.pages) == [sources[1].url("/")]


@ensureDeferred
async def test_an_answer_through_the_proxy_of_a_request_does_not_count_for_another_origin(web: Web) -> None:
    """The proxy says that there is no robots.txt, but the origin itself forbids everything."""
    victim = web.robots(DISALLOW_ALL)
    source = web.robots("")
    proxy = web.site({source.robots_url: redirect(victim.robots_url), "*": answer(status=404)})

    class OneByOne(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> AsyncIterator[Request]:
            super().parse(response)
            yield self.prepared(victim.url("/"))

    through_proxy = Request(source.url("/"), meta={"proxy": proxy.origin})
    result = await crawl(through_proxy, spider=OneByOne)
    assert (list(result.pages), list(result.refused)) == ([source.url("/")], [victim.url("/")])


@pytest.mark.parametrize("first", [0, 1, LEAST_REDIRECTS + 1], ids=["the-first", "the-second", "the-last"])
@ensureDeferred
async def test_the_order_of_the_origins_does_not_change_the_result_of_a_long_chain(web: Web, first: int) -> None:
    sites = [web.robots(answer(status=503))]
    for _ in range(LEAST_REDIRECTS + 1):
        sites.insert(0, web.robots(redirect(sites[0].robots_url)))
    urls = [site.url("/") for site in sites]
    requests = [Request(url, priority=int(url == urls[first])) for url in urls]
    result = await crawl(*requests, settings={"CONCURRENT_REQUESTS": 1})
    assert list(result.pages) == urls[:1], "2.3.1.2: more than five redirects in a row, whatever their end"
    assert set(result.refused) == set(urls[1:])


@pytest.mark.parametrize("length", [2, LEAST_REDIRECTS + 2])
@ensureDeferred
async def test_origins_that_redirect_to_each_other_do_not_wait_for_each_other(web: Web, length: int) -> None:
    sites = [web.site() for _ in range(length)]
    for site, following in zip(sites, [*sites[1:], sites[0]], strict=True):
        site.change("/robots.txt", redirect(following.robots_url))
    result = await crawl(*(site.url(path) for site in sites for path in ("/a", "/b")))
    assert len(result.pages) == 2 * length, "2.3.1.2: more than five redirects in a row are unavailable"
    assert sum(counts(*sites)) <= (LEAST_REDIRECTS + 1) * length


@ensureDeferred
async def test_robots_parsed_names_a_request_of_the_same_origin(web: Web) -> None:
    target = web.robots(RULES)
    source = web.robots(redirect(target.robots_url))
    seen: list[str] = []

    def parsed(robotparser: Any, request: Request) -> None:
        seen.append(request.url)

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(parsed, signal=robots_parsed)

    await crawl(source.url("/a"), source.url("/b"), prepare=prepare)
    assert seen in ([source.url("/a")], [source.url("/b")])
    await crawl(source.url("/a"), target.url("/b"), prepare=prepare)
    assert sorted(seen[1:]) == sorted([source.url("/a"), target.url("/b")])


# Cookies and credentials.


@ensureDeferred
async def test_cookies_are_kept_within_one_chain_of_redirects(web: Web) -> None:
    site = web.robots([redirect("/robots.txt", 302, {"Set-Cookie": "seen=1; Path=/"}), answer(RULES)])
    other = web.robots(RULES)
    result = await crawl(Request(site.url("/"), cookies={"mine": "1"}), other.url("/"))
    assert len(result.pages) == 2
    cookies = [(r["target"], r["headers"].get("Cookie")) for r in site.requests]
    # Requests for robots.txt send no cookies of the crawl, and the crawl sends no cookies from their answers.
    assert cookies == [("/robots.txt", None), ("/robots.txt", "seen=1"), ("/", "mine=1")]
    assert [r["headers"].get("Cookie") for r in other.robots_requests] == [None]


@ensureDeferred
async def test_a_cookie_of_a_redirect_is_sent_in_the_same_chain_only(web: Web) -> None:
    to_itself = redirect("/robots.txt", 302, {"Set-Cookie": "seen=1"})
    target = web.robots([to_itself, answer(RULES), to_itself, answer(RULES)])
    sources = [web.robots(redirect(target.robots_url)) for _ in range(2)]
    result = await one_by_one(*(source.url("/private") for source in sources))
    assert len(result.refused) == 2
    assert [r["headers"].get("Cookie") for r in target.robots_requests] == [None, "seen=1"] * 2


@ensureDeferred
async def test_the_first_origin_gets_a_cookie_that_another_one_has_set_for_it(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that asks for consent, on another host, sets it and leads back."""
    shop, consent = "http://www.shop.test", "http://consent.shop.test"
    back = redirect(f"{shop}/robots.txt", 302, {"Set-Cookie": "seen=1; Domain=shop.test"})
    back["headers"] += [("Set-Cookie", "own=1")]
    routes: dict[str, Any] = {
        f"{shop}/robots.txt": [redirect(f"{consent}/"), answer(DISALLOW_ALL)],
        f"{consent}/": back,
    }
    proxy = web.site(routes)
    monkeypatch.setenv("http_proxy", proxy.origin)
    result = await crawl(f"{shop}/")
    assert [request["headers"].get("Cookie") for request in proxy.requests] == [None, None, "seen=1"]
    assert len(result.refused) == 1


@ensureDeferred
async def test_no_host_between_gets_a_cookie_of_an_earlier_one(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, login, consent = (f"http://{name}.shop.test" for name in ("www", "login", "consent"))
    routes: dict[str, Any] = {
        f"{shop}/robots.txt": [redirect(f"{login}/", 302, set_for_all("first")), answer(DISALLOW_ALL)],
        f"{login}/": redirect(f"{consent}/", 302, set_for_all("second")),
        f"{consent}/": redirect(f"{shop}/robots.txt", 302, set_for_all("third")),
    }
    proxy = web.site(routes)
    monkeypatch.setenv("http_proxy", proxy.origin)
    result = await crawl(f"{shop}/")
    *before, last = [request["headers"].get("Cookie") for request in proxy.requests]
    assert before == [None, None, None]
    assert set(last.split("; ")) == {"first=1", "second=1", "third=1"}
    assert len(result.refused) == 1


def set_for_all(name: str) -> dict[str, str]:
    return {"Set-Cookie": f"{name}=1; Domain=shop.test"}


@ensureDeferred
async def test_cookies_of_a_redirecting_origin_do_not_reach_another(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """With so many cookies, the other server would answer 400, which allows everything."""
    attacker, victim = "http://a.shared.test", "http://b.shared.test"
    to_victim = redirect(f"{victim}/robots.txt")
    to_victim["headers"] += [("Set-Cookie", f"c{n}={'x' * 3_000}; Domain=shared.test") for n in range(6)]
    # The proxy answers for both names.
    proxy = web.site({f"{attacker}/robots.txt": to_victim, f"{victim}/robots.txt": answer(DISALLOW_ALL)})
    monkeypatch.setenv("http_proxy", proxy.origin)
    result = await crawl(f"{attacker}/", f"{victim}/")
    asked = [request for request in proxy.requests if request["target"] == f"{victim}/robots.txt"]
    assert [request["headers"].get("Cookie") for request in asked] == [None, None]
    assert len(result.refused) == 2


@ensureDeferred
async def test_credentials_are_not_sent_to_another_origin(web: Web) -> None:
    target = web.robots(RULES)
    site = web.robots(redirect(target.robots_url.replace("127.0.0.1", "localhost")))
    headers = {"Authorization": "Basic c2VjcmV0", "Cookie": "session=1", "Referer": site.url("/secret"), "X-Key": "1"}
    own = {"USER": "u", "PASS": "p", "DOMAIN": f"127.0.0.1:{site.port}"}
    credentials: dict[str, Any] = (
        {"settings": {f"HTTPAUTH_{name}": value for name, value in own.items()}}
        if CAN["send credentials by settings and by request meta"]
        else {"http_user": own["USER"], "http_pass": own["PASS"], "http_auth_domain": own["DOMAIN"]}
    )
    result = await crawl(Request(site.url("/"), headers=headers, cookies={"a": "b"}), **credentials)
    assert list(result.pages) == [site.url("/")]
    first, second = site.robots_requests[0]["headers"], target.robots_requests[0]["headers"]
    for name in ("Cookie", "Referer", "X-Key"):
        assert name not in first
    # The credentials of the crawl are sent to their own domain. Those of one request are not.
    assert first["Authorization"] == "Basic dTpw"
    for name in ("Authorization", "Cookie", "Referer", "X-Key"):
        assert name not in second


# Caching, and the memory that answers take.


@ensureDeferred
async def test_the_strictest_caching_headers_of_all_redirects_count(web: Web) -> None:
    target, time = web.robots(RULES), Time()
    source = web.robots(redirect(target.robots_url, headers={"Cache-Control": "max-age=7200, must-revalidate"}))
    spider = in_turn(time, 1.7 * 3600, 0.4 * 3600)
    await crawl(source.url("/"), spider=spider, robots=with_clock(time))
    assert counts(source, target) == [2, 2]


def chain(status: int) -> dict[str, Any]:
    """Five redirects with a large body each, and a last URL that never answers."""
    paths = ["/robots.txt", *(f"/{n}" for n in range(1, REDIRECTS)), "/end"]
    hops = {path: answer(BODY, status, headers={"Location": location}) for path, location in pairwise(paths)}
    return {**hops, "/end": answer(kind="hang")}


@ensureDeferred
async def test_bodies_of_redirects_take_no_memory_while_the_last_answer_is_awaited(web: Web) -> None:
    sites = [web.site(chain(302)) for _ in range(ORIGINS)]

    class Measures(CrawlSpider):
        async def start(self) -> AsyncIterator[Request]:
            deferred_from_coro(self.measure())
            async for request in super().start():
                yield request

        async def measure(self) -> None:
            before = tracemalloc.get_traced_memory()[0]
            while not all("/end" in site.targets for site in sites):
                await sleep(0.05)
            gc.collect()
            self.crawl.ends.append(tracemalloc.get_traced_memory()[0] - before)
            close_spider(self, "enough")

    tracemalloc.start()
    try:
        result = await crawl(*(site.url("/") for site in sites), spider=Measures, settings={"DOWNLOADER": SlotByOrigin})
    finally:
        tracemalloc.stop()
    (octets,) = result.ends
    assert octets < ORIGINS * len(BODY) / 2, "less than half a body for each origin"
