"""The gate: a request passes, waits for its origin's robots.txt, or is dropped with the reason."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http.cookies import CookieJar
from scrapy.settings import default_settings
from scrapy.utils.asyncio import sleep
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.misc import load_object

from scrapy_rep.cache.memory import memory_and_store
from scrapy_rep.cache.resolver import Resolver
from scrapy_rep.cache.shared_store import SharedStore
from scrapy_rep.exceptions import ForbiddenByRobots, refusal
from scrapy_rep.exemptions import Exemptions
from scrapy_rep.extensions.crawl_delay import crawl_delay
from scrapy_rep.extensions.drop_early import drop_early
from scrapy_rep.extensions.outage_log import Outages
from scrapy_rep.extensions.report.collector import report
from scrapy_rep.extensions.robotstxt_denied import robotstxt_denied
from scrapy_rep.fetching.content_decoding import RepDecodingMiddleware
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.observers import Feature
from scrapy_rep.origin_info import origin_info
from scrapy_rep.protocol.access_result import AccessResult, Answer
from scrapy_rep.protocol.lifecycle import RobotsPolicy
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.robotstxt.patterns import ROBOTS_PATH, is_robots_txt
from scrapy_rep.protocol.robotstxt.rules import Verdict, VerdictReason
from scrapy_rep.robotparser import RepRobotParser
from scrapy_rep.scrapy_internals.parking import StoppingError, WaitingRoom
from scrapy_rep.settings import RepSettings, warn_of_unknown_names
from scrapy_rep.storage.circuit_breaker import CircuitBreaker
from scrapy_rep.text import counted
from scrapy_rep.user_agent import ProductTokens, UserAgent

logger = logging.getLogger("scrapy_rep")

FEATURES: tuple[Feature, ...] = (crawl_delay, drop_early, robotstxt_denied, report)


class RepMiddleware:
    """Drops the requests that robots.txt forbids (RFC 9309). Order 100, the built-in's."""

    clock = staticmethod(time.time)
    sleep = staticmethod(sleep)

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured("ROBOTSTXT_OBEY is False, so robots.txt is not obeyed")
        settings = RepSettings.read(crawler.settings)
        warn_of_unknown_names(crawler.settings)
        self._crawler = crawler
        self._stats = crawler.stats
        # Requests whose origin was known; a stat at the end, because to count there costs as much as all the rest.
        self._hits = 0
        self._shadow = settings.shadow
        self._exempt = Exemptions(crawler, settings.exempt)
        self._outages = Outages(settings)
        # Origins that `robots_parsed` was sent for.
        self._signalled: LocalCache[Origin, None] = LocalCache(limit=settings.memory_origins)
        self._waiting = WaitingRoom(crawler, settings.waiting_max, self._closing)
        self._fetcher = Fetcher(
            crawler,
            settings,
            under_way=self._waiting.fetch,
            is_on_wire=self._waiting.is_on_wire,
            now=self.clock,
        )
        self._resolver = self._built_resolver(settings)
        # The spider may still change until it is opened; a wrong value is to stop the start before that.
        self._agent = UserAgent(crawler.settings, crawler.spider)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)
        made = (feature(crawler, settings, self) for feature in FEATURES)
        self.observers = [observer for observer in made if observer is not None]

    def _built_resolver(self, settings: RepSettings) -> Resolver:
        count = self._stats.inc_value
        memory, store = memory_and_store(self._crawler, settings)
        return Resolver(
            settings,
            self._fetch,
            memory,
            SharedStore(CircuitBreaker(store, count, self.clock), settings) if store is not None else None,
            clock=self.clock,
            sleep=self.sleep,
            count=count,
            asked=self._asked,
            introduced=self._introduced,
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RepMiddleware:
        try:
            return cls(crawler)
        except NotConfigured as exc:
            if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
                raise
            # Scrapy would leave this middleware out and crawl what is forbidden.
            raise ValueError(
                f"{cls.__name__} cannot be built ({exc}); mend that, or set ROBOTSTXT_OBEY to False"
            ) from exc

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """Raises ForbiddenByRobots; at once where the origin is known, else once its robots.txt is."""
        if request.meta.get("dont_obey_robotstxt"):
            return None
        url = request.url
        origin = Origin.of(url)
        if origin is None or (ROBOTS_PATH in url and is_robots_txt(url)):
            return None
        policy = self._resolver.known(origin, request)
        if policy is None:
            # Only here: of an exempt origin nothing is ever known, and those that are known need not be looked up.
            return None if self._exempt.passes(origin) else self._wait(origin, request)
        self._hits += 1
        self._decide(policy, request)
        return None

    async def _wait(self, origin: Origin, request: Request) -> None:
        """The same once robots.txt has answered; IgnoreRequest where the crawl closes before."""
        self._stats.inc_value("rep/waited")
        try:
            with self._waiting.wait(request) as place:
                began = self.clock()
                policy = await self._resolver.resolve(origin, request)
                for observer in self.observers:
                    observer.waited(origin, self.clock() - began)
                self._decide(policy, request)
                await self._waiting.room(place)
        except StoppingError:
            raise self._waiting.queued.put_back(request) from None

    def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002 - Scrapy's interface
        """A request that ends in an exception leaves room for those who wait."""
        self._waiting.leaves(request)

    def _closing(self) -> None:
        self._resolver.stop()

    # For spiders.

    async def verdict(self, request: str | Request) -> Verdict:
        """Whether the URL, or the request, may be fetched, and why; waits for robots.txt as a request would.

        Its `robots_url` is None where no robots.txt holds: `data:` and the like, `dont_obey_robotstxt`, REP_EXEMPT.
        REP_SHADOW has no effect on it. Raises IgnoreRequest where the crawl closes before.
        """
        request = Request(request) if isinstance(request, str) else request
        policy = await self.policy(request)
        if policy is None:
            return Verdict(True, VerdictReason.NOT_SUBJECT, access=AccessResult.UNAVAILABLE)
        return policy.verdict(request.url, self._agent.tokens(request))

    async def policy(self, request: Request) -> RobotsPolicy | None:
        """What the request is held to; None where that is nothing. Raises IgnoreRequest where the crawl closes."""
        origin = self.held_to(request)
        if origin is None:
            return None
        try:
            known = self._resolver.known(origin, request)
            if known is not None:
                return known
            with self._waiting.watch():
                return await self._resolver.resolve(origin, request)
        except StoppingError:
            raise IgnoreRequest("The crawl closed before robots.txt had answered") from None

    def held_to(self, request: Request) -> Origin | None:
        """The origin whose robots.txt the request is held to; None where it passes."""
        url = request.url
        if request.meta.get("dont_obey_robotstxt") or (ROBOTS_PATH in url and is_robots_txt(url)):
            return None
        origin = Origin.of(url)
        return None if origin is None or self._exempt.holds(origin) else origin

    # For observers.

    def tokens(self, request: Request) -> ProductTokens:
        try:
            return self._agent.tokens(request)
        except ValueError:  # which the request itself ends in
            return self._agent.product_tokens

    def known(self, request: Request) -> RobotsPolicy | None:
        origin = self.held_to(request)
        return None if origin is None else self._resolver.known(origin, request)

    def now(self) -> float:
        return self.clock()

    def _decide(self, policy: RobotsPolicy, request: Request) -> None:
        if policy.is_stale:
            self._stats.inc_value("rep/cache/stale")
        tokens = self._agent.tokens(request)
        if policy.allows(request.url, tokens):
            return
        reason = refusal(policy.verdict(request.url, tokens), policy.entry.reason)
        self.tell(reason, request)
        if not self._shadow:
            raise reason

    def tell(self, reason: ForbiddenByRobots, request: Request) -> None:
        verdict = reason.verdict
        kind = "rule" if verdict.rule is not None else verdict.access.value
        if self._shadow:
            self._stats.inc_value("rep/shadow/forbidden")
            self._stats.inc_value(f"rep/shadow/{kind}")
        else:
            self._stats.inc_value("robotstxt/forbidden")
            self._stats.inc_value(f"rep/dropped/{kind}")
        if verdict.access is AccessResult.UNREACHABLE:
            self._outages.refused += 1
        logger.debug(
            "Would be refused: %(reason)s: %(request)s" if self._shadow else "%(reason)s: %(request)s",
            {"reason": reason, "request": request},
            extra={"spider": self._crawler.spider},
        )
        for observer in self.observers:
            observer.refused(request, reason)

    async def _fetch(self, url: str, trigger: Request, jar: CookieJar, **how: Any) -> Answer:
        answer = await self._fetcher.fetch(url, trigger, jar, **how)
        for observer in self.observers:
            observer.answered(url, answer, trigger)
        return answer

    def _asked(self, origin: Origin, policy: RobotsPolicy, cause: Request) -> None:
        self._stats.inc_value(f"rep/access/{policy.entry.access.value}")
        self._outages.met(policy, self.clock())
        for observer in self.observers:
            observer.asked(origin, origin_info(policy), cause)

    async def _introduced(self, origin: Origin, policy: RobotsPolicy, cause: Request) -> None:
        self._outages.met(policy, self.clock())
        for observer in self.observers:
            observer.introduced(origin, origin_info(policy), cause)
        if policy.robots is not None and origin not in self._signalled:
            self._signalled[origin] = None
            await self._crawler.signals.send_catch_log_async(
                signals.robots_parsed, robotparser=RepRobotParser(policy.robots), request=cause
            )

    def _spider_opened(self, spider: Spider) -> None:
        self._agent = UserAgent(self._crawler.settings, spider)
        self._agent.announce()
        self._exempt.announce()
        if self._shadow:
            logger.warning("REP_SHADOW is on: what robots.txt forbids is counted and logged, and fetched all the same")
        self._waiting.queued.remember()
        self._warn_of_misconfiguration()

    async def _spider_closed(self) -> None:
        self._resolver.stop()
        self._outages.summed_up()
        if self._hits:
            self._stats.inc_value("rep/cache/hit", self._hits)
        if self._shadow:
            logger.info(
                "REP_SHADOW: %s would have been refused; see the stats that begin with rep/shadow/",
                counted(self._stats.get_value("rep/shadow/forbidden", 0), "request"),
            )
        await self._resolver.close()

    def _warn_of_misconfiguration(self) -> None:
        builtin = self._crawler.get_downloader_middleware(RobotsTxtMiddleware)
        if builtin is not None:
            path = f"{type(builtin).__module__}.{type(builtin).__qualname__}"
            logger.warning(
                "%s obeys robots.txt beside scrapy-rep, by rules of its own: switch it off with"
                " ADDONS = {'scrapy_rep.Addon': 500}, or with DOWNLOADER_MIDDLEWARES = {'%s': None}",
                path,
                path,
            )
        parser = self._crawler.settings["ROBOTSTXT_PARSER"]
        if load_object(parser) not in {load_object(default_settings.ROBOTSTXT_PARSER), RepRobotParser}:
            logger.warning("ROBOTSTXT_PARSER (%s) is not used: scrapy-rep parses robots.txt itself; remove it", parser)
        if self._crawler.get_downloader_middleware(RepDecodingMiddleware) is None:
            logger.warning(
                "A compressed robots.txt is decoded by Scrapy, without REP_BODY_LIMIT: add"
                " 'scrapy_rep.RepDecodingMiddleware': 595 to DOWNLOADER_MIDDLEWARES, or use ADDONS"
            )
