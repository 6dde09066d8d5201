"""The search of the built docs: twelve questions of newcomers, and the page that answers each.

It searches as the site does (Sphinx's `searchtools.js`): headings, index entries, and words of the text by their stems.
It drops words that are numbers alone, so "403" is found only as an index entry.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pytest
from doc_pages import PAGES, ROOT

pytestmark = pytest.mark.site

# What a newcomer asks, what they type, and the page that answers it.
QUESTIONS = {
    "Nothing happens for 40 s. What is it waiting for?": ("stuck, hangs, nothing happens", "troubleshooting"),
    "Everything is refused. By which rule?": ("everything is refused, forbidden", "troubleshooting"),
    "Nothing is refused. Is it on?": ("nothing is refused, not obeyed", "troubleshooting"),
    "How do I crawl my own staging server?": ("staging", "troubleshooting"),
    "robots.txt answers 503. Are its pages fetched?": ("503, HTTP 503, 500", "troubleshooting"),
    "robots.txt answers 401 or 403. Are its pages fetched?": ("401, 403, HTTP 403, access denied", "difficult-sites"),
    "robots.txt answers 429. What does the crawl do?": ("429, HTTP 429, too many requests", "difficult-sites"),
    "A robots.txt has 5 MB. Is all of it obeyed?": ("too big, 5 MB", "troubleshooting"),
    "What do I do after an upgrade of Scrapy?": ("upgrade, scrapy_internals", "troubleshooting"),
    "How do I prove later that the crawl obeyed robots.txt?": ("proof, audit, legal", "evidence"),
    "How do I crawl with playwright?": ("playwright, only a browser", "other-plugins"),
    "How do I keep robots.txt files between crawls?": ("cache, between crawls", "storage"),
}
ASKED = [(words, page) for typed, page in QUESTIONS.values() for words in typed.split(", ")]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the search index of the built site."""
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(ROOT / "docs"), str(site)]
    subprocess.run(command, check=True, timeout=300)
    text = (site / "searchindex.js").read_text("utf-8")
    found: dict[str, Any] = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return found


def search(index: dict[str, Any], query: str) -> list[str]:
    """Return the pages that the site's search lists, best first."""
    scores: Counter[str] = Counter()
    names, query = index["docnames"], query.lower()
    for where, score in (("alltitles", 15), ("indexentries", 20)):
        for text, places in index[where].items():
            if query in text.lower() and len(query) >= len(text) / 2:
                for number, *_ in places:
                    scores[names[number]] = max(scores[names[number]], round(score * len(query) / len(text)))
    words = [word for word in re.findall(r"\w+", query) if not word.isdigit()]
    pages = [set(_pages(index, word)) for word in words]
    for number in set.intersection(*pages) if pages else ():
        scores[names[number]] = max(scores[names[number]], 5)
    return [page for page, _score in scores.most_common()]


def _pages(index: dict[str, Any], word: str) -> Iterable[int]:
    """Yield the numbers of the pages that contain the word, in a heading or in the text."""
    stem = import_module("snowballstemmer").stemmer("porter").stemWord(word)  # it comes with Sphinx
    for where in ("terms", "titleterms"):
        for term in {word, stem}:
            found = index[where].get(term, [])
            yield from [found] if isinstance(found, int) else found


@pytest.mark.parametrize(("words", "page"), ASKED, ids=[words for words, _ in ASKED])
def test_the_words_lead_to_the_page(index: dict[str, Any], words: str, page: str) -> None:
    assert page in search(index, words)[:3]


def test_twelve_questions_need_no_more_than_fourteen_pages() -> None:
    pages = [page for _typed, page in QUESTIONS.values()]
    assert len(pages) == 12
    assert {f"docs/{page}.md" for page in pages} <= set(PAGES)


def test_index_entries_stand_above_a_heading() -> None:
    """Sphinx reads index entries only there (docs/conf.py)."""
    for page, text in PAGES.items():
        comments = text.count("<!-- index: ")
        assert len(re.findall(r"^<!-- index: .* -->\n#+ ", text, re.MULTILINE)) == comments, page
