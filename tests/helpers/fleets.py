"""Crawlers in processes of their own that share a store, some of them killed; and what came of it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from web import Site, Web, answer

CRAWL = Path(__file__).with_name("fleet_crawl.py")
WRITER = Path(__file__).with_name("sqlite_writer.py")
RULES = "User-agent: *\nDisallow: /private\n"


@dataclass
class Account:
    """What came of a fleet's crawl."""

    seconds: float
    kills: int
    asked: list[int]
    """How often each origin was asked for its robots.txt."""
    crawls: list[dict[str, Any]] = field(default_factory=list)
    """Of the crawlers that lived."""

    @property
    def asked_more(self) -> int:
        """Requests beyond one an origin."""
        return sum(self.asked) - len(self.asked)

    def is_complete(self, origins: int) -> bool:
        """Every crawler that lived fetched the allowed page of every origin, and nothing that is disallowed."""
        return all((len(c["pages"]), len(c["refused"]), c["failed"]) == (origins, origins, []) for c in self.crawls)


def open_sites(web: Web, number: int, delay: float = 0.05, headers: dict[str, str] | None = None) -> list[Site]:
    return [web.robots(answer(RULES, delay=delay, headers=headers or {})) for _ in range(number)]


def start_crawl(sites: list[Site], settings: dict[str, Any], shuffled: random.Random) -> subprocess.Popen[str]:
    """Of an allowed and a disallowed page of each; every crawler has an order of its own."""
    urls = [site.url(path) for site in sites for path in ("/", "/private")]
    shuffled.shuffle(urls)
    process = subprocess.Popen([sys.executable, CRAWL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps({"urls": urls, "settings": settings}))
    process.stdin.close()
    process.stdin = None
    return process


def fleet(
    sites: list[Site],
    settings: dict[str, Any],
    *,
    crawlers: int,
    kills: int = 0,
    between: tuple[float, float] = (0.5, 1.5),
    meanwhile: Callable[[], None] | None = None,
    seed: int = 1,
) -> Account:
    """Crawl by so many at once; at random moments one is killed (SIGKILL), and another one begins in its place."""
    chance, begun = random.Random(seed), time.monotonic()
    running = [start_crawl(sites, settings, chance) for _ in range(crawlers)]
    if meanwhile is not None:
        meanwhile()
    killed, pace = 0, 1.0
    while killed < kills:
        time.sleep(chance.uniform(*between) * pace)
        victim = chance.randrange(crawlers)
        if running[victim].poll() is None:
            running[victim].kill()
            killed += 1
        else:
            pace /= 2  # by now they are done sooner than somebody would kill them
        running[victim].communicate(timeout=300)
        running[victim] = start_crawl(sites, settings, chance)
    crawls = [json.loads(process.communicate(timeout=300)[0]) for process in running]
    asked = [len(site.robots_requests) for site in sites]
    return Account(time.monotonic() - begun, killed, asked, crawls)


def torn_by_killed_writers(file: Path, writers: int, kills: int, seed: int = 1) -> tuple[int, int]:
    """How many entries the writers found torn, killed at random moments as they were; and how many kills there were."""
    chance = random.Random(seed)

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, WRITER, str(file)], stdout=subprocess.PIPE, text=True)

    running, complaints = [start() for _ in range(writers)], 0
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
    for _ in range(kills):
        time.sleep(chance.uniform(0.0, 0.3))
        victim = chance.randrange(writers)
        running[victim].kill()
        complaints += len(running[victim].communicate()[0].split())
        running[victim] = start()
        stdout = running[victim].stdout
        assert stdout is not None
        assert stdout.readline() == "writing\n"
    for process in running:
        process.kill()
        complaints += len(process.communicate()[0].split())
    return complaints, kills + writers
