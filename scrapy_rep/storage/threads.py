"""Blocking calls in threads of a store's own, with any reactor and without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Not Scrapy's `run_in_thread`: a store that hangs would take the threads that resolve names."""

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="scrapy-rep")

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The call's result, once a thread is free and has it."""
        future = self._executor.submit(call, *args, **kwargs)
        if is_asyncio_available():
            return await asyncio.wrap_future(future)
        return await _deferred(future)

    def close(self) -> None:
        """Take no more calls. Those that run go on."""
        self._executor.shutdown(wait=False)


def _deferred(future: Future[T]) -> Deferred[T]:
    from twisted.internet import reactor  # importing it installs one  # noqa: PLC0415

    # Nothing to do when the waiter is cancelled.
    deferred: Deferred[T] = Deferred(lambda _deferred: None)

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
