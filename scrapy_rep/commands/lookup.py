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
from scrapy_rep.deferreds import OwnThread
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.signals import robots_response
from scrapy_rep.user_agent import SPIDER_ATTRIBUTE

# The attributes that the command's spider copies from the spider of `--spider`.
COPIED_ATTRIBUTES = ("name", "allowed_domains", "custom_settings", "update_settings", "user_agent", SPIDER_ATTRIBUTE)

MAX_UNWRITTEN = 10_000  # reading pauses while more findings than this are still to be written
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


class Lookup:
    """Judges lists of URLs, and writes the findings. Each robots.txt is fetched as a crawl would fetch it."""

    error: ValueError | None = None
    """The error that ended the lookup early; None if there was no error."""

    def __init__(self, lists: Iterable[list[str]], output: Output, profile: CrawlerProfile) -> None:
        self._lists = lists
        self._output = output
        self._profile = profile
        self._begun: DeferredQueue[list[tuple[str, Deferred[Finding] | None]] | None] = DeferredQueue()
        """The lists that have been read: each URL, and its lookup if this has begun. After the last list, the queue has
        the value None."""
        self._unwritten = 0
        self._answers: defaultdict[Request, list[Answer]] = defaultdict(list)

    async def run(self, crawler: Crawler) -> None:
        """Write the findings. Raises ValueError with the reason if this is impossible."""
        self._gate = RepMiddleware.of(crawler).gate
        crawler.signals.connect(self._robots_response, signal=robots_response)
        await self.write_findings()

    def _robots_response(self, answer: Answer, request: Request) -> None:
        self._answers[request].append(answer)

    async def write_findings(self) -> None:
        """Write the findings in the order of the URLs. At the same time, read more URLs and begin their lookups."""
        reading = deferred_from_coro(self._begin_lists())
        try:
            while (begun := await maybe_deferred_to_future(self._begun.get())) is not None:
                for url, lookup in begun:
                    if self._output.is_closed:
                        break
                    self._output.write(await (self._find(url) if lookup is None else self._result(lookup, url)))
                    self._unwritten -= 1
                self._output.flush()
        finally:
            await maybe_deferred_to_future(reading)
        self._output.finish()

    async def _begin_lists(self) -> None:
        lists, thread = iter(self._lists), OwnThread()
        try:
            while not self._output.is_closed and (urls := await thread.run(next, lists, None)) is not None:
                # Look up only the first URL of each origin now. The others follow when its robots.txt is known.
                begun, origins = [], set()
                for url in urls:
                    origin = Origin.of(url)
                    begun.append((url, None if origin in origins else deferred_from_coro(self._find(url))))
                    origins.add(origin)
                self._begun.put(begun)
                self._unwritten += len(urls)
                while self._unwritten > MAX_UNWRITTEN and not self._output.is_closed:
                    await sleep(LOOK_EVERY)
        finally:
            thread.close()
            self._begun.put(None)

    async def _result(self, lookup: Deferred[Finding], url: str) -> Finding:
        """Return the result of the URL's lookup. On a terminal, show that the command waits."""
        self._output.flush()
        showing = create_looping_call(self._output.show_waiting, str(Origin.of(url)), time.monotonic())
        showing.start(SHOW_EVERY, now=False)
        try:
            return await maybe_deferred_to_future(lookup)
        finally:
            showing.stop()

    async def _find(self, url: str) -> Finding:
        try:
            request = Request(url)
            check_host(url)
        except ValueError as exc:
            return Finding(url, self._profile, f"{exc}{cure_of(url)}")
        try:
            policy = await self._policy_for(request)
        except (CannotTellError, IgnoreRequest) as exc:
            return Finding(url, self._profile, str(exc))
        if policy is None:
            return Finding(url, self._profile, verdict=self._gate.judge(request, None))
        verdict, answers = self._profile.verdict(policy, request.url), tuple(self._answers.pop(request, ()))
        return Finding(url, self._profile, verdict=verdict, policy=policy, answers=answers, now=self._gate.now())

    async def _policy_for(self, request: Request) -> RobotsPolicy | None:
        """Return the policy; None if no robots.txt applies. Raises CannotTellError or IgnoreRequest if unknown."""
        return await self._gate.wait_for_policy(request)
