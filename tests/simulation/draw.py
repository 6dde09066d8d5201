"""Draws cases. A case is JSON, and says all that is needed to repeat it; a seed is only the way to a case.

Each kind of case is a function, because one mix of everything misses faults. For example, a hub of redirects needs many
origins that lead to one, and an outage of 40 days needs few requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

HOUR, DAY = 3_600.0, 86_400.0
RULES = "User-agent: *\nDisallow: /private\nAllow: /private/open\n\nUser-agent: otherbot\nDisallow: /\n"
ROBOTS = "/robots.txt"
PAGES = ["/", "/page", "/private/x", "/private/open/y"]

Case = dict[str, Any]
Behaviour = dict[str, Any]


def ok(draw: Draw) -> Behaviour:
    """Rules. No two bodies are the same, so that a fault shows when an old one is used."""
    forbidden = draw.sample(["/page", "/late", "/more"], draw.randint(0, 2))
    body = RULES + "".join(f"\nUser-agent: *\nDisallow: {path}\n" for path in forbidden)
    headers: dict[str, str] = draw.pick(
        {}, {}, {}, {"Cache-Control": f"max-age={draw.choice([0, 30, 600, 7200, 200_000])}"}
    )
    if draw.chance(0.15):
        headers = {**headers, "ETag": f'"{draw.randint(0, 99)}"'}
    if draw.chance(0.1):
        headers = {**headers, "Cache-Control": draw.choice(["no-cache", "max-age=3600, must-revalidate", "no-store"])}
    return {"status": 200, "body": body, "headers": headers}


def gone(draw: Draw) -> Behaviour:
    page = {"status": 200, "body": "<html>Hello</html>"}
    return draw.choice([{"status": 404}, {"status": 403}, {"status": 410}, page])


def broken(draw: Draw) -> Behaviour:
    found: Behaviour = draw.pick(
        {"status": 503},
        {"status": 500},
        {"status": 202},
        {"status": 503, "headers": {"Retry-After": str(draw.choice([2, 20, 600, 9999]))}},
        {"status": 429, "headers": {"Retry-After": str(draw.choice([3, 40, 4000]))}},
        {"status": 429},
        {"status": 403, "headers": {"cf-mitigated": "challenge"}},
        {"status": 302},
        {"fail": "reset"},
        {"fail": "cut", "body": "User-agent: *\nAllow: /\n"},
    )
    return found


def hangs(_draw: Draw) -> Behaviour:
    return {"fail": "hang"}


class Draw(random.Random):
    """What the kinds draw with."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, *choices: Any) -> Any:
        return self.choice(choices)

    def robots(self, good: float = 0.6, until: float = 60.0) -> list[list[Any]]:
        """What a robots.txt answers, in phases: [from which second, behaviour]."""
        phases: list[list[Any]] = [[0.0, self.behaviour(good)]]
        while self.chance(0.3):
            phases.append([round(self.uniform(0.5, until), 2), self.behaviour(good)])
        return sorted(phases, key=lambda phase: phase[0])

    def behaviour(self, good: float) -> Behaviour:
        make = ok if self.chance(good) else self.pick(gone, broken, broken, hangs)
        found: Behaviour = make(self)
        return found

    def origin(self, robots: list[list[Any]], paths: dict[str, Any] | None = None) -> dict[str, Any]:
        slow = self.pick(0.05, 0.3, 0.3, 1.0, 3.0)
        return {
            "seed": self.randrange(10**6),
            "robots": robots,
            "paths": paths or {},
            "robots_delay": [0.01, slow],
            "page_delay": [0.01, self.pick(0.1, 0.5)],
        }

    def settings(self, **others: list[Any]) -> dict[str, Any]:
        """Mostly the defaults. No setting is drawn twice as often as another because of its name."""
        choices: dict[str, list[Any]] = {
            "CONCURRENT_REQUESTS": [1, 4, 16, 16],
            "CONCURRENT_REQUESTS_PER_DOMAIN": [1, 8, 8],
            "REP_FETCH_CONCURRENCY": [1, 2, 8, 64, 64],
            "REP_FETCH_TIMEOUT": [5.0, 30.0, 30.0],
            "REP_FETCH_RETRIES": [0, 1, 1, 2],
            "REP_UNREACHABLE_WAIT": [0.0, 3.0, 12.0, 30.0, 30.0],
            "REP_LIFETIME_MIN": [60.0, 3_600.0, 3_600.0],
            "REP_WAITING_MAX": [0, 3, 1_000, 1_000, 1_000],
            "SCHEDULER_PRIORITY_QUEUE": [
                "scrapy.pqueues.DownloaderAwarePriorityQueue",
                "scrapy.pqueues.DownloaderAwarePriorityQueue",
                "scrapy.pqueues.ScrapyPriorityQueue",
            ],
            **others,
        }
        return {name: self.choice(values) for name, values in choices.items() if name in others or self.chance(0.5)}

    def requests(self, origins: list[str], pages: int, until: float = 0.0, spread: float = 0.0) -> list[dict[str, Any]]:
        """Requests to the origins, shuffled. Some are made in another request's callback."""
        urls = [f"{origin}{path}{n}" for origin in origins for n in range(pages) for path in [self.choice(PAGES)]]
        self.shuffle(urls)
        found: list[dict[str, Any]] = []
        for number, url in enumerate(urls):
            each: dict[str, Any] = {"url": url, "at": round(self.uniform(0, until), 2) if until else 0.0}
            if number and self.chance(spread):
                each["after"] = self.randrange(number)
                if self.chance(0.2):
                    each["inline"] = True
            if self.chance(0.1):
                each["priority"] = self.pick(-5, 5, 10)
            if self.chance(0.05):
                each["agent"] = "OtherBot/2.0"
            found.append(each)
        return found

    def case(self, kind: str, origins: dict[str, Any], settings: dict[str, Any], **crawler: Any) -> Case:
        crawlers = crawler.pop("crawlers", None) or [self.crawler("a", **crawler)]
        return {
            "kind": kind,
            "seed": self.randrange(10**6),
            "heartbeat": self.pick(5.0, 3_600.0),
            "max_seconds": 100_000.0,
            "settings": settings,
            "store": None,
            "origins": origins,
            "crawlers": crawlers,
        }

    def crawler(self, name: str, requests: list[dict[str, Any]], **others: Any) -> dict[str, Any]:
        return {"name": name, "begin": 0.0, "clock": [], "runs": [None], "requests": requests, **others}


def named(number: int, what: str = "site") -> str:
    return f"http://{what}{number}.example.com"


def broad(draw: Draw) -> Case:
    """Many origins, some of which are dead, a few pages each."""
    number = draw.pick(10, 40, 40, 120)
    good = draw.pick(0.5, 0.8, 0.95)
    origins = {named(n): draw.origin(draw.robots(good)) for n in range(number)}
    requests = draw.requests(list(origins), draw.pick(1, 2, 4), draw.pick(0.0, 0.0, 20.0), draw.pick(0.0, 0.3))
    return draw.case("broad", origins, draw.settings(), requests=requests)


def dead(draw: Draw) -> Case:
    """A crowd of dead origins, and some that are healthy."""
    dead_ones = {named(n, "dead"): draw.origin([[0.0, hangs(draw)]]) for n in range(draw.pick(20, 80, 200))}
    healthy = {named(n): draw.origin([[0.0, ok(draw)]]) for n in range(draw.pick(3, 10))}
    origins = {**dead_ones, **healthy}
    requests = draw.requests(list(dead_ones), 1) + draw.requests(list(healthy), 4)
    if draw.chance(0.7):
        draw.shuffle(requests)
    settings = draw.settings(REP_FETCH_CONCURRENCY=[2, 8, 16, 64])
    return draw.case("dead", origins, settings, requests=requests)


def queue(draw: Draw) -> Case:
    """More origins than turns: all robots.txt files are slow."""
    origins = {named(n): draw.origin([[0.0, {**ok(draw), "delay": [0.2, 1.5]}]]) for n in range(draw.pick(60, 200))}
    settings = draw.settings(REP_FETCH_CONCURRENCY=[2, 4, 8])
    return draw.case("queue", origins, settings, requests=draw.requests(list(origins), 1))


def hub(draw: Draw) -> Case:
    """Origins whose robots.txt redirects to others: chains, circles, one-time tokens, answers by User-Agent."""
    hubs = {}
    for n in range(draw.randint(1, 3)):
        final = draw.robots(0.8)
        kind = draw.pick("plain", "token", "agents", "down")
        if kind == "token":
            hubs[named(n, "hub")] = draw.origin([[0.0, {"token": "/gate"}]], {"/gate": [[0.0, {"gate": final[0][1]}]]})
        elif kind == "agents":
            by_agent = {"otherbot": draw.behaviour(0.5), "": final[0][1]}
            hubs[named(n, "hub")] = draw.origin([[0.0, {"agents": by_agent}]])
        else:
            hubs[named(n, "hub")] = draw.origin(final if kind == "plain" else [[0.0, broken(draw)], [20.0, ok(draw)]])
    origins: dict[str, Any] = {}
    for n in range(draw.pick(2, 6, 20)):
        target = draw.choice([*hubs, *origins, named(n)] if draw.chance(0.3) else list(hubs))
        redirect = {"status": draw.choice([301, 302, 307, 308]), "headers": {"Location": target + ROBOTS}}
        origins[named(n)] = draw.origin([[0.0, redirect]])
    requests = draw.requests([*origins, *hubs], 2, draw.pick(0.0, 30.0, 3 * HOUR), 0.1)
    return draw.case("hub", {**origins, **hubs}, draw.settings(), requests=requests)


def fleet(draw: Draw) -> Case:
    """Several crawlers with one store, which may fail; one may be killed; clocks may be wrong."""
    origins = {named(n): draw.origin(draw.robots(0.7)) for n in range(draw.pick(2, 8, 20))}
    crawlers = []
    for name in "abc"[: draw.randint(2, 3)]:
        requests = draw.requests(list(origins), 2, draw.pick(0.0, 10.0, 2 * HOUR))
        others: dict[str, Any] = {"begin": draw.pick(0.0, 0.0, 2.0)}
        if draw.chance(0.15):
            others["clock"] = [[0.0, draw.pick(-2 * DAY, -600.0, 200.0, 7200.0)]]
        if draw.chance(0.3):
            others["runs"] = [[draw.pick("kill", "close"), round(draw.uniform(0.3, 12.0), 2)]]
        crawlers.append(draw.crawler(name, requests, **others))
    case = draw.case("fleet", origins, draw.settings(), crawlers=crawlers)
    case["store"] = {"seed": draw.randrange(10**6), "delay": [0.001, draw.pick(0.003, 0.1)], "faults": []}
    while draw.chance(0.25):
        begin = draw.uniform(0, 20)
        partition = draw.pick([], ["a"])
        case["store"]["faults"].append([begin, begin + draw.pick(1, 10, 60), draw.pick("error", "hang"), *partition])
    return case


def resumed(draw: Draw) -> Case:
    """A JOBDIR: closed or killed, and resumed."""
    origins = {named(n): draw.origin(draw.robots(draw.pick(0.5, 0.9))) for n in range(draw.pick(3, 10, 40))}
    requests = draw.requests(list(origins), draw.pick(1, 3, 8), draw.pick(0.0, 3.0), 0.2)
    for each in requests:
        each.pop("inline", None)
    runs = [[draw.pick("kill", "close", "close"), round(draw.uniform(0.05, 8.0), 2)] for _ in range(draw.randint(1, 3))]
    settings = draw.settings(REP_WAITING_MAX=[1, 5, 1_000])
    return draw.case("resumed", origins, settings, requests=requests, runs=[*runs, None], jobdir=True)


def lazy(draw: Draw) -> Case:
    """A start() that waits until the crawl has room, by the recipe of Scrapy's documentation."""
    slow = draw.pick(0.2, 1.0, 2.0)
    origins = {
        named(n): draw.origin([[0.0, {**ok(draw), "delay": [slow / 2, slow]}]]) for n in range(draw.pick(80, 200))
    }
    settings = draw.settings(REP_FETCH_CONCURRENCY=[2, 4, 8], REP_WAITING_MAX=[1_000])
    return draw.case("lazy", origins, settings, requests=draw.requests(list(origins), 1), lazy=True)


def outage(draw: Draw) -> Case:
    """Hours, days and weeks: outages of up to 40 days, answers that change, a clock that is set."""
    length = draw.pick(2 * HOUR, 2 * DAY, 10 * DAY, 40 * DAY)
    origins = {}
    for n in range(draw.randint(1, 3)):
        begin = draw.pick(0.0, 2 * HOUR)
        phases = [[begin, draw.pick(broken, hangs)(draw)], [begin + length, ok(draw)]]
        origins[named(n)] = draw.origin([[0.0, ok(draw)], *phases] if begin else phases)
    end = length + draw.pick(2 * HOUR, 3 * DAY)
    requests = [
        {"url": f"{origin}{draw.choice(PAGES)}{n}", "at": round(draw.uniform(0, end), 2)}
        for origin in origins
        for n in range(draw.pick(60, 200))
    ]
    clock = [[round(draw.uniform(0, end), 2), draw.pick(-5 * DAY, -900.0, 1200.0)]] if draw.chance(0.2) else []
    case = draw.case("outage", origins, draw.settings(REP_UNREACHABLE_DAYS=[30.0, 30.0, 5.0]), requests=requests)
    case["crawlers"][0]["clock"] = clock
    return {**case, "heartbeat": 6 * HOUR, "max_seconds": end + 2 * DAY}


def paused(draw: Draw) -> Case:
    """A broad crawl that is paused, or closed."""
    case = {**broad(draw), "kind": "paused"}
    crawler = case["crawlers"][0]
    crawler["pauses"] = [[round(draw.uniform(0, 10), 2), draw.pick(0.5, 40.0)] for _ in range(draw.randint(1, 2))]
    if draw.chance(0.5):
        crawler["runs"] = [["close", round(draw.uniform(0.1, 20.0), 2)]]
    return case


KINDS: dict[str, Callable[[Draw], Case]] = {
    kind.__name__: kind for kind in (broad, dead, queue, hub, fleet, resumed, lazy, outage, paused)
}


def case_of(seed: int) -> Case:
    """The case that a seed draws."""
    draw = Draw(seed)
    return draw.choice(list(KINDS.values()))(draw)
