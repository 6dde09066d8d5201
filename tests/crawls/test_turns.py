"""How many robots.txt files are fetched at a time (REP_FETCH_CONCURRENCY), and whether more would begin soon."""

from __future__ import annotations

from typing import Any

import pytest
from crawling import Crawl, CrawlSpider, crawl, is_fetching
from pytest_twisted import ensureDeferred
from scrapy.utils.defer import deferred_f_from_coro_f, deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import DeferredList
from web import RULES, Web, answer

from scrapy_rep import RepMiddleware
from scrapy_rep.fetching.turns import FetchTurns
from scrapy_rep.scrapy_internals.compat import sleep


class AsksForRoom(CrawlSpider):
    """Writes down whether there is room for one more fetch, before the others begin, while they do and later."""

    async def start(self) -> Any:
        resolver = RepMiddleware.of(self.crawler)._resolver
        self.crawl.ends.append(resolver.has_room())
        async for request in super().start():
            yield request
        while len(resolver._fetches) < len(self.requests):
            await sleep(0.005)
        self.crawl.ends.append(resolver.has_room())
        while not resolver.has_room():
            await sleep(0.01)
        self.crawl.ends.append(is_fetching(self.crawler))


async def asked_for_room(web: Web, robots: dict[str, Any], number: int, **settings: Any) -> Crawl:
    sites = [web.robots(robots) for _ in range(number)]
    result = await crawl(*(site.url() for site in sites), spider=AsksForRoom, settings=settings)
    assert len(result.pages) + len(result.refused) == number
    return result


@ensureDeferred
async def test_there_is_room_for_twice_as_many_as_are_fetched_at_a_time(web: Web) -> None:
    result = await asked_for_room(web, answer(RULES, delay=1), 3, REP_FETCH_CONCURRENCY=2)
    assert result.ends == [True, True, True]


@ensureDeferred
async def test_slow_fetches_take_no_room(web: Web) -> None:
    result = await asked_for_room(web, answer(kind="hang"), 4, REP_FETCH_CONCURRENCY=2, REP_FETCH_TIMEOUT=4)
    assert result.ends == [True, False, True]


@ensureDeferred
async def test_fetches_that_pause_in_an_outage_take_no_room(web: Web) -> None:
    down = answer(status=503, delay=0.5)
    result = await asked_for_room(web, down, 4, REP_FETCH_CONCURRENCY=2, REP_UNREACHABLE_WAIT=2)
    assert result.ends == [True, False, True]


@ensureDeferred
async def test_fetches_that_are_requested_once_more_take_no_room(web: Web) -> None:
    class CountsThem(AsksForRoom):
        async def start(self) -> Any:
            async for request in super().start():
                yield request
            self.crawl.ends.append(len(RepMiddleware.of(self.crawler)._resolver._fetches))

    resets = answer(kind="reset", delay=0.3)
    settings = {"REP_FETCH_CONCURRENCY": 2, "REP_FETCH_RETRIES": 1, "REP_UNREACHABLE_WAIT": 0}
    urls = [web.robots(resets).url() for _ in range(4)]
    result = await crawl(*urls, spider=CountsThem, settings=settings)
    assert result.ends == [True, False, True, 4]


@pytest.mark.parametrize("limit", [8, 64])
@deferred_f_from_coro_f
async def test_a_known_origin_is_fetched_again_however_many_new_ones_hang(limit: int) -> None:
    turns = FetchTurns(limit, lambda: None)
    taken: list[bool] = []

    async def hang(*, is_repeated: bool) -> None:
        await turns.wait_for_turn(is_repeated=is_repeated)
        taken.append(is_repeated)

    new = [deferred_from_coro(hang(is_repeated=False)) for _ in range(400)]
    await sleep(0)
    await hang(is_repeated=True)
    assert taken == [False] * (limit * 7 // 8) + [True]
    for each in new:
        each.addErrback(lambda _failure: None).cancel()


@pytest.mark.parametrize(("hanging", "begun"), [(7, 8), (8, 16)])
@deferred_f_from_coro_f
async def test_while_as_many_hang_as_are_fetched_at_a_time_others_begin_sooner(
    monkeypatch: pytest.MonkeyPatch, hanging: int, begun: int
) -> None:
    turns, taken, now = FetchTurns(8, lambda: None), 0, 0.0
    monkeypatch.setattr("scrapy_rep.fetching.turns.monotonic", lambda: now)

    async def hang() -> None:
        nonlocal taken
        await turns.wait_for_turn(is_repeated=True)
        taken += 1

    fetches = [deferred_from_coro(hang()) for _ in range(hanging)]
    await sleep(0)
    now += 0.6
    await sleep(0.1)
    fetches += [deferred_from_coro(hang()) for _ in range(16)]
    await sleep(0)
    assert taken == hanging + 8
    now += 3 * 0.125  # three times as long as answers usually take
    await sleep(0.1)
    assert taken == hanging + begun
    for each in fetches:
        each.addErrback(lambda _failure: None).cancel()


@pytest.mark.parametrize("seconds", [0.6, 0.9])
@deferred_f_from_coro_f
async def test_the_limit_holds_where_every_answer_takes_long(seconds: float) -> None:
    turns, under_way, most = FetchTurns(8, lambda: None), 0, []

    async def fetch() -> None:
        nonlocal under_way
        turn = await turns.wait_for_turn(is_repeated=True)
        under_way += 1
        most.append(under_way)
        await sleep(seconds)
        under_way -= 1
        turns.end(turn, is_answered=True)

    fetches = [deferred_from_coro(fetch()) for _ in range(48)]
    await maybe_deferred_to_future(DeferredList(fetches))
    assert max(most[24:]) == 8, "once it is known how long answers take"
