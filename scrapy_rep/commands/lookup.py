"""Looks up URLs for the command `scrapy robots`, in a crawl that fetches robots.txt files and no pages."""

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

from scrapy_rep.commands.findings import CannotTellError, CrawlerProfile, Finding
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

# The attributes that the command's spider copies from the spider of `--spider`.
COPIED_ATTRIBUTES = ("name", "allowed_domains", "custom_settings", "update_settings", "user_agent", SPIDER_ATTRIBUTE)

MAX_UNWRITTEN = 10_000  # URLs that have been read and not yet answered; beyond that, reading pauses
LOOK_EVERY = 0.01  # seconds between two checks whether reading can go on
SHOW_EVERY = 1.0  # seconds between two progress lines on a terminal, while a robots.txt is awaited


class CommandSpider(Spider):
    """The spider of the command's crawl. It runs a `Lookup` and requests no page."""

    name = "robots"

    lookup: Lookup

    async def start(self) -> AsyncIterator[Any]:
        try:
            await self.lookup.run(self.crawler)
        except ValueError as exc:
            self.lookup.error = exc
        return
        yield  # makes this method a generator


def command_spider(model: type[Spider] | None) -> type[CommandSpider]:
    """Return a CommandSpider class with the name, the settings and the product token of the spider class `model`."""
    taken_over = {name: getattr(model, name) for name in COPIED_ATTRIBUTES if hasattr(model, name)}
    return type(CommandSpider.__name__, (CommandSpider,), taken_over)


Begun = tuple[str, "Finding | Deferred[Finding] | None"]
"""A URL and its finding. The finding is None if its lookup has not begun."""


class Lookup:
    """Answers lists of URLs. It fetches each robots.txt as a crawl would fetch it."""

    error: ValueError | None = None
    """The error that ended the lookup early; None if there was no error."""

    def __init__(self, lists: Iterable[list[str]], output: Output, profile: CrawlerProfile) -> None:
        self._lists = lists
        self._output = output
        self._profile = profile
        self._begun: DeferredQueue[list[Begun] | None] = DeferredQueue()  # None follows the last list
        self._unwritten = 0
        self._answers: defaultdict[Request, list[Answer]] = defaultdict(list)

    async def run(self, crawler: Crawler) -> None:
        """Answer all lists. Raises ValueError if the project has disabled the middleware."""
        self._gate = RepMiddleware.of(crawler).gate
        crawler.signals.connect(self._robots_response, signal=robots_response)
        await self.answer_all()

    async def answer_all(self) -> None:
        """Write the answers in the order of the URLs. At the same time, read more URLs and begin their lookups."""
        reading = deferred_from_coro(self._begin_lists())
        try:
            while (begun := await maybe_deferred_to_future(self._begun.get())) is not None:
                for url, finding in begun:
                    if not self._output.is_closed:
                        self._output.write(await self._found(url, finding or self._begin(url)))
                    self._unwritten -= 1
                self._output.flush()
        finally:
            await maybe_deferred_to_future(reading)
        self._output.finish()

    async def _begin_lists(self) -> None:
        lists, thread = iter(self._lists), OwnThread()
        try:
            while not self._output.is_closed and (urls := await thread.run(next, lists, None)) is not None:
                begun: list[Begun] = []
                origins: set[Origin | None] = set()
                for url in urls:
                    # Look up only the first URL of each origin now. The others follow when its robots.txt is known.
                    origin = Origin.of(url)
                    begun.append((url, None if origin in origins else self._begin(url)))
                    origins.add(origin)
                self._begun.put(begun)
                self._unwritten += len(urls)
                while self._unwritten > MAX_UNWRITTEN and not self._output.is_closed:
                    await sleep(LOOK_EVERY)
        finally:
            thread.close()
            self._begun.put(None)

    async def _found(self, url: str, finding: Finding | Deferred[Finding]) -> Finding:
        """Return the finding, and wait for it if necessary."""
        if not isinstance(finding, Deferred):
            return finding
        self._output.flush()
        showing = create_looping_call(self._output.show_waiting, str(Origin.of(url)), time.monotonic())
        showing.start(SHOW_EVERY, now=False)
        try:
            return await maybe_deferred_to_future(finding)
        finally:
            showing.stop()

    def _robots_response(self, answer: Answer, request: Request) -> None:
        self._answers[request].append(answer)

    def _begin(self, url: str) -> Finding | Deferred[Finding]:
        """Return the URL's finding if its robots.txt is known; else begin a lookup and return its Deferred."""
        try:
            request = Request(url)
            check_host(url)
        except ValueError as exc:
            return Finding(url, self._profile, f"{exc}{cure_of(url)}")
        policy = self._peek(request)
        if policy is not None:
            return self._judged(request, url, policy)
        return deferred_from_coro(self._look_up(url, request))

    def _judged(self, request: Request, url: str, policy: RobotsPolicy) -> Finding:
        verdict, answers = self._profile.verdict(policy, request.url), tuple(self._answers.pop(request, ()))
        return Finding(url, self._profile, verdict=verdict, policy=policy, answers=answers, now=self._gate.now())

    async def _look_up(self, url: str, request: Request) -> Finding:
        try:
            policy = await self._wait_for_policy(request)
        except (CannotTellError, IgnoreRequest) as exc:
            return Finding(url, self._profile, str(exc))
        if policy is None:
            return Finding(url, self._profile, verdict=self._gate.judge(request, None))
        return self._judged(request, url, policy)

    def _peek(self, request: Request) -> RobotsPolicy | None:
        """Return the policy that applies; None if none applies, or if robots.txt has to be looked up first."""
        return self._gate.peek(request)

    async def _wait_for_policy(self, request: Request) -> RobotsPolicy | None:
        """Look up and return the policy that applies; None if no robots.txt applies.

        Raises CannotTellError or IgnoreRequest.
        """
        return await self._gate.wait_for_policy(request)
