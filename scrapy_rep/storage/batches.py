"""Calls of one turn of the event loop, made together: one transaction or one round trip for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_rep.storage.threads import Threads

C = TypeVar("C")


class Batches(Generic[C]):
    """`make` makes calls in a thread and returns their results in the same order. If it raises, each of them fails."""

    def __init__(self, threads: Threads, make: Callable[[list[C]], Sequence[Any]]) -> None:
        self._threads = threads
        self._make = make
        self._turn: list[tuple[C, Deferred[Any]]] = []

    async def run(self, call: C) -> Any:
        """The call's result. A cancelled call is not made, unless it has begun."""
        waiter: Deferred[Any] = Deferred()
        self._turn.append((call, waiter))
        if len(self._turn) == 1:
            call_later(0, self._end_turn)
        return await maybe_deferred_to_future(waiter)

    def _end_turn(self) -> None:
        batch, self._turn = self._turn, []
        deferred_from_coro(self._run(batch))

    async def _run(self, batch: list[tuple[C, Deferred[Any]]]) -> None:
        try:
            results = await self._threads.run(self._made, batch)
        except Exception as exc:  # noqa: BLE001 - it is raised where the calls are awaited
            results = [(waiter, Failure(exc)) for _, waiter in batch]  # type: ignore[no-untyped-call]
        for waiter, result in results:
            if not waiter.called:  # it was cancelled
                waiter.callback(result)

    def _made(self, batch: list[tuple[C, Deferred[Any]]]) -> list[tuple[Deferred[Any], Any]]:
        wanted = [(call, waiter) for call, waiter in batch if not waiter.called]
        results = self._make([call for call, _ in wanted])
        return [(waiter, result) for (_, waiter), result in zip(wanted, results, strict=True)]
