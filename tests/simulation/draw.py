"""Draws cases. A case is JSON, and has all that is needed to repeat it.

A seed draws one case. After a change of this module, a seed gives another case. `case["seed"]` is not this seed: it
seeds Python's `random` while the case runs.

Each kind of case is a function, because one mix of everything misses faults. For example, a hub of redirects needs many
origins that lead to one, and an outage of 40 days needs few requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Case = dict[str, Any]
Answer = dict[str, Any]

HOUR, DAY = 3_600.0, 86_400.0
RULES = "User-agent: *\nDisallow: /private\nAllow: /private/open\n\nUser-agent: otherbot\nDisallow: /\n"
PAGES = ["/", "/page", "/private/x", "/private/open/y"]
FAILURES: list[Answer] = [
    *[{"fail": "hang"}] * 3,
    {"fail": "reset"},
    {"fail": "cut", "body": "User-agent: *\nAllow: /\n"},
    *({"status": status} for status in (503, 500, 202, 302)),
    *({"status": n, "headers": {"Retry-After": wait}} for n, wait in ((503, "20"), (503, "9999"), (429, "40"))),
    {"status": 403, "headers": {"cf-mitigated": "challenge"}},
]
NO_RULES: list[Answer] = [*({"status": n} for n in (404, 403, 410)), {"status": 200, "body": "<html>Hello</html>"}]
NO_WAY: list[Answer] = [{"fail": "dns"}, {"fail": "reset"}, {"fail": "hang"}]
AWARE = "scrapy.pqueues.DownloaderAwarePriorityQueue"
SETTINGS: dict[str, list[Any]] = {
    "CONCURRENT_REQUESTS": [1, 4, 16, 16],
    "CONCURRENT_REQUESTS_PER_DOMAIN": [1, 8, 8],
    "REP_FETCH_CONCURRENCY": [0, 1, 2, 8, 64, 64],
    "REP_FETCH_TIMEOUT": [5.0, 30.0, 30.0],
    "REP_FETCH_RETRIES": [0, 1, 1, 2],
    "REP_UNREACHABLE_WAIT": [0.0, 3.0, 12.0, 30.0, 30.0],
    "REP_LIFETIME_MIN": [60.0, 3_600.0, 3_600.0],
    "REP_MEMORY_OCTETS": [10_000, 2**26, 2**26],
    "REP_WAITING_MAX": [0, 3, 1_000, 1_000, 1_000],
    "SCHEDULER_PRIORITY_QUEUE": ["scrapy.pqueues.ScrapyPriorityQueue", AWARE, AWARE],
}


class Draw(random.Random):
    """Random choices for the functions that make cases."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, *choices: Any) -> Any:
        return self.choice(choices)

    def rules(self) -> Answer:
        """An answer with rules. Bodies differ, so that the use of an old body is noticed."""
        more = [f"\nUser-agent: *\nDisallow: {path}\n" for path in ("/page", "/late") if self.chance(0.4)]
        age = f"max-age={self.pick(0, 30, 600, 7200, 200_000)}"
        control = self.pick("", "", "", "", age, age, "no-cache", "max-age=3600, must-revalidate", "no-store")
        headers = {"Cache-Control": control} if control else {}
        return {"status": 200, "body": "".join([RULES, *more]), "headers": headers}

    def answer(self, chance_of_rules: float) -> Answer:
        is_rules = self.chance(chance_of_rules)
        return self.rules() if is_rules else self.choice(FAILURES if self.chance(0.75) else NO_RULES)

    def robots(self, chance_of_rules: float) -> list[list[Any]]:
        """What a robots.txt answers, in phases: [from which second, answer]."""
        begins = [0.0]
        while self.chance(0.3):
            begins.append(round(self.uniform(0.5, 60.0), 2))
        return [[begin, self.answer(chance_of_rules)] for begin in sorted(begins)]

    def origin(self, *robots: list[Any], **others: Any) -> dict[str, Any]:
        seed, robots_delay, page_delay = self.randrange(10**6), self.pick(0.05, 0.3, 0.3, 1.0, 3.0), self.pick(0.1, 0.5)
        delays = {"robots_delay": [0.01, robots_delay], "page_delay": [0.01, page_delay]}
        return {"seed": seed, "robots": list(robots), **delays, **others}

    def settings(self, **choices: list[Any]) -> dict[str, Any]:
        """Each of SETTINGS is drawn in half of the cases. What a kind needs (`choices`) is always drawn."""
        others = {name: self.choice(values) for name, values in SETTINGS.items() if self.chance(0.5)}
        return {**others, **{name: self.choice(values) for name, values in choices.items()}}

    def requests(self, origins: list[str], pages: int, until: float = 0.0, spread: float = 0.0) -> list[dict[str, Any]]:
        """Return `pages` requests per origin, shuffled, at times from 0 to `until`.

        `spread`: the probability that a callback makes the request.
        """
        found: list[dict[str, Any]] = []
        urls = [f"{origin}{self.choice(PAGES)}{n}" for origin in origins for n in range(pages)]
        for number, url in enumerate(self.sample(urls, len(urls))):
            each: dict[str, Any] = {"url": url, "at": round(self.uniform(0, until), 2)}
            is_link = number and self.chance(spread)
            each |= {"after": self.randrange(number), "inline": self.chance(0.2)} if is_link else {}
            each |= {"priority": self.pick(-5, 5, 10)} if self.chance(0.1) else {}
            each |= {"agent": "OtherBot/2.0"} if self.chance(0.05) else {}
            found.append(each)
        return found

    def store(self) -> dict[str, Any]:
        return {"seed": self.randrange(10**6), "delay": [0.001, self.pick(0.003, 0.1)], "faults": []}

    def case(self, origins: dict[str, Any], settings: dict[str, Any], *crawlers: dict[str, Any], **others: Any) -> Case:
        seeds = {"seed": self.randrange(10**6), "heartbeat": self.pick(5.0, HOUR), "max_seconds": 100_000.0}
        parts = {"settings": settings, "store": None, "origins": origins, "crawlers": list(crawlers)}
        return {**seeds, **parts, **others}


def crawler(requests: list[dict[str, Any]], **others: Any) -> dict[str, Any]:
    return {"name": "a", "begin": 0.0, "clock": [], "runs": [None], "requests": requests, **others}


def named(number: int, what: str = "site") -> str:
    return f"http://{what}{number}.example.com"


def broad(draw: Draw) -> Case:
    """Many origins, some of which are dead, a few pages each."""
    number, chance_of_rules = draw.pick(10, 40, 40, 120), draw.pick(0.5, 0.8, 0.95)
    origins = {named(n): draw.origin(*draw.robots(chance_of_rules)) for n in range(number)}
    requests = draw.requests(list(origins), draw.pick(1, 2, 4), draw.pick(0.0, 0.0, 20.0), draw.pick(0.0, 0.3))
    return draw.case(origins, draw.settings(), crawler(requests))


def dead(draw: Draw) -> Case:
    """A crowd of dead origins, and some that are healthy."""
    dead_ones = {named(n, "dead"): draw.origin([0.0, {"fail": "hang"}]) for n in range(draw.pick(20, 80, 200))}
    healthy = {named(n): draw.origin([0.0, draw.rules()]) for n in range(draw.pick(3, 10))}
    requests = draw.requests(list(dead_ones), 1) + draw.requests(list(healthy), 4)
    if draw.chance(0.7):
        draw.shuffle(requests)
    return draw.case({**dead_ones, **healthy}, draw.settings(REP_FETCH_CONCURRENCY=[2, 8, 16, 64]), crawler(requests))


def queue(draw: Draw) -> Case:
    """More origins than turns: all robots.txt files are slow. A start() may wait until the crawl has room."""
    chance_of_rules, number, slow = draw.pick(0.9, 1.0), draw.pick(60, 200), {"delay": [0.2, 1.5]}
    origins = {named(n): draw.origin([0.0, draw.answer(chance_of_rules) | slow]) for n in range(number)}
    settings = draw.settings(REP_FETCH_CONCURRENCY=[1, 2, 4, 8], REP_WAITING_MAX=[1_000])
    return draw.case(origins, settings, crawler(draw.requests(list(origins), 1), lazy=draw.chance(0.5)))


def hub(draw: Draw) -> Case:
    """Origins whose robots.txt redirects to others: chains, circles, one-time tokens, answers by User-Agent."""
    hubs: dict[str, Any] = {}
    for n in range(draw.randint(1, 3)):
        hubs[named(n, "hub")] = draw.pick(
            draw.origin(*draw.robots(0.8)),
            draw.origin([0.0, draw.choice(FAILURES)], [20.0, draw.rules()]),
            draw.origin([0.0, {"token": "/gate"}], paths={"/gate": [[0.0, {"gate": draw.rules()}]]}),
            draw.origin([0.0, {"agents": {"otherbot": draw.answer(0.5), "": draw.rules()}}]),
        )
    origins: dict[str, Any] = {}
    for n in range(draw.pick(2, 6, 20)):
        target = draw.choice([*hubs, *origins, named(n)] if draw.chance(0.3) else list(hubs))
        redirect = {"status": draw.pick(301, 302, 307, 308), "headers": {"Location": f"{target}/robots.txt"}}
        origins[named(n)] = draw.origin([0.0, redirect])
    requests = draw.requests([*origins, *hubs], 2, draw.pick(0.0, 30.0, 3 * HOUR), 0.1)
    return draw.case({**origins, **hubs}, draw.settings(), crawler(requests))


def fleet(draw: Draw) -> Case:
    """Several crawlers with one store. The store may fail, a crawler may be killed, and clocks may be wrong."""
    origins = {named(n): draw.origin(*draw.robots(0.7)) for n in range(draw.pick(2, 8, 20))}
    crawlers = []
    for name in "abc"[: draw.randint(2, 3)]:
        requests, begin = draw.requests(list(origins), 2, draw.pick(0.0, 10.0, 2 * HOUR)), draw.pick(0.0, 0.0, 2.0)
        clock = [[0.0, draw.pick(-2 * DAY, -600.0, 200.0, 7200.0)]] if draw.chance(0.15) else []
        stop = [draw.pick("kill", "close"), round(draw.uniform(0.3, 12.0), 2)] if draw.chance(0.3) else None
        crawlers.append(crawler(requests, name=name, begin=begin, clock=clock, runs=[stop]))
    case = draw.case(origins, draw.settings(), *crawlers, store=draw.store())
    while draw.chance(0.25):
        begin, whose = round(draw.uniform(0, 20), 2), draw.pick([], ["a"])
        case["store"]["faults"].append([begin, begin + draw.pick(1, 10, 60), draw.pick("error", "hang"), *whose])
    return case


def resumed(draw: Draw) -> Case:
    """A crawl with a JOBDIR that is closed or killed, and resumed."""
    origins = {named(n): draw.origin(*draw.robots(draw.pick(0.5, 0.9))) for n in range(draw.pick(3, 10, 40))}
    requests = draw.requests(list(origins), draw.pick(1, 3, 8), draw.pick(0.0, 3.0), 0.2)
    for each in requests:
        each.pop("inline", None)
    runs = [[draw.pick("kill", "close", "close"), round(draw.uniform(0.05, 8.0), 2)] for _ in range(draw.randint(1, 3))]
    settings = draw.settings(REP_WAITING_MAX=[1, 5, 1_000])
    return draw.case(origins, settings, crawler(requests, runs=[*runs, None], jobdir=True))


def outage(draw: Draw) -> Case:
    """Hours, days and weeks: outages of up to 40 days, answers that change, a clock that is set."""
    length = draw.pick(2 * HOUR, 2 * DAY, 10 * DAY, 40 * DAY)
    origins = {}
    for n in range(draw.randint(1, 3)):
        phases = [[0.0, draw.rules()]] if draw.chance(0.5) else []
        begin = 2 * HOUR * len(phases)
        origins[named(n)] = draw.origin(*phases, [begin, draw.choice(FAILURES)], [begin + length, draw.rules()])
    end = length + draw.pick(2 * HOUR, 3 * DAY)
    requests = draw.requests(list(origins), draw.pick(60, 200), end)
    clock = [[round(draw.uniform(0, end), 2), draw.pick(-5 * DAY, -900.0, 1200.0)]] if draw.chance(0.2) else []
    settings = draw.settings(REP_UNREACHABLE_DAYS=[30.0, 30.0, 5.0])
    return draw.case(origins, settings, crawler(requests, clock=clock), heartbeat=6 * HOUR, max_seconds=end + 2 * DAY)


def proxies(draw: Draw) -> Case:
    """All requests go through one proxy, or each through one of several. Some are dead, hang or answer 407."""
    ways = {named(n, "proxy"): draw.pick({}, {}, {"status": 407}, *NO_WAY) for n in range(draw.pick(1, 3, 8))}
    robots = [draw.pick([[0.0, draw.rules()]], draw.robots(0.8)) for _ in range(draw.pick(1, 6))]
    origins = {named(n): draw.origin(*each) for n, each in enumerate(robots)}
    requests = draw.requests(list(origins), draw.pick(2, 8), draw.pick(0.0, 0.0, 5.0), 0.1)
    for each in requests:
        if draw.chance(0.8):
            each["proxy"] = draw.choice(list(ways))
    # So that no request waits for its place.
    settings = draw.settings(REP_FETCH_CONCURRENCY=[8, 64], CONCURRENT_REQUESTS=[16])
    return draw.case(origins, settings, crawler(requests), proxies=ways)


def limited(draw: Draw) -> Case:
    """Many origins behind a proxy, or of one server, that allows a few connections."""
    delays = {"robots_delay": [0.01, 0.4], "page_delay": [0.01, 0.4]}
    origins = {named(n): draw.origin([0.0, draw.rules()], **delays) for n in range(draw.pick(6, 12, 40))}
    requests = draw.requests(list(origins), draw.pick(1, 3), 0.0, draw.pick(0.0, 0.3))
    has_proxy = draw.chance(0.5)
    for each in requests if has_proxy else ():
        each["proxy"] = named(0, "proxy")
    settings = draw.settings(CONCURRENT_REQUESTS=[1, 2, 4], REP_FETCH_CONCURRENCY=[0, 64] if has_proxy else [0])
    return draw.case(origins, settings, crawler(requests))


def fed(draw: Draw) -> Case:
    """A spider that gets its URLs in batches, each when it is idle. Some sites are in an outage."""
    sick = [{"fail": "reset"}, {"fail": "dns"}, {"status": 503}, {"fail": "hang"}]
    names = [named(n) for n in range(draw.pick(4, 12))]
    origins = {name: draw.origin([0.0, draw.pick(draw.rules(), draw.rules(), *sick)]) for name in names}
    requests = draw.requests(names, draw.pick(1, 2, 10))
    limits = {"REP_WAITING_MAX": [3, 1_000, 1_000], "REP_MEMORY_OCTETS": [2**26]}
    settings = draw.settings(REP_UNREACHABLE_WAIT=[12.0, 30.0], **limits)
    return draw.case(origins, settings, crawler(requests, fed=draw.pick(1, 1, 4)))


def names(draw: Draw) -> Case:
    """Many names whose look-ups take long and find no address, and healthy sites behind them."""
    slow = [named(n, "slow") for n in range(draw.pick(60, 90))]
    origins = {name: draw.origin([0.0, {"fail": "dns"}], look_up=6.0, has_no_address=True) for name in slow}
    healthy = [named(n) for n in range(draw.pick(3, 10))]
    origins |= {name: draw.origin([0.0, draw.rules()], look_up=0.01, has_no_address=False) for name in healthy}
    requests = draw.requests(slow, 1) + draw.requests(healthy, 1)
    settings = draw.settings(REP_FETCH_TIMEOUT=[30.0], REP_FETCH_CONCURRENCY=[64], REP_WAITING_MAX=[1_000])
    return draw.case(origins, settings, crawler(requests))


def broken(draw: Draw) -> Case:
    """A crawl whose network is broken, or whose proxy; and one with the same store, later or at the same time, that
    reaches all servers."""
    origins = {named(n): draw.origin([0.0, draw.rules()]) for n in range(draw.pick(2, 10))}
    first, second = draw.requests(list(origins), 2), draw.requests(list(origins), 2, draw.pick(0.0, 20.0))
    way, begin = draw.choice(NO_WAY), draw.pick(0.0, *(round(draw.uniform(1, 12), 2) for _ in range(3)), 1_000.0)
    is_proxy = draw.chance(0.3)
    for each in first if is_proxy else ():
        each["proxy"] = named(0, "proxy")
    crawlers = crawler(first, network={} if is_proxy else way), crawler(second, name="b", begin=begin)
    settings = draw.settings(REP_UNREACHABLE_WAIT=[0.0, 3.0, 30.0], REP_FETCH_TIMEOUT=[5.0])
    return draw.case(origins, settings, *crawlers, store=draw.store(), proxies={named(0, "proxy"): way})


def media(draw: Draw) -> Case:
    """Callbacks download files themselves, as media pipelines do, and the crawl is closed."""
    origins = {named(n): draw.origin(*draw.robots(0.7)) for n in range(draw.pick(3, 8))}
    requests = draw.requests(list(origins), draw.pick(2, 4), 0.0, 0.8)
    for each in requests:
        each["inline"] = "after" in each
    close, resume = ["close", round(draw.uniform(0.1, 4.0), 2)], draw.pick([], [], [None])
    plan = crawler(requests, runs=[close, *resume], jobdir=bool(resume))
    return draw.case(origins, draw.settings(), plan, store=draw.pick(None, draw.store()), max_seconds=1_000.0)


def stopped(draw: Draw) -> Case:
    """The process is stopped for a while, as with Ctrl-Z and `fg`."""
    case = draw.pick(broad, dead, queue, queue, hub)(draw)
    return {**case, "stops": [[round(draw.uniform(0.1, 4.0), 2), draw.pick(60.0, 600.0)]]}


def crowd(draw: Draw) -> Case:
    """More sites than memory has room for. Many of them have more pages than a site may request in turn."""
    rules = {"status": 200, "body": RULES, "headers": {}}
    delays = {"robots_delay": [0.01, 0.02], "page_delay": [0.01, 0.05]}
    origins = {named(n): draw.origin([0.0, rules], **delays) for n in range(16)}
    endless, others = list(origins)[:7], list(origins)[7:]
    requests = draw.requests(endless, 125) + draw.requests(others, 3)
    settings = draw.settings(
        CONCURRENT_REQUESTS=[1],
        REP_FETCH_CONCURRENCY=[1],
        REP_LIFETIME_MIN=[3_600.0],
        REP_MEMORY_OCTETS=[22_000],  # 12 sites, so 6 take turns
        REP_WAITING_MAX=[1_000],
        SCHEDULER_PRIORITY_QUEUE=[AWARE],
    )
    return draw.case(origins, settings, crawler(requests))


KINDS: tuple[Callable[[Draw], Case], ...] = (
    *(broad, dead, queue, queue, hub, fleet, resumed, outage),
    *(proxies, limited, fed, names, broken, media, stopped),
)


def case_of(seed: int) -> Case:
    """The case that a seed draws."""
    draw = Draw(seed)
    kind = crowd if seed % 25 == 8 else draw.choice(KINDS)  # few, because they have thousands of requests
    return {"kind": kind.__name__, **kind(draw)}
