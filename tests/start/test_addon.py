"""The add-on, which is one line in the settings, and the checks of all other settings."""

from __future__ import annotations

import gzip
import json
import logging
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from crawling import ADDON as BY_ADDON, CrawlSpider, crawl
from doc_pages import ROOT
from processes import PythonProcess, run_python, until
from pytest_twisted import ensureDeferred
from scrapy import Request, Spider
from scrapy.crawler import Crawler, CrawlerRunner
from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.settings import Settings
from web import RULES, Site, Web, answer

import scrapy_rep
from scrapy_rep import AccessResult, RepMiddleware, RepRobotParser, VerdictReason
from scrapy_rep.origin_info import OriginKind
from scrapy_rep.settings import OCTETS_OF_ORIGIN, SETTINGS, RepSettings

BUILTIN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
COMPRESSION = "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware"
NOTHING = "user-agent: *\ndisallow: /\n"


@pytest.mark.parametrize(
    "listed",
    [{}, {BUILTIN: 100}, {BUILTIN: 543}, {BUILTIN: None}, {RobotsTxtMiddleware: 100}, {RobotsTxtMiddleware: 900}],
    ids=str,
)
@ensureDeferred
async def test_the_addon_replaces_scrapys_middleware_however_it_is_listed(web: Web, listed: dict[Any, Any]) -> None:
    site = web.robots(answer(status=503))
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": listed})
    assert list(result.refused) == [site.url("/")]
    assert result.crawler.get_downloader_middleware(RobotsTxtMiddleware) is None
    assert result.crawler.get_downloader_middleware(RepMiddleware) is not None
    is_told = None in listed.values()
    assert len(result.messages()) == 2 + is_told, "only the outage and its summary, and that `None` has no effect"


@pytest.mark.parametrize("obey", [{"ROBOTSTXT_OBEY": True}, {}], ids=str)
@pytest.mark.parametrize("key", [BUILTIN, RobotsTxtMiddleware], ids=["path", "class"])
@pytest.mark.parametrize(("where", "place"), [("project", "the project settings"), ("spider", "the spider settings")])
@ensureDeferred
async def test_a_warning_says_that_none_does_not_switch_robots_txt_off(
    web: Web, where: str, place: str, key: Any, obey: dict[str, Any]
) -> None:
    site, off = web.robots(NOTHING), {"DOWNLOADER_MIDDLEWARES": {key: None}}
    spider = type("Off", (CrawlSpider,), {"custom_settings": off if where == "spider" else None})
    result = await crawl(site.url("/"), spider=spider, settings={**obey, **(off if where == "project" else {})})
    assert list(result.refused) == [site.url("/")]
    (warning,) = result.messages()
    assert warning.startswith(f"DOWNLOADER_MIDDLEWARES (in {place}) switches RobotsTxtMiddleware off, but")
    assert "scrapy-rep obeys robots.txt" in warning
    assert "ROBOTSTXT_OBEY = False" in warning


class OwnRepMiddleware(RepMiddleware):
    pass


@pytest.mark.parametrize(
    ("orders", "settings", "is_told"),
    [
        ({"scrapy_rep.RepMiddleware": None}, {}, True),
        ({"scrapy_rep.middleware.RepMiddleware": None, BUILTIN: None}, {"ROBOTSTXT_OBEY": True}, True),
        ({RepMiddleware: None}, {}, True),
        ({RepMiddleware: None}, {"ROBOTSTXT_OBEY": False}, False),
        ({RepMiddleware: None, OwnRepMiddleware: 100}, {}, False),
    ],
    ids=["path", "module", "class", "not-obeying", "own-subclass"],
)
@ensureDeferred
async def test_a_warning_says_that_none_switches_ours_off(
    web: Web, orders: dict[Any, Any], settings: dict[str, Any], is_told: bool
) -> None:
    site = web.robots(NOTHING)
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": orders, **settings})
    assert bool(result.refused) is (OwnRepMiddleware in orders)
    said = (
        "RepMiddleware off, but ROBOTSTXT_OBEY is True: scrapy-rep does not obey robots.txt. To crawl without"
        " robots.txt, set ROBOTSTXT_OBEY = False there. Otherwise remove the entry"
    )
    assert [message.partition(" switches ")[2] for message in result.messages()] == is_told * [said]


@pytest.mark.parametrize(
    "settings",
    [
        {"ROBOTSTXT_OBEY": False, "DOWNLOADER_MIDDLEWARES": {BUILTIN: None}},
        {"DOWNLOADER_MIDDLEWARES": {BUILTIN: None, "scrapy_rep.RepMiddleware": 100}},
        {"DOWNLOADER_MIDDLEWARES": {BUILTIN: 100}},
        {"DOWNLOADER_MIDDLEWARES": {COMPRESSION: None}},
    ],
    ids=["off", "by-hand-too", "listed", "another"],
)
@ensureDeferred
async def test_no_warning_about_none_that_has_its_effect(settings: dict[str, Any]) -> None:
    result = await crawl(settings=settings)
    assert not any("switches RobotsTxtMiddleware off" in message for message in result.messages())


class OwnGuard:
    def process_request(self, request: Request) -> None:
        pass


class OwnOffsite(OffsiteMiddleware):
    pass


class OnlyLooks:
    def process_response(self, request: Request, response: Response) -> Response:
        return response


@pytest.mark.parametrize(
    ("orders", "settings", "named"),
    [
        ({OwnGuard: 50, OnlyLooks: 60}, {}, ["OwnGuard"]),
        ({OwnGuard: 50}, {"REP_WAITING_MAX": 0}, []),
        ({OwnGuard: 100}, {}, []),
        ({OwnOffsite: 50, OffsiteMiddleware: 60}, {}, []),
        ({HttpCacheMiddleware: 50}, {"HTTPCACHE_ENABLED": True}, ["HttpCacheMiddleware"]),
        ({OnlyLooks: 1}, {}, []),
        ({}, {}, []),
    ],
    ids=["guard", "waits-in-the-downloader", "same-order", "offsite", "cache", "responses-only", "none"],
)
@ensureDeferred
async def test_middlewares_that_see_requests_after_the_wait_are_named(
    web: Web, tmp_path: Path, orders: dict[Any, int], settings: dict[str, Any], named: list[str]
) -> None:
    settings = {**settings, "DOWNLOADER_MIDDLEWARES": orders, "HTTPCACHE_DIR": str(tmp_path)}
    result = await crawl(web.robots(NOTHING).url("/"), settings=settings)
    said = [m for m in result.messages(logging.INFO, "scrapy_rep") if "request_scheduled" in m]
    assert [m.partition(":")[0] for m in said] == named
    assert all("REP_WAITING_MAX = 0" in m for m in said)


@ensureDeferred
async def test_the_order_in_custom_settings_is_kept(web: Web) -> None:
    class Own(CrawlSpider):
        custom_settings = {"DOWNLOADER_MIDDLEWARES": {"scrapy_rep.RepMiddleware": 120, BUILTIN: 100}}

    site = web.robots(NOTHING)
    result = await crawl(site.url("/"), spider=Own)
    listed = result.crawler.settings.getdict("DOWNLOADER_MIDDLEWARES")
    assert listed["scrapy_rep.RepMiddleware"] == 120
    assert list(result.refused) == [site.url("/")]


@pytest.mark.parametrize("where", ["project", "spider"])
@ensureDeferred
async def test_robotstxt_obey_false_switches_it_off(web: Web, where: str) -> None:
    site, off = web.robots(NOTHING), {"ROBOTSTXT_OBEY": False}
    spider = type("Off", (CrawlSpider,), {"custom_settings": off if where == "spider" else None})
    result = await crawl(site.url("/"), spider=spider, settings=off if where == "project" else {})
    assert list(result.pages) == [site.url("/")]
    messages = result.messages(logging.INFO if where == "spider" else logging.WARNING)
    (said,) = (m for m in messages if m.endswith("ROBOTSTXT_OBEY is False, so robots.txt is not obeyed"))
    assert "RepMiddleware" in said or said.startswith("The spider's settings switch scrapy-rep off")
    assert len(result.messages()) == (where == "project"), "a spider that says so itself knows"


@ensureDeferred
async def test_the_warning_names_the_files_that_are_not_written(web: Web, tmp_path: Path) -> None:
    files = {"REP_ARCHIVE": tmp_path / "x.warc.gz", "REP_REPORT": tmp_path / "x.html"}
    result = await crawl(web.robots(NOTHING).url("/"), settings={"ROBOTSTXT_OBEY": False, **files})
    (warning,) = result.messages()
    assert warning.endswith("robots.txt is not obeyed, and REP_ARCHIVE and REP_REPORT write nothing")


@ensureDeferred
async def test_not_configured_does_not_switch_it_off(web: Web) -> None:
    class Own(RepMiddleware):
        def __init__(self, crawler: Crawler) -> None:
            super().__init__(crawler)
            raise NotConfigured("no licence")

    site = web.robots(NOTHING)
    with pytest.raises(ValueError, match=r"^Own cannot be built \(no licence\); .*ROBOTSTXT_OBEY"):
        await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {RepMiddleware: None, Own: 100}})
    assert site.requests == []


@ensureDeferred
async def test_the_settings_by_hand_enable_the_same_middlewares_as_the_addon(web: Web) -> None:
    site = web.robots(NOTHING)
    by_hand = {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOADER_MIDDLEWARES": {
            BUILTIN: None,
            "scrapy_rep.RepMiddleware": 100,
        },
    }
    result = await crawl(site.url("/"), robots=by_hand)
    assert list(result.refused) == [site.url("/")]
    assert result.messages() == []
    # These lines are all that the add-on does.
    by_addon = await crawl(site.url("/"))
    assert [enabled(result), enabled(by_addon)] == [enabled(by_addon)] * 2


def enabled(result: Any) -> list[type]:
    return [type(middleware) for middleware in result.crawler.engine.downloader.middleware.middlewares]


class OwnCompression(HttpCompressionMiddleware):
    pass


@pytest.mark.parametrize(
    "listed",
    [
        {COMPRESSION: 810},
        {HttpCompressionMiddleware: 810},
        {COMPRESSION: None, OwnCompression: 895},
        {COMPRESSION: None},
    ],
    ids=str,
)
@pytest.mark.parametrize("where", ["project", "spider"])
@ensureDeferred
async def test_a_robots_txt_that_was_cut_off_is_no_whole_one_wherever_a_project_decompresses(
    web: Web, listed: dict[Any, Any], where: str
) -> None:
    rules = "user-agent: *\n" + "".join(f"allow: /{n * 7919 % 10_007}\n" for n in range(5_000)) + "disallow: /\n"
    cut = gzip.compress(rules.encode())[:-2_000]
    site = web.robots(answer(cut, headers={"Content-Encoding": "gzip"}))
    settings = {"DOWNLOADER_MIDDLEWARES": listed}
    spider = type("Moves", (CrawlSpider,), {"custom_settings": settings if where == "spider" else None})
    result = await crawl(site.url("/"), spider=spider, settings=settings if where == "project" else {})
    assert list(result.refused) == [site.url("/")]
    assert result.stats["rep/access/unreachable"] == 1


class AnswersFirst:
    """Answers each request, as a middleware for Selenium does, and switches robots.txt off for it."""

    def process_request(self, request: Request) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return None
        request.meta["dont_obey_robotstxt"] = True
        return Response(request.url, body=b"from a browser")


@pytest.mark.parametrize(
    "listed",
    [{AnswersFirst: 100}, {BUILTIN: 543, AnswersFirst: 543}, {AnswersFirst: 543, RobotsTxtMiddleware: 543}],
    ids=str,
)
@pytest.mark.parametrize("robots", [BY_ADDON, {"ROBOTSTXT_OBEY": True}], ids=["ours", "built-in"])
@ensureDeferred
async def test_robots_txt_decides_before_middlewares_of_the_same_order(
    web: Web, listed: dict[Any, Any], robots: dict[str, Any]
) -> None:
    site = web.robots(NOTHING)
    settings = {"DOWNLOADER_MIDDLEWARES": listed, "REP_WAITING_MAX": 0}
    result = await crawl(site.url("/"), robots=robots, settings=settings)
    assert result.pages == {}
    # A crawl that needs no wait.
    again = await crawl(site.url("/1"), site.url("/2"), robots=robots, settings=settings)
    assert again.pages == {}


@ensureDeferred
async def test_a_warning_names_scrapys_middleware_if_it_is_also_on(web: Web) -> None:
    class OwnMiddleware(RobotsTxtMiddleware):
        pass

    site = web.robots(NOTHING)
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {OwnMiddleware: 90}})
    (warning,) = result.messages()
    assert "OwnMiddleware': None}" in warning
    assert "ADDONS" not in warning, "the add-on is on already"
    replacements = ("REP_EXEMPT", "ROBOTSTXT_OBEY", "REP_CRAWL_DELAY_MAX", "REP_STATUS_POLICY", "REP_MEMORY_OCTETS")
    assert all(setting in warning for setting in replacements)


OLDER = """
import scrapy

scrapy.version_info, scrapy.__version__ = (2, 13, 3), "2.13.3"
"""


@pytest.mark.parametrize(
    "use",
    [
        "from scrapy_rep import Addon",
        "from scrapy_rep import RepMiddleware",
        "from scrapy.cmdline import execute; execute(['scrapy', 'robots', 'https://example.com/'])",
    ],
)
def test_an_older_scrapy_is_named(use: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"{OLDER}{use}"], capture_output=True, text=True, check=False)
    (least,) = re.findall(r'"Scrapy>=(.*?)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.IGNORECASE)
    *_, last = done.stderr.splitlines()
    assert last == f"ImportError: scrapy-rep needs Scrapy {least} or later; this is 2.13.3"


@ensureDeferred
async def test_a_warning_says_where_ours_belongs_if_scrapys_middleware_is_also_on(web: Web) -> None:
    by_hand = {"ROBOTSTXT_OBEY": True, "DOWNLOADER_MIDDLEWARES": {"scrapy_rep.RepMiddleware": 543}}
    result = await crawl(web.robots(NOTHING).url("/"), robots=by_hand)
    (warning,) = result.messages()
    assert warning.endswith(
        f" switch it off with DOWNLOADER_MIDDLEWARES = {{'{BUILTIN}': None}}. RepMiddleware belongs in its place"
        " (order 100), where ADDONS = {'scrapy_rep.Addon': 500} puts it"
    )


@pytest.mark.parametrize(
    ("parser", "warnings"),
    [
        ("scrapy.robotstxt.PythonRobotParser", 1),
        ("scrapy.robotstxt.RemovedParser", 1),
        ("removed_package.Parser", 1),
        ("", 1),
        (None, 1),
        ("scrapy.robotstxt.ProtegoRobotParser", 0),
        (RepRobotParser, 0),
    ],
)
@ensureDeferred
async def test_a_warning_says_that_robotstxt_parser_is_not_used(parser: Any, warnings: int) -> None:
    result = await crawl(settings={"ROBOTSTXT_PARSER": parser})
    assert len(result.messages()) == warnings
    assert all("ROBOTSTXT_PARSER" in message and "remove" in message for message in result.messages())
    assert result.tracebacks == []


@ensureDeferred
async def test_our_parser_in_scrapys_own_middleware(web: Web) -> None:
    # `like Googlebot` is no Googlebot: Protego matches it as a substring.
    site = web.robots("user-agent: googlebot\ndisallow: /\n\nuser-agent: *\ndisallow: /private\n")
    settings = {"ROBOTSTXT_PARSER": "scrapy_rep.RepRobotParser", "USER_AGENT": "Mybot/1.0 (like Googlebot)"}
    result = await crawl(site.url("/"), site.url("/private"), robots={"ROBOTSTXT_OBEY": True}, settings=settings)
    assert list(result.pages) == [site.url("/")]
    protego = await crawl(
        site.url("/"),
        robots={"ROBOTSTXT_OBEY": True},
        settings={**settings, "ROBOTSTXT_PARSER": "scrapy.robotstxt.ProtegoRobotParser"},
    )
    assert protego.pages == {}


# Settings.

WRONG: dict[str, list[Any]] = {
    "REP_STATUS_POLICY": [
        "rfc",
        7,
        {404: "success"},
        {404: "no"},
        {42: "unavailable"},
        {200: "unavailable"},
        {301: "unreachable"},
        {range(199, 201): "restricted"},
        {"399-400": "unavailable"},
        {"202-302": "unavailable"},
        {"captcha": "unavailable"},
        {"challenge": "success"},
        {"100-999": "unavailable"},
        {"4xx": "unavailable"},
        {range(0): "unavailable"},
        {True: "unavailable"},
        "[1]",
        {"base": "careful"},
        {"base": "unavailable"},
    ],
    "REP_STORAGE": [7, "redis", "robots.db", "ftp://example.com/", "memory:x", "sqlite:", "sqlite:/x", "redis:"],
    "REP_STORAGES": [
        "no JSON",
        7,
        {1: "x"},
        {"memory": "no.such.Class"},
        {"memory": 7},
        {"memory": "scrapy.Spider"},
        {"x:": "scrapy.Spider"},
    ],
    "REP_MEMORY_OCTETS": [0, -1, "many", 4000.5, True, float("inf"), OCTETS_OF_ORIGIN - 1],
    "REP_LIFETIME_MIN": [-1, 86_401, "an hour"],
    "REP_UNREACHABLE_DAYS": [0, "many", float("inf"), 3_650.5, 1e308],
    "REP_BODY_LIMIT": [511_999, 0, "500 KiB", 2**26 + 1, 2**62],
    "REP_MAX_REDIRECTS": [4, "none"],
    "REP_FETCH_TIMEOUT": [0, -1, "soon", float("nan"), float("inf"), True],
    "REP_FETCH_RETRIES": [-1, "a few", 0.5],
    "REP_FETCH_CONCURRENCY": [-1, "many"],
    "REP_WAITING_MAX": [-1, 0.5],
    "REP_UNREACHABLE_WAIT": [-1, "a while", float("nan")],
    "REP_REDIRECT_PRIVATE": ["perhaps", 2, []],
    "REP_DRY_RUN": ["perhaps", 2],
    "REP_EXEMPT": [
        7,
        ["example.com/path"],
        ["https://example.com/a*"],
        ["https://example.com/a$"],
        ["example.com:8443"],
        [".example.com"],
        ["*"],
        ["*.*.example.com"],
        ["a.*.example.com"],
        ["*.example.com:80"],
        ["https://*.example.com"],
        ["*.https://example.com"],
        '["example.com"',
        "[7]",
        "https://user@example.com",
        ["https://example.com?x"],
        ["data:,x"],
        [7],
        {"example.com": True},
    ],
    "REP_CRAWL_DELAY_MAX": [-1, "long", True, float("inf")],
    "REP_BYPASSED": [True, "ignore", [], ""],
    "REP_PURPOSES": [7, [7], ["training"], "train-ai,x", {"search": True}, '["search"'],
    "REP_PURPOSES_REFUSE": ["perhaps"],
    "REP_ARCHIVE": [True, "robots.warc", "robots.gz", "%(nothing)s.warc.gz", "100%.warc.gz"],
    "REP_REFUSALS": [True, "refused.json", "%(nothing)s.jsonl"],
    "REP_EVIDENCE": ["perhaps"],
    "REP_REPORT": [True, "report.txt", "report", "%(nothing)s.html", "100%.html"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
@ensureDeferred
async def test_a_wrong_value_stops_the_start_and_names_the_cure(
    name: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    runner = CrawlerRunner({"ADDONS": {"scrapy_rep.Addon": 500}, name: value})
    with pytest.raises(ValueError, match=f"^{name} is ") as error:
        await runner.crawl(CrawlSpider)
    assert repr(value) in str(error.value)
    assert "; set it to " in str(error.value) or "; set REDIS_URL to " in str(error.value)
    assert "None" not in str(error.value).partition("; ")[2]
    (line,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.getMessage() == f"The crawl does not start: {error.value}", "Scrapy buries the error in a traceback"


def test_without_docstrings_the_errors_are_the_same() -> None:
    wrong = {name: values[-1] for name, values in WRONG.items()}
    code = f"""
import json
from scrapy.settings import Settings
from scrapy_rep.settings import RepSettings
inf, nan = float("inf"), float("nan")
for name, value in {wrong!r}.items():
    try:
        RepSettings.read(Settings({{name: value}}))
    except ValueError as exc:
        print(json.dumps(str(exc)))
"""
    run = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    plain = []
    for name, value in wrong.items():
        try:
            RepSettings.read(Settings({name: value}))
        except ValueError as exc:
            plain.append(str(exc))
    assert [json.loads(line) for line in run.stdout.splitlines()] == plain
    assert "".join(plain).count("; set it to a") > 10


def test_every_setting_is_checked() -> None:
    assert set(WRONG) == set(SETTINGS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REP_STATUS_POLICY", '{"401": "restricted", "520-529": "unavailable"}'),
        ("REP_STATUS_POLICY", {range(500, 600): "unavailable"}),
        ("REP_STATUS_POLICY", '{"challenge": "unavailable", "markup": "unreachable", "429": "unavailable"}'),
        ("REP_STATUS_POLICY", {202: "unavailable", range(203, 300): "restricted"}),
        ("REP_STATUS_POLICY", '{"base": "cautious", "markup": "restricted"}'),
        ("REP_MEMORY_OCTETS", "5000"),
        ("REP_FETCH_TIMEOUT", "0.5"),
        ("REP_BODY_LIMIT", 512_000.0),
        ("REP_STORAGES", '{"elsewhere": "scrapy_rep.storage.sqlite.SqliteStorage"}'),
        ("REP_LIFETIME_MIN", "60"),
        ("REP_DRY_RUN", "0"),
        ("REP_EXEMPT", ""),
        ("REP_CRAWL_DELAY_MAX", "2.5"),
        ("REP_PURPOSES", "train-ai, search"),
        ("REP_PURPOSES", '["train-ai"]'),
        ("REP_PURPOSES_REFUSE", "0"),
        ("REP_REPORT", ""),
    ],
)
@ensureDeferred
async def test_values_as_the_command_line_gives_them(name: str, value: Any) -> None:
    result = await crawl(settings={name: value})
    assert result.stats["finish_reason"] == "finished"
    assert result.messages() == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("REP_EXEMPT", ["example.com", ".example.com"], "('.example.com': for subdomains write '*.example.com')"),
        ("REP_EXEMPT", "a.example, b.example/x", "('b.example/x' is not an origin (with"),
        ("REP_EXEMPT", ["a.example:80"], "('a.example:80' is not an origin (with"),
        ("REP_EXEMPT", [True], "(True is no text)"),
        ("REP_PURPOSES", ["search", "ai-train"], "('ai-train' is no category of use; did you mean 'train-ai'?)"),
        ("REP_PURPOSES", "Search", "('Search' is no category of use; did you mean 'search'?)"),
        ("REP_PURPOSES", ["nonsense"], "('nonsense' is no category of use); set it to a list of some of 'train-ai', "),
        (
            "REP_STATUS_POLICY",
            {404: "restricted", "200-299": "unavailable"},
            "(200-299: a success cannot be over",
        ),
        (
            "REP_STATUS_POLICY",
            '{403: "restricted"}',
            """(text has to be JSON, such as '{"403": "restricted", "520-529": "unavailable"}')""",
        ),
        ("REP_STATUS_POLICY", '{"403": "deny"}', "('403': 'deny' is none of 'unavailable', 're"),
        (
            "REP_STATUS_POLICY",
            {"4xx": "restricted"},
            "('4xx' is not a status such as 403, a range such as '400-499', 'challenge' or 'markup')",
        ),
        ("REP_STATUS_POLICY", "careful", "(there is no such policy); set it to one of 'rfc9309', 'cautious', or"),
        ("REP_STATUS_POLICY", {"base": "careful"}, "('base': 'careful' is none of 'rfc9309', 'cautious')"),
        ("REP_STORAGES", "{own: x}", """(text has to be JSON, such as '{"own": "package.module.OwnStorage"}')"""),
        ("REP_PURPOSES", '["search"', """(text has to be JSON, such as '["one", "two"]')"""),
        ("REP_MEMORY_OCTETS", 64, "set it to a whole number of bytes, at least 1,738"),
        ("ROBOTSTXT_OBEY", "no", "set it to True or False"),
    ],
)
@ensureDeferred
async def test_the_error_names_the_wrong_part_of_a_value(
    name: str, value: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match=f"^{name} is ") as error:
        await crawl(settings={name: value})
    assert said in str(error.value)
    critical = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
    assert critical == [f"The crawl does not start: {error.value}"]


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("REP_FETCH_TIMEOUTS", "REP_FETCH_TIMEOUT"),
        ("REP_USER_AGENT", "ROBOTSTXT_USER_AGENT"),
        ("REP_OBEY", "ROBOTSTXT_OBEY"),
        ("REP_DRYRUN", "REP_DRY_RUN"),
        ("REP_MEMORY_BYTES", "REP_MEMORY_OCTETS"),
        ("ROBOTSTXT_USERAGENT", "ROBOTSTXT_USER_AGENT"),
        ("ROBOTS_USER_AGENT", "ROBOTSTXT_USER_AGENT"),
        ("REP_DELAY", "REP_CRAWL_DELAY_MAX"),
        ("REP_FETCH_DELAY", "REP_CRAWL_DELAY_MAX"),
        ("REP_AGENT", "ROBOTSTXT_USER_AGENT"),
        ("REP_TIMEOUT", "REP_FETCH_TIMEOUT"),
        ("ROBOTS_OBEY", "ROBOTSTXT_OBEY"),
        ("ROBOTS_TXT_OBEY", "ROBOTSTXT_OBEY"),
        ("ROBOTSTXTOBEY", "ROBOTSTXT_OBEY"),
        ("ROBOTSTXT_EXEMPT", "REP_EXEMPT"),
        ("ROBOTSTXT_CRAWL_DELAY", "REP_CRAWL_DELAY_MAX"),
        ("REP_ENABLED", "ROBOTSTXT_OBEY"),
        ("ROBOTSTXT_ENABLED", "ROBOTSTXT_OBEY"),
        ("REP_WHITELIST", "REP_EXEMPT"),
        ("rep_dry_run", "REP_DRY_RUN"),
        ("robotstxt_obey", "ROBOTSTXT_OBEY"),
        ("Rep_Exempt", "REP_EXEMPT"),
    ],
)
@ensureDeferred
async def test_a_misspelt_name_logs_a_warning(web: Web, name: str, suggested: str) -> None:
    result = await crawl(settings={name: 3})
    (warning,) = result.messages()
    assert warning == f"{name} is no setting of scrapy-rep and has no effect; did you mean {suggested}?"


@pytest.mark.parametrize("name", ["ROBOTS_TABLE", "ROBOTS_STORAGE", "ROBOTSTXT_OF_OUR_STORAGE", "OBEY_ROBOTSTXT"])
@ensureDeferred
async def test_a_name_of_the_projects_own_logs_nothing(name: str) -> None:
    assert (await crawl(settings={name: 3})).messages() == []


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("rep_dry_run = True", ["rep_dry_run", "REP_DRY_RUN"]),
        ("Robotstxt_Obey = False", ["Robotstxt_Obey", "ROBOTSTXT_OBEY"]),
        # Names of the project's own.
        ("rep_exempt = []; REP_EXEMPT = rep_exempt", []),
        ("robots = rep = rep_list = None", []),
    ],
)
def test_a_name_in_lower_case_in_settings_py_logs_a_warning(tmp_path: Path, line: str, meant: list[str]) -> None:
    """Scrapy reads only names in upper case from this file."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own_settings\n")
    (tmp_path / "own_settings.py").write_text(f"ADDONS = {BY_ADDON['ADDONS']!r}\n{line}\n")
    (tmp_path / "own.py").write_text("from scrapy import Spider\nclass Own(Spider):\n    name = 'own'\n")
    log = run_python("-m", "scrapy", "runspider", "own.py", cwd=tmp_path).stderr
    said = re.findall(r"(\S+) is no setting of scrapy-rep and has no effect; did you mean (\S+)\?", log)
    assert [name for each in said for name in each] == meant
    assert "Spider closed (finished)" in log


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("ROBOTSTXT_USER_AGENT", "robotstxt_user_agent"),
        ("ROBOTSTXT_OBEY", "dont_obey_robotstxt"),
        ("DONT_OBEY_ROBOTSTXT", "dont_obey_robotstxt"),
        ("OUR_ROBOTS", None),
        ("dont_obey_robots", "dont_obey_robotstxt"),
        ("dont_obey_robots_txt", "dont_obey_robotstxt"),
        ("robots_user_agent", "robotstxt_user_agent"),
        ("robotstxt_useragent", "robotstxt_user_agent"),
        ("robotstxt_obey", "dont_obey_robotstxt"),
        ("ignore_robots", "dont_obey_robotstxt"),
        ("robots", None),
        ("our_robots", None),
        # With REP_PURPOSES, spiders copy this key from the meta of responses.
        ("robots_usage", None),
    ],
)
@pytest.mark.parametrize("robots", [NOTHING, RULES], ids=["refused", "waited"])
@ensureDeferred
async def test_a_misspelt_meta_key_logs_one_warning(web: Web, key: str, meant: str | None, robots: str) -> None:
    site = web.robots(robots)
    requests = [Request(site.url(f"/{n}"), meta={key: True}) for n in range(3)]
    result = await crawl(*requests)
    assert len(result.refused) == (3 if robots == NOTHING else 0)
    warnings = [m for m in result.messages() if "did you mean" in m]
    assert [m.partition(" The first")[0] for m in warnings] == (
        [f"request.meta[{key!r}] has no effect; did you mean {meant!r}?"] if meant else []
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *((name, "ROBOTSTXT_OBEY") for name in ("robotstxt_obey", "ignore_robots", "dont_obey_robotstxt")),
        *((name, "ROBOTSTXT_OBEY") for name in ("ROBOTSTXT_OBEY", "Dont_Obey_Robotstxt", "ignore_robots_txt")),
        *((name, name.upper()) for name in ("REP_EXEMPT", "rep_exempt", "Rep_Dry_Run", "REP_STORAGE")),
        ("ROBOTSTXT_USER_AGENT", "ROBOTSTXT_USER_AGENT"),
        ("robots_user_agent", "ROBOTSTXT_USER_AGENT"),
    ],
)
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("where", ["class", "argument"])
@ensureDeferred
async def test_a_warning_says_that_an_attribute_of_the_spider_has_no_effect(
    web: Web, name: str, meant: str, value: bool, where: str
) -> None:
    class ByArgument(CrawlSpider):
        def __init__(self, *args: Any, **attributes: Any) -> None:
            attributes[name] = value  # as for `-a`
            super().__init__(*args, **attributes)

    spider = ByArgument if where == "argument" else type("Own", (CrawlSpider,), {name: value})
    result = await crawl(web.robots(NOTHING).url("/"), spider=spider)
    assert len(result.refused) == 1
    assert result.messages() == [
        f"The spider's {name} has no effect; set {meant} in its class's custom_settings, or with -s"
    ]


@ensureDeferred
async def test_no_warning_about_what_has_an_effect_or_is_no_setting(web: Web) -> None:
    class Own(CrawlSpider):
        custom_settings = {"ROBOTSTXT_OBEY": True}

        def __init__(self, *args: Any, **attributes: Any) -> None:
            super().__init__(*args, **attributes)
            self.custom_settings = {**(type(self).custom_settings or {}), "ROBOTSTXT_OBEY": True}

        @property
        def robotstxt_obey(self) -> bool:
            return self.settings.getbool("ROBOTSTXT_OBEY")

        def ignore_robots(self) -> None: ...

    class Odd(CrawlSpider):
        def __init__(self, *args: Any, **attributes: Any) -> None:
            super().__init__(*args, **attributes)
            self.custom_settings = 5  # type: ignore[assignment]

    for spider in (Own, Odd):
        assert (await crawl(web.robots(NOTHING).url("/"), spider=spider)).messages() == []


@ensureDeferred
async def test_a_warning_says_that_custom_settings_of_the_object_have_no_effect(web: Web) -> None:
    class Own(CrawlSpider):
        def __init__(self, *args: Any, **attributes: Any) -> None:
            super().__init__(*args, **attributes)
            self.custom_settings = {"ROBOTSTXT_OBEY": False, "LOG_LEVEL": "INFO"}

    result = await crawl(web.robots(NOTHING).url("/"), spider=Own)
    assert len(result.refused) == 1
    assert result.messages() == [
        "The spider's ROBOTSTXT_OBEY has no effect; set ROBOTSTXT_OBEY in its class's custom_settings, or with -s"
    ]


@pytest.mark.parametrize("name", ["robots", "robotstxt_parser", "obey", "rep", "rep_list", "user_agents"])
@ensureDeferred
async def test_an_attribute_of_the_spiders_own_logs_nothing(name: str) -> None:
    assert (await crawl(spider=type("Own", (CrawlSpider,), {name: True}))).messages() == []


@pytest.mark.parametrize("robots", [NOTHING, RULES], ids=["refused", "fetched"])
@pytest.mark.parametrize("before", [None, "Scrapy"])
@ensureDeferred
async def test_a_warning_says_that_an_attribute_is_set_too_late(web: Web, robots: str, before: str | None) -> None:
    class Late(CrawlSpider):
        robotstxt_user_agent = before

        async def start(self) -> Any:
            self.robotstxt_user_agent = "NewsBot"
            async for request in super().start():
                yield request

    site = web.robots(robots)
    result = await crawl(site.url("/a"), site.url("/b"), spider=Late)
    assert len(result.refused) == (2 if robots == NOTHING else 0)
    assert result.messages() == [
        "The spider's robotstxt_user_agent = 'NewsBot' comes too late; set it in its class or __init__"
    ]


@pytest.mark.parametrize(
    ("setting", "listed", "said"),
    [
        ("ADDONS", RepMiddleware, "RepMiddleware belongs in no setting but DOWNLOADER_MIDDLEWARES; set ADDONS to "),
        ("ADDONS", "scrapy_rep.RepMiddleware", "RepMiddleware belongs in no setting but DOWNLOADER_MIDDLEWARES; "),
        ("EXTENSIONS", "scrapy_rep.Addon", "Addon belongs in no setting but ADDONS; set it to "),
        ("DOWNLOADER_MIDDLEWARES", scrapy_rep.Addon, "Addon belongs in no setting but ADDONS; set it to "),
    ],
)
@ensureDeferred
async def test_a_component_in_the_wrong_setting_stops_the_start(
    setting: str, listed: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match=f"^{said}.*{{'scrapy_rep.Addon': 500}}$") as error:
        await crawl(robots={setting: {listed: 500}})
    assert f"The crawl does not start: {error.value}" in caplog.messages


@pytest.mark.parametrize("robots", [{"ROBOTSTXT_OBEY": True}, {"ADDONS": {"scrapy_rep.Addon": 500}}], ids=str)
@pytest.mark.parametrize("setting", ["EXTENSIONS", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES"])
@ensureDeferred
async def test_the_middleware_in_the_wrong_setting_stops_the_start(
    web: Web, setting: str, robots: dict[str, Any]
) -> None:
    site = web.robots(NOTHING)
    result = await crawl(site.url("/"), robots=robots, settings={setting: {"scrapy_rep.RepMiddleware": 100}})
    assert result.stats["finish_reason"] == "wrong_settings"
    assert site.requests == []
    assert "belongs in no setting but DOWNLOADER_MIDDLEWARES" in str(result.messages())


class Delegates:
    """A downloader middleware of a project that holds ours, and asks it first."""

    def __init__(self, crawler: Crawler) -> None:
        self.ours = RepMiddleware.from_crawler(crawler)

    from_crawler = classmethod(lambda cls, crawler: cls(crawler))

    def process_request(self, request: Request) -> Any:
        return self.ours.process_request(request)


@ensureDeferred
async def test_a_middleware_that_delegates_to_ours_goes_on(web: Web) -> None:
    site = web.robots(NOTHING)
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {RepMiddleware: None, Delegates: 100}})
    assert list(result.refused) == [site.url("/")]
    assert result.stats["finish_reason"] == "finished"


@ensureDeferred
async def test_the_addon_in_extensions_too_does_no_harm(web: Web) -> None:
    result = await crawl(web.robots(NOTHING).url("/"), settings={"EXTENSIONS": {"scrapy_rep.Addon": 500}})
    assert (len(result.refused), result.messages()) == (1, [])


IMPORTS_REACTOR = """
from twisted.internet import reactor

class Own:
    def process_request(self, request):
        request.headers["Own"] = type(reactor).__name__
"""


@pytest.mark.parametrize("also", [{}, {COMPRESSION: 810}, {BUILTIN: 543}, {BUILTIN: None}], ids=str)
def test_modules_of_middlewares_are_imported_after_the_reactor_is_installed(
    web: Web, tmp_path: Path, also: dict[str, Any]
) -> None:
    (tmp_path / "own.py").write_text(IMPORTS_REACTOR)
    site = web.robots(RULES)
    orders = {"own.Own": 543, **also}
    (tmp_path / "script.py").write_text(f"""
from scrapy import Spider
from scrapy.crawler import CrawlerProcess

class One(Spider):
    name = "one"
    start_urls = [{site.url("/page")!r}]
    def parse(self, response):
        print(response.request.headers["Own"].decode())

process = CrawlerProcess({{**{BY_ADDON!r}, "DOWNLOADER_MIDDLEWARES": {orders!r}, "TELNETCONSOLE_ENABLED": False}})
process.crawl(One)
process.start()
""")
    assert run_python("script.py", cwd=tmp_path).stdout == "AsyncioSelectorReactor\n"


@pytest.mark.parametrize("name", ["REP_NONSENSE", "REP_SIZE_MAX"])
@ensureDeferred
async def test_if_a_wrong_name_resembles_no_setting_all_settings_are_listed(web: Web, name: str) -> None:
    (warning,) = (await crawl(settings={name: 3})).messages()
    assert warning == (
        f"{name} is no setting of scrapy-rep and has no effect; the settings are "
        f"{', '.join(SETTINGS)}, ROBOTSTXT_OBEY, ROBOTSTXT_USER_AGENT"
    )


@pytest.mark.parametrize(("attribute", "seconds"), [(2.5, 2.5), (None, 15.0), (60, 30.0)])
def test_the_spiders_download_timeout_counts_as_the_setting_does(attribute: float | None, seconds: float) -> None:
    spider = Spider("patient", download_timeout=attribute)
    crawl_settings = Settings({"DOWNLOAD_TIMEOUT": 15})
    assert RepSettings.read(crawl_settings, spider).fetch_timeout == seconds


def test_a_download_timeout_that_is_no_number_stops_the_start() -> None:
    with pytest.raises(ValueError, match=r"^the spider's download_timeout is 'soon'; set it to a number of seconds$"):
        RepSettings.read(Settings(), Spider("patient", download_timeout="soon"))
    with pytest.raises(ValueError, match=r"^DOWNLOAD_TIMEOUT is 'soon'; set it to a number of seconds$"):
        RepSettings.read(Settings({"DOWNLOAD_TIMEOUT": "soon"}))


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 30.0),
        ({"DOWNLOAD_TIMEOUT": 15}, 15.0),
        ({"DOWNLOAD_TIMEOUT": "0.5"}, 0.5),
        ({"DOWNLOAD_TIMEOUT": 0}, 30.0),
        ({"DOWNLOAD_TIMEOUT": 60}, 30.0),
        ({"DOWNLOAD_TIMEOUT": 15, "REP_FETCH_TIMEOUT": 20}, 20.0),
    ],
    ids=str,
)
@ensureDeferred
async def test_download_timeout_limits_robots_txt_unless_it_has_a_limit_of_its_own(
    settings: dict[str, Any], seconds: float
) -> None:
    site = Site(web=None, port=1)  # type: ignore[arg-type]  # nothing listens there
    seen: list[float] = []

    class Notes:
        def process_request(self, request: Request) -> None:
            if "rep_robots_txt" in request.meta:
                seen.append(request.meta["download_timeout"])

    await crawl(site.url("/"), settings={**settings, "DOWNLOADER_MIDDLEWARES": {Notes: 990}})
    assert seen == [seconds]


def test_the_public_names_are_there() -> None:
    assert {name: getattr(scrapy_rep, name).__name__ for name in scrapy_rep.__all__} == {
        name: name for name in scrapy_rep.__all__
    }
    assert set(scrapy_rep.__all__) <= set(dir(scrapy_rep))
    with pytest.raises(AttributeError):
        scrapy_rep.nothing  # noqa: B018
    assert scrapy_rep.__version__ == version("scrapy-rep")


def test_the_text_of_an_enum_is_its_value() -> None:
    assert [str(AccessResult.SUCCESS), str(VerdictReason.NO_RULE)] == ["success", "no rule"]
    assert f"{OriginKind.WITHOUT_RULES}" == "without rules"


# Commands for whose end a person waits.


QUICK = ["-s", "REP_FETCH_RETRIES=0", "-s", "TELNETCONSOLE_ENABLED=False", "-s", "REP_STORAGE=sqlite:robots.db"]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["fetch"], id="fetch"),
        pytest.param(["parse", "--spider", "one"], id="parse"),
        pytest.param(["shell", "-c", "print(response)"], id="shell"),
        pytest.param(["check", "-s", "LOG_ENABLED=True"], id="check"),
    ],
)
def test_commands_for_whose_end_a_person_waits_do_not_wait_for_an_outage_to_end(
    web: Web, tmp_path: Path, command: list[str]
) -> None:
    # In processes of their own, because this is about the commands.
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = ours\n")
    (tmp_path / "ours.py").write_text('ADDONS = {"scrapy_rep.Addon": 500}\nSPIDER_MODULES = ["spider"]\n')
    site = web.robots(answer(status=503))
    (tmp_path / "spider.py").write_text(
        "import scrapy\n\nclass One(scrapy.Spider):\n    name = 'one'\n"
        f'    def parse(self, response):\n        """@url {site.url("/page")}\n        @returns items"""\n'
    )
    urls = [] if command[0] == "check" else [site.url("/page")]
    done = run_python("-m", "scrapy", *command, *QUICK, *urls, cwd=tmp_path)
    assert f"{site.robots_url}: HTTP 503. Requests to this site are refused" in done.stderr
    assert re.search(rf"INFO: .* \({site.robots_url}: HTTP 503\): <GET ", done.stderr)
    assert "the store cannot be used" not in done.stderr  # the shell builds it in another thread
    assert site.targets == ["/robots.txt"]


def test_such_a_command_waits_if_rep_unreachable_wait_is_set(web: Web, tmp_path: Path) -> None:
    url = web.robots(answer(status=503)).url("/page")
    addons = ["-s", 'ADDONS={"scrapy_rep.Addon": 500}', "-s", "REP_UNREACHABLE_WAIT=60"]
    with PythonProcess("-m", "scrapy", "fetch", *addons, *QUICK, url, cwd=tmp_path) as process:
        until(lambda: b"Requests to this site wait up to 60 s" in process.stderr)
