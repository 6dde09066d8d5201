"""The README: every example runs, every table is the code's, and the problem that it states is there."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crawling import ADDON, BUILTIN, Crawl, crawl
from pytest_twisted import ensureDeferred
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from web import Site, Web, answer

import scrapy_rep
from scrapy_rep import AccessResult, RepDecodingMiddleware, RepMiddleware
from scrapy_rep.protocol.freshness import MAX_LIFETIME
from scrapy_rep.protocol.lifecycle import BACKOFF_FIRST, BACKOFF_MAX
from scrapy_rep.protocol.status_policy import RFC9309, result_of
from scrapy_rep.settings import SETTINGS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
EXAMPLE = "https://example.com"


@dataclass(frozen=True)
class Block:
    """A fenced block, and the mark in the comment above it."""

    mark: str
    language: str
    text: str


BLOCKS = [
    Block(match["mark"] or "", match["language"], match["text"])
    for match in re.finditer(
        r"(?:<!-- (?P<mark>\S+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", README, re.MULTILINE | re.DOTALL
    )
]
SCRIPTS = [block for block in BLOCKS if block.language == "python" and not block.mark]
SETTINGS_BLOCKS = [block for block in BLOCKS if block.mark == "settings"]
COMMANDS = [block for block in BLOCKS if block.mark == "command"]


def marked(mark: str) -> str:
    """The text of the one block with that mark."""
    (block,) = (block for block in BLOCKS if block.mark == mark)
    return block.text


def table(mark: str) -> list[list[str]]:
    """The cells of each row of the table below that mark, without the header."""
    lines = README.partition(f"<!-- {mark} -->\n")[2].partition("\n\n")[0].splitlines()
    assert len(lines) > 2, mark
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines[2:]]


def names(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def after(block: Block) -> Block:
    return BLOCKS[BLOCKS.index(block) + 1]


def test_every_python_block_is_run_one_way_or_the_other() -> None:
    python = [block for block in BLOCKS if block.language == "python"]
    assert len(python) == README.count("```python\n") == len(SCRIPTS) + len(SETTINGS_BLOCKS)
    assert (len(SCRIPTS), len(SETTINGS_BLOCKS)) == (6, 5)


@pytest.mark.parametrize(
    "script", SCRIPTS, ids=["errback", "two-spiders", "sitemaps", "verdict", "without-a-crawl", "directive"]
)
def test_scripts_print_what_stands_below_them(script: Block, web: Web, tmp_path: Path) -> None:
    # The robots.txt is the README's own, and names a sitemap; the address is that of the test web.
    site = web.robots(marked("robots.txt"))
    if "Sitemap" in script.text:
        page = f"<urlset><url><loc>{site.url('/news')}</loc></url></urlset>"
        robots = f"{marked('robots.txt')}\nSitemap: {site.url('/sitemap.xml')}\n"
        site.change("/robots.txt", answer(robots))
        site.change("/sitemap.xml", answer(page, headers={"Content-Type": "text/xml"}))
    file = tmp_path / "script.py"
    file.write_text(script.text.replace(EXAMPLE, site.origin), "utf-8")
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.replace(site.origin, EXAMPLE).splitlines()
    expected = after(script).text.splitlines()
    # Two crawls at once end in any order.
    assert sorted(printed) == sorted(expected)


async def crawl_with(block: Block, site: Site, *paths: str) -> Crawl:
    variables: dict[str, Any] = {}
    exec(block.text, variables)
    settings = {name: value for name, value in variables.items() if name.isupper()}
    return await crawl(*map(site.url, paths), robots=settings)


@pytest.mark.parametrize("block", SETTINGS_BLOCKS, ids=["one-line", "policy", "storage", "by-hand", "parser"])
@ensureDeferred
async def test_settings_make_a_crawl_obey(
    block: Block, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a crawl outside of a project keeps its .scrapy
    site = web.robots("user-agent: *\ndisallow: /private/\n")
    result = await crawl_with(block, site, "/", "/private/diary")
    assert list(result.pages) == [site.url("/")]
    assert list({**result.refused, **result.failed}) == [site.url("/private/diary")]
    assert result.messages() == []


@pytest.mark.parametrize("block", [SETTINGS_BLOCKS[0], SETTINGS_BLOCKS[3]], ids=["one-line", "by-hand"])
@ensureDeferred
async def test_by_hand_is_the_same_as_the_add_on(block: Block, web: Web) -> None:
    crawler = (await crawl_with(block, web.robots(""), "/")).crawler
    assert crawler is not None
    there = (crawler.get_downloader_middleware(m) for m in (RepMiddleware, RepDecodingMiddleware, RobotsTxtMiddleware))
    assert [middleware is not None for middleware in there] == [True, True, False]
    assert crawler.settings["DOWNLOAD_HANDLERS"] == {"ftp": "scrapy_rep.fetching.ftp.RepFTPDownloadHandler"}


@pytest.mark.parametrize(
    ("status", "access"),
    [(403, "restricted"), (401, "unavailable"), (521, "unavailable"), (530, "unreachable"), (445, "unreachable")],
)
@ensureDeferred
async def test_a_policy_of_ones_own(web: Web, status: int, access: str) -> None:
    result = await crawl_with(SETTINGS_BLOCKS[1], web.robots(answer(status=status)), "/")
    assert result.stats[f"rep/access/{access}"] == 1


@ensureDeferred
async def test_what_is_known_outlives_the_crawl(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    site = web.robots("")
    for _ in range(2):
        await crawl_with(SETTINGS_BLOCKS[2], site, "/")
    assert len(site.robots_requests) == 1
    assert (tmp_path / ".scrapy" / "robots.db").exists()


@ensureDeferred
async def test_the_matching_alone_still_fails_open(web: Web) -> None:
    site = web.robots(answer(status=503))
    assert list((await crawl_with(SETTINGS_BLOCKS[4], site, "/")).pages) == [site.url("/")]


# The problem, and the remedy: the built-in middleware and ours at the same answers.


@pytest.mark.parametrize(("robots", "fetched"), [(BUILTIN, True), (ADDON, False)], ids=["built-in", "ours"])
@ensureDeferred
async def test_503(web: Web, robots: dict[str, Any], fetched: bool) -> None:
    site = web.robots(answer(status=503))
    assert bool((await crawl(site.url("/"), robots=robots)).pages) is fetched


@pytest.mark.parametrize(("robots", "fetched"), [(BUILTIN, True), (ADDON, False)], ids=["built-in", "ours"])
@ensureDeferred
async def test_like_googlebot(web: Web, robots: dict[str, Any], fetched: bool) -> None:
    site = web.robots("user-agent: googlebot\ndisallow:\n\nuser-agent: *\ndisallow: /\n")
    agent = {"USER_AGENT": "Mozilla/5.0 (compatible; NewsBot/1.0) like Googlebot"}
    assert bool((await crawl(site.url("/"), robots=robots, settings=agent)).pages) is fetched


@pytest.mark.parametrize(("robots", "says"), [(BUILTIN, False), (ADDON, True)], ids=["built-in", "ours"])
@ensureDeferred
async def test_the_log_names_the_rule(web: Web, robots: dict[str, Any], says: bool) -> None:
    site = web.robots("user-agent: *\ndisallow: /\n")
    (line,) = (
        m for m in (await crawl(site.url("/"), robots=robots)).messages(0) if m.startswith("Forbidden by robots")
    )
    assert ("line 2" in line and "Disallow: /" in line) is says


@pytest.mark.parametrize(("robots", "fetched"), [(BUILTIN, False), (ADDON, True)], ids=["built-in", "ours"])
@ensureDeferred
async def test_the_body_of_an_error_page(web: Web, robots: dict[str, Any], fetched: bool) -> None:
    site = web.robots(answer("user-agent: *\ndisallow: /\n", status=404))
    assert bool((await crawl(site.url("/"), robots=robots)).pages) is fetched


# The tables.


def statuses(cell: str) -> set[int]:
    """`400-499 but not 407`."""
    holds, _, but_not = cell.partition(" but not ")
    found = re.findall(r"\b(\d{3})(?:-(\d{3}))?\b", holds)
    return {s for first, last in found for s in range(int(first), int(last or first) + 1)} - (
        {int(but_not)} if but_not else set()
    )


def test_each_status_is_in_one_row_of_the_answers() -> None:
    rows = [(statuses(cells[0]), AccessResult(cells[1])) for cells in table("answers") if statuses(cells[0])]
    (other,) = (AccessResult(cells[1]) for cells in table("answers") if cells[0].endswith("any other status"))
    for status in range(100, 1000):
        said = [access for held, access in rows if status in held] or [other]
        assert said == [result_of(status, RFC9309)], status


def test_the_answers_hold_for_as_long_as_the_table_says() -> None:
    assert (BACKOFF_FIRST, BACKOFF_MAX, MAX_LIFETIME) == (5, 3600, 24 * 3600)
    *rows, dropped = ((AccessResult(cells[1]), cells[3]) for cells in table("answers") if cells[1] != "redirect")
    for access, kept_for in rows:
        assert kept_for.startswith("5 seconds" if access is AccessResult.UNREACHABLE else "24 hours")
    assert dropped == (AccessResult.UNREACHABLE, "an hour")


def test_settings_table() -> None:
    ours = [cells for cells in table("settings-table") if cells[0].startswith("`REP_")]
    said = {names(setting)[0]: ast.literal_eval(names(default)[0]) for setting, default, _ in ours}
    assert said == {name: setting.default for name, setting in SETTINGS.items()}


def stats_in_the_code() -> set[str]:
    """Every string that is a stat's name; what is filled in is `{}`."""
    nodes = [node for file in ROOT.glob("scrapy_rep/**/*.py") for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = {
        ast.unparse(node) for node in nodes if isinstance(node, (ast.JoinedStr, ast.Constant)) and node not in parts
    }
    return {
        re.sub(r"\{.*\}", "{}", match[1])
        for text in texts
        if (match := re.fullmatch(r"f?['\"]((?:rep|robotstxt)/.*)['\"]", text))
    }


# A name that the code fills in -> what it may come to.
FILLED_IN = {
    "rep/access/{}": [f"rep/access/{access.value}" for access in AccessResult if access is not AccessResult.REDIRECT],
    "rep/shadow/{}": ["rep/shadow/rule", "rep/shadow/restricted", "rep/shadow/unreachable"],
    "rep/crawl_delay/{}": ["rep/crawl_delay/obeyed", "rep/crawl_delay/capped", "rep/crawl_delay/ignored"],
    "rep/dropped/{}": ["rep/dropped/rule", "rep/dropped/restricted", "rep/dropped/unreachable"],
    "robotstxt/response_status_count/{}": ["robotstxt/response_status_count/N"],
    "robotstxt/exception_count/{}": ["robotstxt/exception_count/TYPE"],
}


def test_stats_table() -> None:
    counted = {stat for name in stats_in_the_code() for stat in FILLED_IN.get(name, [name])}
    said = [names(cells[0])[0] for cells in table("stats-table")]
    assert sorted(said) == sorted(counted)


def test_public_names() -> None:
    assert sorted(name for cells in table("public-names") for name in names(cells[0])) == sorted(scrapy_rep.__all__)


# The commands.


@pytest.mark.parametrize("block", COMMANDS, ids=["asked-for", "shown", "json"])
def test_the_command_prints_what_stands_below_it(block: Block, web: Web, tmp_path: Path) -> None:
    site = web.robots(marked("robots.txt"))
    (tmp_path / "robots.txt").write_text(marked("robots.txt"), "utf-8")
    arguments = shlex.split(block.text.replace(EXAMPLE, site.origin))
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout.replace(site.origin, EXAMPLE) == after(block).text
    assert done.returncode == (1 if "refused" in done.stdout else 0)


def test_every_key_of_the_json_is_in_its_table() -> None:
    (printed,) = (json.loads(after(block).text) for block in COMMANDS if "--json" in block.text)
    said = [name for cells in table("json-table") for name in names(cells[0])]
    assert said == [*printed, "forgotten", "robots_txt"]


def test_every_option_of_the_command_is_in_its_table() -> None:
    said = set(re.findall(r"^\| `(--\w+)", README, re.MULTILINE)) | {"--show=all"}
    options = ast.parse((ROOT / "scrapy_rep" / "commands" / "robots.py").read_text("utf-8"))
    texts = {node.value for node in ast.walk(options) if isinstance(node, ast.Constant)}
    assert said == {text for text in texts if isinstance(text, str) and re.fullmatch(r"--\w+(=\w+)?", text)}


@pytest.mark.parametrize("mark", ["example-command", "test-command"])
def test_a_command_is_one_line_that_makes_its_own_environment(mark: str) -> None:
    (line,) = marked(mark).splitlines()
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_ci_runs_the_test_command() -> None:
    run = ROOT / ".ci" / "run"
    if not run.exists():
        pytest.skip("not in a source distribution")
    assert "test-command" in run.read_text("utf-8")
