"""What must hold in every crawl, checked on its history: safety, liveness, cost. No promise has an excuse.

Each promise is a function that yields what breaks it. Its name is the name of the promise. Times are true seconds from
the beginning of the case.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from crawl import History
from network import Exchange
from oracle import DEFAULTS, Access, Chain, Outcome, View, chains, origin_of, outcome_of, views

REFUSED = {"ForbiddenByRobots", "RobotsUnreachable"}
MOMENT = 0.1  # seconds between an answer and the decisions that follow from it, at most
SLOW = 0.5  # seconds after which a fetch does not count against REP_FETCH_CONCURRENCY
SLACK = 2.5  # seconds: a repetition's pause of one second, and some turns
BACKOFF_FIRST, BACKOFF_MAX = 5.0, 3_600.0


@dataclass
class Life:
    """One request in one run: when it came to which place. None if it never did."""

    run: str
    number: int
    asked: float | None = None
    taken: float | None = None
    entered: float | None = None
    decided: float | None = None
    is_allowed: bool = False
    sent: float | None = None
    ended: float | None = None
    how: str = ""
    ends: int = 0


class Trial:
    """A history, and what the oracle makes of it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.case = history.case
        self.settings: dict[str, Any] = {**DEFAULTS, **self.case["settings"]}
        self.crawlers = {crawler["name"]: crawler for crawler in self.case["crawlers"]}
        self.robots = [exchange for exchange in history.exchanges if exchange.is_robots]
        self.pages = [exchange for exchange in history.exchanges if not exchange.is_robots]
        self.chains = chains(self.robots, self.settings)
        self.outcomes: dict[str, list[Outcome]] = defaultdict(list)
        for chain in self.chains:
            known = self.outcomes[chain.origin]
            answers = [each for each in known if each.access is not Access.NOTHING]
            outcome = outcome_of(chain, self.settings, answers[-1] if answers else None)
            if outcome is not None:
                known.append(outcome)

    @cached_property
    def lives(self) -> dict[tuple[str, int], Life]:
        found: dict[tuple[str, int], Life] = {}
        for at, run, what, number, details in self.history.events:
            if number is None:
                continue
            life = found.setdefault((run, number), Life(run, number))
            if what in {"asked", "taken", "entered", "sent"}:
                setattr(life, what, at)
            elif what == "queued":  # for the first time, or again
                life.taken = None
            elif what in {"allowed", "refused"}:
                life.decided, life.is_allowed = at, what == "allowed"
            elif what == "ended":
                life.ended, life.how, life.ends = at, details, life.ends + 1
        return found

    def plan(self, life: Life) -> dict[str, Any]:
        plan: dict[str, Any] = self.crawlers[life.run[0]]["requests"][life.number]
        return plan

    def origin(self, life: Life) -> str:
        return origin_of(self.plan(life)["url"])

    def path(self, life: Life) -> str:
        url: str = self.plan(life)["url"]
        return url[len(origin_of(url)) :]

    def token(self, life: Life) -> str:
        agent: str = self.plan(life).get("agent") or "SimBot/1.0"
        return agent.partition("/")[0]

    @cached_property
    def doubts(self) -> list[float]:
        """Seconds by which the crawlers' clocks may be wrong about a time that they have stored."""
        errors = {0.0, *(error for each in self.crawlers.values() for _, error in each["clock"])}
        skew = max(errors) - min(errors)
        return [0.0, -skew, skew] if skew else [0.0]

    @property
    def has_right_clocks(self) -> bool:
        return len(self.doubts) == 1

    def known(self, run: str, origin: str) -> Iterator[list[Outcome]]:
        """The outcomes that a run may go by: its own; with a store also those of the others, as far as it has read
        them."""
        everything = self.outcomes[origin]
        own = [outcome for outcome in everything if outcome.chain.run == run]
        yield own
        if self.case["store"]:
            last = max((n for n, outcome in enumerate(everything) if outcome.chain.run == run), default=-1)
            for end in range(max(last, len(everything) - 30, 0), len(everything)):
                yield everything[: end + 1]
                yield everything[end : end + 1]

    def views(self, life: Life, at: float) -> list[View]:
        """What may decide about the request at that moment, or just before."""
        found: list[View] = []
        for moment in (at, at - MOMENT):
            for outcomes in self.known(life.run, self.origin(life)):
                before = [outcome for outcome in outcomes if outcome.at <= moment]
                found += views(before, moment, self.settings["REP_UNREACHABLE_DAYS"], self.doubts)
                if not self.has_right_clocks:  # a failure in the future is forgotten, too
                    found += views(before[-1:], moment, self.settings["REP_UNREACHABLE_DAYS"], self.doubts)
        return found

    def told(self, life: Life) -> str:
        return f"request {life.number} of {life.run}, {self.plan(life)['url']}"

    def fetches(self) -> Iterator[list[Outcome]]:
        """The outcomes of each fetch: its rounds."""
        found: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
        for outcomes in self.outcomes.values():
            for outcome in outcomes:
                found[outcome.chain.run, outcome.chain.fetch, outcome.chain.origin].append(outcome)
        yield from found.values()


Promise = Callable[[Trial], Iterator[str]]

# Safety.


def no_forbidden_page_is_sent(trial: Trial) -> Iterator[str]:
    for life in trial.lives.values():
        if life.sent is None or life.decided is None or not life.is_allowed:
            continue
        seen = trial.views(life, life.decided)
        if not any(view.allows(trial.path(life), trial.token(life)) for view in seen):
            why = f"robots.txt said: {seen[0].access.value} ({seen[0].why})" if seen else "robots.txt was not known"
            yield f"at {life.decided:.3f} {trial.told(life)} was allowed, and {why}"


def no_page_is_sent_undecided(trial: Trial) -> Iterator[str]:
    for life in trial.lives.values():
        if life.sent is not None and life.decided is None:
            yield f"at {life.sent:.3f} {trial.told(life)} was sent, and nothing had decided about it"


def no_allowed_page_is_refused(trial: Trial) -> Iterator[str]:
    for life in trial.lives.values():
        if life.decided is None or life.is_allowed or life.how not in REFUSED:
            continue
        seen = trial.views(life, life.decided)
        if all(view.allows(trial.path(life), trial.token(life)) for view in seen):
            why = f"robots.txt said: {seen[0].access.value} ({seen[0].why})" if seen else "robots.txt was not known"
            yield f"at {life.decided:.3f} {trial.told(life)} was refused ({life.how}), and {why}"


def each_request_ends_once(trial: Trial) -> Iterator[str]:
    for name, crawler in trial.crawlers.items():
        runs = [f"{name}{n}" for n in range(len(crawler["runs"]))]
        killed = {run for _, run, *_ in trial.history.of("killed")}
        opened = {run for _, run, *_ in trial.history.of("opened")}
        is_over = crawler["runs"][-1] is None and runs[-1] in opened and not trial.history.faults
        for number, _plan in enumerate(crawler["requests"]):
            lives = [trial.lives[run, number] for run in runs if (run, number) in trial.lives]
            ends = sum(life.ends for life in lives)
            if ends > 1 and not killed:
                yield f"{trial.told(lives[0])} ended {ends} times"
            if any(life.ends > 1 for life in lives) and not killed:
                yield f"{trial.told(lives[0])} ended more than once in one run"
            if lives and not ends and is_over and (not killed or waited_at_kill(lives, killed, crawler)):
                yield f"{trial.told(lives[-1])} never ended"


def waited_at_kill(lives: list[Life], killed: set[str], crawler: dict[str, Any]) -> bool:
    """Whether it waited for a robots.txt when it was last seen, and its run was killed: a copy of it is in the JOBDIR.
    What was in Scrapy's queue, in the downloader or in a callback is Scrapy's to lose."""
    is_kept = False
    for life in lives:
        if life.entered is not None or life.run not in killed:
            is_kept = False
        elif life.taken is not None:
            is_kept = True
    return is_kept and bool(crawler.get("jobdir"))


def a_request_is_handed_out_once(trial: Trial) -> Iterator[str]:
    if any(trial.history.of("killed")):  # Scrapy may fetch start requests again
        return
    handed = Counter((run, number) for _, run, _, number, _ in trial.history.of("handed"))
    for (run, number), times in handed.items():
        if times > 1:
            yield f"{trial.told(trial.lives[run, number])} was handed out {times} times"


def the_log_has_no_error(trial: Trial) -> Iterator[str]:
    yield from (fault for fault in trial.history.faults if fault.startswith("at "))


# Liveness.


def the_crawl_ends(trial: Trial) -> Iterator[str]:
    yield from (fault for fault in trial.history.faults if not fault.startswith("at "))


def not_idle_too_early(trial: Trial) -> Iterator[str]:
    """`spider_idle` is not sent while requests are pending: a user's second phase would begin too early."""
    pending: Counter[str] = Counter()
    for at, run, what, _number, _ in trial.history.events:
        pending[run] += (what == "asked") - (what == "ended")
        if what == "idle" and pending[run] and not trial.crawlers[run[0]].get("jobdir"):
            yield f"at {at:.3f} spider_idle was sent in {run} while {pending[run]} requests were pending"


def is_eager(trial: Trial, run: str) -> bool:
    """Whether nothing holds this run up: no pause, no delay, no full door before a queue of another order."""
    crawler = trial.crawlers[run[0]]
    return not crawler.get("pauses") and not trial.settings["DOWNLOAD_DELAY"] and not crawler.get("jobdir")


def first_fetches_do_not_wait_for_later_ones(trial: Trial) -> Iterator[str]:
    """From when the first request to an origin has left the queue, its fetch begins within a time that does not grow
    with the number of other origins: at most 2 x REP_FETCH_CONCURRENCY fetches are before it."""
    first: dict[tuple[str, str], Life] = {}
    for life in trial.lives.values():
        key = life.run, trial.origin(life)
        if life.taken is not None and (key not in first or life.taken < (first[key].taken or 0.0)):
            first[key] = life
    began: dict[tuple[str, str], float] = {}
    for chain in trial.chains:
        key = chain.run, chain.origin
        began[key] = min(began.get(key, float("inf")), chain.began)
    for (run, origin), life in first.items():
        if not is_eager(trial, run) or trial.case["store"] or trial.plan(life).get("priority", 0) < 0:
            continue
        if trial.settings["REP_WAITING_MAX"] == 0 or (run, origin) not in began or life.taken is None:
            continue
        waited = began[run, origin] - life.taken
        if waited > 4 * SLOW + SLACK:
            yield f"at {life.taken:.3f} {trial.told(life)} left the queue; robots.txt was fetched {waited:.1f} s later"


def nothing_ready_waits_while_there_is_room(trial: Trial) -> Iterator[str]:
    """A request whose robots.txt is known goes on while the downloader and its slot have room."""
    room = Room(trial)
    for life in trial.lives.values():
        if life.taken is None or not is_eager(trial, life.run):
            continue
        until = life.entered if life.entered is not None else trial.history.ended_at
        known = trial.outcomes[trial.origin(life)]
        if trial.case[
            "store"
        ]:  # another crawler may have the lease for the next round, and this one looks once a second
            poll = 0.0 if trial.case["store"]["faults"] or any(trial.history.of("killed")) else 1.5
            known = [each for each in known if each.access is not Access.NOTHING and each.fresh_until >= until]
        else:
            poll = 0.0
        if not poll:
            known = [outcome for outcome in known if outcome.chain.run == life.run]
        ended = [outcome.at + poll for outcome in known if outcome.at + poll <= until]
        if not ended or life.run not in room.over:
            continue
        ready = max(life.taken, min(ended[-1], until))
        idle = room.idle(life, ready, min(until, room.over[life.run]))
        if idle > SLACK:
            yield f"{trial.told(life)} was ready at {ready:.3f}, and waited although there was room for {idle:.1f} s"


def the_queue_moves(trial: Trial) -> Iterator[str]:
    """While the downloader has room, requests leave the queue: REP_FETCH_CONCURRENCY new origins in half a second."""
    room = Room(trial)
    hops = max((len(chain.hops) for chain in trial.chains), default=1)
    turns = len(trial.case["origins"]) * hops / trial.settings["REP_FETCH_CONCURRENCY"]
    queued: dict[tuple[str, int], float] = {}
    for at, run, what, number, _ in trial.history.of("queued", "taken"):
        if what == "queued":
            queued[run, number] = at
        elif is_eager(trial, run) and trial.settings["REP_WAITING_MAX"] > 0:
            idle = room.idle(trial.lives[run, number], queued[run, number], at)
            if idle > 1.5 * SLOW * turns + SLACK:
                yield f"at {at:.3f} {trial.told(trial.lives[run, number])} left the queue, after {idle:.1f} s with room"


class Room:
    """When the downloader had room, as far as the network shows it."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.over: dict[str, float] = {}
        for at, run, *_ in trial.history.of("closed", "closing", "killed"):
            self.over.setdefault(run, at)
        self.of_run: dict[str, list[Exchange]] = defaultdict(list)
        for page in trial.history.exchanges:
            self.of_run[page.run].append(page)

    def idle(self, life: Life, begin: float, end: float) -> float:
        """Seconds between two moments in which there was room for the request."""
        if end - begin <= SLACK:
            return 0.0
        changes: list[tuple[float, int, int]] = []
        for page in self.of_run[life.run]:
            if page.began < end and (page.ended or end) > begin:
                mine = int(origin_of(page.url) == self.trial.origin(life))
                one = int(not page.is_robots)
                changes += [(max(page.began, begin), one, mine), (min(page.ended or end, end), -one, -mine)]
        total, slot, idle, last = 0, 0, 0.0, begin
        settings = self.trial.settings
        for at, one, mine in sorted(changes):
            has_room = total < settings["CONCURRENT_REQUESTS"] and slot < settings["CONCURRENT_REQUESTS_PER_DOMAIN"]
            idle += (at - last) * has_room
            total, slot, last = total + one, slot + mine, at
        return idle + end - last


def requests_wait_no_longer_than_documented(trial: Trial) -> Iterator[str]:
    """REP_UNREACHABLE_WAIT, and then the rest of the last round; a host that hangs has no second round."""
    settings = trial.settings
    timeout, wait = settings["REP_FETCH_TIMEOUT"], settings["REP_UNREACHABLE_WAIT"]
    hops = {outcome.chain.run + outcome.chain.origin: 1 for rounds in trial.fetches() for outcome in rounds}
    for outcomes in trial.outcomes.values():
        for outcome in outcomes:
            key = outcome.chain.run + outcome.chain.origin
            hops[key] = max(hops[key], len(outcome.chain.hops))
    for life in trial.lives.values():
        if life.taken is None or life.decided is None or not is_eager(trial, life.run) or trial.case["store"]:
            continue
        if trial.plan(life).get("priority", 0) < 0:  # requests of a higher priority may always come first
            continue
        number = hops.get(life.run + trial.origin(life), 1)
        longest = wait + number * (timeout + settings["REP_FETCH_RETRIES"] * 4.0) + 8 * SLOW + SLACK
        if always_hangs(trial, trial.origin(life)):
            longest = timeout + 4 * SLOW + SLACK
        busy = Room(trial).idle(life, life.taken, life.decided) if life.decided - life.taken > longest else 0.0
        if busy > longest:
            yield f"{trial.told(life)} waited {busy:.1f} s; the longest is {longest:.1f} s"


def always_hangs(trial: Trial, origin: str) -> bool:
    robots = trial.case["origins"].get(origin, {"robots": []})["robots"]
    return bool(robots) and all(behaviour.get("fail") == "hang" for _, behaviour in robots)


def rounds_go_on_while_requests_wait(trial: Trial) -> Iterator[str]:
    """The first fetch of an origin goes on in rounds, after 5, 10, ... seconds, and a last round begins at
    REP_UNREACHABLE_WAIT. A host that is healthy by then is not refused."""
    wait = trial.settings["REP_UNREACHABLE_WAIT"]
    stops = Room(trial).over
    first: dict[tuple[str, str], list[Outcome]] = {}
    for rounds in trial.fetches():
        key = rounds[0].chain.run, rounds[0].chain.origin
        if key not in first or rounds[0].at < first[key][0].at:
            first[key] = rounds
    for (run, origin), rounds in first.items():
        last, begin = rounds[-1], rounds[0].chain.began
        if last.access is not Access.NOTHING or trial.case["store"]:
            continue
        if "Timeout" in last.why or last.retry_after or last.at >= stops.get(run, 0.0) - BACKOFF_MAX:
            continue
        if last.at < begin + wait - SLACK:
            yield f"{origin} was given up at {last.at:.3f}, {last.at - begin:.1f} s after {run} had begun its fetch"


def rounds_come_in_time(trial: Trial) -> Iterator[str]:
    """While requests wait, the next round of a fetch begins when the backoff is over, or at REP_UNREACHABLE_WAIT."""
    wait = trial.settings["REP_UNREACHABLE_WAIT"]
    if trial.case["store"] and (trial.case["store"]["faults"] or any(trial.history.of("killed"))):
        return
    for rounds in trial.fetches():
        everybodys = trial.outcomes[rounds[0].chain.origin]
        for after in rounds[1:]:
            # With a store, the failure before may be another crawler's.
            before = [outcome for outcome in everybodys if outcome.at <= after.chain.began]
            failures = next(
                (n for n, each in enumerate(reversed(before)) if each.access is not Access.NOTHING), len(before)
            )
            last = before[-1]
            latest = max(rounds[0].chain.began + wait, last.at + last.retry_after)
            due = last.at + max(BACKOFF_FIRST * 2.0 ** max(failures - 1, 0), last.retry_after)
            late = after.chain.began - min(due, latest)
            if late > 4 * SLOW + SLACK and is_eager(trial, after.chain.run):
                began = f"{after.chain.run}'s round for {after.chain.origin} at {after.chain.began:.3f}"
                yield f"{began} was {late:.1f} s late"


def healthy_origins_are_not_refused(trial: Trial) -> Iterator[str]:
    """Judged by what the servers do, not by what the crawl saw of them: whatever else hangs, a request to a server that
    answers in time is not refused for want of an answer."""
    for life in trial.lives.values():
        if life.how == "RobotsUnreachable" and is_healthy(trial, trial.origin(life)) and not trial.case["store"]:
            yield f"at {life.ended:.3f} {trial.told(life)} was refused as unreachable, and its server answers in time"


def is_healthy(trial: Trial, origin: str) -> bool:
    """Whether its robots.txt always answers, in a third of the time limit, and with something that decides."""
    plan = trial.case["origins"].get(origin)
    if plan is None or trial.settings["DOWNLOAD_DELAY"]:
        return False
    for _, behaviour in plan["robots"]:
        status, headers = behaviour.get("status"), behaviour.get("headers", {})
        is_slow = 3 * behaviour.get("delay", plan["robots_delay"])[1] > trial.settings["REP_FETCH_TIMEOUT"]
        if is_slow or "fail" in behaviour or status not in {200, 404, 410} or "cf-mitigated" in headers:
            return False
    return True


# Cost.


def one_fetch_an_origin_at_a_time(trial: Trial) -> Iterator[str]:
    of_origin: dict[tuple[str, str], list[Chain]] = defaultdict(list)
    for chain in trial.chains:
        of_origin[chain.run, chain.origin].append(chain)
    for (run, origin), found in of_origin.items():
        found.sort(key=lambda chain: chain.began)
        for before, after in pairwise(found):
            if after.began < before.ended:
                yield f"{run} fetched {origin} at {before.began:.3f} and again at {after.began:.3f}, before that ended"


def no_fetch_while_fresh(trial: Trial) -> Iterator[str]:
    if not trial.has_right_clocks:
        return
    for outcomes in trial.outcomes.values():
        for run in {outcome.chain.run for outcome in outcomes}:
            own = [outcome for outcome in outcomes if outcome.chain.run == run]
            for before, after in pairwise(own):
                last_tenth = before.fresh_until - 0.1 * (before.fresh_until - before.chain.began) - SLACK
                if before.access is not Access.NOTHING and after.chain.began < last_tenth:
                    yield (
                        f"{run} fetched {after.chain.origin} at {after.chain.began:.3f};"
                        f" the answer of {before.at:.3f} was good until {before.fresh_until:.3f}"
                    )


def backoffs_are_kept(trial: Trial) -> Iterator[str]:
    """5 seconds, doubling, at most an hour, or what Retry-After says; but a last round at REP_UNREACHABLE_WAIT."""
    if not trial.has_right_clocks:
        return
    wait = trial.settings["REP_UNREACHABLE_WAIT"]
    begins = {id(outcome): rounds[0].chain.began for rounds in trial.fetches() for outcome in rounds}
    for outcomes in trial.outcomes.values():
        for run in {outcome.chain.run for outcome in outcomes}:
            failures = 0
            own = [outcome for outcome in outcomes if outcome.chain.run == run]
            for before, after in pairwise(own):
                failures = failures + 1 if before.access is Access.NOTHING else 0
                if not failures:
                    continue
                least = max(min(BACKOFF_FIRST * 2.0 ** min(failures - 1, 20), BACKOFF_MAX), before.retry_after)
                began = after.chain.began
                may_be_last = began >= before.at + before.retry_after
                is_last_round = may_be_last and abs(began - begins[id(before)] - wait) < 2 * SLACK
                if began < before.at + least - MOMENT and not is_last_round:
                    gap = began - before.at
                    yield f"{run} fetched {after.chain.origin} {gap:.1f} s after failure {failures}, not {least:.1f} s"


def retries_are_few(trial: Trial) -> Iterator[str]:
    """REP_FETCH_RETRIES repeats in the first round of a fetch alone, and never after a time-out."""
    if (
        not trial.has_right_clocks
    ):  # an outage in the future is not believed, so that each crawler has rounds of its own
        return
    for rounds in trial.fetches():
        for number, outcome in enumerate(rounds):
            chain = outcome.chain
            allowed = trial.settings["REP_FETCH_RETRIES"] * len(chain.hops) if number == 0 else 0
            if chain.repeated > allowed:
                yield f"round {number + 1} of {chain.run}'s fetch of {chain.origin} repeated {chain.repeated} requests"


def one_fetch_a_lifetime_for_a_fleet(trial: Trial) -> Iterator[str]:
    store = trial.case["store"]
    if not store or store["faults"] or not trial.has_right_clocks:
        return
    if any(crawler["runs"] != [None] for crawler in trial.crawlers.values()):
        return
    for outcomes in trial.outcomes.values():
        for before, after in pairwise(outcomes):
            headers = [hop.headers.get("Cache-Control", "") for hop in before.chain.hops]
            is_shared = before.access is not Access.NOTHING and not any("no-store" in each for each in headers)
            last_tenth = before.fresh_until - 0.1 * (before.fresh_until - before.chain.began) - SLACK
            if is_shared and before.chain.ended < after.chain.began < last_tenth:
                yield (
                    f"{after.chain.run} fetched {after.chain.origin} at {after.chain.began:.3f}; {before.chain.run} had"
                    f" an answer at {before.at:.3f}, good until {before.fresh_until:.3f}"
                )


def fetches_at_a_time(trial: Trial) -> Iterator[str]:
    """REP_FETCH_CONCURRENCY, not counting fetches that take half a second."""
    limit = trial.settings["REP_FETCH_CONCURRENCY"]
    if trial.settings["CONCURRENT_REQUESTS_PER_DOMAIN"] == 1:  # then half a second may pass in the slot's queue
        return
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for exchange in trial.robots:
        until = min(exchange.ended or float("inf"), exchange.began + SLOW - MOMENT)  # the turn began before
        changes[exchange.run] += [(exchange.began, 1), (until, -1)]
    for run, each in changes.items():
        under_way = 0
        for at, change in sorted(each):
            under_way += change
            if under_way > limit:
                yield f"at {at:.3f} {run} had {under_way} fetches under way that were not slow; the limit is {limit}"
                break


def requests_in_the_downloader(trial: Trial) -> Iterator[str]:
    limit = trial.settings["CONCURRENT_REQUESTS"]
    under_way: Counter[str] = Counter()
    changes = []
    for page in trial.pages:
        if "inline" not in trial.plan(trial.lives[page.run, int(page.mark)]):  # they come past the scheduler
            changes += [(page.began, 1, page.run), (page.ended or float("inf"), -1, page.run)]
    for at, change, run in sorted(changes):
        under_way[run] += change
        if under_way[run] > limit:
            yield f"at {at:.3f} {run} had {under_way[run]} pages under way; CONCURRENT_REQUESTS is {limit}"


def requests_wait_outside_the_queue(trial: Trial) -> Iterator[str]:
    """docs/limits.md: with a queue on disk at most REP_WAITING_MAX, and the first request to each origin."""
    limit = trial.settings["REP_WAITING_MAX"]
    here: dict[str, set[int]] = defaultdict(set)
    for at, run, what, number, _ in trial.history.of("taken", "handed", "queued"):
        if not trial.crawlers[run[0]].get("jobdir") or limit == 0:
            continue
        (here[run].add if what == "taken" else here[run].discard)(number)
        origins = {origin_of(trial.crawlers[run[0]]["requests"][each]["url"]) for each in here[run]}
        if len(here[run]) > limit + len(origins) + 1:  # one was taken to look at it
            yield f"at {at:.3f} {len(here[run])} requests to {len(origins)} origins waited outside the queue of {run}"
            return


def a_lazy_start_is_lazy(trial: Trial) -> Iterator[str]:
    limit = trial.settings["CONCURRENT_REQUESTS"] + 2 * trial.settings["REP_FETCH_CONCURRENCY"]
    ahead: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for _, run, what, _number, _ in trial.history.of("asked", "ended"):
        ahead[run] += 1 if what == "asked" else -1
        most[run] = max(most[run], ahead[run])
    for run, number in most.items():
        if trial.crawlers[run[0]].get("lazy") and number > limit + 1:
            yield f"{run} read {number} requests ahead of its pages; {limit} are enough"


def robots_requests_an_hour(trial: Trial) -> Iterator[str]:
    """However often pages are asked for, a host sees few requests for its robots.txt in an hour."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for chain in trial.chains:
        times[chain.run, chain.origin].append(chain.began)
    limit = 3_600.0 / max(trial.settings["REP_LIFETIME_MIN"] * 0.9, 54.0) + 14
    for (run, origin), began in times.items():
        began.sort()
        for n, at in enumerate(began):
            number = sum(at <= other < at + 3_600.0 for other in began[n:])
            if number > limit:
                yield f"{run} fetched {origin} {number} times in the hour from {at:.0f}"
                break


def nothing_is_left(trial: Trial) -> Iterator[str]:
    for at, run, _, _, details in trial.history.of("left"):
        yield f"at {at:.3f} {run} was over, and had left {details}"


def leases_are_given_back(trial: Trial) -> Iterator[str]:
    """When a crawl has ended, it has no lease; unless the store failed."""
    for at, run, _, _, origin in trial.history.of("leased"):
        if not trial.case["store"]["faults"]:
            yield f"at {at:.3f} {run} was over, and had the lease of {origin}"


PROMISES: tuple[Promise, ...] = (
    no_forbidden_page_is_sent,
    no_page_is_sent_undecided,
    no_allowed_page_is_refused,
    each_request_ends_once,
    a_request_is_handed_out_once,
    the_log_has_no_error,
    the_crawl_ends,
    not_idle_too_early,
    first_fetches_do_not_wait_for_later_ones,
    nothing_ready_waits_while_there_is_room,
    the_queue_moves,
    requests_wait_no_longer_than_documented,
    rounds_go_on_while_requests_wait,
    rounds_come_in_time,
    healthy_origins_are_not_refused,
    one_fetch_an_origin_at_a_time,
    no_fetch_while_fresh,
    backoffs_are_kept,
    retries_are_few,
    one_fetch_a_lifetime_for_a_fleet,
    fetches_at_a_time,
    requests_in_the_downloader,
    requests_wait_outside_the_queue,
    a_lazy_start_is_lazy,
    robots_requests_an_hour,
    nothing_is_left,
    leases_are_given_back,
)


def broken(history: History) -> dict[str, list[str]]:
    """The promises that the history breaks, each with what breaks it."""
    trial = Trial(history)
    found = {promise.__name__: list(promise(trial)) for promise in PROMISES}
    return {name: faults for name, faults in found.items() if faults}
