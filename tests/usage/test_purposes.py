"""REP_PURPOSES: usage preferences in the response and the stats. REP_PURPOSES_REFUSE: pages refused by them."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from crawling import ADDON, QUIET, Crawl, CrawlSpider, FollowsByItself, crawl, refusal_by
from doc_pages import marked
from installed_scrapy import DATA_LOSS
from pytest_twisted import ensureDeferred
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from web import Site, Web, answer, redirect

from scrapy_rep import RepMiddleware
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.protocol.words import REASON_WORDS
from scrapy_rep.signals import robots_known
from scrapy_rep.usage.preferences import Usage, UsageVerdict

PREFERENCES = """user-agent: *
disallow: /private
content-usage: train-ai=y
content-usage: /art/ train-ai=n
content-signal: search=yes
content-signal: /shop/ search=no
"""
PURPOSES = {"REP_PURPOSES": ["train-ai", "search"]}
REFUSE = {**PURPOSES, "REP_PURPOSES_REFUSE": True}


def refused_by(place: str) -> str:
    return refusal_by(VerdictReason.USAGE, purpose="train-ai", where=place)


def for_use(verdict: Verdict) -> UsageVerdict:
    assert isinstance(verdict, UsageVerdict)
    return verdict


def usage(result: Crawl) -> dict[str, Any]:
    """Return the preferences of each page, by path."""
    pages = result.pages.items()
    return {"/" + url.split("/", 3)[3]: page.meta.get("robots_usage", "not there") for url, page in pages}


def usage_stats(result: Crawl) -> dict[str, int]:
    begin = "rep/usage/"
    return {name.removeprefix(begin): n for name, n in result.stats.items() if name.startswith(begin)}


def site_of(web: Web, **headers: str) -> Site:
    """An origin with PREFERENCES. `headers` has the Content-Usage header of each page."""
    routes = {f"/{page}": answer("page", headers={"Content-Usage": value}) for page, value in headers.items()}
    return web.site({"/robots.txt": answer(PREFERENCES), **routes})


# Preferences in the response.


@ensureDeferred
async def test_each_response_has_the_preferences_of_its_robots_txt(web: Web) -> None:
    site, silent = site_of(web), web.site()
    urls = [site.url("/"), site.url("/art/1"), site.url("/shop/1"), site.url("/private"), silent.url("/silent")]
    result = await crawl(*urls, settings=PURPOSES)
    assert usage(result) == {
        "/": {"train-ai": True, "search": True},
        "/art/1": {"train-ai": False, "search": True},
        "/shop/1": {"train-ai": True, "search": False},
        "/silent": {},
    }
    assert json.loads(json.dumps(usage(result))) == usage(result)
    assert usage_stats(result) == {
        "train-ai/allowed": 2,
        "train-ai/disallowed": 1,
        "train-ai/unknown": 1,
        "search/allowed": 2,
        "search/disallowed": 1,
        "search/unknown": 1,
    }
    (refused,) = result.refused.values()
    assert refused.verdict.reason is VerdictReason.RULE
    assert for_use(refused.verdict).usage == Usage(), "a page that must not be fetched has no preferences"


@ensureDeferred
async def test_without_purposes_nothing_is_evaluated(web: Web) -> None:
    result = await crawl(site_of(web, a="train-ai=n").url("/a"), settings={"REP_PURPOSES_REFUSE": True})
    assert usage(result) == {"/a": "not there"}
    assert usage_stats(result) == {}
    (warning,) = result.messages()
    assert RepMiddleware.of(result.crawler).gate.before_download == [], "so no verdict is made for allowed requests"
    assert warning.startswith("REP_PURPOSES_REFUSE refuses nothing: REP_PURPOSES is empty. Set it to")


@ensureDeferred
async def test_a_page_is_refused_for_its_purpose_without_listeners(web: Web) -> None:
    site = site_of(web)

    def prepare(crawler: Crawler) -> None:
        def look_at_nothing() -> None:
            gate = RepMiddleware.of(crawler).gate
            gate.before_download.clear()
            gate.after_download.clear()

        crawler.signals.connect(look_at_nothing, signal=signals.spider_opened, weak=False)

    result = await crawl(site.url("/"), site.url("/art/1"), settings=REFUSE, prepare=prepare)
    assert list(result.refused) == [site.url("/art/1")]


@ensureDeferred
async def test_listeners_and_spiders_can_ask_for_preferences(web: Web) -> None:
    site = site_of(web)
    noted: list[Any] = []

    class Asks(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> None:
            verdict = for_use(await RepMiddleware.of(self.crawler).verdict(site.url("/art/1")))
            noted.append((verdict.allowed, verdict.purpose, dict(verdict.usage)))

    def known(info: OriginInfo) -> None:
        assert info.robots is not None
        noted.append(dict(Usage.of(info.robots, site.url("/shop/1"), "NewsBot")))

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(known, signal=robots_known, weak=False)

    await crawl(site.url("/"), settings=REFUSE, spider=Asks, prepare=prepare)
    first, second = noted
    assert first == {"train-ai": True, "search": False}
    assert second == (False, "train-ai", {"train-ai": False, "search": True})


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param(["", "train-ai=n"], {"train-ai": False, "search": True}, id="rfc9110-5.6.1-an-empty-element"),
        pytest.param(["train-ai=n"], {"train-ai": False, "search": True}, id="attach-2-disallowed-beats-allowed"),
        pytest.param(["search=y"], {"train-ai": True, "search": True}, id="attach-2-both-allow"),
        pytest.param(["train-ai=n", "search=n"], {"train-ai": False, "search": False}, id="rfc9110-5.3-one-list"),
        pytest.param(
            ["train-ai=n", "train-ai=y"], {"train-ai": True, "search": True}, id="vocab-6.5.1-the-last-counts"
        ),
        pytest.param(["train-ai=n,"], {"train-ai": True, "search": True}, id="vocab-6.5.1-what-can-not-be-parsed"),
        pytest.param(["/ train-ai=n"], {"train-ai": True, "search": True}, id="attach-2-a-header-has-no-path"),
        pytest.param(["\xff\0" * 9], {"train-ai": True, "search": True}, id="attach-7-any-bytes"),
    ],
)
@ensureDeferred
async def test_the_stricter_of_robots_txt_and_header_counts(
    web: Web, headers: list[str], expected: dict[str, bool]
) -> None:
    page = answer("page", headers=[("Content-Usage", value) for value in headers])
    site = web.site({"/robots.txt": answer(PREFERENCES), "/a": page})
    assert usage(await crawl(site.url("/a"), settings=PURPOSES)) == {"/a": expected}


@ensureDeferred
async def test_a_content_signal_header_counts_too(web: Web) -> None:
    page = answer("page", headers={"Content-Signal": "ai-train=no, search=yes"})
    site = web.site({"/robots.txt": answer("User-agent: *\nContent-Usage: search=n"), "/a": page})
    assert usage(await crawl(site.url("/a"), settings=PURPOSES)) == {"/a": {"search": False, "train-ai": False}}


NOAI = '<html><head><META content="noindex, NoAI" NAME="Robots"></head></html>'
HTML = {"Content-Type": "text/html"}


@pytest.mark.parametrize(
    ("page", "source"),
    [
        pytest.param(answer(headers={"X-Robots-Tag": "noai"}), "X-Robots-Tag: noai", id="x-robots-tag"),
        pytest.param(answer(headers={"Robots-Tag": "noindex, noimageai"}), "Robots-Tag: noindex, noimageai", id="new"),
        pytest.param(answer(headers={"X-Robots-Tag": "SettingBot: NOML"}), "X-Robots-Tag: SettingBot: NOML", id="own"),
        pytest.param(answer(headers={"X-Robots-Tag": "otherbot: noai"}), None, id="of-another-crawler"),
        pytest.param(answer(headers={"X-Robots-Tag": "noindex, nofollow, none"}), None, id="about-indexing"),
        pytest.param(
            answer(headers=[("X-Robots-Tag", "otherbot: noindex"), ("X-Robots-Tag", "noai")]),
            "X-Robots-Tag: noai",
            id="two-lines",
        ),
        pytest.param(answer(NOAI, headers=HTML), "Meta Robots: noindex, NoAI", id="meta"),
        pytest.param(
            answer(NOAI.replace("Robots", "settingbot"), headers=HTML), "Meta Robots: noindex, NoAI", id="own"
        ),
        pytest.param(answer(NOAI.replace("Robots", "otherbot"), headers=HTML), None, id="meta-of-another-crawler"),
        pytest.param(answer(NOAI.replace("NoAI", "none"), headers=HTML), None, id="meta-about-indexing"),
        pytest.param(answer(f"<!-- {NOAI} -->noai", headers=HTML), None, id="meta-in-a-comment"),
        pytest.param(answer(f"<script>'{NOAI}'</script>", headers=HTML), None, id="meta-in-a-script"),
        pytest.param(answer(NOAI, headers={"Content-Type": "text/plain"}), None, id="no-html"),
    ],
)
@ensureDeferred
async def test_noai_in_robots_tags_disallows_training(web: Web, page: dict[str, Any], source: str | None) -> None:
    site = web.site({"/robots.txt": answer("User-agent: *\nContent-Signal: search=yes, ai-train=yes"), "/a": page})
    settings = {**PURPOSES, "USER_AGENT": "SettingBot/1.0"}
    result = await crawl(site.url("/a"), settings=settings)
    assert usage(result) == {"/a": {"search": True, "train-ai": source is None}}
    in_file = "Content-Signal: search=yes, ai-train=yes"
    (meta,) = (response.meta for response in result.pages.values())
    assert meta["robots_usage_sources"] == {"search": in_file, "train-ai": source or in_file}
    refused = await crawl(site.url("/a"), settings={**settings, **REFUSE})
    where = "the page itself" if source and source.startswith("Meta") else "the header of the response"
    expected = [refused_by(f"{where} ({source})")] if source else []
    assert [str(error) for error in refused.refused.values()] == expected


TDM = '<html><head><Meta Name="TDM-Reservation" content="1"><meta name="tdm-policy" content="/p"></head></html>'


@pytest.mark.parametrize(
    ("page", "expected", "where"),
    [
        pytest.param(
            answer(headers={"TDM-Reservation": "1"}),
            False,
            "the header of the response (Tdm-Reservation: 1)",
            id="header",
        ),
        pytest.param(answer(TDM, headers=HTML), False, "the page itself (Meta Tdm-Reservation: 1)", id="element"),
        pytest.param(
            answer(TDM, headers={**HTML, "tdm-reservation": "0"}),
            False,
            "the page itself (Meta Tdm-Reservation: 1)",
            id="the-stricter-of-both",
        ),
        pytest.param(answer(TDM.replace('"1"', '"0"'), headers=HTML), True, None, id="not-reserved"),
        pytest.param(answer(TDM, headers={"Content-Type": "text/plain"}), None, None, id="no-html"),
        pytest.param(answer(headers={"TDM-Policy": "https://example.com/policy"}), None, None, id="a-policy-alone"),
    ],
)
@ensureDeferred
async def test_a_reservation_disallows_text_and_data_mining(
    web: Web, page: dict[str, Any], expected: bool | None, where: str | None
) -> None:
    site = web.site({"/robots.txt": answer("User-agent: *\nContent-Usage: search=y"), "/a": page})
    purposes = {"REP_PURPOSES": ["tdm"]}
    stated = {"search": True, **({} if expected is None else {"tdm": expected})}
    assert usage(await crawl(site.url("/a"), settings=purposes)) == {"/a": stated}
    refused = await crawl(site.url("/a"), settings={**purposes, "REP_PURPOSES_REFUSE": True})
    said = [refusal_by(VerdictReason.USAGE, purpose="tdm", where=where)] if where else []
    assert [str(error) for error in refused.refused.values()] == said


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [
        pytest.param("; charset=utf-16", "utf-16", id="UTF-16"),
        pytest.param("", "utf-16", id="UTF-16-by-its-byte-order-mark"),
        pytest.param("; charset=utf-16be", "utf-16-be", id="UTF-16BE"),
        pytest.param("; charset=idna", "utf-8", id="a-codec-that-cannot-decode-pages"),
        pytest.param("; charset=base64", "utf-8", id="a-codec-that-decodes-no-text"),
        pytest.param("; charset=nonsense", "utf-8", id="an-unknown-charset"),
    ],
)
@ensureDeferred
async def test_noai_is_read_in_the_encoding_of_the_page(web: Web, charset: str, encoding: str) -> None:
    page = answer(NOAI.encode(encoding), headers={"Content-Type": f"text/html{charset}"})
    site = web.site({"/robots.txt": answer(""), "/a": page})
    # Scrapy's MetaRefreshMiddleware reads the text of the page, and fails if the page cannot be decoded.
    result = await crawl(site.url("/a"), settings={**REFUSE, "METAREFRESH_ENABLED": False})
    assert [str(error) for error in result.refused.values()] == [
        refused_by("the page itself (Meta Robots: noindex, NoAI)")
    ]
    assert result.failed == {}


@ensureDeferred
async def test_the_end_of_the_crawl_says_how_many_pages_stated_what(web: Web) -> None:
    site = site_of(web)
    for settings in (PURPOSES, REFUSE):
        result = await crawl(site.url("/"), site.url("/art/1"), web.site().url("/"), settings=settings)
        told = [line for line in result.messages(logging.INFO, "scrapy_rep") if "purpose" in line and "Pages" in line]
        assert told == [
            "Pages by what sites state about the purpose 'train-ai': allowed for 1, disallowed for 1, unknown for 1",
            "Pages by what sites state about the purpose 'search': allowed for 2, disallowed for 0, unknown for 1",
        ]


class Copies(CrawlSpider):
    """Requests another page with all the meta of the first, as spiders do."""

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        if target := response.meta.get("then"):
            meta = {**response.meta, "then": None}
            yield self.prepared(Request(target, meta=meta, errback=self.note, dont_filter=True))

    def note(self, failure: Any) -> None:
        self.crawl.ends.append((type(failure.value).__name__, failure.request.meta.get("robots_usage")))


@ensureDeferred
async def test_no_preferences_are_copied_with_the_meta_of_another_request(web: Web) -> None:
    site, silent = site_of(web), web.site({"/cut": answer("x" * 200, kind="cut")})
    forbids = web.robots("user-agent: *\ndisallow: /no\n")
    targets = [silent.url("/ok"), silent.url("/cut"), forbids.url("/no")]
    requests = [Request(site.url(f"/{at}"), meta={"then": target}) for at, target in enumerate(targets)]
    free = Request(silent.url("/free"), meta={"robots_usage": {"search": True}, "dont_obey_robotstxt": True})
    result = await crawl(*requests, free, settings=PURPOSES, spider=Copies)
    both = {"train-ai": True, "search": True}
    assert usage(result) == {"/0": both, "/1": both, "/2": both, "/ok": {}, "/free": {}}
    assert sorted(result.ends) == [("ForbiddenByRobots", None), (DATA_LOSS, None)]


class Redirected(CrawlSpider):
    """Gets the page, and not the redirect to it."""

    def prepared(self, request: str | Request) -> Request:
        prepared = super().prepared(request)
        del prepared.meta["handle_httpstatus_all"]
        return prepared


@ensureDeferred
async def test_a_redirect_is_judged_by_its_target(web: Web) -> None:
    site = site_of(web)
    first = web.site({"/": redirect(site.url("/art/1"))})
    request = Request(first.url("/"), meta={"robots_usage": {"search": False}})
    result = await crawl(request, settings=PURPOSES, spider=Redirected)
    assert usage(result) == {"/": {"train-ai": False, "search": True}}
    assert usage_stats(result) == {"train-ai/disallowed": 1, "search/allowed": 1}


@ensureDeferred
async def test_a_robots_txt_with_no_store_decides_about_requests_that_waited(web: Web) -> None:
    robots = answer(PREFERENCES, headers={"cache-control": "no-store"})
    site = web.site({"/robots.txt": robots})
    settings = {**REFUSE, "REP_LIFETIME_MIN": 0}
    result = await crawl(site.url("/art/1"), site.url("/x"), settings=settings)
    assert usage(result) == {"/x": {"train-ai": True, "search": True}}
    assert [for_use(error.verdict).purpose for error in result.refused.values()] == ["train-ai"]


# Refused pages.


@ensureDeferred
async def test_a_page_that_robots_txt_disallows_is_not_fetched(web: Web) -> None:
    site = site_of(web)
    result = await crawl(site.url("/art/1"), site.url("/shop/1"), site.url("/"), settings=REFUSE)
    assert usage(result) == {"/": {"train-ai": True, "search": True}}
    assert sorted(site.targets) == ["/", "/robots.txt"]
    error = result.refused[site.url("/art/1")]
    where = f"{site.robots_url}, line 4, group of '*': Content-Usage: /art/ train-ai=n"
    assert str(error) == refused_by(f"robots.txt ({where})")
    verdict = for_use(error.verdict)
    assert (verdict.allowed, verdict.reason, verdict.rule, verdict.purpose) == (
        *(False, VerdictReason.USAGE, None, "train-ai"),
    )
    assert dict(verdict.usage) == {"train-ai": False, "search": True}
    assert (verdict.words, verdict.source) == REASON_WORDS[VerdictReason.USAGE.value][1:3]
    assert "line 6, group of '*': Content-Signal: /shop/ search=no)" in str(result.refused[site.url("/shop/1")])
    assert result.stats["rep/dropped/usage"] == result.stats["robotstxt/forbidden"] == 2
    assert usage_stats(result) == {
        "train-ai/allowed": 2,
        "train-ai/disallowed": 1,
        "search/allowed": 2,
        "search/disallowed": 1,
    }


BY_TOKEN = "user-agent: *\ndisallow: /no\n\nuser-agent: __usage_ai-training\ndisallow: /art/\nallow: /open/\n"


@ensureDeferred
async def test_a_page_that_a_group_for_the_policy_token_disallows_is_not_fetched(web: Web) -> None:
    site = web.site({"/robots.txt": answer(BY_TOKEN)})
    told: list[dict[str, Any]] = []

    class Tells(CrawlSpider):
        def failed(self, failure: Any) -> None:
            told.append(failure.request.meta["robots"])
            super().failed(failure)

    settings = {**REFUSE, "REP_EVIDENCE": True}
    urls = [site.url(path) for path in ("/art/1", "/open/1", "/")]
    result = await crawl(*urls, settings=settings, spider=Tells)
    assert usage(result) == {"/open/1": {"train-ai": True}, "/": {}}
    (error,) = result.refused.values()
    where = f"{site.robots_url}, line 5, group of '__usage_ai-training': Disallow: /art/"
    assert str(error) == refused_by(f"robots.txt ({where})")
    (evidence,) = told
    assert [evidence[key] for key in ("reason", "rule", "line", "group")] == [
        *("usage", "Disallow: /art/", 5, "__usage_ai-training"),
    ]


@ensureDeferred
async def test_a_url_with_dot_segments_is_refused_as_servers_read_it(web: Web) -> None:
    site = web.site({"/robots.txt": answer(BY_TOKEN)})
    result = await crawl(Request(site.url("/open/%2e%2e/art/1")), settings=REFUSE)
    (error,) = result.refused.values()
    assert str(error).endswith(f"Disallow: /art/), because the URL can be read as {site.url('/art/1')}")


@ensureDeferred
async def test_a_preference_before_the_first_user_agent_line_counts(web: Web) -> None:
    site = web.site({"/robots.txt": answer("content-signal: ai-train=no, search=yes\nuser-agent: *\nallow: /\n")})
    result = await crawl(site.url("/"), settings=REFUSE)
    (error,) = result.refused.values()
    assert str(error) == refused_by(f"robots.txt ({site.robots_url}, line 1: Content-Signal: ai-train=no, search=yes)")


@ensureDeferred
async def test_without_purposes_policy_tokens_are_ignored(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Usage, "of", None)
    site = web.site({"/robots.txt": answer(BY_TOKEN)})
    result = await crawl(site.url("/art/1"))
    assert list(result.pages) == [site.url("/art/1")]


@ensureDeferred
async def test_purposes_without_the_extra_stop_the_start(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "http_sf", None)
    with pytest.raises(ValueError, match="REP_PURPOSES needs the extra `usage`"):
        await crawl(web.site().url("/"), settings=PURPOSES)


@ensureDeferred
async def test_a_response_whose_header_disallows_does_not_reach_the_spider(web: Web) -> None:
    site = site_of(web, a="train-ai=n;why=?1", b="train-ai=y")
    result = await crawl(site.url("/a"), site.url("/b"), settings=REFUSE)
    assert list(usage(result)) == ["/b"]
    error = result.refused[site.url("/a")]
    assert str(error) == refused_by("the header of the response (Content-Usage: train-ai=n;why=?1)")
    assert dict(for_use(error.verdict).usage) == {"train-ai": False, "search": True}
    assert result.stats["rep/dropped/usage"] == 1
    assert usage_stats(result) == {"train-ai/allowed": 1, "train-ai/disallowed": 1, "search/allowed": 2}
    assert f"{error}: <GET {site.url('/a')}>" in result.messages(logging.DEBUG, "scrapy_rep")


@ensureDeferred
async def test_the_evidence_names_the_line_or_header_that_disallows(web: Web) -> None:
    site = site_of(web, a="train-ai=n")
    told: dict[str, Any] = {}

    class Tells(CrawlSpider):
        def failed(self, failure: Any) -> None:
            told[failure.request.url] = failure.request.meta["robots"]

    settings = {**REFUSE, "REP_EVIDENCE": True}
    await crawl(site.url("/a"), site.url("/art/1"), settings=settings, spider=Tells)
    by_header, by_file = told[site.url("/a")], told[site.url("/art/1")]
    assert [one["reason"] for one in (by_header, by_file)] == ["usage", "usage"]
    assert (by_header["rule"], by_header["line"]) == ("Content-Usage: train-ai=n", None)
    assert (by_file["rule"], by_file["line"]) == ("Content-Usage: /art/ train-ai=n", 4)
    assert by_file["sha256"] is not None


@ensureDeferred
async def test_a_dry_run_reports_each_page_once_and_fetches_it(web: Web) -> None:
    site = site_of(web, a="train-ai=n", **{"art/1": "train-ai=n"})
    result = await crawl(site.url("/a"), site.url("/art/1"), settings={**REFUSE, "REP_DRY_RUN": True})
    no = {"train-ai": False, "search": True}
    assert usage(result) == {"/a": no, "/art/1": no}
    assert result.stats["rep/dry_run/usage"] == result.stats["rep/dry_run/forbidden"] == 2
    assert usage_stats(result) == {"train-ai/disallowed": 2, "search/allowed": 2}
    assert not [name for name in result.stats if name.startswith(("rep/dropped", "robotstxt/forbidden"))]


@ensureDeferred
async def test_an_exempt_page_is_not_refused(web: Web) -> None:
    site = web.site(
        {
            "/robots.txt": answer("user-agent: *\ncontent-usage: search=n\n", headers={"Content-Usage": "search=n"}),
            "/a": answer("page", headers={"Content-Usage": "train-ai=n"}),
        }
    )
    free = Request(site.url("/a"), meta={"dont_obey_robotstxt": True})
    result = await crawl(site.robots_url, free, settings=REFUSE)
    assert usage(result) == {"/robots.txt": {"search": False}, "/a": {"train-ai": False}}
    exempt = await crawl(site.url("/a"), settings={**REFUSE, "REP_EXEMPT": [site.origin]})
    assert usage(exempt) == {"/a": {"train-ai": False}}


@ensureDeferred
async def test_a_response_from_scrapys_cache_is_judged_like_any_other(web: Web, tmp_path: Path) -> None:
    site = site_of(web, a="train-ai=n")
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    await crawl(site.url("/a"), site.url("/art/1"), settings=settings)
    cached = await crawl(site.url("/a"), site.url("/art/1"), settings={**settings, **PURPOSES})
    refused = await crawl(site.url("/a"), site.url("/art/1"), settings={**settings, **REFUSE})
    assert site.targets.count("/a") == site.targets.count("/art/1") == 1
    no = {"train-ai": False, "search": True}
    assert usage(cached) == {"/a": no, "/art/1": no}
    assert sorted(refused.refused) == [site.url("/a"), site.url("/art/1")]


class Earlier:
    """A cache that answers before scrapy-rep sees the request."""

    def process_request(self, request: Request) -> Response | None:
        is_page = request.url.endswith("/early")
        return Response(request.url, headers={"Content-Usage": "train-ai=n"}) if is_page else None


@pytest.mark.parametrize("refuse", [False, True])
@ensureDeferred
async def test_a_response_whose_request_was_not_seen_is_judged_by_the_known_rules(web: Web, refuse: bool) -> None:
    url = site_of(web).url("/early")
    settings = {"REP_PURPOSES": "train-ai", "REP_PURPOSES_REFUSE": refuse, "DOWNLOADER_MIDDLEWARES": {Earlier: 50}}
    result = await crawl(url, settings=settings)
    assert list(result.refused) == [url] * refuse
    assert usage(result) == ({} if refuse else {"/early": {"train-ai": False, "search": True}})


@pytest.mark.parametrize("refuse", [False, True])
@ensureDeferred
async def test_if_a_handler_follows_a_redirect_the_last_page_counts(web: Web, refuse: bool) -> None:
    other = site_of(web)
    site = web.site({"*": redirect(other.url("/art/1"))})
    settings = {**PURPOSES, "REP_PURPOSES_REFUSE": refuse, "DOWNLOAD_HANDLERS": {"http": FollowsByItself}}
    result = await crawl(site.url("/"), settings=settings)
    assert usage(result) == ({} if refuse else {"/": {"train-ai": False, "search": True}})
    assert usage_stats(result) == {"train-ai/disallowed": 1, "search/allowed": 1}
    where = f"{other.robots_url}, line 4, group of '*': Content-Usage: /art/ train-ai=n"
    refused = [refused_by(f"robots.txt ({where})")] * refuse
    assert list(map(str, result.refused.values())) == refused


@ensureDeferred
async def test_if_a_handler_follows_to_an_origin_whose_robots_txt_expires_at_once(web: Web) -> None:
    other = web.robots(answer("User-agent: *\nContent-Usage: train-ai=n", headers={"Cache-Control": "no-store"}))
    site = web.site({"*": redirect(other.url("/art"))})
    settings = {**REFUSE, "REP_LIFETIME_MIN": 0, "DOWNLOAD_HANDLERS": {"http": FollowsByItself}}
    result = await crawl(site.url("/"), settings=settings)
    assert list(result.pages) == []
    (refused,) = result.refused.values()
    assert refused.verdict.robots_url == other.robots_url


@ensureDeferred
async def test_if_a_handler_follows_to_an_exempt_site_the_page_is_not_refused(web: Web) -> None:
    target = web.site().url("/").replace("127.0.0.1", "localhost")
    site = web.site({"/robots.txt": answer("User-agent: *\nContent-Usage: search=y"), "*": redirect(target)})
    settings = {**PURPOSES, "REP_EXEMPT": ["localhost"], "DOWNLOAD_HANDLERS": {"http": FollowsByItself}}
    assert usage(await crawl(site.url("/"), settings=settings)) == {"/": {}}


# Licenses (RSL 1.0).

RSL = "application/rsl+xml"
L1, L2 = "https://terms.example/1.xml", "https://terms.example/2.xml"


def licenses(result: Crawl) -> dict[str, Any]:
    """Return the licenses of each page, by path. The meta of pages is written as JSON by middlewares."""
    pages = result.pages.items()
    assert all(
        json.loads(json.dumps(page.meta["robots_licenses"])) == page.meta["robots_licenses"] for _, page in pages
    )
    return {"/" + url.split("/", 3)[3]: page.meta["robots_licenses"] for url, page in pages}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([], [L1], id="robots.txt-alone"),
        pytest.param([f'<{L2}>; rel="license"; type="{RSL}"'], [L1, L2], id="both"),
        pytest.param([f"<{L1}>; rel=license; type={RSL}"], [L1], id="the-same-once"),
        pytest.param([f"<{L2}>;type={RSL} ;REL=license"], [L1, L2], id="rfc8288-3-any-order-and-case"),
        pytest.param(
            [f'<{L2}>; rel="nofollow License"; type="{RSL}; v=1"'], [L1, L2], id="rfc8288-3.3-several-relations"
        ),
        pytest.param([f'</a,b>; title="<x>, y"; rel=license; type="{RSL}"'], [L1, "/a,b"], id="rfc8288-3.1-relative"),
        pytest.param([f'<{L2}>; rel="license"'], [L1], id="another-license-than-rsl"),
        pytest.param([f"<{L2}>; rel=next; type={RSL}"], [L1], id="another-relation"),
        pytest.param([f'<{L2}>; rel="next"; title="; rel=license"; type={RSL}'], [L1], id="words-in-quotes"),
        pytest.param([f"<{L2}>; rel=license, <{L1}>; type={RSL}"], [L1], id="two-links"),
        pytest.param([f"<{L2}>; rel=license; type={RSL}, <x>"], [L1, L2], id="rfc8288-3-a-link-after-it"),
        pytest.param([f"<http://[>; rel=license; type={RSL}", "<<,;"], [L1], id="malformed"),
        pytest.param(["<x>; rel=next", f"<{L2}>; rel=license; type={RSL}"], [L1, L2], id="rfc9110-5.3-one-list"),
    ],
)
@ensureDeferred
async def test_each_response_has_the_licenses_of_robots_txt_and_of_its_link_headers(
    web: Web, headers: list[str], expected: list[str]
) -> None:
    page = answer("page", headers=[("Link", value) for value in headers])
    site = web.site({"/robots.txt": answer(f"License: {L1}\n{PREFERENCES}"), "/x/1": page})
    result = await crawl(site.url("/x/1"), settings=PURPOSES)
    assert licenses(result) == {"/x/1": [url if "://" in url else site.url(url) for url in expected]}
    assert result.stats["rep/licensed"] == 1


@ensureDeferred
async def test_a_hostile_number_of_licenses_is_not_copied_to_each_page(web: Web) -> None:
    robots = "".join(f"License: https://terms.example/{n}\n" for n in range(10_000))
    links = ", ".join(f"<{n}>; rel=license; type={RSL}" for n in range(200))
    site = web.site({"/robots.txt": answer(robots), "/a": answer("page", headers={"Link": links})})
    (found,) = licenses(await crawl(site.url("/a"), settings=PURPOSES)).values()
    assert len(found) == 40
    assert found[0] == "https://terms.example/0"


@ensureDeferred
async def test_pages_without_a_license_have_an_empty_list_and_are_not_counted(web: Web) -> None:
    site = web.robots(PREFERENCES)
    result = await crawl(site.url("/a"), settings=PURPOSES)
    assert licenses(result) == {"/a": []}
    assert "rep/licensed" not in result.stats
    without = await crawl(web.robots(f"License: {L1}\n").url("/a"))
    assert ["robots_licenses" in page.meta for page in without.pages.values()] == [False]


@ensureDeferred
async def test_the_licenses_of_another_page_are_not_copied(web: Web) -> None:
    request = Request(web.robots(PREFERENCES).url("/a"), meta={"robots_licenses": [L1]})
    result = await crawl(request, settings=PURPOSES)
    assert licenses(result) == {"/a": []}
    assert result.messages() == []


@ensureDeferred
async def test_the_licenses_are_kept_if_memory_drops_the_robots_txt_meanwhile(web: Web) -> None:
    page = answer("page", delay=0.2)
    site = web.site({"/robots.txt": answer(f"License: {L1}\n", headers={"Cache-Control": "no-store"}), "/a": page})

    def prepare(crawler: Crawler) -> None:
        def forget(request: Request) -> None:
            RepMiddleware.of(crawler)._single_flight._memory._in_use.clear()

        crawler.signals.connect(forget, signal=signals.request_reached_downloader, weak=False)

    assert licenses(await crawl(site.url("/a"), settings=PURPOSES, prepare=prepare)) == {"/a": [L1]}


@ensureDeferred
async def test_the_spider_of_the_docs_fetches_each_license_once(web: Web, tmp_path: Path) -> None:
    (tmp_path / "pages.py").write_text(marked("licenses"))  # Scrapy looks at the source of callbacks
    spider = run_path(str(tmp_path / "pages.py"))["PagesAndLicenses"]
    terms = web.site({"/license.xml": answer("<rsl/>")})
    url, site = terms.url("/license.xml"), web.robots(f"License: {terms.url('/license.xml')}\n")
    items: list[dict[str, Any]] = []
    crawler = Crawler(spider, {**QUIET, **ADDON})

    def scraped(item: dict[str, Any]) -> None:
        items.append(item)

    crawler.signals.connect(scraped, signal=signals.item_scraped)
    await crawler.crawl(start_urls=[site.url("/a"), site.url("/b")], allowed_domains=["localhost", "127.0.0.1"])
    pages = [{"url": site.url(path), "licenses": [url]} for path in ("/a", "/b")]
    assert sorted(items, key=str) == sorted([*pages, {"url": url, "license": "<rsl/>"}], key=str)
    assert terms.targets == ["/robots.txt", "/license.xml"]
