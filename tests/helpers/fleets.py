"""Run a fleet: crawlers in processes of their own that share a store. Some of them are killed."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import CrawlProcess, Ended, PythonProcess, crawl_process
from web import RULES, Site, Web, answer

WRITER = str(Path(__file__).with_name("sqlite_writer.py"))


@dataclass
class Account:
    """The results of a fleet's crawl."""

    seconds: float
    kills: int
    asked: list[int]
    """How often each origin was asked for its robots.txt."""
    crawls: list[Ended]
    """The results of the crawlers that were not killed."""

    @property
    def asked_more(self) -> int:
        """The number of requests for robots.txt beyond one for each origin."""
        return sum(self.asked) - len(self.asked)

    def is_complete(self, origins: int) -> bool:
        """Whether every crawler that was not killed fetched the allowed page of each origin, and no disallowed page."""
        return all((len(c.ends), len(c.pages), len(c.refused)) == (2 * origins, origins, origins) for c in self.crawls)


def open_sites(web: Web, number: int, delay: float = 0.05, headers: dict[str, str] | None = None) -> list[Site]:
    return [web.robots(answer(RULES, delay=delay, headers=headers or {})) for _ in range(number)]


def fleet(
    sites: list[Site],
    settings: dict[str, Any],
    *,
    crawlers: int,
    kills: int = 0,
    between: tuple[float, float] = (0.5, 1.5),
    meanwhile: Callable[[], None] | None = None,
    constants: Mapping[str, float] | None = None,
    seed: int = 1,
) -> Account:
    """Crawl with this many crawlers at once. At random moments, one is killed (SIGKILL) and a new one replaces it.

    Each crawler requests an allowed and a disallowed page of every site, in an order of its own. `constants`: numbers
    of the package that the crawlers replace.
    """
    chance, begun = random.Random(seed), time.monotonic()
    urls = [site.url(path) for site in sites for path in ("/", "/private")]
    with ExitStack() as stack:

        def start() -> CrawlProcess:
            shuffled = chance.sample(urls, len(urls))
            settings_of_all = {"LOG_LEVEL": "WARNING", **settings}
            return stack.enter_context(crawl_process(shuffled, settings_of_all, constants=dict(constants or {})))

        running = [start() for _ in range(crawlers)]
        if meanwhile is not None:
            meanwhile()
        killed, pace = 0, 1.0
        while killed < kills:
            time.sleep(chance.uniform(*between) * pace)
            victim = chance.randrange(crawlers)
            if running[victim].killed():
                killed += 1
            else:
                pace /= 2  # by now they end before their turn to be killed
            running[victim] = start()
        crawls = [process.ended(300) for process in running]
    asked = [len(site.robots_requests) for site in sites]
    return Account(time.monotonic() - begun, killed, asked, crawls)


def torn_by_killed_writers(file: Path, writers: int, kills: int, seed: int = 1) -> tuple[int, int]:
    """Kill writers at random moments. Return how many damaged entries they found, and how many writers were killed."""
    chance = random.Random(seed)
    with ExitStack() as stack:

        def start() -> PythonProcess:
            writer = stack.enter_context(PythonProcess(WRITER, str(file)))
            while not writer.stdout.startswith(b"writing\n"):
                assert writer.poll() is None, writer.stderr
                time.sleep(0.01)
            return writer

        def complaints_of(writer: PythonProcess) -> int:
            writer.send_signal(signal.SIGKILL)
            writer.wait(60)
            return len(writer.stdout.split()) - 1

        running, complaints = [start() for _ in range(writers)], 0
        for _ in range(kills):
            time.sleep(chance.uniform(0.0, 0.3))
            victim = chance.randrange(writers)
            complaints += complaints_of(running[victim])
            running[victim] = start()
        complaints += sum(map(complaints_of, running))
    return complaints, kills + writers
