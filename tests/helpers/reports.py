"""Reports of crawls that never ran: the signals are sent by the test."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from crawling import Time
from scrapy import Request, Spider, signals
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from scrapy_rep import ForbiddenByRobots
from scrapy_rep.crawl import Clock, Crawl
from scrapy_rep.extensions.report import Report
from scrapy_rep.origin_info import KnownOrigins, OriginInfo
from scrapy_rep.protocol.answer import AccessResult, Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.freshness import DAY
from scrapy_rep.protocol.lifecycle import after_fetch, policy_at
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outage import Outage
from scrapy_rep.protocol.robotstxt.parser import RobotsTxt
from scrapy_rep.protocol.robotstxt.rules import Verdict
from scrapy_rep.refusals import Refusals
from scrapy_rep.scrapy_internals.compat import sleep
from scrapy_rep.settings import RepSettings
from scrapy_rep.signals import request_waited, robots_known
from scrapy_rep.user_agent import UserAgent

RULES = b"user-agent: *\ndisallow: /private\ncrawl-delay: 2\n"


parsed = lru_cache(RobotsTxt.parse)


class Gate:
    """A stand-in for the gate, with only what the report reads from it."""

    def __init__(self, crawl: Crawl) -> None:
        self.user_agent = UserAgent(crawl.crawler.settings, crawl.crawler.spider)
        self.now = crawl.clock.now
        self.refusals = Refusals(crawl)
        self.origins = KnownOrigins(1_000_000)

    def product_tokens(self, request: Request) -> tuple[str, ...]:
        return self.user_agent.product_tokens


class SimulatedCrawl:
    """Sends the signals that a crawl's middleware and engine would send."""

    def __init__(self, path: Path | str, **settings: Any) -> None:
        self.time = Time()
        settings = {"USER_AGENT": "NewsBot/1.0", "REP_REPORT": str(path), "EXTENSIONS_BASE": {}, **settings}
        self.crawler = get_crawler(Spider, settings)
        self.crawler.spider = Spider("headlines")
        clock = Clock(self.time, self.time, sleep)
        crawl = Crawl.of(self.crawler, RepSettings.read(self.crawler.settings), clock)
        gate: Any = Gate(crawl)
        self.gate = gate
        self.report = Report(crawl, gate)

    def send(self, signal: object, **arguments: Any) -> None:
        for _receiver, result in self.crawler.signals.send_catch_log(signal, **arguments):
            assert result is None, "a receiver failed"

    def robots(
        self,
        origin: str | Origin,
        answer: str = "HTTP 200",
        body: bytes | None = None,
        access: AccessResult = AccessResult.UNREACHABLE,
        **more: Any,
    ) -> None:
        """Send the signal for a fetched robots.txt, with this body or none. `more`: other fields of the answer."""
        known = parsed(body) if body is not None else None
        access = access if known is None else AccessResult.SUCCESS
        is_unreachable = access is AccessResult.UNREACHABLE
        found, now = Origin.of(origin) if isinstance(origin, str) else origin, self.time.now
        assert found is not None
        if is_unreachable:
            entry = after_fetch(None, found.robots_url, Answer("", reason=answer, ended_at=now, **more))
        else:
            last = Answer("", access=access, reason=answer, **more)
            entry = Entry(found.robots_url, StoredResponse(last, now, now + DAY, known))
        info = OriginInfo(policy_at(entry, now, 30 * DAY))
        before, result = self.gate.origins.note(found, info)
        request = Request(f"{origin}/")
        self.send(robots_known, origin=found, info=info, before=before, result=result, request=request, fetched=True)

    def page(self, url: str, body: bytes = RULES, answer: str = "HTTP 200") -> None:
        """Send the signal for a page that is fetched, or that the rules in the body refuse."""
        origin = Origin.of(url)
        assert origin is not None
        entry = Entry(
            origin.robots_url,
            StoredResponse(Answer("", access=AccessResult.SUCCESS, reason=answer), 0, DAY, parsed(body)),
        )
        verdict = policy_at(entry, 0, 30 * DAY).verdict(url, "NewsBot")
        if verdict.allowed:
            self.send(signals.response_received, response=Response(url), request=Request(url), spider=None)
        else:
            self.refuse(url, verdict)

    def refused_in_outage(self, url: str, answer: str) -> None:
        origin = Origin.of(url)
        assert origin is not None
        entry = Entry(origin.robots_url, outage=Outage(Answer("", reason=answer), 0, 1, 5))
        self.refuse(url, policy_at(entry, 0, 30 * DAY).verdict(url, "NewsBot"))

    def refuse(self, url: str, verdict: Verdict) -> None:
        with suppress(ForbiddenByRobots):
            self.gate.refusals.refuse(Request(url), verdict)

    def waited(self, origin: str, seconds: float) -> None:
        self.send(request_waited, request=Request(f"{origin}/"), seconds=seconds)

    def lines(self) -> list[dict[str, Any]]:
        assert self.crawler.spider is not None
        return list(self.report.lines(self.crawler.spider, "finished"))

    def close(self) -> None:
        self.send(signals.spider_closed, spider=self.crawler.spider, reason="finished")


HOSTILE = (
    '"><script>document.title="broken"</script><!--<script><img src=x onerror=alert(1)>&lt;{{data|json}}\x1b[2J\u202e'
)


def hostile_crawl(path: Path, **settings: Any) -> SimulatedCrawl:
    """A report in which all texts of strangers try to break out of the page."""
    crawl = SimulatedCrawl(path, **{"REP_PURPOSES": ["train-ai", "search"], **settings})
    long_host = "https://" + "a-name-without-end-" * 12 + "example.com:8443"
    rules = b"user-agent: *\ndisallow: /" + HOSTILE.encode() + b"a" * 1_000 + b"\n"
    crawl.robots("https://ordinary.example", body=RULES)
    crawl.page("https://ordinary.example/")
    crawl.robots(Origin("https", HOSTILE, None), body=RULES)
    crawl.robots("javascript://x", answer=HOSTILE)
    crawl.refused_in_outage("javascript://x/%0aalert(1)", HOSTILE * 9)
    crawl.robots(long_host, answer="x" * 9_999)
    crawl.page(f"{long_host}/{HOSTILE}{'a' * 1_000}", body=rules)
    crawl.page(f"{long_host}/{HOSTILE}{'a' * 2_000}", body=rules)
    crawl.waited(long_host, 12.5)
    crawl.time.now += 60
    return crawl


def broad_crawl(path: Path, origins: int, **settings: Any) -> SimulatedCrawl:
    """Every fifth origin refuses a page, every tenth is unreachable for a while, every twentieth until the end."""
    crawl = SimulatedCrawl(path, **settings)
    for number in range(origins):
        origin = f"https://www.site{number}.example"
        if number % 10:
            crawl.robots(origin, body=RULES)
            for page in range(number % 3 + 1):
                crawl.page(f"{origin}/{page}")
            if number % 5 == 1:
                crawl.page(f"{origin}/private/{number}")
        else:
            crawl.robots(origin, answer="HTTP 503")
            crawl.refused_in_outage(f"{origin}/", "HTTP 503")
            crawl.time.now += 2
            if number % 20:
                crawl.robots(origin, body=RULES)
        crawl.waited(origin, 0.01 * (number % 40))
    crawl.time.now += 60
    return crawl


def lines_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Type -> the JSON lines of this type in a report."""
    lines: dict[str, list[dict[str, Any]]] = {"crawl": [], "origin": [], "refused": []}
    for text in path.read_text("utf-8").splitlines():
        line = json.loads(text)
        lines[line["type"]].append(line)
    return lines
