"""Every script, settings block and command of README and docs does what the page says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from crawling import ADDON, Crawl, CrawlSpider, crawl
from doc_pages import BLOCKS, EXAMPLE, OWN, PAGES, REFUSAL, Block, blocks, marked, names, table, without_words
from processes import run_python
from pytest_twisted import ensureDeferred
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from web import Site, Web, answer

from scrapy_rep import RepMiddleware, VerdictReason
from scrapy_rep.protocol.words import REASON_WORDS

SETTINGS = blocks("python", "settings")
WITHOUT_DELAYS = {"DOWNLOAD_DELAY": 0, "AUTOTHROTTLE_START_DELAY": 0}
"""Scrapy's own delays, which the page about polite crawls sets. No result depends on them."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crawls outside of a project keep their files in the working directory."""
    monkeypatch.chdir(tmp_path)


def settings_with(*parts: str) -> Block:
    """Return the first block of settings that contains all these texts."""
    return next(block for block in SETTINGS if all(part in block.text for part in parts))


def test_refusals_are_shown_in_the_words_of_the_code() -> None:
    words = REASON_WORDS[VerdictReason.RULE.value].refusal.partition("{")[0]
    shown = [(page, found) for page, text in PAGES.items() for found in REFUSAL.findall(text)]
    assert [each for each in shown if each[1] != words] == []
    assert {page for page, _ in shown} >= {"README.md", "docs/index.md", "docs/log.md", "docs/start.md"}
    (first,) = re.findall("The text begins with `(.*?)`", PAGES["docs/migration.md"])
    assert words.startswith(f"{first} ")


@pytest.mark.parametrize("script", blocks("python"), ids=str)
def test_scripts_print_what_stands_below_them(script: Block, web: Web, tmp_path: Path) -> None:
    site = web.robots(marked("robots.txt"))
    file = tmp_path / "script.py"
    file.write_text(script.text.replace(EXAMPLE, site.origin), "utf-8")
    done = run_python(str(file))
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.replace(site.origin, EXAMPLE)
    # Two crawls at once end in any order.
    assert sorted(without_words(printed).splitlines()) == sorted(without_words(script.following.text).splitlines())


def test_the_sample_that_asks_for_verdicts_survives_a_site_that_hangs(web: Web, tmp_path: Path) -> None:
    (script,) = (block.text for block in blocks("python") if "timeout=60" in block.text)
    hangs = web.robots(answer(kind="hang")).origin
    settings = ': True, "REP_FETCH_TIMEOUT": 1}'  # the end of the crawl waits for the fetch
    for text, other in {EXAMPLE: hangs, "=60": "=0.1", ": False}": settings}.items():
        assert text in script
        script = script.replace(text, other)
    (tmp_path / "script.py").write_text(script, "utf-8")
    log = run_python(str(tmp_path / "script.py")).stderr
    assert log.count("No robots.txt within 60 seconds") == 2
    assert "Spider closed (finished)" in log


# Settings.


async def crawl_with(block: Block, site: Site, *urls: str, **settings: Any) -> Crawl:
    """Crawl with the settings of a block. The add-on is on unless the block sets ROBOTSTXT_OBEY."""
    variables: dict[str, Any] = {}
    exec(block.text.replace(OWN, site.origin), variables)
    ours = {name: value for name, value in variables.items() if name.isupper()}
    robots = {**({} if "ROBOTSTXT_OBEY" in ours else ADDON), **ours, **WITHOUT_DELAYS, **settings}
    return await crawl(*urls, robots=robots)


def log_below(block: Block) -> list[str]:
    """Return the log lines that the page shows between this block and its next block of settings."""
    for other in BLOCKS[block.number + 1 :]:
        if other.page != block.page or other.mark == "settings":
            break
        if other.mark == "log":
            return other.text.splitlines()
    return []


@pytest.mark.parametrize("block", SETTINGS, ids=str)
@ensureDeferred
async def test_settings_do_what_is_said_and_log_what_is_shown(block: Block, web: Web) -> None:
    site = web.robots(marked("robots.txt"))
    log = log_below(block)
    urls = [site.url("/"), site.url("/private/diary")]
    result = await crawl_with(block, site, *urls)
    refuses_nothing = "REP_DRY_RUN" in block.text or "REP_EXEMPT" in block.text or "NewsBot" in block.text
    assert sorted(result.pages) == (urls if refuses_nothing else urls[:1])
    assert sorted({**result.refused, **result.failed}) == sorted(set(urls) - set(result.pages))
    lines = [
        f"[{record.name}] {record.levelname}: {record.getMessage()}".replace(site.origin, EXAMPLE)
        for record in result.log
    ]
    assert [line for line in log if line not in lines] == []
    warnings = [line for line in lines if re.match(r"\[\S+\] (WARNING|ERROR|CRITICAL)", line)]
    assert [line for line in warnings if line not in log] == []


@pytest.mark.parametrize("row", table("recipes"), ids=lambda row: row[0])
@ensureDeferred
async def test_the_recipes(row: list[str], web: Web, request: pytest.FixtureRequest) -> None:
    redis = request.getfixturevalue("redis_server").url if "redis:" in row[1] else ""
    site = web.robots(marked("robots.txt"))
    settings: dict[str, Any] = {}
    exec(names(row[1])[0].replace(OWN, site.origin).replace("redis://localhost:6379/0", redis), {}, settings)
    spider = type("Own", (CrawlSpider,), {"custom_settings": settings.pop("custom_settings", None)})
    result = await crawl(site.url("/"), site.url("/private/diary"), spider=spider, settings=settings)
    obeys_another_group = "NewsBot" in row[1]
    is_refused = not obeys_another_group and not {"REP_DRY_RUN", "REP_EXEMPT", "ROBOTSTXT_OBEY"} & set(settings)
    assert list(result.refused) == [site.url("/private/diary")] * is_refused
    assert bool(result.messages()) is bool({"REP_DRY_RUN", "ROBOTSTXT_OBEY"} & set(settings)), "these warn"


def test_the_spider_of_the_readme_learns_why(web: Web, tmp_path: Path) -> None:
    site = web.robots(marked("robots.txt"))
    (tmp_path / "spider.py").write_text(marked("spider").replace(EXAMPLE, site.origin), "utf-8")
    log = run_scrapy(["scrapy", "runspider", "-s", 'ADDONS={"scrapy_rep.Addon": 500}', "spider.py"], tmp_path).stderr
    why = without_words(marked("refusal")).replace(EXAMPLE, site.origin)
    assert f"[diary] INFO: {why}" in without_words(log)


@pytest.mark.parametrize("block", [SETTINGS[0], settings_with("DOWNLOADER_MIDDLEWARES")], ids=str)
@ensureDeferred
async def test_by_hand_is_the_same_as_the_add_on(block: Block, web: Web) -> None:
    site = web.robots("")
    crawler = (await crawl_with(block, site, site.url("/"))).crawler
    there = (crawler.get_downloader_middleware(m) for m in (RepMiddleware, RobotsTxtMiddleware))
    assert [middleware is not None for middleware in there] == [True, False]


@pytest.mark.parametrize(
    ("status", "access"),
    [(403, "restricted"), (401, "unavailable"), (521, "unavailable"), (530, "unreachable"), (445, "unreachable")],
)
@ensureDeferred
async def test_a_policy_of_ones_own(web: Web, status: int, access: str) -> None:
    site = web.robots(answer(status=status))
    result = await crawl_with(settings_with("REP_STATUS_POLICY", "range"), site, site.url("/"))
    assert result.stats[f"rep/access/{access}"] == 1


@ensureDeferred
async def test_what_is_known_outlives_the_crawl(web: Web, tmp_path: Path) -> None:
    site = web.robots("")
    for _ in range(2):
        await crawl_with(settings_with("REP_STORAGE"), site, site.url("/"))
    assert len(site.robots_requests) == 1
    assert (tmp_path / "robots.db").exists()


@ensureDeferred
async def test_the_matching_alone_still_fails_open(web: Web) -> None:
    site = web.robots(answer(status=503))
    result = await crawl_with(settings_with("ROBOTSTXT_PARSER"), site, site.url("/"))
    assert list(result.pages) == [site.url("/")]


@pytest.mark.parametrize(("delay", "kind"), [(0.1, "obeyed"), (11, "capped")])
@ensureDeferred
async def test_crawl_delay(web: Web, delay: float, kind: str) -> None:
    site = web.robots(f"user-agent: *\ncrawl-delay: {delay}\ndisallow: /\n")  # so that no page waits its 10 seconds
    result = await crawl_with(settings_with("REP_CRAWL_DELAY_MAX"), site, site.url("/"))
    assert result.stats[f"rep/crawl_delay/{kind}"] == 1


# Commands.


def run_scrapy(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return run_python("-m", *arguments, cwd=folder)


@pytest.mark.parametrize("block", blocks("sh", "command"), ids=str)
def test_the_command_prints_what_stands_below_it(block: Block, web: Web, tmp_path: Path) -> None:
    site = web.robots(marked("robots.txt"))
    for name in ("robots.txt", "urls.txt"):
        (tmp_path / name).write_text(marked(name), "utf-8")
    done = run_scrapy(shlex.split(block.text.replace(EXAMPLE, site.origin)), tmp_path)
    assert done.stderr == "" or "--input" in block.text, "else it is a summary, with the time that it took"
    assert done.stdout.replace(site.origin, EXAMPLE) == block.following.text
    refused_or_changed = re.search(r"^(?: *|now )refused\b", done.stdout, re.MULTILINE)
    assert done.returncode == (1 if refused_or_changed else 0)


@pytest.mark.parametrize("mark", ["delete-from-sqlite", "delete-from-redis"])
def test_an_entry_is_deleted(web: Web, tmp_path: Path, request: pytest.FixtureRequest, mark: str) -> None:
    program, *arguments = shlex.split(marked(mark))
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    site = web.robots(marked("robots.txt"))
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
    (tmp_path / "settings.py").write_text(f"{SETTINGS[0].text}\n{settings_with('REP_STORAGE').text}")
    address = request.getfixturevalue("redis_server").url if "redis" in mark else "sqlite:robots.db"
    delete = [word.replace(EXAMPLE, site.origin).replace("redis://localhost:6379/0", address) for word in arguments]

    (tmp_path / "urls.txt").write_text(site.url("/"))

    def fetched() -> int:
        run_scrapy(["scrapy", "robots", "-s", f"REP_STORAGE={address}", "--input", "urls.txt"], tmp_path)
        return len(site.robots_requests)

    assert (fetched(), fetched()) == (1, 1)
    subprocess.run([program, *delete], cwd=tmp_path, check=True)
    assert fetched() == 2
