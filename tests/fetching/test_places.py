"""The number of concurrent fetches (REP_FETCH_CONCURRENCY), and whether one more would begin soon."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, ClassVar

import pytest
from crawling import Crawl, CrawlSpider, close_spider, crawl, is_fetching
from dict_storage import DictStorage
from pytest_twisted import ensureDeferred
from scrapy import Request
from scrapy.utils.asyncio import CallLaterResult
from scrapy.utils.defer import deferred_f_from_coro_f, deferred_from_coro
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from web import RULES, Web, answer

from scrapy_rep import RepMiddleware
from scrapy_rep.fetching import places as module
from scrapy_rep.fetching.places import Places
from scrapy_rep.protocol import outage
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scrapy_internals.compat import sleep


class AsksForRoom(CrawlSpider):
    """Notes whether there is room for one more fetch: before the others begin, while they run, and later."""

    async def start(self) -> Any:
        single_flight = RepMiddleware.of(self.crawler)._single_flight
        self.crawl.ends.append(single_flight._connections.can_start_another())
        async for request in super().start():
            yield request
        while len(single_flight._fetches) < len(self.requests):
            await sleep(0.005)
        self.crawl.ends.append(single_flight._connections.can_start_another())
        while not single_flight._connections.can_start_another():
            await sleep(0.01)
        self.crawl.ends.append(is_fetching(self.crawler))


async def asked_for_room(web: Web, robots: dict[str, Any], number: int, **settings: Any) -> Crawl:
    sites = [web.robots(robots) for _ in range(number)]
    result = await crawl(*(site.url() for site in sites), spider=AsksForRoom, settings=settings)
    assert len(result.pages) + len(result.refused) == number
    return result


@ensureDeferred
async def test_there_is_room_for_twice_the_number_of_concurrent_fetches(web: Web) -> None:
    result = await asked_for_room(web, answer(RULES, delay=1), 3, REP_FETCH_CONCURRENCY=2)
    assert result.ends == [True, True, True]


@ensureDeferred
async def test_slow_fetches_do_not_count(web: Web) -> None:
    result = await asked_for_room(web, answer(kind="hang"), 4, REP_FETCH_CONCURRENCY=2, REP_FETCH_TIMEOUT=2)
    assert result.ends == [True, False, True]


@ensureDeferred
async def test_fetches_that_pause_in_an_outage_do_not_count(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "BACKOFFS", (1.0,))
    settings = {"REP_FETCH_CONCURRENCY": 2, "REP_FETCH_RETRIES": 0, "REP_UNREACHABLE_WAIT": 3}
    result = await asked_for_room(web, answer(status=503, delay=0.5), 4, **settings)
    assert result.ends == [True, False, True]


@ensureDeferred
async def test_fetches_that_are_retried_do_not_count(web: Web) -> None:
    class CountsThem(AsksForRoom):
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            self.crawl.ends.append(len(RepMiddleware.of(self.crawler)._single_flight._fetches))

    resets = answer(kind="reset", delay=0.3)
    settings = {"REP_FETCH_CONCURRENCY": 2, "REP_FETCH_RETRIES": 1, "REP_UNREACHABLE_WAIT": 0}
    urls = [web.robots(resets).url() for _ in range(4)]
    result = await crawl(*urls, spider=CountsThem, settings=settings)
    assert result.ends == [True, False, True, 4]


class AnswersNever(DictStorage):
    async def get(self, origin: str) -> bytes | None:
        await sleep(60)
        raise AssertionError("the call was cancelled")


@ensureDeferred
async def test_fetches_that_a_stop_cancels_do_not_count(web: Web) -> None:
    class Stops(AsksForRoom):
        async def start(self) -> Any:
            single_flight = RepMiddleware.of(self.crawler)._single_flight
            async for request in CrawlSpider.start(self):
                yield request
            while single_flight._connections.can_start_another():
                await sleep(0.005)
            close_spider(self, "enough")

    settings = {"REP_FETCH_CONCURRENCY": 1, "REP_STORAGE": "never:", "REP_STORAGES": {"never": AnswersNever}}
    result = await crawl(*(web.robots(RULES).url() for _ in range(2)), spider=Stops, settings=settings)
    assert RepMiddleware.of(result.crawler)._single_flight._connections.can_start_another()


@ensureDeferred
async def test_fetches_in_the_background_do_not_count(web: Web) -> None:
    class Refreshes(CrawlSpider):
        async def start(self) -> Any:
            single_flight = RepMiddleware.of(self.crawler)._single_flight
            for origin in map(Origin.of, urls):
                assert origin is not None
                single_flight.refresh(origin, Request(origin.robots_url))
            self.crawl.ends += [len(single_flight._fetches), single_flight._connections.can_start_another()]
            for request in self.requests:
                yield self.prepared(request)

    urls = [web.robots(RULES).url() for _ in range(4)]
    settings = {"REP_FETCH_CONCURRENCY": 2, "REP_STORAGE": "never:", "REP_STORAGES": {"never": AnswersNever}}
    result = await crawl(spider=Refreshes, settings=settings)
    assert result.ends == [4, True]


class StandingPlaces(Places):
    """Places with a clock that stands still. `begun` has the names of the requests that had a place, in order."""

    clock: Clock
    kept: ClassVar[list[Places]] = []  # so that no place is garbage-collected, and logs an error, in another test

    def __init__(self, number: int) -> None:
        self.kept.append(self)
        self.begun: list[str] = []
        self.held = AsyncExitStack()  # no request ends
        super().__init__(lambda: number)

    def ask(self, *names: str) -> list[Deferred[None]]:
        asked = [Deferred[None]() for _ in names]
        for name, place in zip(names, asked, strict=True):
            deferred_from_coro(self._ask(name, place)).addErrback(lambda _failure: None)
        return asked

    async def _ask(self, name: str, place: Deferred[None]) -> None:
        await self.held.enter_async_context(self.taken(place, lambda: None))
        self.begun.append(name)

    async def pass_time(self, seconds: float) -> None:
        await sleep(0)
        self.clock.advance(seconds)
        await sleep(0)
        await sleep(0)


@pytest.fixture(autouse=True)
def time_stands_still(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the tests without a crawl, time passes only by `pass_time`."""
    if "web" not in request.fixturenames:
        clock = Clock()
        monkeypatch.setattr(StandingPlaces, "clock", clock, raising=False)
        monkeypatch.setattr(module, "call_later", lambda *call: CallLaterResult.from_twisted(clock.callLater(*call)))


@deferred_f_from_coro_f
async def test_first_come_first_served() -> None:
    places = StandingPlaces(1)
    places.ask(*"abcd")
    for _ in "abcd":
        await places.pass_time(0.5)
    assert places.begun == [*"abcd"]


@deferred_f_from_coro_f
async def test_later_origins_do_not_delay_earlier_ones() -> None:
    places = StandingPlaces(2)
    places.ask(*(f"early{n}" for n in range(10)))
    for _ in range(5):
        places.ask(*(f"late{n}" for n in range(100)))
        await places.pass_time(0.5)
    assert places.begun[:10] == [f"early{n}" for n in range(10)]


@deferred_f_from_coro_f
async def test_a_request_is_slow_after_half_a_second() -> None:
    places = StandingPlaces(2)
    places.ask(*"abcdef")
    await places.pass_time(0.0)
    await places.pass_time(0.49)
    assert places.begun == [*"ab"]
    await places.pass_time(0.01)
    assert places.begun == [*"abcd"]


@deferred_f_from_coro_f
async def test_a_request_that_is_cancelled_while_it_waits_takes_no_place() -> None:
    places = StandingPlaces(1)
    places.ask("first")
    (waiting,) = places.ask("cancelled")
    places.ask("next")
    await sleep(0)
    waiting.cancel()
    await places.pass_time(0.5)
    assert places.begun == ["first", "next"]


@deferred_f_from_coro_f
async def test_a_place_that_is_given_to_a_cancelled_request_goes_to_the_next_one() -> None:
    places = StandingPlaces(1)
    places.ask("first")
    (waiting,) = places.ask("cancelled")
    places.ask("next", "after it")
    await sleep(0)
    waiting.cancel()
    places.clock.advance(0.5)  # the place of the first one is given back before the cancelled request notices
    await places.pass_time(0.0)
    await places.pass_time(0.5)
    assert places.begun == ["first", "next", "after it"]


@deferred_f_from_coro_f
async def test_no_place_stays_in_the_line_when_it_is_given_or_cancelled() -> None:
    places = StandingPlaces(1)
    places.ask(*"abcd")
    await places.pass_time(0.5)
    (cancelled,) = places.ask("cancelled")
    cancelled.cancel()
    await places.pass_time(0.0)
    assert (places.begun, len(places._line)) == ([*"ab"], 2)


@deferred_f_from_coro_f
async def test_the_number_of_places_may_change() -> None:
    numbers = [1]
    places = StandingPlaces(1)
    places.number = lambda: numbers[-1]
    places.ask(*"abcdef")
    await places.pass_time(0.0)
    assert places.begun == ["a"]
    numbers.append(3)
    await places.pass_time(0.5)
    assert places.begun == [*"abcd"], "the slow one does not count"
    numbers.append(1)
    places.ask("g")
    await places.pass_time(0.0)
    assert places.begun == [*"abcd"]


def test_requests_that_end_at_once_leave_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asyncio, they end while the places are given: no recursion, and no place is lost."""
    monkeypatch.setattr(module, "maybe_deferred_to_future", lambda deferred: deferred)
    places, hold = Places(lambda: 1), Deferred[None]()
    ended: list[object] = []

    async def taken(until: Deferred[None]) -> None:
        async with places.taken(Deferred(), None):
            await until

    for until in (hold, *(succeed(None) for _ in range(2_000))):
        Deferred.fromCoroutine(taken(until)).addBoth(ended.append)
    assert not ended
    hold.callback(None)
    assert ended == [None] * 2_001
    assert not places._taken
