"""What must hold in every crawl: safety, liveness, cost. No promise has an excuse for slow hosts.

Each promise is a function that yields what breaks it. Its name is the name of the promise. Times are true seconds from
the beginning of the case. docs/architecture.md lists the cases that a promise leaves out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from crawl import History
from network import Exchange
from oracle import DEFAULTS, Access, Outcome, View, chains, origin_of, outcome_of, views

REFUSED = {"ForbiddenByRobots", "RobotsUnreachable"}
MOMENT = 0.1  # seconds between an answer and the decisions that follow from it, at most
SLOW = 0.5  # seconds after which a fetch does not count against REP_FETCH_CONCURRENCY
SLACK = 2.5  # seconds: a repetition's pause of one second, and some turns
BACKOFF_FIRST, BACKOFF_MAX = 5.0, 3_600.0
NEVER = float("inf")

Key = tuple[str, str]  # a run and an origin


@dataclass
class Life:
    """One request in one run, and when it reached each place. None if it never did."""

    run: str
    number: int
    plan: dict[str, Any]
    asked: float | None = None
    taken: float | None = None
    entered: float | None = None
    decided: float | None = None
    is_allowed: bool = False
    sent: float | None = None
    ended: float | None = None
    how: str = ""
    ends: int = 0

    def __str__(self) -> str:
        return f"request {self.number} of {self.run}, {self.plan['url']}"

    @cached_property
    def origin(self) -> str:
        return origin_of(self.plan["url"])

    @property
    def key(self) -> Key:
        return self.run, self.origin

    @property
    def priority(self) -> int:
        return int(self.plan.get("priority", 0))


class Trial:
    """A history, and the outcomes that the oracle finds in it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.case = history.case
        self.settings: dict[str, Any] = {**DEFAULTS, **self.case["settings"]}
        self.crawlers = {crawler["name"]: crawler for crawler in self.case["crawlers"]}
        self.store = self.case["store"]
        self.has_kills = any(history.of("killed"))
        self.chains = chains([each for each in history.exchanges if each.is_robots], self.settings)
        self.outcomes: dict[str, list[Outcome]] = defaultdict(list)
        self.own: dict[Key, list[Outcome]] = defaultdict(list)
        """The outcomes of each run's own fetches of an origin."""
        fetches: dict[tuple[Key, str], list[Outcome]] = defaultdict(list)
        for chain in self.chains:
            known = self.outcomes[chain.origin]
            answers = [each for each in known if each.access is not Access.NOTHING]
            outcome = outcome_of(chain, self.settings, answers[-1] if answers else None)
            if outcome is not None:
                known.append(outcome)
                self.own[chain.key].append(outcome)
                fetches[chain.key, chain.fetch].append(outcome)
        self.fetches = list(fetches.values())
        """The outcomes of each fetch: its rounds."""

    @cached_property
    def lives(self) -> dict[tuple[str, int], Life]:
        found: dict[tuple[str, int], Life] = {}
        for at, run, what, number, details in self.history.events:
            if number is None:
                continue
            plan = self.crawlers[run[0]]["requests"][number]
            life = found.setdefault((run, number), Life(run, number, plan))
            if what in {"asked", "taken", "entered", "sent"}:
                setattr(life, what, at)
            elif what == "queued":  # for the first time, or again
                life.taken = None
            elif what in {"allowed", "refused"}:
                life.decided, life.is_allowed = at, what == "allowed"
            elif what == "ended":
                life.ended, life.how, life.ends = at, details, life.ends + 1
        return found

    @cached_property
    def doubts(self) -> list[float]:
        """Seconds by which the crawlers' clocks may be wrong about a time that they have stored."""
        errors = {0.0, *(error for each in self.crawlers.values() for _, error in each["clock"])}
        skew = max(errors) - min(errors)
        return [0.0, -skew, skew] if skew else [0.0]

    @property
    def has_right_clocks(self) -> bool:
        return len(self.doubts) == 1

    @property
    def is_fleet_in_order(self) -> bool:
        """Whether nothing disturbs the crawlers that share a store, if there is one."""
        return not self.store or (not (self.store["faults"] or self.has_kills) and self.has_right_clocks)

    def is_eager(self, run: str) -> bool:
        """Whether the run has neither pauses nor a JOBDIR."""
        return not self.crawlers[run[0]].get("pauses") and not self.crawlers[run[0]].get("jobdir")

    def known(self, life: Life) -> Iterator[list[Outcome]]:
        """The outcomes that the run may go by: its own; with a store also those of the others, as far as it has read
        them."""
        everything = self.outcomes[life.origin]
        yield self.own[life.key]
        if self.store:
            last = max((n for n, outcome in enumerate(everything) if outcome.chain.run == life.run), default=-1)
            for end in range(max(last, len(everything) - 30, 0), len(everything)):
                yield everything[: end + 1]
                yield everything[end : end + 1]

    def verdicts(self, life: Life) -> Iterator[tuple[bool, View]]:
        """What may decide about the request at that moment or just before, and whether it allows the request."""
        path, agent = life.plan["url"][len(life.origin) :], life.plan.get("agent") or "SimBot/1.0"
        days, now = self.settings["REP_UNREACHABLE_DAYS"], life.decided or 0.0
        for moment in (now, now - MOMENT):
            for outcomes in self.known(life):
                before = [outcome for outcome in outcomes if outcome.at <= moment]
                ways = [before] if self.has_right_clocks else [before, before[-1:]]  # a future failure is forgotten
                for view in (view for way in ways for view in views(way, moment, days, self.doubts)):
                    yield view.allows(path, agent.partition("/")[0]), view

    @cached_property
    def first_taken(self) -> dict[Key, Life]:
        """The request that left the queue first, of each run and origin."""
        found: dict[Key, Life] = {}
        for life in sorted(self.lives.values(), key=lambda life: life.taken or NEVER):
            if life.taken is not None:
                found.setdefault(life.key, life)
        return found

    def longest_turn(self, life: Life) -> float:
        """Seconds until a new origin's fetch has its turn, at most: REP_FETCH_CONCURRENCY fetches each half second, and
        before this one twice as many, with those for requests of a higher priority."""
        runs = [each for key, each in self.first_taken.items() if key[0] == life.run]
        hops = max(len(chain.hops) for chain in self.chains) if self.chains else 1
        urgent = sum(each.priority > life.priority for each in runs)
        turns: float = hops * urgent / self.settings["REP_FETCH_CONCURRENCY"]
        return (4 + turns) * SLOW + SLACK


# Safety.


def no_forbidden_page_is_sent(trial: Trial) -> Iterator[str]:
    for life in trial.lives.values():
        if life.sent is not None and life.is_allowed:
            verdicts = list(trial.verdicts(life))
            if not any(is_allowed for is_allowed, _ in verdicts):
                yield f"at {life.decided:.3f} {life} was allowed, and {said(verdicts)}"


def no_allowed_page_is_refused(trial: Trial) -> Iterator[str]:
    for life in trial.lives.values():
        if life.decided is not None and not life.is_allowed and life.how in REFUSED:
            verdicts = list(trial.verdicts(life))
            if all(is_allowed for is_allowed, _ in verdicts):
                yield f"at {life.decided:.3f} {life} was refused ({life.how}), and {said(verdicts)}"


def said(verdicts: list[tuple[bool, View]]) -> str:
    return f"robots.txt said: {verdicts[0][1].access.value}" if verdicts else "robots.txt was not known"


def each_request_ends_once(trial: Trial) -> Iterator[str]:
    for name, crawler in trial.crawlers.items():
        runs = [f"{name}{n}" for n in range(len(crawler["runs"]))]
        killed = {run for _, run, *_ in trial.history.of("killed")}
        opened = {run for _, run, *_ in trial.history.of("opened")}
        has_failed = trial.history.faults or trial.history.has_broken_queue
        is_over = crawler["runs"][-1] is None and runs[-1] in opened and not has_failed
        for number in range(len(crawler["requests"])):
            lives = [trial.lives[run, number] for run in runs if (run, number) in trial.lives]
            ends = sum(life.ends for life in lives)
            if ends > 1 and not killed:
                yield f"{lives[0]} ended {ends} times"
            if lives and not ends and is_over and (not killed or waited_at_kill(lives, killed, crawler)):
                yield f"{lives[-1]} never ended"


def waited_at_kill(lives: list[Life], killed: set[str], crawler: dict[str, Any]) -> bool:
    """Whether it waited for a robots.txt when it was last seen, and its run was killed: a copy of it is in the JOBDIR.
    Scrapy may lose what was in its queue, in the downloader or in a callback."""
    is_kept = False
    for life in lives:
        if life.entered is not None or life.run not in killed:
            is_kept = False
        elif life.taken is not None:
            is_kept = True
    return is_kept and bool(crawler.get("jobdir"))


def a_request_is_handed_out_once(trial: Trial) -> Iterator[str]:
    handed = Counter((run, number) for _, run, _, number, _ in trial.history.of("handed"))
    for key, times in handed.items():
        if times > 1 and not trial.has_kills:  # Scrapy may fetch start requests again
            yield f"{trial.lives[key]} was handed out {times} times"


def the_crawl_ends_without_errors(trial: Trial) -> Iterator[str]:
    yield from trial.history.faults


# Liveness.


def not_idle_too_early(trial: Trial) -> Iterator[str]:
    """`spider_idle` is not sent while requests are pending: a user's second phase would begin too early."""
    pending: Counter[str] = Counter()
    for at, run, what, *_ in trial.history.events:
        pending[run] += (what == "asked") - (what == "ended")
        if what == "idle" and pending[run] and not trial.crawlers[run[0]].get("jobdir"):
            yield f"at {at:.3f} spider_idle was sent in {run} while {pending[run]} requests were pending"


def first_fetches_do_not_wait_for_later_ones(trial: Trial) -> Iterator[str]:
    """When the first request to an origin has left the queue, its fetch begins soon: at most 2 x REP_FETCH_CONCURRENCY
    fetches are before it, however many other origins there are."""
    if trial.store or trial.settings["REP_WAITING_MAX"] == 0:
        return
    began: dict[Key, float] = {}
    for chain in trial.chains:
        began[chain.key] = min(began.get(chain.key, NEVER), chain.began)
    room = Room(trial)
    for key, life in trial.first_taken.items():
        waited = room.idle(life, life.taken or 0.0, began.get(key, 0.0), of_slot=True)
        if waited > trial.longest_turn(life) and trial.is_eager(life.run):
            yield f"at {life.taken:.3f} {life} left the queue; robots.txt was fetched {waited:.1f} s later"


def nothing_ready_waits_while_there_is_room(trial: Trial) -> Iterator[str]:
    """A request whose robots.txt is known goes on while the downloader and its slot have room."""
    room = Room(trial)
    for life in trial.lives.values():
        if life.taken is None or not trial.is_eager(life.run) or life.run not in room.over:
            continue
        until, poll, known = life.entered or trial.history.ended_at, 0.0, trial.own[life.key]
        if trial.store:  # another crawler may have the lease for the next round, and this one looks once a second
            if trial.is_fleet_in_order:
                poll, known = 1.5, trial.outcomes[life.origin]
            known = [each for each in known if each.access is not Access.NOTHING and each.fresh_until >= until]
        ended = [outcome.at + poll for outcome in known if outcome.at + poll <= until]
        ready = max(life.taken, ended[-1]) if ended else NEVER
        idle = room.idle(life, ready, min(until, room.over[life.run]))
        if idle > SLACK:
            yield f"{life} was ready at {ready:.3f}, and waited although there was room for {idle:.1f} s"


def the_queue_moves(trial: Trial) -> Iterator[str]:
    """While the downloader has room, requests leave the queue: REP_FETCH_CONCURRENCY new origins in half a second."""
    room = Room(trial)
    hops = max((len(chain.hops) for chain in trial.chains), default=1)
    turns = len(trial.case["origins"]) * hops / trial.settings["REP_FETCH_CONCURRENCY"]
    queued: dict[tuple[str, int], float] = {}
    for at, run, what, number, _ in trial.history.of("queued", "taken"):
        if what == "queued":
            queued[run, number] = at
        elif trial.is_eager(run) and trial.settings["REP_WAITING_MAX"] > 0:
            idle = room.idle(trial.lives[run, number], queued[run, number], at)
            if idle > 1.5 * SLOW * turns + SLACK:
                yield f"at {at:.3f} {trial.lives[run, number]} left the queue, after {idle:.1f} s with room"


class Room:
    """When the downloader had room. A page takes a place in the downloader from the moment at which it enters, and a
    place in its slot while it is on the wire."""

    def __init__(self, trial: Trial) -> None:
        self.limits = trial.settings["CONCURRENT_REQUESTS"], trial.settings["CONCURRENT_REQUESTS_PER_DOMAIN"]
        self.over: dict[str, float] = {}
        for at, run, *_ in trial.history.of("closed", "closing", "killed"):
            self.over.setdefault(run, at)
        self.of_run: dict[str, list[Exchange]] = defaultdict(list)
        for exchange in trial.history.exchanges:
            self.of_run[exchange.run].append(exchange)
        # In the queue of its slot, where a robots.txt may be before it, a page is in the downloader, too.
        self.entered = [life for life in trial.lives.values() if life.entered is not None and life.sent is not None]

    def idle(self, life: Life, begin: float, end: float, *, of_slot: bool = False) -> float:
        """Seconds between two moments in which there was room for the request; for its robots.txt, with `of_slot`."""
        if end - begin <= SLACK:
            return 0.0
        changes: list[tuple[float, int, int]] = []
        for each in self.of_run[life.run]:
            if each.began < end and (each.ended or end) > begin:
                mine, one = int(origin_of(each.url) == life.origin), int(not each.is_robots)
                changes += [(max(each.began, begin), one, mine), (min(each.ended or end, end), -one, -mine)]
        for queued in self.entered:
            since, until = max(queued.entered or begin, begin), min(queued.sent or end, end)
            if queued.run == life.run and queued is not life and since < until:
                changes += [(since, 1, 0), (until, -1, 0)]
        total, slot, idle, last = 0, 0, 0.0, begin
        for at, one, mine in sorted(changes):
            idle += (at - last) * ((of_slot or total < self.limits[0]) and slot < self.limits[1])
            total, slot, last = total + one, slot + mine, at
        return idle + end - last


def requests_wait_no_longer_than_documented(trial: Trial) -> Iterator[str]:
    """REP_UNREACHABLE_WAIT, and then the rest of the last round; a host that hangs has no second round."""
    timeout, wait = trial.settings["REP_FETCH_TIMEOUT"], trial.settings["REP_UNREACHABLE_WAIT"]
    hops = {key: max(len(outcome.chain.hops) for outcome in own) for key, own in trial.own.items() if own}
    room = Room(trial)
    for life in trial.lives.values():
        if life.taken is None or life.decided is None or trial.store or not trial.is_eager(life.run):
            continue
        longest = wait + hops.get(life.key, 1) * (timeout + trial.settings["REP_FETCH_RETRIES"] * 4.0) + 4 * SLOW
        if always_hangs(trial.case["origins"].get(life.origin)):
            longest = timeout
        idle = room.idle(life, life.taken, life.decided) if life.decided - life.taken > longest else 0.0
        if idle > longest + trial.longest_turn(life):
            yield f"{life} waited {idle:.1f} s; the longest is {longest + trial.longest_turn(life):.1f} s"


def always_hangs(server: dict[str, Any] | None) -> bool:
    return server is not None and all(behaviour.get("fail") == "hang" for _, behaviour in server["robots"])


def rounds_go_on_while_requests_wait(trial: Trial) -> Iterator[str]:
    """The first fetch of an origin goes on in rounds, after 5, 10, ... seconds, and a last round begins at
    REP_UNREACHABLE_WAIT. Requests to a host that has recovered by this time are not refused."""
    seen = set()
    stops = {run: at for at, run, *_ in trial.history.of("closing", "killed")}
    for rounds in sorted(trial.fetches, key=lambda rounds: rounds[0].at):
        last, chain = rounds[-1], rounds[0].chain
        if trial.store or chain.key in seen:
            continue
        seen.add(chain.key)
        is_final = last.access is not Access.NOTHING or "Timeout" in last.why or last.retry_after
        if is_final or last.at + BACKOFF_MAX >= stops.get(chain.run, NEVER):
            continue
        if last.at < chain.began + trial.settings["REP_UNREACHABLE_WAIT"] - SLACK - 4 * SLOW:
            took = last.at - chain.began
            yield f"{chain.origin} was given up at {last.at:.3f}, {took:.1f} s after {chain.run} had begun its fetch"


def rounds_come_in_time(trial: Trial) -> Iterator[str]:
    """While requests wait, the next round of a fetch begins when the backoff is over, or at REP_UNREACHABLE_WAIT.

    Then the round waits for its turn like a first fetch: by priority, then by arrival."""
    if not trial.is_fleet_in_order:
        return
    for rounds in trial.fetches:
        for after in rounds[1:]:
            # With a store, the failure before may be another crawler's.
            before = [each for each in trial.outcomes[after.chain.origin] if each.at <= after.chain.began]
            failures = failures_of(before)
            latest = max(
                rounds[0].chain.began + trial.settings["REP_UNREACHABLE_WAIT"], before[-1].at + before[-1].retry_after
            )
            late = after.chain.began - min(before[-1].at + pause_after(failures, before[-1]), latest)
            lives = [life for life in trial.lives.values() if life.key == after.chain.key]
            longest = trial.longest_turn(min(lives, key=lambda life: life.priority))
            if late > longest and trial.is_eager(after.chain.run):
                began = f"{after.chain.run}'s round for {after.chain.origin} at {after.chain.began:.3f}"
                yield f"{began} was {late:.1f} s late"


def failures_of(outcomes: list[Outcome]) -> int:
    """How many of the last outcomes were failures."""
    answers = (n for n, each in enumerate(reversed(outcomes)) if each.access is not Access.NOTHING)
    return next(answers, len(outcomes))


def pause_after(failures: int, last: Outcome) -> float:
    """Seconds after that many failures: 5, doubling, at most an hour, or what Retry-After says."""
    return max(min(BACKOFF_FIRST * 2.0 ** min(max(failures - 1, 0), 20), BACKOFF_MAX), last.retry_after)


def healthy_origins_are_not_refused(trial: Trial) -> Iterator[str]:
    """A request to a server that answers in time is not refused as unreachable, whatever other servers do. The case
    says which servers answer in time; what the crawl saw of them does not count."""
    for life in trial.lives.values():
        if life.how == "RobotsUnreachable" and not trial.store and is_healthy(trial, life.origin):
            yield f"at {life.ended:.3f} {life} was refused as unreachable, and its server answers in time"


def is_healthy(trial: Trial, origin: str) -> bool:
    """Whether its robots.txt always answers, in a third of the time limit, and with something that decides."""
    server = trial.case["origins"][origin]
    for _, behaviour in server["robots"]:
        is_slow = 3 * behaviour.get("delay", server["robots_delay"])[1] > trial.settings["REP_FETCH_TIMEOUT"]
        is_challenge = "cf-mitigated" in behaviour.get("headers", {})
        if is_slow or is_challenge or "fail" in behaviour or behaviour.get("status") not in {200, 404, 410}:
            return False
    return True


# Cost.


def one_fetch_an_origin_at_a_time(trial: Trial) -> Iterator[str]:
    last: dict[Key, float] = {}
    for chain in sorted(trial.chains, key=lambda chain: chain.began):
        if chain.began < last.get(chain.key, 0.0):
            yield f"{chain.run} fetched {chain.origin} at {chain.began:.3f}, before its last fetch had ended"
        last[chain.key] = chain.ended


def no_fetch_while_fresh(trial: Trial) -> Iterator[str]:
    yield from fetched_while_fresh(trial, trial.own.values())


def one_fetch_a_lifetime_for_a_fleet(trial: Trial) -> Iterator[str]:
    if trial.store and trial.is_fleet_in_order and all(each["runs"] == [None] for each in trial.crawlers.values()):
        yield from fetched_while_fresh(trial, trial.outcomes.values())


def fetched_while_fresh(trial: Trial, each_origins: Iterable[list[Outcome]]) -> Iterator[str]:
    for outcomes in each_origins if trial.has_right_clocks else ():
        for before, after in pairwise(outcomes):
            one, two = before.chain, after.chain
            is_shared = not any("no-store" in hop.headers.get("Cache-Control", "") for hop in one.hops)
            last_tenth = before.fresh_until - 0.1 * (before.fresh_until - one.began) - SLACK
            is_other = one.run != two.run  # then it may have begun before the answer came
            if before.access is Access.NOTHING or (is_other and (not is_shared or two.began <= one.ended)):
                continue
            if two.began < last_tenth:
                good = f"{one.run} had an answer of {before.at:.3f}, good until {before.fresh_until:.3f}"
                yield f"{two.run} fetched {two.origin} at {two.began:.3f}; {good}"


def backoffs_are_kept(trial: Trial) -> Iterator[str]:
    """5 seconds, doubling, at most an hour, or what Retry-After says; but a last round at REP_UNREACHABLE_WAIT."""
    if not trial.has_right_clocks:
        return
    begins: dict[Key, set[float]] = defaultdict(set)  # when requests began to wait
    for life in trial.lives.values():
        begins[life.key].add(life.taken or NEVER)
    for rounds in trial.fetches:
        begins[rounds[0].chain.key].add(rounds[0].chain.began)
    for key, own in trial.own.items():
        for n, (before, after) in enumerate(pairwise(own), 1):
            failures, began = failures_of(own[:n]), after.chain.began
            last_rounds = (begin + trial.settings["REP_UNREACHABLE_WAIT"] for begin in begins[key])
            is_last_round = any(abs(began - at) < 2 * SLACK for at in last_rounds)
            if not failures or (is_last_round and began >= before.at + before.retry_after):
                continue
            gap, least = began - before.at, pause_after(failures, before)
            if gap < least - MOMENT:
                yield f"{key[0]} fetched {key[1]} {gap:.1f} s after failure {failures}, not {least:.1f} s"


def fetches_at_a_time(trial: Trial) -> Iterator[str]:
    """REP_FETCH_CONCURRENCY, not counting fetches that take half a second, in a full slot's queue or on the way."""
    limit, of_slot = trial.settings["REP_FETCH_CONCURRENCY"], trial.settings["CONCURRENT_REQUESTS_PER_DOMAIN"]
    of_host: dict[Key, list[Exchange]] = defaultdict(list)
    changes: list[tuple[float, int, str]] = []
    for each in trial.history.exchanges:
        before = of_host[each.run, origin_of(each.url)]
        is_slot_full = sum((other.ended or NEVER) + MOMENT > each.began for other in before) >= of_slot
        before.append(each)
        if each.is_robots and not is_slot_full:
            until = min(each.ended or NEVER, each.began + SLOW - MOMENT)  # the turn began before
            changes += [(each.began, 1, each.run), (until, -1, each.run)]
    under_way: Counter[str] = Counter()
    for at, change, run in sorted(changes):
        under_way[run] += change
        if under_way[run] > limit:
            yield f"at {at:.3f} {run} had {under_way[run]} fetches under way that were not slow; the limit is {limit}"


def requests_wait_outside_the_queue(trial: Trial) -> Iterator[str]:
    """docs/limits.md: with a queue on disk at most REP_WAITING_MAX, and the first request to each origin."""
    limit = trial.settings["REP_WAITING_MAX"]
    here: dict[str, set[int]] = defaultdict(set)
    for at, run, what, number, _ in trial.history.of("taken", "handed", "queued"):
        if not trial.crawlers[run[0]].get("jobdir") or limit == 0:
            continue
        (here[run].add if what == "taken" else here[run].discard)(number)
        origins = {trial.lives[run, each].origin for each in here[run]}
        if len(here[run]) > limit + len(origins) + 1:  # one was taken to look at it
            yield f"at {at:.3f} {len(here[run])} requests to {len(origins)} origins waited outside the queue of {run}"


def a_lazy_start_is_lazy(trial: Trial) -> Iterator[str]:
    limit = trial.settings["CONCURRENT_REQUESTS"] + 2 * trial.settings["REP_FETCH_CONCURRENCY"] + 1
    ahead: Counter[str] = Counter()
    for at, run, what, *_ in trial.history.of("asked", "ended"):
        ahead[run] += 1 if what == "asked" else -1
        if trial.crawlers[run[0]].get("lazy") and ahead[run] > limit:
            yield f"at {at:.3f} {run} had read {ahead[run]} requests ahead of its pages; {limit} are enough"


def robots_requests_an_hour(trial: Trial) -> Iterator[str]:
    """However often pages are asked for, a host sees few requests for its robots.txt in an hour."""
    limit = 3_600.0 / max(trial.settings["REP_LIFETIME_MIN"] * 0.9, 54.0) + 14
    times: dict[Key, list[float]] = defaultdict(list)
    for chain in sorted(trial.chains, key=lambda chain: chain.began):
        before = times[chain.key] = [at for at in times[chain.key] if at > chain.began - 3_600.0] + [chain.began]
        if len(before) > limit:
            yield f"{chain.run} fetched {chain.origin} {len(before)} times in the hour until {chain.began:.0f}"


def nothing_is_left(trial: Trial) -> Iterator[str]:
    for at, run, _, _, details in trial.history.of("left"):
        yield f"at {at:.3f} {run} was over, and had left {details}"


def leases_are_given_back(trial: Trial) -> Iterator[str]:
    """When a crawl has ended, it has no lease; unless the store failed."""
    for at, run, _, _, origin in trial.history.of("leased"):
        if not trial.store["faults"]:
            yield f"at {at:.3f} {run} was over, and had the lease of {origin}"


PROMISES: tuple[Callable[[Trial], Iterator[str]], ...] = (
    no_forbidden_page_is_sent,
    no_allowed_page_is_refused,
    each_request_ends_once,
    a_request_is_handed_out_once,
    the_crawl_ends_without_errors,
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
    one_fetch_a_lifetime_for_a_fleet,
    fetches_at_a_time,
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
