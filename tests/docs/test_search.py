"""The search of the built site, in Chromium: forty questions as people type them, and the page that answers each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import NamedTuple

import pytest
from chromium import dumped, needs_chromium
from doc_pages import PAGES, ROOT

QUESTIONS = {
    "403 robots.txt": "difficult-sites",
    "robots.txt 503": "troubleshooting",
    "robots.txt returns 403": "difficult-sites",
    "site answers 429": "difficult-sites",
    "401": "difficult-sites",
    "migrate": "migration",
    "migrate from RobotsTxtMiddleware": "migration",
    "performance": "benchmarks",
    "overhead": "benchmarks",
    "is it slower": "benchmarks",
    "dashboard": "report",
    "GPTBot": "settings",
    "which rule wins": "answers",
    "login page": "difficult-sites",
    "bulk": "command",
    "ignore robots.txt for one request": "spiders",
    "why is my request not sent": "troubleshooting",
    "test what robots.txt says for URL list": "command",
    "cache robots.txt between runs": "storage",
    "which proxy fetches robots.txt": "answers",
    "crawl is stuck": "troubleshooting",
    "everything is refused": "troubleshooting",
    "robots.txt is not obeyed": "troubleshooting",
    "staging server": "settings",
    "cloudflare": "difficult-sites",
    "crawl-delay": "polite",
    "how to set my user agent": "settings",
    "errback": "spiders",
    "sitemap from robots.txt": "spiders",
    "scrapy-playwright": "other-plugins",
    "share robots.txt between machines": "storage",
    "AI training": "usage",
    "prove that we obeyed robots.txt": "evidence",
    "robots.txt too big": "troubleshooting",
    "disable for one spider": "settings",
    "X-Robots-Tag": "limits",
    "wildcard": "answers",
    "log is too long": "log",
    "upgrade scrapy": "troubleshooting",
    "thousands of sites": "broad-crawls",
}
ASK = """
<!doctype html><html data-content_root="./"><body><pre></pre>
<script src="_static/documentation_options.js"></script><script src="_static/doctools.js"></script>
<script src="_static/sphinx_highlight.js"></script><script src="_static/searchtools.js"></script>
<script src="_static/language_data.js"></script><script src="searchindex.js"></script>
<script>
document.querySelector("pre").textContent = JSON.stringify(QUESTIONS.map((query) => {
  document.body.insertAdjacentHTML("beforeend", '<p id="search-progress"></p>');
  return Search._performSearch(...Search._parseQuery(query)).reverse();
}));
</script>
"""


class Result(NamedTuple):
    """A result of searchtools.js."""

    page: str
    title: str
    anchor: str
    description: str | None
    score: int
    file: str
    kind: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(ROOT / "docs"), str(folder)]
    subprocess.run(command, check=True, timeout=300)
    return folder


def ask(site: Path, questions: list[str]) -> list[list[Result]]:
    """Return the results that the site shows for each question, the best ones first."""
    page = site / "ask.html"
    page.write_text(ASK.replace("QUESTIONS", json.dumps(questions)), "utf-8")
    (found,) = re.findall("<pre>(.*?)</pre>", dumped(page), re.DOTALL)
    return [[Result(*result) for result in results] for results in json.loads(unescape(found))]


def leads_to(site: Path, result: Result, page: str) -> bool:
    """Whether a result is this page, or a section of the page of tasks with a link to it."""
    html = (site / "tasks.html").read_text("utf-8")
    at = html.find(f'id="{result.anchor[1:]}"') if result.anchor else -1
    if result.page != "tasks" or at < 0:
        return result.page == page
    section = html[html.rfind("<section", 0, at + 1) : html.find("</section>", at)]
    return f'href="{page}.html' in section


@pytest.mark.site
@needs_chromium
def test_the_right_page_is_first(site: Path) -> None:
    assert len(QUESTIONS) == 40
    found = dict(zip(QUESTIONS.items(), ask(site, list(QUESTIONS)), strict=True))
    wrong = {
        question: [result.page for result in results[:3]]
        for (question, page), results in found.items()
        if not (results and leads_to(site, results[0], page))
    }
    assert len(wrong) <= 4, wrong


@pytest.mark.site
@needs_chromium
def test_words_that_no_page_has_do_not_hide_the_others(site: Path) -> None:
    plain, longer = ask(site, ["cloudflare", "zzyzx cloudflare"])
    assert plain[0].page == longer[0].page == "difficult-sites"


def test_contributors_pages_come_last() -> None:
    (said,) = re.findall(r"LAST = new Set\((.*?)\)", (ROOT / "docs/search.js").read_text("utf-8"))
    (listed,) = re.findall(r":caption: Contributors\n.*?\n\n(.*?)\n```", PAGES["docs/index.md"], re.DOTALL)
    assert json.loads(said) == sorted(listed.splitlines())


def test_index_entries_stand_above_a_heading() -> None:
    """Sphinx reads index entries only there (docs/conf.py)."""
    for page, text in PAGES.items():
        comments = text.count("<!-- index: ")
        assert len(re.findall(r"^<!-- index: .* -->\n#+ ", text, re.MULTILINE)) == comments, page
