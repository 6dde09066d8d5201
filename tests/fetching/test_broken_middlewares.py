"""A bug in a project's middleware is no outage of the site: the log names the middleware, and has the traceback."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from typing import Any

import pytest
from crawling import Crawl, Time, crawl, is_about_denial, outcome, refusal_by, with_clock
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response
from web import RULES, Route, Web, answer, redirect

from scrapy_rep import AccessResult, RobotsUnreachable
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import robots_response


class Broken:
    """A downloader middleware with a bug that only requests for a robots.txt show."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("robots.txt"):
            request.meta["a key"]


class BrokenResponse:
    def process_response(self, request: Request, response: Response) -> Response:
        if request.url.endswith("robots.txt"):
            request.meta["a key"]
        return response


class BrokenException:
    def process_exception(self, request: Request, exception: Exception) -> None:
        if request.url.endswith("robots.txt"):
            request.meta["a key"]


class BrokenLater:
    async def process_request(self, request: Request) -> None:
        await sleep(0.01)
        if request.url.endswith("robots.txt"):
            request.meta["a key"]


def errors(result: Crawl) -> list[logging.LogRecord]:
    return [r for r in result.log if r.levelno >= logging.ERROR and not is_about_denial(r.getMessage())]


@pytest.mark.parametrize("middleware", [Broken, BrokenResponse, BrokenException, BrokenLater])
@ensureDeferred
async def test_a_bug_is_an_error_with_its_traceback_and_the_name_of_the_middleware(web: Web, middleware: type) -> None:
    route = answer(kind="reset") if middleware is BrokenException else answer(RULES)
    sites = [web.robots(route) for _ in range(3)]
    settings: dict[str, Any] = {"DOWNLOADER_MIDDLEWARES": {middleware: 543}, "REP_FETCH_RETRIES": 1}
    result = await crawl(*(site.url("/") for site in sites), settings=settings)
    (record,) = errors(result)
    assert record.exc_info
    assert isinstance(record.exc_info[1], KeyError)
    name = f"test_broken_middlewares.{middleware.__name__}"
    got = ". The site is not at fault"
    if middleware in {BrokenResponse, BrokenException}:
        got = "; the download handler got " + ("HTTP 200" if middleware is BrokenResponse else "ConnectionDone: ")
    reason = f"{name} has raised KeyError: 'a key'"
    assert f"because a component of the crawl failed: {reason}{got}" in record.getMessage()
    assert len(result.refused) == 3
    for error in result.refused.values():
        assert isinstance(error, RobotsUnreachable)
        assert reason in str(error)
        assert isinstance(error.__cause__, KeyError)
    *of_sites, _summary = result.messages(logger="scrapy_rep")
    assert len(of_sites) == 4
    assert all(reason in line for line in of_sites), "no line says that the site is at fault"


class Stops:
    """Stops the crawl because of what the site sent."""

    def process_response(self, request: Request, response: Response) -> Response:
        if response.status == 403:
            raise CloseSpider("a challenge")
        return response


class LogsBadly:
    def process_exception(self, request: Request, exception: Exception) -> None:
        if request.url.endswith("robots.txt"):
            int(exception)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("middleware", "route", "raised", "got"),
    [
        (Stops, answer(status=403, headers={"cf-mitigated": "challenge"}), "CloseSpider", "HTTP 403"),
        (LogsBadly, answer(kind="reset"), "TypeError", "ConnectionDone: "),
    ],
)
@ensureDeferred
async def test_a_component_that_fails_because_of_the_site_does_not_clear_the_site(
    web: Web, middleware: type, route: Route, raised: str, got: str
) -> None:
    result = await crawl(web.robots(route).url("/"), settings={"DOWNLOADER_MIDDLEWARES": {middleware: 543}})
    (record,) = errors(result)
    assert f"{middleware.__name__} has raised {raised}" in record.getMessage()
    assert f"; the download handler got {got}" in record.getMessage()
    assert "not at fault" not in record.getMessage()
    (error,) = result.refused.values()
    assert f"; the download handler got {got}" in str(error)


@pytest.mark.parametrize(
    ("middleware", "attempts", "seconds"),
    [(Broken, 2, 1), (Stops, 2, 1), (LogsBadly, 5, 30)],
)
@ensureDeferred
async def test_requests_do_not_wait_for_a_component_that_fails_by_itself(
    web: Web, middleware: type, attempts: int, seconds: float
) -> None:
    time = Time()
    began = time.now
    site = web.robots(answer(kind="reset") if middleware is LogsBadly else answer(status=403))
    settings: dict[str, Any] = {"REP_UNREACHABLE_WAIT": 30, "REP_FETCH_RETRIES": 1}
    clocked = with_clock(time)
    settings["DOWNLOADER_MIDDLEWARES"] = {**clocked["DOWNLOADER_MIDDLEWARES"], middleware: 543}
    result = await crawl(site.url("/"), robots=clocked, settings=settings)
    assert len(result.refused) == 1
    assert result.stats["robotstxt/request_count"] == attempts
    assert time.now - began == seconds


class AnswersByItself:
    """Sends requests by itself, without Scrapy's download handlers, and answers 599 if that fails."""

    def process_request(self, request: Request) -> Response | None:
        return Response(request.url, status=599) if request.url.endswith("robots.txt") else None


@ensureDeferred
async def test_a_response_that_a_middleware_made_up_is_not_said_to_be_the_sites(web: Web, tmp_path: Any) -> None:
    site = web.robots(RULES)
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    result = await crawl(site.url("/"), settings={**settings, "DOWNLOADER_MIDDLEWARES": {AnswersByItself: 543}})
    assert site.requests == []
    said = "HTTP 599 from test_broken_middlewares.AnswersByItself instead of a download handler"
    (error,) = result.refused.values()
    assert str(error) == refusal_by(VerdictReason.UNREACHABLE, url=site.robots_url, answer=said)
    assert result.messages(logger="scrapy_rep")[0].startswith(f"{site.robots_url}: {said}. ")
    assert list((await crawl(site.url("/"), settings=settings)).pages) == [site.url("/")], "other crawls do not know"


@ensureDeferred
async def test_with_a_download_slot_an_answer_is_still_made_up(web: Web, tmp_path: Any) -> None:
    """It carries the slot from the page's request, although it was never in the downloader."""
    site = web.robots(RULES)
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    page = Request(site.url("/"), meta={"download_slot": "shared"})
    result = await crawl(page, settings={**settings, "DOWNLOADER_MIDDLEWARES": {AnswersByItself: 543}})
    (error,) = result.refused.values()
    assert "instead of a download handler" in str(error)
    assert list((await crawl(site.url("/"), settings=settings)).pages) == [site.url("/")], "other crawls do not know"


class CopiesOnce:
    """Replaces each request by a copy of it, which passes the middlewares again."""

    def process_request(self, request: Request) -> Request | None:
        is_copy = request.meta.setdefault("is_copy", False)
        return None if is_copy else request.replace(meta={**request.meta, "is_copy": True}, dont_filter=True)


@ensureDeferred
async def test_the_answer_to_a_copy_of_the_request_is_the_sites(web: Web, tmp_path: Any) -> None:
    site = web.robots(answer(status=599))
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    result = await crawl(site.url("/"), settings={**settings, "DOWNLOADER_MIDDLEWARES": {CopiesOnce: 543}})
    (error,) = result.refused.values()
    assert str(error).endswith("robots.txt: HTTP 599)")
    assert list((await crawl(site.url("/"), settings=settings)).refused) == [site.url("/")]
    assert len(site.robots_requests) == 1, "the next crawl knows"


@ensureDeferred
async def test_an_answer_of_the_site_names_no_middleware(web: Web) -> None:
    class Passes:
        def process_request(self, request: Request) -> None:
            pass

    site = web.robots(answer(status=503))
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {Passes: 543}})
    (error,) = result.refused.values()
    assert str(error).endswith("robots.txt: HTTP 503)")


@ensureDeferred
async def test_each_kind_of_error_is_logged_once(web: Web) -> None:
    class BrokenTwice:
        def process_request(self, request: Request) -> None:
            if request.url.endswith("robots.txt"):
                raise KeyError if "127.0.0.1" in request.url else AttributeError

    sites = [web.robots(RULES) for _ in range(4)]
    urls = [site.url("/") for site in sites]
    urls[2:] = [url.replace("127.0.0.1", "localhost") for url in urls[2:]]
    result = await crawl(*urls, settings={"DOWNLOADER_MIDDLEWARES": {BrokenTwice: 543}})
    types = {record.exc_info[0] for record in errors(result) if record.exc_info}
    assert types == {KeyError, AttributeError}
    assert len(errors(result)) == 2


class Drops:
    def process_request(self, request: Request) -> None:
        if request.url.endswith("robots.txt"):
            raise IgnoreRequest("not today")


class Translates:
    """Raises an exception of its own in place of the handler's."""

    def process_exception(self, request: Request, exception: Exception) -> None:
        if request.url.endswith("robots.txt"):
            raise RuntimeError("the network failed") from exception


@pytest.mark.parametrize("middleware", [Drops, Translates])
@ensureDeferred
async def test_what_a_middleware_decides_is_no_bug(web: Web, middleware: type) -> None:
    site = web.robots(answer(kind="reset"))
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {middleware: 543}})
    assert len(result.refused) == 1
    assert errors(result) == []


class DropsOthers:
    """Drops each response whose status is not 200."""

    def process_response(self, request: Request, response: Response) -> Response:
        if response.status != 200:
            raise IgnoreRequest("not today")
        return response


class RepeatsOthers:
    """Repeats each request until the status is 200."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        return response if response.status == 200 else request


class RepeatsOthersByCopies:
    def process_response(self, request: Request, response: Response) -> Request | Response:
        return response if response.status == 200 else request.replace(dont_filter=True)


class DropsOtherTypes:
    """Drops each response that is no HTML, as a snippet in many projects does."""

    def process_response(self, request: Request, response: Response) -> Response:
        if not (response.headers.get("Content-Type") or b"").startswith(b"text/html"):
            raise IgnoreRequest("not today")
        return response


@pytest.mark.parametrize("order", [543, 610])
@pytest.mark.parametrize("text", [RULES, "user-agent: *\nallow: /\n"])
@ensureDeferred
async def test_a_middleware_for_content_types_costs_no_page(web: Web, text: str, order: int) -> None:
    text_type, html = {"Content-Type": "text/plain"}, {"Content-Type": "text/html"}
    site = web.site({"/robots.txt": answer(text, headers=text_type), "*": answer("<p>page", headers=html)})
    result = await crawl(
        site.url("/"), site.url("/page"), settings={"DOWNLOADER_MIDDLEWARES": {DropsOtherTypes: order}}
    )
    assert len(result.pages) == 2
    assert result.tracebacks == []


# 543 and 610: after and before Scrapy's middleware for redirects gets the response.
OTHERS = [
    ({kind: order}, 1 if kind is DropsOthers else 10)
    for kind in (DropsOthers, RepeatsOthers, RepeatsOthersByCopies)
    for order in (543, 610)
]


@pytest.mark.parametrize(("middlewares", "times"), OTHERS)
@pytest.mark.parametrize(
    ("robots", "expected"),
    [
        pytest.param(answer(status=404), AccessResult.UNAVAILABLE, id="404"),
        pytest.param(redirect("/elsewhere"), AccessResult.SUCCESS, id="redirect"),
        pytest.param(answer(status=503), AccessResult.UNREACHABLE, id="503"),
    ],
)
@ensureDeferred
async def test_a_middleware_for_other_statuses_than_200_does_not_change_what_404s_and_redirects_mean(
    web: Web, middlewares: dict[type, int], times: int, robots: Route, expected: AccessResult
) -> None:
    site = web.site({"/robots.txt": robots, "/elsewhere": answer(RULES)})
    result, access = await outcome(site, settings={"DOWNLOADER_MIDDLEWARES": middlewares})
    assert access is expected
    assert len(site.robots_requests) == times
    assert result.stats["robotstxt/request_count"] == 1 + (expected is AccessResult.SUCCESS)


@pytest.mark.parametrize("order", [543, 610])
@ensureDeferred
async def test_an_answer_that_is_dropped_has_its_request(web: Web, order: int) -> None:
    site, seen = web.robots(answer(status=404)), list[tuple[int, str]]()

    def answered(answer: Answer, response: Response) -> None:
        seen.append((response.status, response.meta["rep_robots_txt"] and answer.url))

    await crawl(
        site.url("/"),
        settings={"DOWNLOADER_MIDDLEWARES": {DropsOthers: order}},
        prepare=lambda crawler: crawler.signals.connect(answered, robots_response, weak=False),
    )
    assert seen == [(404, site.url("/robots.txt"))]


@ensureDeferred
async def test_the_next_crawl_does_not_know_of_a_bug(web: Web, tmp_path: Any) -> None:
    site = web.robots(RULES)
    settings: dict[str, Any] = {"REP_STORAGE": f"sqlite:///{tmp_path}/rep.sqlite"}
    await crawl(site.url("/"), settings={**settings, "DOWNLOADER_MIDDLEWARES": {Broken: 543}})
    result = await crawl(site.url("/"), settings=settings)
    assert list(result.pages) == [site.url("/")]
    assert result.messages(logger="scrapy_rep") == []


# The meta of the request is plain values.


class Copies:
    """Copies the meta in each way that middlewares of projects use."""

    def process_request(self, request: Request) -> None:
        as_json = json.loads(json.dumps(request.meta))
        assert as_json == pickle.loads(pickle.dumps(request.meta)) == copy.deepcopy(request.meta) == request.meta

    def process_response(self, request: Request, response: Response) -> Response:
        json.dumps(request.meta)
        return response


@ensureDeferred
async def test_a_middleware_that_writes_the_meta_as_json_changes_nothing(web: Web) -> None:
    site = web.robots(RULES)
    urls = site.url("/"), site.url("/private")
    for order in (50, 543, 999):
        result = await crawl(*urls, settings={"DOWNLOADER_MIDDLEWARES": {Copies: order}})
        assert (list(result.pages), list(result.refused)) == ([urls[0]], [urls[1]])
        assert errors(result) == []


@ensureDeferred
async def test_a_copy_of_the_request_is_still_cut_at_the_limit(web: Web) -> None:
    class Replaces:
        def process_response(self, request: Request, response: Response) -> Response | Request:
            if request.url.endswith("robots.txt"):
                return request.replace(url=f"{request.url}?again", meta=copy.deepcopy(request.meta))
            return response

    endless = answer(RULES + "#" * 65_000, kind="endless")
    site = web.site({"/robots.txt": answer(RULES), "/robots.txt?again": endless})
    result = await crawl(site.url("/private"), settings={"DOWNLOADER_MIDDLEWARES": {Replaces: 543}})
    assert list(result.refused) == [site.url("/private")]
    assert site.requests[1]["octets"] < 10 * 2**20


class DropsTypes:
    """Drops each response that is no HTML, as a snippet in many projects does."""

    def process_response(self, request: Request, response: Response) -> Response:
        if request.url.endswith("robots.txt") or b"html" not in (response.headers.get("Content-Type") or b""):
            raise IgnoreRequest("not HTML")
        return response


@pytest.mark.parametrize(
    ("robots", "expected"),
    [
        pytest.param(RULES, AccessResult.SUCCESS, id="rules"),
        pytest.param("no rules\n", AccessResult.UNREACHABLE, id="no-group"),
        # A page that bans a proxy may quote rules.
        pytest.param(f"<html><pre>banned\n{RULES}", AccessResult.UNREACHABLE, id="a-page-with-rules"),
    ],
)
@ensureDeferred
async def test_a_dropped_200_counts_if_it_has_rules(web: Web, robots: str, expected: AccessResult) -> None:
    site = web.site({"/robots.txt": answer(robots), "*": answer("page", headers={"Content-Type": "text/html"})})
    _result, access = await outcome(site, settings={"DOWNLOADER_MIDDLEWARES": {DropsTypes: 543}})
    assert access is expected


@ensureDeferred
async def test_a_dropped_200_counts_if_its_groups_allow_everything(web: Web) -> None:
    page = answer("page", headers={"Content-Type": "text/html"})
    site = web.site({"/robots.txt": answer("user-agent: *\ndisallow:\n"), "*": page})
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {DropsTypes: 543}})
    assert list(result.pages) == [site.url("/")]
