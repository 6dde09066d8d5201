"""`WaitingRequests` without a crawl: the requests that wait or are ready, and their order."""

from __future__ import annotations

from scrapy import Request

from scrapy_rep.protocol.origin import Origin
from scrapy_rep.waiting.order import Wait, WaitingRequests

A, A_TLS, B = (Origin(scheme, host, None) for scheme, host in (("http", "a"), ("https", "a"), ("http", "b")))


def wait_for(origin: Origin, name: str = "", priority: int = 0) -> Wait:
    """`a` is one site, whatever the scheme."""
    return Wait(Request(f"{origin}/{name}", priority=priority), origin, since=0.0, site=origin.host)


def taken(here: WaitingRequests, number: int, full: str = "") -> list[str]:
    waits = [here.take_ready(lambda site: site != full) for _ in range(number)]
    return [wait.request.url for wait in waits if wait is not None]


def test_only_the_first_request_to_an_origin_needs_a_fetch() -> None:
    here = WaitingRequests()
    assert [here.add_waiting(wait_for(origin)) for origin in (A, A, A_TLS, B, B)] == [True, False, True, True, False]
    assert (len(here), here.beyond_the_first, dict(here.sites)) == (5, 2, {"a": 3, "b": 2})
    assert taken(here, 1) == []


def test_requests_are_ready_by_priority_and_then_in_their_order() -> None:
    here = WaitingRequests()
    for name, priority in (("1", 0), ("2", 5), ("3", 0), ("4", 5)):
        here.add_waiting(wait_for(A, name, priority))
    assert [wait.request.url[-1] for wait in here.release(A)] == ["2", "4", "1", "3"]
    assert [request.url[-1] for request in here] == ["1", "2", "3", "4"], "in the order of arrival"
    assert [url[-1] for url in taken(here, 5)] == ["2", "4", "1", "3"]
    assert (len(here), here.beyond_the_first, dict(here.sites), len(here.ready)) == (0, 0, {}, 0)


def test_sites_take_turns_and_then_the_origins_of_each_site() -> None:
    here = WaitingRequests()
    for origin in (A, A_TLS, B):
        for name in "12":
            here.add_waiting(wait_for(origin, name))
        here.release(origin)
    assert len(here.ready) == 2
    assert taken(here, 3) == ["http://a/1", "http://b/1", "https://a/1"]
    assert taken(here, 2, full="b") == ["http://a/2", "https://a/2"]
    assert taken(here, 1, full="b") == []
    assert (len(here), len(here.ready)) == (1, 1)
    assert taken(here, 2) == ["http://b/2"]


def test_one_request_of_an_origin_is_free_although_some_wait_and_some_are_ready() -> None:
    here = WaitingRequests()
    here.add_waiting(wait_for(A, "1"))
    here.release(A)
    here.add_waiting(wait_for(A, "2"))
    assert (len(here), here.beyond_the_first) == (2, 1)
