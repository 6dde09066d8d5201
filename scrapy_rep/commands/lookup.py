"""Looks up the robots.txt of URLs in a crawl without pages. The robots.txt is fetched as a crawl would fetch it."""

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredQueue

from scrapy_rep.commands.compare import compared, skips_builtin
from scrapy_rep.commands.findings import CrawlerProfile, Finding
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import check_host, cure_of, with_scheme
from scrapy_rep.deferreds import OwnThread
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.builtin_robotstxt import BuiltinMiddleware
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import robots_response

MAX_UNWRITTEN = 10_000  # reading pauses while more findings than this are still to be written
LOOK_EVERY = 0.01  # seconds between two checks whether reading can go on
SHOW_EVERY = 1.0  # seconds between two progress lines on a terminal, while a robots.txt is awaited


class CommandSpider(Spider):
    """The spider of the command's crawl. It runs a `Lookup` and requests no page.

    With `--spider`, it is also a subclass of that spider, so middlewares find its attributes and its settings.
    """

    name = "robots"
    closed = None  # the spider's own method may report a crawl, and there was none
    command_lookup: "Lookup"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, command_lookup: Any = None, **kwargs: Any) -> Any:
        """Raises ValueError if an argument is missing or unknown."""
        try:
            spider = super().from_crawler(crawler, *args, **kwargs)
        except TypeError as exc:
            raise ValueError(f"--spider {cls.name!r}: {exc}; give its arguments as in -a NAME=VALUE") from exc
        spider.command_lookup = command_lookup
        return spider

    async def start(self) -> AsyncIterator[Any]:
        try:
            await self.command_lookup.run(self.crawler)
        except ValueError as exc:
            self.command_lookup.errors.append(exc)
        # A spider that reads a queue (scrapy-redis) would start at `spider_idle`, and keep the crawl open.
        self.crawler.signals.disconnect_all(signals.spider_idle)
        return
        yield  # makes this method a generator


class Lookup:
    """Judges lists of URLs, and writes the findings. Each robots.txt is fetched as a crawl would fetch it."""

    def __init__(
        self, lists: Iterator[list[str]], output: Output, profile: CrawlerProfile, *, is_comparing: bool
    ) -> None:
        """`is_comparing`: also ask Scrapy's own middleware, which fetches each robots.txt itself."""
        self.errors: list[Any] = []
        """The exceptions that ended the lookup, or the crawl."""
        self._lists = lists
        self._output = output
        self._profile = profile
        self._is_comparing = is_comparing
        self._begun: DeferredQueue[list[tuple[str, Deferred[Finding] | None]] | None] = DeferredQueue()
        """The lists that have been read: each URL, and its lookup if this has begun. The last value is None, or the
        error that ended the reading."""
        self._unwritten = 0
        self._answers: defaultdict[Request, list[Answer]] = defaultdict(list)

    async def run(self, crawler: Crawler) -> None:
        """Write the findings in the order of the URLs. At the same time, read more URLs and begin their lookups.

        Raises ValueError with the reason if this is impossible.
        """
        self._gate = RepMiddleware.of(crawler).gate
        self._profile = replace(self._profile, tokens=self._gate.user_agent.product_tokens)
        self._builtin = BuiltinMiddleware.from_crawler(crawler) if self._is_comparing else None
        crawler.signals.connect(self._robots_response, signal=robots_response)
        reading = deferred_from_coro(self._begin_lists()).addBoth(self._begun.put)
        while not self._output.is_closed and (begun := await maybe_deferred_to_future(self._begun.get())) is not None:
            for url, lookup in begun:
                self._output.write(await (self._find(url) if lookup is None else self._result(lookup, url)))
                if self._output.is_closed:
                    break
            self._unwritten -= len(begun)
            self._output.flush()
        reading.cancel()  # if standard output is closed
        self._output.finish()

    def _robots_response(self, answer: Answer, request: Request) -> None:
        self._answers[request].append(answer)

    async def _begin_lists(self) -> None:
        thread = OwnThread()  # a read of standard input may take for ever, and the process ends nevertheless
        while (urls := await thread.run(next, self._lists, None)) is not None:
            # Look up only the first URL of each origin now. The others follow when its robots.txt is known.
            first: dict[Origin | None, str] = {}
            for url in urls:
                first.setdefault(Origin.of(with_scheme(url)), url)
            lookups = {url: deferred_from_coro(self._find(url)) for url in first.values()}
            self._begun.put([(url, lookups.pop(url, None)) for url in urls])
            self._unwritten += len(urls)
            while self._unwritten > MAX_UNWRITTEN:
                await sleep(LOOK_EVERY)

    async def _result(self, lookup: Deferred[Finding], url: str) -> Finding:
        """Return the result of the URL's lookup. On a terminal, show that the command waits."""
        self._output.flush()
        showing = create_looping_call(self._output.show_waiting, str(Origin.of(with_scheme(url))), time.monotonic())
        showing.start(SHOW_EVERY, now=False)
        try:
            return await maybe_deferred_to_future(lookup)
        finally:
            showing.stop()

    async def _find(self, url: str) -> Finding:
        finding = Finding(url, self._profile)
        try:
            request = Request(finding.judged_url)
            check_host(finding.judged_url)
            policy = await self._gate.wait_for_policy(request)
        except ValueError as exc:
            return replace(finding, error=f"{exc}{cure_of(url)}")
        except IgnoreRequest as exc:
            return replace(finding, error=str(exc))
        if policy is not None and policy.access is AccessResult.UNREACHABLE and policy.entry.last.is_fault:
            reason = policy.entry.last.reason
            error = f"robots.txt could not be fetched, because a component of the crawl failed: {reason}"
            return replace(finding, error=error)
        verdict, answers = self._gate.verdict_on(request, policy), tuple(self._answers.pop(request, ()))
        if policy is not None:
            verdict = self._profile.with_usage(verdict, policy.robots, request.url)
        finding = replace(finding, verdict=verdict, policy=policy, answers=answers, now=self._gate.now())
        if self._builtin is None:
            return finding
        return compared(finding, None if skips_builtin(finding) else await self._builtin.answer(request))
