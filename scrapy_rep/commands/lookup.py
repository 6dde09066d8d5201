"""Looks robots.txt up for the command, in a crawl that fetches nothing else."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredLock

from scrapy_rep.commands.findings import CannotTellError, Crawl, Finding, RobotsTxtRequest
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import check_host, cure_of
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.status_policy import words_of
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import robots_response
from scrapy_rep.storage.blocking_calls import BlockingCalls
from scrapy_rep.user_agent import SPIDER_ATTRIBUTE

# What the command's spider has of the spider that `--spider` names.
_OF_THE_SPIDER = ("name", "allowed_domains", "custom_settings", "update_settings", "user_agent", SPIDER_ATTRIBUTE)

MAX_UNWRITTEN = 10_000  # URLs that may wait for a robots.txt, or for the answers before them
SHOW_EVERY = 1.0  # seconds between two lines about what is awaited, on a terminal


class CommandSpider(Spider):
    """Looks robots.txt up, and fetches no page."""

    name = "robots"

    lookup: Lookup

    async def start(self) -> AsyncIterator[Any]:
        try:
            await self.lookup.run(self.crawler)
        except ValueError as exc:
            self.lookup.error = exc
        return
        yield  # what makes it a generator


def command_spider(model: type[Spider] | None) -> type[CommandSpider]:
    """A CommandSpider with the name and the settings of the model."""
    taken_over = {name: getattr(model, name) for name in _OF_THE_SPIDER if hasattr(model, name)}
    return type(CommandSpider.__name__, (CommandSpider,), taken_over)


class Lookup:
    """Answers lists of URLs by robots.txt files that are fetched as a crawl would fetch them."""

    error: ValueError | None = None
    """What has ended it early."""

    def __init__(self, lists: Iterable[list[str]], output: Output, crawl: Crawl) -> None:
        self._lists = lists
        self._output = output
        self._crawl = crawl
        self._unwritten = 0
        self._requests: defaultdict[Request, list[RobotsTxtRequest]] = defaultdict(list)

    async def run(self, crawler: Crawler) -> None:
        """Raises ValueError if the project has switched the middleware off."""
        self._gate = RepMiddleware.of(crawler).gate
        crawler.signals.connect(self._robots_response, signal=robots_response)
        await self.answer_all()

    async def answer_all(self) -> None:
        """In the URLs' order, while the next URLs are read and their lookups begin."""
        lists, thread, turn = iter(self._lists), BlockingCalls(), DeferredLock()
        writing: deque[Deferred[None]] = deque()
        try:
            while not self._output.is_closed and (urls := await thread.run(next, lists, None)) is not None:
                self._unwritten += len(urls)
                begun: dict[Origin | None, Finding | Deferred[Finding]] = {}
                for url in urls:
                    # Of each origin the first alone: the lookup is over when the turn of its other URLs comes.
                    if (origin := Origin.of(url)) not in begun:
                        begun[origin] = self._begin(url)
                writing.append(turn.run(lambda *args: deferred_from_coro(self._write(*args)), urls, begun))
                # The Deferred of a list is called when its turn comes, and paused until its URLs are written.
                while writing and (self._unwritten > MAX_UNWRITTEN or (writing[0].called and not writing[0].paused)):
                    await maybe_deferred_to_future(writing.popleft())
        finally:
            thread.close()
            for each in writing:
                await maybe_deferred_to_future(each)
        self._output.finish()

    async def _write(self, urls: list[str], begun: dict[Origin | None, Finding | Deferred[Finding]]) -> None:
        # Else each list that waits for the one before would be written inside its call: thousands of calls.
        await sleep(0)
        for url in urls:
            if self._output.is_closed:
                return
            origin = Origin.of(url)
            finding = begun.pop(origin, None) or self._begin(url)
            if isinstance(finding, Deferred):
                self._output.flush()
                showing = create_looping_call(self._output.show_waiting, str(origin), time.monotonic())
                showing.start(SHOW_EVERY, now=False)
                try:
                    finding = await maybe_deferred_to_future(finding)
                finally:
                    showing.stop()
            self._output.write(finding)
            self._unwritten -= 1
        self._output.flush()

    def _robots_response(self, url: str, answer: Answer, request: Request) -> None:
        self._requests[request].append(RobotsTxtRequest(url, words_of(answer) or "no answer", answer.location))

    def _begin(self, url: str) -> Finding | Deferred[Finding]:
        """The URL's finding if its robots.txt is known, else the lookup that begins now."""
        try:
            request = Request(url)
            check_host(url)
        except ValueError as exc:
            return Finding(url, self._crawl, f"{exc}{cure_of(url)}")
        policy = self._known(request)
        if policy is not None:
            return self._judged(request, url, policy)
        return deferred_from_coro(self._look_up(url, request))

    def _judged(self, request: Request, url: str, policy: RobotsPolicy) -> Finding:
        verdict, requests = self._crawl.verdict(policy, request.url), tuple(self._requests.pop(request, ()))
        return Finding(url, self._crawl, verdict=verdict, policy=policy, requests=requests, now=self._gate.now())

    async def _look_up(self, url: str, request: Request) -> Finding:
        try:
            policy = await self._policy(request)
        except (CannotTellError, IgnoreRequest) as exc:
            return Finding(url, self._crawl, str(exc))
        if policy is None:
            return Finding(url, self._crawl, verdict=self._gate.judge(request, None))
        return self._judged(request, url, policy)

    def _known(self, request: Request) -> RobotsPolicy | None:
        """The policy that applies; None if none does, or robots.txt has to be looked up first."""
        return self._gate.peek(request)

    async def _policy(self, request: Request) -> RobotsPolicy | None:
        """None if no robots.txt applies. Raises CannotTellError or IgnoreRequest."""
        return await self._gate.wait_for_policy(request)
