"""A crawl of many random origins of all kinds: every request has one result, and nothing is left over."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import resource
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from crawling import CrawlSpider, SlotByOrigin, crawl
from pytest_twisted import ensureDeferred
from scrapy.utils.defer import deferred_from_coro
from web import RULES, Route, Site, Web, answer, redirect

from scrapy_rep.protocol import outage
from scrapy_rep.scrapy_internals.compat import sleep

PAGES = 5  # for each origin
DOWN = answer(status=503)


@cache
def bomb() -> Route:
    return answer(gzip.compress(RULES.encode() + b"#" * 20_000_000), headers={"Content-Encoding": "gzip"})


Robots = Callable[[random.Random], Route | list[Route]]

# Kind of origin -> its robots.txt, and which pages are allowed: `rules` (by its rules), `all` or `none`.
KINDS: dict[str, tuple[Robots, str]] = {
    "good": (lambda _: answer(RULES), "rules"),
    "slow": (lambda rng: answer(RULES, delay=rng.random()), "rules"),
    "gone": (lambda _: answer(status=404), "all"),
    "dead": (lambda _: answer(kind="hang"), "none"),
    "down": (lambda rng: answer(status=rng.choice([500, 502, 503])), "none"),
    "heals": (lambda _: [DOWN, answer(kind="reset"), answer(RULES)], "rules"),
    "loops": (lambda _: redirect("/robots.txt"), "all"),
    "bomb": (lambda _: bomb(), "rules"),
    "endless": (lambda _: answer(RULES + "#" * 65_000, kind="endless"), "rules"),
    "drip": (lambda _: answer(RULES * 50, kind="drip"), "none"),
    "headers": (lambda _: answer(kind="headers"), "none"),
    "half-closed": (lambda _: answer(RULES, kind="half-closed"), "none"),
    "cut": (lambda _: answer(RULES, kind="cut"), "none"),
    "reset": (lambda _: answer(kind="reset"), "none"),
    "garbage": (lambda _: answer(kind="garbage"), "none"),
    "tls-failure": (lambda _: answer(RULES), "none"),
    "https": (lambda _: answer(RULES), "rules"),
}
# Headers of an answer have no limit (docs/limits.md), so only one origin sends endless headers.
OFTEN = {"headers": 0, "good": 12, "slow": 4, "dead": 2, "heals": 3, "endless": 0.5, "bomb": 0.5}


def origin(web: Web, kind: str, rng: random.Random) -> Site:
    robots = KINDS[kind][0](rng)
    # Pages also answer in all ways.
    page = rng.choice([answer("page")] * 8 + [answer(status=500), answer(kind="reset"), answer("page", delay=0.1)])
    site = web.site({"/robots.txt": robots, "*": page}, tls=kind == "https")
    return Site(web, site.port, "https") if kind == "tls-failure" else site


class Soak(CrawlSpider):
    """Keeps no pages, because the test measures memory."""

    def parse(self, response: Any, **_: Any) -> None:
        self.crawl.ends.append((response.meta["asked"], "fetched"))

    def failed(self, failure: Any) -> None:
        refused = "ForbiddenByRobots", "RobotsUnreachable"
        end = "refused" if type(failure.value).__name__ in refused else "failed"
        self.crawl.ends.append((failure.request.meta["asked"], end))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("origins", [60, *(pytest.param(n, marks=pytest.mark.full_size) for n in (200, 2_000))])
@pytest.mark.skipif(sys.platform != "linux", reason="counts open files in /proc")
@ensureDeferred
async def test_every_request_is_accounted_for(web: Web, monkeypatch: pytest.MonkeyPatch, origins: int) -> None:
    monkeypatch.setattr(outage, "BACKOFFS", (1.0, 1.0, 1.0))
    rng = random.Random(9309)
    # At least one origin of each kind.
    kinds = [*KINDS, *rng.choices(list(KINDS), [OFTEN.get(kind, 1) for kind in KINDS], k=origins - len(KINDS))]
    sites = [(kind, origin(web, kind, rng)) for kind in kinds]
    paths = ["/private", *(f"/{n}" for n in range(PAGES - 1))]
    asked = {site.url(path): (kind, path) for kind, site in sites for path in paths}
    urls = rng.sample(list(asked), len(asked))
    files = open_files()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    settings = {
        "DOWNLOADER": SlotByOrigin,
        "DOWNLOAD_TIMEOUT": 10,
        "REP_FETCH_TIMEOUT": 5 if origins < 100 else 30,  # enough for a slow and busy machine
        "REP_UNREACHABLE_WAIT": 1.5,
        "REP_FETCH_RETRIES": 1,
        "LOG_LEVEL": "WARNING",
    }
    result = await crawl(*urls, spider=Soak, settings=settings)
    by_url: dict[str, str] = dict(result.ends)
    assert Counter(url for url, _ in result.ends) == Counter(asked.keys()), "each request has one result"
    may = {"rules": {"/private": "refused"}, "none": dict.fromkeys(paths, "refused"), "all": {}}
    for url, (kind, path) in asked.items():
        expected = may[KINDS[kind][1]].get(path, "let through")
        assert (by_url[url] == "refused") is (expected == "refused"), (kind, path, by_url[url])
    assert result.tracebacks == []
    # Before 2.19, Scrapy warns of a certificate for an IP address.
    usual = (
        "Requests to this site",
        "because robots.txt was unreachable",
        "Ignoring error while verifying certificate",
    )
    assert [m for m in result.messages() if "rror" in m and not any(text in m for text in usual)] == []
    assert (result.downloader.total_concurrency, result.downloader.active) == (16, set())
    for _ in range(100):
        if open_files() <= files:
            break
        await deferred_from_coro(sleep(0.1))
    assert open_files() <= files
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    print(f"{dict(Counter(by_url.values()))} of {len(asked)}; {grown:.0f} MiB more at the peak; {dict(Counter(kinds))}")
    assert grown < 100 + 0.05 * origins
    assert not [task for task in asyncio.all_tasks() if "scrapy_rep" in repr(task)]
