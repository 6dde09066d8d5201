"""The resolver of a crawl, put together."""

from __future__ import annotations

from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from scrapy_rep.cache.memory import memory_and_store
from scrapy_rep.cache.origin_fetch import FetchTools
from scrapy_rep.cache.resolver import Resolver
from scrapy_rep.cache.shared_store import SharedStore
from scrapy_rep.clock import Clock
from scrapy_rep.fetching.fetcher import Fetcher
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.downloads import UncountedDownloads
from scrapy_rep.settings import RepSettings
from scrapy_rep.storage.circuit_breaker import CircuitBreaker


def resolver_of(crawler: Crawler, settings: RepSettings, downloads: UncountedDownloads, clock: Clock) -> Resolver:
    """By the crawl's settings. Raises ValueError for a wrong REP_STORAGE."""
    count = crawler.stats.inc_value
    memory, store = memory_and_store(crawler, settings)
    fetcher = Fetcher(crawler, settings, under_way=downloads.fetch, is_on_wire=downloads.is_on_wire, now=clock.now)
    shared_store = None if store is None else SharedStore(CircuitBreaker(store, count, clock.monotonic), settings)
    parsed: LocalCache[Origin, None] = LocalCache(limit=settings.memory_origins)
    tools = FetchTools(
        settings, fetcher.fetch, fetcher.slow, memory, shared_store, clock, count, crawler.signals, parsed
    )
    return Resolver(tools)
