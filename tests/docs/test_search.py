"""The search of the built site, in Chromium: 120 questions as people type them, and the page that answers each."""

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
# Thread titles about robots.txt, as they stand: issues of Scrapy, its plugins and other crawlers, and of forums.
THREADS = {
    "Crawl-Delay support for robots.txt": "polite",
    "robots.txt file parser should consider download delays": "polite",
    "while crawling website like https://www.netflix.com,getting "
    "Forbidden by robots.txt: <GET https://www.netflix.com/>": "troubleshooting",
    "`RobotsTxtMiddleware` sometimes misbehaves": "migration",
    "RobotsTxtMiddleware doesn't support wildcards in Disallow rules": "answers",
    "robots.txt requests don't use errback": "spiders",
    "The first rule in a robots.txt with BOM will be ignored": "answers",
    "Handle robots.txt files not utf-8 encoded": "answers",
    "more stats for RobotsTxtMiddleware": "stats",
    "Adds ROBOTSTXT_USER_AGENT setting": "settings",
    "Set support for robots.txt to be on by default": "settings",
    "frontera is being polite to my splash server. How to disable that?": "other-plugins",
    "Allow users to use SitemapSpider with the new robots.txt interface.": "spiders",
    "SitemapSpider: avoid duplicate robots.txt requests": "spiders",
    "Wrong handling of rule with wildcard in path": "answers",
    "Allow all pages if access to robots.txt is forbidden": "difficult-sites",
    "robots.txt: server errors (5xx) are treated as allow-all instead of disallow-all": "troubleshooting",
    "Robots.txt file re-fetched in 24 mins not a 24 hours": "answers",
    "Cache robots.txt for 24 hours on disk to reduce load on servers": "storage",
    "Fix robots.txt spamming by adding Redis caching": "storage",
    'Should the crawler respect the <meta name="robots" content="noindex,nofollow">?': "limits",
    "respect robots.txt over proxy": "answers",
    "Suggestion: robots.txt denied event": "signals",
    "Add an option to turn off respecting robots.txt": "settings",
    "Include robots.txt in WARC file": "evidence",
    "A black-holed robots.txt now stalls the whole crawl for up to 540s per session": "troubleshooting",
    "Declare AI content usage preferences with Content Signals in robots.txt": "usage",
    "Scrapy ImagePipeline ignore images from specific host": "limits",
    "Is robots.txt Legally Binding? Scraping Law Explained": "tasks#know-whether-ignoring-robots-txt-is-legal",
    "Controlling a Subdomain with robots.txt": "answers",
    "How to work with RobotsTxtMiddleware in Scrapy framework": "migration",
    "Only follow robots.txt redirects on the same host": "answers",
    "Get robots.txt and check against current URL": "command",
}
MORE_QUESTIONS = THREADS | {
    "robots.txt in scrapy shell": "troubleshooting",
    "BOT_NAME": "settings",
    "my spider stops immediately with 0 pages": "troubleshooting",
    "ignore robots.txt for a single domain only": "settings",
    "scrapy-redis robots.txt": "other-plugins",
    "memory usage with a million domains": "broad-crawls",
    "which python versions are supported": "versions",
}
# More titles of such threads, and phrases that once found nothing. `|`: any of these pages answers the question.
OTHER_QUESTIONS = {
    "Disallow all pages with question mark.": "answers",
    "RobotstxtServer ignores query part of URL when evaluating directives": "answers",
    "Include query string in robots.txt check": "answers|command",
    "URLs with query params but no path don't match against rules": "answers",
    "Support matching against query parameters in robots.txt rules": "answers",
    "Add --ignore-robots option": "settings|spiders",
    "Surface robots.txt skip counts (Disallow / Crawl-delay) through status": "stats|report|log",
    "Fetcher to log skipped records by robots.txt": "log",
    "Skipped URLs Reporting (-6:SKP)": "report|evidence|log",
    "add `on_skipped_request` hook": "signals|spiders",
    "surface robots.txt warning reliably": "log",
    "crawl job silently produces indexed=0 when robots.txt blocks all URLs": "troubleshooting",
    "Implement crawl-delay directive for robots.txt": "polite",
    "Honor robots.txt Crawl-delay": "polite",
    "Crawl speed limit and obeying crawl-delay?": "polite",
    "Robots.txt prevents crawling workaround?": "troubleshooting",
    "only version 1.8.0 robots.txt forbidden": "troubleshooting|migration",
    "Sitemap crawling should respect robots.txt": "spiders",
    "BugReport(About robot.txt)": "start|answers|tasks|troubleshooting",
    "A question about robots.txt in ebay site": "start|answers|tasks|troubleshooting",
    "robotstxt mid multi spider support removed": "settings",
    "RobotsTxtMiddleware middleware not loaded": "troubleshooting",
    "save robots.txt results": "storage|evidence",
    "feat: add `respectRobotsTxtFile` crawler option": "settings",
    "Automatically respect robots.txt": "start|settings|migration|tasks",
    "treat a failed fetch (e.g. socket timeout) of robots.txt the same way": "answers|troubleshooting",
    "an unreachable robots.txt or a 5xx answer allows the whole site": "troubleshooting|answers",
    "Treat an unreachable robots.txt as disallow, not allow-all": "troubleshooting|answers",
    "treat a missing robots.txt as no restrictions": "answers",
    "If we fail to fetch `robots.txt` we should allow the url to be processed.": "troubleshooting|answers",
    "handle 5xx responses and add timeout in robots.txt check": "troubleshooting|answers|settings",
    "add ROBOTSTXT_OBEY=False to avoid robots.txt 404 block": "settings",
    'Now "ROBOTSTXT_OBEY" is enabled by default': "settings",
    "Setting to make scrapy ignore/follow robots.txt": "settings",
    "Obey Robots.txt per-host": "answers",
    "robots.txt user agent per spider": "settings",
    "silence robots.txt messages in the log": "log",
    "Fails to crawl certain sites": "troubleshooting|difficult-sites",
    "custom user agent for robots.txt": "settings",
    "list of pages blocked by robots.txt": "report|evidence|log",
}
COMMON_WORDS = ["what is robots.txt", 'Problems with "?" in robots.txt', "Automatically add robots.txt"]
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
    """Whether a result is this page or section, or a section of the page of tasks with a link to this page."""
    if "|" in page:
        return any(leads_to(site, result, each) for each in page.split("|"))
    if "#" in page:
        return result.page + result.anchor == page
    html = (site / "tasks.html").read_text("utf-8")
    at = html.find(f'id="{result.anchor[1:]}"') if result.anchor else -1
    if result.page != "tasks" or at < 0:
        return result.page == page
    section = html[html.rfind("<section", 0, at + 1) : html.find("</section>", at)]
    return f'href="{page}.html' in section


def places(site: Path, questions: dict[str, str]) -> dict[str, tuple[bool, ...]]:
    """Return for each question whether the first, the second and the third result lead to its page."""
    return {
        question: tuple(leads_to(site, result, page) for result in results[:3])
        for (question, page), results in zip(questions.items(), ask(site, list(questions)), strict=True)
    }


@pytest.mark.site
@needs_chromium
@pytest.mark.parametrize(
    ("questions", "first", "in_three"), [(QUESTIONS, 36, 40), (MORE_QUESTIONS, 30, 36), (OTHER_QUESTIONS, 30, 36)]
)
def test_the_right_page_is_found(site: Path, questions: dict[str, str], first: int, in_three: int) -> None:
    assert len(questions) == 40
    found = places(site, questions)
    assert sum(place[:1] == (True,) for place in found.values()) >= first, found
    assert sum(any(place) for place in found.values()) >= in_three, found


@pytest.mark.site
@needs_chromium
def test_words_that_no_page_has_do_not_hide_the_others(site: Path) -> None:
    plain, longer = ask(site, ["cloudflare", "zzyzx cloudflare"])
    assert plain[0].page == longer[0].page == "difficult-sites"


@pytest.mark.site
@needs_chromium
@pytest.mark.parametrize("question", COMMON_WORDS)
def test_a_question_of_common_words_finds_where_to_begin(site: Path, question: str) -> None:
    (results,) = ask(site, [question])
    assert [result.page for result in results] == ["start", "answers", "tasks"]


def test_contributors_pages_come_last() -> None:
    (said,) = re.findall(r"LAST = new Set\((.*?)\)", (ROOT / "docs/search.js").read_text("utf-8"))
    (listed,) = re.findall(r":caption: Contributors\n.*?\n\n(.*?)\n```", PAGES["docs/index.md"], re.DOTALL)
    assert json.loads(said) == sorted(listed.splitlines())


def test_index_entries_stand_above_a_heading() -> None:
    """Sphinx reads index entries only there (docs/conf.py)."""
    for page, text in PAGES.items():
        comments = text.count("<!-- index: ")
        assert len(re.findall(r"^<!-- index: .* -->\n#+ ", text, re.MULTILINE)) == comments, page
