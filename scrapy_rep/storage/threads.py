"""Blocking calls in threads of a store's own, with any reactor and without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A few daemon threads: a call that never returns does not keep the process alive.

    Scrapy's `run_in_thread` and `ThreadPoolExecutor` have threads that the interpreter waits for when it ends. Those of
    the former also resolve names, which a store that hangs would stop.
    """

    def __init__(self, count: int) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads = [Thread(target=_work, args=(self._calls,), daemon=True) for _ in range(count)]

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The call's result, once a thread is free and has it. A cancelled call is not made, unless it has begun."""
        future: Future[T] = Future()
        self._calls.put((future, partial(call, *args, **kwargs)))
        for thread in self._threads:
            if thread.ident is None:
                thread.start()
        if is_asyncio_available():
            return await asyncio.wrap_future(future)
        return await _deferred(future)

    def close(self) -> None:
        """Each thread ends when it gets there."""
        for _ in self._threads:
            self._calls.put(None)


def _work(calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]) -> None:
    while (item := calls.get()) is not None:
        future, call = item
        if not future.set_running_or_notify_cancel():
            continue
        try:
            result = call()
        except BaseException as exc:  # noqa: BLE001 - it is raised where the call is awaited
            future.set_exception(exc)
        else:
            future.set_result(result)


def _deferred(future: Future[T]) -> Deferred[T]:
    from twisted.internet import reactor  # importing it installs one  # noqa: PLC0415

    def cancel(_deferred: Deferred[T]) -> None:
        future.cancel()

    deferred: Deferred[T] = Deferred(cancel)

    def settle() -> None:
        if deferred.called:
            return
        error = future.exception()
        if error is None:
            deferred.callback(future.result())
        else:
            deferred.errback(error)

    from_thread: Any = reactor.callFromThread
    future.add_done_callback(lambda _future: from_thread(settle))
    return deferred
