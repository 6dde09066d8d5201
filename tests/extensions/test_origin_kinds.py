"""The kind of each origin, in the words of the log, the stats, the command and the report."""

from __future__ import annotations

from typing import Any

import pytest
from crawling import Time, crawl, in_turn, with_clock
from pytest_twisted import ensureDeferred
from scrapy.crawler import Crawler
from web import RULES, Route, Web, answer, redirect

from scrapy_rep import signals
from scrapy_rep.origin_info import OriginInfo, OriginKind
from scrapy_rep.protocol.status_policy import CAUTIOUS, RFC9309

WITH_RULES, WITHOUT_RULES, RESTRICTED = OriginKind.WITH_RULES, OriginKind.WITHOUT_RULES, OriginKind.RESTRICTED
CHALLENGED, UNREACHABLE = OriginKind.CHALLENGED, OriginKind.UNREACHABLE
ALL_ALLOWED, NOTHING = "everything is allowed", "nothing of its origin is fetched"
CHALLENGE = answer(status=403, headers={"cf-mitigated": "challenge"})
PAGE = answer("<html>Welcome</html>")


async def informed(route: Route | list[Route], web: Web, *steps: float, **settings: Any) -> list[OriginInfo]:
    """Crawl pages at these intervals, in seconds. Return the arguments of `robots_known`."""
    told: list[OriginInfo] = []

    def known(info: OriginInfo) -> None:
        told.append(info)

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(known, signal=signals.robots_known)

    time = Time()
    robots, spider = with_clock(time), in_turn(time, *steps)
    await crawl(web.robots(route).url("/"), settings=settings, prepare=prepare, robots=robots, spider=spider)
    return told


OBEYED = (WITH_RULES, "", "", ("its rules are obeyed", "RFC 9309 2.3.1.1"))
EMPTY = (
    *(WITHOUT_RULES, "a file without rules", "rep/no_rules/empty"),
    ("it has no rules, so everything is allowed", "RFC 9309 2.3.1.1"),
)
MARKUP = (
    *(WITHOUT_RULES, "a page of HTML", "rep/no_rules/markup"),
    (ALL_ALLOWED, "RFC 9309 2.2, 2.3.1.3"),
)
LOOP = (WITHOUT_RULES, "too many redirects", "rep/no_rules/redirects", (ALL_ALLOWED, "RFC 9309 2.3.1.2"))
BY_CLOUDFLARE = (
    *(CHALLENGED, "Cloudflare", "rep/challenge/Cloudflare"),
    (NOTHING, "RFC 9309 2.3.1.4"),
)


def unavailable(status: int) -> tuple[Any, ...]:
    return WITHOUT_RULES, f"HTTP {status}", "rep/no_rules/status", (ALL_ALLOWED, "RFC 9309 2.3.1.3")


def unreachable(source: str = "RFC 9309 2.3.1.4") -> tuple[Any, ...]:
    return UNREACHABLE, "", "", (NOTHING, source)


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        (answer(RULES), OBEYED),
        (answer("User-agent: *\nDisallow:\n"), OBEYED),
        *((answer(text), EMPTY) for text in ("", "# soon", "Sitemap: https://a.example/s.xml", "Disallow: /")),
        *((answer(RULES, status), unavailable(status)) for status in (401, 403, 404)),
        (PAGE, MARKUP),
        (redirect("/robots.txt"), LOOP),
        (CHALLENGE, BY_CLOUDFLARE),
        (answer(status=202), unreachable("RFC 9110 15.3.3: accepted is not answered")),
        (answer(status=503), unreachable()),
        (answer(kind="reset"), unreachable()),
    ],
)
@ensureDeferred
async def test_the_kind_of_an_origin(web: Web, route: Route, expected: tuple[Any, ...]) -> None:
    (info,) = await informed(route, web)
    assert (info.kind, info.cause, "".join(info.stats), info.meaning(RFC9309)) == expected


@ensureDeferred
async def test_an_origin_that_a_policy_restricts(web: Web) -> None:
    (info,) = await informed(answer(status=403), web, REP_STATUS_POLICY="cautious")
    assert (info.kind, info.cause, info.stats) == (RESTRICTED, "HTTP 403", ())
    assert info.meaning(CAUTIOUS) == ("nothing is allowed", CAUTIOUS[0][2])


@ensureDeferred
async def test_a_challenge_that_a_policy_allows_is_still_named(web: Web) -> None:
    (info,) = await informed(CHALLENGE, web, REP_STATUS_POLICY={"challenge": "unavailable"})
    assert (info.kind, info.cause, info.stats) == (WITHOUT_RULES, "Cloudflare", ("rep/challenge/Cloudflare",))


@ensureDeferred
async def test_an_origin_whose_rules_are_obeyed_during_a_challenge(web: Web) -> None:
    before, after = await informed([answer(RULES), CHALLENGE], web, 90_000.0)
    assert (before.kind, before.stats) == (WITH_RULES, ())
    assert (after.kind, after.cause, after.stats) == (WITH_RULES, "", ("rep/challenge/Cloudflare",))
    assert after.meaning(RFC9309) == ("its last known rules are still obeyed", "RFC 9309 2.4")


@ensureDeferred
async def test_an_origin_without_rules_whose_refresh_fails(web: Web) -> None:
    _, after = await informed([answer(status=404), answer(status=503)], web, 0.95 * 86_400)
    assert after.meaning(RFC9309) == ("its last answer still counts", "RFC 9309 2.4")
