"""Commands of one turn of the event loop, and those that come meanwhile, are sent to Redis together, from a thread."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest
from in_loop import in_loop

from scrapy_rep.own_thread import OwnThread
from scrapy_rep.storage.redis import RedisStorage


class Sent:
    """What the store sends, instead of a server. Each answer is the command's last argument, doubled."""

    def __init__(self, storage: RedisStorage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[list[Any]] = []
        self.is_free = Event()
        self.is_free.set()
        self.failure: Exception | None = None
        monkeypatch.setattr(storage, "_sent", self)

    def __call__(self, commands: list[Any]) -> list[Any]:
        self.batches.append([command[-1] for command in commands])
        assert self.is_free.wait(10)
        if self.failure is not None:
            raise self.failure
        return [2 * command[-1] for command in commands]


@in_loop
async def test_each_command_of_a_batch_gets_its_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = RedisStorage("redis://127.0.0.1:1/0")
    sent = Sent(storage, monkeypatch)
    assert await asyncio.gather(*(storage._command(n) for n in range(5))) == [0, 2, 4, 6, 8]
    assert await storage._command(5) == 10
    assert sent.batches == [[0, 1, 2, 3, 4], [5]]
    await storage.close()


@in_loop
async def test_a_failed_batch_fails_each_of_its_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = RedisStorage("redis://127.0.0.1:1/0")
    Sent(storage, monkeypatch).failure = OSError("full")
    failures = await asyncio.gather(*(storage._command(n) for n in range(2)), return_exceptions=True)
    assert [str(failure) for failure in failures] == ["full", "full"]
    await storage.close()


@in_loop
async def test_commands_that_come_meanwhile_are_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = RedisStorage("redis://127.0.0.1:1/0")
    sent = Sent(storage, monkeypatch)
    sent.is_free.clear()
    first = asyncio.ensure_future(storage._command(0))
    while not sent.batches:  # noqa: ASYNC110 - the thread sets it
        await asyncio.sleep(0.001)
    commands = []
    for n in range(1, 4):  # one in each turn
        commands.append(asyncio.ensure_future(storage._command(n)))
        await asyncio.sleep(0)
    commands[1].cancel()
    await asyncio.sleep(0)
    sent.is_free.set()
    assert [await first, await commands[0], await commands[2]] == [0, 2, 6]
    assert sent.batches == [[0], [1, 3]]
    await storage.close()


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
