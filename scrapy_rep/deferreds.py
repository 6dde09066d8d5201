"""Gives a Deferred its result once, and limits the time of a call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")


def settle(waiter: Deferred[T], result: T | Failure | BaseException) -> None:
    """Give the Deferred its result or error, unless it has a result already or was cancelled."""
    if waiter.called:
        return
    if isinstance(result, BaseException):
        waiter.errback(result)
    else:
        waiter.callback(result)


async def within(seconds: float | Callable[[], float], call: Coroutine[Any, Any, T], late: Exception) -> T:
    """Wait for the call and return its result. After the given number of seconds, cancel the call and raise `late`.

    `seconds` may be a function that returns how many seconds are left. It is called again when they are over.
    """
    result: Deferred[T] = Deferred()
    timers: list[CallLaterResult] = []

    def wait(left: float) -> None:
        timers[:] = [call_later(left, look)]

    def look() -> None:
        left = seconds() if callable(seconds) else 0.0
        if left > 0.0:
            wait(left)
        else:
            settle(result, late)

    wait(seconds() if callable(seconds) else seconds)
    under_way = deferred_from_coro(call).addBoth(partial(settle, result))
    try:
        return await maybe_deferred_to_future(result)
    finally:
        timers[0].cancel()
        under_way.cancel()  # unless it is done
