"""What must hold in every crawl: safety, liveness, cost. Slow hosts are no excuse.

A promise is a function here that yields what breaks it. Its name is the name of the promise. Times are true seconds
from the beginning of the case. README.md numbers the promises, and lists the cases that a promise leaves out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, chain, pairwise, product

from crawl import Simulation, TrackedRequest
from network import origin_of
from oracle import BACKOFF_MAX, Access, Key, Round, judge, rounds_of, view
from plain import outcome
from scrapy.settings import Settings
from virtual_time import NEVER

from scrapy_rep.settings import RepSettings

MOMENT = 0.1  # seconds between an answer and the decisions that follow from it, at most
STORING = 0.3  # seconds until other crawlers find an answer in the store, at most: three calls of the slowest store
SLOW = 0.5  # seconds after which a fetch does not count, unless it has a proxy
TURN, SOME = 100, 10  # requests that a site sends until another one has its turn, and how many they may differ
SLACK = 2.5  # seconds of tolerance: one for the pause before a retry, the rest for turns


@cache
def allows(body: str, url: str, token: str) -> bool:
    return outcome(body.encode(), url, [token]).allowed


class Observations:
    """What happened in a case, and the rounds that the oracle finds in it."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.case, self.store = simulation.case, simulation.case["store"]
        settings = Settings(self.case["settings"])
        self.limits = settings.getint("CONCURRENT_REQUESTS"), settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self.rep = RepSettings.read(settings)
        self.fetches_at_a_time = self.rep.fetch_concurrency or self.limits[0]
        self.crawlers = simulation.crawlers
        self.requests = list(simulation.requests.values())
        self.eager = [request for request in self.requests if self.is_eager(request.run)]
        errors = [0.0, *(error for crawler in self.crawlers.values() for _, error in crawler["clock"])]
        self.skew = max(errors) - min(errors)
        """The largest difference in seconds between two clocks, or between one clock before and after it was set."""
        is_stopped = any(crawler["runs"] != [None] for crawler in self.crawlers.values())
        self.stopped: float = sum(length for _, length in self.case.get("stops", ()))
        """For how many seconds the process was stopped."""
        self.is_quiet_fleet = self.store and not (self.store["faults"] or is_stopped or self.skew)
        """Whether crawlers share a store, and nothing disturbs them."""
        self.may_forget = bool(self.skew) or self.rep.memory_octets < 2**26
        """Whether a crawl may forget an origin, because a clock is wrong or its memory is full."""
        is_proxied = any(exchange.proxy for exchange in simulation.exchanges)
        self.slow = self.rep.fetch_timeout if is_proxied else SLOW
        """Seconds after which a request for a robots.txt gives its place back."""
        # At most twice REP_FETCH_CONCURRENCY fetches have begun and are not slow; through a proxy, none counts as slow.
        begun = 2 * self.rep.fetch_concurrency or self.limits[0]
        self.turns_at_a_time = min(begun, self.limits[0]) if is_proxied else self.fetches_at_a_time
        fetched = [exchange for exchange in simulation.exchanges if exchange.is_robots]
        self.rounds = rounds_of(fetched, self.rep.fetch_retries, has_store=bool(self.store))
        self.stops = {run: at for at, run, *_ in simulation.of("closing", "killed")}
        self.hops = max((len(each.hops) for each in self.rounds), default=1)
        # The rounds that have an end.
        self.of_origin: dict[str, list[Round]] = defaultdict(list)
        self.own: dict[Key, list[Round]] = defaultdict(list)
        self.fetches: dict[tuple[str, str], list[Round]] = defaultdict(list)
        for each in self.rounds:
            of_origin, own = self.of_origin[each.origin], self.own[each.key]
            judge(each, self.rep.lifetime_min, own)
            if each.access is not Access.UNKNOWN:
                of_origin.append(each)
                own.append(each)
                self.fetches[each.run, each.fetch].append(each)
        self.priorities: dict[Key, list[int]] = defaultdict(list)
        # For each run: begin, end, number of places in the downloader (1 or 0), and the origin in whose slot a place is
        # taken. A page has a place in the downloader from when it enters until it ends. Each request on the wire has a
        # place in a slot.
        self.places: dict[str, list[tuple[float, float, int, str]]] = defaultdict(list)
        for exchange in simulation.exchanges:
            self.places[exchange.run].append((exchange.began, exchange.ended, 0, origin_of(exchange.url)))
        for request in self.requests:
            self.places[request.run].append((request.entered, request.ended, 1, ""))
            self.priorities[request.key].append(request.plan.get("priority", 0))

    def is_eager(self, run: str) -> bool:
        """Whether the run has no JOBDIR, and ends by itself."""
        return not self.crawlers[run[0]].get("jobdir") and self.crawlers[run[0]]["runs"] == [None]

    def known(self, request: TrackedRequest, moment: float) -> Iterator[list[Round]]:
        """Yield what the run may know at this moment: its own rounds.

        With a store, it may also know rounds of other crawlers. For each of the origin's last 30 rounds, it may know
        all rounds up to this one, or only this one. A crawl may have forgotten its first rounds, because its clock was
        wrong or its memory was full.
        """
        everything = self.of_origin[request.key[1]] if self.store else []
        recent = [everything[begin : end + 1] for end in range(len(everything))[-30:] for begin in (0, end)]
        for rounds in [self.own[request.key], *recent]:
            before = [each for each in rounds if each.ended <= moment]
            if before and before[-1].run != request.run and before[-1].failures and before[-1].is_unanswered:
                continue
            yield from (before[number:] for number in range(max(len(before), 1) if self.may_forget else 1))
        if self.may_forget:  # the round that ended the request's wait still decides about it
            yield from ([each] for each in self.own[request.key] if request.taken <= each.ended <= moment)

    def verdicts(self, request: TrackedRequest, now: float) -> dict[bool, str]:
        """The verdicts that are right at `now`: True (allowed), False (refused) or both, each with its reason."""
        token = request.plan.get("agent", "SimBot/1.0").partition("/")[0]
        found: dict[bool, str] = {}
        for moment, doubt in product((now, now - MOMENT), {0.0, -self.skew, self.skew}):
            for rounds in self.known(request, moment):
                if (answer := view(rounds, moment + doubt, self.rep.unreachable_days)) is not None:
                    access, body = answer
                    found[access is not Access.NOTHING and allows(body, request.plan["url"], token)] = access.value
        return found

    def is_cut_off(self, this: Round, moment: float) -> bool:
        """Whether the run has begun to close since this round began: its fetch may have been cancelled."""
        return this.began < self.stops.get(this.run, NEVER) < moment

    def longest_turn(self, key: Key, ahead: int = 0) -> float:
        """How many seconds a request for an origin's robots.txt may wait for its turn.

        In each half second, REP_FETCH_CONCURRENCY requests for a robots.txt begin (of 0: CONCURRENT_REQUESTS, pages
        included). Through a proxy, CONCURRENT_REQUESTS begin in each REP_FETCH_TIMEOUT. At most these go before it: the
        requests that pages of a higher priority need, twice as many older first requests, twice as many retries, and
        `ahead` later rounds that were due before.
        """
        lowest = min(self.priorities.get(key, [0]))
        urgent = sum(max(each) > lowest for (run, _), each in self.priorities.items() if run == key[0])
        return (4 + self.hops * (urgent + ahead) / self.turns_at_a_time) * self.slow + SLACK

    def is_between_rounds(self, request: TrackedRequest, moment: float) -> bool:
        """Whether the request waits between two rounds of an outage."""
        began = [each for each in self.rounds if each.origin == request.key[1] and each.began <= moment]
        own = [each for each in began if each.run == request.run]
        waits = request.taken <= moment < min(request.entered, request.ended)
        has_failed = any(each.failures for each in (began if self.store else own[-1:]))
        return waits and has_failed and all(each.ended <= moment for each in own)

    def has_slow_name(self, origin: str) -> bool:
        """Whether look-ups of the name take long. A time-out meanwhile proves nothing; the oracle does not see that."""
        return bool(self.case["origins"].get(origin, {}).get("has_no_address"))

    def last_round(self, key: Key) -> float:
        """When the last round of the run's latest failed fetch is due (REP_UNREACHABLE_WAIT). 0 if no fetch failed."""
        failed = [self.fetches[key[0], each.fetch][0] for each in self.own[key] if each.failures]
        return max((first.began + self.rep.unreachable_wait for first in failed), default=0.0)

    def seconds_with_room(self, request: TrackedRequest, begin: float, end: float, *, of_slot: bool = False) -> float:
        """Seconds during which the downloader and the slot had room for the request (`of_slot`: only the slot)."""
        if end - begin <= SLACK:
            return 0.0
        changes: list[tuple[float, int, int]] = [(end, 0, 0)]
        for since, until, one, origin in self.places[request.run]:
            mine = int(origin == request.key[1])
            if since < end and until > begin and (one or mine):
                changes += [(max(since, begin), one, mine), (min(until, end), -one, -mine)]
        total, slot, room, last = 0, 0, 0.0, begin
        for at, one, mine in sorted(changes):
            room += (at - last) * ((of_slot or total < self.limits[0]) and slot < self.limits[1])
            total, slot, last = total + one, slot + mine, at
        return room - self.stopped


# Safety.


def each_page_is_treated_as_robots_txt_says(seen: Observations) -> Iterator[str]:
    """No forbidden page is requested, and no allowed page is refused."""
    for request in seen.requests:
        is_allowed = request.allowed < NEVER
        if is_allowed or request.outcome in {"ForbiddenByRobots", "RobotsUnreachable"}:
            now = request.allowed if is_allowed else request.ended
            verdicts = seen.verdicts(request, now)
            if is_allowed not in verdicts:
                did = "allowed" if is_allowed else f"refused ({request.outcome})"
                yield f"at {now:.3f} {request} was {did}; robots.txt: {verdicts.get(not is_allowed, 'not known')}"


def each_request_ends_once(seen: Observations) -> Iterator[str]:
    """In its callback or errback. Kills are left out: a kill may lose requests and repeat some.

    A request that a callback makes itself is decided, although the crawl is closed: the callback waits for it.
    """
    if any(seen.simulation.of("killed")):
        return
    for request in seen.requests:
        if request.plan.get("inline") and (request.ends != 1 or request.outcome == "IgnoreRequest"):
            yield f"{request} ended {request.ends} times ({request.outcome}), and its callback waited for it"
    ends: Counter[tuple[str, int]] = Counter()
    for request in seen.requests:
        ends[request.run[0], request.number] += request.ends
    for (name, number), times in ends.items():
        is_over = seen.crawlers[name]["runs"][-1] is None and not seen.simulation.errors
        if times > 1 or (is_over and not times):
            yield f"request {number} of {name} ended {times} times"


def the_crawl_ends_without_errors(seen: Observations) -> Iterator[str]:
    yield from seen.simulation.errors


# Liveness.


def not_idle_too_early(seen: Observations) -> Iterator[str]:
    """`spider_idle` is not sent while requests are pending: a user's second phase would begin too early. Requests that
    wait between two rounds of an outage are left out."""
    pending: dict[str, set[TrackedRequest]] = defaultdict(set)
    for at, run, what, number, _ in seen.simulation.events:
        if what in {"asked", "ended"}:
            request = seen.simulation.requests[run, number]
            (pending[run].add if what == "asked" else pending[run].discard)(request)
        elif what == "idle" and seen.is_eager(run):
            busy = [str(each) for each in pending[run] if not seen.is_between_rounds(each, at)]
            if busy:
                yield f"at {at:.3f} spider_idle was sent in {run} while {len(busy)} requests were pending: {busy[0]}"


def a_spider_that_is_fed_has_work(seen: Observations) -> Iterator[str]:
    """A spider that is fed when it is idle is never without work for longer than one fetch."""
    is_limited = seen.rep.waiting_max < len(seen.requests)
    for name in (name for name, plan in seen.crawlers.items() if plan.get("fed") and not is_limited):
        asked = [request.asked for request in seen.requests if request.run[0] == name]
        last = min(asked, default=0.0)
        for begin, end in sorted((each.began, each.ended) for each in seen.simulation.exchanges):
            if begin - last > SLACK and begin <= max(asked):
                yield f"{name} had nothing to do from {last:.3f} to {begin:.3f}, and had more URLs to get"
            last = max(last, end)


def first_fetches_do_not_wait_for_later_ones(seen: Observations) -> Iterator[str]:
    """The fetch of an origin begins soon after its first request has left the queue, however many origins there are."""
    began = {each.key: each.began for each in seen.rounds if each.is_first}
    first = {request.key: request for request in sorted(seen.eager, key=lambda request: -request.taken)}
    for key, request in first.items():
        if request.taken < NEVER and key in began and seen.rep.waiting_max > 0:
            waited = seen.seconds_with_room(request, request.taken, began[key], of_slot=True)
            if waited > seen.longest_turn(key):
                yield f"at {request.taken:.3f} {request} left the queue; robots.txt was fetched {waited:.1f} s later"


def nothing_ready_waits_while_there_is_room(seen: Observations) -> Iterator[str]:
    """A request whose robots.txt is known goes on while the downloader and its slot have room."""
    for request in (request for request in seen.eager if not seen.has_slow_name(request.key[1])):
        until = min(request.entered, seen.simulation.ended_at)
        known = [(each, each.ended) for each in seen.own[request.key]]
        if seen.is_quiet_fleet:  # a crawler looks for answers of others once a second, and not during its backoff
            at_the_earliest, others = seen.last_round(request.key), seen.of_origin[request.key[1]]
            shared = (each for each in others if each.run != request.run and not each.is_private)
            known += [(each, max(each.ended + 1.5, at_the_earliest)) for each in shared]
        if seen.store:  # another crawler may have the lease for the next round
            known = [(each, at) for each, at in known if not each.failures and each.fresh_until >= until]
        ready = max((at for _, at in known if at <= until), default=NEVER)
        room = seen.seconds_with_room(request, max(request.taken, ready), until)
        if room > SLACK:
            yield f"{request} was ready at {ready:.3f}, and waited although there was room for {room:.1f} s"


def dead_origins_take_no_place(seen: Observations) -> Iterator[str]:
    """A request to an origin that never answers waits outside the downloader, and takes a place only to be refused."""
    for request in seen.eager:
        seconds = request.ended - request.entered - seen.stopped
        has_answered = any(not each.failures for each in seen.of_origin[request.key[1]])
        is_page = request.queued < NEVER and seen.rep.waiting_max > 0
        if is_page and request.outcome == "RobotsUnreachable" and seconds > MOMENT and not has_answered:
            yield f"{request} was in the downloader for {seconds:.1f} s, and was refused at {request.ended:.3f}"


def the_queue_moves(seen: Observations) -> Iterator[str]:
    """While the downloader has room, requests leave the queue: REP_FETCH_CONCURRENCY fetches in half a second. Fetches
    of new origins and of known ones take turns."""
    turns = len(seen.case["origins"]) * seen.hops / seen.turns_at_a_time
    for request in seen.eager:
        if request.queued < NEVER and request.taken < NEVER and seen.rep.waiting_max > 0:
            room = seen.seconds_with_room(request, request.queued, request.taken)
            if room > 2 * seen.slow * turns + SLACK:
                yield f"at {request.taken:.3f} {request} left the queue, after {room:.1f} s with room"


def rounds_go_on_while_requests_wait(seen: Observations) -> Iterator[str]:
    """An origin is not given up before REP_UNREACHABLE_WAIT. A host that hangs has no second round. When the crawl
    closes, no round follows."""
    for rounds in seen.fetches.values():
        first, last = rounds[0], rounds[-1]
        stop = seen.stops.get(first.run, NEVER)
        if any(each.ended > stop for each in rounds[:-1]):
            yield f"{first.run} went on to fetch {first.origin} after {stop:.3f}, when the crawl closed"
        if any(each.has_timed_out for each in rounds[:-1]):
            yield f"{first.run} went on to fetch {first.origin}, which hangs"
        is_final = not last.failures or last.has_timed_out
        is_cut_off = last.ended + BACKOFF_MAX >= stop
        next_after = max(last.due, last.ended) - first.began
        if first.is_first and next_after < seen.rep.unreachable_wait and not is_final and not is_cut_off:
            yield f"{first.run} gave {first.origin} up at {last.ended:.3f}, {next_after:.1f} s before the next round"


def rounds_come_in_time(seen: Observations) -> Iterator[str]:
    """While requests wait, the next round is due when the backoff is over. Then it waits for its turn, by priority and
    arrival, like a first request."""
    pairs = [*chain.from_iterable(map(pairwise, seen.fetches.values()))]
    waits = [(after.run, max(before.due, before.ended), after.began) for before, after in pairs]
    for (_, after), (run, due, began) in zip(pairs, waits, strict=True):
        late = began - due - seen.stopped
        is_seen = seen.is_eager(run) and not seen.store and not seen.has_slow_name(after.origin)
        ahead = sum(of == run and at <= due < until for of, at, until in waits) - 1
        if is_seen and late > seen.longest_turn(after.key, ahead):
            yield f"{after.run}'s round for {after.origin} at {after.began:.3f} was {late:.1f} s late"


def healthy_origins_are_not_refused(seen: Observations) -> Iterator[str]:
    """A request to a server that answers in a third of the time limit is not refused as unreachable, whatever other
    servers, proxies and crawls do. Which servers answer in time is read from the case, not from what the crawl saw.
    """
    for request in seen.requests:
        server, proxy = seen.case["origins"].get(request.key[1]), request.plan.get("proxy")
        if seen.crawlers[request.run[0]].get("network") or seen.case.get("proxies", {}).get(proxy):
            continue
        if request.outcome == "RobotsUnreachable" and server is not None:
            answers = [answer for _, answer in server["robots"]]
            longest = max(answer.get("delay", server["robots_delay"])[1] for answer in answers)
            is_decisive = all(answer.get("status") in {200, 404, 410} for answer in answers)
            if is_decisive and 3 * longest <= seen.rep.fetch_timeout:
                yield f"at {request.ended:.3f} {request} was refused as unreachable, and its server answers in time"


# Cost.


def connections_are_limited(seen: Observations) -> Iterator[str]:
    """Through proxies, there are CONCURRENT_REQUESTS connections at a time. If no robots.txt comes on top, there are as
    many for pages and robots.txt files that are not slow. Scrapy does not limit pages past the scheduler. A crawl that
    closes has no limit: a download handler may wait for another request."""
    edges: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    inline = {(each.run, str(each.number)) for each in seen.requests if each.plan.get("inline")}
    before_stop = (each for each in seen.simulation.exchanges if each.began < seen.stops.get(each.run, NEVER))
    for each in (each for each in before_stop if each.is_robots or (each.run, each.mark) not in inline):
        if each.proxy:
            edges[each.run, "through proxies"] += [(each.began, 1), (each.ended, -1)]
        if not seen.rep.fetch_concurrency:
            is_slow_later = each.is_robots and not each.proxy
            edges[each.run, ""] += [
                (each.began, 1),
                (min(each.ended, each.began + SLOW - MOMENT) if is_slow_later else each.ended, -1),
            ]
    for (run, what), of_run in edges.items():
        most = max(accumulate(step for _, step in sorted(of_run)), default=0)
        if most > seen.limits[0]:
            yield f"{run} had {most} connections at a time {what}, and may have {seen.limits[0]}"


def one_fetch_an_origin_at_a_time(seen: Observations) -> Iterator[str]:
    last: dict[Key, Round] = {}
    for each in sorted(seen.rounds, key=lambda each: each.began):
        before = last.get(each.key)
        if before and each.began < before.ended and not seen.is_cut_off(before, each.began):
            yield f"{each.run} fetched {each.origin} at {each.began:.3f}, before its last fetch had ended"
        last[each.key] = each


def no_fetch_while_fresh(seen: Observations) -> Iterator[str]:
    """A run uses its answer until the last tenth of its lifetime. So does a fleet, if nothing disturbs it."""
    each_origins = [*seen.own.values(), *(seen.of_origin.values() if seen.is_quiet_fleet else ())]
    for before, after in chain.from_iterable(map(pairwise, each_origins if not seen.may_forget else ())):
        is_known = before.run == after.run or (after.began > before.ended + STORING and not before.is_private)
        is_known &= not seen.is_cut_off(before, after.began)
        last_tenth = before.fresh_until - 0.1 * (before.fresh_until - before.began) - SLACK
        if not before.failures and is_known and after.began < last_tenth:
            good = f"{before.run} had an answer that was good until {before.fresh_until:.3f}"
            yield f"{after.run} fetched {after.origin} at {after.began:.3f}; {good}"


def backoffs_are_kept(seen: Observations) -> Iterator[str]:
    """After a failure, the next round does not begin before `Round.due`. After a failure of a proxy, a later request
    makes a round of its own."""
    for before, after in chain.from_iterable(map(pairwise, seen.own.values() if not seen.may_forget else ())):
        early = before.due - after.began
        if before.is_of_proxy and after.fetch != before.fetch:
            continue
        if seen.has_slow_name(before.origin):
            continue
        if before.failures and early > MOMENT and not seen.is_cut_off(before, after.began):
            yield f"{after.run} fetched {after.origin} {early:.1f} s too early after failure {before.failures}"


def few_requests_wait_outside_a_queue_on_disk(seen: Observations) -> Iterator[str]:
    """docs/limits.md: at most REP_WAITING_MAX requests, not counting the first request to each origin."""
    limit = seen.rep.waiting_max
    here: dict[str, set[int]] = defaultdict(set)
    for at, run, what, number, _ in seen.simulation.of("taken", "entered", "queued"):
        (here[run].add if what == "taken" else here[run].discard)(number)
        origins = {seen.simulation.requests[run, each].key for each in here[run]}
        is_limited = seen.crawlers[run[0]].get("jobdir") and limit > 0
        if is_limited and len(here[run]) > limit + len(origins) + 1:  # one was taken to look at it
            yield f"at {at:.3f} {len(here[run])} requests to {len(origins)} origins waited outside the queue of {run}"


def a_spider_that_is_fed_is_not_fed_without_end(seen: Observations) -> Iterator[str]:
    """While REP_WAITING_MAX requests wait (not counting the first to each origin), it is idle once a second at most."""
    pending: dict[str, set[TrackedRequest]] = defaultdict(set)
    idle: dict[str, float] = {}
    for at, run, what, number, _ in seen.simulation.events:
        if what in {"asked", "ended"}:
            request = seen.simulation.requests[run, number]
            (pending[run].add if what == "asked" else pending[run].discard)(request)
        elif what == "idle" and seen.crawlers[run[0]].get("fed"):
            waiting = len(pending[run]) - len({request.key for request in pending[run]})
            if waiting >= seen.rep.waiting_max > 0 and at - idle.get(run, -1.0) < 0.99:
                yield f"at {at:.3f} {run} was idle again after {at - idle[run]:.3f} s, with {waiting} waiting requests"
            idle[run] = at


def a_lazy_start_is_lazy(seen: Observations) -> Iterator[str]:
    limit = seen.limits[0] + 2 * seen.fetches_at_a_time + 1
    ahead: Counter[str] = Counter()
    for at, run, what, *_ in seen.simulation.of("asked", "ended"):
        ahead[run] += 1 if what == "asked" else -1
        if seen.crawlers[run[0]].get("lazy") and ahead[run] > limit:
            yield f"at {at:.3f} {run} had read {ahead[run]} requests ahead of its pages; {limit} are enough"


def nothing_is_left(seen: Observations) -> Iterator[str]:
    """When a crawl has ended, it has no timer, and no lease in a store that works."""
    for at, run, _, _, details in seen.simulation.of("left"):
        yield f"at {at:.3f} {run} was over, and had left {details}"


def more_sites_than_memory_has_room_for_take_turns(seen: Observations) -> Iterator[str]:
    """No site waits for its first turn while another one has more than TURN turns. A robots.txt is requested again only
    after as many, but once: while it is fetched first, its site waits and may lose its place to another one. This is
    checked if half of memory has room for twice the requests that are under way at a time."""
    under_way = 2 * seen.fetches_at_a_time + seen.limits[0]
    if seen.rep.memory_octets == 2**26 or seen.skew or seen.rep.memory_origins // 2 < 2 * under_way:
        return
    taken: dict[Key, list[float]] = defaultdict(list)
    for request in seen.eager:
        taken[request.key].append(request.taken)
    for key, of_site in taken.items():
        begin, end = min(request.queued for request in seen.requests if request.key == key), min(of_site)
        most = max(sum(begin < at < end for at in turns) for turns in taken.values())
        if most > TURN + SOME:
            yield f"{key} waited for its first turn from {begin:.3f} to {end:.3f}; another site had {most} turns"
        for before, after in pairwise(seen.own[key][1:]):
            turns = sum(before.began < at < after.began for at in of_site)
            if not before.failures and after.began < before.fresh_until and turns < TURN - SOME:
                yield f"{after.run} fetched {after.origin} at {after.began:.3f} again, after {turns} turns"


PROMISES = [each for each in list(vars().values()) if "Iterator[str]" in str(getattr(each, "__annotations__", ""))]


def broken(simulation: Simulation) -> dict[str, list[str]]:
    """The promises that are broken, each with what breaks it."""
    seen = Observations(simulation)
    found = {promise.__name__: list(promise(seen)) for promise in PROMISES}
    return {name: breaks for name, breaks in found.items() if breaks}
