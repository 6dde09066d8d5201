"""README and docs: every example runs, every table is the code's, every link leads somewhere."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from crawling import ADDON, Crawl, Time, crawl, with_clock
from forked import run_python
from pytest_twisted import ensureDeferred
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from test_imports import LAYERS
from web import Site, Web, answer

import scrapy_rep
from scrapy_rep import AccessResult, RepDecodingMiddleware, RepMiddleware, Verdict, signals
from scrapy_rep.cache.shared_store import LEASE_SECONDS
from scrapy_rep.commands import output
from scrapy_rep.extensions.evidence.archive import CLOSING, MAX_QUEUED, REASON
from scrapy_rep.extensions.evidence.evidence import evidence_of
from scrapy_rep.extensions.outage_log import WARNED_ORIGINS
from scrapy_rep.fetching import turns
from scrapy_rep.fetching.redirects import RETRY_DELAY
from scrapy_rep.protocol.freshness import LAST_TENTH, MAX_LIFETIME
from scrapy_rep.protocol.lifecycle import BACKOFF_FIRST, BACKOFF_MAX
from scrapy_rep.protocol.robotstxt.preferences import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    MAX_READ,
    PREFERENCE_WORDS,
    VOCABULARY,
)
from scrapy_rep.protocol.robotstxt.rules import REASON_WORDS, VerdictReason
from scrapy_rep.protocol.status_policy import CAUTIOUS, RFC9309, result_of
from scrapy_rep.scrapy_internals import compat, head_limit
from scrapy_rep.scrapy_internals.fallbacks import COSTS
from scrapy_rep.settings import SETTINGS
from scrapy_rep.stats import STATS
from scrapy_rep.storage import STORAGES
from scrapy_rep.storage.circuit_breaker import DEADLINE
from scrapy_rep.user_agent import META_KEY
from scrapy_rep.waiting import door

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]
}
TESTED_ELSEWHERE = {"docs/report.md"}  # tests/report/test_json_lines_in_docs.py has its tables
README = PAGES["README.md"]
EXAMPLE = "https://example.com"
DOWN = "https://down.example.com"


@dataclass(frozen=True)
class Block:
    """A fenced block, and the mark in the comment above it."""

    page: str
    mark: str
    language: str
    text: str

    @property
    def following(self) -> Block:
        """The next block of its page."""
        blocks = [block for block in BLOCKS if block.page == self.page]
        return blocks[blocks.index(self) + 1]

    def __str__(self) -> str:
        """For test ids: its page, and the first line that only it has."""
        return f"{self.page}-{BLOCKS.index(self)}"


BLOCKS = [
    Block(page, match["mark"] or "", match["language"], match["text"])
    for page, text in PAGES.items()
    for match in re.finditer(
        r"(?:<!-- (?P<mark>\S+) -->\n)?^```(?P<language>\S+)\n(?P<text>.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
]


def blocks(language: str, mark: str = "") -> list[Block]:
    return [block for block in BLOCKS if (block.language, block.mark) == (language, mark)]


SCRIPTS = blocks("python")
SETTINGS_BLOCKS = blocks("python", "settings")
COMMANDS = blocks("sh", "command")


def marked(mark: str) -> str:
    """The text of the one block with that mark."""
    (block,) = (block for block in BLOCKS if block.mark == mark)
    return block.text


def settings_block(*parts: str) -> Block:
    """The first block of settings that has all of this in it."""
    return next(block for block in SETTINGS_BLOCKS if all(part in block.text for part in parts))


def table(mark: str) -> list[list[str]]:
    """The cells of each row of the table below that mark, without the header."""
    (page,) = (page for page in PAGES.values() if f"<!-- {mark} -->\n|" in page)
    lines = page.partition(f"<!-- {mark} -->\n")[2].partition("\n\n")[0].splitlines()
    assert len(lines) > 2, mark
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def names(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


# The pages as such.


def test_every_block_is_of_a_kind_that_a_test_runs() -> None:
    kinds = {(block.language, block.mark) for block in BLOCKS}
    assert kinds == {
        ("python", ""),  # a script; the next block is what it prints
        ("python", "settings"),  # a crawl with them; the next block may be its log
        ("sh", "command"),  # `scrapy robots`; the next block is what it prints
        ("sh", "install"),
        ("sh", "example-command"),
        ("sh", "test-command"),
        ("sh", "storage-commands"),
        ("python", "fleet-settings"),  # tests/ecosystem
        ("sh", "fleet-command"),  # the same
        ("text", "fleet-output"),  # the same
        ("python", "ban-policy"),  # the same
        ("sh", "evidence-commands"),  # tests/test_example_project.py
        ("sh", "refusals-command"),  # the same
        ("sh", "archive-commands"),  # the same
        ("text", ""),
        ("text", "robots.txt"),
        ("text", "urls.txt"),
        ("text", "new.txt"),
        ("text", "log"),
        ("text", "example-output"),  # tests/test_example_project.py
        ("text", "builtin-output"),  # the same
        ("text", "usage-output"),  # the same
        ("text", "evidence-item"),  # the same
        ("text", "refusals-output"),  # the same
        ("text", "modules"),
        ("text", "layers"),
        ("{eval-rst}", ""),  # sphinx-build, in .ci/run
        ("{toctree}", ""),  # the same
    }
    assert sum(page.count("```") for page in PAGES.values()) == 2 * len(BLOCKS)
    outputs = [block.following for block in BLOCKS if block in SCRIPTS or block in COMMANDS]
    assert outputs == blocks("text"), "each has its output, and each output has what prints it"


def test_every_table_is_held_against_the_code() -> None:
    marks = [
        mark
        for page, text in PAGES.items()
        if page not in TESTED_ELSEWHERE
        for mark in re.findall(r"(?:<!-- (\S+) -->\n)?\|.*\n\|(?:-+\|)+\n", text)
    ]
    tests = Path(__file__).read_text("utf-8")
    assert [mark for mark in marks if f'table("{mark}")' not in tests] == []


def anchors(page: str) -> set[str]:
    """The headings, as repository viewers and Sphinx spell them in links."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)]+)\)", prose):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / page).parent.joinpath(file).resolve() if file else ROOT / page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target.read_text("utf-8")), link


def test_the_index_leads_to_every_page() -> None:
    stubs = {f"docs/{name}.md" for name in ("index", "start", "changelog", "contributing")}
    for page in PAGES:
        if page.startswith("docs/") and page not in stubs:
            assert f"]({Path(page).name})" in PAGES["docs/index.md"], page


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= 250
    assert (ROOT / "docs" / "report.png").stat().st_size < 200_000


def test_the_map_agrees_with_that_of_the_package() -> None:
    modules = re.findall(r"`([a-z_.]+)`", scrapy_rep.__doc__ or "")
    files = [
        module for module in modules if (ROOT / "scrapy_rep" / module.replace(".", "/")).with_suffix(".py").is_file()
    ]
    assert len(files) > 10
    for module in files:
        assert f"{module.rpartition('.')[2]}.py" in marked("modules")


# Scripts.


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
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
    done = run_python(str(file))
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.replace(site.origin, EXAMPLE).splitlines()
    expected = script.following.text.splitlines()
    # Two crawls at once end in any order.
    assert (sorted(printed), sorted(expected)) == (sorted(expected),) * 2


# Settings.


async def crawl_with(block: Block, site: Site, *urls: str, **settings: Any) -> Crawl:
    """A crawl with the block's settings; the add-on is on unless they say how robots.txt is obeyed."""
    variables: dict[str, Any] = {}
    exec(block.text.replace(EXAMPLE, site.origin), variables)
    ours = {name: value for name, value in variables.items() if name.isupper()}
    return await crawl(*urls, robots={**({} if "ROBOTSTXT_OBEY" in ours else ADDON), **ours, **settings})


def log_below(block: Block) -> list[str]:
    page = [other for other in BLOCKS if other.page == block.page]
    rest = page[page.index(block) + 1 :]
    logs = [other for other in rest if other.mark == "log"]
    settings = [other for other in rest if other.mark == "settings"]
    own = logs and (not settings or rest.index(logs[0]) < rest.index(settings[0]))
    return logs[0].text.splitlines() if own else []


@pytest.mark.parametrize("block", SETTINGS_BLOCKS, ids=str)
@ensureDeferred
async def test_settings_do_what_is_said_and_log_what_is_shown(
    block: Block, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a crawl outside of a project keeps its files
    site, down = web.robots(marked("robots.txt")), web.robots(answer(status=503))
    log = log_below(block)
    urls = [site.url("/"), site.url("/private/diary")] + [down.url("/")] * any(DOWN in line for line in log)
    # By a clock that waits for no outage, and with the default settings where the log shows one.
    clocked = {**with_clock(Time()), "REP_UNREACHABLE_WAIT": 30, "REP_FETCH_RETRIES": 1} if len(urls) > 2 else {}
    result = await crawl_with(block, site, *urls, **clocked)
    refuses_nothing = "REP_SHADOW" in block.text or "REP_EXEMPT" in block.text or "NewsBot" in block.text
    assert sorted(result.pages) == (urls[:2] if refuses_nothing else urls[:1])
    assert sorted({**result.refused, **result.failed}) == sorted(set(urls) - set(result.pages))
    lines = [
        f"[{record.name}] {record.levelname}: {record.getMessage()}".replace(site.origin, EXAMPLE).replace(
            down.origin, DOWN
        )
        for record in result.log
    ]
    assert [line for line in log if line not in lines] == []
    warnings = [line for line in lines if re.match(r"\[\S+\] (WARNING|ERROR|CRITICAL)", line)]
    assert [line for line in warnings if line not in log] == []


@pytest.mark.parametrize("block", [SETTINGS_BLOCKS[0], settings_block("DOWNLOADER_MIDDLEWARES")], ids=str)
@ensureDeferred
async def test_by_hand_is_the_same_as_the_add_on(block: Block, web: Web) -> None:
    site = web.robots("")
    crawler = (await crawl_with(block, site, site.url("/"))).crawler
    there = (crawler.get_downloader_middleware(m) for m in (RepMiddleware, RepDecodingMiddleware, RobotsTxtMiddleware))
    assert [middleware is not None for middleware in there] == [True, True, False]
    assert crawler.settings["DOWNLOAD_HANDLERS"] == {"ftp": "scrapy_rep.fetching.ftp.RepFTPDownloadHandler"}


@pytest.mark.parametrize(
    ("status", "access"),
    [(403, "restricted"), (401, "unavailable"), (521, "unavailable"), (530, "unreachable"), (445, "unreachable")],
)
@ensureDeferred
async def test_a_policy_of_ones_own(web: Web, status: int, access: str) -> None:
    site = web.robots(answer(status=status))
    result = await crawl_with(settings_block("REP_STATUS_POLICY", "range"), site, site.url("/"))
    assert result.stats[f"rep/access/{access}"] == 1


@ensureDeferred
async def test_what_is_known_outlives_the_crawl(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    site = web.robots("")
    for _ in range(2):
        await crawl_with(settings_block("REP_STORAGE"), site, site.url("/"))
    assert len(site.robots_requests) == 1
    assert (tmp_path / "robots.db").exists()


@ensureDeferred
async def test_the_matching_alone_still_fails_open(web: Web) -> None:
    site = web.robots(answer(status=503))
    result = await crawl_with(settings_block("ROBOTSTXT_PARSER"), site, site.url("/"))
    assert list(result.pages) == [site.url("/")]


@pytest.mark.parametrize(("delay", "kind"), [(0.1, "obeyed"), (11, "capped")])
@ensureDeferred
async def test_crawl_delay(web: Web, delay: float, kind: str) -> None:
    site = web.robots(f"user-agent: *\ncrawl-delay: {delay}\ndisallow: /\n")  # so that no page waits its 10 seconds
    result = await crawl_with(settings_block("REP_CRAWL_DELAY_MAX"), site, site.url("/"))
    assert result.stats[f"rep/crawl_delay/{kind}"] == 1


# Tables.


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


def test_the_cautious_policy() -> None:
    said = [(statuses(cells[0]), cells[1], cells[2]) for cells in table("cautious")]
    own = CAUTIOUS[: len(CAUTIOUS) - len(RFC9309)]
    assert said == [(set(codes), access.value, source) for codes, access, source in own]


def test_the_reasons_and_their_words() -> None:
    said = [(names(cells[0])[0], *cells[1:]) for cells in table("reasons")]
    assert said == [(reason.name, *words) for reason, words in REASON_WORDS.items()]


def test_the_categories_of_use() -> None:
    said = [([*names(cells[0]), *names(cells[1]), *names(cells[2])], cells[3]) for cells in table("categories")]
    by_directive = [[one.spellings.get(key) for key in (CONTENT_USAGE, CONTENT_SIGNAL)] for one in VOCABULARY]
    ours = [[one.name, *filter(None, spellings)] for one, spellings in zip(VOCABULARY, by_directive, strict=True)]
    assert said == list(zip(ours, [one.source for one in VOCABULARY], strict=True))
    assert f"At most {MAX_READ:,} bytes of such lines" in PAGES["docs/usage.md"]


def test_every_setting_has_a_heading_and_its_default() -> None:
    said = re.findall(r"^## ((?:REP|ROBOTSTXT)_\w+)\n\nDefault: `(.*)`$", PAGES["docs/settings.md"], re.MULTILINE)
    theirs = {"ROBOTSTXT_OBEY": True, "ROBOTSTXT_USER_AGENT": None}
    ours = {name: setting.default for name, setting in SETTINGS.items()}
    assert {name: ast.literal_eval(default) for name, default in said} == {**ours, **theirs}


def test_the_plugins() -> None:
    (extra,) = re.findall(
        r"^ecosystem = \[(.*?)\n\]$", (ROOT / "pyproject.toml").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert sorted(names(cells[0])[0] for cells in table("plugins")) == sorted(re.findall(r'"([\w-]+)', extra))


def test_the_storage_addresses() -> None:
    said = {address.partition(":")[0] for cells in table("storages") for address in names(cells[0])}
    assert said == set(STORAGES)


def test_the_limits() -> None:
    defaults = {name: setting.default for name, setting in SETTINGS.items()}
    for what, limit in table("limits"):
        (number,) = re.findall(r"(?:\), |^)([\d,]+)", limit)
        value = defaults[names(limit)[0]] if names(limit) else head_limit.MAX_OCTETS
        unit = 1024 if "KiB" in limit else 2**20 if "MiB" in limit else 1
        assert int(number.replace(",", "")) * unit == value, what
    text = "".join(PAGES["docs/limits.md"].split("<!-- limits -->")[1:])
    assert f"the first one of each of {door.MAX_ORIGINS:,} origins" in text
    assert f"{turns.MAX_SLOW:,} slow ones" in text


def test_the_request_meta() -> None:
    assert [names(cells[0]) for cells in table("request-meta")] == [["dont_obey_robotstxt"], [META_KEY]]


def stats_in_the_code() -> set[str]:
    """Every string that is a stat's name; what is filled in is `{}`."""
    files = [file for file in ROOT.glob("scrapy_rep/**/*.py") if file.name != "stats.py"]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = {
        ast.unparse(node) for node in nodes if isinstance(node, (ast.JoinedStr, ast.Constant)) and node not in parts
    }
    return {
        re.sub(r"\{.*\}", "{}", match[1])
        for text in texts
        if (match := re.fullmatch(r"f?['\"]((?:rep|robotstxt)/.*)['\"]", text))
    }


REFUSALS = [reason.name.lower() for reason, words in REASON_WORDS.items() if words.refused]
# A name that the code fills in -> what it may come to.
FILLED_IN = {
    "rep/access/{}": [f"rep/access/{access.value}" for access in AccessResult if access is not AccessResult.REDIRECT],
    "rep/shadow/{}": [f"rep/shadow/{reason}" for reason in REFUSALS],
    "rep/crawl_delay/{}": ["rep/crawl_delay/obeyed", "rep/crawl_delay/capped", "rep/crawl_delay/ignored"],
    "rep/usage/{}": [f"rep/usage/PURPOSE/{words}" for words in PREFERENCE_WORDS.values()],
    "rep/dropped/{}": [f"rep/dropped/{reason}" for reason in REFUSALS],
    "robotstxt/response_status_count/{}": ["robotstxt/response_status_count/N"],
    "robotstxt/exception_count/{}": ["robotstxt/exception_count/TYPE"],
}


def test_every_stat_is_listed() -> None:
    counted = {stat for name in stats_in_the_code() for stat in FILLED_IN.get(name, [name])}
    assert counted == set(STATS)


def test_what_is_used_of_scrapys_internals() -> None:
    rows = table("internals")
    folder = Path(compat.__file__).parent
    ours = {path.name for path in folder.glob("*.py")} - {"__init__.py", "compat.py", "fallbacks.py"}
    assert {name for cells in rows for name in names(cells[0])} == ours
    code = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    parts = {name.rpartition(".")[2] for cells in rows for name in names(cells[1])}
    assert [part for part in parts if part not in code] == []


def test_what_a_crawl_loses_without_a_part_of_scrapy() -> None:
    assert {names(cells[0])[0]: cells[1] for cells in table("fallbacks")} == dict(COSTS)


def test_what_older_releases_of_scrapy_do_not_have() -> None:
    body = ast.parse(Path(compat.__file__).read_text("utf-8")).body
    ours = [ast.unparse(node.target) for node in body if isinstance(node, ast.AnnAssign)]
    ours += [node.name for node in body if isinstance(node, ast.FunctionDef)]
    assert [names(cells[0])[0] for cells in table("compat")] == ours


def test_the_stats() -> None:
    assert {names(cells[0])[0]: cells[1] for cells in table("stats-table")} == dict(STATS)


@ensureDeferred
async def test_the_signals_and_their_arguments(web: Web) -> None:
    sent: dict[str, set[str]] = {}

    def listen(name: str, signal: object) -> Any:
        def receiver(**arguments: Any) -> None:
            sent[name] = set(arguments) - {"signal", "sender"}

        return receiver, signal

    ours = {
        name: signal for name, signal in vars(signals).items() if name != "robots_parsed" and type(signal) is object
    }
    receivers = [listen(name, signal) for name, signal in ours.items()]

    def prepare(crawler: Crawler) -> None:
        for receiver, signal in receivers:
            crawler.signals.connect(receiver, signal=signal)

    await crawl(web.robots(marked("robots.txt")).url("/private/diary"), prepare=prepare)
    said = {
        names(cells[0])[0]: {name for name in names(cells[2]) if name.islower()} for cells in table("signals-table")
    }
    assert said == sent
    assert set(sent) == set(ours)


@ensureDeferred
async def test_scrapys_signal_and_its_arguments(web: Web) -> None:
    ((name, said),) = ((names(cells[0])[0], names(cells[1])) for cells in table("scrapys-signal"))
    assert name == "robots_parsed"
    handed_out: list[dict[str, Any]] = []

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(receiver, signal=getattr(signals, name))

    def receiver(**arguments: Any) -> None:
        handed_out.append(arguments)

    await crawl(web.robots(marked("robots.txt")).url("/"), prepare=prepare)
    (arguments,) = handed_out
    assert {argument for argument in said if argument in arguments} == set(arguments) - {"signal", "sender"}
    attributes = [text.partition("(")[0] for text in said if text not in arguments and text != "RobotsTxt"]
    assert all(hasattr(arguments["robotparser"], attribute) for attribute in attributes)


def test_the_keys_of_evidence() -> None:
    evidence = evidence_of("https://example.com/", Verdict(True, VerdictReason.NO_RULE), (), 0.0)
    assert [name for cells in table("evidence-keys") for name in names(cells[0])] == [*evidence, "referrer", "dry_run"]


def test_public_names() -> None:
    assert sorted(name for cells in table("public-names") for name in names(cells[0])) == sorted(scrapy_rep.__all__)


def test_every_module_is_in_the_map() -> None:
    said: list[str] = []
    folders: list[str] = []
    for line in marked("modules").splitlines():
        name = line.split()[0]
        folders = [*folders[: (len(line) - len(line.lstrip())) // 2], name]
        said += [] if name.endswith("/") else ["".join(folders)]
    package = ROOT / "scrapy_rep"
    modules = [path for path in package.rglob("*.py") if path.name != "__init__.py" or path.parent == package]
    assert sorted(said) == sorted(path.relative_to(ROOT).as_posix() for path in modules)


def test_the_layers() -> None:
    assert [tuple(line.split(", ")) for line in marked("layers").splitlines()] == list(LAYERS)


def test_numbers_in_words() -> None:
    assert (LEASE_SECONDS, DEADLINE, RETRY_DELAY, WARNED_ORIGINS, LAST_TENTH) == (10, 5, 1, 10, 0.1)
    assert (CLOSING, MAX_QUEUED) == (30, 64 * 2**20)
    for page, words in {
        "docs/evidence.md": ("up to 30 seconds", "At most 64 MiB", REASON),
        "docs/storage.md": ("over after ten seconds", "within five seconds"),
        "docs/settings.md": (
            "follows after one second",
            "at the latest after two seconds",
            "four times as\nlong as usual",
        ),
        "docs/spiders.md": ("for the first ten outages",),
        "docs/answers.md": ("In the last tenth",),
    }.items():
        assert all(word in PAGES[page] for word in words), page
    assert (turns.SLOW_AFTER_MAX, turns.SLOW_FACTOR) == (2, 4)


def test_the_benchmarks_are_there() -> None:
    for command, *_ in table("benchmarks"):
        assert (ROOT / shlex.split(names(command)[0])[1]).is_file(), command


def test_the_readmes_figures_are_those_of_the_benchmarks() -> None:
    figures = table("figures")
    assert [row for row in table("speed") if row not in figures] == []


@pytest.mark.parametrize("row", table("comparison"), ids=lambda row: row[0])
def test_each_row_of_the_comparison_has_a_test(row: list[str]) -> None:
    tests = Path(__file__).with_name("test_comparison.py").read_text("utf-8")
    assert f'"""{row[0][0].upper()}{row[0][1:]}."""' in tests


# Commands.


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_the_command_prints_what_stands_below_it(block: Block, web: Web, tmp_path: Path) -> None:
    site = web.robots(marked("robots.txt"))
    for name in ("robots.txt", "urls.txt", "new.txt"):
        (tmp_path / name).write_text(marked(name), "utf-8")
    done = run_scrapy(shlex.split(block.text.replace(EXAMPLE, site.origin)), tmp_path)
    assert done.stderr == "" or "--input" in block.text, "else it is a summary, with the time that it took"
    assert done.stdout.replace(site.origin, EXAMPLE) == block.following.text
    refused_or_changed = re.search(r"^(?: *|now )refused\b", done.stdout, re.MULTILINE)
    assert done.returncode == (1 if refused_or_changed else 0)


def run_scrapy(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return run_python("-m", *arguments, cwd=folder)


def test_the_storage_is_listed_and_forgotten(web: Web, tmp_path: Path) -> None:
    site = web.robots(marked("robots.txt"))
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
    (tmp_path / "settings.py").write_text(f"{SETTINGS_BLOCKS[0].text}\n{settings_block('REP_STORAGE').text}")
    cached, forget = (
        shlex.split(line.replace(EXAMPLE, site.origin)) for line in marked("storage-commands").splitlines()
    )
    run_scrapy(["scrapy", "robots", site.url("/")], tmp_path)
    assert (tmp_path / ".scrapy" / "robots.db").exists()
    assert site.origin in run_scrapy(cached, tmp_path).stdout
    assert "forgotten" in run_scrapy(forget, tmp_path).stdout
    assert site.origin not in run_scrapy(cached, tmp_path).stdout


def test_every_key_of_the_json_is_in_its_table() -> None:
    (printed,) = (json.loads(block.following.text) for block in COMMANDS if "--json" in block.text)
    said = [name for cells in table("json-table") for name in names(cells[0])]
    assert said == [*printed, "scrapy", "forgotten", "when", "robots_txt"]


@cache
def options_of_the_command() -> set[str]:
    tree = ast.parse((ROOT / "scrapy_rep" / "commands" / "robots.py").read_text("utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"--[a-z]+", text)}


def test_every_option_of_the_command_is_in_its_table() -> None:
    assert {names(cells[0])[0].split()[0] for cells in table("options-table")} == options_of_the_command()


def test_the_exit_statuses() -> None:
    of_output = {output.ALL_ALLOWED, output.SOME_REFUSED, output.COULD_NOT_TELL}
    assert {int(cells[0]) for cells in table("exit-status")} == {*of_output, 2}


@pytest.mark.parametrize("mark", ["example-command", "test-command"])
def test_a_command_is_one_line_that_makes_its_own_environment(mark: str) -> None:
    (line,) = marked(mark).splitlines()
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_the_example_command_installs_as_the_readme_says() -> None:
    assert marked("install").strip().replace("pip install", "pip install -q") in marked("example-command")


def test_ci_runs_the_test_command_and_builds_the_docs() -> None:
    run = ROOT / ".ci" / "run"
    if not run.exists():
        pytest.skip("not in a source distribution")
    assert "test-command" in run.read_text("utf-8")
    assert "sphinx-build -W" in run.read_text("utf-8")
