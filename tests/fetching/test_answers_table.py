"""One crawl of origins with all kinds of answers: each has the result of its row in docs/answers.md."""

from __future__ import annotations

from collections import Counter
from typing import Any

from answers import ANSWERS, DROPPED, REDIRECT, drops
from crawling import Crawl, SlotByOrigin, Time, crawl, with_clock
from doc_pages import table
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.crawler import Crawler
from web import Site, Web

from scrapy_rep import signals
from scrapy_rep.origin_info import OriginInfo
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import BACKOFF_MAX, BACKOFFS

PAGES = {"obeys its rules": {"/"}, "may fetch everything": {"/", "/private"}, "fetches nothing": set()}
AGAIN = {"24 hours": 86_400, "then longer": BACKOFFS[0], "an hour": BACKOFF_MAX}
HOPS = {"301 to another origin's": 2, "a redirect loop": 6}
"""The number of requests for a `/robots.txt` along the redirects. For all other answers it is 1."""


TRIED = [
    answered
    for number, answered in enumerate(ANSWERS)
    if not answered.name.isdecimal() or answered.row not in {before.row for before in ANSWERS[:number]}
]
"""One status a row, and all answers whose status does not decide. `docs/test_tables.py` compares every status."""


class StandingTime(Time):
    """A clock that stands still during sleeps, so the retry of one origin does not end the backoff of another."""

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def said_of(row: str) -> tuple[str, set[str], int, float]:
    """Return the row's access result, the pages that are fetched, the number of retries, and the seconds until
    robots.txt is fetched again."""
    ((_, access, crawls, again),) = (cells for cells in table("answers") if cells[0].startswith(row))
    if row == REDIRECT:
        return said_of("200-299")
    (pages,) = (pages for words, pages in PAGES.items() if crawls.startswith(words))
    seconds = next(seconds for words, seconds in AGAIN.items() if words in again)
    return access, pages, crawls.count("one retry"), seconds


@ensureDeferred
async def test_each_answer_has_the_result_of_its_row(web: Web) -> None:
    sites = {answered.name: answered.site(web) for answered in TRIED}
    known: dict[str, Entry] = {}
    asked: Counter[str] = Counter()

    def told(origin: Origin, info: OriginInfo) -> None:
        known[str(origin)] = info.policy.entry

    def answered_once(answer: Answer, request: Request) -> None:
        asked[str(Origin.of(request.url))] += answer.url.endswith("/robots.txt")

    def prepare(crawler: Crawler) -> None:
        crawler.signals.connect(told, signals.robots_known, weak=False)
        crawler.signals.connect(answered_once, signals.robots_response, weak=False)

    settings: dict[str, Any] = {
        "REP_FETCH_RETRIES": 1,
        "REP_FETCH_TIMEOUT": 3,
        "DOWNLOADER": SlotByOrigin,
        "DOWNLOADER_MIDDLEWARES": {drops(*(sites[a.name].port for a in TRIED if a.row == DROPPED)): 200},
    }
    clocked = with_clock(StandingTime())
    settings["DOWNLOADER_MIDDLEWARES"] |= clocked.pop("DOWNLOADER_MIDDLEWARES")
    urls = [site.url(path) for site in sites.values() for path in ("/", "/private")]
    result = await crawl(*urls, settings=settings, prepare=prepare, robots=clocked)
    assert result.tracebacks == []

    said = {name: said_of(row) for name, row, _ in TRIED}
    found = {
        name: (
            known[site.origin].last.access.value,
            pages_of(site, result),
            asked[site.origin],
            again(known[site.origin]),
        )
        for name, site in sites.items()
    }
    assert found == {name: (*rest, retries + HOPS.get(name, 1), at) for name, (*rest, retries, at) in said.items()}


def pages_of(site: Site, result: Crawl) -> set[str]:
    return {path for path in ("/", "/private") if site.url(path) in result.pages}


def again(entry: Entry) -> float:
    """Return the duration in the docs that is nearest to the time until the next fetch. They differ a little, because
    an answer's time on the wire is part of its age."""
    if entry.outage is not None:
        seconds = entry.outage.fetch_again_at - entry.outage.answer.ended_at
    else:
        assert entry.stored is not None
        seconds = entry.stored.fresh_until - entry.stored.received_at
    return min(AGAIN.values(), key=lambda said: abs(said - seconds))


def test_each_row_has_answers() -> None:
    assert len({row for _, row, _ in TRIED}) == len(table("answers"))
    assert len(TRIED) > 35
