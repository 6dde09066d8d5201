"""Waiting without blocking the event loop: for a Deferred, with a time limit, or for a thread."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

import scrapy

# Of the modules that an older Scrapy breaks, this one is imported first.
if scrapy.version_info < (2, 14):
    raise ImportError(f"scrapy-rep needs Scrapy 2.14 or later; this is {scrapy.__version__}")

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

P = ParamSpec("P")
T = TypeVar("T")

CANCELLATIONS = (asyncio.CancelledError, CancelledError)  # Twisted's is an Exception, asyncio's is not


def settle(waiter: Deferred[T], result: T | Failure | BaseException) -> None:
    """Give the Deferred its result or error, unless it has a result already or was cancelled."""
    if not waiter.called:
        if isinstance(result, BaseException):
            waiter.errback(result)
        else:
            waiter.callback(result)


async def within(seconds: float, call: Coroutine[Any, Any, T], late: Exception, result: Deferred[T] | None = None) -> T:
    """Wait for the call and return its result. After the given number of seconds, cancel the call and raise `late`.

    `result`: a Deferred that gets the result, too. If it is cancelled, the call is cancelled.
    """
    result = Deferred() if result is None else result
    timer = call_later(seconds, settle, result, late)
    under_way = deferred_from_coro(call).addBoth(partial(settle, result))
    try:
        return await maybe_deferred_to_future(result)
    finally:
        timer.cancel()
        under_way.cancel()  # unless it is done


class OwnThread:
    """Makes calls one after the other. The thread is a daemon, so the process can end even if a call never returns.

    Scrapy's `run_in_thread` and `ThreadPoolExecutor` do not fit: at exit, the process waits for their threads. The
    threads of `run_in_thread` also resolve host names, so a store that hangs would block the crawl.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=_work, args=(self._calls,), daemon=True)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make the call in the thread and return its result. A call that is cancelled before it begins is skipped."""
        result: Deferred[T] = Deferred()
        self._calls.put(partial(_make, partial(call, *args, **kwargs), result, _caller_in_loop()))
        if self._thread.ident is None:
            self._thread.start()
        return await maybe_deferred_to_future(result)

    def close(self) -> None:
        """Let the thread end after the calls that it has been given."""
        self._calls.put(None)


def _work(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while (make := calls.get()) is not None:
        make()


def _make(call: Callable[[], T], result: Deferred[T], call_in_loop: Callable[..., object]) -> None:
    if result.called:  # it was cancelled
        return
    try:
        outcome: T | BaseException = call()
    except BaseException as exc:  # noqa: BLE001 - it is raised where the call is awaited
        outcome = exc
    with suppress(RuntimeError):  # the event loop has ended
        call_in_loop(settle, result, outcome)


def _caller_in_loop() -> Callable[..., object]:
    """A function that, from any thread, makes a call in the event loop."""
    if is_asyncio_available():
        return asyncio.get_running_loop().call_soon_threadsafe
    from twisted.internet import reactor  # the import installs a reactor  # noqa: PLC0415

    return reactor.callFromThread  # type: ignore[no-any-return]  # Twisted does not type its reactor
