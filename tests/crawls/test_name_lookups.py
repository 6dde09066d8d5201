"""Name look-ups share a few threads. A robots.txt that times out while look-ups wait for one is asked for again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from crawling import crawl
from installed_scrapy import HANDLERS
from pytest_twisted import ensureDeferred
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import DNSLookupError
from twisted.internet.interfaces import IResolverSimple
from twisted.internet.threads import deferToThreadPool
from web import RULES, Web
from zope.interface import implementer  # type: ignore[import-untyped]

from scrapy_rep.fetching import places

SLOW = 0.4  # seconds that each look-up of a slow name takes


def look_up(name: str) -> str:
    if name.startswith("slow"):
        time.sleep(SLOW)
        raise DNSLookupError(f"{name} has no address")
    return "127.0.0.1"


@implementer(IResolverSimple)
class Threaded:
    """Resolves names in the reactor's threads, as Scrapy's single_flight does."""

    def getHostByName(self, name: str, timeout: Any = ()) -> Deferred[str]:  # noqa: N802
        loop: Any = reactor
        return deferToThreadPool(loop, loop.getThreadPool(), look_up, name)


@pytest.fixture
def slow_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    loop: Any = reactor
    before = loop.installResolver(Threaded())
    monkeypatch.setattr(places, "SLOW_AFTER", 0.05)
    yield
    loop.installResolver(before)


@ensureDeferred
async def test_healthy_hosts_behind_slow_name_servers_are_not_refused(web: Web, slow_names: None) -> None:
    """100 slow look-ups in ten threads take longer than the time limit."""
    site = web.robots(RULES)
    slow = [f"http://slow{n}.example/" for n in range(100)]
    healthy = [f"http://site{n}.example:{site.port}/" for n in range(10)]
    settings = {"REP_FETCH_TIMEOUT": 5 * SLOW, "DOWNLOAD_HANDLERS": {"http": HANDLERS["twisted"]}}
    result = await crawl(*slow, *healthy, settings=settings)
    assert sorted(result.pages) == sorted(healthy)
    assert sorted(result.refused) == sorted(slow)
    assert result.tracebacks == []
