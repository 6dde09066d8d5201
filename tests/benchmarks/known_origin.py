"""The CPU time of our middleware and of the built-in one, for a request to a known origin, without the verdict."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.bodies import URLS, rules_of_a_site
from benchmarks.measuring import ROUNDS, head, row, text_of
from parsers import OURS
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.utils.test import get_crawler

from scrapy_rep import AccessResult, RepMiddleware, RobotsTxt
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.origin import Origin

AGENT = "ExampleBot/1.0"
REQUESTS = 5_000

Step = Callable[[list[Request]], None]


def main() -> None:
    print("\n## The middleware: one request whose origin is known, of 20 rules\n")
    whole, *parts = "`process_request`", "its verdict", "without the verdict"
    head("URL", f"{OURS}: {whole}", *parts, f"built-in: {whole}", *parts)
    crawler = get_crawler(Spider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": AGENT})
    for kind, url in URLS.items():
        found = measured(steps(crawler, rules_of_a_site(20), url), url)
        cells = []
        for who in (OURS, "built-in"):
            step, verdict = found[who], found[f"{who}, verdict"]
            cells += [text_of(step), text_of(verdict), text_of(step - verdict)]
        row(kind, *cells)


def steps(crawler: Crawler, body: bytes, url: str) -> dict[str, Step]:
    origin = Origin.of(url)
    assert origin is not None
    robots = RobotsTxt.parse(body)
    for other in (f"{url}/1", f"{url}/2"):  # a second URL puts the rules in order
        robots.allows(other, ("ExampleBot",))
    ours = RepMiddleware.from_crawler(crawler)
    now = time.time()
    stored = StoredResponse(Answer("", access=AccessResult.SUCCESS, reason="HTTP 200"), now, now + 86_400, robots)
    memory = ours._single_flight._memory
    memory.put(origin, Entry(origin.robots_url, stored), now)
    builtin: Any = RobotsTxtMiddleware.from_crawler(crawler)
    parser: Any = ProtegoRobotParser(body, None)
    builtin._parsers[origin.host] = parser
    return {
        OURS: partial(for_each, ours.process_request),
        f"{OURS}, verdict": partial(for_each, lambda request: robots.allows(request.url, ("ExampleBot",))),
        "built-in": partial(for_each, lambda request: run(builtin.process_request(request))),
        "built-in, verdict": partial(for_each, lambda request: parser.allowed(request.url, AGENT)),
    }


def for_each(step: Callable[[Request], object], requests: list[Request]) -> None:
    for request in requests:
        step(request)


def run(coroutine: Any) -> None:
    """Run a coroutine that never waits, as the engine does."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("the origin is known, and yet it waits")


def measured(steps: dict[str, Step], url: str) -> dict[str, float]:
    """Return the seconds for one request. Each request is new, so nothing about it is cached."""
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(ROUNDS):
        for name, step in steps.items():
            requests = [Request(url) for _ in range(REQUESTS)]
            began = time.process_time()
            step(requests)
            best[name] = min(best[name], (time.process_time() - began) / REQUESTS)
    return best
