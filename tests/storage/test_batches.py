"""Calls of one turn of the event loop are made together, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Event

import pytest
from in_loop import in_loop

from scrapy_rep.storage.threads import Batches, Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads(1)
    yield threads
    threads.close()


@in_loop
async def test_each_has_its_own_result(threads: Threads) -> None:
    made: list[list[int]] = []

    def double(calls: list[int]) -> list[int]:
        made.append(calls)
        return [2 * call for call in calls]

    batches = Batches(threads, double)
    assert await asyncio.gather(*(batches.run(n) for n in range(5))) == [0, 2, 4, 6, 8]
    assert await batches.run(5) == 10
    assert made == [[0, 1, 2, 3, 4], [5]]


@in_loop
async def test_what_fails_fails_for_each(threads: Threads) -> None:
    def fail(_calls: list[int]) -> list[int]:
        raise OSError("full")

    batches = Batches(threads, fail)
    failures = await asyncio.gather(*(batches.run(n) for n in range(2)), return_exceptions=True)
    assert [str(failure) for failure in failures] == ["full", "full"]


@in_loop
async def test_a_cancelled_call_is_not_made(threads: Threads) -> None:
    made: list[int] = []
    busy = Event()

    def note(calls: list[int]) -> list[int]:
        made.extend(calls)
        return calls

    batches = Batches(threads, note)
    before = asyncio.ensure_future(threads.run(busy.wait, 10))
    calls = [asyncio.ensure_future(batches.run(n)) for n in range(3)]
    for _ in range(3):  # turns, until they are handed over and wait for the thread
        await asyncio.sleep(0)
    assert not batches._turn
    calls[1].cancel()
    await asyncio.sleep(0)
    busy.set()
    assert await before
    assert [await calls[0], await calls[2]] == [0, 2]
    assert made == [0, 2]
