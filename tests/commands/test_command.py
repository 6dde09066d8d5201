"""`scrapy robots URL`: what it prints, and its exit status."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import NO_PROXY, ROBOTS, Ended, assert_wrong_usage
from processes import PythonProcess, run_python, until
from web import Web, answer, redirect

from scrapy_rep.commands.output import JSON_KEYS, MAX_IGNORED
from scrapy_rep.commands.urls import CHUNK
from scrapy_rep.protocol.answer import AccessResult
from scrapy_rep.protocol.lifecycle import Basis
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.status_policy import CAUTIOUS
from scrapy_rep.protocol.words import ACCESS_WORDS, OF_GROUP, OUTAGE_WORDS, REASON_WORDS

RULES = """\
# who may
User-agent: *
Disallow: /private/
Allow: /private/*.pdf$
Crawl-delay: 2.5
Noindex: /drafts/

User-agent: OtherBot
Disallow: /

Sitemap: https://example.com/sitemap.xml
"""
OURS = "Scrapy's own"
EVERYONE = OF_GROUP.format(token="*")
ANOTHER_REACTOR = "twisted.internet.selectreactor.SelectReactor"
QUICK = ["-s", "REP_FETCH_RETRIES=0", "-s", "USER_AGENT=ExampleBot/1.0"]


def because(reason: VerdictReason) -> str:
    """Return why a URL is allowed, in words."""
    return f"{REASON_WORDS[reason.value].allowed} ({REASON_WORDS[reason.value].source})"


@pytest.fixture
def offline(tmp_path: Path) -> Path:
    """A directory without a project, with a robots.txt."""
    (tmp_path / "robots.txt").write_bytes(RULES.encode())
    return tmp_path


# Exit status.


def test_exit_status_0_where_all_are_allowed(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    done = Ended(*QUICK, site.url("/"), site.url("/private/a.pdf"), cwd=tmp_path)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.count("  allowed ") == 2
    assert site.targets == ["/robots.txt"], "asked once, and no page is fetched"


def test_exit_status_1_where_some_are_refused(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    done = Ended(*QUICK, site.url("/"), site.url("/private/a"), cwd=tmp_path)
    assert (done.status, done.stderr) == (1, "")


@pytest.mark.parametrize("wrong", ["example.com/a", "nothing", "{down}/", "http://[x/", "http://", "https:///a"])
def test_exit_status_3_if_a_verdict_is_not_known(web: Web, tmp_path: Path, wrong: str) -> None:
    site, down = web.robots(RULES), web.robots(answer(status=503))
    done = Ended(*QUICK, site.url("/private/a"), wrong.format(down=down.origin), cwd=tmp_path)
    assert done.status == 3
    assert "refused" in done.stdout, "the others are told of all the same"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("from_file", [True, False])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-s", "REP_FETCH_TIMEOUT=0"], "REP_FETCH_TIMEOUT is '0'; set it to a number of seconds above 0"),
        (["-s", "REP_DRY_RUN=maybe"], "REP_DRY_RUN is 'maybe'; set it to True or False"),
        (["-s", "ROBOTSTXT_OBEY=maybe"], "ROBOTSTXT_OBEY is 'maybe'; set it to True or False"),
        (["-s", "ROBOTSTXT_USER_AGENT=[7]"], "the setting ROBOTSTXT_USER_AGENT is '[7]'; set it to a product token"),
        (["--agent", ""], "--agent '' is not a product token; give the crawler's name alone, as in --agent ExampleBot"),
        (
            ["--agent", "News Bot"],
            "--agent 'News Bot' is not a product token; give the crawler's name alone, as in --agent News",
        ),
        (
            ["--agent", "http://example.com/bot"],
            "--agent 'http://example.com/bot' is not a product token; give the crawler's name alone, as in --agent Ex",
        ),
        (
            ["--agent", "Mozilla/5.0 (compatible; NewsBot/1.0)"],
            "--agent 'Mozilla/5.0 (compatible; NewsBot/1.0)' is not",
        ),
    ],
)
def test_exit_status_2_where_a_setting_is_wrong(offline: Path, options: list[str], told: str, from_file: bool) -> None:
    file = ["--file", "robots.txt"] if from_file else []
    assert_wrong_usage(Ended(*options, *file, "https://example.com/", cwd=offline), told)


@pytest.mark.parametrize("options", [[], ["-s", f"TWISTED_REACTOR={ANOTHER_REACTOR}"]])
def test_exit_status_2_where_the_storage_is_wrong(tmp_path: Path, options: list[str]) -> None:
    done = Ended("-s", "REP_STORAGE=sqlight:x", *options, "https://example.com/", cwd=tmp_path)
    assert_wrong_usage(done, "REP_STORAGE is 'sqlight:x'; set it to 'memory:' or an address that begins with")


def test_any_other_error_at_the_start_is_no_wrong_usage(project: Path) -> None:
    done = Ended("-s", "STATS_CLASS=own.spiders.Breaks", "https://example.com/", cwd=project)
    assert (done.status, done.stdout) == (3, "")
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError" in done.stderr or "TypeError" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "give a URL, or '-' to read URLs from standard input"),
        ("--no-such-option https://example.com/", "unknown option: --no-such-option"),
        ("- https://example.com/", "give URLs, or a list of URLs ('-' or --input), not both"),
        ("--input urls https://example.com/", "give URLs, or a list of URLs ('-' or --input), not both"),
        ("--input missing", "--input missing: No such file or directory"),
        ("--file missing /a", "--file missing: No such file or directory"),
        ("--file missing --input missing", "--file missing: No such file or directory"),
        ("--file - -", "read either the URLs or robots.txt from standard input, not both"),
        ("--show=some /a", "argument --show: ignored explicit argument 'some'"),
        ("--json=yes /a", "argument --json: ignored explicit argument 'yes'"),
        ("-a x=1 https://example.com/", "-a needs --spider"),
        ("-a x --spider s https://example.com/", "-a 'x': give NAME=VALUE"),
        ("--urls list", "unknown option: --urls; did you mean --input?"),
        ("--user-agent Bot /a", "unknown option: --user-agent; did you mean --agent?"),
    ],
)
def test_exit_status_2_for_wrong_usage(tmp_path: Path, arguments: str, told: str) -> None:
    assert_wrong_usage(Ended(*arguments.split(), cwd=tmp_path), told)


STDIN_CLOSED: dict[int, Path | None] = {0: None}


@pytest.mark.parametrize(
    ("command", "streams", "told"),
    [
        ("-", STDIN_CLOSED, "--input -: standard input is closed"),
        ("--file - /a", STDIN_CLOSED, "--file -: standard input is closed"),
        ("--file robots.txt -", STDIN_CLOSED, "--input -: standard input is closed"),
        ("--file robots.txt /a", {1: None}, "standard output is closed"),
        ("--file robots.txt /a", {1: Path("/dev/full")}, "standard output: [Errno 28] No space left on device"),
        ("--input /proc/self/mem", {}, "--input /proc/self/mem: Input/output error"),
        ("--file robots.txt --input /proc/self/mem", {}, "--input /proc/self/mem: Input/output error"),
        ("--file /proc/self/mem /a", {}, "--file /proc/self/mem: Input/output error"),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="these files are Linux's")
def test_exit_status_2_if_a_file_or_a_standard_stream_cannot_be_used(
    offline: Path, command: str, streams: dict[int, Path | None], told: str
) -> None:
    assert_wrong_usage(Ended(*command.split(), cwd=offline, streams=streams), told)


@pytest.mark.parametrize("closed", [0, 2], ids=["standard-input", "standard-error"])
def test_standard_input_and_standard_error_may_be_closed_if_they_are_not_needed(offline: Path, closed: int) -> None:
    done = Ended("--file", "robots.txt", "--input", "robots.txt", cwd=offline, streams={closed: None})
    assert (done.status, done.stdout.count("\n")) == (3, 8)


def test_a_missing_scheme_is_shown_with_its_cure(tmp_path: Path) -> None:
    for url in ("example.com/a", "example.com:8443/a", "192.0.2.1:443/a"):
        assert f"did you mean https://{url}?" in Ended(url, cwd=tmp_path).row("can't tell")
    for url in ("localhost:8000/", "LOCALHOST/", "127.0.0.1/a", "192.0.2.1:4430/"):
        assert f"did you mean http://{url}?" in Ended(url, cwd=tmp_path).row("can't tell")
    for url in ("no host", "mailto:a@b.example", "a@b.example"):
        assert "did you mean" not in Ended(url, cwd=tmp_path).row("can't tell")
    (tmp_path / "robots.txt").write_text("User-agent: *\n")
    told = Ended("--file", "robots.txt", "mailto:a@b.example", cwd=tmp_path).row("can't tell")
    assert told.endswith("is neither a URL nor a path: write it as 'https://example.com/page' or '/page'")


def test_a_host_alone_is_taken_for_a_url_and_that_is_said(web: Web, tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("exempt.example\nhttps://exempt.example/a\n")
    taken = f"taken for https://exempt.example/: {because(VerdictReason.EXEMPT)}"
    exempt = ["-s", "REP_EXEMPT=exempt.example"]
    done = Ended(*exempt, "--input", "hosts.txt", cwd=tmp_path)
    assert (done.status, done.stdout.splitlines()[0]) == (0, f"allowed\texempt.example\t{taken}")
    argument = Ended(*exempt, "exempt.example", cwd=tmp_path)
    assert (argument.stdout.splitlines()[0], argument.row("allowed")) == ("exempt.example", taken)
    compared = Ended(*exempt, "--compare", "127.0.0.1:1", cwd=tmp_path)
    assert compared.row("refused").startswith("taken for http://127.0.0.1:1/: ")
    assert compared.row(OURS).startswith("allowed: ")
    (tmp_path / "robots.txt").write_text(RULES)
    paths = Ended("--file", "robots.txt", "-", cwd=tmp_path, stdin=b"page.html\n")
    assert (paths.status, paths.stdout.split("\t")[0]) == (3, "can't tell"), "it may be a path without its slash"


def test_the_address_of_a_robots_txt_is_shown_with_a_hint(tmp_path: Path) -> None:
    done = Ended("https://example.com/robots.txt", cwd=tmp_path)
    assert done.stdout.splitlines()[-1].strip() == "to see the file: scrapy robots --show=all https://example.com/"
    assert "--show" not in Ended("data:,x", cwd=tmp_path).stdout


def test_a_file_of_urls_is_shown_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("https://example.com/\n")
    told = Ended("urls.txt", cwd=tmp_path).row("can't tell")
    assert told.endswith("; to read the URLs from this file, use --input urls.txt")
    assert "did you mean" not in told


def test_a_path_alone_is_shown_with_its_cure(tmp_path: Path) -> None:
    told = Ended("/private/diary", cwd=tmp_path).row("can't tell")
    assert told.endswith("; give a whole URL (only --file accepts a path)")
    assert "did you mean" not in told


@pytest.mark.parametrize("url", ["htp://x/", "HTPS://example.com/a", "httpss://example.com/"])
@pytest.mark.parametrize("file", [[], ["--file", "robots.txt"]], ids=["fetched", "file"])
def test_a_misspelt_scheme_is_named(offline: Path, url: str, file: list[str]) -> None:
    done = Ended(*file, url, cwd=offline)
    scheme = url.partition(":")[0].lower()
    meant = "http" if scheme == "htp" else "https"
    assert done.status == 3
    assert done.row("can't tell") == f"{url!r} has an unknown scheme, {scheme!r}; did you mean {meant!r}?"


@pytest.mark.parametrize("url", ["ftp://localhost/a", "wss://localhost/a", "s3://bucket/key", "/http://x", "/htp://x"])
def test_other_schemes_are_no_mistakes(offline: Path, url: str) -> None:
    assert Ended("--file", "robots.txt", url, cwd=offline).status == 0


# What it tells.


def test_by_which_token_rule_and_line(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    done = Ended(*QUICK, site.url("/private/a"), cwd=tmp_path)
    assert done.stdout.splitlines()[0] == site.url("/private/a")
    assert done.row("refused") == f"by line 3, Disallow: /private/ ({EVERYONE})"
    assert done.row("crawler") == "ExampleBot"
    assert done.row("robots.txt") == site.robots_url
    assert done.row("answer") == "HTTP 200: success, {} ({})".format(*ACCESS_WORDS[AccessResult.SUCCESS.value])
    assert re.fullmatch(r"24 h, fetched (just now|\d s ago)", done.row("valid for"))
    assert done.row("crawl-delay") == "2.5 s, not obeyed (REP_CRAWL_DELAY_MAX = 0)"
    assert done.row("sitemaps") == "https://example.com/sitemap.xml"
    assert done.row("ignored") == "line 6, unknown key: Noindex: /drafts/"


def test_the_chain_of_redirects(web: Web, tmp_path: Path) -> None:
    last = web.robots(RULES)
    middle = web.robots(redirect(last.robots_url, status=302))
    first = web.robots(redirect(middle.robots_url))
    done = Ended(*QUICK, first.url("/private/a"), cwd=tmp_path)
    lines = [line.strip() for line in done.stdout.splitlines()]
    at = lines.index(f"robots.txt   {first.robots_url}")
    assert lines[at + 1 : at + 3] == [f"HTTP 301 -> {middle.robots_url}", f"HTTP 302 -> {last.robots_url}"]
    assert done.row("answer").startswith("HTTP 200: success")


NOTHING, EVERYTHING = ACCESS_WORDS[AccessResult.RESTRICTED.value][0], ACCESS_WORDS[AccessResult.UNAVAILABLE.value][0]
UNREACHABLE = OUTAGE_WORDS[Basis.NOTHING_ALLOWED.value]


@pytest.mark.parametrize(
    ("route", "options", "told"),
    [
        (answer(status=404), [], f"HTTP 404: no robots.txt, so {EVERYTHING} (RFC 9309 2.3.1.3)"),
        (answer(status=503), [], f"HTTP 503: unreachable, {UNREACHABLE.meaning} ({UNREACHABLE.source})"),
        (
            redirect("/robots.txt"),
            [],
            f"more than 5 redirects in a row: no robots.txt, so {EVERYTHING} (RFC 9309 2.3.1.2)",
        ),
        (
            answer(status=403),
            ["-s", "REP_STATUS_POLICY=cautious"],
            f"HTTP 403: restricted, {NOTHING} ({CAUTIOUS[0][2]})",
        ),
        (
            answer(status=404),
            ["-s", 'REP_STATUS_POLICY={"404": "restricted"}'],
            f"HTTP 404: restricted, {NOTHING} (REP_STATUS_POLICY)",
        ),
    ],
)
def test_the_answer_is_shown_with_the_source_of_its_meaning(
    web: Web, tmp_path: Path, route: Any, options: list[str], told: str
) -> None:
    done = Ended(*QUICK, *options, web.robots(route).url("/"), cwd=tmp_path)
    assert done.row("answer") == told


def test_urls_to_which_no_robots_txt_applies_are_allowed(tmp_path: Path) -> None:
    urls = ["data:,x", "https://exempt.example/", "https://example.com/robots.txt"]
    done = Ended("-s", "REP_EXEMPT=exempt.example", *urls, cwd=tmp_path)
    assert done.status == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("  allowed")] == [
        f"  allowed      {because(VerdictReason.NOT_SUBJECT)}",
        f"  allowed      {because(VerdictReason.EXEMPT)}",
        f"  allowed      {because(VerdictReason.NOT_SUBJECT)}",
    ]


def test_agents_in_order_of_preference(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    done = Ended(*QUICK, "--agent", "NoBot", "--agent", "OtherBot", site.url("/"), cwd=tmp_path)
    assert done.row("refused") == f"by line 9, Disallow: / ({OF_GROUP.format(token='OtherBot')})"
    assert done.row("crawler") == "NoBot or OtherBot"


# The same engine and settings as a crawl.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own.settings\n")
    own = tmp_path / "own"
    own.mkdir()
    (own / "__init__.py").write_text("")
    (own / "settings.py").write_text(
        "SPIDER_MODULES = ['own.spiders']\nUSER_AGENT = 'OtherBot/1.0'\nJOBDIR = 'job'\nREP_CRAWL_DELAY_MAX = 1\n"
        "ROBOTSTXT_OBEY = False\nEXTENSIONS = {'own.spiders.Breaks': 0}\nLOG_LEVEL = 'DEBUG'\n"
        "REP_REPORT = 'report.html'\nFEEDS = {'items.json': {'format': 'json'}}\n"
        "ADDONS = {'scrapy_rep.Addon': 500}\n"
    )
    (own / "spiders.py").write_text(
        "import scrapy\n"
        "class Breaks:\n    def __init__(self):\n        raise ZeroDivisionError\n"
        "class Named(scrapy.Spider):\n    name = 'named'\n    robotstxt_user_agent = 'NamedBot'\n"
        "    custom_settings = {'USER_AGENT': 'NamedBot/1.0', 'REP_CRAWL_DELAY_MAX': 60}\n"
        "class Unheeding(scrapy.Spider):\n    name = 'unheeding'\n    custom_settings = {'REP_DRY_RUN': True}\n"
        "    @classmethod\n    def update_settings(cls, settings):\n        super().update_settings(settings)\n"
        "        settings.set('USER_AGENT', 'UnheedingBot/1.0', priority='spider')\n"
    )
    return tmp_path


def test_in_a_project_by_its_settings(web: Web, project: Path) -> None:
    site = web.robots(RULES)
    done = Ended(site.url("/"), cwd=project)
    assert (done.status, done.stderr) == (1, "")
    assert done.row("not obeyed") == NOT_OBEYED
    assert done.row("crawler") == "OtherBot"
    assert site.requests[0]["headers"]["User-Agent"] == "OtherBot/1.0"
    assert sorted(path.name for path in project.iterdir()) == ["own", "scrapy.cfg"], "nothing of a crawl's is left"


def test_the_spiders_settings_count(web: Web, project: Path) -> None:
    site = web.robots(RULES)
    done = Ended("--spider", "named", site.url("/private/a"), cwd=project)
    assert done.row("crawler") == "NamedBot"
    assert done.row("crawl-delay") == "2.5 s, obeyed (REP_CRAWL_DELAY_MAX = 60)"
    assert site.requests[0]["headers"]["User-Agent"] == "NamedBot/1.0"


def test_the_settings_that_a_spider_updates_count(web: Web, project: Path) -> None:
    done = Ended("--spider", "unheeding", web.robots(RULES).url("/"), cwd=project)
    assert done.row("crawler") == "UnheedingBot"


def test_its_settings_on_the_command_line_are_kept(web: Web, project: Path) -> None:
    done = Ended("-s", "REP_CRAWL_DELAY_MAX=1", "-L", "INFO", web.robots(RULES).url("/"), cwd=project)
    assert done.row("crawler") == "OtherBot"
    assert "Spider opened" in done.stderr


@pytest.mark.parametrize("options", [[], ["--file", "robots.txt"]])
def test_exit_status_2_for_a_spider_that_is_not_there(project: Path, options: list[str]) -> None:
    done = Ended("--spider", "nosuch", *options, "https://example.com/", cwd=project)
    assert_wrong_usage(done, "--spider 'nosuch': there is no such spider; spiders: named, unheeding")


MIDDLEWARE = """\
class NeedsTheSpider:
    @classmethod
    def from_crawler(cls, crawler):
        self = cls()
        self.crawler = crawler
        return self

    def process_request(self, request):
        spider = self.crawler.spider
        request.headers["X-Told"] = f"{spider.of_class} {spider.of_init} {spider.of_from_crawler}"
"""
SPIDER = """\
import scrapy

class Own(scrapy.Spider):
    name = "own"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {"own.middlewares.NeedsTheSpider": 700}}
    of_class = "class"

    def __init__(self, category, **kwargs):
        super().__init__(**kwargs)
        self.of_init = category
        self.robotstxt_user_agent = "NamedBot"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        self = super().from_crawler(crawler, *args, **kwargs)
        self.of_from_crawler = crawler.settings["BOT_NAME"]
        crawler.signals.connect(self.idle, scrapy.signals.spider_idle)
        return self

    def idle(self):  # as spiders of scrapy-redis do
        self.crawler.engine.crawl(scrapy.Request(self.page))
        raise scrapy.exceptions.DontCloseSpider

    async def start(self):
        yield scrapy.Request(self.page)

    def closed(self, reason):
        print("closed")
"""


def test_middlewares_find_the_spider_of_the_project(web: Web, project: Path) -> None:
    (project / "own" / "middlewares.py").write_text(MIDDLEWARE)
    (project / "own" / "spiders.py").write_text(SPIDER)
    (project / "robots.txt").write_text(RULES + "\nUser-agent: NamedBot\nDisallow: /named/\n")
    site = web.robots((project / "robots.txt").read_text())
    of_spider = ["--spider", "own", "-a", "category=books", "-a", f"page={site.url('/page')}"]
    done = Ended(*of_spider, site.url("/named/"), cwd=project)
    assert (done.status, done.stderr) == (1, "")
    assert done.row("refused") == f"by line 14, Disallow: /named/ ({OF_GROUP.format(token='NamedBot')})"
    assert site.targets == ["/robots.txt"], "the spider requests nothing"
    assert site.requests[0]["headers"]["X-Told"] == "class books scrapybot"
    assert "closed" not in done.stdout
    by_file = Ended(*of_spider, "--file", "robots.txt", "/named/", cwd=project)
    assert by_file.row("crawler") == "NamedBot"


def test_a_component_that_fails_is_no_answer_of_the_site(web: Web, project: Path) -> None:
    (project / "own" / "middlewares.py").write_text(MIDDLEWARE)
    site = web.robots(RULES)
    broken = ["-s", 'DOWNLOADER_MIDDLEWARES={"own.middlewares.NeedsTheSpider": 700}', "--compare"]
    done = Ended(*QUICK, *broken, site.url("/"), site.url("/a"), cwd=project)
    assert done.status == 3
    why = "because a component of the crawl failed: own.middlewares.NeedsTheSpider has raised "
    assert done.stdout.count(why) == 2
    assert OURS not in done.stdout
    assert done.stderr.count("Traceback") == 1
    assert ", in process_request" in done.stderr
    assert "The site is not at fault" in done.stderr


@pytest.mark.parametrize("file", [[], ["--file", "robots.txt"]])
def test_an_argument_that_a_spider_needs(offline: Path, project: Path, file: list[str]) -> None:
    (project / "own" / "middlewares.py").write_text(MIDDLEWARE)
    (project / "own" / "spiders.py").write_text(SPIDER)
    done = Ended("--spider", "own", *file, "https://example.com/", cwd=project)
    assert_wrong_usage(done, "--spider 'own': ")
    assert "missing 1 required positional argument: 'category'; give its arguments as in -a NAME=VALUE" in done.stderr


def test_outside_of_a_project_there_is_no_spider(tmp_path: Path) -> None:
    done = Ended("--spider", "named", "https://example.com/", cwd=tmp_path)
    assert_wrong_usage(done, "--spider 'named': there is no such spider; spiders: none")


# With a storage.


def test_a_url_given_by_hand_is_asked_anew_and_the_answer_is_stored(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)

    def status(*urls: str, stdin: bytes = b"") -> tuple[int, int]:
        done = Ended(*QUICK, "-s", "REP_STORAGE=sqlite:robots.db", *urls, cwd=tmp_path, stdin=stdin)
        return done.status, len(site.robots_requests)

    url = site.url("/private/a")
    assert status(url) == (1, 1)
    site.change("/robots.txt", answer("User-agent: *\nDisallow: /other/\n"))
    assert status(url, site.url("/")) == (0, 2), "both by the new answer"
    assert status("-", stdin=url.encode()) == (0, 2), "a list uses what is stored"
    site.change("/robots.txt", answer(status=503))
    assert status(url) == (0, 3), "the stored rules are obeyed during an outage"
    assert status(url) == (0, 4), "also during the backoff"


# While it waits.


@pytest.mark.skipif(sys.platform == "win32", reason="it has no pseudo-terminals")
@pytest.mark.parametrize("from_stdin", [False, True], ids=["argument", "list"])
def test_on_a_terminal_it_says_what_it_waits_for(web: Web, tmp_path: Path, from_stdin: bool) -> None:
    import pty  # noqa: PLC0415 - as above

    fast, site = web.robots(RULES), web.robots(answer(RULES, kind="hold"))
    urls = [fast.url("/"), site.url("/private/a")]
    terminal, stderr = pty.openpty()
    streams = {2: Path(os.ttyname(stderr))}
    arguments = [*ROBOTS, *QUICK, *(["-"] if from_stdin else urls)]
    stdin = "\n".join(urls).encode()
    with (
        open(terminal, "rb", buffering=0) as shown,
        open(stderr, "rb", buffering=0),
        PythonProcess(*arguments, cwd=tmp_path, environment=NO_PROXY, stdin=stdin, streams=streams) as process,
    ):
        told = ""
        while f"waiting for the robots.txt of {site.origin}, " not in told:
            told += shown.read(1024).decode()
        web.release(site)
        assert process.wait(60) == 1
        assert b"refused" in process.stdout
    assert ("1 URL: 1 allowed; " in told) is from_stdin


@contextmanager
def reads_from_a_pipe(tmp_path: Path, *options: str) -> Iterator[tuple[PythonProcess, Callable[[str], list[str]]]]:
    """Run the command. Yield its process and a function that writes a URL and waits for its line of output."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [*ROBOTS, *QUICK, *options, "-"]
    process = PythonProcess(*command, cwd=tmp_path, environment=NO_PROXY, streams={0: pipe})
    with process, pipe.open("w") as stdin:

        def answered(url: str) -> list[str]:
            before = process.stdout.count(b"\n")
            stdin.write(f"{url}\n")
            stdin.flush()
            until(lambda: process.stdout.count(b"\n") > before)
            return process.stdout.decode().splitlines()[before:]

        yield process, answered


@pytest.mark.skipif(sys.platform == "win32", reason="it has no named pipes")
def test_from_a_pipe_each_answer_comes_before_the_next_url(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    with reads_from_a_pipe(tmp_path) as (_, answered):
        for path, word in (("/private/a", "refused"), ("/", "allowed")):
            (line,) = answered(site.url(path))
            assert line.startswith(word)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGINT for one process")
@pytest.mark.parametrize("reactor", [(), ("-s", f"TWISTED_REACTOR={ANOTHER_REACTOR}")], ids=["asyncio", "select"])
def test_ctrl_c_ends_the_command_while_standard_input_is_open(tmp_path: Path, reactor: tuple[str, ...]) -> None:
    with reads_from_a_pipe(tmp_path, *reactor) as (process, answered):
        answered("data:,x")  # now it reads the next line
        process.send_signal(signal.SIGINT)
        process.wait(30)


@pytest.mark.parametrize("reactor", [(), ("-s", f"TWISTED_REACTOR={ANOTHER_REACTOR}")], ids=["asyncio", "select"])
def test_while_one_robots_txt_is_awaited_later_lists_of_urls_are_looked_up(
    web: Web, tmp_path: Path, reactor: tuple[str, ...]
) -> None:
    held, other = web.robots(answer(RULES, kind="hold")), web.robots(RULES)
    urls = [held.url("/"), *["data:,x"] * 400, other.url("/")]
    (tmp_path / "urls").write_text("".join(f"{url:{CHUNK - 1}}\n" for url in urls))  # a list each
    command = [*ROBOTS, *QUICK, "-s", "REP_FETCH_TIMEOUT=600", *reactor, "--input", "urls"]
    with PythonProcess(*command, cwd=tmp_path, environment=NO_PROXY) as process:
        until(lambda: other.robots_requests)
        web.release(held)
        process.wait(60)
        lines = process.stdout.decode().splitlines()
    assert [line.split("\t")[1] for line in lines] == urls


# Whether a crawl obeys it.

NOT_OBEYED = "ROBOTSTXT_OBEY is False, so a crawl fetches the page even if it is refused"
DRY_RUN = "REP_DRY_RUN is True, so a crawl fetches the page even if it is refused"


@pytest.mark.parametrize("from_file", [True, False])
@pytest.mark.parametrize(
    ("setting", "told"), [("ROBOTSTXT_OBEY=False", NOT_OBEYED), ("REP_DRY_RUN=True", DRY_RUN)], ids=["off", "dry-run"]
)
def test_if_a_crawl_does_not_obey_the_command_answers_and_says_so(
    web: Web, offline: Path, setting: str, told: str, from_file: bool
) -> None:
    site = web.robots(RULES)
    file = ["--file", "robots.txt"] if from_file else []
    arguments = [*QUICK, *file, "-s", setting, site.url("/private/a"), site.url("/"), "data:,x"]
    done = Ended(*arguments, cwd=offline)
    assert (done.status, done.stderr) == (1, "")
    assert done.row("refused").startswith("by line 3")
    assert done.row("not obeyed") == told
    assert done.stdout.count(told) == 2, "where no robots.txt applies, there is none to obey"
    assert [found["obeyed"] for found in Ended("--json", *arguments, cwd=offline).objects] == [False] * 3


def test_a_spider_may_obey_nothing(web: Web, project: Path) -> None:
    site = web.robots(RULES)
    done = Ended("--spider", "unheeding", "-s", "ROBOTSTXT_OBEY=True", site.url("/"), cwd=project)
    assert done.row("not obeyed") == DRY_RUN
    assert Ended("-s", "ROBOTSTXT_OBEY=True", site.url("/"), cwd=project).stdout.count("not obeyed ") == 0


IN_ADDONS = 'ADDONS={"scrapy_rep.Addon": 500}'
AS_MIDDLEWARE = 'DOWNLOADER_MIDDLEWARES={"scrapy_rep.RepMiddleware": 100}'
NOT_IN_USE = "ADDONS does not have scrapy_rep.Addon, so Scrapy's own middleware decides"
SWITCHED_OFF = 'ADDONS={"scrapy_rep.Addon": null}'


@pytest.mark.parametrize("from_file", [True, False])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param(["ROBOTSTXT_OBEY=True", SWITCHED_OFF], NOT_IN_USE, id="switched-off"),
        pytest.param(["ROBOTSTXT_OBEY=True", "ADDONS={}"], NOT_IN_USE, id="missing"),
        pytest.param(["ROBOTSTXT_OBEY=True", "ADDONS={}", AS_MIDDLEWARE], None, id="as-middleware"),
        pytest.param(["ROBOTSTXT_OBEY=True", IN_ADDONS], None, id="in-use"),
        pytest.param(["ADDONS={}"], NOT_OBEYED, id="nothing-is-obeyed"),
    ],
)
def test_where_the_project_does_not_use_the_plugin_that_is_said(
    web: Web, project: Path, options: list[str], told: str | None, from_file: bool
) -> None:
    (project / "robots.txt").write_text(RULES)
    url = ["--file", "robots.txt", "/"] if from_file else [web.robots(RULES).url("/")]
    arguments = [argument for option in options for argument in ("-s", option)] + url
    done = Ended(*arguments, cwd=project)
    assert (done.status, done.stderr) == (1, "")
    assert (done.row("not obeyed") if "not obeyed" in done.stdout else None) == told
    assert Ended("--json", *arguments, cwd=project).objects[0]["obeyed"] is (told is None)


def test_without_the_add_on_the_middleware_is_off_by_default(project: Path) -> None:
    settings = project / "own" / "settings.py"
    settings.write_text(settings.read_text().replace("ROBOTSTXT_OBEY = False\n", ""))
    (project / "robots.txt").write_text(RULES)
    without_addon = Ended("-s", "ADDONS={}", "-s", AS_MIDDLEWARE, "--file", "robots.txt", "/", cwd=project)
    assert without_addon.row("not obeyed") == NOT_OBEYED
    assert "not obeyed" not in Ended("--file", "robots.txt", "/", cwd=project).stdout


# --file


@pytest.mark.parametrize("stdin", [True, False], ids=["stdin", "file"])
@pytest.mark.parametrize("more", [[], ["--compare"]], ids=["alone", "compared"])
def test_a_compressed_file_is_read_as_in_a_crawl(tmp_path: Path, stdin: bool, more: list[str]) -> None:
    body = gzip.compress(RULES.encode())
    (tmp_path / "robots.txt.gz").write_bytes(body)
    file, given = ("-", body) if stdin else ("robots.txt.gz", b"")
    done = Ended("--file", file, *more, "/private/a", cwd=tmp_path, stdin=given)
    assert (done.status, done.row("refused")) == (1, "by line 3, Disallow: /private/ (group of '*')")
    assert not more or done.row(OURS) == "the same"


@pytest.mark.parametrize("stdin", [True, False], ids=["stdin", "file"])
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (gzip.compress(RULES.encode() * 100)[:-20], "the compressed data are incomplete"),
        (gzip.compress(b"")[:10] + b"x" * 100, "the compressed data are broken"),
    ],
    ids=["cut", "broken"],
)
def test_a_file_that_cannot_be_decompressed_is_an_error(tmp_path: Path, body: bytes, why: str, stdin: bool) -> None:
    (tmp_path / "robots.txt.gz").write_bytes(body)
    file, given = ("-", body) if stdin else ("robots.txt.gz", b"")
    assert_wrong_usage(Ended("--file", file, "/private/a", cwd=tmp_path, stdin=given), f"--file {file}: {why}")


def test_a_long_compressed_file_is_read_up_to_the_limit_of_the_crawl(tmp_path: Path) -> None:
    rules = b"user-agent: *\nallow: /a\n" + b"# more\n" * 100_000 + b"disallow: /\n"
    (tmp_path / "robots.txt").write_bytes(gzip.compress(rules))
    assert Ended("--file", "robots.txt", "/b", cwd=tmp_path).status == 0
    more = Ended("--file", "robots.txt", "-s", "REP_BODY_LIMIT=1000000", "/b", cwd=tmp_path)
    assert more.status == 1
    compared = Ended("--file", "robots.txt", "--compare", "/b", cwd=tmp_path)
    assert compared.row(OURS) == "refused: it reads robots.txt beyond REP_BODY_LIMIT"


def test_offline_by_the_settings_of_a_spider(project: Path) -> None:
    (project / "robots.txt").write_text(RULES + "\nUser-agent: NamedBot\nCrawl-delay: 9\nDisallow: /named/\n")
    done = Ended("--file", "robots.txt", "--spider", "named", "/named/", cwd=project)
    assert (done.status, done.stderr) == (1, "")
    assert done.row("crawler") == "NamedBot"
    assert done.row("crawl-delay") == "9 s, obeyed (REP_CRAWL_DELAY_MAX = 60)"
    assert Ended("--file", "robots.txt", "/named/", cwd=project).row("crawler") == "OtherBot"
    agent = Ended("--file", "robots.txt", "--spider", "named", "--agent", "ThirdBot", "/named/", cwd=project)
    assert agent.row("crawler") == "ThirdBot"


def test_file_judges_without_a_request(offline: Path) -> None:
    done = Ended("--file", "robots.txt", *QUICK, "https://example.com/private/a", "/private/a.pdf", cwd=offline)
    assert (done.status, done.stderr) == (1, "")
    assert done.row("refused") == f"by line 3, Disallow: /private/ ({EVERYONE})"
    assert done.row("robots.txt") == "robots.txt"
    assert "answer" not in done.stdout


@pytest.mark.parametrize(
    "url",
    ["http://", "https:///private/a", "https:/private/a", "http://[x/private/a", '"https://example.com/private/a"', ""],
)
def test_a_url_without_a_host_is_cant_tell(offline: Path, url: str) -> None:
    done = Ended("--file", "robots.txt", url, cwd=offline)
    assert (done.status, done.row("can't tell")) == (3, f"{url!r} has no valid scheme and host")


def test_a_list_and_its_summary(web: Web, tmp_path: Path) -> None:
    site, down = web.robots(RULES), web.robots(answer(status=503))
    urls = [site.url("/"), site.url("/private/a"), site.url("/private/b"), down.url("/"), "http://", down.url("/b")]
    done = Ended(*QUICK, "-", cwd=tmp_path, stdin="\n".join(urls).encode())
    assert done.status == 3
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()] == [
        ["allowed", urls[0]],
        ["refused", urls[1]],
        ["refused", urls[2]],
        ["refused", urls[3]],
        ["can't tell", "http://"],
        ["refused", urls[5]],
    ]
    told = "6 URLs: 1 allowed, 4 refused (2 of them because robots.txt is unreachable), 1 can't tell; "
    assert done.stderr.startswith(told)
    assert done.stderr.count("URLs") == 1, "no progress, because it is not a terminal"


def test_a_list_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("user-agent: *\ndisallow: /a\n")
    (tmp_path / "urls").write_text("https://example.com/a\r\nhttps://example.com/b\r\n", "utf-8-sig")
    done = Ended("--file", "robots.txt", "--input", "urls", cwd=tmp_path)
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()] == [
        ["refused", "https://example.com/a"],
        ["allowed", "https://example.com/b"],
    ]


def test_comments_in_a_list_are_skipped(offline: Path) -> None:
    done = Ended("--file", "robots.txt", "-", cwd=offline, stdin=b"# pages\n/private/a\n  # more\n\n/a#b\n")
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()] == [
        ["refused", "/private/a"],
        ["allowed", "/a#b"],
    ]


def test_with_show_each_url_of_a_list_has_its_lines(offline: Path) -> None:
    done = Ended("--file", "robots.txt", "--show", "-", cwd=offline, stdin=b"/private/a\n/\n")
    assert (done.stdout.count("\n>"), done.stdout.count("  User-agent: *\n")) == (1, 2)
    assert "2 URLs: 1 allowed, 1 refused; " in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"], ["--compare"]])
def test_an_empty_standard_input_is_nothing_to_judge_by(tmp_path: Path, options: list[str]) -> None:
    """As in `curl -sf URL | scrapy robots --file - /a`, if curl has failed."""
    done = Ended("--file", "-", *options, "/a", "data:,x", cwd=tmp_path)
    assert (done.status, done.stdout.count("nothing to judge by"), done.stderr) == (3, 2, "")
    (tmp_path / "robots.txt").write_bytes(b"")
    assert Ended("--file", "robots.txt", *options, "/a", cwd=tmp_path).status == 0, "a file without rules"


@pytest.mark.parametrize("arguments", [["-"], ["--file", "robots.txt", "-"], ["--json", "--input", "list"]])
def test_an_empty_list_is_nothing_to_judge(offline: Path, arguments: list[str]) -> None:
    (offline / "list").write_text("# no URL\n\n")
    done = Ended(*arguments, cwd=offline)
    assert (done.status, done.stdout, done.stderr) == (3, "", "0 URLs: there is nothing to judge\n")


def test_file_minus_reads_robots_txt_from_standard_input(tmp_path: Path) -> None:
    done = Ended("--file", "-", "--json", "/private/a", cwd=tmp_path, stdin=RULES.encode())
    (found,) = done.objects
    assert (found["line"], done.status) == (3, 1)


# --show

SHOWN = """\
   1  # who may
|  2  User-agent: *
>  3  Disallow: /private/
|  4  Allow: /private/*.pdf$
|  5  Crawl-delay: 2.5
   6  Noindex: /drafts/
"""


def test_show_marks_the_group_and_the_rule(offline: Path) -> None:
    done = Ended("--file", "robots.txt", "--show=all", *QUICK, "/private/a", cwd=offline)
    assert done.stdout.partition("\n\n")[2] == SHOWN + (
        "   7\n   8  User-agent: OtherBot\n   9  Disallow: /\n  10\n  11  Sitemap: https://example.com/sitemap.xml\n"
    )


def test_show_the_lines_that_matter(offline: Path) -> None:
    done = Ended("--file", "robots.txt", "--show", *QUICK, "/private/a", cwd=offline)
    assert done.stdout.partition("\n\n")[2] == f"{SHOWN}  ...\n"


def test_nothing_that_a_stranger_wrote_reaches_the_terminal(tmp_path: Path) -> None:
    evil = b"user-agent: *\ndisallow: /\x1b]0;owned\x07\nsitemap: /\x9b31m\n\x1b[2Jnonsense\n\xe2\x80\xae: x\n\xff\n"
    evil += b"content-signal: search=yes, \x1b[31m=no\n"
    (tmp_path / "robots.txt").write_bytes(evil)
    done = Ended("--file", "robots.txt", "--show", *QUICK, "/\x1b]0;owned\x07", cwd=tmp_path)
    assert done.status == 1
    assert all(line.isprintable() for line in done.stdout.splitlines())
    assert "\\x1b]0;owned\\x07" in done.stdout


# --json


def test_json_has_an_object_a_url(web: Web, tmp_path: Path) -> None:
    site = web.robots(RULES)
    moved = web.robots(redirect(site.robots_url))
    done = Ended("--json", *QUICK, moved.url("/private/a"), "example.com/a", cwd=tmp_path)
    refused, unknown = done.objects
    assert list(refused) == list(unknown) == JSON_KEYS
    told = {key: refused[key] for key in JSON_KEYS if key not in {"age", "good_for"}}
    assert told == {
        "url": moved.url("/private/a"),
        "allowed": False,
        "reason": "rule",
        "obeyed": True,
        "line": 3,
        "rule": "Disallow: /private/",
        "group": "*",
        "product_tokens": ["ExampleBot"],
        "robots_url": moved.robots_url,
        "final_url": site.robots_url,
        "hops": [
            {"url": moved.robots_url, "answer": "HTTP 301", "location": site.robots_url},
            {"url": site.robots_url, "answer": "HTTP 200", "location": None},
        ],
        "answer": "HTTP 200",
        "access": "success",
        "source": "RFC 9309 2.3.1.1",
        "crawl_delay": 2.5,
        "usage": [],
        "licenses": [],
        "sitemaps": ["https://example.com/sitemap.xml"],
        "ignored": [{"line": 6, "text": "Noindex: /drafts/", "reason": "unknown key"}],
        "ignored_count": 1,
        "error": None,
    }
    assert 0 <= refused["age"] < 60
    assert 86_000 < refused["good_for"] <= 86_400
    assert (unknown["allowed"], unknown["line"], done.status) == (None, None, 3)
    assert "did you mean" in unknown["error"]


def test_the_licenses_for_the_crawler_are_shown(tmp_path: Path) -> None:
    group = "user-agent: newsbot\nlicense: https://a.example/\x9b2.xml\nlicense: /3.xml\n"
    body = f"license: https://a.example/1.xml\n{group}license: https://u:pw@a.example/4.xml\n".encode()
    done = Ended("--file", "-", "--agent", "NewsBot", "/", cwd=tmp_path, stdin=body)
    assert done.row("licenses") == "https://a.example/\\x9b2.xml"
    assert "https://a.example/4.xml" in done.stdout
    assert "pw" not in done.stdout
    assert done.row("ignored") == "line 4, no whole URL: license: /3.xml"
    for agent, licenses in (
        ("NewsBot", ["https://a.example/\x9b2.xml", "https://u:pw@a.example/4.xml"]),
        ("Other", ["https://a.example/1.xml"]),
    ):
        done = Ended("--file", "-", "--agent", agent, "--json", "/", "/a", cwd=tmp_path, stdin=body)
        assert [found["licenses"] for found in done.objects] == [licenses, None]


def test_json_is_ascii_whatever_strangers_write(tmp_path: Path) -> None:
    body = "user-agent: *\ndisallow: /é\x1bx\nsitemap: https://é.example/\x9bx".encode()
    done = Ended("--file", "-", "--json", "--show", "/é\x1bx", cwd=tmp_path, stdin=body)
    assert done.stdout.isascii()
    assert done.objects[0]["rule"] == "Disallow: /é\x1bx"
    assert done.objects[0]["robots_txt"] == body.decode()


def test_json_has_the_lines_of_a_robots_txt_once(web: Web, tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(RULES)
    done = Ended("--json", "--file", "robots.txt", "-", cwd=tmp_path, stdin=b"/\n/a\n/b\n")
    assert [(len(o["sitemaps"]), len(o["ignored"])) for o in done.objects[:1]] == [(1, 1)]
    assert [(o["sitemaps"], o["ignored"]) for o in done.objects[1:]] == [(None, None)] * 2
    one, other, none = web.robots(RULES), web.robots(RULES), web.robots(answer(status=404))
    urls = [site.url(path) for path in ("/", "/a") for site in (one, other, none)]
    done = Ended(*QUICK, "--json", *urls, cwd=tmp_path)
    assert [o["sitemaps"] is None for o in done.objects] == [False, False, False, True, True, True]


def test_json_of_a_hostile_file_stays_short(tmp_path: Path) -> None:
    body = b"x\n" * 250_000
    done = Ended("--file", "-", "--json", "/", cwd=tmp_path, stdin=body)
    (found,) = done.objects
    assert (len(found["ignored"]), found["ignored_count"]) == (MAX_IGNORED, 250_000)
    assert len(done.stdout) < len(body)


# A robots.txt that is too long.


def test_a_robots_txt_beyond_the_limit_names_the_setting(web: Web, tmp_path: Path) -> None:
    body = RULES.encode() + b"#" * 600_000
    (tmp_path / "robots.txt").write_bytes(body)
    told = "only the first 512,000 bytes of robots.txt were read; REP_BODY_LIMIT can be up to 67108864"
    site = web.robots(answer(body))
    assert Ended("--file", "robots.txt", "/a", cwd=tmp_path).row("too long") == told
    assert Ended(*QUICK, site.url("/"), cwd=tmp_path).row("too long") == told
    (line, other) = Ended(
        *QUICK, "-", cwd=tmp_path, stdin=f"{site.url('/a')}\n{site.url('/b')}".encode()
    ).stdout.splitlines()
    assert line.endswith(f"; {told}")
    assert other.endswith(f"; {told}")
    raised = Ended("-s", f"REP_BODY_LIMIT={len(body)}", "--file", "robots.txt", "/a", cwd=tmp_path)
    assert "too long" not in raised.stdout


# What a page may be used for.

USAGE = """\
User-agent: *
Disallow: /private
Content-Usage: train-ai=n
Content-Signal: search=yes
"""


def test_what_a_page_may_be_used_for(web: Web, tmp_path: Path) -> None:
    site = web.robots(USAGE)
    urls = [site.url("/a"), site.url("/private")]
    done = Ended(*QUICK, *urls, cwd=tmp_path)
    assert done.status == 1, "by the rule alone"
    assert done.row("usage") == "train-ai: disallowed by line 3, Content-Usage: train-ai=n"
    assert "\n               search: allowed by line 4, Content-Signal: search=yes\n" in done.stdout
    assert done.stdout.count("train-ai") == 2, "of what may not be fetched nothing is implied"
    page, private = Ended("--json", *QUICK, *urls, cwd=tmp_path).objects
    assert (page["allowed"], private["usage"]) == (True, [])
    assert page["usage"] == [
        {"category": "train-ai", "allowed": False, "line": 3, "directive": "content-usage"},
        {"category": "search", "allowed": True, "line": 4, "directive": "content-signal"},
    ]


def test_by_a_policy_token_and_before_the_first_user_agent_line(tmp_path: Path) -> None:
    signals = "Content-Signal: search=no, ai-input=yes\nContent-Usage: search=y\n"
    (tmp_path / "r.txt").write_text(
        f"{signals}User-agent: *\nAllow: /\n\nUser-agent: __usage_ai-training\nDisallow: /a\n"
    )
    done = Ended("--file", "r.txt", "--purpose", "train-ai", "/a", cwd=tmp_path)
    assert done.status == 1
    by_token = f"by line 7, Disallow: /a ({OF_GROUP.format(token='__usage_ai-training')})"
    assert done.row("refused") == f"for the purpose 'train-ai' {by_token}"
    assert done.row("usage") == "search: disallowed by line 1, Content-Signal: search=no, ai-input=yes"
    assert f"train-ai: disallowed {by_token}" in done.stdout
    assert done.row("ignored") == "line 2, content-usage before the first user-agent line: Content-Usage: search=y"
    by_signal = Ended("--file", "r.txt", "--purpose", "search", "/b", cwd=tmp_path)
    words = "for the purpose 'search' by line 1, Content-Signal: search=no, ai-input=yes (for every crawler)"
    assert by_signal.row("refused") == words


@pytest.mark.parametrize("from_file", [True, False])
def test_by_purpose(web: Web, tmp_path: Path, from_file: bool) -> None:
    site = web.robots(USAGE)
    (tmp_path / "robots.txt").write_text(USAGE)
    asked = ["--file", "robots.txt", "/a"] if from_file else [*QUICK, site.url("/a")]
    done = Ended("--purpose", "use-full", "--purpose", "train-ai", "--show", *asked, cwd=tmp_path)
    assert done.status == 1
    assert done.row("refused") == f"for the purpose 'train-ai' by line 3, Content-Usage: train-ai=n ({EVERYONE})"
    assert "\n               use-full: unknown\n" in done.stdout
    assert "\n> 3  Content-Usage: train-ai=n\n" in done.stdout
    (found,) = Ended("--purpose=train-ai", "--json", *asked, cwd=tmp_path).objects
    assert (found["reason"], found["line"], found["rule"]) == ("usage", 3, "Content-Usage: train-ai=n")
    assert Ended("--purpose=search", *asked, cwd=tmp_path).status == 0
    wrong = Ended("--purpose=ai-train", *asked, cwd=tmp_path)
    assert_wrong_usage(
        wrong, "REP_PURPOSES is ['ai-train'] ('ai-train' is no category of use; did you mean 'train-ai'?); set it to"
    )
    by_settings = ["-s", "REP_PURPOSES=train-ai", "-s", "REP_PURPOSES_REFUSE=1"]
    assert Ended(*by_settings, *asked, cwd=tmp_path).status == 1, "as a crawl would"


# What it costs every other command.


LOADED = """
import sys
from scrapy.cmdline import execute
try:
    execute(["scrapy", "version"])
finally:
    print(*sorted(name for name in sys.modules if name.startswith("scrapy_rep")))
"""


def test_other_commands_load_nothing_for_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[1:] == ["scrapy_rep scrapy_rep.commands scrapy_rep.commands.robots"]


def test_it_is_listed_inside_and_outside_of_a_project(project: Path, tmp_path_factory: Any) -> None:
    for cwd in (project, tmp_path_factory.mktemp("outside")):
        done = run_python("-m", "scrapy", cwd=cwd)
        assert "robots        Show what robots.txt allows your crawler, and why" in done.stdout


def test_a_reader_that_has_had_enough_ends_the_command_while_standard_input_is_open(tmp_path: Path) -> None:
    command = [sys.executable, *ROBOTS, *QUICK, "-"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(b"data:,x\n")
    process.stdin.flush()
    assert process.wait(timeout=60) == 0
    process.stdin.close()


def test_a_reader_that_has_had_enough_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text("user-agent: *\n" + "disallow: /private\n" * 20_000, "utf-8")
    command = [sys.executable, "-m", "scrapy", "robots", "--file", str(file), "--show=all", "/a", "/b"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=30), errors) == (0, b"")
