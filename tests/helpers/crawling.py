"""Real crawls through Scrapy's engine, and the result of each request."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from doc_pages import first_names
from scrapy import Request, Spider
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.httpobj import urlparse_cached
from web import Site

from scrapy_rep import AccessResult, ForbiddenByRobots, RepMiddleware
from scrapy_rep.protocol import words
from scrapy_rep.protocol.robotstxt.rules import VerdictReason
from scrapy_rep.protocol.words import REASON_WORDS
from scrapy_rep.scrapy_internals.compat import sleep

ADDON = {"ADDONS": {"scrapy_rep.Addon": 500}}
BUILTIN = {"ROBOTSTXT_OBEY": True}
# No retries, and no wait for the end of an outage: tests about these set them.
QUIET = {"REP_FETCH_RETRIES": 0, "REP_UNREACHABLE_WAIT": 0, "TELNETCONSOLE_ENABLED": False, "RETRY_ENABLED": False}
QUIET["REMOTE_CONTROL_ENABLED"] = False  # a server in each crawl
# For each response, Scrapy starts that many tasks, most of them for nothing. Its default is 100.
QUIET["CONCURRENT_ITEMS"] = 4
# The stats of docs/stats.md. N, TYPE, PURPOSE and VENDOR stand for any text.
LISTED = re.compile(
    "|".join(re.sub(r"N$|TYPE$|PURPOSE|VENDOR", r"[^/]+", re.escape(stat)) for stat in first_names("stats-table"))
)
# Modules whose log lines name no spider, because they are about a file or a value that several crawls share.
WITHOUT_SPIDER = {"sqlite.py", "user_agent.py"}
DENIED = "Nothing was crawled: every start request"
ADVICES = re.compile(
    "|".join(
        re.sub(r"\\\{.*?\\\}", ".*", re.escape(text))
        for text in (
            words.ADVICE,
            words.ADVICE_FOR_ALL_CRAWLERS,
            *(row.advice for row in REASON_WORDS.values() if row.advice),
        )
    )
)


def is_about_denial(message: str) -> bool:
    """Whether a line says that all start requests were refused, or gives advice about it."""
    return message.startswith(DENIED) or ADVICES.fullmatch(message) is not None


def forbidden(where: str) -> str:
    """Return the message about a request that a rule refuses. `where` has the URL of robots.txt, the line and the rule.

    `test_refusals_log.py` tests the words."""
    return refusal_by(VerdictReason.RULE, where=f"robots.txt ({where})")


def refusal_by(reason: VerdictReason, **parts: str) -> str:
    """Return the message about a request that is refused for a reason."""
    words = REASON_WORDS[reason.value]
    return words.refusal.format(words=words.refused, **parts)


class SlotByOrigin(Downloader):
    """Give each origin of the test web its own download slot. All of them are on one host."""

    def get_slot_key(self, request: Request) -> str:
        return urlparse_cached(request).netloc


BY_ORIGIN: dict[str, Any] = {"DOWNLOADER": SlotByOrigin}
"""Settings that give each origin of the test web its own delays and limits, as other hosts have."""


class FollowsByItself(HTTP11DownloadHandler):
    """Follows redirects as a browser does, so the response comes from the target."""

    async def download_request(self, request: Request) -> Response:
        response = await super().download_request(request)
        if location := response.headers.get("Location"):
            target = response.urljoin(location.decode())
            return (await super().download_request(request.replace(url=target))).replace(request=request)
        return response


@dataclass
class Crawl:
    """The results of a crawl: how each request ended, the log and the stats."""

    stats: dict[str, Any] = field(default_factory=dict)
    pages: dict[str, Response] = field(default_factory=dict)
    """Requested URL -> its response."""
    refused: dict[str, ForbiddenByRobots] = field(default_factory=dict)
    failed: dict[str, BaseException] = field(default_factory=dict)
    log: list[logging.LogRecord] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)
    """What the test's own spider has recorded, in most tests one value for each request that ended."""
    crawler: Crawler = field(init=False)

    @property
    def downloader(self) -> Downloader:
        assert self.crawler.engine is not None
        return self.crawler.engine.downloader

    def messages(self, level: int = logging.WARNING, logger: str = "") -> list[str]:
        """Log messages at that level and above. Leaves out `Nothing was crawled...`, which most tests cause, because
        they request one page."""
        messages = (r.getMessage() for r in self.log if r.levelno >= level and r.name.startswith(logger))
        return [message for message in messages if not is_about_denial(message)]

    @property
    def denied(self) -> list[str]:
        return [r.getMessage() for r in self.log if is_about_denial(r.getMessage())]

    @property
    def tracebacks(self) -> list[str]:
        return [r.getMessage() for r in self.log if r.exc_info]


class CrawlSpider(Spider):
    """Requests what it is given, and records how each request ends."""

    name = "crawl"
    custom_settings: dict[str, Any] | None = None

    def __init__(self, requests: Iterable[str | Request] = (), crawl: Crawl | None = None, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.requests = list(requests)
        self.crawl = crawl if crawl is not None else Crawl()

    async def start(self) -> AsyncIterator[Request]:
        for request in self.requests:
            yield self.prepared(request)

    def prepared(self, request: str | Request) -> Request:
        request = Request(request, dont_filter=True) if isinstance(request, str) else request
        return request.replace(
            callback=request.callback or self.parse,
            errback=request.errback or self.failed,
            meta={**request.meta, "asked": request.url, "handle_httpstatus_all": True},
        )

    def parse(self, response: Response, **_: Any) -> Any:
        self.crawl.pages[response.meta["asked"]] = response

    def failed(self, failure: Any) -> Any:
        error, asked = failure.value, failure.request.meta["asked"]
        if isinstance(error, ForbiddenByRobots):
            self.crawl.refused[asked] = error
        else:
            self.crawl.failed[asked] = error


def close_spider(spider: Spider, reason: str) -> None:
    """Close the spider. `start` calls this, because Scrapy before 2.18 ignores a CloseSpider that `start` raises."""
    assert spider.crawler.engine is not None
    deferred_from_coro(spider.crawler.engine.close_spider_async(reason=reason))


class Releases(CrawlSpider):
    """Lets the dead origins answer when all healthy pages have been fetched."""

    dead: Iterable[Site] = ()
    healthy = 0

    def parse(self, response: Response, **_: Any) -> None:
        super().parse(response)
        if len(self.crawl.pages) == self.healthy:
            assert self.crawl.refused == self.crawl.failed == {}
            self.crawl.ends.append("no stall")
            for site in self.dead:
                site.web.release(site)


async def crawl(
    *requests: str | Request,
    settings: dict[str, Any] | None = None,
    spider: type[CrawlSpider] = CrawlSpider,
    prepare: Callable[[Crawler], None] | None = None,
    robots: dict[str, Any] | None = None,
    **attributes: Any,
) -> Crawl:
    """Crawl the requests in this process. `robots`: settings that make it obey robots.txt; default: our add-on."""
    result = Crawl()
    handler = _Records(result.log)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        # Not by a CrawlerRunner, which would copy all settings once more for its list of spiders.
        result.crawler = Crawler(spider, {**QUIET, **(ADDON if robots is None else robots), **(settings or {})})
        if prepare is not None:
            prepare(result.crawler)
        await result.crawler.crawl(requests=requests, crawl=result, **attributes)
    finally:
        root.removeHandler(handler)
        if not any(isinstance(other, _Records) for other in root.handlers):
            root.setLevel(logging.WARNING)  # later tests need not record everything
    result.stats = result.crawler.stats.get_stats()
    ours = [stat for stat in result.stats if stat.startswith(("rep/", "robotstxt/"))]
    lines = [record for record in result.log if record.name == "scrapy_rep" and record.filename not in WITHOUT_SPIDER]
    assert [line.getMessage() for line in lines if not hasattr(line, "spider")] == [], "each line names its spider"
    assert [stat for stat in ours if not LISTED.fullmatch(stat)] == [], "these are not in docs/stats.md"
    return result


async def outcome(site: Site, **more: Any) -> tuple[Crawl, AccessResult]:
    """Crawl a page that RULES allow and a page that RULES forbid. Return the crawl and its access result."""
    result = await crawl(site.url("/"), site.url("/private"), **more)
    assert result.tracebacks == []
    (access,) = (a for a in AccessResult if f"rep/access/{a.value}" in result.stats)
    fetched = {url.removeprefix(site.origin) for url in (*result.pages, *result.failed)}
    expected = {
        AccessResult.SUCCESS: {"/"},
        AccessResult.UNAVAILABLE: {"/", "/private"},
        AccessResult.RESTRICTED: set(),
        AccessResult.UNREACHABLE: set(),
    }
    assert fetched == expected[access]
    assert len(fetched) + len(result.refused) == 2
    return result, access


class _Records(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__(logging.DEBUG)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


class Time:
    """A clock for a test: seconds since the epoch. The test moves it, and so does each sleep."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def with_clock(time: Time) -> dict[str, Any]:
    """Settings that replace Scrapy's own middleware by ours, with this clock."""

    class ClockedMiddleware(RepMiddleware):
        clock = staticmethod(time)
        monotonic = staticmethod(time)
        sleep = staticmethod(time.sleep)

    return {**ADDON, "DOWNLOADER_MIDDLEWARES": {RepMiddleware: None, ClockedMiddleware: 100}}


def is_fetching(crawler: Crawler) -> bool:
    return bool(RepMiddleware.of(crawler)._single_flight._fetches)


def in_turn(time: Time, *steps: float, note: Callable[[str], Any] = str) -> type[CrawlSpider]:
    """A spider that requests the same page again after each of these waits. `note` turns an end into a record."""

    class InTurn(CrawlSpider):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.steps = list(steps)

        async def parse(self, response: Response, **_: Any) -> AsyncIterator[Request]:
            async for request in self.next(response.request, "page"):
                yield request

        async def failed(self, failure: Any) -> AsyncIterator[Request]:
            async for request in self.next(failure.request, type(failure.value).__name__):
                yield request

        async def next(self, request: Request | None, end: str) -> AsyncIterator[Request]:
            assert request is not None
            self.crawl.ends.append(note(end))
            await sleep(0)
            # The next request must find what a fetch in the background has brought.
            while is_fetching(self.crawler):
                await sleep(0.005)
            if self.steps:
                time.now += self.steps.pop(0)
                yield request.replace(dont_filter=True)

    return InTurn
