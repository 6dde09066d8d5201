"""Which site's request leaves the queue next, without a crawl: by whose turn it is, and by how busy the sites are.

`Queue` has Scrapy's own scheduler and downloader, in an engine that does not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping
from itertools import chain, groupby, islice, product, repeat
from pathlib import Path
from typing import Any

import pytest
from in_loop import in_loop
from scrapy import Request
from unstarted import unstarted

from scrapy_rep.scrapy_internals.scheduler_queues import SchedulerQueues
from scrapy_rep.scrapy_internals.slots import Sites
from scrapy_rep.waiting.turns import LOOKS, PAGES, QueuedSites, Turns

MOST = 3


def queued(number: int, pages: int) -> QueuedSites:
    return QueuedSites({f"site{n}": pages for n in range(number)})


def take(sites: QueuedSites, number: int, *, away: Container[str] = ()) -> list[str]:
    """The sites of the next requests. Each request leaves the queue."""
    taken: list[str] = []
    while sites and len(taken) < number:
        site = next(site for site in sites.in_turns(MOST, away.__contains__) if site not in away)
        taken.append(site)
        if site in sites.window:
            sites.window[site] += 1
        sites[site] -= 1
        if not sites[site]:
            del sites[site]
    return taken


@pytest.mark.parametrize("number", [MOST, MOST + 1, 2 * MOST, 50])
def test_so_many_sites_take_turns_until_their_requests_have_left(number: int) -> None:
    taken = take(queued(number, pages=4), 4 * number)
    in_turns = (chain.from_iterable(repeat(range(n, min(n + MOST, number)), 4)) for n in range(0, number, MOST))
    assert taken == [f"site{n}" for n in chain.from_iterable(in_turns)]


def test_sites_without_an_end_let_others_take_turns() -> None:
    sites = queued(2 * MOST, pages=10**6)
    first, second, third = (Counter(take(sites, MOST * PAGES)) for _ in range(3))
    assert first == {f"site{n}": PAGES for n in range(MOST)}
    assert sum(second[f"site{n}"] for n in range(MOST, 2 * MOST)) >= MOST * (PAGES - 1)
    assert len(third) <= 2 * MOST
    assert max((first + second).values()) <= PAGES + 1, "no site comes back before the others have had their turns"


def test_site_whose_next_page_is_found_meanwhile_keeps_its_place() -> None:
    sites = queued(2 * MOST, pages=2)
    sites["site0"] = 1
    assert take(sites, 1) == ["site0"]
    assert "site0" not in sites
    assert take(sites, 1) == ["site1"]
    sites["site0"] = 1  # a link of its page
    assert take(sites, 4) == ["site2", "site0", "site1", "site2"]


def test_sites_that_would_only_wait_leave_their_places() -> None:
    sites, dead = queued(3 * MOST, pages=2), {"site0", "site2"}
    assert take(sites, 4, away=dead) == ["site1", "site3", "site4", "site1"]
    assert dead.isdisjoint(sites.window)
    assert len(take(sites, 100)) == 3 * MOST * 2 - 4, "each of them comes back"


def always(_site: str) -> bool:
    return True


@pytest.mark.parametrize(("is_away", "most_looks"), [(always, LOOKS), (set[str]().__contains__, LOOKS + 10 * MOST)])
def test_few_sites_are_looked_at_for_a_request(is_away: Callable[[str], bool], most_looks: int) -> None:
    """Of 100,000 sites: all are at the door, or all that take turns are busy."""
    sites = queued(100_000, pages=1)
    for _ in range(5):
        assert len(list(islice(sites.in_turns(MOST, is_away), 10_000))) <= most_looks
    assert len(sites) == 100_000
    assert len(sites.window) <= MOST


def test_a_healthy_site_is_found_among_many_that_would_only_wait() -> None:
    """It takes turns, so that it need not be searched for again."""
    sites = queued(10 * LOOKS, pages=500)
    last = f"site{10 * LOOKS - 1}"
    looks = [last in sites.in_turns(MOST, lambda site: site != last) for _ in range(PAGES)]
    assert looks.index(True) < 10
    assert all(looks[looks.index(True) :])


def test_below_the_limit_a_site_with_many_requests_keeps_its_turns() -> None:
    """So it is found at once, although all others would only wait."""
    sites = queued(10 * LOOKS, pages=3 * PAGES)
    healthy = f"site{10 * LOOKS - 1}"
    most, found = 20 * LOOKS, []
    for _ in range(3 * PAGES):
        found.append(healthy in sites.in_turns(most, lambda site: site != healthy))
        if healthy in sites.window:
            sites.window[healthy] += 1
    assert found.index(True) < 10
    assert all(found[found.index(True) :])


# The queue of Scrapy's scheduler.


class Queue:
    """The queue has `pages` requests to each of these sites.

    `loads`: the downloads of sites. `known`: the sites that the downloader knows; it sends one request to each at a
    time. `delayed`: the sites whose Crawl-delay is obeyed. `at_door`: the sites with requests at the door.
    """

    def __init__(
        self,
        sites: str,
        *,
        pages: int = 3,
        loads: Mapping[str, int] | None = None,
        known: str = "",
        delayed: str = "",
        at_door: str = "",
        max_sites: int = 10,
        **settings: Any,
    ) -> None:
        crawler, self.scheduler = unstarted(known, CONCURRENT_REQUESTS_PER_DOMAIN=1, **settings)
        self._sites = Sites(crawler)
        for site, number in (loads or {}).items():
            for _ in range(number):
                self._sites.hand_out(Request(f"http://{site}/"))
        queues = SchedulerQueues(crawler, self.scheduler)
        self.turns = Turns(queues, self._sites, at_door, delayed.__contains__, max_sites)
        for _, site in product(range(pages), sites):
            self.add(site)

    def add(self, site: str, **more: Any) -> None:
        self.scheduler.enqueue_request(Request(f"http://{site}/", dont_filter=True, **more))

    def take(self, *, is_sent: bool = False) -> str:
        """The site of the request that the scheduler hands out; empty without a request."""
        request = self.scheduler.next_request()
        if request is not None and is_sent:
            self._sites.hand_out(request)
        return request.url[len("http://") : -1] if request is not None else ""

    def next(self, *, can_fetch: bool = True, is_full: bool = False, is_sent: bool = False) -> str:
        """The same, if that request can be sent or wait at the door; else empty."""
        is_one = self.turns.prepare_next(can_fetch=can_fetch, is_full=is_full)
        return self.take(is_sent=is_sent) if is_one else ""


FULL = {"is_full": True}
NO_FETCH = {"can_fetch": False}


@pytest.mark.parametrize(
    ("queue", "limits", "site"),
    [
        pytest.param({}, {}, "a", id="the-first-idle-site"),
        pytest.param({"loads": {"a": 2, "b": 1, "c": 1}}, {}, "b", id="the-first-with-the-fewest-downloads"),
        pytest.param({"loads": {"a": 2, "b": 1}}, {}, "c", id="an-idle-site-after-busy-ones"),
        pytest.param({"loads": {"c": 5}, "at_door": "ab"}, {}, "c", id="sites-at-the-door-come-last"),
        pytest.param({"at_door": "abc"}, {}, "a", id="but-they-come"),
        pytest.param({"at_door": "abc"}, FULL, "", id="not-at-the-limit-of-requests"),
        pytest.param({"at_door": "ab"}, FULL, "c", id="at-that-limit-another-site-comes"),
        pytest.param(
            {"loads": {"a": 2}, "known": "a", "delayed": "a", "at_door": "bc"}, {}, "b", id="a-held-site-waits"
        ),
        pytest.param({"loads": dict.fromkeys("abc", 2), "known": "abc", "delayed": "abc"}, {}, "", id="all-are-held"),
        pytest.param({"loads": dict.fromkeys("abc", 1), "known": "abc", "delayed": "abc"}, {}, "a", id="there-is-room"),
        pytest.param({"loads": dict.fromkeys("abc", 2), "known": "abc"}, {}, "a", id="without-a-delay-none-is-held"),
        pytest.param({"at_door": "a", "max_sites": 1}, {}, "b", id="a-site-at-the-door-takes-no-turns"),
        pytest.param(
            {"loads": {"a": 2}, "known": "a", "delayed": "a", "max_sites": 1}, {}, "b", id="nor-does-a-held-site"
        ),
        pytest.param({"known": "xb"}, NO_FETCH, "b", id="without-a-fetch-a-site-that-is-known"),
        pytest.param({}, NO_FETCH, "", id="none-is-known"),
        pytest.param({"known": "ab", "at_door": "a"}, NO_FETCH, "b", id="a-known-site-at-the-door-comes-last"),
        pytest.param({"known": "ab", "at_door": "ab"}, NO_FETCH, "", id="it-would-only-wait"),
    ],
)
@in_loop
async def test_which_site_is_next(queue: dict[str, Any], limits: dict[str, bool], site: str) -> None:
    assert Queue("abc", **queue).next(**limits) == site


@in_loop
async def test_sites_take_turns_until_the_queue_is_empty() -> None:
    queue = Queue("abc", pages=2)
    assert [queue.next() for _ in range(6)] == [*"abcabc"]
    assert queue.turns.prepare_next(can_fetch=True, is_full=False), "the scheduler says itself that it is empty"
    assert queue.take() == ""


@in_loop
async def test_sites_that_are_as_busy_take_turns() -> None:
    queue = Queue("abc", loads={"a": 1, "b": 1, "c": 1})
    assert [queue.next() for _ in range(6)] == [*"abcabc"]


@in_loop
async def test_known_sites_take_turns_without_a_fetch() -> None:
    queue = Queue("abcd", known="dxcb")
    assert [queue.next(can_fetch=False) for _ in range(6)] == [*"dcbdcb"]


@in_loop
async def test_without_a_fetch_no_site_is_taken_that_does_not_take_turns() -> None:
    """Its robots.txt was dropped, or will be: memory has no room for more sites than those that take turns."""
    queue = Queue("abc", known="cba", max_sites=1)
    assert [queue.next(can_fetch=False), queue.next()] == ["", "a"]
    assert [queue.next(can_fetch=False, is_sent=True) for _ in range(2)] == ["a", "a"]
    assert queue.next(can_fetch=False) == "", "it has no requests left"


@in_loop
async def test_a_site_gives_its_turns_away_after_so_many_pages() -> None:
    queue = Queue("ab", pages=2 * PAGES, max_sites=1)
    turns = [(site, len([*run])) for site, run in groupby(queue.next() for _ in range(3 * PAGES))]
    assert [site for site, _ in turns] == [*"aba"]
    assert all(PAGES <= number <= PAGES + 1 for _, number in turns[:2])


@in_loop
async def test_a_scheduler_may_ask_without_preparation() -> None:
    queue = Queue("abc", loads={"a": 1})
    assert [queue.take(is_sent=True) for _ in range(4)] == [*"bcab"]


@in_loop
async def test_a_request_that_comes_into_memory_meanwhile_is_next(tmp_path: Path) -> None:
    """It cannot be written to the disk, and the scheduler empties the queue in memory first."""
    queue = Queue("ab", known="b", JOBDIR=str(tmp_path))
    assert queue.next(can_fetch=False) == "b", "of the queue on disk"
    assert queue.turns.prepare_next(can_fetch=True, is_full=False)
    queue.add("c", meta={"unserialisable": lambda: None})
    assert queue.take() == "c"
    assert {queue.next(), queue.next()} == {"a", "b"}
    queue.scheduler.close("finished")


@pytest.mark.parametrize(
    ("loads", "number"), [({"a": 2, "b": 2}, 6), ({"a": 2, "b": 1}, 0)], ids=["all-are-held", "one-has-room"]
)
@in_loop
async def test_how_many_requests_are_held_in_the_queue(loads: dict[str, int], number: int) -> None:
    assert Queue("ab", loads=loads, known="ab", delayed="ab").turns.number_held == number
    assert Queue("", known="ab", delayed="ab").turns.number_held == 0


@pytest.mark.parametrize(("can_fetch", "is_full"), [*product([True, False], repeat=2)])
@in_loop
async def test_the_next_request_of_another_queue_is_taken_only_below_the_limits(can_fetch: bool, is_full: bool) -> None:
    queue = Queue("abc", known="abc", SCHEDULER_PRIORITY_QUEUE="scrapy.pqueues.ScrapyPriorityQueue")
    assert queue.turns.prepare_next(can_fetch=can_fetch, is_full=is_full) is (can_fetch and not is_full)
    assert queue.turns.number_held == 0
