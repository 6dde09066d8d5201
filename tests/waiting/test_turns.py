"""`QueuedSites` without a crawl: which sites take turns if the queue has more sites than memory has room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from itertools import chain, islice, repeat

import pytest

from scrapy_rep.waiting.turns import LOOKS, PAGES, QueuedSites

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
