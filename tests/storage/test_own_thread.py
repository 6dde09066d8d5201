"""Calls of one turn of the event loop, and those that come meanwhile, are made together, in a thread."""

from __future__ import annotations

import asyncio
from threading import Event

from in_loop import in_loop

from scrapy_rep.own_thread import BatchedCalls, OwnThread


@in_loop
async def test_each_has_its_own_result() -> None:
    made: list[list[int]] = []

    def double(calls: list[int]) -> list[int]:
        made.append(calls)
        return [2 * call for call in calls]

    batches = BatchedCalls(double)
    assert await asyncio.gather(*(batches.run_together(n) for n in range(5))) == [0, 2, 4, 6, 8]
    assert await batches.run_together(5) == 10
    assert made == [[0, 1, 2, 3, 4], [5]]
    batches.close()


@in_loop
async def test_what_fails_fails_for_each() -> None:
    def fail(_calls: list[int]) -> list[int]:
        raise OSError("full")

    batches = BatchedCalls(fail)
    failures = await asyncio.gather(*(batches.run_together(n) for n in range(2)), return_exceptions=True)
    assert [str(failure) for failure in failures] == ["full", "full"]
    batches.close()


@in_loop
async def test_what_comes_meanwhile_is_made_together_unless_it_is_cancelled() -> None:
    made: list[list[int]] = []
    busy = Event()

    def note(calls: list[int]) -> list[int]:
        made.append(calls)
        assert busy.wait(10)
        return calls

    batches = BatchedCalls(note)
    first = asyncio.ensure_future(batches.run_together(0))
    while not made:  # noqa: ASYNC110 - the thread sets it
        await asyncio.sleep(0.001)
    calls = []
    for n in range(1, 4):  # one in each turn
        calls.append(asyncio.ensure_future(batches.run_together(n)))
        await asyncio.sleep(0)
    calls[1].cancel()
    await asyncio.sleep(0)
    busy.set()
    assert [await first, await calls[0], await calls[2]] == [0, 1, 3]
    assert made == [[0], [1, 3]]
    batches.close()


@in_loop
async def test_a_cancelled_call_is_not_made() -> None:
    thread = OwnThread()
    made: list[int] = []
    busy = Event()
    before = asyncio.ensure_future(thread.run(busy.wait, 10))
    calls = [asyncio.ensure_future(thread.run(made.append, n)) for n in range(3)]
    await asyncio.sleep(0)
    calls[1].cancel()
    await asyncio.sleep(0)
    busy.set()
    assert await before
    await calls[0]
    await calls[2]
    assert made == [0, 2]
    thread.close()
