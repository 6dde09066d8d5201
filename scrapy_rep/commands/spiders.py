"""Looks robots.txt up for the command: in a crawl that fetches nothing else, or in what is stored."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.cache.memory import Memory
from scrapy_rep.commands.findings import Crawl, Finding, Hop
from scrapy_rep.commands.output import Output
from scrapy_rep.commands.urls import Urls
from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.protocol.access_result import Answer
from scrapy_rep.protocol.entry import Entry, decoded, is_judged_by
from scrapy_rep.protocol.lifecycle import Refetch, RobotsPolicy, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.preferences import Purposes
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.protocol.status_policy import words_of
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import robots_response
from scrapy_rep.storage import storage_of, stored
from scrapy_rep.storage.base import without_password
from scrapy_rep.storage.memory import MemoryStorage
from scrapy_rep.user_agent import SPIDER_ATTRIBUTE

T = TypeVar("T")

# What the command's spider takes over from the one that `--spider` names.
_OF_THE_SPIDER = ("name", "allowed_domains", "custom_settings", "update_settings", "user_agent", SPIDER_ATTRIBUTE)
# URLs that Scrapy requests as they stand; to make a request of each would cost as much as all the rest.
_PLAIN_URL = re.compile(r"(https?://[a-z0-9.-]+(?::[0-9]{1,4})?/)[A-Za-z0-9._~:/?!$&'()*+,;=@-]*")

_LIKE_A_HOST = re.compile(r"[^/:]+(?::[0-9]+)?(?:/|$)")

LOOK_EVERY = 0.01  # seconds, while the next URLs are awaited


class CommandSpider(Spider):
    """Runs a task, and fetches no page."""

    name = "robots"

    task: Callable[[Crawler], Awaitable[None]]

    async def start(self) -> AsyncIterator[Any]:
        await self.task(self.crawler)
        return
        yield  # what makes it a generator


def command_spider(model: type[Spider] | None) -> type[CommandSpider]:
    """One with the name and the settings of the model."""
    taken_over = {name: getattr(model, name) for name in _OF_THE_SPIDER if hasattr(model, name)}
    return type(CommandSpider.__name__, (CommandSpider,), taken_over)


class UnknownError(Exception):
    """There is no answer for the URL. The message says why."""


class Trace:
    """The requests for robots.txt that each request has caused."""

    def __init__(self, crawler: Crawler) -> None:
        self._hops: defaultdict[Request, list[Hop]] = defaultdict(list)
        crawler.signals.connect(self._answered, signal=robots_response)

    def pop(self, request: Request) -> tuple[Hop, ...]:
        return tuple(self._hops.pop(request, ()))

    def _answered(self, url: str, answer: Answer, request: Request) -> None:
        self._hops[request].append(Hop(url, words_of(answer) or "no answer", answer.location))


class Lookup:
    """Answers by robots.txt files that are fetched as a crawl would fetch them."""

    max_waiting = 10_000
    """URLs that may wait for their robots.txt. Answers are written in the order of the URLs."""

    def __init__(self, urls: Urls, output: Output, not_obeyed: str) -> None:
        """`not_obeyed`: as of `Crawl`."""
        self._urls = urls
        self._output = output
        self._not_obeyed = not_obeyed
        # A URL waits for those before it, and is decided when its turn comes, except for the first of each origin that
        # is not known yet: that one is looked up meanwhile.
        self._waiting: deque[str | tuple[Origin | None, Deferred[Finding]]] = deque()
        self._looking_up: set[Origin | None] = set()
        # The one of the URL before, which most lists are sorted by: scheme and authority, and its policy.
        self._site = ""
        self._site_policy: RobotsPolicy

    async def run(self, crawler: Crawler) -> None:
        """Raises ValueError if the project has switched the middleware off."""
        self._middleware = RepMiddleware.of(crawler).gate
        self._settings = settings = RepSettings.read(crawler.settings)
        tokens = self._middleware.user_agent.product_tokens
        purposes = self._middleware.purposes or Purposes()
        self._crawl = Crawl(tokens, settings.status_policy, settings.crawl_delay_max, purposes, self._not_obeyed)
        self._trace = Trace(crawler)
        # The middleware's own keeps few policies parsed, for a crawl asks for most URLs of an origin in a row.
        self._policies = Memory(
            MemoryStorage(settings.memory_origins, settings.memory_octets),
            settings.memory_octets,
            settings.unreachable_for,
            settings.body_limit,
        )
        await self.answer_all()

    async def answer_all(self) -> None:
        lists = iter(self._urls)
        while not self._output.is_closed:
            while not self._urls.is_ready():
                await self._write(self.max_waiting)
                await sleep(LOOK_EVERY)
            urls = next(lists, None)
            if urls is None:
                break
            self._site = ""  # its policy is good for a while, not for ever
            for url in urls:
                if self._waiting or not self._write_known(url):
                    self._waiting.append(self._begun(url))
                    await self._write(self.max_waiting)
            self._output.flush()
            await sleep(0)
        await self._write(0)
        self._output.finish()

    async def _write(self, max_waiting: int) -> None:
        """Write the answers that are there, and wait until no more than so many URLs wait for theirs."""
        waiting = self._waiting
        while waiting:
            first = waiting[0]
            if isinstance(first, str):
                if not self._write_known(first):
                    self._output.write(await self._looked_up(first))
            else:
                origin, finding = first
                if not finding.called:
                    if len(waiting) <= max_waiting:
                        return
                    self._output.flush()
                self._output.write(await maybe_deferred_to_future(finding))
                self._looking_up.discard(origin)
            waiting.popleft()

    def _begun(self, url: str) -> str | tuple[Origin | None, Deferred[Finding]]:
        """The URL's lookup, or the URL if its origin is known or being looked up."""
        origin = Origin.of(url)
        if origin in self._looking_up or self._known(url) is not None:
            return url
        self._looking_up.add(origin)
        return origin, deferred_from_coro(self._looked_up(url))

    def _write_known(self, url: str) -> bool:
        """Write the answer; False if robots.txt has to be looked up first."""
        known = self._known(url)
        if known is None:
            return False
        requested, policy = known
        # The verdict of the rules lacks nothing that is written, and is faster.
        robots = policy.robots
        verdict = self._verdict(policy, requested) if robots is None else self._crawl.verdict(robots, requested)
        self._output.write(Finding(url, self._crawl, verdict=verdict, policy=policy, now=self._middleware.now()))
        return True

    def _known(self, url: str) -> tuple[str, RobotsPolicy] | None:
        """The URL as it would be requested, and the policy that applies; None if that has to be looked up first."""
        plain = _PLAIN_URL.fullmatch(url)
        if plain and plain[1] == self._site:
            return url, self._site_policy
        try:
            requested = url if plain else Request(url).url
        except ValueError:
            return None
        origin = Origin.of(requested)
        policy = self._policies.policy(origin, self._middleware.now()) if origin is not None else None
        if policy is None or policy.refetch is Refetch.FIRST:
            return None
        if plain:
            self._site, self._site_policy = plain[1], policy
        return requested, policy

    async def _looked_up(self, url: str) -> Finding:
        try:
            request = Request(url)
            policy = await self._policy(request)
        except ValueError as exc:
            return Finding(url, self._crawl, f"{exc}{cure_of(url)}")
        except (UnknownError, IgnoreRequest) as exc:
            return Finding(url, self._crawl, str(exc))
        verdict = self._middleware.judge(request, None) if policy is None else self._verdict(policy, request.url)
        hops, now = self._trace.pop(request), self._middleware.now()
        return Finding(url, self._crawl, verdict=verdict, policy=policy, hops=hops, now=now)

    def _verdict(self, policy: RobotsPolicy, url: str) -> Verdict:
        return policy.verdict(url, self._crawl.tokens, self._crawl.purposes)

    async def _policy(self, request: Request) -> RobotsPolicy | None:
        """None if no robots.txt applies. Raises UnknownError or IgnoreRequest if it cannot be known."""
        policy = await self._middleware.wait_for_policy(request)
        origin = Origin.of(request.url)
        if policy is not None and origin is not None:
            self._policies.put(origin, policy.entry, self._middleware.now())
        return policy


class StoredLookup(Lookup):
    """Answers by what REP_STORAGE has. Without URLs, lists that."""

    max_waiting = 0  # a store is asked for one origin after the other
    _failure = ""

    async def run(self, crawler: Crawler) -> None:
        address = RepSettings.read(crawler.settings).storage
        self._where = without_password(address)
        self._storage = storage_of(crawler)
        if isinstance(self._storage, MemoryStorage):
            self._failure = "nothing is kept there between crawls; set it to 'sqlite:robots.db', for example"
        try:
            await super().run(crawler)
        finally:
            await self._storage.close()

    async def answer_all(self) -> None:
        if self._urls.given or self._urls.file is not None:
            return await super().answer_all()
        try:
            await self._stored(self._list)
        except UnknownError as exc:
            self._output.write(Finding(self._where, self._crawl, str(exc)))
        return self._output.finish(if_empty=f"nothing is stored in {self._where}")

    async def _list(self) -> None:
        async for found in stored(self._storage):
            self._output.write(self._listed(found.origin, found.entry))
            self._output.flush()

    def _listed(self, origin: str, entry: Entry | None) -> Finding:
        """What is stored of the origin, and whether its front page is allowed."""
        if entry is None:
            error = "another version of scrapy-rep has stored it, or it is damaged"
            return Finding(origin, self._crawl, error, is_listed=True)
        now = self._middleware.now()
        policy = self._policy_at(entry, now)
        error = self._why_unusable(origin, policy)
        verdict = None if error else self._verdict(policy, origin)
        return Finding(origin, self._crawl, error, verdict=verdict, policy=policy, now=now, is_listed=True)

    async def _policy(self, request: Request) -> RobotsPolicy | None:
        origin = self._middleware.applicable_origin(request)
        if origin is None:
            return None
        entry = await self._entry(origin)
        now = self._middleware.now()
        if error := self._why_unusable(str(origin), self._policy_at(entry, now)):
            raise UnknownError(error)
        return self._policies.put(origin, entry, now)

    async def _entry(self, origin: Origin) -> Entry:
        """What is stored of the origin. Raises UnknownError."""
        octets = await self._stored(self._storage.get, str(origin))
        entry = None if octets is None else decoded(octets, origin.robots_url, self._settings.body_limit)
        if entry is None:
            raise UnknownError(f"nothing is stored of {origin}")
        return entry

    def _policy_at(self, entry: Entry, now: float) -> RobotsPolicy:
        return policy_at(entry, now, self._settings.unreachable_for)

    def _why_unusable(self, origin: str, policy: RobotsPolicy) -> str:
        """Why a crawl would not decide by what is stored; empty if it would."""
        if not is_judged_by(policy.entry, self._settings.status_policy):
            return f"what is stored of {origin} was judged by another REP_STATUS_POLICY"
        if policy.refetch is Refetch.FIRST:
            return f"what is stored of {origin} is past its time: a crawl would fetch it again"
        return ""

    async def _stored(self, method: Callable[..., Awaitable[T]], *args: str) -> T:
        """What the store's method returns. Raises UnknownError if the store cannot be used, now or before."""
        if not self._failure:
            try:
                return await method(*args)
            except Exception as exc:  # noqa: BLE001 - each storage's library has errors of its own
                self._failure = str(exc) or repr(exc)
        raise UnknownError(f"REP_STORAGE ({self._where}) can't be looked into: {self._failure}")


class Forgetting(StoredLookup):
    """Forgets what is stored of the URLs' origins; without URLs, of all origins."""

    def _known(self, url: str) -> None:  # noqa: ARG002 - as above
        return None

    async def _looked_up(self, url: str) -> Finding:
        origin = Origin.of(url)
        if origin is None:
            return Finding(url, error=f"{url!r} has no origin{cure_of(url)}")
        try:
            return Finding(url, forgotten=await self._stored(self._storage.forget, str(origin)))
        except UnknownError as exc:
            return Finding(url, error=str(exc))

    async def _list(self) -> None:
        for origin in await self._storage.origins():
            self._output.write(Finding(origin, forgotten=await self._storage.forget(origin)))


def cure_of(url: str) -> str:
    """What to give instead of what is no URL, to follow the error; empty if nobody could guess."""
    if url.startswith("/"):
        return "; give a whole URL; with --file a path is enough"
    return "" if not _LIKE_A_HOST.match(url) else f"; did you mean https://{url}?"
