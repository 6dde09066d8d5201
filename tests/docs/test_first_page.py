"""docs/index.md: the log line, the installation and the comparison agree with a crawl and with the README."""

from __future__ import annotations

import logging

from crawling import crawl
from doc_pages import EXAMPLE, marked, table
from pytest_twisted import ensureDeferred
from web import Web, answer


@ensureDeferred
async def test_the_refusal(web: Web) -> None:
    site = web.robots(answer("User-agent: *\nDisallow: /private/\n"))
    result = await crawl(site.url("/private/diary"))
    lines = [message.replace(site.origin, EXAMPLE) for message in result.messages(logging.INFO, "scrapy_rep")]
    assert marked("first-refusal").removeprefix("[scrapy_rep] INFO: ").rstrip() in lines


def test_it_says_the_same_as_the_readme() -> None:
    assert marked("first-install") == marked("install")
    assert [row for row in table("first-comparison") if row not in table("comparison")] == []
