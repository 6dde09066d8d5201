"""`scrapy robots --diff A B`: what changes for the crawler from one robots.txt to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import Ended, assert_wrong_usage
from web import Web, answer

EVERYONE = "User-agent: *\nDisallow: /private/\n\n"
BEFORE = f"{EVERYONE}User-agent: NewsBot\nDisallow: /drafts/\nCrawl-delay: 1\nDisallow: /old/\n"
AFTER = "User-agent: *\nDisallow: /\n\nUser-agent: NewsBot\nCrawl-delay: 2\nDisallow: /old/\nDisallow: /draft\n"
FILES = ["--diff", "before.txt", "after.txt"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "before.txt").write_text(BEFORE)
    (tmp_path / "after.txt").write_text(AFTER)
    return tmp_path


def test_rules_that_came_and_went_for_the_crawler(files: Path) -> None:
    done = Ended(*FILES, "--agent", "NewsBot", cwd=files)
    assert (done.status, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "- line 5, Disallow: /drafts/ (group of 'NewsBot')",
        "+ line 7, Disallow: /draft (group of 'NewsBot')",
        "- Crawl-delay: 1",
        "+ Crawl-delay: 2",
    ]


def test_preferences_that_came_and_went(files: Path) -> None:
    usage = "Content-Usage: /a train-ai=n\nContent-Signal: search=yes\n"
    after = usage.replace("train-ai=n", "train-ai=y").replace("search=yes", "search=no")
    (files / "after.txt").write_text(f"User-agent: *\nDisallow: /x\nContent-Usage: search=y\n{after}")
    (files / "before.txt").write_text(f"User-agent: *\n{usage}Content-Usage: search=y\nDisallow: /x\n")
    done = Ended(*FILES, "--purpose=search", "/b", cwd=files)
    assert (done.status, done.stderr) == (1, "")
    *lines, changed = done.stdout.splitlines()
    assert lines == [
        "- line 2, Content-Usage: /a train-ai=n (group of '*')",
        "- line 3, Content-Signal: search=yes (group of '*')",
        "+ line 4, Content-Usage: /a train-ai=y (group of '*')",
        "+ line 5, Content-Signal: search=no (group of '*')",
    ]
    assert changed == (
        "now refused\t/b\tfor the purpose 'search' by line 5, Content-Signal: search=no (group of '*');"
        " before, no rule matches it (group of '*')"
    )


def test_a_group_of_its_own_that_went(files: Path) -> None:
    (files / "after.txt").write_text("User-agent: *\nDisallow: /drafts/\n")
    done = Ended(*FILES, "--agent", "NewsBot", cwd=files)
    # A rule that another group has now is the same.
    assert done.stdout.splitlines() == ["- line 7, Disallow: /old/ (group of 'NewsBot')", "- Crawl-delay: 1"]


def test_urls_that_change(files: Path) -> None:
    done = Ended(*FILES, "--agent", "NewsBot", "-", cwd=files, stdin=b"/draft\n/old/\n/b\nnonsense\n")
    assert done.status == 3, "it could not tell of one"
    *_, changed, unknown = done.stdout.splitlines()
    assert changed == (
        "now refused\t/draft\tby line 7, Disallow: /draft (group of 'NewsBot');"
        " before, no rule matches it (group of 'NewsBot')"
    )
    assert unknown.startswith("can't tell\tnonsense\t")
    assert "4 URLs: 1 from allowed to refused, 2 the same, 1 can't tell;" in done.stderr


def test_json(files: Path) -> None:
    objects = Ended(*FILES, "--json", "--agent", "NewsBot", "/draft", "/b", cwd=files).objects
    assert objects == [
        {"change": "removed", "line": 5, "rule": "Disallow: /drafts/", "group": "NewsBot"},
        {"change": "added", "line": 7, "rule": "Disallow: /draft", "group": "NewsBot"},
        {"change": "crawl-delay", "before": 1.0, "after": 2.0},
        {
            "url": "/draft",
            "before": {"allowed": True, "why": "no rule matches it (group of 'NewsBot')"},
            "after": {"allowed": False, "why": "by line 7, Disallow: /draft (group of 'NewsBot')"},
        },
    ]


def test_where_nothing_changes(files: Path) -> None:
    # What changes for others is no change for the crawler.
    (files / "after.txt").write_text(BEFORE.replace("/private/", "/secret/"))
    done = Ended(*FILES, "--agent", "NewsBot", "/private/", cwd=files)
    assert (done.status, done.stdout, done.stderr) == (0, "nothing changes\n", "")
    assert Ended(*FILES, "--json", "--agent", "NewsBot", cwd=files).stdout == ""


def test_a_file_and_standard_input(files: Path) -> None:
    done = Ended("--diff", "before.txt", "-", "--agent", "PagesBot", cwd=files, stdin=AFTER.encode())
    assert done.stdout.splitlines() == [
        "- line 2, Disallow: /private/ (group of '*')",
        "+ line 2, Disallow: / (group of '*')",
    ]


@pytest.mark.parametrize(
    ("route", "url", "told"),
    [
        (answer(BEFORE, headers={"Cache-Control": "max-age=0"}), "/draft", "now refused"),
        (answer(BEFORE), "/b", None),
        (answer(status=404), "/old/", "now refused"),
        (answer(status=503), "/b", "now allowed"),
    ],
    ids=["past-its-time", "rules", "no-rules", "unreachable"],
)
def test_what_is_stored_and_a_file(web: Web, files: Path, route: Any, url: str, told: str | None) -> None:
    site, storage = web.robots(route), ["-s", f"REP_STORAGE=sqlite://{files}/robots.db", "--agent", "NewsBot"]
    Ended(*storage, "-s", "REP_FETCH_RETRIES=0", "-s", "REP_LIFETIME_MIN=0", site.url("/"), cwd=files)
    done = Ended("--diff", site.origin, "after.txt", *storage, site.url(url), cwd=files)
    assert done.status == 1
    changed = [line for line in done.stdout.splitlines() if line.startswith("now")]
    assert [line.split("\t")[:2] for line in changed] == ([[told, site.url(url)]] if told else [])
    assert len(site.robots_requests) == 1, "what is stored is enough"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--diff before.txt missing.txt", "--diff missing.txt: No such file or directory"),
        ("--diff before.txt https://example.com", "--diff: REP_STORAGE (memory:) can't be looked into"),
        ("--diff before.txt https://", "--diff: 'https://' is no origin; write it as in https://example.com"),
        ("--diff - -", "standard input can be only one of the URLs and the robots.txt files"),
        ("--diff before.txt - -", "standard input can be only one of the URLs and the robots.txt files"),
        ("--diff before.txt after.txt --show", "--show and --diff exclude each other"),
        ("--diff before.txt", "argument --diff: expected 2 arguments"),
    ],
)
def test_wrong_usage(files: Path, arguments: str, told: str) -> None:
    assert_wrong_usage(Ended(*arguments.split(), cwd=files), told)
