"""Links and lengths of the pages. A test checks each example and each table."""

from __future__ import annotations

import re

import pytest
from doc_pages import BLOCKS, PAGES, README, ROOT, blocks, marked, prose

TESTS = "".join(path.read_text("utf-8") for path in [*ROOT.glob("tests/**/*.py"), *ROOT.glob(".ci/run")])


def test_each_block_is_run_or_looked_at() -> None:
    """Scripts and commands are followed by what they print. All other blocks have a mark that a test knows."""
    by_sphinx = {"{eval-rst}", "{toctree}"}
    others = [block for block in BLOCKS if block.page != "docs/start.md"]  # test_getting_started.py runs all of it
    marks = {block.mark for block in others if block.language not in by_sphinx} - {""}
    assert [mark for mark in marks if f'"{mark}"' not in TESTS and f"<!-- {mark} -->" not in TESTS] == []
    printing = blocks("python") + blocks("sh", "command")
    texts = [block for block in others if (block.language, block.mark) == ("text", "")]
    assert sorted(map(str, texts)) == sorted(str(block.following) for block in printing)
    assert {block.language for block in others if not block.mark} <= {"python", "text", *by_sphinx}
    assert sum(page.count("```") for page in PAGES.values()) == 2 * len(BLOCKS), "all blocks are read"


def test_each_table_has_a_mark_that_a_test_uses() -> None:
    tables = [
        (page, mark)
        for page, text in PAGES.items()
        for mark in re.findall(r"(?:<!-- (\S+) -->\n)?\|.*\n\|(?:-+\|)+\n", text)
        if page != "docs/report.md"  # tests/extensions/test_json_lines_in_docs.py
        and not mark.startswith("log-")  # test_log.py
    ]
    assert [(page, mark) for page, mark in tables if f'"{mark}"' not in TESTS] == []


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as repository viewers and Sphinx spell them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", prose(page)):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / page).parent.joinpath(file).resolve() if file else ROOT / page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(str(target.relative_to(ROOT))), link


def test_the_readme_is_short_and_its_picture_small() -> None:
    assert len(README.split()) <= 1_000
    assert (ROOT / "docs" / "report.png").stat().st_size < 200_000


@pytest.mark.parametrize("mark", ["example-command", "test-command"])
def test_a_command_is_one_line_that_makes_its_own_environment(mark: str) -> None:
    (line,) = marked(mark).splitlines()
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_the_example_command_installs_as_the_readme_says() -> None:
    assert marked("install").strip().replace("pip install", "pip install -q") in marked("example-command")
