"""The simulated network: servers that answer as the case says, and the download handler that leads to them.

Each origin is a server with a seed of its own, so its delays do not depend on the other origins. What a server answers
is a dict of the case (a *behaviour*), for each path from some second of the case on:

    {"status": 200, "body": "...", "headers": {"Cache-Control": "max-age=60"}}     an answer; `Location` redirects
    {"fail": "hang"}                     no answer ("hang"), or it breaks: "reset", "cut" (the body ends too early)
    {"token": "/gate"}                   a redirect to /gate?token=N, with a token that is good for one request
    {"gate": {...}}                      that behaviour for a new token; 403 for one that was used
    {"agents": {"otherbot": {...}, "": {...}}}     the first whose name is in the User-Agent

`"delay": [0.1, 0.5]` in an answer replaces the server's own.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, DownloadFailedError
from scrapy.http import Response, TextResponse
from virtual_time import seconds

from scrapy_rep.scrapy_internals.compat import DownloadTimeoutError

Behaviour = dict[str, Any]


@dataclass(eq=False)
class Exchange:
    """One request as the network saw it, and its result."""

    run: str
    """The crawl that sent it."""
    url: str
    agent: str
    mark: str
    """For a page the number of the request; for a robots.txt the fetch that sent it (`crawl.mark_fetch`)."""
    is_robots: bool
    began: float
    timeout: float
    ended: float | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    failure: str = ""

    def end(self, now: float, status: int | None, failure: str = "") -> None:
        self.ended, self.status, self.failure = now, status, failure


class Server:
    def __init__(self, origin: str, plan: dict[str, Any]) -> None:
        self.origin = origin
        self.plan = plan
        self.random = random.Random(plan["seed"])
        self.tokens = 0
        self.used: set[str] = set()

    def behaviour(self, path: str, query: str, agent: str) -> Behaviour:
        """What this path answers at this moment."""
        phases = self.plan["robots"] if path == "/robots.txt" else self.plan.get("paths", {}).get(path)
        if phases is None:
            return {"status": 200, "body": "page", "delay": self.plan["page_delay"]}
        found: Behaviour = next(behaviour for begin, behaviour in reversed(phases) if begin <= seconds())
        return self._settled(found, query, agent)

    def _settled(self, found: Behaviour, query: str, agent: str) -> Behaviour:
        if "agents" in found:
            name = next(name for name in found["agents"] if name in agent.lower())
            return self._settled(found["agents"][name], query, agent)
        if "token" in found:
            self.tokens += 1
            return {"status": 302, "headers": {"Location": f"{self.origin}{found['token']}?token={self.tokens}"}}
        if "gate" in found:
            is_new = query not in self.used
            self.used.add(query)
            return self._settled(found["gate"], query, agent) if is_new else {"status": 403}
        return found

    def delay(self, behaviour: Behaviour) -> float:
        return self.random.uniform(*behaviour.get("delay", self.plan["robots_delay"]))


class Network:
    """All servers of a case, and everything that was sent."""

    def __init__(self, origins: dict[str, Any]) -> None:
        self.servers = {origin: Server(origin, plan) for origin, plan in origins.items()}
        self.exchanges: list[Exchange] = []

    async def answer(self, request: Request, exchange: Exchange) -> Response:
        self.exchanges.append(exchange)
        try:
            response = await self._answered(request, exchange)
        except asyncio.CancelledError:
            exchange.end(seconds(), None, "cancelled")
            raise
        except Exception as exc:
            exchange.end(seconds(), None, type(exc).__name__)
            raise
        exchange.end(seconds(), response.status, "cut" if "dataloss" in response.flags else "")
        return response

    async def _answered(self, request: Request, exchange: Exchange) -> Response:
        parts = urlsplit(request.url)
        server = self.servers.get(f"{parts.scheme}://{parts.netloc}")
        if server is None:
            await asyncio.sleep(0.01)
            raise CannotResolveHostError(parts.netloc)
        behaviour = server.behaviour(parts.path, parts.query, exchange.agent)
        fail, delay = behaviour.get("fail"), server.delay(behaviour)
        if fail == "hang" or delay > exchange.timeout:
            await asyncio.sleep(exchange.timeout)
            raise DownloadTimeoutError(f"no answer within {exchange.timeout:g} s")
        await asyncio.sleep(delay)
        if fail == "reset":
            raise DownloadFailedError("connection reset")
        exchange.headers = dict(behaviour.get("headers", {}))
        tag, status = exchange.headers.get("ETag"), behaviour.get("status", 200)
        if tag is not None and (request.headers.get("If-None-Match") or b"").decode() == tag:
            status = 304
        else:
            exchange.body = behaviour.get("body", "")
        flags = ["dataloss"] if fail == "cut" else []
        headers, body = exchange.headers, exchange.body.encode()
        return TextResponse(request.url, status, headers, body, flags, request, encoding="utf-8")


class Handler:
    """The download handler of http and https. The crawler's `simulation` is the `crawl.Simulation`."""

    lazy = False

    def __init__(self, crawler: Any) -> None:
        self.simulation = crawler.spider.simulation
        self.under_way: set[asyncio.Task[Any] | None] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Handler:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        exchange: Exchange = self.simulation.exchange_of(request)
        task = asyncio.current_task()
        self.under_way.add(task)
        try:
            response: Response = await self.simulation.network.answer(request, exchange)
        finally:
            self.under_way.discard(task)
        return response

    async def close(self) -> None:
        """Close the connections, as Scrapy's handlers do."""
        for task in list(self.under_way):
            if task is not None:
                task.cancel()
