"""The simulated network: servers that answer as the case says, and the download handler that leads to them.

Each origin is a server with a seed of its own, so its delays do not depend on other origins. A case says for each path
what the server answers from which second on. An answer is a dict:

    {"status": 200, "body": "...", "headers": {"Cache-Control": "max-age=60"}}     an answer; `Location` redirects
    {"fail": "hang"}                     no answer ("hang"), no address ("dns"), a lost connection ("reset"), a body
                                         without its end ("cut")
    {"token": "/gate"}                   a redirect to /gate?token=N; the token is good for one request
    {"gate": {...}}                      this answer for a new token, 403 for a used one
    {"agents": {"otherbot": {...}, "": {...}}}     the answer for the first name that is in the User-Agent

`"look_up": 6.0` in the plan of an origin: how many seconds a look-up of its name takes. All look-ups share ten threads.

`"delay": [0.1, 0.5]` in an answer replaces the server's own delay. A broken proxy, or the broken network of a crawler,
answers in place of every server.
"""

from __future__ import annotations

import asyncio
import random
from contextvars import Context
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, DownloadFailedError
from scrapy.http import Response, TextResponse
from virtual_time import NEVER, seconds

from scrapy_rep.scrapy_internals.compat import DownloadTimeoutError

ADDRESS = ip_address("192.0.66.1")  # of all servers; without an address, their names would be looked up
NUMBER = "simulated"  # the meta key of a request's number in its case
FETCH = "simulated_fetch"  # the meta key of the fetch that a request for a robots.txt belongs to


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@dataclass(eq=False)
class Exchange:
    """One request as the network saw it, and its result."""

    run: str
    """The crawl that sent it."""
    url: str
    agent: str
    mark: str
    """The number of the page's request; for a robots.txt, the number of the fetch (`crawl.numbered_hold`)."""
    is_robots: bool
    timeout: float
    proxy: str
    """Empty without a proxy."""
    began: float
    ended: float = NEVER
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    failure: str = ""
    has_looked_up: bool = False


class Threads:
    """Ten threads that look names up, as a reactor or an event loop has them. They are of no crawler."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(10)
        self.number_waiting = 0
        self.under_way: dict[str, asyncio.Task[None]] = {}
        """The look-ups by name, and those that have found an address. Each goes on although nobody waits for it."""

    def qsize(self) -> int:
        return self.number_waiting

    async def look_up(self, length: float) -> None:
        self.number_waiting += 1
        async with self.free:
            self.number_waiting -= 1
            await asyncio.sleep(length)


class Server:
    def __init__(self, origin: str, plan: dict[str, Any]) -> None:
        self.origin = origin
        self.plan = plan
        self.random = random.Random(plan["seed"])
        self.tokens = 0
        self.used: set[str] = set()

    def answer(self, url: str, agent: str) -> tuple[dict[str, Any], float]:
        """The answer at this moment, and its delay."""
        path, query = urlsplit(url)[2:4]
        page = [[0.0, {"body": "page", "delay": self.plan["page_delay"]}]]
        phases = self.plan["robots"] if path == "/robots.txt" else self.plan.get("paths", {}).get(path, page)
        found = next(answer for begin, answer in reversed(phases) if begin <= seconds())
        if "agents" in found:
            found = next(answer for name, answer in found["agents"].items() if name in agent.lower())
        if "token" in found:
            self.tokens += 1
            found = {"status": 302, "headers": {"Location": f"{self.origin}{found['token']}?token={self.tokens}"}}
        if "gate" in found:
            found = {"status": 403} if query in self.used else found["gate"]
            self.used.add(query)
        return found, self.random.uniform(*found.get("delay", self.plan["robots_delay"]))


class Handler(BaseDownloadHandler):
    """The download handler of http and https."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.under_way: list[Any] = []

    async def download_request(self, request: Request) -> Response:
        spider: Any = self.crawler.spider  # a `crawl.SimSpider`
        task, meta, is_robots = asyncio.current_task(), request.meta, NUMBER not in request.meta
        agent, mark = (request.headers.get("User-Agent") or b"").decode(), meta[FETCH if is_robots else NUMBER]
        timeout, proxy = meta["download_timeout"], meta.get("proxy") or ""
        exchange = Exchange(spider.name, request.url, agent, str(mark), is_robots, timeout, proxy, seconds())
        spider.simulation.exchanges.append(exchange)
        self.under_way.append(task)
        if is_robots:
            spider.note("fetch", None, f"{mark} {request.url} {proxy}")
        try:
            return await self.send(request, exchange)
        except BaseException as exc:
            exchange.failure = type(exc).__name__
            raise
        finally:
            exchange.ended = seconds()
            self.under_way.remove(task)
            if is_robots:
                result = f"{exchange.failure or exchange.status} {exchange.headers.get('Location', '')}"
                spider.note("fetched", None, f"{mark} {request.url} {result}")

    async def send(self, request: Request, exchange: Exchange) -> Response:
        """Return the response, or raise what a download handler raises. Write the answer into the exchange."""
        spider: Any = self.crawler.spider
        answer = spider.simulation.case.get("proxies", {}).get(exchange.proxy) or spider.plan.get("network")
        server, delay, began = spider.simulation.servers.get(origin_of(request.url)), 0.01, seconds()
        if server is None:
            answer = {"fail": "dns"}
        elif not answer:
            if server.plan.get("look_up"):
                await self.look_up(server, exchange)
            answer, delay = server.answer(request.url, exchange.agent)
        fail = answer.get("fail")
        delay = NEVER if fail == "hang" else delay
        await asyncio.sleep(min(delay, exchange.timeout))
        if delay > exchange.timeout or seconds() - began > exchange.timeout:  # the process may have been stopped
            raise DownloadTimeoutError(f"no answer within {exchange.timeout:g} s")
        if fail in {"dns", "reset"}:
            raise (CannotResolveHostError if fail == "dns" else DownloadFailedError)(request.url)
        exchange.status, exchange.headers = answer.get("status", 200), answer.get("headers", {})
        exchange.body, exchange.failure = answer.get("body", ""), fail or ""
        flags, body = ["dataloss"] if fail else [], exchange.body.encode()
        return TextResponse(
            request.url,
            exchange.status,
            exchange.headers,
            body,
            flags,
            request,
            ip_address=ADDRESS,
            encoding="utf-8",
        )

    async def look_up(self, server: Server, exchange: Exchange) -> None:
        """Wait for the address of the server's name."""
        spider: Any = self.crawler.spider
        threads, length = spider.simulation.threads, server.plan["look_up"]
        task = threads.under_way.get(server.origin)
        if task is None:
            task = threads.under_way[server.origin] = Context().run(asyncio.ensure_future, threads.look_up(length))
        exchange.has_looked_up = True
        try:
            await asyncio.wait_for(asyncio.shield(task), exchange.timeout)
        except asyncio.TimeoutError:
            raise DownloadTimeoutError(f"no answer within {exchange.timeout:g} s") from None
        if server.plan["has_no_address"]:  # so the next request looks the name up again
            threads.under_way.pop(server.origin, None)

    async def close(self) -> None:
        """Close the connections, as Scrapy's handlers do."""
        for task in self.under_way:
            task.cancel()
