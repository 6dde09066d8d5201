"""docs/index.md: the log line, the installation and the comparison agree with a crawl and with the README."""

from __future__ import annotations

import logging
import re

from crawling import crawl
from doc_pages import EXAMPLE, PAGES, marked, table, without_words
from pytest_twisted import ensureDeferred
from web import Web, answer


@ensureDeferred
async def test_the_refusal(web: Web) -> None:
    site = web.robots(answer("User-agent: *\nDisallow: /private/\n"))
    result = await crawl(site.url("/private/diary"))
    messages = result.messages(logging.INFO, "scrapy_rep")
    lines = [f"[scrapy_rep] INFO: {without_words(message)}\n".replace(site.origin, EXAMPLE) for message in messages]
    assert without_words(marked("first-refusal")) in lines


def test_it_says_the_same_as_the_readme() -> None:
    assert marked("first-install") == marked("install")
    assert [row for row in table("first-comparison") if row not in table("comparison")] == []


def test_the_lists_name_the_pages_of_the_site() -> None:
    """Repository viewers show the lists, but not the tables of contents of Sphinx below each of them."""
    page = PAGES["docs/index.md"]
    listed = re.findall(r"^- \[.*?\]\((\S+)\.md\): ", page, re.MULTILINE)
    assert listed == [
        name for toctree in re.findall(r":hidden:\n\n(.*?)\n```", page, re.DOTALL) for name in toctree.split()
    ]
    assert {f"docs/{name}.md" for name in [*listed, "index"]} == {name for name in PAGES if name.startswith("docs/")}
