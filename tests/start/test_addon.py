"""The add-on, which is one line in the settings, and the checks of all other settings."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from crawling import CrawlSpider, crawl
from processes import run_python
from pytest_twisted import ensureDeferred
from scrapy.crawler import Crawler, CrawlerRunner
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings
from web import Web, answer

import scrapy_rep
from scrapy_rep import AccessResult, RepMiddleware, RepRobotParser, VerdictReason
from scrapy_rep.origin_info import OriginKind
from scrapy_rep.settings import OCTETS_OF_ORIGIN, SETTINGS, RepSettings

BUILTIN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
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
    assert len(result.messages()) == 2, "only the outage and its summary"


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
    (warning,) = result.messages()
    assert "RepMiddleware" in warning
    assert warning.endswith("ROBOTSTXT_OBEY is False, so robots.txt is not obeyed")


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
            "scrapy_rep.RepDecodingMiddleware": 595,
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


@ensureDeferred
async def test_without_the_decoding_middleware_a_warning_names_the_cure(web: Web) -> None:
    by_hand = {"ROBOTSTXT_OBEY": True, "DOWNLOADER_MIDDLEWARES": {BUILTIN: None, "scrapy_rep.RepMiddleware": 100}}
    site = web.robots(NOTHING)
    result = await crawl(site.url("/"), robots=by_hand)
    assert list(result.refused) == [site.url("/")]
    (warning,) = result.messages()
    assert "'scrapy_rep.RepDecodingMiddleware': 595" in warning


@ensureDeferred
async def test_a_warning_names_scrapys_middleware_if_it_is_also_on(web: Web) -> None:
    class OwnMiddleware(RobotsTxtMiddleware):
        pass

    site = web.robots(NOTHING)
    result = await crawl(site.url("/"), settings={"DOWNLOADER_MIDDLEWARES": {OwnMiddleware: 90}})
    (warning,) = result.messages()
    assert "OwnMiddleware': None}" in warning
    assert "ADDONS" not in warning, "the add-on is on already"


@pytest.mark.parametrize(
    ("parser", "warnings"),
    [("scrapy.robotstxt.PythonRobotParser", 1), ("scrapy.robotstxt.ProtegoRobotParser", 0), (RepRobotParser, 0)],
)
@ensureDeferred
async def test_a_warning_says_that_robotstxt_parser_is_not_used(parser: Any, warnings: int) -> None:
    result = await crawl(settings={"ROBOTSTXT_PARSER": parser})
    assert len(result.messages()) == warnings
    assert all("ROBOTSTXT_PARSER" in message and "remove" in message for message in result.messages())


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
    "REP_FETCH_CONCURRENCY": [0, "many"],
    "REP_WAITING_MAX": [-1, 0.5],
    "REP_UNREACHABLE_WAIT": [-1, "a while", float("nan")],
    "REP_REDIRECT_PRIVATE": ["perhaps", 2, []],
    "REP_DRY_RUN": ["perhaps", 2],
    "REP_EXEMPT": [
        7,
        ["https://example.com/path"],
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
    "REP_DROP_EARLY": ["perhaps"],
    "REP_BYPASSED": [True, "ignore", [], ""],
    "REP_SITEMAPS_MAX": [-1, "many"],
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
        ("REP_EXEMPT", "a.example, b.example/x", "('b.example/x' is not an origin, a host, or '*.' and a host)"),
        ("REP_EXEMPT", ["a.example:80"], "('a.example:80' is not an origin, a host, or '*.' and a host)"),
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
        ("REP_STORAGES", "{own: x}", """(text has to be JSON, such as '{"own": "package.module.OwnStorage"}')"""),
        ("REP_PURPOSES", '["search"', """(text has to be JSON, such as '["one", "two"]')"""),
        ("REP_MEMORY_OCTETS", 64, "set it to a whole number of bytes, at least 1,738"),
        ("ROBOTSTXT_OBEY", "maybe", "set it to True or False"),
    ],
)
@ensureDeferred
async def test_the_error_names_the_wrong_part_of_a_value(name: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} is ") as error:
        await crawl(settings={name: value})
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("REP_FETCH_TIMEOUTS", "REP_FETCH_TIMEOUT"),
        ("REP_USER_AGENT", "ROBOTSTXT_USER_AGENT"),
        ("REP_OBEY", "ROBOTSTXT_OBEY"),
        ("REP_DRYRUN", "REP_DRY_RUN"),
        ("REP_DELAY", "REP_CRAWL_DELAY_MAX"),
        ("REP_FETCH_DELAY", "REP_CRAWL_DELAY_MAX"),
        ("REP_AGENT", "ROBOTSTXT_USER_AGENT"),
        ("REP_TIMEOUT", "REP_FETCH_TIMEOUT"),
        ("REP_MEMORY_BYTES", "REP_MEMORY_OCTETS"),
        ("REP_REFUSE_EARLY", "REP_DROP_EARLY"),
    ],
)
@ensureDeferred
async def test_a_misspelt_name_logs_a_warning(web: Web, name: str, suggested: str) -> None:
    result = await crawl(settings={name: 3})
    (warning,) = result.messages()
    assert warning == f"{name} is no setting of scrapy-rep and has no effect; did you mean {suggested}?"


@pytest.mark.parametrize("name", ["REP_NONSENSE", "REP_ENABLED", "REP_SIZE_MAX"])
@ensureDeferred
async def test_if_a_wrong_name_resembles_no_setting_all_settings_are_listed(web: Web, name: str) -> None:
    (warning,) = (await crawl(settings={name: 3})).messages()
    assert warning == (
        f"{name} is no setting of scrapy-rep and has no effect; the settings are "
        f"{', '.join(SETTINGS)}, ROBOTSTXT_OBEY, ROBOTSTXT_USER_AGENT"
    )


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


# Commands that fetch a single page.


@pytest.mark.parametrize(
    ("command", "waits"),
    [
        (["fetch"], False),
        (["parse", "--spider", "one"], False),
        (["shell", "-c", "print(response)"], False),
        (["fetch", "-s", "REP_UNREACHABLE_WAIT=1"], True),
    ],
    ids=["fetch", "parse", "shell", "REP_UNREACHABLE_WAIT-is-set"],
)
def test_commands_that_fetch_a_single_page_do_not_wait_for_an_outage_to_end(
    web: Web, tmp_path: Path, command: list[str], waits: bool
) -> None:
    # In processes of their own, because this is about the commands.
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = ours\n")
    (tmp_path / "ours.py").write_text('ADDONS = {"scrapy_rep.Addon": 500}\nSPIDER_MODULES = ["spider"]\n')
    (tmp_path / "spider.py").write_text("import scrapy\n\nclass One(scrapy.Spider):\n    name = 'one'\n")
    site = web.robots(answer(status=503))
    quick = ["-s", "REP_FETCH_RETRIES=0", "-s", "TELNETCONSOLE_ENABLED=False"]
    done = run_python("-m", "scrapy", *command, *quick, site.url("/page"), cwd=tmp_path)
    assert f"{site.robots_url}: HTTP 503. Requests to this site " in done.stderr
    assert ("Requests to this site wait up to 1 s" in done.stderr) is waits
    assert f"INFO: Forbidden while robots.txt is unreachable ({site.robots_url}: HTTP 503): <GET " in done.stderr
    assert len(site.robots_requests) == 1 + waits
    assert "/page" not in site.targets
