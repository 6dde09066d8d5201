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
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from scrapy_rep.commands.findings import Finding, Findings, Hop
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.origin_info import origin_info
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.entry import Entry, decoded, is_judged_by
from scrapy_rep.protocol.lifecycle import DAY, Refetch, RobotsPolicy, policy_at
from scrapy_rep.protocol.origin import WITHOUT_ROBOTS, Origin
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.patterns import is_robots_txt
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_response
from scrapy_rep.storage import Storage, forget, storage_of, stored
from scrapy_rep.storage.base import without_password
from scrapy_rep.storage.memory import MemoryStorage
from scrapy_rep.user_agent import SPIDER_ATTRIBUTE, UserAgent

logger = logging.getLogger("scrapy_rep")

# What a request takes over from the spider that makes it.
_OF_THE_SPIDER = ("name", "custom_settings", "update_settings", "user_agent", SPIDER_ATTRIBUTE)
_INSTEAD = "no answer"


class Trace:
    """The hops to each robots.txt, by the request that needed it."""

    def __init__(self, crawler: Crawler) -> None:
        self.hops: defaultdict[Request, list[Hop]] = defaultdict(list)
        crawler.signals.connect(self._answered, signal=robots_response)

    def _answered(self, url: str, answer: Answer, request: Request) -> None:
        words = f"HTTP {answer.status}" if answer.status is not None else answer.reason or _INSTEAD
        self.hops[request].append(Hop(url, words, answer.location))


class LookupSpider(Spider):
    """Asks the middleware about each URL, and fetches none."""

    name = "robots"

    def __init__(self, urls: list[str], findings: Findings) -> None:
        super().__init__()
        self.urls = urls
        self._findings = findings

    async def start(self) -> AsyncIterator[Any]:
        middleware = self.crawler.get_downloader_middleware(RepMiddleware)
        if middleware is None:
            raise ValueError("scrapy_rep.RepMiddleware is off by this project's ADDONS or DOWNLOADER_MIDDLEWARES")
        self._findings += await self.look(middleware)
        self._findings.are_complete = True
        return
        yield  # what makes it a generator

    async def look(self, middleware: RepMiddleware) -> list[Finding]:
        """All at once: an origin that hangs holds up no other."""
        trace = Trace(self.crawler)
        looking: Any = DeferredList([deferred_from_coro(self._look(middleware, trace, url)) for url in self.urls])
        return [finding for _success, finding in await maybe_deferred_to_future(looking)]

    async def _look(self, middleware: RepMiddleware, trace: Trace, url: str) -> Finding:
        try:
            request = Request(url)
            policy = await middleware.policy(request)
        except ValueError as exc:
            return Finding(url, error=f"{exc}{cure_of(url)}")
        except IgnoreRequest as exc:
            return Finding(url, error=str(exc))
        if policy is None:
            return Finding(url, passes=why_it_passes(request.url))
        return self.finding(middleware, request, url, policy, tuple(trace.hops[request]))

    def finding(
        self, middleware: RepMiddleware, request: Request, url: str, policy: RobotsPolicy, hops: tuple[Hop, ...] = ()
    ) -> Finding:
        """By what is known of the URL's origin."""
        tokens, settings = middleware.product_tokens(request), RepSettings.read(self.crawler.settings)
        return Finding(
            url,
            tokens=tokens,
            verdict=policy.verdict(request.url, tokens),
            info=origin_info(policy),
            hops=hops,
            now=middleware.now(),
            status_policy=settings.status_policy,
            crawl_delay_max=settings.crawl_delay_max,
        )


class StoredSpider(LookupSpider):
    """Judges by what is stored; without URLs, lists that."""

    async def look(self, middleware: RepMiddleware) -> list[Finding]:
        self._settings = RepSettings.read(self.crawler.settings)
        self._now = middleware.now()
        storage = storage_of(self.crawler)
        if isinstance(storage, MemoryStorage):
            return self._closed_to_us("nothing is kept there from one crawl to the next")
        try:
            return await self.look_into(storage, middleware)
        except Exception as exc:  # noqa: BLE001 - each storage's library has errors of its own
            return self._closed_to_us(str(exc))
        finally:
            await storage.close()

    def _closed_to_us(self, why: str) -> list[Finding]:
        where = without_password(self._settings.storage)
        error = f"REP_STORAGE ({where}) can't be looked into: {why}"
        return [Finding(url, error=error) for url in self.urls or [where]]

    async def look_into(self, storage: Storage, middleware: RepMiddleware) -> list[Finding]:
        if not self.urls:
            return [self._listed(held.origin, held.entry) async for held in stored(storage)]
        return [await self._judged(storage, middleware, url) for url in self.urls]

    def _listed(self, origin: str, entry: Entry | None) -> Finding:
        if entry is None:
            return Finding(origin, unreadable=True)
        return Finding(origin, info=origin_info(self._policy(entry)), now=self._now)

    async def _judged(self, storage: Storage, middleware: RepMiddleware, url: str) -> Finding:
        try:
            request = Request(url)
        except ValueError as exc:
            return Finding(url, error=f"{exc}{cure_of(url)}")
        origin = middleware.applicable_origin(request)
        if origin is None:
            return Finding(url, passes=why_it_passes(request.url))
        entry = await self._entry(storage, origin)
        if entry is None:
            return Finding(url, error=f"nothing is stored of {origin} that this crawler could use")
        policy = self._policy(entry)
        if policy.refetch is Refetch.FIRST:
            return Finding(url, error=f"what is stored of {origin} is past its time: a crawl would ask for it anew")
        return self.finding(middleware, request, url, policy)

    async def _entry(self, storage: Storage, origin: Origin) -> Entry | None:
        octets = await storage.get(str(origin))
        entry = None if octets is None else decoded(octets, origin.robots_url, self._settings.body_limit)
        return entry if entry is not None and is_judged_by(entry, self._settings.status_policy) else None

    def _policy(self, entry: Entry) -> RobotsPolicy:
        return policy_at(entry, self._now, self._settings.unreachable_days * DAY)


class ForgettingSpider(StoredSpider):
    """Forgets what is stored of the URLs' origins."""

    async def look_into(self, storage: Storage, middleware: RepMiddleware) -> list[Finding]:  # noqa: ARG002 - as above
        return [await self._forgotten(storage, url) for url in self.urls]

    @staticmethod
    async def _forgotten(storage: Storage, url: str) -> Finding:
        try:
            return Finding(url, forgotten=await forget(storage, url))
        except ValueError as exc:
            return Finding(url, error=str(exc))


def cure_of(url: str) -> str:
    """What to give instead of what is no URL, to stand behind the error; empty where nobody could guess."""
    if url.startswith("/"):
        return "; give a whole URL; with --file a path is enough"
    return "" if ":" in url.partition("/")[0] else f"; did you mean https://{url}?"


def why_it_passes(url: str) -> str:
    """Why no robots.txt holds for a URL of which the middleware said so."""
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
