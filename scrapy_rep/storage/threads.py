"""Blocking calls in threads of a store's own, one by one or many together, with any reactor and without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, ParamSpec, TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")

Make = Callable[[list[Any]], Sequence[Any]]
"""Makes calls, and returns their results in the same order."""
Batch = list[tuple[Any, Deferred[Any]]]
"""Calls, each with what awaits its result."""


class Threads:
    """A few daemon threads: a call that never returns does not keep the process alive.

    Scrapy's `run_in_thread` and `ThreadPoolExecutor` have threads that the interpreter waits for when it ends. Those of
    the former also resolve names, which a store that hangs would stop.
    """

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [Thread(target=_work, args=(self._jobs,), daemon=True) for _ in range(count)]

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The call's result, once a thread is free and has it. A cancelled call is not made, unless it has begun."""
        waiter: Deferred[T] = Deferred()
        self.begin(lambda _: [call(*args, **kwargs)], [(call, waiter)])
        return await maybe_deferred_to_future(waiter)

    def begin(self, make: Make, batch: Batch) -> None:
        """Make all calls of the batch that are not cancelled, once a thread is free. If `make` raises, each fails."""
        self._jobs.put(partial(_make, make, batch, _caller_in_loop()))
        for thread in self._threads:
            if thread.ident is None:
                thread.start()

    def close(self) -> None:
        """Each thread ends when it gets there."""
        for _ in self._threads:
            self._jobs.put(None)


def _work(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()


def _make(make: Make, batch: Batch, call_in_loop: Callable[..., object]) -> None:
    """In a thread."""
    calls = [(call, waiter) for call, waiter in batch if not waiter.called]
    if not calls:
        return
    results: Sequence[Any]
    try:
        results = make([call for call, _ in calls])
    except BaseException as exc:  # noqa: BLE001 - it is raised where the calls are awaited
        results = [Failure(exc) for _ in calls]  # type: ignore[no-untyped-call]
    with suppress(RuntimeError):  # the event loop has ended meanwhile
        call_in_loop(_settle, [waiter for _, waiter in calls], results)


def _settle(waiters: list[Deferred[Any]], results: Sequence[Any]) -> None:
    for waiter, result in zip(waiters, results, strict=True):
        if not waiter.called:  # else it was cancelled
            waiter.callback(result)


def _caller_in_loop() -> Callable[..., object]:
    """A function that calls another one in the event loop, from any thread."""
    if is_asyncio_available():
        return asyncio.get_running_loop().call_soon_threadsafe
    from twisted.internet import reactor  # importing it installs one  # noqa: PLC0415

    call_from_thread: Callable[..., object] = reactor.callFromThread
    return call_from_thread


class Batches(Generic[C]):
    """Calls of one turn of the event loop, made together: one transaction or one round trip for all of them."""

    def __init__(self, threads: Threads, make: Callable[[list[C]], Sequence[Any]]) -> None:
        self._threads = threads
        self._make = make
        self._turn: Batch = []

    async def run(self, call: C) -> Any:
        """The call's result. A cancelled call is not made, unless it has begun."""
        waiter: Deferred[Any] = Deferred()
        self._turn.append((call, waiter))
        if len(self._turn) == 1:
            call_later(0, self._end_turn)
        return await maybe_deferred_to_future(waiter)

    def _end_turn(self) -> None:
        batch, self._turn = self._turn, []
        self._threads.begin(self._make, batch)
