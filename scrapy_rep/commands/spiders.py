"""Looking robots.txt up for the command: by a crawl of nothing else, or in a file."""

from __future__ import annotations

import logging
import sys
import traceback
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from scrapy_rep.commands.findings import Finding, Findings, Hop
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.observers import Observer
from scrapy_rep.origin_info import origin_info
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import WITHOUT_ROBOTS, Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.base import without_password
from scrapy_rep.user_agent import SPIDER_ATTRIBUTE, UserAgent

logger = logging.getLogger("scrapy_rep")

# What a request takes over from the spider that makes it.
_OF_THE_SPIDER = ("name", "custom_settings", "update_settings", "user_agent", SPIDER_ATTRIBUTE)
_INSTEAD = "no answer"


class Trace(Observer):
    """The hops to each robots.txt, by the request that caused them."""

    def __init__(self) -> None:
        self.hops: defaultdict[Request, list[Hop]] = defaultdict(list)

    def answered(self, url: str, answer: Answer, cause: Request) -> None:
        words = f"HTTP {answer.status}" if answer.status is not None else answer.reason or _INSTEAD
        self.hops[cause].append(Hop(url, words, answer.location))


class LookupSpider(Spider):
    """Asks the gate about each URL, and fetches none."""

    name = "robots"

    def __init__(self, urls: list[str], findings: Findings) -> None:
        super().__init__()
        self.urls = urls
        self._findings = findings

    async def start(self) -> AsyncIterator[Any]:
        gate = self.crawler.get_downloader_middleware(RepMiddleware)
        if gate is None:
            raise ValueError("scrapy_rep.RepMiddleware is off by this project's ADDONS or DOWNLOADER_MIDDLEWARES")
        self._findings += await self.look(gate)
        self._findings.are_complete = True
        return
        yield  # what makes it a generator

    async def look(self, gate: RepMiddleware) -> list[Finding]:
        """All at once: an origin that hangs holds up no other."""
        trace = Trace()
        gate.observers.append(trace)
        looking: Any = DeferredList([deferred_from_coro(self._look(gate, trace, url)) for url in self.urls])
        return [finding for _success, finding in await maybe_deferred_to_future(looking)]

    async def _look(self, gate: RepMiddleware, trace: Trace, url: str) -> Finding:
        try:
            request = Request(url)
            policy = await gate.policy(request)
        except ValueError as exc:
            return Finding(url, error=f"{exc}{cure_of(url)}")
        except IgnoreRequest as exc:
            return Finding(url, error=str(exc))
        if policy is None:
            return Finding(url, passes=why_it_passes(request.url))
        return self.finding(gate, request, url, policy, tuple(trace.hops[request]))

    def finding(
        self, gate: RepMiddleware, request: Request, url: str, policy: RobotsPolicy, hops: tuple[Hop, ...] = ()
    ) -> Finding:
        """By what is known of the URL's origin."""
        tokens, settings = gate.tokens(request), RepSettings.read(self.crawler.settings)
        return Finding(
            url,
            tokens=tokens,
            verdict=policy.verdict(request.url, tokens),
            facts=origin_info(policy),
            hops=hops,
            now=gate.now(),
            status_policy=settings.status_policy,
            crawl_delay_max=settings.crawl_delay_max,
        )


def cure_of(url: str) -> str:
    """What to give instead of what is no URL, to stand behind the error; empty where nobody could guess."""
    if url.startswith("/"):
        return "; give a whole URL; with --file a path is enough"
    return "" if ":" in url.partition("/")[0] else f"; did you mean https://{url}?"


def why_it_passes(url: str) -> str:
    """Why no robots.txt holds for a URL of which the gate said so."""
    if is_robots_txt(url):
        return "it is one itself"
    if url.partition(":")[0] in WITHOUT_ROBOTS:
        return "its scheme has none"
    return "it names no host that could have one" if Origin.of(url) is None else "REP_EXEMPT has its origin"


def settings_of(project: BaseSettings, model: type[Spider] | None) -> BaseSettings:
    """The settings of a crawl by that spider; the project's where there is none."""
    settings = project.copy()
    if model is not None:
        model.update_settings(settings)
    return settings


def not_obeyed(settings: BaseSettings) -> str:
    """By which setting a crawl fetches what is refused; empty where it does not. Raises ValueError for a wrong one."""
    # Scrapy's own default is False, too: the add-on is what sets it then.
    is_set = (settings.getpriority("ROBOTSTXT_OBEY") or 0) > SETTINGS_PRIORITIES["addon"]
    try:
        if is_set and not settings.getbool("ROBOTSTXT_OBEY"):
            return "ROBOTSTXT_OBEY is False"
    except ValueError:
        raise ValueError(f"ROBOTSTXT_OBEY is {settings['ROBOTSTXT_OBEY']!r}; set it to True or False") from None
    return "REP_SHADOW is True" if RepSettings.read(settings).shadow else ""


def storage_in_words(settings: BaseSettings) -> str:
    return without_password(RepSettings.read(settings).storage)


def tell_failure(crawling: Any) -> None:
    """Why a crawl did not come up. Raises the ValueError where that is a wrong setting of ours; logs anything else."""
    failure = _failure(crawling)
    if isinstance(failure, ValueError) and _is_ours(failure):
        raise failure
    if failure is not None:
        logger.error("The crawl could not start", exc_info=failure)


def _failure(crawling: Any) -> BaseException | None:
    """Of a Deferred or an asyncio.Task, as the kind of crawler process has it; neither logs it then."""
    if not isinstance(crawling, Deferred):
        return crawling.exception() if crawling.done() and not crawling.cancelled() else None
    failures: list[Failure] = []
    crawling.addErrback(failures.append)
    return failures[0].value if failures else None


def _is_ours(error: BaseException) -> bool:
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("scrapy_rep.")


def lookup_spider(model: type[Spider] | None, kind: type[LookupSpider]) -> type[LookupSpider]:
    """One of that kind that goes by the name and the settings of the model."""
    taken_over = {name: getattr(model, name) for name in _OF_THE_SPIDER if hasattr(model, name)}
    return type(kind.__name__, (kind,), taken_over)


def judged_by_file(urls: list[str], file: str, settings: BaseSettings, model: type[Spider] | None) -> Findings:
    """By a robots.txt at hand, `-` for standard input. Of a URL, the path alone may be given."""
    rep_settings = RepSettings.read(settings)
    tokens = UserAgent(settings, lookup_spider(model, LookupSpider)(urls, Findings())).product_tokens
    try:
        body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as exc:
        return Findings.of(Finding(url, error=str(exc)) for url in urls)
    robots = RobotsTxt.parse(body, rep_settings.body_limit)
    return Findings.of(
        Finding(
            url,
            tokens=tokens,
            verdict=robots.verdict(url, tokens),
            file=robots,
            file_name="standard input" if file == "-" else file,
            crawl_delay_max=rep_settings.crawl_delay_max,
        )
        for url in urls
    )
