"""Each row of each table in README and docs agrees with a crawl, the command or the code."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from logging import INFO
from pathlib import Path
from typing import Any

import pytest
from crawling import Time, crawl, with_clock
from doc_pages import EXAMPLE, PAGES, ROOT, blocks, first_names, marked, names, table
from processes import run_python
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse
from scrapy.utils.httpobj import urlparse_cached
from web import RULES, Web, answer

import scrapy_rep
from scrapy_rep import RobotsTxt, Verdict, meta, signals, stats
from scrapy_rep.fetching.headers import url_of
from scrapy_rep.protocol.outage import BACKOFFS
from scrapy_rep.settings import SETTINGS
from scrapy_rep.storage import STORAGES
from scrapy_rep.usage import VOCABULARY
from scrapy_rep.usage.preferences import Usage

CODE = "".join(path.read_text("utf-8") for path in ROOT.glob("scrapy_rep/**/*.py"))
DEFAULTS = {
    **{name: setting.default for name, setting in SETTINGS.items()},
    "ROBOTSTXT_OBEY": True,
    "ROBOTSTXT_USER_AGENT": None,
}

# docs/answers.md, docs/difficult-sites.md


class StatusByHost:
    """A download handler: the robots.txt of `http://404.example` answers 404."""

    lazy = False

    async def download_request(self, request: Request) -> Response:
        status = int((urlparse_cached(request).hostname or "").partition(".")[0])
        return TextResponse(request.url, status=status, body=b"User-agent: *\nDisallow:\n", request=request)

    async def close(self) -> None:
        pass


async def answered(statuses: Iterable[int], **settings: Any) -> dict[int, tuple[str, str]]:
    """Return for each status the access result, and when robots.txt is fetched again."""
    found: dict[int, tuple[str, str]] = {}
    time = Time()
    words = {BACKOFFS[0]: f"{BACKOFFS[0]:.0f} s, [then longer](#outages)", 24 * 3600: "24 hours"}

    def fetched(origin: Any, info: Any) -> None:
        seconds = info.fetch_again_at - time.now
        found[int(origin.host.partition(".")[0])] = info.last.access.value, words.get(seconds, str(seconds))

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(fetched, signal=signals.robots_known, weak=False)

    urls = [f"http://{status}.example/" for status in statuses]
    settings = {**with_clock(time), "DOWNLOAD_HANDLERS": {"http": StatusByHost}, "LOG_LEVEL": "ERROR", **settings}
    await crawl(*urls, prepare=prepare, settings=settings)
    return found


def statuses_in(text: str) -> set[int]:
    ranges = re.findall(r"\b(\d{3})(?:-(\d{3}))?\b", text)
    return {status for first, last in ranges for status in range(int(first), int(last or first) + 1)}


def statuses_of(cell: str) -> set[int]:
    """Return the statuses of a cell such as `400-499 but not 407, 429`."""
    held, _, excepted = cell.partition(" but not ")
    return statuses_in(held) - statuses_in(excepted)


OTHER_ANSWERS = {
    "a challenge": answer(RULES, status=403, headers={"cf-mitigated": "challenge"}),
    "a page of HTML": answer("<!doctype html><p>Welcome</p>"),
    "an empty file": answer(""),
    "none: it hangs": answer(kind="hang"),
}


async def difficult(web: Web, cell: str, policy: str) -> tuple[bool, str, bool]:
    """Return whether a crawl of such a site fetches its page, its summary in the log, and whether the policy does the
    opposite."""
    (name,) = re.findall(r"\[(.*?)\]", cell)
    site = web.robots(OTHER_ANSWERS[name] if name in OTHER_ANSWERS else answer(RULES, status=int(name)))
    settings = {"REP_FETCH_TIMEOUT": 0.3} if "hangs" in cell else {}
    result = await crawl(site.url("/"), settings=settings)
    (summary,) = (line for line in result.messages(INFO, "scrapy_rep") if line.startswith("robots.txt of 1 origin: "))
    opposite = {**settings, "REP_STATUS_POLICY": ast.literal_eval(names(policy)[0])} if policy else {}
    other = await crawl(site.url("/"), settings=opposite) if policy else result
    return len(result.pages) == 1, summary.partition(": ")[2], len(other.pages) != len(result.pages)


@ensureDeferred
async def test_each_status_does_what_its_rows_say(web: Web) -> None:
    told = {
        (cell, policy): (does == "fetches everything", names(shown)[0], bool(policy))
        for cell, does, shown, policy in table("difficult")
    }
    assert {row: await difficult(web, *row) for row in told} == told
    rows = [(statuses_of(cells[0]), cells[1], cells[3]) for cells in table("answers")]
    (other,) = ((cells[1], cells[3]) for cells in table("answers") if cells[0].endswith("any other status"))
    said = {status: (access, again) for held, access, again in rows for status in held if access != "redirect"}
    asked = {*said, 300, 304, 305, 600, 700, 999}
    assert sum(len(held) for held, access, _ in rows if access != "redirect") == len(said), "one row for each"
    assert await answered(asked) == {status: said.get(status, other) for status in asked}


@ensureDeferred
async def test_the_cautious_policy() -> None:
    said = {status: cells[1] for cells in table("cautious") for status in statuses_of(cells[0])}
    found = await answered(said, REP_STATUS_POLICY="cautious")
    assert {status: access for status, (access, _) in found.items()} == said
    assert [cells[2] for cells in table("cautious") if cells[2] not in CODE] == []


@ensureDeferred
async def test_each_sign_of_a_challenge_is_one(web: Web) -> None:
    for vendor, sign in table("challenges"):
        first, *others = names(sign)
        field, is_header, value = first.partition(": ")
        answers = (
            [answer(status=403, headers={field: each}) for each in (value, *others)]
            if is_header
            else [answer(f"<html><script {first}>{{}}</script></html>", status=403)]
        )
        for each in answers:
            result = await crawl(web.robots(each).url("/"))
            assert [error.cause for error in result.refused.values()] == [f"HTTP 403, a challenge by {vendor}"]


def test_the_reasons_and_their_words() -> None:
    reasons = type(RobotsTxt.parse(b"").verdict(EXAMPLE, "ExampleBot").reason)
    verdicts = [(reason.name, Verdict(True, reason), Verdict(False, reason)) for reason in reasons]
    words = [[name, allowed.words, refused.words, allowed.source] for name, allowed, refused in verdicts]
    assert [[*names(cells[0]), *cells[1:]] for cells in table("reasons")] == words


@pytest.mark.parametrize(("rule", "matches", "does_not_match"), table("wildcards"))
def test_the_wildcards(rule: str, matches: str, does_not_match: str) -> None:
    robots = RobotsTxt.parse(f"User-agent: *\nDisallow: {names(rule)[0]}\n".encode())
    assert [path for path in names(matches) if robots.allows(EXAMPLE + path, "*")] == []
    assert [path for path in names(does_not_match) if not robots.allows(EXAMPLE + path, "*")] == []


def test_where_each_location_leads() -> None:
    for cells in table("locations"):
        (leads_to, *_) = names(cells[1])
        for location in names(cells[0]):
            assert url_of("http://a.example/robots.txt", location) == leads_to, location


# docs/settings.md, docs/limits.md, docs/stats.md


SETTINGS_TABLES = ("settings-table", "settings-advanced")


def test_every_setting_has_a_row_a_heading_and_its_default() -> None:
    rows = {
        names(cells[0])[0]: ast.literal_eval(names(cells[1])[0]) for mark in SETTINGS_TABLES for cells in table(mark)
    }
    sections = re.findall(r"^## ((?:REP|ROBOTSTXT)_\w+)\n\nDefault: `(.*?)`\.", PAGES["docs/settings.md"], re.MULTILINE)
    assert rows == DEFAULTS
    assert {name: ast.literal_eval(default) for name, default in sections} == DEFAULTS


def test_each_storage_address_has_a_row() -> None:
    assert {address.partition(":")[0] for address in first_names("storages")} == {"memory", *STORAGES}


def test_the_limits_are_the_defaults() -> None:
    for what, limit in table("limits"):
        (number,) = re.findall(r"\), ([\d,]+)", limit) if "](" in limit else [""]
        unit = 1024 if "KiB" in limit else 2**20 if "MiB" in limit else 1
        assert not number or int(number.replace(",", "")) * unit == DEFAULTS[names(limit)[0]], what


@pytest.mark.parametrize(
    ("page", "words", "code"),
    [
        ("answers", "In the last tenth", "LAST_TENTH = 0.1"),
        ("answers", "fetched again after 5, 10, 15 and 30 seconds", "BACKOFFS = (5.0, 10.0, 15.0, 30.0, 60.0"),
        ("limits", "1,000 slow ones", "MAX_SLOW = 1_000"),
        ("log", "ten rules at most", "MAX_FIRST_REFUSALS = 10"),
        ("log", "the three rules or answers", "MAX_RULES_NAMED = 3"),
        ("log", "The first ten outages of a crawl", "WARNED_OUTAGES = 10"),
        ("settings", "38,612 origins: one for each 1,738 bytes", "OCTETS_OF_ORIGIN = 1_738"),
        ("settings", "for 60 seconds in\nany case", "LEAST_LIFETIME = 60"),
        ("settings", "At least 512,000 (500 KiB)", "PARSING_LIMIT = 512_000"),
        ("settings", "At least 5 (RFC 9309 2.3.1.2)", "LEAST_REDIRECTS = 5"),
        ("settings", "takes longer than half a\nsecond", "SLOW_AFTER = 0.5"),
        ("settings", "follows after one\nsecond", "RETRY_DELAY = 1"),
        ("storage", "over after ten seconds", "LEASE_SECONDS = 10"),
        ("storage", "within five seconds", "DEADLINE = 5"),
        ("storage", "failed after two seconds", "TIMEOUT = 2"),
        ("troubleshooting", "Every 15 seconds", "EVERY = 15"),
        ("troubleshooting", "The first 500 KiB", "PARSING_LIMIT = 512_000"),
        ("usage", "At most 16,384 bytes of such lines", "MAX_READ = 16_384"),
    ],
)
def test_numbers_in_words(page: str, words: str, code: str) -> None:
    """Each of these numbers is on its page, and is a constant of the package."""
    assert " ".join(words.split()) in " ".join(PAGES[f"docs/{page}.md"].split())
    assert re.search(rf"^{re.escape(code)}(\.0)?(?!\w)", CODE, re.MULTILINE)


def test_every_stat_has_a_row_and_its_name_stands_in_one_module() -> None:
    """`crawling.py` says of each crawl that it counts no other stat."""
    ours = [value for name, value in vars(stats).items() if name.isupper()]
    listed = [stat for cells in table("stats-table") for stat in names(cells[0])]
    rows = {stat: [row for row in listed if re.fullmatch(stat.replace("{}", "[^/]+"), row)] for stat in ours}
    assert [stat for stat, found in rows.items() if not found] == []
    assert sorted(row for found in rows.values() for row in found) == sorted(listed)
    assert re.findall(r"[\"'](?:rep|robotstxt)/.*", CODE) == [
        line.partition(" = ")[2] for line in Path(stats.__file__).read_text("utf-8").splitlines() if " = " in line
    ]


# docs/command.md


def test_the_options_of_the_command() -> None:
    printed = run_python("-m", "scrapy", "robots", "--help").stdout
    own = printed.partition("\nJudge\n")[2]
    options = set(re.findall(r"^ +(?:-\w(?: \w+)?, )?(--[a-z]+)", own, re.MULTILINE)) - {"--help"}
    assert {option.split()[0] for option in first_names("options-table") if option.startswith("--")} == options


def test_the_exit_statuses(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(marked("robots.txt"), "utf-8")
    statuses = {
        run_python("-m", "scrapy", "robots", *arguments, cwd=tmp_path).returncode
        for arguments in (["--file", "robots.txt", path] for path in ("/", "/private/", "no URL", "--nonsense"))
    }
    assert {int(cells[0]) for cells in table("exit-status")} == statuses


def test_every_key_of_the_json_is_in_its_table() -> None:
    (printed,) = (json.loads(block.following.text) for block in blocks("sh", "command") if "--json" in block.text)
    assert first_names("json-table") == [*printed, "scrapy", "robots_txt"]


# docs/signals.md, docs/spiders.md, docs/evidence.md, docs/usage.md, docs/api.md


@ensureDeferred
async def test_the_signals_and_their_arguments(web: Web) -> None:
    ours = {name: signal for name, signal in vars(signals).items() if type(signal) is object}
    ours["robots_parsed"] = signals.robots_parsed
    sent: dict[str, dict[str, Any]] = {}

    def prepare(crawler: Crawler) -> None:
        for name, signal in ours.items():

            def receiver(name: str = name, **arguments: Any) -> None:
                sent[name] = {key: value for key, value in arguments.items() if key not in {"signal", "sender"}}

            crawler.signals.connect(receiver, signal=signal, weak=False)

    await crawl(web.robots(marked("robots.txt")).url("/private/diary"), prepare=prepare)
    said = {
        names(cells[0])[0]: {name for name in names(cells[2]) if name.islower()} for cells in table("signals-table")
    }
    ((parsed, arguments),) = ((names(cells[0])[0], names(cells[1])) for cells in table("scrapys-signal"))
    has = [text.partition("(")[0] for text in arguments if text not in {*sent[parsed], "RobotsTxt"}]
    said[parsed] = {text for text in arguments if text in sent[parsed]}
    assert said == {name: set(values) for name, values in sent.items()}
    assert set(sent) == set(ours)
    assert [name for name in has if not hasattr(sent[parsed]["robotparser"], name)] == []


def test_every_key_of_meta_is_on_a_page_and_stands_in_one_module() -> None:
    ours = {value for name, value in vars(meta).items() if name.isupper()}
    marks = {key for key in ours if key.startswith("rep_")}
    assert {*first_names("request-meta"), *first_names("response-meta")} == ours - marks
    assert [key for key in marks if not any(f"`{key}`" in page for page in PAGES.values())] == []
    # "robots" is also a name for other things. A docstring may have `meta["robots_usage"]`.
    elsewhere = {key: len(re.findall(rf'(?<!\[)"{key}"', CODE)) - 1 for key in ours - {meta.EVIDENCE_KEY}}
    assert [key for key, number in elsewhere.items() if number] == []


@ensureDeferred
async def test_the_keys_of_evidence(web: Web) -> None:
    url = web.robots(marked("robots.txt")).url("/")
    (response,) = (await crawl(url, settings={"REP_EVIDENCE": True})).pages.values()
    assert first_names("evidence-keys") == [*response.meta["robots"], "referrer", "dry_run"]


def test_the_categories_of_use() -> None:
    for cells in table("categories"):
        (category,) = names(cells[0])
        for directive, no, spelling in [
            *(("Content-Usage", "n", name) for name in names(cells[1])),
            *(("Content-Signal", "no", name) for name in names(cells[2])),
        ]:
            # What allows less than it says no to it.
            statement = "use=immediate" if "=" in spelling else f"{spelling}={no}"
            robots = RobotsTxt.parse(f"User-agent: *\n{directive}: {statement}\n".encode())
            assert Usage.of(robots, f"{EXAMPLE}/", "ExampleBot")[category] is False
        described = next(one for one in VOCABULARY if one.name == category)
        assert (names(cells[3]), cells[4]) == (
            [described.policy_token] * bool(described.policy_token),
            described.source,
        )
    (listed,) = re.findall(r"a list of some of (.*)", SETTINGS["REP_PURPOSES"].cure)
    assert first_names("categories") == re.findall(r"'([^']+)'", listed)


def test_the_words_of_robots_tags() -> None:
    (rules,) = (one.robots_rules for one in VOCABULARY if one.robots_rules)
    assert sorted(first_names("robots-tags")) == sorted(rules)
    for word, header, element in table("robots-tags"):
        (rule,) = names(word)
        assert names(header) == [f"X-Robots-Tag: {rule}"]
        assert names(element) == [f'<meta name="robots" content="{rule}">']


def test_where_the_time_goes_adds_up() -> None:
    for _who, _sites, in_all, *parts in table("where"):
        assert sum(float(part) for part in parts if part) == pytest.approx(float(in_all), abs=0.21)


def test_each_public_name_has_a_row() -> None:
    assert sorted(first_names("public-names")) == sorted(scrapy_rep.__all__)


# docs/other-plugins.md, docs/benchmarks.md, README.md


def test_the_plugins_are_those_of_the_extra() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    (extra,) = re.findall(r"^ecosystem = \[(.*?)\n\]$", text, re.DOTALL | re.MULTILINE)
    assert sorted(names(cells[0])[0] for cells in table("plugins")) == sorted(re.findall(r'"([\w-]+)', extra))


def test_the_benchmarks_are_there() -> None:
    for command in first_names("benchmarks"):
        assert (ROOT / command.split()[1]).is_file(), command


def test_the_readmes_figures_are_those_of_the_benchmarks() -> None:
    assert [row for row in table("speed") if row not in table("figures")] == []


@pytest.mark.parametrize("row", table("comparison") + table("more-comparison"), ids=lambda row: row[0])
def test_each_row_of_the_comparison_has_a_test(row: list[str]) -> None:
    tests = (ROOT / "tests" / "test_comparison.py").read_text("utf-8")
    assert f'"""{row[0][0].upper()}{row[0][1:]}."""' in tests
