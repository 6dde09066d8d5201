"""Looks robots.txt up for the command, in a crawl that fetches nothing else."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.commands.findings import CannotTellError, Crawl, Finding, RobotsTxtRequest
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import Urls, check_host, cure_of
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.protocol.status_policy import words_of
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import robots_response
from scrapy_rep.storage.blocking_calls import BlockingCalls
from scrapy_rep.user_agent import SPIDER_ATTRIBUTE

# What the command's spider has of the spider that `--spider` names.
_OF_THE_SPIDER = ("name", "allowed_domains", "custom_settings", "update_settings", "user_agent", SPIDER_ATTRIBUTE)

LOOK_EVERY = 0.01  # seconds, while the next URLs are read
SHOW_EVERY = 1.0  # seconds between two lines about what is awaited, on a terminal


class CommandSpider(Spider):
    """Runs a task, and fetches no page."""

    name = "robots"

    task: Callable[[Crawler], Awaitable[None]]

    async def start(self) -> AsyncIterator[Any]:
        await self.task(self.crawler)
        return
        yield  # what makes it a generator


def command_spider(model: type[Spider] | None) -> type[CommandSpider]:
    """A CommandSpider with the name and the settings of the model."""
    taken_over = {name: getattr(model, name) for name in _OF_THE_SPIDER if hasattr(model, name)}
    return type(CommandSpider.__name__, (CommandSpider,), taken_over)


class LookedUp(NamedTuple):
    """A URL whose robots.txt is being looked up."""

    origin: Origin | None
    """None for a URL without an origin, such as `data:,a`."""
    began: float
    """Monotonic seconds."""
    finding: Deferred[Finding]


class Lookup:
    """Answers by robots.txt files that are fetched as a crawl would fetch them."""

    max_waiting = 10_000
    """Answers that may wait for a robots.txt, or for the answers before them: they are written in the URLs' order."""

    def __init__(self, urls: Urls, output: Output, crawl: Crawl) -> None:
        self._urls = urls
        self._output = output
        self._crawl = crawl
        self._waiting: deque[Finding | LookedUp | str] = deque()
        self._looking_up: set[Origin | None] = set()
        self._requests: defaultdict[Request, list[RobotsTxtRequest]] = defaultdict(list)

    async def run(self, crawler: Crawler) -> None:
        """Raises ValueError if the project has switched the middleware off."""
        self._gate = RepMiddleware.of(crawler).gate
        crawler.signals.connect(self._robots_response, signal=robots_response)
        showing = create_looping_call(self._show_waiting)
        showing.start(SHOW_EVERY, now=False)
        try:
            await self.answer_all()
        finally:
            showing.stop()

    async def answer_all(self) -> None:
        lists, thread = iter(self._urls), BlockingCalls()
        while not self._output.is_closed:
            reading = deferred_from_coro(thread.run(next, lists, None))
            while not reading.called:
                before = len(self._waiting)
                await self._write(self.max_waiting)
                if len(self._waiting) < before:
                    self._output.flush()
                await sleep(LOOK_EVERY)
            urls = await maybe_deferred_to_future(reading)
            if urls is None:
                break
            for url in urls:
                # A URL whose origin is being looked up for a URL before it waits until its turn comes.
                self._waiting.append(url if Origin.of(url) in self._looking_up else self._begun(url))
                await self._write(self.max_waiting)
            self._output.flush()
        thread.close()
        await self._write(0)
        self._output.finish()

    async def _write(self, max_waiting: int) -> None:
        """Write the answers that are there, in their order; wait until at most `max_waiting` are left."""
        waiting = self._waiting
        while waiting:
            first = waiting[0]
            if isinstance(first, str):
                first = waiting[0] = self._begun(first)
            if isinstance(first, LookedUp):
                if not first.finding.called:
                    if len(waiting) <= max_waiting:
                        return
                    self._output.flush()
                self._looking_up.discard(first.origin)
                first = await maybe_deferred_to_future(first.finding)
            self._output.write(first)
            waiting.popleft()

    def _show_waiting(self) -> None:
        first = self._waiting[0] if self._waiting else None
        if isinstance(first, LookedUp) and not first.finding.called:
            self._output.show_waiting(str(first.origin), time.monotonic() - first.began)

    def _robots_response(self, url: str, answer: Answer, request: Request) -> None:
        self._requests[request].append(RobotsTxtRequest(url, words_of(answer) or "no answer", answer.location))

    def _begun(self, url: str) -> Finding | LookedUp:
        """The URL's finding if its robots.txt is known, else the lookup that begins now."""
        try:
            request = Request(url)
            check_host(url)
        except ValueError as exc:
            return Finding(url, self._crawl, f"{exc}{cure_of(url)}")
        policy = self._known(request)
        if policy is not None:
            verdict = self._verdict(policy, request.url)
            return Finding(url, self._crawl, verdict=verdict, policy=policy, now=self._gate.now())
        origin = Origin.of(request.url)
        self._looking_up.add(origin)
        return looked_up(origin, self._look_up(url, request))

    def _known(self, request: Request) -> RobotsPolicy | None:
        """The policy that applies; None if none does, or robots.txt has to be looked up first."""
        return self._gate.peek(request)

    async def _look_up(self, url: str, request: Request) -> Finding:
        try:
            policy = await self._policy(request)
        except (CannotTellError, IgnoreRequest) as exc:
            return Finding(url, self._crawl, str(exc))
        verdict = self._gate.judge(request, None) if policy is None else self._verdict(policy, request.url)
        requests, now = tuple(self._requests.pop(request, ())), self._gate.now()
        return Finding(url, self._crawl, verdict=verdict, policy=policy, requests=requests, now=now)

    def _verdict(self, policy: RobotsPolicy, url: str) -> Verdict:
        return policy.verdict(url, self._crawl.tokens, self._crawl.purposes)

    async def _policy(self, request: Request) -> RobotsPolicy | None:
        """None if no robots.txt applies. Raises CannotTellError or IgnoreRequest."""
        return await self._gate.wait_for_policy(request)


def looked_up(origin: Origin | None, finding: Coroutine[Any, Any, Finding]) -> LookedUp:
    return LookedUp(origin, time.monotonic(), deferred_from_coro(finding))
