"""What the standard and docs/answers.md require of a crawl, written from these texts and not from the package's code.

1. `chains` puts the requests for robots.txt together to chains: an origin's /robots.txt, and where its redirects led.
2. `outcome_of` says what a chain means (RFC 9309 2.3.1; the first table of docs/answers.md).
3. `views` says what an origin's outcomes mean for its pages at some moment (RFC 9309 2.3.1.4 and 2.4).
4. `allows` matches a path with the rules (RFC 9309 2.2).

The servers of the simulation send plain rules in ASCII, so `allows` knows no encodings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import urljoin, urlsplit

from network import Exchange

DAY = 86_400.0
REDIRECTS = {301, 302, 303, 307, 308}
UNSEEN = 11 * DAY  # failures that are further apart are two outages
RETRY_GAP = 4.5  # seconds: a repetition comes after one, another round after five at least

DEFAULTS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "REP_FETCH_CONCURRENCY": 64,
    "REP_FETCH_RETRIES": 1,
    "REP_FETCH_TIMEOUT": 30.0,
    "REP_LIFETIME_MIN": 3_600.0,
    "REP_MAX_REDIRECTS": 5,
    "REP_UNREACHABLE_DAYS": 30.0,
    "REP_UNREACHABLE_WAIT": 30.0,
    "REP_WAITING_MAX": 1_000,
}


class Access(Enum):
    RULES = "the rules of the body apply"
    EVERYTHING = "unavailable: everything is allowed"
    NOTHING = "unreachable: nothing is allowed"


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@dataclass(eq=False)
class Chain:
    """The requests of one try to get an origin's robots.txt: along redirects, each with its repetitions."""

    origin: str
    run: str
    fetch: str
    """Which fetch of the run: rounds of one fetch are chains with the same number."""
    began: float
    hops: list[Exchange] = field(default_factory=list)
    repeated: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return self.run, self.origin

    @property
    def ended(self) -> float:
        return self.hops[-1].ended or float("inf")


def is_worth_a_repetition(exchange: Exchange) -> bool:
    """docs/answers.md: 5xx, and no answer but for a time-out; a Retry-After replaces the repetition."""
    if exchange.status is None or exchange.failure:
        return "Timeout" not in exchange.failure
    return exchange.status >= 500 and not {"Retry-After", "cf-mitigated"} & set(exchange.headers)


def chains(exchanges: Iterable[Exchange], settings: dict[str, Any]) -> list[Chain]:
    """All chains, in the order in which they ended."""
    of_fetch: dict[tuple[str, str], list[Chain]] = {}
    for exchange in exchanges:
        found = of_fetch.setdefault((exchange.run, exchange.mark), [])
        last = found[-1].hops[-1] if found else None
        if last is not None and last.ended is not None:
            location = last.headers.get("Location")
            if last.status in REDIRECTS and location and exchange.url == urljoin(last.url, location):
                found[-1].hops.append(exchange)
                continue
            # Only the first round has repetitions; any other request for the same URL is a round.
            is_due = len(found) == 1 and found[0].repeated < settings["REP_FETCH_RETRIES"] * len(found[0].hops)
            is_same = exchange.url == last.url and exchange.began - last.ended < RETRY_GAP
            if is_same and is_due and is_worth_a_repetition(last):
                found[-1].hops[-1] = exchange
                found[-1].repeated += 1
                continue
        found.append(Chain(origin_of(exchange.url), exchange.run, exchange.mark, exchange.began, [exchange]))
    return sorted((chain for each in of_fetch.values() for chain in each), key=lambda chain: chain.ended)


@dataclass(eq=False)
class Outcome:
    """What one chain means."""

    access: Access
    chain: Chain
    at: float
    fresh_until: float = 0.0
    body: str = ""
    tag: str | None = None
    must_revalidate: bool = False
    retry_after: float = 0.0
    why: str = ""


def outcome_of(  # noqa: PLR0911 - a row for each answer
    chain: Chain, settings: dict[str, Any], before: Outcome | None
) -> Outcome | None:
    """RFC 9309 2.3.1 and docs/answers.md. None if the chain has no end: the crawl was closed, or killed.

    `before`: the origin's last answer, which a 304 confirms.
    """
    last = chain.hops[-1]
    if last.ended is None or last.failure == "cancelled":
        return None
    limits = [lifetime(hop, settings) for hop in chain.hops]
    at, until = last.ended, min(end for _, end in limits)
    fixed: dict[str, Any] = {"must_revalidate": any(must for must, _ in limits), "why": said(last)}
    fixed |= {"fresh_until": max(until, at + 60.0), "tag": last.headers.get("ETag")}
    status, body = last.status, last.body
    if status is None or last.failure:
        return Outcome(Access.NOTHING, chain, at, why=said(last))
    if status == 304 and before is not None:
        return Outcome(before.access, chain, at, **{**fixed, "body": before.body})
    if "cf-mitigated" in last.headers or status in {202, 407, 429} or status >= 500:
        after = min(float(last.headers.get("Retry-After", 0)), 3_600.0)
        return Outcome(Access.NOTHING, chain, at, retry_after=after, why=said(last))
    if status in REDIRECTS:
        if len(chain.hops) > settings["REP_MAX_REDIRECTS"]:  # 2.3.1.2: more than five
            return Outcome(Access.EVERYTHING, chain, at, **fixed)
        is_unfinished = "Location" in last.headers
        return None if is_unfinished else Outcome(Access.NOTHING, chain, at, why=said(last))
    if 200 <= status < 300:
        is_page = body.lstrip().startswith("<") and not any(":" in line for line in body.splitlines())
        return Outcome(Access.EVERYTHING if is_page else Access.RULES, chain, at, body=body, **fixed)
    if 400 <= status < 500:
        return Outcome(Access.EVERYTHING, chain, at, **fixed)
    return Outcome(Access.NOTHING, chain, at, why=said(last))


def said(exchange: Exchange) -> str:
    return exchange.failure or f"HTTP {exchange.status}"


def lifetime(hop: Exchange, settings: dict[str, Any]) -> tuple[bool, float]:
    """Whether the answer must be revalidated when it has expired; and when it expires, by its headers (RFC 9111).

    It lasts for REP_LIFETIME_MIN at least, and for a day at most (RFC 9309 2.4).
    """
    control = hop.headers.get("Cache-Control", "")
    found = re.search(r"max-age=(\d+)", control)
    seconds = 0.0 if "no-cache" in control or "no-store" in control else float(found[1]) if found else DAY
    received = hop.ended or 0.0
    return bool(re.search("must-revalidate|no-cache", control)), received + min(
        max(seconds, settings["REP_LIFETIME_MIN"], 60.0), DAY
    )


@dataclass(frozen=True)
class View:
    """What decides about an origin's pages at a moment."""

    access: Access
    body: str = ""
    why: str = ""

    def allows(self, path: str, token: str) -> bool:
        return allows(self.body, path, token) if self.access is Access.RULES else self.access is Access.EVERYTHING


def view(outcomes: list[Outcome], now: float, days: float) -> View | None:
    """What the outcomes, in their order, mean at `now`; None if robots.txt has to be fetched first."""
    answer: Outcome | None = None
    since = last_failure = None
    for outcome in outcomes:
        if outcome.access is not Access.NOTHING:
            answer, since, last_failure = outcome, None, None
            continue
        if since is None or outcome.at - (last_failure or 0.0) >= UNSEEN:
            since = outcome.at
        last_failure = outcome.at
    if answer is not None and now < answer.fresh_until:
        return View(answer.access, answer.body, answer.why)
    if since is None or last_failure is None or now - last_failure >= UNSEEN:
        return None
    is_too_long = now - since >= days * DAY  # 2.3.1.4: "for example, 30 days"
    if answer is not None and answer.access is Access.RULES and (not answer.must_revalidate or is_too_long):
        return View(Access.RULES, answer.body, "rules from before the outage")  # 2.4: "unless ... unreachable"
    return View(Access.EVERYTHING if is_too_long else Access.NOTHING, why=outcomes[-1].why)


def views(outcomes: list[Outcome], now: float, days: float, doubts: Iterable[float]) -> Iterator[View]:
    """The same with clocks that are wrong by one of `doubts` seconds."""
    known = [outcome for outcome in outcomes if outcome.at <= now]
    for doubt in doubts:
        found = view(known, now + doubt, days)
        if found is not None:
            yield found


def allows(body: str, path: str, token: str) -> bool:
    """RFC 9309 2.2: the groups of the token, else those of `*`; among their rules the longest match decides."""
    groups: dict[str, list[tuple[bool, str]]] = {}
    agents: list[str] = []
    is_in_rules = True
    for line in body.splitlines():
        key, colon, value = (part.strip() for part in line.split("#")[0].partition(":"))
        key = key.lower()
        if key == "user-agent" and colon:
            agents = [value.lower()] if is_in_rules else [*agents, value.lower()]
            is_in_rules = False
            groups.setdefault(value.lower(), [])
        elif key in {"allow", "disallow"}:
            is_in_rules = True
            for agent in agents if value else ():
                groups[agent].append((key == "allow", value))
    rules = groups.get(token.lower(), groups.get("*", []))
    matching = [(len(pattern), is_allow) for is_allow, pattern in rules if matches(pattern, path)]
    return max(matching)[1] if matching else True


def matches(pattern: str, path: str) -> bool:
    expression = "".join(".*" if char == "*" else re.escape(char) for char in pattern.removesuffix("$"))
    return re.match(expression + ("$" if pattern.endswith("$") else ""), path) is not None
