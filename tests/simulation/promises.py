"""What must hold in every crawl: safety, liveness, cost. Slow hosts are no excuse.

A promise is a function here that yields what breaks it. Its name is the name of the promise. Times are true seconds
from the beginning of the case. docs/architecture.md lists the cases that a promise leaves out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from crawl import Simulation, TrackedRequest
from oracle import Access, Key, Round, allows, judge, origin_of, rounds_of, view

DEFAULTS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "REP_FETCH_CONCURRENCY": 64,
    "REP_FETCH_RETRIES": 1,
    "REP_FETCH_TIMEOUT": 30.0,
    "REP_LIFETIME_MIN": 3_600.0,
    "REP_MEMORY_OCTETS": 2**26,
    "REP_UNREACHABLE_DAYS": 30.0,
    "REP_UNREACHABLE_WAIT": 30.0,
    "REP_WAITING_MAX": 1_000,
}
MOMENT = 0.1  # seconds between an answer and the decisions that follow from it, at most
SLOW = 0.5  # seconds after which a fetch does not count against REP_FETCH_CONCURRENCY
SLACK = 2.5  # seconds of tolerance: one for the pause before a retry, the rest for turns
BACKOFF_FIRST, BACKOFF_MAX = 5.0, 3_600.0
NEVER = float("inf")


class Observations:
    """What happened in a case, and the rounds that the oracle finds in it."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.case = simulation.case
        self.settings: dict[str, Any] = {**DEFAULTS, **self.case["settings"]}
        self.crawlers = {crawler["name"]: crawler for crawler in self.case["crawlers"]}
        self.requests = simulation.requests
        self.store = self.case["store"]
        self.eager = [request for request in self.requests.values() if self.is_eager(request.run)]
        errors = [0.0, *(error for crawler in self.crawlers.values() for _, error in crawler["clock"])]
        self.skew = max(errors) - min(errors)
        """The largest difference in seconds between two clocks, or between one clock before and after it was set."""
        is_stopped = any(crawler["runs"] != [None] for crawler in self.crawlers.values())
        self.is_quiet_fleet = self.store and not (self.store["faults"] or is_stopped or self.skew)
        """Whether crawlers share a store, and nothing disturbs them."""
        self.forgets = self.settings["REP_MEMORY_OCTETS"] < 2**26
        """Whether a crawl may forget an origin, because its memory is full."""
        exchanges = simulation.network.exchanges
        fetched = [exchange for exchange in exchanges if exchange.is_robots]
        self.rounds = rounds_of(fetched, self.settings["REP_FETCH_RETRIES"], has_store=bool(self.store))
        self.hops = max((len(each.hops) for each in self.rounds), default=1)
        # The rounds that have an end.
        self.of_origin: dict[str, list[Round]] = defaultdict(list)
        self.own: dict[Key, list[Round]] = defaultdict(list)
        self.fetches: dict[tuple[str, str], list[Round]] = defaultdict(list)
        for each in self.rounds:
            answers = [before for before in self.of_origin[each.origin] if before.access is not Access.NOTHING]
            judge(each, self.settings["REP_LIFETIME_MIN"], answers[-1] if answers else None)
            if each.access is not None:
                self.of_origin[each.origin].append(each)
                self.own[each.key].append(each)
                self.fetches[each.run, each.fetch].append(each)
        self.priorities: dict[Key, list[int]] = defaultdict(list)
        # For each run: begin, end, places in the downloader, and the origin whose slot has a place. A page has a place
        # in the downloader from when it enters until it ends. Each request on the wire has a place in a slot.
        self.places: dict[str, list[tuple[float, float, int, str]]] = defaultdict(list)
        for exchange in exchanges:
            place = exchange.began, exchange.ended or NEVER, 0, origin_of(exchange.url)
            self.places[exchange.run].append(place)
        for request in self.requests.values():
            self.priorities[request.key].append(request.plan.get("priority", 0))
            if request.entered is not None:
                self.places[request.run].append((request.entered, request.ended or NEVER, 1, ""))

    def is_eager(self, run: str) -> bool:
        """Whether the run has no JOBDIR, and ends by itself."""
        return not self.crawlers[run[0]].get("jobdir") and self.crawlers[run[0]]["runs"] == [None]

    def known(self, request: TrackedRequest) -> Iterator[list[Round]]:
        """Yield what the run may know: its own rounds.

        With a store, it may also know any of the last 30 rounds of all crawlers, with or without those before.
        """
        yield self.own[request.key]
        everything = self.of_origin[request.key[1]] if self.store else []
        for end in range(max(len(everything) - 30, 0), len(everything)):
            yield everything[: end + 1]
            yield everything[end : end + 1]

    def verdicts(self, request: TrackedRequest, now: float) -> dict[bool, str]:
        """The verdicts that are right at `now`: True (allowed), False (refused) or both, each with its reason."""
        path, agent = (
            request.plan["url"][len(request.key[1]) :],
            request.plan.get("agent", "SimBot/1.0").partition("/")[0],
        )
        found: dict[bool, str] = {}
        for moment in (now, now - MOMENT):
            for rounds in self.known(request):
                before = [each for each in rounds if each.ended <= moment]
                # A crawl may have forgotten its first rounds: its clock was wrong, or its memory was full.
                forgotten = range(1, len(before)) if self.skew or self.forgets else ()
                for way in [before, *(before[number:] for number in forgotten)]:
                    for doubt in {0.0, -self.skew, self.skew}:
                        seen = view(way, moment + doubt, self.settings["REP_UNREACHABLE_DAYS"])
                        if seen is not None:
                            access, body = seen
                            found[access is not Access.NOTHING and allows(body, path, agent)] = access.value
        return found

    def longest_turn(self, key: Key) -> float:
        """How many seconds a request for an origin's robots.txt may wait for its turn.

        In each half second, REP_FETCH_CONCURRENCY requests for a robots.txt begin. At most these go first: requests for
        pages of a higher priority, 2 * REP_FETCH_CONCURRENCY older first requests, as many retries and later rounds.
        """
        lowest = min(self.priorities.get(key, [0]))
        urgent = sum(max(each) > lowest for (run, _), each in self.priorities.items() if run == key[0])
        return float(4 + self.hops * urgent / self.settings["REP_FETCH_CONCURRENCY"]) * SLOW + SLACK

    def last_round(self, key: Key) -> float:
        """When the last round of the run's latest failed fetch is due (REP_UNREACHABLE_WAIT). 0 if no fetch failed."""
        failed = [self.fetches[key[0], each.fetch][0] for each in self.own[key] if each.access is Access.NOTHING]
        return max((first.began + self.settings["REP_UNREACHABLE_WAIT"] for first in failed), default=0.0)

    def seconds_with_room(self, request: TrackedRequest, begin: float, end: float, *, of_slot: bool = False) -> float:
        """Seconds during which the downloader and the slot had room for the request (`of_slot`: only the slot)."""
        if end - begin <= SLACK:
            return 0.0
        limits = self.settings["CONCURRENT_REQUESTS"], self.settings["CONCURRENT_REQUESTS_PER_DOMAIN"]
        changes: list[tuple[float, int, int]] = [(end, 0, 0)]
        for since, until, one, origin in self.places[request.run]:
            mine = int(origin == request.key[1])
            if since < end and until > begin and (one or mine):
                changes += [(max(since, begin), one, mine), (min(until, end), -one, -mine)]
        total, slot, room, last = 0, 0, 0.0, begin
        for at, one, mine in sorted(changes):
            room += (at - last) * ((of_slot or total < limits[0]) and slot < limits[1])
            total, slot, last = total + one, slot + mine, at
        return room


def failures_of(rounds: list[Round], last: Round) -> int:
    """How many failures in a row end with the round `last`; 0 if it is no failure."""
    failures = 0
    for each in rounds[: rounds.index(last) + 1]:
        failures = failures + 1 if each.access is Access.NOTHING else 0
    return failures


def pause_after(failures: int, last: Round) -> float:
    """Seconds to wait: 5, doubled by each further failure, at most an hour; or Retry-After, if it is longer."""
    return max(min(BACKOFF_FIRST * 2.0 ** min(failures - 1, 20), BACKOFF_MAX), last.retry_after)


# Safety.


def each_page_is_treated_as_robots_txt_says(observed: Observations) -> Iterator[str]:
    """No forbidden page is requested, and no allowed page is refused."""
    for request in observed.requests.values():
        if request.allowed is not None or request.outcome in {"ForbiddenByRobots", "RobotsUnreachable"}:
            now, is_allowed = request.allowed or request.ended or 0.0, request.allowed is not None
            verdicts = observed.verdicts(request, now)
            if is_allowed not in verdicts:
                did = "allowed" if is_allowed else f"refused ({request.outcome})"
                yield f"at {now:.3f} {request} was {did}; robots.txt: {verdicts.get(not is_allowed, 'not known')}"


def each_request_ends_once(observed: Observations) -> Iterator[str]:
    """In its callback or errback. Kills are left out: a kill may lose requests and repeat some."""
    if any(observed.simulation.of("killed")):
        return
    ends: Counter[tuple[str, int]] = Counter()
    for request in observed.requests.values():
        ends[request.run[0], request.number] += request.ends
    for (name, number), times in ends.items():
        is_over = observed.crawlers[name]["runs"][-1] is None and not observed.simulation.errors
        if times > 1 or (is_over and not times):
            yield f"request {number} of {name} ended {times} times"


def the_crawl_ends_without_errors(observed: Observations) -> Iterator[str]:
    yield from observed.simulation.errors


# Liveness.


def not_idle_too_early(observed: Observations) -> Iterator[str]:
    """`spider_idle` is not sent while requests are pending: a user's second phase would begin too early."""
    pending: Counter[str] = Counter()
    for at, run, what, *_ in observed.simulation.events:
        pending[run] += (what == "asked") - (what == "ended")
        if what == "idle" and pending[run] > 0 and not observed.crawlers[run[0]].get("jobdir"):
            yield f"at {at:.3f} spider_idle was sent in {run} while {pending[run]} requests were pending"


def first_fetches_do_not_wait_for_later_ones(observed: Observations) -> Iterator[str]:
    """When the first request to an origin has left the queue, its fetch begins soon, however many other origins there
    are."""
    began = {each.key: each.began for each in observed.rounds if each.is_first}
    first = {request.key: request for request in sorted(observed.eager, key=lambda request: -(request.taken or NEVER))}
    for key, request in first.items():
        if request.taken is not None and key in began and observed.settings["REP_WAITING_MAX"] > 0:
            waited = observed.seconds_with_room(request, request.taken, began[key], of_slot=True)
            if waited > observed.longest_turn(key):
                yield f"at {request.taken:.3f} {request} left the queue; robots.txt was fetched {waited:.1f} s later"


def nothing_ready_waits_while_there_is_room(observed: Observations) -> Iterator[str]:
    """A request whose robots.txt is known goes on while the downloader and its slot have room."""
    for request in observed.eager:
        until = request.entered or observed.simulation.ended_at
        known = [(each, each.ended) for each in observed.own[request.key]]
        if observed.is_quiet_fleet:  # a crawler looks for answers of others once a second, and not during its backoff
            others = (
                each for each in observed.of_origin[request.key[1]] if each.run != request.run and not each.is_private
            )
            known += [(each, max(each.ended + 1.5, observed.last_round(request.key))) for each in others]
        if observed.store:  # another crawler may have the lease for the next round
            known = [it for it in known if it[0].access is not Access.NOTHING and it[0].fresh_until >= until]
        ready = max((at for _, at in known if at <= until), default=NEVER)
        room = observed.seconds_with_room(request, max(request.taken or NEVER, ready), until)
        if room > SLACK:
            yield f"{request} was ready at {ready:.3f}, and waited although there was room for {room:.1f} s"


def dead_origins_take_no_place(observed: Observations) -> Iterator[str]:
    """A request to an origin that never answers waits outside the downloader, and takes a place only to be refused."""
    for request in observed.eager:
        has_answered = any(each.access is not Access.NOTHING for each in observed.of_origin[request.key[1]])
        is_page = request.queued is not None and observed.settings["REP_WAITING_MAX"] > 0
        if is_page and request.outcome == "RobotsUnreachable" and not has_answered:
            seconds = (request.ended or 0.0) - (request.entered or NEVER)
            if seconds > MOMENT:
                yield f"{request} was in the downloader for {seconds:.1f} s, and was refused at {request.ended:.3f}"


def the_queue_moves(observed: Observations) -> Iterator[str]:
    """While the downloader has room, requests leave the queue: REP_FETCH_CONCURRENCY new origins in half a second."""
    turns = len(observed.case["origins"]) * observed.hops / observed.settings["REP_FETCH_CONCURRENCY"]
    for request in observed.eager:
        if request.queued is not None and request.taken is not None and observed.settings["REP_WAITING_MAX"] > 0:
            room = observed.seconds_with_room(request, request.queued, request.taken)
            if room > 1.5 * SLOW * turns + SLACK:
                yield f"at {request.taken:.3f} {request} left the queue, after {room:.1f} s with room"


def rounds_go_on_while_requests_wait(observed: Observations) -> Iterator[str]:
    """An origin is not given up before REP_UNREACHABLE_WAIT. A host that hangs has no second round."""
    stopped = {run: at for at, run, *_ in observed.simulation.of("closing", "killed")}
    for rounds in observed.fetches.values():
        first, last = rounds[0], rounds[-1]
        if any(each.has_timed_out for each in rounds[:-1]):
            yield f"{first.run} went on to fetch {first.origin}, which hangs"
        is_final = last.access is not Access.NOTHING or last.has_timed_out or last.retry_after
        is_cut_off = last.ended + BACKOFF_MAX >= stopped.get(first.run, NEVER)
        took = last.ended - first.began
        is_early = took < observed.settings["REP_UNREACHABLE_WAIT"] - observed.longest_turn(first.key)
        if first.is_first and is_early and not is_final and not is_cut_off:
            yield f"{first.run} gave {first.origin} up at {last.ended:.3f}, after {took:.1f} s"


def rounds_come_in_time(observed: Observations) -> Iterator[str]:
    """While requests wait, the next round is due when the backoff is over, at the latest at REP_UNREACHABLE_WAIT. Then
    it waits for its turn, by priority and arrival, like a first request."""
    for before, after in (pair for rounds in observed.fetches.values() for pair in pairwise(rounds)):
        first = observed.fetches[after.run, after.fetch][0]
        end = max(first.began + observed.settings["REP_UNREACHABLE_WAIT"], before.ended + before.retry_after)
        due = min(before.ended + pause_after(failures_of(observed.own[after.key], before), before), end)
        if observed.is_eager(after.run) and not observed.store and after.began - due > observed.longest_turn(after.key):
            yield f"{after.run}'s round for {after.origin} at {after.began:.3f} was {after.began - due:.1f} s late"


def healthy_origins_are_not_refused(observed: Observations) -> Iterator[str]:
    """A request to a server that answers in a third of the time limit is not refused as unreachable, whatever other
    servers do. Which servers answer in time is read from the case, not from what the crawl saw."""
    for request in observed.requests.values():
        server = observed.case["origins"].get(request.key[1])
        if request.outcome == "RobotsUnreachable" and server is not None and not observed.store:
            answers = [answer for _, answer in server["robots"]]
            longest = max(answer.get("delay", server["robots_delay"])[1] for answer in answers)
            is_decisive = all(answer.get("status") in {200, 404, 410} for answer in answers)
            if is_decisive and 3 * longest <= observed.settings["REP_FETCH_TIMEOUT"]:
                yield f"at {request.ended:.3f} {request} was refused as unreachable, and its server answers in time"


# Cost.


def one_fetch_an_origin_at_a_time(observed: Observations) -> Iterator[str]:
    last: dict[Key, float] = {}
    for each in sorted(observed.rounds, key=lambda each: each.began):
        if each.began < last.get(each.key, 0.0):
            yield f"{each.run} fetched {each.origin} at {each.began:.3f}, before its last fetch had ended"
        last[each.key] = each.ended


def no_fetch_while_fresh(observed: Observations) -> Iterator[str]:
    """A run uses its answer until the last tenth of its lifetime. So does a fleet, if nothing disturbs it."""
    each_origins = [*observed.own.values(), *(observed.of_origin.values() if observed.is_quiet_fleet else ())]
    is_checked = not observed.skew and not observed.forgets
    for before, after in (pair for rounds in each_origins if is_checked for pair in pairwise(rounds)):
        is_known = before.run == after.run or (after.began > before.ended and not before.is_private)
        last_tenth = before.fresh_until - 0.1 * (before.fresh_until - before.began) - SLACK
        if before.access is not Access.NOTHING and is_known and after.began < last_tenth:
            good = f"{before.run} had an answer that was good until {before.fresh_until:.3f}"
            yield f"{after.run} fetched {after.origin} at {after.began:.3f}; {good}"


def backoffs_are_kept(observed: Observations) -> Iterator[str]:
    """A pause is as long as `pause_after` says. Only the last round, at REP_UNREACHABLE_WAIT, may begin earlier."""
    begins: dict[Key, list[float]] = defaultdict(list)  # when requests began to wait
    for request in observed.requests.values():
        begins[request.key].append(request.taken or NEVER)
    for rounds in observed.fetches.values():
        begins[rounds[0].key].append(rounds[0].began)
    is_checked = not observed.skew and not observed.forgets
    for before, after in (pair for own in observed.own.values() if is_checked for pair in pairwise(own)):
        failures, gap = failures_of(observed.own[after.key], before), after.began - before.ended
        ends = (begin + observed.settings["REP_UNREACHABLE_WAIT"] for begin in begins[after.key])
        is_last = gap >= before.retry_after and any(abs(after.began - end) < 2 * SLACK for end in ends)
        if failures and not is_last and gap < pause_after(failures, before) - MOMENT:
            least = pause_after(failures, before)
            yield f"{after.run} fetched {after.origin} {gap:.1f} s after failure {failures}, not {least:.1f} s"


def few_requests_wait_outside_a_queue_on_disk(observed: Observations) -> Iterator[str]:
    """docs/limits.md: at most REP_WAITING_MAX requests, not counting the first request to each origin."""
    limit = observed.settings["REP_WAITING_MAX"]
    here: dict[str, set[int]] = defaultdict(set)
    for at, run, what, number, _ in observed.simulation.of("taken", "entered", "queued"):
        (here[run].add if what == "taken" else here[run].discard)(number)
        origins = {observed.requests[run, each].key for each in here[run]}
        is_limited = observed.crawlers[run[0]].get("jobdir") and limit > 0
        if is_limited and len(here[run]) > limit + len(origins) + 1:  # one was taken to look at it
            yield f"at {at:.3f} {len(here[run])} requests to {len(origins)} origins waited outside the queue of {run}"


def a_lazy_start_is_lazy(observed: Observations) -> Iterator[str]:
    limit = observed.settings["CONCURRENT_REQUESTS"] + 2 * observed.settings["REP_FETCH_CONCURRENCY"] + 1
    ahead: Counter[str] = Counter()
    for at, run, what, *_ in observed.simulation.of("asked", "ended"):
        ahead[run] += 1 if what == "asked" else -1
        if observed.crawlers[run[0]].get("lazy") and ahead[run] > limit:
            yield f"at {at:.3f} {run} had read {ahead[run]} requests ahead of its pages; {limit} are enough"


def nothing_is_left(observed: Observations) -> Iterator[str]:
    """When a crawl has ended, it has no timer, and no lease in a store that works."""
    for at, run, _, _, details in observed.simulation.of("left"):
        yield f"at {at:.3f} {run} was over, and had left {details}"


PROMISES = [
    each for each in list(vars().values()) if getattr(each, "__annotations__", {}).get("return") == "Iterator[str]"
]


def broken(simulation: Simulation) -> dict[str, list[str]]:
    """The promises that are broken, each with what breaks it."""
    observed = Observations(simulation)
    found = {promise.__name__: list(promise(observed)) for promise in PROMISES}
    return {name: breaks for name, breaks in found.items() if breaks}
