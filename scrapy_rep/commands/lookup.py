"""Looks robots.txt up for the command, in a crawl that fetches nothing else."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredQueue

from scrapy_rep.commands.findings import CannotTellError, Crawl, Finding
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import check_host, cure_of
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.own_thread import OwnThread
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import robots_response
from scrapy_rep.user_agent import SPIDER_ATTRIBUTE

# What the command's spider has of the spider that `--spider` names.
_OF_THE_SPIDER = ("name", "allowed_domains", "custom_settings", "update_settings", "user_agent", SPIDER_ATTRIBUTE)

MAX_UNWRITTEN = 10_000  # URLs that may wait for a robots.txt, or for the answers before them
LOOK_EVERY = 0.01  # seconds
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


Lookups = dict["Origin | None", "Finding | Deferred[Finding]"]
"""By origin, of the first URL of each; None stands for URLs without one, such as `data:`."""


class Lookup:
    """Answers lists of URLs by robots.txt files that are fetched as a crawl would fetch them."""

    error: ValueError | None = None
    """What has ended it early."""

    def __init__(self, lists: Iterable[list[str]], output: Output, crawl: Crawl) -> None:
        self._lists = lists
        self._output = output
        self._crawl = crawl
        self._begun: DeferredQueue[tuple[list[str], Lookups] | None] = DeferredQueue()
        self._unwritten = 0
        self._answers: defaultdict[Request, list[Answer]] = defaultdict(list)

    async def run(self, crawler: Crawler) -> None:
        """Raises ValueError if the project has switched the middleware off."""
        self._gate = RepMiddleware.of(crawler).gate
        crawler.signals.connect(self._robots_response, signal=robots_response)
        await self.answer_all()

    async def answer_all(self) -> None:
        """In the URLs' order, while the next URLs are read and their lookups begin."""
        reading = deferred_from_coro(self._begin_lists())
        try:
            while (begun := await maybe_deferred_to_future(self._begun.get())) is not None:
                await self._write(*begun)
        finally:
            await maybe_deferred_to_future(reading)
        self._output.finish()

    async def _begin_lists(self) -> None:
        lists, thread = iter(self._lists), OwnThread()
        try:
            while not self._output.is_closed and (urls := await thread.run(next, lists, None)) is not None:
                lookups: Lookups = {}
                for url in urls:
                    # Of each origin the first alone: the lookup is over when the turn of its other URLs comes.
                    if (origin := Origin.of(url)) not in lookups:
                        lookups[origin] = self._begin(url)
                self._begun.put((urls, lookups))
                self._unwritten += len(urls)
                while self._unwritten > MAX_UNWRITTEN and not self._output.is_closed:
                    await sleep(LOOK_EVERY)
        finally:
            thread.close()
            self._begun.put(None)

    async def _write(self, urls: list[str], lookups: Lookups) -> None:
        for url in urls:
            if self._output.is_closed:
                return
            origin = Origin.of(url)
            finding = lookups.pop(origin, None) or self._begin(url)
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

    def _robots_response(self, answer: Answer, request: Request) -> None:
        self._answers[request].append(answer)

    def _begin(self, url: str) -> Finding | Deferred[Finding]:
        """The URL's finding if its robots.txt is known, else the lookup that begins now."""
        try:
            request = Request(url)
            check_host(url)
        except ValueError as exc:
            return Finding(url, self._crawl, f"{exc}{cure_of(url)}")
        policy = self._peek(request)
        if policy is not None:
            return self._judged(request, url, policy)
        return deferred_from_coro(self._look_up(url, request))

    def _judged(self, request: Request, url: str, policy: RobotsPolicy) -> Finding:
        verdict, answers = self._crawl.verdict(policy, request.url), tuple(self._answers.pop(request, ()))
        return Finding(url, self._crawl, verdict=verdict, policy=policy, answers=answers, now=self._gate.now())

    async def _look_up(self, url: str, request: Request) -> Finding:
        try:
            policy = await self._wait_for_policy(request)
        except (CannotTellError, IgnoreRequest) as exc:
            return Finding(url, self._crawl, str(exc))
        if policy is None:
            return Finding(url, self._crawl, verdict=self._gate.judge(request, None))
        return self._judged(request, url, policy)

    def _peek(self, request: Request) -> RobotsPolicy | None:
        """The policy that applies; None if none does, or robots.txt has to be looked up first."""
        return self._gate.peek(request)

    async def _wait_for_policy(self, request: Request) -> RobotsPolicy | None:
        """None if no robots.txt applies. Raises CannotTellError or IgnoreRequest."""
        return await self._gate.wait_for_policy(request)
