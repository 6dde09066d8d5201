"""A URL is judged as each of Scrapy's handlers sends it, and as servers read it: dot segments, `;` and escapes."""

from __future__ import annotations

from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, crawl, forbidden
from doc_pages import EXAMPLE, marked, without_words
from installed_scrapy import CAN, HANDLERS
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.http import Response
from web import Web, answer

from scrapy_rep import RepMiddleware
from scrapy_rep.protocol.words import READ_AS

RULES = """user-agent: *
disallow: /private/
disallow: /@admin
disallow: /!x
disallow: /p?q='
disallow: /*.pdf$
"""
FORBIDDEN = ["/private/", "/@", "/!x", "/p?q='"]
REFUSED = {
    "/x/../private/1": "/private/1",
    "/x/%2e%2e/private/2": "/private/2",
    "/x/%2E./private/3": "/private/3",
    "/x/.%2e/private/4?q=/../": "/private/4?q=/../",
    "/./private/5": "/private/5",
    "/%2e/private/6": "/private/6",
    "/../../private/7#part": "/private/7",
    "/private/..": None,
}
ALLOWED = [
    "/%40admin",
    "/%21x",
    "/p?q=%27",
    "/doc.pdfs;v=1",
    "/a/../b",
    "/.well-known/x",
    "/%20",
    "/a?x=/../private/",
    "/x/...",
    "/%2f../y",
]
each_handler = pytest.mark.parametrize("handler", HANDLERS)


async def crawled(web: Web, handler: str, *paths: str, **settings: Any) -> tuple[Crawl, dict[str, str], list[str]]:
    """Return the crawl, why each path was refused, and the paths that the server received."""
    site = web.site({"/robots.txt": answer(RULES)})
    settings["DOWNLOAD_HANDLERS"] = {"http": HANDLERS[handler]}
    result = await crawl(*map(site.url, paths), settings=settings)
    why = {url.removeprefix(site.origin): str(error).replace(site.origin, "") for url, error in result.refused.items()}
    return result, why, [target for target in site.targets if target != "/robots.txt"]


def why_refused(judged: str | None) -> str:
    rule = forbidden("/robots.txt, line 2, group of '*': Disallow: /private/")
    return rule + READ_AS.format(url=judged) if judged else rule


@each_handler
@ensureDeferred
async def test_a_path_that_is_forbidden_without_its_dot_segments_is_refused(web: Web, handler: str) -> None:
    _, why, sent = await crawled(web, handler, *REFUSED)
    assert why.keys() == REFUSED.keys()
    assert why == {path: why_refused(judged) for path, judged in REFUSED.items()}
    assert sent == []


def test_the_example_in_the_docs() -> None:
    shown = without_words(marked("other-readings")).strip().replace(EXAMPLE, "")
    assert shown == without_words(why_refused(REFUSED["/x/../private/1"]))


@each_handler
@ensureDeferred
async def test_nothing_that_is_forbidden_reaches_the_server(web: Web, handler: str) -> None:
    result, why, sent = await crawled(web, handler, *ALLOWED)
    assert why == {}
    assert len(sent) == len(result.pages) == len(ALLOWED)
    assert [target for target in sent if target.startswith(tuple(FORBIDDEN))] == []


@each_handler
@ensureDeferred
async def test_a_url_whose_other_form_is_forbidden_is_not_sent(web: Web, handler: str) -> None:
    paths = ["/doc.pdf;", "/doc.pdf;v=1"]
    if CAN["send a URL verbatim"]:
        paths += ["/doc.pdf?", "/doc.pdf ", "/\t@admin", "/\r\n@admin"]
    site = web.site({"/robots.txt": answer(RULES)})
    verbatim = [Request(site.url(path), meta={"verbatim_url": True}) for path in paths]
    result = await crawl(*verbatim, settings={"DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]}})
    assert site.targets == ["/robots.txt"]
    assert result.refused.keys() == set(map(site.url, paths))


@pytest.mark.parametrize("setting", [{}, {"REP_EVIDENCE": True}], ids=str)
@ensureDeferred
async def test_the_verdict_method_gives_the_same_verdict(web: Web, setting: dict[str, Any]) -> None:
    site = web.site({"/robots.txt": answer(RULES)})
    asked: list[Any] = []

    class Asks(CrawlSpider):
        async def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            asked.append(await RepMiddleware.of(self.crawler).verdict(site.url("/x/../private/1")))
            yield self.prepared(site.url("/x/../private/1"))

    result = await crawl(site.url("/"), spider=Asks, settings=setting)
    (verdict,) = asked
    assert (verdict.allowed, verdict.read_as) == (False, site.url("/private/1"))
    assert site.targets == ["/robots.txt", "/"]
    assert result.stats["robotstxt/forbidden"] == 1
